"""Messages to REST callers are in the words of this API: no Python types, no names of TensorFlow's kernels."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
import teletape_wire as wire
from serving import ok, problem
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.session.session import Session
from teletape_server.models.faults import plain

#: What a caller who knows neither Python nor TensorFlow cannot read.
FOREIGN = re.compile(
    r"NoneType|GradientTape|=True|"
    r"zero-based|\btf\.|attr 'T|Python|In\[\d\]|\b(half|double) tensor|valid dictionary|instance of|"
    r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+V?\d?\b|\b(AddV2|MatMul|Mul|RealDiv|Sqrt)\b|class '"
)
VALUES = (
    *(1.5, True, [1.5, 2.5], [[1.5, 2.5, 3.5]], [True], [[[1.5]]]),
    {"dtype": "complex64", "data": [[1, 2]]},
    {"dtype": "int32", "data": [3, 4, 5, 6]},
    {"dtype": "float64", "data": [[1.5]]},
)

#: Two questions to a tape that answers once.
TWICE = [
    {"do": "variable", "id": "x", "value": 1.5},
    {"do": "tape.open", "id": "t"},
    {"do": "op", "op": "square", "inputs": ["x"], "outputs": ["y"]},
    {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["a"]},
    {"do": "gradient", "tape": "t", "targets": ["y"], "sources": ["x"], "outputs": ["b"]},
]
TWO_AND_A_HALF = {"dtype": "float32", "data": [2.5]}


def failures(name: str) -> Iterator[str]:
    """What a caller reads if the op gets these values, for each combination that it refuses."""
    count = len(CATALOGUE.named(name).inputs) or 1
    for values in itertools.product(VALUES, repeat=min(count, 2)):
        inputs = [*values, *[values[-1]] * (count - len(values))]
        batch = wire.batch_from_json({"commands": [{"do": "op", "op": name, "inputs": inputs, "outputs": ["y"]}]})
        failure = Session(memory_limit=1 << 26).execute(batch).failure
        if failure is not None:
            yield plain(failure.message, failure.op)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of zeros and infinities
def test_what_an_op_refuses_is_in_plain_words(name: str) -> None:
    assert [message for message in failures(name) if FOREIGN.search(message)] == []


@pytest.mark.parametrize(
    ("inputs", "op", "expected"),
    [
        (
            [TWO_AND_A_HALF, [True]],
            "mul",
            "input b has the dtype bool, but input a has float32: cast one of them",
        ),
        ([[[1.5]], [[1.5], [2.5]]], "matmul", "the first input: [1,1], the second input: [2,1]"),
        ([[True]], "sqrt", "an input of dtype bool: it must be one of bfloat16, float16, float32"),
    ],
)
def test_a_message_names_op_found_and_wanted(http: httpx.Client, inputs: Any, op: str, expected: str) -> None:
    command = {"do": "op", "op": op, "inputs": inputs, "outputs": ["y"]}
    detail = http.post("/v1/run", json={"commands": [command]}).json()["detail"]
    assert expected in detail
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    failure = ok(http.post(f"/v1/sessions/{session}/batch", json={"commands": [command]})).json()["failure"]
    assert expected in failure["message"]
    ok(http.delete(f"/v1/sessions/{session}"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"commands": TWICE}, "command 4 (gradient): the tape has answered already"),
        ({"comands": []}, "comands: is no field of this request: did you mean 'commands'?"),
        ({"commands": [{"do": "gradint"}]}, "unknown command 'gradint': did you mean 'gradient'"),
        ({"commands": [{"do": "variable", "valeu": 1.5}]}, "has no field 'valeu'; did you mean 'value'?"),
        (
            {"commands": [{"do": "variable", "id": "1x", "value": 1.5}]},
            "command 0: the id '1x' must begin with a letter",
        ),
        ({"commands": [{"do": "variable", "id": "x", "value": None}]}, "found null"),
        (
            {"commands": [{"do": "variable", "id": "x", "value": 1.5}], "fetch": ["z"]},
            "no command makes 'z'; they make x",
        ),
        ({"commands": [{"do": "op", "op": "sinn", "inputs": [1.5], "outputs": ["y"]}]}, "did you mean 'sin"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(http: httpx.Client, body: Any, expected: str) -> None:
    answer = http.post("/v1/run", json=body)
    assert answer.status_code in (404, 409, 422)
    assert expected in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/sessions", {"memory_limi": 5}, "memory_limi: is no field of this request: did you mean 'memory_limit'"),
        ("ops", {"ops": [{"op": "exp", "inpts": [1.5]}]}, "ops.0.inpts: is no field of this request: did you mean 'in"),
        (
            "functions/f/train",
            {"inputs": {}, "optimizer": {"name": "sgd", "learning_rte": 1}},
            "optimizer.learning_rte: is no field of this request: did you mean 'learning_rate'?",
        ),
    ],
)
def test_what_was_meant_is_said_at_every_depth(http: httpx.Client, path: str, body: Any, expected: str) -> None:
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    answer = http.post(path if path[0] == "/" else f"/v1/sessions/{session}/{path}", json=body)
    assert expected in problem(answer, 422, "invalid_request")["detail"]
    ok(http.delete(f"/v1/sessions/{session}"))


@pytest.mark.parametrize("tensor", [[[1, 2], [3]], {"dtype": "flot32", "data": 1}, {"dtype": "int8", "data": 999}])
def test_json_with_a_wrong_tensor_is_valid_json(http: httpx.Client, tensor: Any) -> None:
    session = ok(http.post("/v1/sessions", json={})).json()["id"]
    refusal = problem(http.post(f"/v1/sessions/{session}/variables", json={"value": tensor}), 422, "invalid_argument")
    assert refusal["detail"].startswith("value: ")
    batch = {"commands": [{"do": "variable", "id": "x", "value": tensor}]}
    for path in ("/v1/run", f"/v1/sessions/{session}/run", f"/v1/sessions/{session}/batch"):
        refusal = problem(http.post(path, json=batch), 422, "invalid_argument")
        assert refusal["details"] == {"command": 0}
    ok(http.delete(f"/v1/sessions/{session}"))


def test_an_unknown_op_of_the_catalogue_is_not_found(http: httpx.Client) -> None:
    answer = http.get("/v1/ops/mull")
    assert answer.status_code == 404
    assert "did you mean 'mul'" in answer.json()["detail"]


def wrong_bodies(example: Any) -> Iterator[Any]:
    """Bodies that are not what an operation takes: other kinds, and each member in turn of another kind."""
    yield from (None, [], "text", 5, {"unknown": 1})
    if isinstance(example, dict):
        for name, value in example.items():
            for wrong in (None, "", [], {}, [[1, 2], [3]], {"dtype": "float31", "data": 1}, -1, True):
                if wrong != value:
                    yield example | {name: wrong}


def test_refusals_of_every_operation_are_in_plain_words(http: httpx.Client) -> None:
    document = ok(http.get("/openapi.json")).json()
    ok(http.post("/v1/sessions", json={"id": "demo", "replace": True}))
    foreign, refused = [], 0
    for path, operations in document["paths"].items():
        for method in ("post", "put"):
            content = operations.get(method, {}).get("requestBody", {}).get("content", {}).get("application/json")
            if content is None or path.endswith(("/extend", "/attach")):
                continue
            for parameter in operations[method].get("parameters", ()):
                path = path.replace("{" + parameter["name"] + "}", str(parameter.get("example")))
            example = next(iter(content["examples"].values()))["value"]
            for body in wrong_bodies(example):
                answer = http.request(
                    method, path, content=json.dumps(body), headers={"Content-Type": "application/json"}
                )
                assert answer.status_code < 500, (method, path, body, answer.text)
                if answer.status_code >= 400:
                    refused += 1
                    detail = answer.json()["detail"]
                    if FOREIGN.search(detail):
                        foreign.append((method, path, body, detail))
            if path == "/v1/sessions":
                http.post("/v1/sessions", json={"id": "demo", "replace": True})
    assert foreign == []
    assert refused > 300
