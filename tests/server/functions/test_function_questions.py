"""Derivatives of functions by name, in one request each: they are those of a tape, and leave nothing in the session."""

from typing import Any

import numpy as np
import pytest
from in_this_process import HostsHere, application
from rest_client import Rest, op

from serving import ok, problem
from teletape_engine.commands import Batch
from teletape_engine.commands.results import Answer
from teletape_engine.session import session as session_module
from teletape_engine.session.batches import run_batch
from teletape_engine.session.session import Session
from teletape_engine.session.state import State

ERROR = {
    "id": "error",
    "inputs": ["w", "x", "y"],
    "steps": [
        op("mul", "w", "x", to="guess"),
        op("squared_difference", "guess", "y", to="d"),
        op("reduce_sum", "d", to="sum"),
    ],
    "outputs": ["sum", "guess"],
}
CUBE = {
    "id": "cube",
    "inputs": ["x"],
    "steps": [op("mul", "x", "x", to="xx"), op("mul", "xx", "x", to="y")],
    "outputs": ["y"],
}
ROUNDED = {
    "id": "rounded",
    "inputs": ["x", "w"],
    "steps": [op("round", "x", to="r"), op("mul", "r", "w", to="y")],
    "outputs": ["y"],
}


@pytest.fixture
def functions(rest: Rest) -> Rest:
    for function in (ERROR, CUBE, ROUNDED):
        rest.create("functions", function)
    rest.create("variables", {"id": "w", "value": [2.0, 3.0]})
    return rest


def leaves_nothing(rest: Rest, *ids: str) -> bool:
    tensors = [tensor["id"] for tensor in rest.get("tensors").json()["tensors"]]
    return (tensors, rest.get("tapes").json()["tapes"]) == (list(ids), [])


def by_source(answer: Any) -> dict[str, Any]:
    return {derivative["source"]: derivative["value"]["data"] for derivative in answer["derivatives"]}


# ------------------------------------------------------------------------------------------------------------- gradient
def test_a_gradient_takes_one_request_and_leaves_nothing(functions: Rest) -> None:
    body = {"inputs": ["w", [1.0, 1.0], [0.0, 0.0]], "targets": ["sum"]}
    answer = functions.done("functions/error/gradient", body)
    assert answer["values"] == {}
    assert by_source(answer) == {"w": [4.0, 6.0], "x": [8.0, 18.0], "y": [-4.0, -6.0]}
    with_values = functions.done("functions/error/value_and_gradient", body)
    assert {name: value["data"] for name, value in with_values["values"].items()} == {"sum": 13.0, "guess": [2.0, 3.0]}
    assert with_values["derivatives"] == answer["derivatives"]
    assert functions.done("functions/error/gradient", body | {"fetch": ["sum"]})["values"]["sum"]["data"] == 13.0
    assert leaves_nothing(functions)


def test_inputs_are_given_by_name_too(functions: Rest) -> None:
    named = {"y": [0.0, 0.0], "w": "w", "x": [1.0, 1.0]}
    by_position = functions.done("functions/error/gradient", {"inputs": ["w", [1.0, 1.0], [0.0, 0.0]]})
    assert functions.done("functions/error/gradient", {"inputs": named}) == by_position


def test_sources_are_inputs_or_the_ids_bound_to_them(functions: Rest) -> None:
    body: dict[str, Any] = {"inputs": [[2.0], [3.0], 1.0], "sources": ["y", "w"], "targets": ["guess"]}
    [y, w] = functions.done("functions/error/gradient", body)["derivatives"]
    assert (y["source"], y["kind"], y["value"]["data"]) == ("y", "dense", 0.0)  # another result depends on it
    assert w["value"]["data"] == [3.0]
    functions.create("variables", {"id": "v", "value": [2.0, 3.0]})
    answer = functions.done("functions/cube/gradient", {"inputs": {"x": "v"}, "sources": ["v"]})
    assert by_source(answer) == {"v": [12.0, 27.0]}


def test_an_id_bound_to_two_inputs_has_a_derivative_by_each_of_them(functions: Rest) -> None:
    body: dict[str, Any] = {"inputs": ["w", "w", [0.0, 0.0]], "targets": ["guess"]}
    answer = functions.done("functions/error/gradient", body | {"sources": ["w", "x"]})
    assert by_source(answer) == {"w": [2.0, 3.0], "x": [2.0, 3.0]}
    functions.create("tensors", {"id": "c", "value": [2.0, 3.0]})
    whole = functions.done("functions/error/gradient", body | {"inputs": ["c", "c", [0.0, 0.0]], "sources": ["c"]})
    assert by_source(whole) == {"c": [4.0, 6.0]}  # by the tensor, in both places
    assert leaves_nothing(functions, "c")


def test_a_whole_number_is_a_fraction_where_the_function_takes_one(functions: Rest) -> None:
    answer = functions.done("functions/cube/gradient", {"inputs": [3]})
    assert by_source(answer) == {"x": 27.0}
    pick = {"id": "pick", "inputs": ["x", "at"], "steps": [op("gather", "x", "at", to="y")], "outputs": ["y"]}
    functions.create("functions", pick)
    answer = functions.done("functions/pick/gradient", {"inputs": [[1.0, 2.0], 1]})
    assert [derivative["source"] for derivative in answer["derivatives"]] == ["x"]


def test_derivatives_are_kept_under_given_ids(functions: Rest) -> None:
    body = {"inputs": ["w", [1.0, 1.0], [0.0, 0.0]], "sources": ["w", "x"], "outputs": ["dw", None]}
    [dw, dx] = functions.done("functions/error/gradient", body)["derivatives"]
    assert (dw["id"], dx["id"]) == ("dw", None)
    assert functions.data("tensors/dw") == dw["value"]["data"]
    assert leaves_nothing(functions, "dw")


def test_a_null_says_why(functions: Rest) -> None:
    [x, w] = functions.done("functions/rounded/gradient", {"inputs": [1.5, 2.0]})["derivatives"]
    assert (x["kind"], x["value"], w["value"]["data"]) == ("none", None, 2.0)
    assert (x["why"]["op"], "why" in w) == ("round", False)
    [x, _] = functions.done("functions/rounded/gradient", {"inputs": [1.5, 2.0], "unconnected": "zero"})["derivatives"]
    assert x["value"]["data"] == 0.0


# ------------------------------------------------------------------------------------------------ the other derivatives
def test_a_function_without_an_input_of_floats_answers_nulls_that_say_why(functions: Rest) -> None:
    answer = functions.done("functions/cube/gradient", {"inputs": [{"dtype": "int32", "data": 3}]})
    (derivative,) = answer["derivatives"]
    assert (derivative["source"], derivative["value"]) == ("x", None)
    assert derivative["why"]["code"] == "target_dtype"
    assert leaves_nothing(functions)


def test_output_gradients_weigh_the_targets(functions: Rest) -> None:
    body = {"inputs": {"x": [1.0, 2.0]}, "output_gradients": [[1.0, 10.0]]}
    assert by_source(functions.done("functions/cube/vjp", body)) == {"x": [3.0, 120.0]}
    assert by_source(functions.done("functions/cube/gradient", body)) == {"x": [3.0, 120.0]}


def test_jacobian_hessian_and_hvp(functions: Rest) -> None:
    inputs = {"inputs": [[1.0, 2.0]]}
    [jacobian] = functions.done("functions/cube/jacobian", inputs | {"max_bytes": 48})["derivatives"]
    assert jacobian["value"]["data"] == [[3.0, 0.0], [0.0, 12.0]]
    answer = functions.done("functions/cube/hessian", inputs | {"outputs": [["h"]], "fetch": ["y"]})
    [[hessian]] = answer["derivatives"]
    assert (hessian["source"], hessian["second_source"], hessian["id"]) == ("x", "x", "h")
    assert hessian["value"]["data"] == functions.data("tensors/h") == [[6.0, 0.0], [0.0, 12.0]]
    assert answer["values"]["y"]["data"] == [1.0, 8.0]
    [hvp] = functions.done("functions/cube/hvp", inputs | {"vectors": [[1.0, 10.0]]})["derivatives"]
    assert hvp["value"]["data"] == [6.0, 120.0]
    weighted = inputs | {"vectors": [[1.0, 10.0]], "output_gradients": [[0.5, -1.0]]}
    [hvp] = functions.done("functions/cube/hvp", weighted)["derivatives"]
    assert hvp["value"]["data"] == [3.0, -120.0]
    [same] = functions.done("functions/cube/hvp", weighted | {"output_gradients": [None]})["derivatives"]
    assert same["value"]["data"] == [6.0, 120.0]
    assert leaves_nothing(functions, "h")


def test_jvp_along_two_directions_is_the_second_derivative_of_each_output(functions: Rest) -> None:
    body: dict[str, Any] = {"inputs": [[1.0, 2.0]], "tangents": [[1.0, 10.0]], "vectors": [[0.5, 2.0]], "fetch": ["y"]}
    for _ in range(3):  # the later ones are of a known form
        answer = functions.done("functions/cube/jvp", body)
        [tangent] = answer["derivatives"]
        assert (tangent["name"], tangent["kind"], tangent["value"]["data"]) == ("y", "dense", [3.0, 240.0])
        assert answer["values"]["y"]["data"] == [1.0, 8.0]
    first = functions.done("functions/cube/jvp", body | {"vectors": None})["derivatives"][0]
    assert first["value"]["data"] == [3.0, 120.0]
    functions.done("functions", {"id": "twice", "text": "y = 2 * x"})
    body = {"inputs": [1.5], "tangents": [1.0], "vectors": [1.0]}
    [null] = functions.done("functions/twice/jvp", body)["derivatives"]
    assert (null["kind"], null["value"]) == ("none", None)
    assert null["why"]["message"] == "the first derivative does not depend on the sources"
    [zero] = functions.done("functions/twice/jvp", body | {"unconnected": "zero"})["derivatives"]
    assert zero["value"]["data"] == 0.0
    assert leaves_nothing(functions)


def test_jvp_runs_forward(functions: Rest) -> None:
    body: dict[str, Any] = {"inputs": [[1.0, 2.0]], "tangents": [[1.0, 10.0]], "outputs": ["dy"], "fetch": ["y"]}
    answer = functions.done("functions/cube/jvp", body)
    [tangent] = answer["derivatives"]
    assert (tangent["name"], tangent["kind"], tangent["id"]) == ("y", "dense", "dy")
    assert tangent["value"]["data"] == functions.data("tensors/dy") == [3.0, 120.0]
    assert answer["values"]["y"]["data"] == [1.0, 8.0]
    [null] = functions.done("functions/rounded/jvp", {"inputs": [1.5, 2.0], "sources": ["x"], "tangents": [1.0]})[
        "derivatives"
    ]
    assert (null["kind"], null["value"], null["why"]["op"]) == ("none", None, "round")
    body = {
        "inputs": ["w", "w", 0.0],
        "sources": ["w", "x"],
        "tangents": [[1.0, 1.0], [0.0, 0.0]],
        "targets": ["guess"],
    }
    [tangent] = functions.done("functions/error/jvp", body)["derivatives"]
    assert tangent["value"]["data"] == [2.0, 3.0]  # along the first input alone
    assert leaves_nothing(functions, "dy")


def test_explain_says_why_for_each_input(functions: Rest) -> None:
    answer = functions.done("functions/rounded/explain", {"inputs": [1.5, 0.0]})
    x, w = answer["explanations"]
    assert (x["source"], x["outcome"], x["op"]) == ("x", "none", "round")
    assert (w["source"], w["outcome"]) == ("w", "gradient")
    [w] = functions.done("functions/cube/explain", {"inputs": ["w"], "sources": ["w"]})["explanations"]
    assert (w["source"], w["outcome"]) == ("w", "gradient")
    assert leaves_nothing(functions)


# ------------------------------------------------------------------------------------------------------------- refusals
INPUTS = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("question", "body", "status", "code", "text"),
    [
        ("gradient", {"inputs": [1.0]}, 422, "invalid_request", "inputs: function 'error' takes 3 (w, x, y), found 1"),
        ("gradient", {"inputs": {"w": 1.0, "y": 1.0}}, 422, "invalid_request", "w, x, y; x is missing"),
        ("gradient", {"inputs": {"v": 1.0}}, 422, "invalid_request", "inputs: function 'error' has w, x, y; found 'v'"),
        ("gradient", {"inputs": {"w": None}}, 422, "invalid_request", "inputs.w: must be an id, a number or a tensor"),
        (
            "gradient",
            {"inputs": 3.0},
            422,
            "invalid_request",
            "inputs: must be a list, or an object with members by name; found 3.0",
        ),
        ("gradient", {"inputs": INPUTS, "sources": ["z"]}, 422, "invalid_request", "bound to the id 'z'"),
        ("gradient", {"inputs": INPUTS, "targets": ["z"]}, 422, "invalid_request", "has sum, guess; found 'z'"),
        ("gradient", {"inputs": INPUTS, "fetch": ["z"]}, 422, "invalid_request", "fetch: function 'error' has sum"),
        ("gradient", {"inputs": INPUTS, "outputs": ["a"]}, 422, "invalid_request", "outputs: one id for each of the 3"),
        ("gradient", {"inputs": INPUTS, "sources": ["w"], "outputs": ["w"]}, 409, "id_in_use", "'w' is in use"),
        ("gradient", {"inputs": INPUTS, "vectors": [1.0]}, 422, "invalid_request", "vectors: is no field of this"),
        ("gradient", {"inputs": [[1.0, 2.0], [1.0, 2.0, 3.0], 3.0]}, 422, "invalid_argument", ""),
        ("gradient", {"inputs": ["nobody", 1.0, 1.0]}, 404, "unknown_id", "nobody"),
        ("value_and_gradient", {"inputs": INPUTS, "fetch": [3]}, 422, "invalid_request", "fetch.0: must be a string"),
        ("vjp", {"inputs": INPUTS}, 422, "invalid_request", "output_gradients: is missing"),
        (
            "vjp",
            {"inputs": INPUTS, "output_gradients": [1.0]},
            422,
            "invalid_request",
            "output_gradients: one for each of the 2 targets (sum, guess); found 1",
        ),
        (
            "jacobian",
            {"inputs": INPUTS},
            422,
            "invalid_request",
            "targets: function 'error' has the outputs sum, guess",
        ),
        ("jacobian", {"inputs": INPUTS, "targets": ["sum", "guess"]}, 422, "invalid_request", "at most 1 members"),
        ("jacobian", {"inputs": INPUTS, "max_bytes": 0}, 422, "invalid_request", "max_bytes: must be at least 1"),
        ("hessian", {"inputs": INPUTS, "outputs": [["a"]]}, 422, "invalid_request", "found lists of [1]"),
        (
            "hvp",
            {"inputs": INPUTS, "vectors": [1.0]},
            422,
            "invalid_request",
            "each of the 3 sources (w, x, y); found 1",
        ),
        (
            "jvp",
            {"inputs": INPUTS, "tangents": [1.0]},
            422,
            "invalid_request",
            "tangents: one for each of the 3 sources",
        ),
        (
            "jvp",
            {"inputs": INPUTS, "sources": ["w"], "tangents": [[1.0]]},
            422,
            "invalid_argument",
            "tangent 0 (from 0): ",
        ),
        ("explain", {"inputs": INPUTS, "sources": ["z"]}, 422, "invalid_request", "bound to the id 'z'"),
        ("check_gradients", {"inputs": {"w": 1.0}}, 422, "invalid_request", "x, y are missing"),
    ],
)
def test_a_question_that_does_not_fit_leaves_nothing(
    functions: Rest, question: str, body: Any, status: int, code: str, text: str
) -> None:
    refusal = problem(functions.post(f"functions/error/{question}", body), status, code)
    assert text in refusal["detail"]
    assert leaves_nothing(functions)


def test_a_question_that_comes_again_runs_as_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """With lists without a dtype, as most callers send them."""
    one_by_one = list[Batch]()

    def noted(state: State, batch: Batch, *how: Any) -> Answer:
        one_by_one.append(batch)
        return run_batch(state, batch, *how)

    monkeypatch.setattr(session_module, "run_batch", noted)
    random = np.random.default_rng(3)
    with application(HostsHere(Session)) as client:
        ok(client.post("/v1/sessions", json={"id": "demo", "dtype": "float64"}))
        ok(client.post("/v1/sessions/demo/functions", json={"id": "loss", "text": "sum((x @ w - y)**2)"}))
        for time in range(8):
            x, w, y = random.standard_normal((4, 2)), random.standard_normal(2), random.standard_normal(4)
            one_by_one.clear()
            inputs = {"x": x.tolist(), "w": w.tolist(), "y": y.tolist()}
            body = {"inputs": inputs, "sources": ["w"]}
            answer = ok(client.post("/v1/sessions/demo/functions/loss/value_and_gradient", json=body)).json()
            np.testing.assert_allclose(answer["values"]["result"]["data"], np.sum((x @ w - y) ** 2), rtol=1e-4)
            [derivative] = answer["derivatives"]
            np.testing.assert_allclose(derivative["value"]["data"], 2 * x.T @ (x @ w - y), rtol=1e-4)
            assert bool(one_by_one) is (time < 2), time
