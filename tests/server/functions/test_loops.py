"""Loops over saved functions, by plain REST."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serving import ok, problem


@pytest.fixture
def http(server_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as client:
        session = ok(client.post("/v1/sessions", json={})).json()["id"]
        client.base_url = httpx.URL(f"{server_url}/v1/sessions/{session}/")
        ok(client.post("functions", json=STEP))
        ok(client.post("functions", json=SCAN))
        yield client
        ok(client.delete(f"{server_url}/v1/sessions/{session}"))


STEP = {
    "id": "step",
    "inputs": ["x", "w"],
    "steps": [{"op": "mul", "inputs": ["x", "w"], "outputs": ["y"]}],
    "outputs": ["y"],
}
SCAN = {
    "id": "running",
    "inputs": ["sum", "e"],
    "steps": [
        {"op": "add", "inputs": ["sum", "e"], "outputs": ["next"]},
        {"op": "square", "inputs": ["next"], "outputs": ["squared"]},
    ],
    "outputs": ["next", "squared"],
}
BELOW = {
    "inputs": ["x", "w"],
    "steps": [{"op": "less", "inputs": ["x", 1000.0], "outputs": ["more"]}],
    "outputs": ["more"],
}


def data(answer: httpx.Response) -> dict[str, Any]:
    return {name: entry["data"] for name, entry in ok(answer).json()["values"].items()}


def test_a_function_is_repeated_while_a_condition_holds(http: httpx.Client) -> None:
    body = {"inputs": [3.0, 2.0], "captured": 1, "cond": BELOW, "outputs": ["last", "iterations"]}
    assert data(http.post("functions/step/while", json=body)) == {"last": 1536.0, "iterations": 9}
    listed = ok(http.get("functions")).json()["functions"]
    assert [entry["id"] for entry in listed] == ["step", "running"], "the condition was for this request alone"


def test_a_tape_records_every_iteration(http: httpx.Client) -> None:
    ok(http.post("variables", json={"id": "w", "value": 2.0}))
    ok(http.post("tapes", json={"id": "tape"}))
    ok(http.post("functions", json={"id": "below", **BELOW}))
    body = {"inputs": [3.0, "w"], "captured": 1, "cond": "below", "outputs": ["last"], "tape": "tape"}
    assert data(http.post("functions/step/while", json=body)) == {"last": 1536.0}
    (derivative,) = ok(http.post("tapes/tape/gradient", json={"targets": ["last"], "sources": ["w"]})).json()[
        "derivatives"
    ]
    assert derivative["value"]["data"] == 9 * 1536.0 / 2.0


def test_a_bound_on_the_iterations(http: httpx.Client) -> None:
    body = {"inputs": [3.0, 2.0], "captured": 1, "cond": BELOW, "maximum_iterations": 3, "outputs": ["last"]}
    assert data(http.post("functions/step/while", json=body)) == {"last": 24.0}


def test_a_function_over_elements(http: httpx.Client) -> None:
    body = {"inputs": [0.0, [1.0, 2.0, 3.0]], "carried": 1, "outputs": ["total", "squares"]}
    assert data(http.post("functions/running/scan", json=body)) == {"total": 6.0, "squares": [1.0, 9.0, 36.0]}
    body |= {"reverse": True, "outputs": ["total2", "squares2"]}
    assert data(http.post("functions/running/scan", json=body)) == {"total2": 6.0, "squares2": [36.0, 25.0, 9.0]}


def test_a_map_has_nothing_to_carry(http: httpx.Client) -> None:
    body = {"inputs": [[1.0, 2.0, 3.0], 10.0], "captured": 1, "outputs": ["tens"]}
    assert data(http.post("functions/step/scan", json=body)) == {"tens": [10.0, 20.0, 30.0]}


def test_a_loop_in_a_function_and_in_one_request(http: httpx.Client) -> None:
    commands = [
        {"do": "function", "id": "below", **BELOW},
        {"do": "function", **STEP, "id": "step"},
        {
            "do": "function",
            "id": "grow",
            "inputs": ["x", "w"],
            "steps": [
                {"do": "while", "cond": "below", "body": "step", "inputs": ["x", "w"], "captured": 1, "outputs": ["y"]}
            ],
            "outputs": ["y"],
        },
        {"do": "call", "function": "grow", "inputs": [3.0, 2.0], "outputs": ["last"]},
    ]
    answer = http.post(httpx.URL(str(http.base_url)).join("/v1/run"), json={"commands": commands, "fetch": ["last"]})
    assert data(answer) == {"last": 1536.0}


@pytest.mark.parametrize(
    ("path", "body", "code", "text"),
    [
        ("step/while", {"inputs": [3.0, 2.0], "captured": 1}, "invalid_request", "cond"),
        (
            "step/while",
            {"inputs": [3.0, 2.0], "captured": 3, "cond": BELOW},
            "invalid_argument",
            "3 inputs are captured",
        ),
        ("step/while", {"inputs": [3.0, 2.0], "cond": BELOW}, "invalid_argument", "returns the next 2 values"),
        ("step/while", {"inputs": [3.0, 2.0], "captured": 1, "cond": "nobody"}, "unknown_id", "nobody"),
        ("step/while", {"inputs": [3.0, 2.0], "captured": 1, "cond": "step"}, "invalid_argument", "scalar bool"),
        (
            "step/while",
            {"inputs": [3.0, 2.0], "captured": 1, "cond": BELOW, "outputs": ["a", "b", "c"]},
            "invalid_request",
            "number of iterations",
        ),
        (
            "step/while",
            {"inputs": [3.0, [2.0, 1.0]], "captured": 1, "cond": BELOW},
            "invalid_argument",
            "shapes and dtypes must stay",
        ),
        ("running/scan", {"inputs": [0.0, 1.0], "carried": 1}, "invalid_argument", "scalar"),
        ("running/scan", {"inputs": [0.0], "carried": 3}, "invalid_argument", "3 carried"),
        ("step/scan", {"inputs": [[1.0], [1.0, 2.0]]}, "invalid_argument", "lengths [1, 2]"),
        (
            "running/scan",
            {"inputs": [[0.0], [1.0, 2.0]], "carried": 1, "length": 3},
            "invalid_argument",
            "`length` says 3",
        ),
        ("nobody/scan", {"inputs": [[1.0]]}, "unknown_id", "nobody"),
    ],
)
def test_loops_that_are_wrong(http: httpx.Client, path: str, body: dict[str, Any], code: str, text: str) -> None:
    status = {"unknown_id": 404}.get(code, 422)
    assert text in problem(http.post(f"functions/{path}", json=body), status, code)["detail"]
    assert [entry["id"] for entry in ok(http.get("functions")).json()["functions"]] == ["step", "running"]
