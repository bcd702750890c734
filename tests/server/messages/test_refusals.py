"""What derivatives, functions and loops refuse over REST: each with its own problem, and nothing lost or left."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from rest_client import Rest, op

from serving import ok, problem

W = [1.5, -0.5, 2.0]


@pytest.fixture
def rest(http: httpx.Client) -> Iterator[Rest]:
    """A session: w, a tape t over cubes = w³ and loss = Σ cubes, and the functions square, add and always."""
    session = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
    session.create("variables", {"id": "w", "value": W})
    session.create("tapes", {"id": "t", "persistent": True})
    session.done("tapes/t/ops", {"ops": [op("pow", "w", 3.0, to="cubes"), op("reduce_sum", "cubes", to="loss")]})
    for name, inputs, call in (
        ("square", ["x"], op("square", "x", to="y")),
        ("add", ["x", "e"], op("add", "x", "e", to="y")),
        ("always", ["x"], op("less", "x", 1e30, to="y")),
    ):
        session.create("functions", {"id": name, "inputs": inputs, "steps": [call], "outputs": ["y"]})
    yield session
    http.delete(session.path)


class State:
    """What a session holds: it must be the same after a refusal."""

    def __init__(self, rest: Rest) -> None:
        self.used = ok(rest.http.get(rest.path)).json()["bytes_in_use"]
        self.tensors = ok(rest.get("tensors")).json()
        self.functions = ok(rest.get("functions")).json()
        self.tape = ok(rest.get("tapes/t")).json()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it is compared, not kept


LOOP = {"inputs": [1.0], "cond": "always", "maximum_iterations": 3}
LOST = {"inputs": [1.0], "steps": [{"op": "square", "inputs": ["x"], "outputs": ["y"]}]}
REFUSED: list[tuple[str, Any, int, str, str]] = [
    # sources, targets and cotangents
    (
        "tapes/t/gradient",
        {"targets": ["loss"], "sources": ["w", None]},
        422,
        "invalid_request",
        "sources.1: must be an id",
    ),
    ("tapes/t/gradient", {"targets": [None], "sources": ["w"]}, 422, "invalid_request", "targets.0: must be an id"),
    ("tapes/t/explain", {"targets": ["loss"], "sources": [None]}, 422, "invalid_request", "found null"),
    ("tapes/t/jacobian", {"targets": [["loss"]], "sources": ["w"]}, 422, "invalid_request", "found a list"),
    (
        "tapes/t/gradient",
        {"targets": ["loss"], "sources": ["w"], "output_gradients": [1.0, 2.0]},
        422,
        "invalid_argument",
        "1 targets, but 2 output gradients",
    ),
    (
        "tapes/t/gradient",
        {"targets": ["cubes"], "sources": ["w"], "output_gradients": [[1.0, 2.0]]},
        422,
        "invalid_argument",
        "[2] vs. [3]",
    ),
    (
        "tapes/t/vjps",
        {"targets": ["cubes"], "sources": ["w"], "output_gradients": [1.0]},
        422,
        "invalid_argument",
        "must be float32[k, 3]",
    ),
    (
        "tapes/t/vjps",
        {"targets": ["cubes", "loss"], "sources": ["w"], "output_gradients": [[W, W], [1.0]]},
        422,
        "invalid_argument",
        "float32[1] for a target float32[]: it must be float32[2], one leading axis of the same length",
    ),
    (
        "tapes/t/hvp",
        {"targets": ["loss"], "sources": ["w"], "vectors": [[1.0]]},
        422,
        "invalid_argument",
        "a vector float32[1] for a source float32[3], number 0 from 0: ",
    ),
    ("variables", {"value": "NaN"}, 404, "unknown_id", 'as a number it is {"data": "NaN"}'),
    ("tensors", {"value": [1e39, 1]}, 422, "invalid_argument", "does not fit dtype float32; float64 holds it"),
    ("tapes/t/batch_jacobian", {"targets": ["cubes"], "sources": ["w"]}, 422, "invalid_argument", "rank at least 2"),
    ("tapes/t/gradient", {"targets": ["loss"], "sources": ["other"]}, 404, "unknown_id", "nothing in this session"),
    ("tapes/w/gradient", {"targets": ["loss"], "sources": ["w"]}, 404, "unknown_id", "at variables/w"),
    (
        "tapes/t/jacobian",
        {"targets": ["cubes"], "sources": ["w"], "max_bytes": -1},
        422,
        "invalid_request",
        "max_bytes",
    ),
    ("tapes/t/jacobian", {"targets": ["cubes"], "sources": ["w"], "max_bytes": 1}, 507, "resource_exhausted", "is 1"),
    (
        "tapes/t/hessian",
        {"targets": ["loss"], "sources": ["w"] * 3000},
        422,
        "invalid_request",
        "3,000 make 9,000,000; the limit is 16,384",
    ),
    (
        "tapes/t/gradient",
        {"targets": ["loss"], "sources": ["w"] * 20_000},
        422,
        "invalid_request",
        "sources: must have at most 16,384 members; found 20000",
    ),
    # functions
    ("functions/square/call", {"inputs": []}, 422, "invalid_request", "takes 1 (x), found 0"),
    ("functions/square/call", {"inputs": ["w"], "outputs": ["w"]}, 409, "id_in_use", "a variable"),
    ("functions/square/call", {"inputs": [None]}, 422, "invalid_request", "inputs.0: must be an id, a number"),
    ("functions/w/gradient", {"inputs": [1.0]}, 404, "unknown_id", "at variables/w"),
    ("functions/square/gradient", {"inputs": [1.0], "sources": ["z"]}, 422, "invalid_request", "bound to the id 'z'"),
    (
        "functions",
        {
            "id": "endless",
            "inputs": ["x"],
            "steps": [{"do": "call", "function": "endless", "inputs": ["x"], "outputs": ["y"]}],
            "outputs": ["y"],
        },
        404,
        "unknown_id",
        "step 0 (call): unknown id 'endless'",
    ),
    (
        "functions",
        {"inputs": ["x"], "steps": [op("square", "x", to=f"y{at}") for at in range(17_000)], "outputs": ["y1"]},
        422,
        "invalid_request",
        "steps: has at most 16,384 members; found 17,000",
    ),
    # checks
    (
        "functions/square/check_gradients",
        {"inputs": [W], "settings": {"step": 1e-300}},
        422,
        "invalid_argument",
        "step 1.5e-300 is too small",
    ),
    (
        "functions/square/check_gradients",
        {"inputs": [{"dtype": "int32", "data": [1, 2]}]},
        422,
        "invalid_argument",
        "no argument has a gradient",
    ),
    ("tapes/t/check_gradients", {"targets": ["loss"], "sources": ["w"]}, 409, "tape_state", "replayable"),
    # loops
    ("functions/square/while", LOOP | {"captured": -1}, 422, "invalid_request", "captured"),
    ("functions/square/while", LOOP | {"captured": 2}, 422, "invalid_argument", "2 inputs are captured"),
    ("functions/square/while", LOOP | {"cond": "square"}, 422, "invalid_argument", "scalar bool or integer"),
    ("functions/square/while", LOOP | {"cond": "nope"}, 404, "unknown_id", "'nope'"),
    ("functions/square/scan", {"inputs": [1.0], "carried": 1}, 422, "invalid_argument", "one must be given"),
    ("functions/square/scan", {"inputs": [1.0]}, 422, "invalid_argument", "is a scalar"),
    (
        "functions/square/scan",
        {"inputs": [1.0], "carried": 1, "length": 10**9},
        507,
        "resource_exhausted",
        "would take 1,000,000,000",
    ),
    (
        "functions/add/scan",
        {"inputs": [[1.0], [[1.0, 2.0]]], "carried": 1},
        422,
        "invalid_argument",
        "must stay as they are",
    ),
]


@pytest.mark.parametrize(("place", "body", "status", "code", "text"), REFUSED)
def test_a_refusal_says_what_was_found_and_leaves_everything(
    rest: Rest, place: str, body: Any, status: int, code: str, text: str
) -> None:
    before = State(rest)
    assert text in problem(rest.post(place, body), status, code)["detail"]
    assert State(rest) == before
    derivatives = rest.done("tapes/t/gradient", {"targets": ["loss"], "sources": ["w"]})["derivatives"]
    np.testing.assert_allclose(derivatives[0]["value"]["data"], 3 * np.square(W))


def test_a_jacobian_beyond_memory_reports_the_numbers(rest: Rest) -> None:
    n = 30_000
    rest.create("tapes", {"id": "wide", "persistent": True})
    ops = [op("broadcast_to", 2.0, to="row", shape=[n]), op("square", "row", to="squares")]
    rest.done("ops", {"ops": ops[:1]})
    rest.done("tapes/wide/watch", {"tensors": ["row"]})
    rest.done("tapes/wide/ops", {"ops": ops[1:]})
    before = State(rest)
    refusal = problem(
        rest.post("tapes/wide/jacobian", {"targets": ["squares"], "sources": ["row"]}), 507, "resource_exhausted"
    )
    assert refusal["details"]["answer"] == n * n * 4
    assert "3,600,000,000" in refusal["detail"]
    assert State(rest) == before
    rest.done("tapes/wide/gradient", {"targets": ["squares"], "sources": ["row"]})


def test_a_question_that_fails_leaves_the_ids_of_the_others_free(rest: Rest) -> None:
    before = State(rest)
    first = {"targets": ["loss"], "sources": ["w"], "outputs": ["dw"]}
    for wrong in ({"do": "jacobian", "targets": ["nope"], "sources": ["w"], "outputs": ["J"]}, first):
        code, status = ("unknown_id", 404) if wrong is not first else ("id_in_use", 409)
        details = problem(rest.post("tapes/t/questions", {"questions": [first, wrong]}), status, code)["details"]
        assert details["question"] == 1
        assert State(rest) == before
    assert rest.done("tapes/t/questions", {"questions": [first]})["results"][0]["derivatives"][0]["id"] == "dw"
    problem(rest.post("tapes/t/questions", {"questions": [first]}), 409, "id_in_use")
    np.testing.assert_allclose(rest.data("tensors/dw"), 3 * np.square(W))  # what had the id before keeps it


def test_a_tape_used_up_or_ended_says_which(rest: Rest) -> None:
    rest.create("tapes", {"id": "once"})
    rest.done("tapes/once/ops", {"ops": [op("square", "w", to="ww")]})
    question = {"targets": ["ww"], "sources": ["w"]}
    rest.done("tapes/once/gradient", question)
    for place in ("gradient", "hessian"):
        problem(rest.post(f"tapes/once/{place}", question), 409, "tape_consumed")
    problem(rest.post("tapes/once/jacobian", {"targets": ["ww"], "sources": ["w"]}), 409, "tape_consumed")
    problem(rest.post("tapes/once/ops", {"ops": [op("square", "w", to="again")]}), 409, "tape_consumed")
    assert rest.done("tapes/once/explain", question)["explanations"][0]["code"] == "numbers_gone"
    ok(rest.delete("tapes/once"))
    for place in ("gradient", "explain"):
        problem(rest.post(f"tapes/once/{place}", question), 410, "released_id")
    problem(rest.get("tapes/once/graph"), 410, "released_id")


def test_what_belongs_to_another_session_is_unknown_here(rest: Rest, http: httpx.Client) -> None:
    other = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
    other.create("tensors", {"id": "theirs", "value": [1.0]})
    other.create("functions", {"id": "their_function", "inputs": ["x"], "steps": [], "outputs": ["x"]})
    for place, body in (
        ("tapes/t/gradient", {"targets": ["theirs"], "sources": ["w"]}),
        ("tapes/t/explain", {"targets": ["theirs"], "sources": ["w"]}),
        ("functions/square/call", {"inputs": ["theirs"]}),
        ("functions/their_function/call", {"inputs": ["w"]}),
        ("functions/square/while", LOOP | {"cond": "their_function"}),
    ):
        problem(rest.post(place, body), 404, "unknown_id")
    ok(other.http.delete(other.path))
    for place in ("call", "gradient", "check_gradients", "while", "scan"):
        refusal = problem(other.post(f"functions/their_function/{place}", {"inputs": [1.0]}), 410, "session_ended")
        assert "it was deleted" in refusal["detail"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"inputs": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}", "malformed_json"),
        (b'{"inputs": [1' + b"0" * 100_000 + b"]}", "malformed_json"),
        (b'{"inputs": ["x\\ud800"]}', "malformed_json"),
        (b'{"inputs": [NaN]}', "malformed_json"),
        (b'{"inputs": [1e999]}', "malformed_json"),
        (b'{"inputs": [1.5], "inputs": [2.5]}', "malformed_json"),
        ('{"inputs": [1.5]}'.encode("utf-16"), "malformed_json"),
        (b'{"inputs"', "malformed_json"),
    ],
)
def test_json_that_is_none_is_reported_and_nothing_happens(rest: Rest, text: bytes, code: str) -> None:
    before = State(rest)
    headers = {"Content-Type": "application/json"}
    for place in ("functions/square/call", "functions/square/gradient", "tapes/t/questions"):
        problem(rest.http.post(f"{rest.path}/{place}", content=text, headers=headers), 400, code)
    assert State(rest) == before


def test_a_letter_outside_of_the_first_plane_is_a_letter(rest: Rest) -> None:
    text = b'{"inputs": ["x\\ud83d\\ude00"], "steps": [], "outputs": ["x\\ud83d\\ude00"], "id": "smile"}'
    created = ok(rest.http.post(f"{rest.path}/functions", content=text, headers={"Content-Type": "application/json"}))
    assert created.json()["inputs"] == ["x😀"]


def test_functions_within_functions_have_a_bound(rest: Rest) -> None:
    def calls(of: str) -> list[Any]:
        return [{"do": "call", "function": of, "inputs": ["x"], "outputs": [f"y{at}"]} for at in range(100)]

    inner = "square"
    for depth in range(3):
        rest.create("functions", {"id": f"f{depth}", "inputs": ["x"], "steps": calls(inner), "outputs": ["y99"]})
        inner = f"f{depth}"
    body = {"inputs": ["x"], "steps": calls(inner), "outputs": ["y99"]}
    assert "1,000,000 steps" in problem(rest.post("functions", body), 422, "invalid_argument")["detail"]


def test_a_function_reports_its_steps_as_they_were_given(rest: Rest) -> None:
    steps = [
        {"op": "reduce_sum", "inputs": ["x"], "outputs": ["s"], "attrs": {"axis": [0], "keepdims": True}},
        {"op": "mul", "inputs": ["s", {"number": "Infinity"}], "outputs": ["m"]},
        {"op": "add", "inputs": ["m", [1.0, 2.0]], "outputs": ["a"]},
        {"do": "assign", "variable": "c", "value": "a", "mode": "add"},
        {"do": "call", "function": "square", "inputs": ["a"], "outputs": ["y"]},
    ]
    created = rest.create("functions", {"inputs": ["x", "c"], "steps": steps, "outputs": ["y"]})
    assert created["steps"] == [
        {"op": "reduce_sum", "inputs": ["x"], "attrs": {"axis": [0], "keepdims": True}, "outputs": ["s"]},
        {"op": "mul", "inputs": ["s", "inf"], "attrs": {}, "outputs": ["m"]},
        {"op": "add", "inputs": ["m", {"shape": [2]}], "attrs": {}, "outputs": ["a"]},
        {"do": "assign", "variable": "c", "value": "a", "mode": "add"},
        {"do": "call", "functions": ["square"], "inputs": ["a"], "outputs": ["y"]},
    ]


def test_a_gradient_of_the_callers_own_that_gives_none_is_null(http: httpx.Client) -> None:
    commands = [
        {"do": "variable", "id": "x", "value": [3.5, 4.5]},
        {"do": "tape.open", "id": "t"},
        {"do": "op", "op": "identity", "inputs": ["x"], "outputs": ["y"]},
        {"do": "custom", "inputs": ["x"], "outputs": ["y"], "tag": "own"},
        {"do": "backward.begin", "id": "b", "tape": "t", "targets": ["y"], "sources": ["x"]},
        {"do": "backward.resume", "id": "b", "cotangents": [None]},
        {"do": "backward.end", "id": "b", "outputs": ["g"]},
    ]
    answer = ok(http.post("/v1/run", json={"commands": commands, "fetch": ["g"]})).json()
    assert (answer["values"], answer["why"]["g"]["code"]) == ({"g": None}, "custom_none")


def test_a_sparse_gradient_counts_what_it_holds(rest: Rest) -> None:
    rest.create("variables", {"id": "few", "value": {"dtype": "float32", "shape": [4, 2], "data": [1.0] * 8}})
    rest.create("tapes", {"id": "lookup"})
    rest.done("tapes/lookup/ops", {"ops": [op("gather", "few", {"dtype": "int32", "data": [1, 3, 1]}, to="rows")]})
    rest.done("tapes/lookup/gradient", {"targets": ["rows"], "sources": ["few"], "outputs": ["g"]})
    tensor = ok(rest.get("tensors/g")).json()
    assert (tensor["kind"], tensor["shape"], tensor["rows"]) == ("slices", [4, 2], 3)
    assert tensor["bytes"] == 3 * 2 * 4 + 3 * 4


def test_the_end_of_a_thing_reports_the_bytes_that_are_left(rest: Rest) -> None:
    def used() -> int:
        used_bytes: int = ok(rest.http.get(rest.path)).json()["bytes_in_use"]
        return used_bytes

    before = used()
    rest.create("tapes", {"id": "other", "persistent": True})
    rest.done("tapes/other/ops", {"ops": [op("exp", "w", to="grown"), op("square", "grown", to="more")]})
    rest.done("tapes/other/hessian", {"targets": ["more"], "sources": ["w"]})
    for name in ("grown", "more"):
        ok(rest.delete(f"tensors/{name}"))
    assert used() > before
    ok(rest.delete("tapes/other"))
    assert used() == before


def test_questions_without_ids_leave_no_trace(rest: Rest) -> None:
    asks: list[Callable[[], Any]] = [
        lambda: rest.done("tapes/t/gradient", {"targets": ["loss"], "sources": ["w"]}),
        lambda: rest.done("tapes/t/jacobian", {"targets": ["cubes"], "sources": ["w"]}),
        lambda: rest.done("tapes/t/hessian", {"targets": ["loss"], "sources": ["w"]}),
        lambda: rest.done("functions/square/gradient", {"inputs": ["w"]}),
        lambda: rest.done("functions/square/check_gradients", {"inputs": ["w"]}),
        lambda: rest.done("tapes/t/explain", {"targets": ["loss"], "sources": ["w"]}),
        lambda: ok(rest.get("tapes/t/graph?targets=loss&sources=w")),
    ]
    before = State(rest)
    for ask in asks:
        ask()
        assert State(rest) == before
