"""The time that a caller gives its request: over any way, from its arrival on, and the session goes on after it."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lent_callers import ENDLESS, Caller

import teletape_wire as wire
from serving import KEYS, Program, Server, long_work, needs_exchange, ok, problem
from teletape_engine.commands import Fetch
from teletape_server.settings import Settings

LIMIT = {"Teletape-Time-Limit": "0.05"}
BODY = {
    "do": "function",
    "id": "body",
    "inputs": ["x"],
    "outputs": ["y"],
    "steps": [{"op": "add", "inputs": ["x", 1.0], "outputs": ["y"]}],
}
#: Computes until it is stopped: a minute would not be enough.
ENDLESS_LOOP = {"do": "scan", "body": "body", "inputs": [1.0], "carried": 1, "length": 1 << 30, "outputs": ["z"]}


@pytest.fixture(scope="module")
def patient() -> Iterator[Server]:
    settings = Settings(api_keys=KEYS, direct="on", max_iterations=1 << 40, patience=600.0, shutdown_grace=0.1)
    with Server(settings).running() as server:
        yield server


@pytest.fixture
def http(patient: Server) -> Iterator[httpx.Client]:
    with patient.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client
        client.delete("/v1/sessions/demo")


def failure_of(response: httpx.Response) -> dict[str, Any]:
    failure: dict[str, Any] = ok(response).json()["failure"]
    return failure


def test_a_batch_of_json_is_stopped(http: httpx.Client) -> None:
    body = {"commands": [BODY, ENDLESS_LOOP]}
    limit = {"Teletape-Time-Limit": "1"}  # enough for the first command, also on a busy machine
    failure = failure_of(http.post("/v1/sessions/demo/batch", json=body, headers=limit))
    assert (failure["code"], failure["command"], failure["details"]["limit"]) == ("deadline_exceeded", 1, 1.0)
    assert "not done within 1 s, the time that its caller gives it" in failure["message"]
    ok(http.get("/v1/sessions/demo/functions/body"))  # what was done before stays


@pytest.mark.parametrize("with_key", [False, True])
def test_a_request_of_rest_is_stopped(http: httpx.Client, *, with_key: bool) -> None:
    ok(http.post("/v1/sessions/demo/functions", json={name: value for name, value in BODY.items() if name != "do"}))
    key = {"Idempotency-Key": "once"} if with_key else {}
    body = {name: ENDLESS_LOOP[name] for name in ("inputs", "carried", "length")}
    response = http.post("/v1/sessions/demo/functions/body/scan", json=body, headers=LIMIT | key)
    assert problem(response, 422, "deadline_exceeded")["details"]["limit"] == 0.05


@pytest.mark.parametrize("with_key", [False, True])
def test_a_run_is_stopped(http: httpx.Client, *, with_key: bool) -> None:
    key = {"Idempotency-Key": f"run {time.monotonic()}"} if with_key else {}
    body = {"commands": [BODY, ENDLESS_LOOP], "fetch": ["z"]}
    problem(http.post("/v1/run", json=body, headers=LIMIT | key), 422, "deadline_exceeded")


@needs_exchange
@pytest.mark.parametrize("lends", [False, True], ids=["through the server", "to the process"])
def test_a_frame_is_stopped(patient: Server, http: httpx.Client, *, lends: bool) -> None:
    with Caller(patient, http, lends=lends, Teletape_Time_Limit="0.05") as caller:
        caller.send(*ENDLESS, Fetch("sum"))
        failure = wire.decode_answer(caller.answer().body)[0].failure
        assert failure is not None
        assert (failure.code, failure.details["limit"]) == ("deadline_exceeded", 0.05)
        assert caller.run() == ()  # the next one has its own time


def test_the_wait_for_other_requests_counts(http: httpx.Client, patient: Server) -> None:
    """The second frame is stopped before its first command, since the first one has taken its time."""
    first, second = Program(http, "demo"), Program(http, "demo", nonces=b"m")
    thread = threading.Thread(target=first.post, args=(first.batch(*long_work()),))
    with patient.client(**LIMIT) as hurried:
        second.http = hurried
        thread.start()
        while not ok(http.get("/v1/sessions/demo")).json()["running"]["requests"]:
            pass
        failure = wire.decode_answer(second.post(second.batch(Fetch("nothing"))).content)[0].failure
    assert failure is not None
    assert (failure.code, failure.index) == ("deadline_exceeded", 0)
    thread.join()


def test_an_op_for_which_too_little_time_is_left_does_not_begin(http: httpx.Client) -> None:
    fill = {"do": "op", "op": "fill", "inputs": [{"dtype": "int32", "data": 1}], "outputs": ["a"]}
    fill["attrs"] = {"shape": [2600, 2600]}
    product = {"do": "op", "op": "matmul", "inputs": ["a", "a"], "outputs": ["b"]}
    ok(http.post("/v1/sessions/demo/batch", json={"commands": [fill]}))
    limit = {"Teletape-Time-Limit": "1.5"}
    failure = failure_of(http.post("/v1/sessions/demo/batch", json={"commands": [product]}, headers=limit))
    assert (failure["code"], failure["op"], failure["details"]["limit"]) == ("deadline_exceeded", "matmul", 1.5)


def test_a_retry_may_have_another_time(http: httpx.Client) -> None:
    body, key = {"commands": [{"do": "constant", "id": "x", "value": 1.0}]}, {"Idempotency-Key": "again"}
    ok(http.post("/v1/sessions/demo/batch", json=body, headers=key))
    again = ok(http.post("/v1/sessions/demo/batch", json=body, headers=key | {"Teletape-Time-Limit": "9"}))
    assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("text", ["0", "-1", "1e3", "inf", "soon", "", "1,5"])
def test_what_is_no_number_of_seconds_is_refused(http: httpx.Client, text: str) -> None:
    response = http.post("/v1/sessions/demo/batch", json={"commands": []}, headers={"Teletape-Time-Limit": text})
    assert "is a number of seconds above 0" in problem(response, 422, "invalid_request")["detail"]
