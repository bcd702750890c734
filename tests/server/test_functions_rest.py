"""Functions over REST: steps that assign, call, loop and choose; and their gradient in one request."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from test_rest import Rest, op

from serving import ok, problem


@pytest.fixture
def rest(server_url: str) -> Iterator[Rest]:
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        one = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
        yield one
        http.delete(one.path)


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


def test_a_gradient_takes_one_request_and_leaves_nothing(rest: Rest) -> None:
    rest.made("functions", ERROR)
    rest.made("variables", {"id": "w", "value": [2.0, 3.0]})
    answer = rest.done("functions/error/gradient", {"inputs": ["w", [1.0, 1.0], [0.0, 0.0]], "targets": ["sum"]})
    assert answer["values"]["sum"]["data"] == 13.0
    assert {one["source"]: one["value"]["data"] for one in answer["derivatives"]} == {
        "w": [4.0, 6.0],
        "x": [8.0, 18.0],
        "y": [-4.0, -6.0],
    }
    assert rest.get("tensors").json()["tensors"] == []
    assert rest.get("tapes").json()["tapes"] == []


def test_what_is_asked_for_is_chosen_by_name(rest: Rest) -> None:
    rest.made("functions", ERROR)
    body: dict[str, Any] = {"inputs": [[2.0], [3.0], 1.0], "sources": ["y", "w"], "targets": ["guess"]}
    [y, w] = rest.done("functions/error/gradient", body)["derivatives"]
    assert (y["source"], y["kind"], y["value"]["data"]) == ("y", "dense", 0.0)  # another result depends on it
    assert w["value"]["data"] == [3.0]
    rest.made("functions", {"id": "one", "inputs": ["a", "b"], "steps": [op("neg", "a", to="c")], "outputs": ["c"]})
    [_, b] = rest.done("functions/one/gradient", {"inputs": [1.0, 2.0]})["derivatives"]
    assert (b["kind"], b["value"]) == ("none", None)
    [_, b] = rest.done("functions/one/gradient", {"inputs": [1.0, 2.0], "unconnected": "zero"})["derivatives"]
    assert b["value"]["data"] == 0.0
    [w, x] = rest.done("functions/error/gradient", {"inputs": [[2.0], [3.0], 1], "targets": ["sum"]})["derivatives"]
    assert (w["value"]["data"], x["value"]["data"]) == ([30.0], [20.0])  # a whole number is no source
    problem(
        rest.post("functions/error/gradient", {"inputs": [[2.0], [3.0], 1], "sources": ["y"]}), 422, "invalid_request"
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"inputs": [1.0]}, 422, "invalid_request"),
        ({"inputs": [1.0, 2.0, 3.0], "sources": ["z"]}, 422, "invalid_request"),
        ({"inputs": [1.0, 2.0, 3.0], "targets": ["z"]}, 422, "invalid_request"),
        ({"inputs": [[1.0, 2.0], [1.0, 2.0, 3.0], 3.0]}, 422, "invalid_argument"),
        ({"inputs": ["nobody", 1.0, 1.0]}, 404, "unknown_id"),
    ],
)
def test_a_question_that_does_not_fit_leaves_nothing(rest: Rest, body: Any, status: int, code: str) -> None:
    rest.made("functions", ERROR)
    problem(rest.post("functions/error/gradient", body), status, code)
    assert rest.get("tensors").json()["tensors"] == []
    assert rest.get("tapes").json()["tapes"] == []


def test_steps_assign_to_the_variables_they_are_given(rest: Rest) -> None:
    steps = [{"do": "assign", "variable": "v", "value": "by", "mode": "add"}, op("mul", "v", 2, to="twice")]
    made = rest.made("functions", {"id": "bump", "inputs": ["v", "by"], "steps": steps, "outputs": ["twice"]})
    assert made["assigns"] == ["v"]
    rest.made("variables", {"id": "count", "value": 1.0})
    [twice] = rest.done("functions/bump/call", {"inputs": ["count", 2.0]})["values"].values()
    assert twice["data"] == 6.0
    assert rest.get("variables/count").json()["value"]["data"] == 3.0
    said = problem(rest.post("functions/bump/call", {"inputs": [1.0, 2.0]}), 422, "invalid_argument")
    assert "assigns to its input 'v': give it a variable" in said["detail"]


def test_functions_call_functions_and_choose_among_them(rest: Rest) -> None:
    for name, by in (("double", 2), ("triple", 3)):
        rest.made("functions", {"id": name, "inputs": ["a"], "steps": [op("mul", "a", by, to="b")], "outputs": ["b"]})
    steps = [
        {"do": "call", "function": "double", "inputs": ["x"], "outputs": ["twice"]},
        {"do": "cond", "branches": ["double", "triple"], "inputs": ["which", "twice"], "outputs": ["chosen"]},
    ]
    rest.made("functions", {"id": "both", "inputs": ["which", "x"], "steps": steps, "outputs": ["chosen"]})
    assert rest.delete("functions/double").status_code == 204  # those that use it keep it
    for which, expected in ((True, 20.0), (False, 30.0)):
        [value] = rest.done("functions/both/call", {"inputs": [which, 5.0]})["values"].values()
        assert value["data"] == expected
    problem(
        rest.post("functions", {"inputs": ["x"], "steps": [steps[0] | {"function": "gone"}], "outputs": ["twice"]}),
        404,
        "unknown_id",
    )
