"""The OpenAPI document: as committed, harmless to clients, complete; and every example on the page runs, twice."""

import copy
import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import walk

from programs import load_script
from serving import Server, ok
from teletape_engine.commands import COMMANDS
from teletape_server.http.openapi.compatibility import breaking_changes
from teletape_server.http.openapi.document import SECTIONS
from teletape_server.settings import Settings

openapi_document = load_script("openapi_document")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document.document()


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_committed_document_is_current() -> None:
    assert openapi_document.FILE.read_text(encoding="utf-8") == openapi_document.text(), "run `make openapi`"


def test_nothing_breaks_clients_of_the_committed_document(document: dict[str, Any]) -> None:
    assert breaking_changes(json.loads(openapi_document.FILE.read_text()), document) == []


def drop_path(new: dict[str, Any]) -> None:
    del new["paths"]["/v1/run"]


def drop_operation(new: dict[str, Any]) -> None:
    del new["paths"]["/v1/sessions"]["get"]


def require_field(new: dict[str, Any]) -> None:
    new["components"]["schemas"]["NewTape"]["required"] = ["persistent"]


def drop_field_of_body(new: dict[str, Any]) -> None:
    del new["components"]["schemas"]["GradientQuestion"]["properties"]["unconnected"]


def drop_field_of_answer(new: dict[str, Any]) -> None:
    del new["components"]["schemas"]["Derivative"]["properties"]["kind"]


def make_answer_optional(new: dict[str, Any]) -> None:
    new["components"]["schemas"]["Session"]["required"].remove("expires_at")


def narrow_word(new: dict[str, Any]) -> None:
    new["components"]["schemas"]["Assignment"]["properties"]["mode"]["enum"].remove("sub")


def widen_answer(new: dict[str, Any]) -> None:
    new["components"]["schemas"]["Derivative"]["properties"]["kind"]["enum"].append("fourth")


def change_type(new: dict[str, Any]) -> None:
    new["components"]["schemas"]["Variable"]["properties"]["version"]["type"] = "string"


def require_parameter(new: dict[str, Any]) -> None:
    parameters = new["paths"]["/v1/run"]["post"]["parameters"]
    next(operation for operation in parameters if operation["name"] == "device")["required"] = True


def drop_raw(new: dict[str, Any]) -> None:
    del new["paths"]["/v1/sessions/{session}/tensors"]["post"]["requestBody"]["content"]["application/octet-stream"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_path, "POST /v1/run: removed"),
        (drop_operation, "GET /v1/sessions: removed"),
        (require_field, "body.persistent: now required"),
        (drop_field_of_body, "body.unconnected: removed"),
        (drop_field_of_answer, "answer.derivatives[].kind: removed"),
        (make_answer_optional, "answer.expires_at: no longer always present"),
        (narrow_word, "body.mode: enum"),
        (widen_answer, "answer.derivatives[].kind: enum"),
        (change_type, "version: type 'integer' has become 'string'"),
        (require_parameter, "the query parameter device is now required"),
        (drop_raw, "bodies of application/octet-stream are no longer accepted"),
    ],
)
def test_a_change_that_breaks_clients_is_found(
    document: dict[str, Any], change: Callable[[dict[str, Any]], None], message: str
) -> None:
    new = copy.deepcopy(document)
    change(new)
    assert any(message in text for text in breaking_changes(document, new)), breaking_changes(document, new)


def test_additions_break_nobody(document: dict[str, Any]) -> None:
    new = copy.deepcopy(document)
    schemas = new["components"]["schemas"]
    schemas["NewTape"]["properties"]["colour"] = {"type": "string"}
    schemas["Tape"]["properties"]["colour"] = {"type": "string"}
    schemas["Tape"]["required"].append("colour")
    new["paths"]["/v1/new"] = {"get": new["paths"]["/v1/health"]["get"]}
    assert breaking_changes(document, new) == []


def test_export_refuses_to_break_clients(
    document: dict[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = copy.deepcopy(document)
    more["paths"]["/v1/more"] = more["paths"]["/v1/health"]
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(more))
    monkeypatch.setattr("sys.argv", ["export", "--file", str(file)])
    assert openapi_document.main() == 1
    assert "GET /v1/more: removed" in capsys.readouterr().err
    assert json.loads(file.read_text()) == more
    monkeypatch.setattr("sys.argv", ["export", "--file", str(file), "--breaking"])
    assert openapi_document.main() == 0
    assert json.loads(file.read_text()) == document


def test_every_operation_is_described(document: dict[str, Any]) -> None:
    found_operations = operations(document)
    assert len(found_operations) > 35
    for where, operation in found_operations:
        assert operation["summary"], where
        assert operation["description"], where
        assert operation["tags"][0] in SECTIONS, where
        assert "HTTPValidationError" not in json.dumps(operation), where
        problems = [answer for status, answer in operation["responses"].items() if not status.startswith(("2", "304"))]
        assert all([*answer["content"]] == ["application/problem+json"] for answer in problems), where
        if "{session}" in where:
            assert {"401", "404", "410"} <= operation["responses"].keys(), where
    assert len({operation["operationId"] for _, operation in found_operations}) == len(found_operations)


def test_every_component_is_used_and_every_reference_has_one(document: dict[str, Any]) -> None:
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert references == document["components"]["schemas"].keys()


def parts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every object in a part of the document, with its path; examples are left out."""
    if isinstance(value, dict):
        yield path, value
        for name, member in value.items():
            if name not in ("example", "examples"):
                yield from parts(member, (*path, name))
    elif isinstance(value, list):
        for member in value:
            yield from parts(member, path)


def test_generators_of_clients_can_read_the_document(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert document["servers"] == [{"url": "/"}]
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", name) for name in schemas), "public names, without a module's"
    for path, part in parts(document):
        assert part.get("const") is not False, path
        assert "default" not in part or "parameters" in path or path[-1] in ("responses", "properties"), path
        assert "title" not in part or len(path) < 4 or path[-1] == "properties", f"{path}: a model inside another"


def test_operations_of_one_answer_have_one_type(document: dict[str, Any]) -> None:
    """The text describes events: as a second type, a generated client must tell them from the answer."""
    assert "text/event-stream" not in {name for path, part in parts(document["paths"]) for name in part}
    assert "text/event-stream" in document["info"]["description"]


def test_every_command_is_typed_and_chosen_by_its_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    discriminator = schemas["Command"]["discriminator"]
    assert discriminator["propertyName"] == "do"
    assert discriminator["mapping"].keys() == COMMANDS.keys()
    for verb, reference in discriminator["mapping"].items():
        schema = schemas[reference.rpartition("/")[2]]
        assert schema["properties"]["do"]["const"] == verb
        assert [*schema["properties"]][1:] == [field.name for field in dataclasses.fields(COMMANDS[verb])]
        assert schema["additionalProperties"] is False
    for name in ("Run", "Batch"):
        assert schemas[name]["properties"]["commands"]["items"] == {"$ref": "#/components/schemas/Command"}


def test_every_example_runs_from_top_to_bottom_and_again(server_url: str, document: dict[str, Any]) -> None:
    steps = list(walk.steps(document))
    assert len(steps) == len(
        [where for where, _ in operations(document) if not any(path in where for path in walk.OWN_IDS)]
    )
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        for _ in range(2):
            seen = {step.operation: walk.send(http, step) for step in steps}
            [dw, dx] = seen["tapes-gradient"].json()["derivatives"]
            assert dw["value"]["data"] == [4.0, 5.0, 6.0]
            assert dx["value"]["data"] == [1.0, 2.0, 3.0]
            [da] = seen["functions-gradient"].json()["derivatives"]
            assert da["value"]["data"] == [1.0, 2.0]  # (a - b)·2/n
            assert seen["run-run"].json()["values"]["dx"]["data"] == pytest.approx(0.9182, abs=1e-4)


def test_every_example_of_a_run_works_as_a_browser_sends_it(server_url: str, document: dict[str, Any]) -> None:
    run = next(step for step in walk.steps(document) if step.operation == "run-run")
    examples = document["components"]["schemas"]["Run"]["examples"]
    assert len(examples) > 2
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        for example in examples:
            values = walk.send(http, run._replace(body=example)).json()["values"]
            if any(command["do"] == "explain" for command in example["commands"]):
                assert values == {"dx": None}
            else:
                assert [values[name]["dtype"] for name in example["fetch"]] == ["float32"] * len(example["fetch"])


def test_the_walk_can_begin_anew_wherever_it_was_left(server_url: str, document: dict[str, Any]) -> None:
    steps = list(walk.steps(document))
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        for step in steps[: len(steps) * 2 // 3]:
            walk.send(http, step)
        for step in steps:
            walk.send(http, step)


def test_the_examples_run_with_a_key(document: dict[str, Any]) -> None:
    with Server(Settings(api_keys={"ann": "the key of ann"})).running() as server:
        with server.client(None) as http:
            assert ok(http.get("/openapi.json")).json()["paths"].keys() == document["paths"].keys()
            assert ok(http.get("/docs")).headers["content-type"].startswith("text/html")
            assert http.get("/v1/info").status_code == 401
        with httpx.Client(base_url=server.url, headers={"X-API-Key": "the key of ann"}, trust_env=False) as http:
            for step in walk.steps(document):
                walk.send(http, step)


def test_no_request_makes_the_server_write_the_document(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a third of a second, in which nothing else would be answered."""
    monkeypatch.setattr(server.app, "openapi", None)
    with server.client(None) as http:
        ok(http.get("/openapi.json"))
