"""Sums of gradients over many requests: each batch counts once, and how a call is split does not matter."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from function_rows import answer_to, ask, numbers
from hypothesis import given
from hypothesis import strategies as st
from rest_client import Rest

from teletape_engine.session.session import Session
from teletape_server.handlers.methods import METHODS
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

ROWS, WIDTH = 12, 3
SUMS = ["total.w", "total.b"]


def session_with_loss() -> Session:
    session = Session()
    makes: list[tuple[str, Mapping[str, Any]]] = [
        ("functions-create", {"id": "loss", "text": "error = mean((tanh(x @ w + b) - y)**2)"}),
        ("variables-create", {"id": "w", "value": numbers(1, WIDTH, WIDTH).tolist()}),
        ("variables-create", {"id": "b", "value": numbers(2, WIDTH).tolist()}),
    ]
    for method, body in makes:
        assert isinstance(answer_to(session, method, body), dict)
    return session


def question(first: int = 0, last: int = ROWS, **fields: Any) -> dict[str, Any]:
    examples = {"x": numbers(3, ROWS, WIDTH)[first:last].tolist(), "y": numbers(4, ROWS, WIDTH)[first:last].tolist()}
    return {"inputs": {**examples, "w": "w", "b": "b"}, "sources": ["w", "b"], **fields}


def added(batch: int, weight: float = 1.0, into: str = "total", **fields: Any) -> dict[str, Any]:
    return {"accumulate": {"into": into, "batch": batch, "weight": weight, **fields}}


def read(session: Session, name: str = "total", way: str = "sum") -> Any:
    answer = answer_to(session, "accumulators-get", {}, id=name, as_=way, full=True)
    assert isinstance(answer, dict), answer
    return answer


def values(answer: Any) -> dict[str, Any]:
    return {name: np.array(value["data"]) for name, value in answer["values"].items()}


def contents(session: Session) -> Any:
    """The ids of the session with their values."""
    ids = [facts["id"] for facts in session.listing("variable", "tensor", "tape")]
    return {id: answer_to(session, "variables-get", {}, id=id, full=True)["value"] for id in ids}


# ---------------------------------------------------------------------------------------------------------- the results
def test_a_call_in_parts_gives_the_sum_and_mean_of_the_whole() -> None:
    session = session_with_loss()
    whole = ask(session, "gradient", "loss", question())["derivatives"]
    for number, (first, last) in enumerate(pairwise([0, 5, 6, ROWS])):
        answer = ask(session, "gradient", "loss", question(first, last, **added(number, last - first)))
        assert answer["derivatives"] == []
        assert answer["accumulator"] == {"id": "total", "count": number + 1, "weight": last, "added": True}
    mean, total = values(read(session, way="mean")), values(read(session))
    for each in whole:
        np.testing.assert_allclose(mean[each["source"]], each["value"]["data"], rtol=1e-5)
        np.testing.assert_allclose(total[each["source"]], np.multiply(ROWS, each["value"]["data"]), rtol=1e-5)
    assert {*contents(session)} == {"w", "b", "total", *SUMS}


def test_a_batch_that_comes_again_changes_nothing_and_is_answered_as_before() -> None:
    session = session_with_loss()
    body = question(**added(17, 32, gradients=True))
    first = ask(session, "value_and_gradient", "loss", body)
    before = contents(session)
    second = ask(session, "value_and_gradient", "loss", body)
    assert first["accumulator"].pop("added") is True
    assert second["accumulator"].pop("added") is False
    assert second == first
    assert contents(session) == before
    quiet = ask(session, "gradient", "loss", question(**added(17, 32)))
    assert (quiet["derivatives"], quiet["accumulator"]["added"]) == ([], False)


def test_the_gradients_are_answered_if_they_are_asked_for() -> None:
    session = session_with_loss()
    alone = ask(session, "value_and_gradient", "loss", question())
    answer = ask(session, "value_and_gradient", "loss", question(**added(0, 2.5, gradients=True)))
    assert (answer["values"], answer["derivatives"]) == (alone["values"], alone["derivatives"])
    for each in alone["derivatives"]:
        expected = np.multiply(2.5, each["value"]["data"])
        np.testing.assert_allclose(values(read(session))[each["source"]], expected, rtol=1e-6)


def test_sums_of_clipped_gradients_of_examples_are_added() -> None:
    session = session_with_loss()
    clipped = {"axis": 0, "clip": 0.1}
    whole = ask(session, "gradient", "loss", question(per_example=clipped))["derivatives"]
    for number, (first, last) in enumerate(pairwise([0, 7, ROWS])):
        body = question(first, last, per_example=clipped, **added(number))
        assert ask(session, "gradient", "loss", body)["per_example"]["size"] == last - first
    for each in whole:
        np.testing.assert_allclose(values(read(session))[each["source"]], each["value"]["data"], rtol=1e-5)


def test_rows_of_a_sparse_gradient_are_added() -> None:
    session = Session()
    answer_to(session, "functions-create", {"id": "f", "text": "y = sum(gather(w, i) * x)"})
    for number, row in enumerate([1, 1, 2]):
        body = {"inputs": {"w": [[0.0, 0.0]] * 3, "i": [row], "x": [[1.0, 2.0]]}, "sources": ["w"], **added(number)}
        ask(session, "gradient", "f", body)
    assert values(read(session))["w"].tolist() == [[0, 0], [2, 4], [1, 2]]


def test_many_small_gradients_of_few_bits_are_not_lost() -> None:
    session = Session()
    answer_to(session, "functions-create", {"id": "f", "text": "y = sum(w)"})
    inputs = {"w": {"dtype": "bfloat16", "data": [0.5]}}
    for number, weight in enumerate([1024.0, *[1.0] * 8]):
        ask(session, "gradient", "f", {"inputs": inputs, "sources": ["w"], **added(number, weight)})
    assert values(read(session))["w"].tolist() == [1032.0]


# ---------------------------------------------------------------------------------------------------------- the numbers
@given(st.lists(st.integers(0, 12), max_size=20))
def test_which_batches_were_added_is_a_set_of_numbers(batches: list[int]) -> None:
    session = Session()
    answer_to(session, "functions-create", {"id": "f", "text": "y = w * w"})
    seen: set[int] = set()
    for batch in batches:
        answer = ask(session, "gradient", "f", {"inputs": {"w": 3.0}, "sources": ["w"], **added(batch, batch + 1)})
        assert answer["accumulator"]["added"] is (batch not in seen)
        seen.add(batch)
    if seen:
        answer = read(session)
        ranges = answer["batches"]
        assert [number for first, last in ranges for number in range(first, last + 1)] == sorted(seen)
        assert all(left[1] + 1 < right[0] for left, right in pairwise(ranges)), "ranges that meet are one"
        weight = sum(batch + 1 for batch in seen)
        assert (answer["count"], answer["weight"]) == (len(seen), weight)
        assert answer["values"]["w"]["data"] == 6 * weight


def test_the_accumulators_of_a_session_are_listed() -> None:
    session = session_with_loss()
    for batch, name in enumerate(["first", "second", "first"]):
        ask(session, "gradient", "loss", question(**added(batch, 2.0, into=name)))
    listed = answer_to(session, "accumulators-list", {})["accumulators"]
    assert sorted((each["id"], each["count"], each["weight"]) for each in listed) == [
        ("first", 2, 4.0),
        ("second", 1, 2.0),
    ]


def test_a_reset_accumulator_begins_anew() -> None:
    session = session_with_loss()
    for _ in range(2):
        answer = ask(session, "gradient", "loss", question(**added(3)))
        assert answer["accumulator"] == {"id": "total", "count": 1, "weight": 1.0, "added": True}
        assert answer_to(session, "accumulators-delete", {}, id="total") == {}
        assert {*contents(session)} == {"w", "b"}
        assert answer_to(session, "accumulators-get", {}, id="total", as_="sum")[0] == "released_id"


# ------------------------------------------------------------------------------------------------------------- failures
def cut_short(session: Session, body: Mapping[str, Any], looks: int) -> Any:
    """The answer to a question whose caller cancels it when that is looked for so often, or its error."""
    rest = iter(range(looks))
    method = METHODS["functions-gradient"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(
            METHODS,
            "functions-gradient",
            lambda session, request: method(session, replace(request, cancelled=lambda: next(rest, None) is None)),
        )
        return answer_to(session, "functions-gradient", body, id="loss")


def test_a_question_that_is_cancelled_at_any_moment_adds_all_or_nothing() -> None:
    session, looks = session_with_loss(), 0
    ask(session, "gradient", "loss", question(**added(0)))
    before = contents(session)
    while isinstance(answer := cut_short(session, question(**added(1)), looks), tuple):
        assert answer[0] == "cancelled"
        assert contents(session) == before
        looks += 1
    assert looks > 2
    assert answer["accumulator"] == {"id": "total", "count": 2, "weight": 2.0, "added": True}


def test_a_question_that_fails_adds_nothing() -> None:
    session = session_with_loss()
    wrong = question(**added(1), output_gradients=[[1.0, 2.0]])
    assert answer_to(session, "functions-gradient", wrong, id="loss")[0] == "invalid_argument"
    assert {*contents(session)} == {"w", "b"}
    ask(session, "gradient", "loss", question(**added(0)))
    before = contents(session)
    assert answer_to(session, "functions-gradient", wrong, id="loss")[0] == "invalid_argument"
    assert contents(session) == before


def test_an_answer_that_cannot_be_written_adds_nothing() -> None:
    session = Session()
    answer_to(session, "functions-create", {"id": "f", "text": "y = sum(abs(w)**2)"})
    inputs = {"w": {"dtype": "complex128", "data": [[1.0, 2.0]]}}
    body = {"inputs": inputs, "sources": ["w"], **added(0, gradients=True)}
    code, message = answer_to(session, "functions-gradient", body, id="f", accept=SAFETENSORS_TYPE)
    assert (code, "complex128" in message) == ("not_acceptable", True), message
    assert answer_to(session, "accumulators-list", {})["accumulators"] == []
    assert ask(session, "gradient", "f", body)["accumulator"]["added"] is True


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"outputs": ["d", "e"]}, "leave outputs out"),
        ({"part": {"top": 2}}, "leave part out"),
        ({"map": {"x": 0}}, "add `per_example`"),
        ({"per_example": {"return": "norms"}}, "only a sum is accumulated"),
        ({"sources": ["w"]}, "has gradients by w, b, and these are by w"),
        (added(1, into="w"), "'w' is a variable and no accumulator"),
        (added(1, into="loss"), "'loss' is a function and no accumulator"),
        (added(1, into="mine"), "'mine.w' is a variable of something else"),
        (added(1, into="a.b"), "accumulate.into"),
        (added(-1), "accumulate.batch"),
        (added(1, 0.0), "accumulate.weight"),
    ],
)
def test_what_cannot_be_added_says_why(fields: Mapping[str, Any], says: str) -> None:
    session = session_with_loss()
    answer_to(session, "variables-create", {"id": "mine.w", "value": numbers(5, WIDTH, WIDTH).tolist()})
    ask(session, "gradient", "loss", question(**added(0)))
    before = contents(session)
    code, message = answer_to(session, "functions-gradient", question(**added(1)) | dict(fields), id="loss")
    assert (code, says in message) == ("invalid_request", True), message
    assert contents(session) == before


def test_a_sum_that_was_deleted_is_missed() -> None:
    session = session_with_loss()
    ask(session, "gradient", "loss", question(**added(0)))
    answer_to(session, "variables-delete", {}, id="total.b")
    code, message = answer_to(session, "functions-gradient", question(**added(1)), id="loss")
    assert (code, "has gradients by w, and these are by w, b" in message) == ("invalid_request", True), message


def test_a_function_that_assigns_is_refused() -> None:
    session = Session()
    steps = [{"do": "assign", "variable": "v", "value": "x", "mode": "add"}, {"op": "mul", "inputs": ["v", "x"]}]
    body = {"id": "f", "inputs": ["v", "x"], "steps": steps, "outputs": ["x"]}
    assert isinstance(answer_to(session, "functions-create", body), dict)
    answer_to(session, "variables-create", {"id": "v", "value": 1.0})
    code, message = answer_to(
        session, "functions-gradient", {"inputs": ["v", 2.0], "sources": ["x"], **added(0)}, id="f"
    )
    assert (code, "assigns to v" in message) == ("invalid_request", True), message


# ------------------------------------------------------------------------------------------------------------ over HTTP
def test_a_retry_with_its_key_is_replayed_and_another_caller_with_the_number_adds_nothing(rest: Rest) -> None:
    rest.create("functions", {"id": "f", "text": "y = sum(w * w)"})
    body = {"inputs": {"w": [1.0, 2.0]}, "sources": ["w"], **added(7, 2)}
    first, again = [rest.post("functions/f/gradient", body, **{"Idempotency-Key": "one"}) for _ in range(2)]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()
    assert again.json()["accumulator"]["added"] is True
    other = rest.post("functions/f/gradient", body, **{"Idempotency-Key": "two"}).json()
    assert other["accumulator"] == first.json()["accumulator"] | {"added": False}
    mean = rest.get("accumulators/total?as=mean").json()
    assert mean["values"]["w"]["data"] == [2.0, 4.0]
    assert mean["batches"] == [[7, 7]]
    assert rest.get("accumulators/total").json()["values"]["w"]["data"] == [4.0, 8.0]
    assert rest.get("accumulators/other").json()["code"] == "unknown_id"
    assert rest.get("accumulators/f").json()["code"] == "unknown_id"
