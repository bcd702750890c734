"""Requests that are almost right: the answer says what was meant."""

from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import ok, problem


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/sessions", "/v1/sessions?"),
        ("/v1/session", "/v1/sessions"),
        ("/v1/sessions/demo/functions/f/grad", "/v1/sessions/demo/functions/f/gradient"),
        ("/v1/sessions/demo/function", "/v1/sessions/demo/functions"),
        ("/v1/sessions/demo/functions/f/zzz", "/v1/sessions/demo/functions/f/call"),
        ("/v1/a/b/c/d/e/f/g", "/openapi.json lists all paths"),
        ("/v1/sessions/", "did you mean /v1/sessions?"),
        ("/v1/functions", "did you mean /v1/sessions/{session}/functions?"),
        ("/functions/f/gradient", "did you mean /v1/sessions/{session}/functions/f/gradient?"),
    ],
)
def test_a_path_that_is_none_gets_the_nearest(http: httpx.Client, path: str, meant: str) -> None:
    assert meant in problem(http.post(path, json={}), 404, "not_found")["detail"]


def test_an_attribute_next_to_its_op_is_reported_with_the_step(rest: Rest) -> None:
    steps = [op("square", "x", to="s"), {"op": "reduce_sum", "axis": 0, "inputs": ["s"], "outputs": ["y"]}]
    body = {"inputs": ["x"], "steps": steps, "outputs": ["y"]}
    fault = problem(rest.post("functions", body), 422, "bad_command")
    assert "step 1: command 'op' has no field 'axis'; put this attribute of the op into \"attrs\"" in fault["detail"]
    assert fault["details"]["step"] == 1


def test_numpys_name_of_an_op_is_accepted_in_a_step(rest: Rest) -> None:
    steps = [{"op": "np.sum", "attrs": {"axis": 0}, "inputs": ["x"], "outputs": ["y"]}]
    created = rest.create("functions", {"inputs": ["x"], "steps": steps, "outputs": ["y"]})
    assert created["steps"][0]["op"] == "reduce_sum"
    names = {each["name"] for each in ok(rest.http.get("/v1/ops", params={"name": "power"})).json()["ops"]}
    assert "pow" in names


def test_a_body_that_is_empty_is_said_to_be(rest: Rest) -> None:
    rest.create("functions", {"id": "f", "text": "y = x"})
    for content in (b"", b"{}"):
        answer = rest.http.post(f"{rest.path}/functions/f/gradient", content=content)
        assert problem(answer, 422, "invalid_request")["detail"].startswith("the body is empty; inputs: is missing")


def test_the_catalogue_is_searched_by_words(http: httpx.Client) -> None:
    names = [each["name"] for each in ok(http.get("/v1/ops", params={"search": "matrices Vectors"})).json()["ops"]]
    assert "matvec" in names
    assert len(names) < 20
    assert ok(http.get("/v1/ops", params={"search": "no such words"})).json()["ops"] == []


@pytest.mark.parametrize("verb", ["constant", "tensor"])
def test_a_tensor_is_made_by_either_name(http: httpx.Client, verb: str) -> None:
    commands = [{"do": verb, "id": "t", "value": [1.5]}]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["t"]})).json()
    assert answer["values"]["t"]["data"] == [1.5]


def test_the_command_value_and_gradient_has_the_defaults_of_the_question(rest: Rest) -> None:
    rest.create("functions", {"id": "f", "text": 'y = sum(x * w) * cast(sum(i), "float32")'})
    inputs: dict[str, Any] = {
        "x": {"dtype": "float32", "data": [1.0, 2.0]},
        "i": {"dtype": "int32", "data": [1]},
        "w": {"dtype": "float32", "data": [3.0]},
    }
    answer = rest.done("functions/f/value_and_gradient", {"inputs": inputs})
    assert [derivative["source"] for derivative in answer["derivatives"]] == ["x", "w"]
    command = {
        "do": "value_and_gradient",
        "function": "f",
        "inputs": [inputs[name] for name in ("x", "w", "i")],
        "outputs": ["y", "dx", "dw"],
    }
    run = rest.done("run", {"commands": [command], "fetch": ["y", "dx", "dw"], "scratch": True})["values"]
    assert run["y"] == answer["values"]["y"]
    assert [run["dx"], run["dw"]] == [derivative["value"] for derivative in answer["derivatives"]]
    step = {**command, "inputs": ["x", "i", "w"]}
    fault = problem(
        rest.post("functions", {"inputs": ["x", "i", "w"], "steps": [step], "outputs": ["y"]}), 422, "invalid_argument"
    )
    assert "a step names its sources" in fault["detail"]


@pytest.mark.parametrize(
    ("path", "body", "meant"),
    [
        (
            "functions/f/gradient",
            {"inputs": ["w"], "unconnected": "zer"},
            "must be 'none' or 'zero'; found \"zer\": {}'zero'?",
        ),
        (
            "functions/f/train",
            {"inputs": {"w": "w"}, "optimizer": {"name": "adma"}, "steps": 2},
            "'adagrad', 'adadelta' or 'lion'; found \"adma\": {}'adamax' or 'adam'",
        ),
        (
            "tapes/t/questions",
            {"questions": [{"do": "gradiant"}]},
            "vjps, hessian, hvp; found 'gradiant': {}'gradient'",
        ),
        (
            "tapes/t/questions",
            {"questions": [{"kind": "hvp"}]},
            "questions.0.kind: is no field of this request: it has targets, sources",
        ),
        ("ops", {"ops": [op("reduce_sum", "w", to="q", axes=0)]}, "it takes: axis, keepdims: {}'axis'?"),
        ("ops", {"ops": [op("cast", "w", to="q", dtype="flaot32")]}, "uint64, uint8: {}'float32'"),
        ("ops", {"ops": [op("conv2d", "i", "i", to="q", padding="SAM")]}, "found \"SAM\": {}'SAME'?"),
        ("ops", {"ops": [op("resize", "i", to="q", size=[1, 1], method="aera")]}, "found 'aera': {}'area'?"),
        ("batch", {"commands": [{"do": "assign", "variable": "w", "value": 1, "mode": "ad"}]}, "slice: {}'add'?"),
    ],
)
def test_a_wrong_choice_gets_the_choices_and_the_nearest(rest: Rest, path: str, body: Any, meant: str) -> None:
    rest.create("variables", {"id": "w", "value": [1.0, 2.0]})
    rest.create("tensors", {"id": "i", "value": [[[[1.0]]]]})
    rest.create("functions", {"id": "f", "text": "y = sum(w * w)"})
    rest.create("tapes", {"id": "t"})
    answer = rest.post(path, body)
    text = answer.json()["failure"]["message"] if path == "batch" else answer.json()["detail"]
    assert meant.format("did you mean ") in text


def test_a_wrong_choice_in_a_query_gets_the_choices_and_the_nearest(rest: Rest) -> None:
    fault = problem(rest.get("tensors?kind=slice"), 422, "invalid_request")
    assert fault["detail"] == "query.kind: must be 'tensor' or 'slices'; found \"slice\": did you mean 'slices'?"
    fault = problem(rest.get("tensors?dtype=flaot32"), 422, "invalid_request")
    assert "found 'flaot32': did you mean 'float32'" in fault["detail"]
