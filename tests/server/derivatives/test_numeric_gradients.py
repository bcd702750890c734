"""Gradients from a function's values alone: those of its ops, and what it does where they have none."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from function_rows import answer_to, ask, numbers

from teletape_engine.session.session import Session
from teletape_server.handlers.functions.gradients import numeric

FUNCTIONS: tuple[dict[str, Any], ...] = (
    {"id": "layer", "text": "y = tanh(x @ w)\nz = sum(x * x)"},
    {"id": "energy", "text": "e = sum(exp(-x * x) * w)"},
    {"id": "pair", "text": "p = a * a * b"},
    {"id": "linear", "text": "y = x * x * w"},
    {"id": "steps", "text": "s = floor(x) + round(x) + 3 * x"},
    {
        "id": "looped",
        "inputs": ["x", "w"],
        "steps": [{"do": "scan", "body": "linear", "inputs": ["x", "w"], "outputs": ["y"], "captured": 1}],
        "outputs": ["y"],
    },
)
#: How far differences may be from gradients, by dtype.
TOLERANCES = {"float32": 2e-3, "float64": 1e-8}


def session_with_functions(**limits: Any) -> Session:
    session = Session(**limits)
    for body in FUNCTIONS:
        answer = answer_to(session, "functions-create", body)
        assert isinstance(answer, dict), answer
    return session


def tensor(seed: int, *shape: int, dtype: str = "float64") -> dict[str, Any]:
    return {"dtype": dtype, "data": numbers(seed, *shape).tolist()}


def elements(answer: Any) -> list[Any]:
    return [np.array(each["value"]["data"]) for each in answer["derivatives"]]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("verb", ["gradient", "value_and_gradient"])
def test_differences_are_the_gradients(verb: str, dtype: str) -> None:
    session = session_with_functions()
    body = {"inputs": {"x": tensor(1, 4, 3, dtype=dtype), "w": tensor(2, 3, 2, dtype=dtype)}}
    exact, answer = ask(session, verb, "layer", body), ask(session, verb, "layer", body | {"numeric": True})
    for computed, expected in zip(elements(answer), elements(exact), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])
    assert answer["values"] == exact["values"]
    assert [each["value"]["dtype"] for each in answer["derivatives"]] == [dtype] * 2
    assert answer["numeric"] == {"evaluations": 2 * (4 * 3 + 3 * 2), "chunks": 1, "vectorized": True}
    assert session.listing("variable", "tensor", "tape") == []


@pytest.mark.parametrize("sources", [[], ["x"], ["x", "w"], None])
def test_sources_may_be_empty(sources: list[str] | None) -> None:
    session = session_with_functions()
    body = {
        "inputs": {"x": {"dtype": "float64", "shape": [0, 3], "data": []}, "w": tensor(2, 3, 2)},
        "sources": sources,
    }
    exact, answer = (ask(session, "gradient", "layer", body | more) for more in ({}, {"numeric": True}))
    assert answer["derivatives"] == exact["derivatives"]


def test_elements_of_few_bits_move_by_a_step_of_their_dtype() -> None:
    body = {"inputs": {"x": tensor(1, 4, dtype="bfloat16"), "w": tensor(2, 4, dtype="bfloat16")}, "sources": ["w"]}
    session = session_with_functions()
    [exact], [answer] = (elements(ask(session, "gradient", "linear", body | more)) for more in ({}, {"numeric": True}))
    np.testing.assert_allclose(answer, exact, rtol=0.1)


def test_targets_have_weights() -> None:
    session = session_with_functions()
    body = {
        "inputs": {"x": tensor(1, 2, 3), "w": tensor(2, 3, 2)},
        "targets": ["z", "y"],
        "sources": ["x"],
        "output_gradients": [0.5, [[1.0, -2.0], [0.0, 3.0]]],
    }
    [exact], [answer] = (elements(ask(session, "gradient", "layer", body | more)) for more in ({}, {"numeric": True}))
    np.testing.assert_allclose(answer, exact, rtol=1e-8)


@pytest.mark.parametrize("sources", [["a"], ["v"], ["b"]])
def test_an_id_that_two_inputs_are_bound_to_moves_as_it_is_named(sources: list[str]) -> None:
    session = session_with_functions()
    answer_to(session, "variables-create", {"id": "v", "value": tensor(1, 3)})
    body = {"inputs": {"a": "v", "b": "v"}, "sources": sources}
    [exact], [answer] = (elements(ask(session, "gradient", "pair", body | more)) for more in ({}, {"numeric": True}))
    np.testing.assert_allclose(answer, exact, rtol=1e-8)


def test_an_id_and_an_input_bound_to_it_are_no_sources_together() -> None:
    session = session_with_functions()
    answer_to(session, "variables-create", {"id": "v", "value": tensor(1, 3)})
    body = {"inputs": {"a": "v", "b": "v"}, "sources": ["a", "v"], "numeric": True}
    code, message = answer_to(session, "functions-gradient", body, id="pair")
    assert (code, "ask for each alone" in message) == ("invalid_request", True), message


def test_numbers_without_a_dtype_are_evaluated_as_elsewhere() -> None:
    session = session_with_functions()
    body = {"inputs": {"x": [[1, 2, 3]], "w": [[0.5, 1], [1, 0.25], [2, 3]]}}
    exact, answer = (ask(session, "value_and_gradient", "layer", body | more) for more in ({}, {"numeric": True}))
    assert answer["values"] == exact["values"]
    for computed, expected in zip(elements(answer), elements(exact), strict=True):
        np.testing.assert_allclose(computed, expected, atol=5e-3)


def test_ops_without_a_gradient_give_what_the_function_does() -> None:
    session = session_with_functions()
    body = {"inputs": {"x": [0.25, 1.125, 2.5]}, "sources": ["x"]}
    [exact] = elements(ask(session, "gradient", "steps", body))
    assert exact.tolist() == [3, 3, 3]
    [answer] = elements(ask(session, "gradient", "steps", body | {"numeric": {"step": 0.25}}))
    # 0 and 0.5 have the floor 0, 0.875 and 1.375 another one, and so have 2.25 and 2.75 when they are rounded.
    assert answer.tolist() == [3, 3 + 1 / 0.5, 3 + 1 / 0.5]


def test_a_loop_runs_once_for_each_evaluation() -> None:
    session = session_with_functions()
    body = {"inputs": {"x": tensor(1, 5), "w": tensor(2)}}
    exact, answer = (ask(session, "gradient", "looped", body | more) for more in ({}, {"numeric": True}))
    for computed, expected in zip(elements(answer), elements(exact), strict=True):
        np.testing.assert_allclose(computed, expected, rtol=1e-8)
    assert not answer["numeric"]["vectorized"]
    assert answer["numeric"]["why"]


def test_runs_that_do_not_fit_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_with_functions()
    body = {"inputs": {"x": tensor(1, 4, 3), "w": tensor(2, 3, 2)}, "numeric": True}
    whole = ask(session, "gradient", "layer", body)
    monkeypatch.setattr(numeric, "_CHUNK_BYTES", 1 << 11)
    answer = ask(session, "gradient", "layer", body)
    assert answer["numeric"]["chunks"] > 2
    for left, right in zip(elements(answer), elements(whole), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-7)


def test_a_small_memory_makes_more_chunks() -> None:
    body = {"inputs": {"x": tensor(1, 60), "w": tensor(2, 60)}, "sources": ["x"], "numeric": True}
    [expected] = elements(ask(session_with_functions(), "gradient", "energy", body))
    answer = ask(session_with_functions(memory_limit=80_000), "gradient", "energy", body)
    assert answer["numeric"]["chunks"] > 1
    np.testing.assert_allclose(elements(answer)[0], expected, rtol=1e-7)


def test_they_are_kept_and_accumulated_as_others_are() -> None:
    session = session_with_functions()
    body = {"inputs": {"x": tensor(1, 3), "w": tensor(2, 3)}, "sources": ["x"], "numeric": True}
    [gradient] = elements(ask(session, "gradient", "energy", body | {"outputs": ["dx"]}))
    assert answer_to(session, "tensors-get", {}, id="dx", full=True)["value"]["data"] == gradient.tolist()
    added = {"accumulate": {"into": "total", "batch": 0, "weight": 2.0}}
    assert ask(session, "gradient", "energy", body | added)["numeric"]["evaluations"] == 6
    total = answer_to(session, "variables-get", {}, id="total.x", full=True)["value"]["data"]
    np.testing.assert_allclose(total, 2 * gradient, rtol=1e-12)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"map": {"x": 0}}, "leave map out"),
        ({"part": {"top": 2}}, "leave numeric out"),
        ({"numeric": {"step": 1e-30}}, "choose a larger one"),
        ({"numeric": {"step": 0.0}}, "numeric"),
        ({"inputs": {"x": [1, 2], "w": {"dtype": "int32", "data": [1, 2]}}, "sources": ["w"]}, "w is of int32"),
        ({"inputs": {"x": [0.0] * 5000, "w": 1.0}, "sources": ["x"]}, "the limit is 4,096"),
        ({"output_gradients": [[1.0, 2.0]]}, "the output e is of the shape []; found [2]"),
    ],
)
def test_differences_that_cannot_be_say_why(fields: Mapping[str, Any], says: str) -> None:
    body = {"inputs": {"x": [1.0, 2.0], "w": [3.0, 4.0]}, "numeric": True} | dict(fields)
    code, message = answer_to(session_with_functions(), "functions-gradient", body, id="energy")
    assert (code, says in message) == ("invalid_request", True), message
