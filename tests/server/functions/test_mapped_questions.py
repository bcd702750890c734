"""Questions about a function over entries of its inputs: one request is what a request for each entry would answer."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from function_rows import answer_to, ask, known_forms, numbers

from teletape_engine.errors import ResourceExhaustedError
from teletape_engine.session.session import Session

SIZE = 5
SECOND_JVP, WEIGHTED_HVP = "jvp with vectors", "hvp with weights"
QUESTIONS = ("gradient", "value_and_gradient", "vjp", "jvp", SECOND_JVP, "jacobian", "hessian", "hvp", WEIGHTED_HVP)
FUNCTIONS: tuple[dict[str, Any], ...] = (
    {"id": "layer", "text": "y = tanh(x @ w)"},
    {"id": "energy", "text": "e = sum(exp(-x * x) * w)"},
    {"id": "scalars", "text": "p = x**3 * w"},
    {"id": "linear", "text": "y = x + 2 * w"},
    {
        "id": "looped",
        "inputs": ["x", "w"],
        "steps": [
            {"do": "scan", "body": "linear", "inputs": ["x", "w"], "outputs": ["y"], "captured": 1},
            {"op": "mul", "inputs": ["y", "y"], "outputs": ["squares"]},
        ],
        "outputs": ["squares"],
    },
)
SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "layer": {"x": (3,), "w": (3, 2)},
    "energy": {"x": (3,), "w": (3,)},
    "scalars": {"x": (), "w": ()},
    "linear": {"x": (2,), "w": (2,)},
    "looped": {"x": (2,), "w": ()},
}
RESULTS = {"layer": (2,), "energy": (), "scalars": (), "linear": (2,), "looped": (2,)}


def session_with_functions(**limits: Any) -> Session:
    session = Session(**limits)
    for body in FUNCTIONS:
        answer = answer_to(session, "functions-create", body)
        assert isinstance(answer, dict), answer
    return session


def members(verb: str, function: str, stack: tuple[int, ...]) -> dict[str, Any]:
    """What a question has for each source, or each target, before it is cut into entries."""
    shapes = [SHAPES[function][name] for name in ("x", "w")]
    weights = {"output_gradients": [numbers(7, *stack, *RESULTS[function])]}
    tangents = {"tangents": [numbers(8 + at, *stack, *shape) for at, shape in enumerate(shapes)]}
    vectors = {"vectors": [numbers(9 + at, *stack, *shape) for at, shape in enumerate(shapes)]}
    return {
        "vjp": weights,
        "jvp": tangents,
        SECOND_JVP: tangents | vectors,
        "hvp": vectors,
        WEIGHTED_HVP: vectors | weights,
    }.get(verb, {})


def written(fields: Mapping[str, Sequence[Any]], at: Any = ()) -> dict[str, Any]:
    return {name: [member[at].tolist() for member in each] for name, each in fields.items()}


def derivatives_of(answer: Any) -> list[Any]:
    """The elements of all derivatives, blocks of a Hessian one after the other."""
    flat: list[Any] = []
    for each in answer["derivatives"]:
        flat += each if isinstance(each, list) else [each]
    return [None if each["value"] is None else each["value"]["data"] for each in flat]


def assert_is_the_loop(answer: Any, loop: Sequence[Any]) -> None:
    for whole, *rows in zip(derivatives_of(answer), *map(derivatives_of, loop), strict=True):
        if whole is None:
            assert rows == [None] * len(loop)
        else:
            np.testing.assert_allclose(whole, np.stack(rows), rtol=2e-5, atol=1e-6)
    for name, value in answer["values"].items():
        rows = [np.array(each["values"][name]["data"]) for each in loop]
        np.testing.assert_allclose(value["data"], np.stack(rows), rtol=2e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- equal the loop
@pytest.mark.parametrize("verb", QUESTIONS)
@pytest.mark.parametrize("function", SHAPES)
@pytest.mark.parametrize("axes", [{"x": 0}, {"w": 0}, {"x": 0, "w": -1}], ids=str)
def test_a_map_answers_as_a_request_for_each_entry(verb: str, function: str, axes: Mapping[str, int]) -> None:
    session = session_with_functions()
    inputs = {name: numbers(at, *shape) for at, (name, shape) in enumerate(SHAPES[function].items())}
    stacks = {name: numbers(len(name) + axis, SIZE, *SHAPES[function][name]) for name, axis in axes.items()}
    fields = members(verb, function, (SIZE,))
    whole = {name: np.moveaxis(stacks[name], 0, axes[name]) if name in axes else inputs[name] for name in inputs}
    body = {"inputs": {name: each.tolist() for name, each in whole.items()}, "map": axes, **written(fields)}
    loop = [
        ask(
            session,
            verb,
            function,
            {
                "inputs": {name: (stacks[name][at] if name in axes else inputs[name]).tolist() for name in inputs},
                **written(fields, at),
            },
        )
        for at in range(SIZE)
    ]
    for _ in range(4):  # the later ones are of a known form
        answer = ask(session, verb, function, body)
        assert_is_the_loop(answer, loop)
        assert (answer["map"]["size"], answer["map"]["chunks"]) == (SIZE, 1)
        assert answer["map"]["vectorized"] == ("why" not in answer["map"]) == (function != "looped")


@pytest.mark.parametrize("verb", QUESTIONS)
def test_ids_and_shared_members_are_taken_too(verb: str) -> None:
    session = session_with_functions()
    x, w = numbers(1, 2, SIZE), numbers(2, 2)
    assert isinstance(answer_to(session, "tensors-create", {"id": "x", "value": x.tolist()}), dict)
    assert isinstance(answer_to(session, "variables-create", {"id": "w", "value": w.tolist()}), dict)
    fields = written(members(verb, "linear", ()))
    answer = ask(session, verb, "linear", {"inputs": ["x", "w"], "map": {"x": 1}, "sources": ["w", "x"], **fields})
    loop = [
        ask(session, verb, "linear", {"inputs": [x[:, at].tolist(), "w"], "sources": ["w", "x"], **fields})
        for at in range(SIZE)
    ]
    assert_is_the_loop(answer, loop)
    assert session.listing("tape") == []
    assert [facts["id"] for facts in session.listing("tensor")] == ["x"]


def test_an_id_that_two_inputs_have_is_differentiated_in_both() -> None:
    session = session_with_functions()
    x = numbers(1, SIZE, 3)
    assert isinstance(answer_to(session, "tensors-create", {"id": "v", "value": x.tolist()}), dict)
    body = {"inputs": ["v", "v"], "map": {"x": 0, "w": 0}}
    both = derivatives_of(ask(session, "gradient", "energy", {**body, "sources": ["v"]}))
    by_each = derivatives_of(ask(session, "gradient", "energy", {**body, "sources": ["x", "w"]}))
    np.testing.assert_allclose(both[0], np.add(*by_each), rtol=1e-6)


def test_a_call_stacks_its_results() -> None:
    session = session_with_functions()
    x, w = numbers(1, SIZE, 3), numbers(2, 3, 2)
    body = {"inputs": {"x": x.tolist(), "w": w.tolist()}, "map": {"x": 0}, "outputs": ["y"]}
    answer = ask(session, "call", "layer", body)
    np.testing.assert_allclose(answer["values"]["y"]["data"], np.tanh(x @ w), rtol=1e-6)
    assert answer["map"] == {"size": SIZE, "chunks": 1, "vectorized": True}
    assert [facts["id"] for facts in session.listing("tensor")] == ["y"]


def test_derivatives_of_a_map_are_kept_under_given_ids() -> None:
    session = session_with_functions()
    body = {"inputs": [numbers(1, SIZE, 2).tolist(), [1.0, 2.0]], "map": {"x": 0}, "outputs": [None, "dw"]}
    [_, dw] = ask(session, "gradient", "linear", body)["derivatives"]
    assert (dw["id"], dw["value"]["shape"]) == ("dw", [SIZE, 2])
    assert session.describe("dw")["shape"] == [SIZE, 2]


# --------------------------------------------------------------------------------------------------------------- chunks
def no_more(needed: float) -> int:
    raise ResourceExhaustedError("the machine has no more")


@pytest.mark.parametrize("is_reserved", [False, True], ids=["limit", "machine"])
@pytest.mark.parametrize("verb", ["call", *QUESTIONS])
def test_what_memory_has_no_room_for_at_once_runs_in_chunks(verb: str, is_reserved: bool) -> None:
    rows = 1000
    x, w = numbers(1, rows, 3), numbers(2, 3)
    fields = written(members(verb, "energy", ()))
    body: dict[str, Any] = {"inputs": [x.tolist(), w.tolist()], "map": {"x": 0}, **fields}
    whole = ask(session_with_functions(), verb, "energy", body | ({"scratch": True} if verb == "call" else {}))
    most = {"call": 60_000, "hessian": 900_000}.get(verb, 220_000)
    if is_reserved:  # the session may have more, and the machine has not
        session = session_with_functions(memory_limit=1 << 30)
        session.reserve(most * 2 // 3, no_more)
    else:
        session = session_with_functions(memory_limit=most)
    in_chunks = ask(session, verb, "energy", body | ({"scratch": True} if verb == "call" else {}))
    assert whole["map"]["chunks"] == 1 < in_chunks["map"]["chunks"] < rows
    in_chunks["map"]["chunks"] = 1
    assert in_chunks == whole
    assert session.listing("tensor", "tape") == []


def test_a_map_that_fails_in_a_later_chunk_leaves_nothing() -> None:
    session = session_with_functions(memory_limit=800_000)
    pick = {
        "id": "pick",
        "inputs": ["at", "w"],
        "steps": [{"op": "gather", "inputs": ["w", "at"], "outputs": ["y"]}],
        "outputs": ["y"],
    }
    assert isinstance(answer_to(session, "functions-create", pick), dict)
    at = np.zeros(300, int)
    at[-1] = 1000
    body = {"inputs": [{"dtype": "int32", "data": at.tolist()}, numbers(1, 200).tolist()], "map": {"at": 0}}
    code, _ = answer_to(session, "functions-gradient", {**body, "sources": ["w"]}, id="pick", full=True)
    assert code == "invalid_argument"
    assert session.listing("tensor", "tape") == []


# ------------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"inputs": [[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]], "map": {"x": 0, "w": 0}}, "found x 1, w 2"),
        ({"inputs": [[1.0, 2.0], [1.0, 2.0]], "map": {"x": 1}}, "map.x: 1 is no axis"),
        ({"inputs": [1.0, [1.0, 2.0]], "map": {"x": 0}}, "map.x: 0 is no axis"),
        ({"inputs": [[[1.0]], [1.0]], "map": {"z": 0}}, "found 'z'"),
        ({"inputs": [{"dtype": "float32", "shape": [0, 2], "data": []}, [1.0, 2.0]], "map": {"x": 0}}, "1 or more"),
    ],
)
def test_a_map_that_cannot_be_says_why(body: Mapping[str, Any], says: str) -> None:
    for verb in ("call", "gradient", "jvp"):
        more = {"tangents": [1.0]} if verb == "jvp" else {}
        code, message = answer_to(session_with_functions(), f"functions-{verb}", {**body, **more}, id="linear")
        assert (code, says in message) == ("invalid_request", True), message


def test_a_function_that_assigns_is_not_mapped() -> None:
    session = session_with_functions()
    count = {
        "id": "count",
        "inputs": ["v", "x"],
        "steps": [{"do": "assign", "variable": "v", "value": "x", "mode": "add"}],
        "outputs": ["x"],
    }
    assert isinstance(answer_to(session, "functions-create", count), dict)
    assert isinstance(answer_to(session, "variables-create", {"id": "v", "value": 0.0}), dict)
    code, message = answer_to(session, "functions-gradient", {"inputs": ["v", [1.0]], "map": {"x": 0}}, id="count")
    assert (code, "assigns to v" in message) == ("invalid_request", True)


# ------------------------------------------------------------------------------------------------------------ the price
def test_a_map_costs_far_less_than_a_request_for_each_entry() -> None:
    session, rows = session_with_functions(), 100
    x, w = numbers(1, rows, 3), numbers(2, 3)
    body = {"inputs": [x.tolist(), w.tolist()], "map": {"x": 0}}

    def seconds(whole: bool) -> float:
        begin = time.process_time()
        if whole:
            ask(session, "value_and_gradient", "energy", body)
        else:
            for row in x:
                ask(session, "value_and_gradient", "energy", {"inputs": [row.tolist(), w.tolist()]})
        return time.process_time() - begin

    for whole in (True, False, True, False):
        seconds(whole)
    ratios = sorted([seconds(False) / seconds(True) for _ in range(5)])
    assert ratios[2] > 5, ratios
    assert len(known_forms(session)) == 2
