"""Bodies and content types that are refused, each with the field that is wrong."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError
from rest_client import RAW, Rest

import teletape_server.app  # noqa: F401  # its routes declare their models
from serving import ok, problem
from teletape_engine.errors import TeletapeError
from teletape_server.handlers.bodies import InvalidRequestError, validated
from teletape_server.http.declarations import DECLARED
from teletape_server.http.schemas import Extension, NewSession
from teletape_server.models.base import Body
from teletape_server.models.functions.functions import NewFunction
from teletape_server.models.session.batches import SessionRun
from teletape_server.models.session.ops import OpCalls
from teletape_server.models.tapes.questions import GradientQuestion
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE


@pytest.mark.parametrize(
    ("place", "body", "where"),
    [
        ("variables", {}, "value"),
        ("variables", {"value": 1.5, "trainable": "yes"}, "trainable"),
        ("variables", {"value": 1.5, "colour": "red"}, "colour"),
        ("tensors", [], "body"),
        ("tapes", {"persistent": 1}, "persistent"),
        ("ops", {"ops": [{"inputs": []}]}, "ops.0.op"),
        ("ops", {"ops": "neg"}, "ops"),
        ("tapes/t/gradient", {"targets": [], "sources": []}, "targets"),
        ("tapes/t/gradient", {"targets": ["w"], "sources": ["w"], "unconnected": "one"}, "unconnected"),
        ("tapes/t/gradient", {"targets": ["w"], "sources": ["w"], "outputs": []}, None),
        ("functions", {"inputs": ["a"], "steps": [], "outputs": []}, "outputs"),
    ],
)
def test_bodies_that_are_wrong(rest: Rest, place: str, body: Any, where: str | None) -> None:
    rest.create("variables", {"id": "w", "value": 1.5})
    rest.create("tapes", {"id": "t"})
    refusal = problem(rest.post(place, body), 422, "invalid_request")
    assert where is None or refusal["details"]["fields"][0]["field"] == where
    assert ok(rest.get("tapes/t")).json()["consumed"] is False


REQUESTS = {name: model for name, model in DECLARED.items() if issubclass(model, Body)} | {
    "NewSession": NewSession,
    "Extension": Extension,
}
del REQUESTS["Batch"]  # it is for the API page: `teletape_wire.json` reads batches
WRONG: list[Any] = [None, True, -1, 0, 1.5, 1e300, "", "yes", "?" * 300, [], [None] * 20_000, {}, {"x": 1}, [[]]]
#: How pydantic begins its own sentences.
FOREIGN = re.compile(
    r"(?:Input|Field|Extra|List|String|Value|Dictionary|Object|Tuple|Unable)\b.*(?:should|required|not p)"
)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_what_is_wrong_with_a_field_is_said_in_our_words(name: str) -> None:
    model = REQUESTS[name]
    messages = []
    for field in (*model.model_fields, "no_such_field"):
        for value in WRONG:
            try:
                validated(model, {field: value})
            except TeletapeError as error:
                messages.append(error.message)
    assert any(": is no field of this request" in message for message in messages)
    assert not [message for message in messages if FOREIGN.search(message)]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"[]", "body: must be an object; found a list"),
        (b'{"memory_limit": "1"}', 'memory_limit: must be an integer; found "1"'),
        (b'{"memory_limit": 0}', "memory_limit: must be greater than 0; found 0"),
        (
            b'{"colour": 1}',
            "colour: is no field of this request: it has id, device, memory_limit, dtype, replace, dedicated, "
            "durability",
        ),
        (b'{"id": "-"}', 'id: must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$; found "-"'),
    ],
)
def test_bodies_that_the_front_reads_are_refused_in_our_words(http: httpx.Client, body: bytes, detail: str) -> None:
    headers = {"Content-Type": "application/json"}
    assert problem(http.post("/v1/sessions", content=body, headers=headers), 422, "invalid_request")["detail"] == detail


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"memory_limit": 1e999}', b'{"id": "a", "id": "b"}', '{"id": "a"}'.encode("utf-16"), b'{"id": NaN}'],
)
def test_bodies_that_the_front_reads_are_parsed_strictly(http: httpx.Client, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    problem(http.post("/v1/sessions", content=body, headers=headers), 400, "malformed_json")
    problem(
        http.post("/v1/sessions", content=body, headers={"Content-Type": "text/plain"}), 415, "unsupported_media_type"
    )


def test_a_query_is_refused_in_our_words(rest: Rest) -> None:
    refusal = problem(rest.get("tensors/x?full=perhaps"), 422, "invalid_request")
    assert refusal["detail"] == 'query.full: must be true or false; found "perhaps"'


def test_malformed_json_names_the_place(rest: Rest) -> None:
    response = rest.http.post(f"{rest.path}/ops", content=b'{"ops": [', headers={"Content-Type": "application/json"})
    assert "column" in problem(response, 400, "malformed_json")["detail"]


def test_a_tensor_is_no_variable_and_no_tape(rest: Rest) -> None:
    rest.create("tensors", {"id": "x", "value": 1.5})
    rest.create("variables", {"id": "w", "value": 1.5})
    for response in (
        rest.get("variables/x"),
        rest.get("tapes/x"),
        rest.delete("functions/x"),
        rest.put("variables/x", {"value": 1}),
    ):
        assert "tensors/x" in problem(response, 404, "unknown_id")["detail"]
    assert "variables/w" in problem(rest.get("tensors/w"), 404, "unknown_id")["detail"]
    assert rest.data("tensors/x") == 1.5


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (NewSession, lambda many: many),
        (SessionRun, lambda many: many | {"commands": 1}),
        (OpCalls, lambda many: {"ops": [many | {"op": "exp"}]}),
    ],
)
def test_many_unknown_fields_are_few_faults(model: type[BaseModel], fields: Callable[[Any], Any]) -> None:
    body = fields({f"f{i}": 1 for i in range(1000)})
    with pytest.raises(ValidationError) as refusal:
        model.model_validate(body)
    assert refusal.value.error_count() < 10
    with pytest.raises(InvalidRequestError, match="f0: is no field of this request"):
        validated(model, body)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (NewFunction, {"inputs": [1] * 1000, "steps": [], "outputs": ["y"]}),
        (GradientQuestion, {"targets": [1] * 1000, "sources": ["x"]}),
        (OpCalls, {"ops": [{"op": "exp", "inputs": ["x"], "outputs": [1] * 1000}]}),
    ],
)
def test_many_wrong_members_of_a_list_are_one_fault(model: type[BaseModel], fields: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        model.model_validate(fields)
    assert refusal.value.error_count() == 1
    with pytest.raises(InvalidRequestError, match=r"^\S+\.0: must be .*; found 1$"):
        validated(model, fields)


def test_too_many_members_of_an_object_are_counted() -> None:
    with pytest.raises(InvalidRequestError, match="tensors: must have at most 16,384 members; found 20000"):
        validated(SessionRun, {"commands": [], "tensors": {f"x{i}": 1 for i in range(20_000)}})


@pytest.mark.parametrize("place", ["/v1/sessions", "/v1/run", "ops", "batch"])
def test_a_compressed_body_is_refused_by_its_header(rest: Rest, place: str) -> None:
    url = place if place.startswith("/") else f"{rest.path}/{place}"
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    refusal = problem(rest.http.post(url, content=b"\x1f\x8b\x08", headers=headers), 415, "unsupported_media_type")
    assert "Content-Encoding 'gzip' is not supported: send the body uncompressed" in refusal["detail"]
    headers["Content-Encoding"] = "identity"
    problem(rest.http.post(url, content=b"\x1f\x8b\x08", headers=headers), 400, "malformed_json")


def test_content_types_that_are_not_known(rest: Rest) -> None:
    response = rest.http.post(f"{rest.path}/tensors", content=b"x", headers={"Content-Type": "text/csv"})
    assert problem(response, 415, "unsupported_media_type")["details"]["known"] == [
        SAFETENSORS_TYPE,
        RAW,
        "application/json",
    ]
    response = rest.http.post(f"{rest.path}/tapes", content=b"x", headers={"Content-Type": RAW})
    assert problem(response, 415, "unsupported_media_type")["details"]["known"] == ["application/json"]
    rest.create("tensors", {"id": "x", "value": 1.5})
    known = problem(rest.get("tensors/x", Accept="image/png"), 406, "not_acceptable")["details"]["known"]
    assert known == ["application/json", RAW, SAFETENSORS_TYPE]
    problem(rest.get("tensors", Accept=RAW), 406, "not_acceptable")
