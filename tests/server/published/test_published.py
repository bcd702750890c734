"""Published functions: they are published, called by every key that may see them, named, deleted, and moved."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from rest_client import Rest

import teletape_wire as wire
from prepared import Prepared
from serving import KEYS, Server, needs_exchange, ok, until
from teletape_server.connections import frames
from teletape_server.models.published.questions import QUESTIONS
from teletape_server.settings import Settings
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE
from teletape_wire.safetensors.reader import read_file
from teletape_wire.safetensors.writer import write_file

TEXT = "error = mean((x @ w - y)**2)"
LINE: dict[str, Any] = {
    "function": {"text": TEXT},
    "inputs": {"x": {"shape": ["n", 2]}, "y": {"shape": ["n"]}},
    "weights": {"w": [1.5, -0.5]},
    "visibility": "everybody",
}
INPUTS: dict[str, Any] = {"x": [[0.5, 1.5], [2.5, 0.5]], "y": [0.5, 3.5]}
FIELDS: dict[str, Any] = {
    "vjp": {"output_gradients": [0.5]},
    "jvp": {"sources": ["x"], "tangents": [[[1.5, 0.5], [0.5, -0.5]]]},
    "hvp": {"sources": ["x"], "vectors": [[[1.5, 0.5], [0.5, -0.5]]]},
    "check": {"settings": {"entries": 4}},
}
STEPS = ("inputs", "steps", "outputs")
NUMBERS = itertools.count()


@pytest.fixture
def name() -> str:
    """A name that no other test publishes under."""
    return f"line{next(NUMBERS)}"


@pytest.fixture
def path(http: httpx.Client, name: str) -> Iterator[str]:
    """The path of a published function."""
    ok(http.put(f"/v1/published/{name}", json=LINE))
    yield f"/v1/published/{name}"
    http.delete(f"/v1/published/{name}")


def problem(response: httpx.Response, status: int, code: str) -> str:
    """The text of a problem, which must be this one."""
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    detail: str = response.json()["detail"]
    return detail


# ----------------------------------------------------------------------------------------------------------- questions
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_as_that_to_a_sessions_function(
    http: httpx.Client, rest: Rest, path: str, question: str
) -> None:
    """But for what is said of the session, or of the calls that were computed together."""
    fields = FIELDS.get(question, {})
    rest.create("variables", {"id": "w", "value": [1.5, -0.5]})
    rest.create("functions", {"id": "line", "text": TEXT})
    own = {"check": "check_gradients"}.get(question, question)
    more: dict[str, Any] = {"inputs": {**INPUTS, "w": "w"}}
    if question == "call":
        more["scratch"] = True
    elif question == "check":
        with_weights_last = ok(rest.get("functions/line")).json() | {"inputs": ["x", "y", "w"], "replace": True}
        rest.create("functions", {field: with_weights_last[field] for field in ("id", "replace", *STEPS)})
    elif "sources" not in fields:
        more["sources"] = ["x", "y"]
    expected = rest.done(f"functions/line/{own}", {**fields, **more})
    answer = ok(http.post(f"{path}/{question}", json={"inputs": INPUTS, **fields})).json()
    batch = answer.pop("batch")
    assert (batch["size"], batch["why"]) == (1, "alone")
    for body in (answer, expected):
        body.pop("bytes_in_use", None)
    assert answer == expected


@pytest.mark.parametrize("question", ["call", "value_and_gradient", "jacobian", "hessian"])
def test_a_map_is_a_call_for_each_entry_with_the_declared_shapes(http: httpx.Client, path: str, question: str) -> None:
    rows = [INPUTS["y"], [1.5, -2.5], [4.5, 0.5]]
    body = {"inputs": {"x": INPUTS["x"], "y": np.transpose(rows).tolist()}, "map": {"y": 1}}
    answer = ok(http.post(f"{path}/{question}", json=body)).json()
    assert (answer["map"]["size"], answer["map"]["vectorized"]) == (3, True)
    for at, row in enumerate(rows):
        alone = ok(http.post(f"{path}/{question}", json={"inputs": {**INPUTS, "y": row}})).json()
        for whole, entry in zip(tensors(answer), tensors(alone), strict=True):
            assert np.array(whole)[at] == pytest.approx(np.array(entry), rel=1e-5)
    detail = problem(http.post(f"{path}/{question}", json=body | {"map": {"y": 0}}), 422, "invalid_request")
    assert "inputs.y" in detail


@pytest.mark.parametrize("question", ["gradient", "value_and_gradient"])
def test_gradients_by_differences_are_those_of_the_ops(http: httpx.Client, path: str, question: str) -> None:
    body = {"inputs": INPUTS, "sources": ["x", "w"]}
    exact = ok(http.post(f"{path}/{question}", json=body)).json()
    answer = ok(http.post(f"{path}/{question}", json=body | {"numeric": True})).json()
    assert answer["numeric"] == {"evaluations": 2 * (4 + 2), "chunks": 1, "vectorized": True}
    for left, right in zip(answer["derivatives"], exact["derivatives"], strict=True):
        np.testing.assert_allclose(left["value"]["data"], right["value"]["data"], rtol=2e-3, atol=2e-3)
    assert answer["values"] == exact["values"]
    problem(
        http.post(f"{path}/{question}", json=body | {"accumulate": {"into": "a", "batch": 0}}), 422, "invalid_request"
    )


def tensors(answer: Any) -> list[Any]:
    """The elements of all tensors in an answer."""
    if isinstance(answer, list):
        return [data for item in answer for data in tensors(item)]
    if isinstance(answer, dict) and "data" in answer:
        return [answer["data"]]
    return tensors([*answer.values()]) if isinstance(answer, dict) else []


def test_inputs_take_their_declared_dtypes_and_may_be_in_order(http: httpx.Client, name: str) -> None:
    body = {
        "function": {"text": "r = gather(table, i) * scale"},
        "inputs": {
            "i": {"dtype": "int32", "shape": ["k"]},
            "scale": {"dtype": "float64", "shape": []},
            "table": {"dtype": "float64", "shape": [4]},
        },
    }
    ok(http.put(f"/v1/published/{name}", json=body))
    names = [item["name"] for item in http.get(f"/v1/published/{name}").json()["version"]["inputs"]]
    assert names == ["i", "scale", "table"]  # as declared, and not as the text names them
    values = {"i": [3, 0], "scale": 2, "table": [1, 2, 3, 4]}
    for inputs in (values, [values[item] for item in names]):
        answer = ok(http.post(f"/v1/published/{name}/value_and_gradient", json={"inputs": inputs})).json()
        assert answer["values"]["r"] == {"dtype": "float64", "shape": [2], "data": [8.0, 2.0]}
        assert [item["source"] for item in answer["derivatives"]] == [item for item in names if item != "i"]


def test_gradients_by_weights_are_those_of_the_call_alone(http: httpx.Client, path: str) -> None:
    answer = ok(http.post(f"{path}/gradient", json={"inputs": INPUTS, "sources": ["w"]})).json()
    [entry] = answer["derivatives"]
    residual = np.array(INPUTS["x"]) @ [1.5, -0.5] - INPUTS["y"]
    assert entry["value"]["data"] == pytest.approx(residual @ np.array(INPUTS["x"]))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"inputs": {"x": [[1, 2]], "y": [1, 2]}}, "n is 1 in another input"),
        ({"inputs": {"x": [1, 2], "y": [1, 2]}}, "inputs.x is float32[n, 2]; found the shape [2]"),
        (
            {"inputs": {**INPUTS, "y": {"dtype": "float64", "data": [1, 2]}}},
            "inputs.y: it is float32[n]; found float64",
        ),
        ({"inputs": {"x": INPUTS["x"]}}, "y is missing"),
        ({"inputs": {**INPUTS, "w": [1, 2]}}, "has x, y; found 'w'"),
        ({"inputs": {**INPUTS, "x": "weight/w"}}, "must be a number or a tensor"),
        ({"inputs": INPUTS, "outputs": ["kept"]}, "outputs: is no field of this request"),
        ({"inputs": INPUTS, "sources": ["z"]}, "has x, y, w; found 'z'"),
        ({"inputs": INPUTS, "targets": ["loss"]}, "has error; found 'loss'"),
    ],
)
def test_a_call_that_does_not_fit_says_what_is_declared(http: httpx.Client, path: str, body: Any, text: str) -> None:
    assert text in problem(http.post(f"{path}/value_and_gradient", json=body), 422, "invalid_request")


def test_tensors_travel_as_safetensors(http: httpx.Client, path: str) -> None:
    arrays = {name: np.array(value, np.float32) for name, value in INPUTS.items()}
    content = b"".join(write_file(arrays, {"request": '{"sources": ["x"]}'}))
    headers = {"Content-Type": SAFETENSORS_TYPE, "Accept": SAFETENSORS_TYPE}
    response = ok(http.post(f"{path}/value_and_gradient", content=content, headers=headers))
    file = read_file(memoryview(response.content), copy_below=1 << 20)
    assert file.tensors["values/error"] == pytest.approx(0.125)
    assert file.tensors["derivatives/x"].shape == (2, 2)
    assert wire.parse_json(file.metadata["answer"].encode())["batch"]["size"] == 1


def test_a_large_body_is_received_by_the_process_that_computes(alone: Server) -> None:
    rows = (1 << 20) // 12 + 1
    x, y = np.full((rows, 2), 0.5, np.float32), np.zeros(rows, np.float32)
    content = b"".join(write_file({"x": x, "y": y}, {}))
    assert len(content) > 1 << 20
    headers = {"Content-Type": SAFETENSORS_TYPE, "Accept": SAFETENSORS_TYPE}
    with alone.client() as http:
        for _ in range(2):
            response = ok(http.post("/v1/published/line/value_and_gradient", content=content, headers=headers))
        file = read_file(memoryview(response.content), copy_below=1 << 20)
        assert file.tensors["values/error"] == pytest.approx(0.25)
        assert file.tensors["derivatives/x"].shape == (rows, 2)
        text = problem(
            http.post("/v1/published/line/call", content=content[:-4], headers=headers), 400, "malformed_safetensors"
        )
        assert text
    assert alone.app.state.registry.bodies.counts[None] == 0


# --------------------------------------------------------------------------------------------------------- publication
def test_what_is_published_says_what_it_takes_and_returns(http: httpx.Client, name: str) -> None:
    body = LINE | {"examples": [{"inputs": INPUTS}], "description": "a line"}
    response = ok(http.put(f"/v1/published/{name}", json=body))
    assert (response.status_code, response.headers["location"]) == (201, f"/v1/published/{name}")
    facts = response.json()
    assert facts == http.get(f"/v1/published/{name}").json()
    version = facts["version"]
    assert version["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": ["n", 2]},
        {"name": "y", "dtype": "float32", "shape": ["n"]},
    ]
    assert version["outputs"] == [{"name": "error", "dtype": "float32", "shape": []}]
    assert version["weights"] == [{"name": "w", "dtype": "float32", "shape": [2]}]
    assert version["examples"][0]["outputs"]["error"]["data"] == 0.125
    assert version["check"]["agrees"]
    assert version["batched"]
    assert (facts["description"], facts["durable"], facts["aliases"]) == (
        "a line",
        False,
        {"latest": version["version"]},
    )


def test_outputs_have_the_named_axes_of_inputs(http: httpx.Client, name: str) -> None:
    body = {
        "function": {"text": "a = x @ y\nb = concat([x, x], axis=0)"},
        "inputs": {"x": {"shape": ["n", "k"]}, "y": {"shape": ["k", 3]}},
    }
    facts = ok(http.put(f"/v1/published/{name}", json=body)).json()["version"]
    assert {item["name"]: item["shape"] for item in facts["outputs"]} == {"a": ["n", 3], "b": [None, "k"]}


def test_the_same_content_is_the_same_version(http: httpx.Client, path: str) -> None:
    first = http.get(path).json()["version"]["version"]
    again = http.put(path, json=LINE | {"description": "said anew"})
    assert (again.status_code, again.json()["version"]["version"]) == (200, first)
    assert http.get(path).json()["description"] == "said anew"
    other = ok(http.put(path, json=LINE | {"weights": {"w": [2.5, 0.5]}})).json()["version"]["version"]
    assert other != first
    listed = http.get(f"{path}/versions").json()["versions"]
    assert [item["version"] for item in listed] == [first, other]
    values = {
        reference: ok(http.post(f"{path}{reference}/call", json={"inputs": INPUTS})).json()["values"]["error"]["data"]
        for reference in ("", f"@{first}", f"@{other}")
    }
    assert values[f"@{first}"] == 0.125
    assert values[""] == values[f"@{other}"] != 0.125


def test_an_alias_names_a_version_until_it_is_moved(http: httpx.Client, path: str) -> None:
    first = http.get(path).json()["version"]["version"]
    ok(http.put(f"{path}/aliases/stable", json={"version": "latest"}))
    ok(http.put(path, json=LINE | {"weights": {"w": [2.5, 0.5]}}))
    assert http.get(f"{path}@stable").json()["version"]["version"] == first
    assert ok(http.post(f"{path}@stable/call", json={"inputs": INPUTS})).json()["values"]["error"]["data"] == 0.125
    assert "no version or alias" in problem(http.get(f"{path}@none"), 404, "unknown_id")
    assert "by itself" in problem(http.put(f"{path}/aliases/latest", json={"version": first}), 422, "invalid_request")
    ok(http.delete(f"{path}@stable"))
    assert len(http.get(f"{path}/versions").json()["versions"]) == 1
    ok(http.delete(path))
    assert "no function is published" in problem(http.post(f"{path}/call", json={"inputs": INPUTS}), 404, "unknown_id")


def test_a_sessions_function_is_published_with_its_variables_and_what_it_calls(
    http: httpx.Client, rest: Rest, name: str
) -> None:
    rest.create("variables", {"id": "slope", "value": [1.5, -0.5]})
    rest.create("functions", {"id": "residual", "text": "r = x @ w - y"})
    inner = {"do": "call", "function": "residual", "inputs": ["x", "w", "y"], "outputs": ["r"]}
    last = {"op": "reduce_mean", "inputs": ["s"], "outputs": ["error"]}
    steps = [inner, {"op": "square", "inputs": ["r"], "outputs": ["s"]}, last]
    rest.create("functions", {"id": "loss", "inputs": ["w", "x", "y"], "steps": steps, "outputs": ["error"]})
    body = {"function": "loss", "inputs": LINE["inputs"], "weights": {"w": "slope"}}
    session = rest.path.rpartition("/")[2]
    ok(http.put(f"/v1/published/{name}", params={"session": session}, json=body))
    rest.put("variables/slope", {"value": [0.0, 0.0]})
    answer = ok(http.post(f"/v1/published/{name}/value_and_gradient", json={"inputs": INPUTS})).json()
    assert answer["values"]["error"]["data"] == 0.125
    assert "name the session" in problem(http.put(f"/v1/published/{name}", json=body), 422, "invalid_request")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"inputs": {"x": {"shape": ["n", 2]}}}, "y is neither declared nor a weight"),
        ({"inputs": {**LINE["inputs"], "z": {"shape": []}}}, "z is no input of the function"),
        ({"weights": {"w": [1.5, 0.5], "v": 1}}, "weights: v"),
        ({"weights": {"w": [1.5, 0.5, 2.5]}}, "does not take the declared inputs with n = 2"),
        ({"inputs": {**LINE["inputs"], "y": {"shape": ["n"], "dtype": "float"}}}, "must be one of"),
        ({"inputs": {**LINE["inputs"], "y": {"shape": ["a b"]}}}, "must match"),
        ({"examples": [{"inputs": {**INPUTS, "y": [1]}}]}, "examples[0]: inputs.y"),
        ({"examples": [{"inputs": INPUTS, "outputs": {"error": 0.5}}]}, "the function gives 0.125"),
        ({"examples": [{"inputs": INPUTS, "outputs": {"loss": 0.5}}]}, "the function has error; found 'loss'"),
        ({"weights": {"w": "w"}}, "name the session"),
        ({"group": ["bob"]}, "visibility is not group"),
        ({"function": "loss"}, "name the session in the query"),
    ],
)
def test_a_publication_that_does_not_hold_is_refused(http: httpx.Client, name: str, changes: Any, text: str) -> None:
    assert text in problem(http.put(f"/v1/published/{name}", json=LINE | changes), 422, "invalid_request")
    problem(http.get(f"/v1/published/{name}"), 404, "unknown_id")


def test_an_example_that_takes_too_long_is_stopped(http: httpx.Client, name: str) -> None:
    """Its caller gives it a tenth of a second."""
    body = {"inputs": ["x"], "steps": [{"op": "square", "inputs": ["x"], "outputs": ["y"]}], "outputs": ["y"]}
    steps = [
        {"do": "scan", "body": "f", "inputs": ["x"], "outputs": ["y"], "carried": 1, "length": 9_000_000},
    ]
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    functions = f"/v1/sessions/{session}/functions"
    ok(http.post(functions, json={"id": "f", **body}))
    ok(http.post(functions, json={"id": "long", "inputs": ["x"], "steps": steps, "outputs": ["y"]}))
    publication = {"function": "long", "inputs": {"x": {"shape": []}}, "examples": [{"inputs": {"x": 0.5}}]}
    response = http.put(
        f"/v1/published/{name}",
        params={"session": session},
        json=publication,
        headers={"Teletape-Time-Limit": "0.1"},
    )
    problem(response, 422, "deadline_exceeded")
    http.delete(f"/v1/sessions/{session}")


def test_a_function_that_assigns_is_not_published(http: httpx.Client, name: str) -> None:
    steps = [{"do": "assign", "variable": "v", "value": "a"}]
    body = {
        "function": {"inputs": ["a", "v"], "steps": steps, "outputs": ["a"]},
        "inputs": {"a": {"shape": []}, "v": {"shape": []}},
    }
    assert "assigns to v" in problem(http.put(f"/v1/published/{name}", json=body), 422, "invalid_request")


def test_a_check_that_does_not_agree_is_reported(http: httpx.Client, name: str) -> None:
    body = {
        "function": {"text": "r = round(x)"},
        "inputs": {"x": {"shape": []}},
        "examples": [{"inputs": {"x": 0.5}}],
    }
    check = ok(http.put(f"/v1/published/{name}", json=body)).json()["version"]["check"]
    assert check is None or check["agrees"] in (True, False)


def test_a_page_of_the_listing(http: httpx.Client, path: str, name: str) -> None:
    ok(http.put(f"{path}b", json=LINE))
    listing = http.get("/v1/published", params={"prefix": name, "limit": 1})
    assert [item["name"] for item in listing.json()["published"]] == [name]
    assert listing.json()["next"] == name
    rest = http.get("/v1/published", params={"prefix": name, "after": name}).json()
    assert ([item["name"] for item in rest["published"]], rest["next"]) == ([f"{name}b"], None)
    ok(http.delete(f"{path}b"))


def test_a_document_of_its_own_types_the_inputs(http: httpx.Client, path: str, name: str) -> None:
    document = ok(http.get(f"{path}/openapi.json")).json()
    inputs = document["components"]["schemas"]["Inputs"]
    assert inputs["required"] == ["x", "y"]
    assert inputs["properties"]["x"]["items"] == {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 2,
        "maxItems": 2,
    }
    version = http.get(path).json()["version"]["version"]
    assert f"/v1/published/{name}@{version}/value_and_gradient" in document["paths"]


def test_it_is_ready_when_a_process_has_it(http: httpx.Client, path: str) -> None:
    ready = ok(http.get(f"{path}/ready")).json()
    assert ready["version"] == http.get(path).json()["version"]["version"]
    assert ready["processes"] >= 1


# ---------------------------------------------------------------------------------------------------- to another server
def test_a_version_moves_as_one_file(http: httpx.Client, path: str) -> None:
    export = ok(http.get(f"{path}/export"))
    file = read_file(memoryview(export.content), copy_below=1 << 20)
    assert file.tensors["w"].tolist() == [1.5, -0.5]
    assert int(export.headers["content-length"]) == len(export.content)
    headers = {"Content-Type": SAFETENSORS_TYPE}
    copy = ok(http.put(f"{path}copy", content=export.content, headers=headers)).json()
    assert copy["version"]["version"] == http.get(path).json()["version"]["version"]
    assert ok(http.post(f"{path}copy/call", json={"inputs": INPUTS})).json()["values"]["error"]["data"] == 0.125
    changed = export.content[:-1] + bytes([export.content[-1] ^ 1])
    text = problem(http.put(f"{path}other", content=changed, headers=headers), 422, "invalid_request")
    assert "they were changed" in text
    ok(http.delete(f"{path}copy"))


def test_a_function_without_weights_moves_too(http: httpx.Client, name: str) -> None:
    body = {"function": {"text": "y = x * x"}, "inputs": {"x": {"shape": ["n"]}}, "examples": [{"inputs": {"x": [3]}}]}
    ok(http.put(f"/v1/published/{name}", json=body))
    export = ok(http.get(f"/v1/published/{name}/export"))
    copy = ok(http.put(f"/v1/published/{name}c", content=export.content, headers={"Content-Type": SAFETENSORS_TYPE}))
    assert copy.json()["version"]["examples"] == http.get(f"/v1/published/{name}").json()["version"]["examples"]


# -------------------------------------------------------------------------------------------------------------- rights
def test_who_may_call_and_change_a_function() -> None:
    with Server(Settings(api_keys=KEYS)).running() as server, server.client("ann") as ann, server.client("bob") as bob:
        path = "/v1/published/line"
        ok(ann.put(path, json=LINE | {"visibility": "me"}))
        for response in (
            bob.get(path),
            bob.post(f"{path}/call", json={"inputs": INPUTS}),
            bob.get(f"{path}/ready"),
            bob.get(f"{path}/export"),
            bob.delete(path),
        ):
            problem(response, 404, "unknown_id")
        assert bob.get("/v1/published").json()["published"] == []
        problem(bob.put(path, json=LINE), 409, "id_in_use")
        with server.client(None) as stranger:
            problem(stranger.post(f"{path}/call", json={"inputs": INPUTS}), 401, "unauthenticated")
        for visibility, group in (("group", ["bob"]), ("everybody", [])):
            ok(ann.put(path, json=LINE | {"visibility": visibility, "group": group}))
            ok(bob.post(f"{path}/call", json={"inputs": INPUTS}))
            problem(bob.put(f"{path}/aliases/mine", json={"version": "latest"}), 409, "id_in_use")
            problem(bob.delete(path), 409, "id_in_use")
        ok(ann.delete(path))


# ------------------------------------------------------------------------------------------------- past the framework
@needs_exchange
def test_plain_questions_are_answered_past_the_framework(alone: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = list[str]()
    respond = frames.Frames.respond

    def noted(self: frames.Frames, exchange: Any, response: Any) -> None:
        answered.append(exchange.head.path)
        respond(self, exchange, response)

    monkeypatch.setattr(frames.Frames, "respond", noted)
    path = "/v1/published/line@latest/call"
    with alone.client() as http:
        for accept in ("*/*", SAFETENSORS_TYPE, f"{SAFETENSORS_TYPE}, application/json"):
            ok(http.post(path, json={"inputs": INPUTS}, headers={"Accept": accept}))
            ok(http.post(f"{path}?full=true", json={"inputs": INPUTS}, headers={"Accept": accept}))
        problem(http.post(path, json={"inputs": 1}), 422, "invalid_request")
        assert answered == [path] * 7
        problem(http.post("/v1/published/none/call", json={}), 404, "unknown_id")
        problem(http.post("/v1/published/line/fly", json={}), 404, "not_found")
        problem(http.post(f"{path}?fully=true", json={}), 422, "invalid_request")
        problem(http.post(path, json={}, headers={"Accept": "text/html"}), 406, "not_acceptable")
        assert answered == [path] * 7


@pytest.mark.parametrize("body", [{"inputs": INPUTS}, {"inputs": {"x": 1}}, {}])
def test_an_answer_past_the_framework_is_the_framework_s(alone: Server, body: Any) -> None:
    with alone.client() as http:
        plain, framework = (
            http.post("/v1/published/line/call", json=body, headers=headers) for headers in ({}, {"Origin": alone.url})
        )
    assert plain.status_code == framework.status_code
    own = ("date", "x-request-id", "content-length", "access-control-allow-origin", "vary")
    pairs = [
        {name: value for name, value in answer.headers.items() if name not in own} for answer in (plain, framework)
    ]
    assert pairs[0] == pairs[1]
    bodies = [
        {name: value for name, value in answer.json().items() if name not in ("batch", "instance")}
        for answer in (plain, framework)
    ]
    assert bodies[0] == bodies[1]


# ------------------------------------------------------------------------------------------------------- calls together
def asked_together(
    server: Server, path: str, bodies: list[Any], question: str, headers: dict[str, str] | None = None
) -> list[Any]:
    """The answers to questions that came while a process computed another one; with headers the responses to files."""
    answers: list[Any] = [None] * len(bodies)
    pool, began = server.app.state.pool, threading.Barrier(len(bodies) + 1)

    def ask(number: int) -> None:
        with server.client() as http:
            http.get("/v1/health")
            began.wait()
            if headers is None:
                answers[number] = http.post(f"{path}/{question}", json=bodies[number]).json()
            else:
                answers[number] = http.post(f"{path}/{question}", content=bodies[number], headers=headers)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    [process] = pool._processes
    key = server.app.state.catalogue.names["line"].aliases["latest"], question
    process.busy = True  # as while it computes
    began.wait()
    deadline = time.monotonic() + 30
    while len(pool._calls) < len(bodies):
        assert time.monotonic() < deadline
        time.sleep(0.001)

    def free() -> None:
        process.busy = False
        pool._calls.note(key, len(bodies), 0.001)
        pool._work()

    server.loop().call_soon_threadsafe(free)
    for thread in threads:
        thread.join()
    return answers


@pytest.fixture(scope="module")
def alone() -> Iterator[Server]:
    """A server with one process of published functions."""
    with Server(Settings(published_processes=1)).running() as server:
        with server.client() as http:
            ok(http.put("/v1/published/line", json=LINE))
            ok(http.get("/v1/published/line/ready"))
        yield server


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        *[(question, FIELDS.get(question, {})) for question in ("call", "value_and_gradient", "gradient", "vjp")],
        *[(question, FIELDS[question]) for question in ("jvp", "hvp")],
        ("jvp", FIELDS["jvp"] | FIELDS["hvp"]),
        ("hvp", FIELDS["hvp"] | FIELDS["vjp"]),
    ],
)
def test_calls_that_wait_are_computed_together(alone: Server, question: str, fields: dict[str, Any]) -> None:
    random = np.random.default_rng(7)
    bodies = [
        {"inputs": {"x": random.normal(size=(2, 2)).tolist(), "y": random.normal(size=2).tolist()}} | fields
        for _ in range(5)
    ]
    answers = asked_together(alone, "/v1/published/line", bodies, question)
    with alone.client() as http:
        for body, answer in zip(bodies, answers, strict=True):
            batch = answer.pop("batch")
            assert (batch["size"], batch["why"]) == (5, "together")
            assert batch["waited_us"] > 0
            expected = ok(http.post(f"/v1/published/line/{question}", json=body | {"exact": True})).json()
            assert expected.pop("batch")["why"] == "exact"
            compare(answer, expected)


def compare(answer: Any, expected: Any) -> None:
    """Checks that two answers are the same, but for the last bits of numbers and what is said of memory."""
    if isinstance(expected, dict):
        assert answer.keys() == expected.keys()
        for name in expected:
            if name != "bytes_in_use":
                compare(answer[name], expected[name])
    elif isinstance(expected, list):
        assert len(answer) == len(expected)
        for pair in zip(answer, expected, strict=True):
            compare(*pair)
    elif isinstance(expected, float):
        assert answer == pytest.approx(expected, rel=1e-4, abs=1e-6)
    else:
        assert answer == expected


def files(count: int, **fields: Any) -> list[bytes]:
    """Bodies in the safetensors format that differ in their elements alone."""
    random = np.random.default_rng(11)
    request = {"request": json.dumps(fields)} if fields else {}
    return [
        b"".join(write_file({"x": random.normal(size=(2, 2)).astype("f4"), "y": np.ones(2, np.float32)}, request))
        for _ in range(count)
    ]


def read_answer(response: httpx.Response) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of an answer, and its JSON."""
    file = read_file(memoryview(ok(response).content), copy_below=1 << 20)
    return file.tensors, wire.parse_json(file.metadata["answer"].encode())


@pytest.mark.parametrize("fields", [{}, {"sources": ["y"]}, {"fetch": [], "targets": ["error"]}])
def test_files_with_the_same_header_are_answered_as_others(alone: Server, fields: Any) -> None:
    """The first one is parsed; what its header means is known for the next ones, together or not."""
    bodies = files(4, **fields)
    headers = {"Content-Type": SAFETENSORS_TYPE, "Accept": SAFETENSORS_TYPE}
    path = "/v1/published/line"
    with alone.client() as http:
        expected = [
            read_answer(http.post(f"{path}/value_and_gradient", content=body, headers=headers)) for body in bodies
        ]
    answers = asked_together(alone, path, bodies, "value_and_gradient", headers)
    for response, (tensors, facts) in zip(answers, expected, strict=True):
        own_tensors, own_facts = read_answer(response)
        assert own_facts.pop("batch") | {"waited_us": 0} == {"size": 4, "waited_us": 0, "why": "together"}
        assert facts.pop("batch")["size"] == 1
        assert {**own_facts, "bytes_in_use": 0} == {**facts, "bytes_in_use": 0}
        assert own_tensors.keys() == tensors.keys()
        for name, array in tensors.items():
            assert own_tensors[name] == pytest.approx(array, rel=1e-5)


def test_a_known_header_does_not_hide_that_a_body_is_cut(alone: Server) -> None:
    [body] = files(1)
    headers = {"Content-Type": SAFETENSORS_TYPE}
    with alone.client() as http:
        for _ in range(2):
            ok(http.post("/v1/published/line/call", content=body, headers=headers))
        for other in (body[:-4], body + b"more"):
            problem(http.post("/v1/published/line/call", content=other, headers=headers), 400, "malformed_safetensors")


def test_calls_of_other_shapes_or_fields_are_computed_apart(alone: Server) -> None:
    other = {"inputs": {"x": [[0.5, 1.5]], "y": [0.5]}}
    bodies = [{"inputs": INPUTS}, other, {"inputs": INPUTS, "exact": True}, {"inputs": INPUTS}, {"inputs": {"x": 1}}]
    answers = asked_together(alone, "/v1/published/line", bodies, "value_and_gradient")
    batches = [answer.get("batch") and (answer["batch"]["size"], answer["batch"]["why"]) for answer in answers]
    assert batches == [(2, "together"), (1, "different"), (1, "exact"), (2, "together"), None]
    assert "y is missing" in answers[4]["detail"]


def test_a_gradient_by_weights_is_not_mixed(alone: Server) -> None:
    bodies = [{"inputs": {"x": [[number, 0.5]], "y": [0.5]}, "sources": ["w"]} for number in range(3)]
    answers = asked_together(alone, "/v1/published/line", bodies, "gradient")
    with alone.client() as http:
        for body, answer in zip(bodies, answers, strict=True):
            assert answer.pop("batch")["why"] == "unbatchable"
            expected = ok(http.post("/v1/published/line/gradient", json=body)).json()
            assert answer["derivatives"] == expected["derivatives"]


def test_a_call_whose_process_dies_is_done_again(alone: Server) -> None:
    [process] = alone.app.state.pool._processes
    os.kill(process.host.pid, signal.SIGSTOP)
    with alone.client() as http, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(http.post, "/v1/published/line/call", json={"inputs": INPUTS})
        try:
            until(lambda: process.busy)
        finally:
            os.kill(process.host.pid, signal.SIGKILL)
        ok(answer.result())
    assert process not in alone.app.state.pool._processes


def test_metrics_count_by_function(alone: Server) -> None:
    with alone.client() as http:
        ok(http.post("/v1/published/line/call", json={"inputs": INPUTS}))
        text = http.get("/metrics").text
    for metric in (
        'teletape_published_calls_total{function="line",question="call"}',
        'teletape_published_batch_calls_count{function="line"}',
        'teletape_published_queue_seconds_total{function="line"}',
        'teletape_published_compute_seconds_total{function="line"}',
        "teletape_published_processes 1.0",
    ):
        assert metric in text, metric


# --------------------------------------------------------------------------------------------------------- a restart
@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server in a process of its own, and a client of it."""
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", "--data-dir", str(folder)]
    with Prepared(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[3]
            with httpx.Client(base_url=f"{url}/v1/published", timeout=60, trust_env=False) as http:
                yield process, http
        finally:
            process.kill()


def test_what_is_published_survives_the_servers_death(tmp_path: Path) -> None:
    with started(tmp_path) as (process, http):
        ok(http.put("/line", json=LINE))
        ok(http.put("/line/aliases/stable", json={"version": "latest"}))
        process.kill()
    with started(tmp_path) as (_, http):
        assert ok(http.get("/line@stable")).json()["durable"]
        answer = ok(http.post("/line@stable/value_and_gradient", json={"inputs": INPUTS})).json()
        assert answer["values"]["error"]["data"] == 0.125
