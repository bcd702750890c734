"""Why a gradient is null, zero or not finite, by plain REST."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serving import ok, problem


class Rest:
    """A session, by plain requests."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.path = f"/v1/sessions/{ok(http.post('/v1/sessions', json={})).json()['id']}"

    def post(self, path: str, body: Any) -> Any:
        return ok(self.http.post(self.path + path, json=body)).json()

    def variable(self, name: str, value: Any, **more: Any) -> None:
        self.post("/variables", {"id": name, "value": value, **more})

    def tape(self, **more: Any) -> None:
        self.post("/tapes", {"id": "t", **more})

    def ops(self, *calls: tuple[Any, ...], on: str = "/tapes/t", **attrs: Any) -> None:
        """Ops as (name, inputs …, output); each has its number as its line."""
        todo = [
            {"op": name, "inputs": list(inputs[:-1]), "outputs": [inputs[-1]], "where": f"train.js:{at}"}
            for at, (name, *inputs) in enumerate(calls, 1)
        ]
        todo[0]["attrs"] = attrs
        self.post(f"{on}/ops", {"ops": todo})

    def why(self, target: Any = "y", source: Any = "x") -> dict[str, Any]:
        body = {"targets": [target], "sources": [source]}
        [answer] = self.post("/tapes/t/explain", body)["explanations"]
        assert answer["source"] == (source if isinstance(source, str) else source["id"])
        return answer  # type: ignore[no-any-return]  # JSON

    def gradient(self) -> dict[str, Any]:
        [answer] = self.post("/tapes/t/gradient", {"targets": ["y"], "sources": ["x"]})["derivatives"]
        return answer  # type: ignore[no-any-return]  # JSON


@pytest.fixture
def rest(server_url: str) -> Iterator[Rest]:
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        session = Rest(http)
        yield session
        http.delete(session.path)


def summary(explanation: dict[str, Any]) -> tuple[Any, ...]:
    return explanation["code"], explanation["outcome"], explanation["op"], explanation["where"]


def test_a_null_is_reported_with_the_op_and_the_callers_line_before_and_after_the_answer(rest: Rest) -> None:
    rest.variable("x", [1.2, 3.4])
    rest.tape()
    rest.ops(("mul", "x", 2.0, "a"), ("round", "a", "b"), ("reduce_sum", "b", "y"))
    before = rest.why()
    assert summary(before) == ("non_differentiable_op", "none", "round", "train.js:2")
    assert [(step["op"], step["where"], step["cut"]) for step in before["path"]] == [
        ("reduce_sum", "train.js:3", False),
        ("round", "train.js:2", True),
        ("mul", "train.js:1", False),
        ("read x", None, False),
    ]
    assert (before["length"], before["certain"], before["notes"]) == (4, True, [])
    assert "stop_gradient(f(x) - x)" in before["advice"]
    assert rest.gradient()["value"] is None
    assert rest.why() == before


def test_it_survives_the_release_of_what_lies_between(rest: Rest) -> None:
    rest.variable("x", 2.0)
    rest.tape()
    rest.ops(("floor", "x", "a"), ("mul", "a", 3.0, "y"))
    ok(rest.http.delete(f"{rest.path}/tensors/a"))
    assert summary(rest.why()) == ("non_differentiable_op", "none", "floor", "train.js:1")


def test_a_value_that_was_shown_and_came_back(rest: Rest) -> None:
    rest.variable("x", [1.25, 2.5])
    rest.tape()
    rest.ops(("mul", "x", "x", "a"))
    shown = ok(rest.http.get(f"{rest.path}/tensors/a")).json()["value"]
    rest.post("/tensors", {"id": "back", "value": shown})
    rest.ops(("reduce_sum", "back", "y"))
    explanation = rest.why()
    assert summary(explanation)[:3] == ("left_and_returned", "none", "left and returned")
    assert [step["op"] for step in explanation["path"]] == ["reduce_sum", "left and returned", "mul", "read x"]


def test_a_number_that_was_shown_and_came_back_among_the_inputs(rest: Rest) -> None:
    rest.variable("x", 1.25)
    rest.post("/tensors", {"id": "c", "value": 3.0})
    rest.tape()
    rest.ops(("mul", "x", "x", "a"))  # its result is in the answer
    rest.ops(("mul", "c", 1.5625, "y"))
    assert rest.why()["code"] == "left_and_returned"


def test_assigned_not_watched_not_trainable(rest: Rest) -> None:
    rest.variable("x", 2.0)
    rest.variable("state", 1.0)
    rest.variable("frozen", 1.0, trainable=False)
    rest.post("/tensors", {"id": "c", "value": 2.0})
    rest.tape(persistent=True)
    ok(rest.http.put(f"{rest.path}/variables/state", json={"value": "x", "mode": "add"}))
    rest.ops(("mul", "state", "frozen", "a"), ("mul", "a", "c", "y"))
    assert summary(rest.why())[:3] == ("assigned", "none", "assign")
    assert summary(rest.why(source="frozen"))[:2] == ("not_trainable", "none")
    assert summary(rest.why(source="c")) == ("not_watched", "none", "mul", "train.js:2")
    rest.post("/tapes/t/watch", {"tensors": ["c"]})
    assert rest.why(source="c")["code"] == "watched_after_use"
    assert rest.why(source="state")["code"] in ("connected", "partly_cut")


def test_ops_that_ran_on_no_tape_or_before_a_reset(rest: Rest) -> None:
    rest.variable("x", 2.0)
    rest.ops(("mul", "x", 3.0, "early"), on="")
    rest.tape()
    rest.ops(("mul", "early", 2.0, "y"))
    assert summary(rest.why()) == ("computed_before_tape", "none", "mul", "train.js:1")
    rest.ops(("mul", "x", 2.0, "a"))
    rest.ops(("mul", "a", 2.0, "b"), on="")
    rest.ops(("mul", "b", 2.0, "z"))
    assert rest.why("z")["code"] == "computed_while_stopped"
    rest.ops(("mul", "z", 2.0, "late"), on="")
    assert rest.why("late")["code"] == "computed_after_tape"
    rest.post("/tapes/t/reset", {})
    assert rest.why("z")["code"] in ("computed_before_reset", "computed_while_stopped")


def test_a_gradient_is_no_second_derivative_without_a_parent(rest: Rest) -> None:
    rest.variable("x", 2.0)
    rest.tape(persistent=True)
    rest.ops(("mul", "x", "x", "a"), ("mul", "a", "x", "y"))
    rest.post("/tapes/t/gradient", {"targets": ["y"], "sources": ["x"], "outputs": ["slope"]})
    assert summary(rest.why("slope"))[:3] == ("no_outer_tape", "none", "gradient")


def test_zeros_and_infinities_need_the_numbers(rest: Rest) -> None:
    rest.variable("x", [0.0, 4.0])
    rest.tape(persistent=True)
    rest.ops(("log", "x", "root"), ("mul", "root", 0.0, "none"), ("sub", "x", 9.0, "low"), ("relu", "low", "flat"))
    assert summary(rest.why("root")) == ("infinite_derivative", "not_finite", "log", "train.js:1")
    assert summary(rest.why("none")) == ("zero_times_infinity", "not_finite", "log", "train.js:1")
    assert summary(rest.why("flat")) == ("saturated", "zero", "relu", "train.js:4")
    assert summary(rest.why("low"))[:2] == ("connected", "gradient")


def test_a_tape_that_has_answered_has_no_numbers_any_more(rest: Rest) -> None:
    rest.variable("x", 0.0)
    rest.tape()
    rest.ops(("sqrt", "x", "y"))
    assert rest.why()["code"] == "infinite_derivative"
    assert rest.gradient()["value"]["data"] == "Infinity"
    explanation = rest.why()
    assert summary(explanation)[:2] == ("numbers_gone", "gradient")
    assert "persistent" in explanation["advice"]


def test_an_op_without_a_gradient_is_reported_as_the_error_that_asking_gives(rest: Rest) -> None:
    rest.variable("x", [[[1.0, 2.0, 3.0]]])
    rest.tape()
    rest.ops(("adjust_contrast", "x", 2.0, "y"))
    assert summary(rest.why()) == ("no_gradient_registered", "error", "adjust_contrast", "train.js:1")


def test_several_targets_and_sources_and_integer_ids(rest: Rest) -> None:
    client = ok(rest.http.post(f"{rest.path}/attach")).json()
    first = client["first_id"]
    rest.variable("x", 2.0)
    rest.variable("z", 2.0)
    commands = [
        {"do": "tape.open", "id": {"id": first}},
        {"do": "op", "op": "round", "inputs": ["x"], "outputs": [{"id": first + 1}], "where": "a.py:1"},
        {"do": "tape.pause", "tape": {"id": first}},
    ]
    rest.post("/batch", {"commands": commands, "client": client["client"], "seq": 1, "nonce": "0" * 31 + "1"})
    body = {"targets": [{"id": first + 1}], "sources": ["z", "x"]}
    explanations = rest.post(f"/tapes/{first}/explain", body)["explanations"]
    assert [(entry["source"], entry["code"]) for entry in explanations] == [
        ("z", "unconnected"),
        ("x", "non_differentiable_op"),
    ]
    assert explanations[1]["where"] == "a.py:1"


def test_what_cannot_be_asked(rest: Rest) -> None:
    rest.variable("x", 2.0)
    rest.tape()
    rest.ops(("mul", "x", 2.0, "y"))
    path = f"{rest.path}/tapes/t/explain"
    assert problem(rest.http.post(path, json={"targets": [], "sources": ["x"]}), 422, "invalid_request")
    assert problem(rest.http.post(path, json={"targets": ["y"], "sources": []}), 422, "invalid_request")
    assert problem(rest.http.post(path, json={"targets": ["y"], "sources": [None]}), 422, "invalid_request")
    assert problem(rest.http.post(path, json={"targets": ["nope"], "sources": ["x"]}), 404, "unknown_id")
    assert problem(rest.http.post(path, json={"targets": ["t"], "sources": ["x"]}), 422, "invalid_argument")
    gone = rest.http.post(f"{rest.path}/tapes/gone/explain", json={"targets": ["y"], "sources": ["x"]})
    assert problem(gone, 404, "unknown_id")
    ok(rest.http.delete(f"{rest.path}/tapes/t"))
    assert problem(rest.http.post(path, json={"targets": ["y"], "sources": ["x"]}), 410, "released_id")
