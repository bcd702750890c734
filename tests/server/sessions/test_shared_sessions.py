"""Several requests to one session at once, and the same one again: queues, cancelling, callers who go away, retries."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from rest_client import Rest, op

from serving import Program, metric, ok, problem, unread_post
from teletape_engine import commands
from teletape_engine.recording.values import Literal

LOOP = {"inputs": [0.0], "carried": 1, "length": 5_000_000, "outputs": ["far"]}  # no test waits for its end
EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
def rest(server_url: str) -> Iterator[Rest]:
    """A session with a variable v = 1 and the functions step (x + 1) and bump (v += x)."""
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as http:
        session = Rest(http, ok(http.post("/v1/sessions", json={})).json()["id"])
        session.create("variables", {"id": "v", "value": 1.5})
        power = op("pow", "x", 1.0, to="same")  # has no loop in C: each iteration is Python's, and takes long enough
        add = op("add", "same", 1.0, to="y")
        session.create("functions", {"id": "step", "inputs": ["x"], "steps": [power, add], "outputs": ["y"]})
        bump = [{"do": "assign", "variable": "v", "value": "x", "mode": "add"}, op("mul", "v", "x", to="y")]
        session.create("functions", {"id": "bump", "inputs": ["v", "x"], "steps": bump, "outputs": ["y"]})
        yield session
        http.delete(session.path)


def running(rest: Rest) -> Any:
    return ok(rest.http.get(rest.path)).json()["running"]


def until(rest: Rest, enough: Callable[[Any], bool]) -> None:
    while not enough(running(rest)):
        pass


@contextlib.contextmanager
def posted_meanwhile(rest: Rest, place: str, body: Any) -> Iterator[list[httpx.Response]]:
    """Posts it from another thread; the response is there when the block has ended."""
    responses: list[httpx.Response] = []

    def post() -> None:
        with httpx.Client(base_url=rest.http.base_url, timeout=60, trust_env=False) as http:
            responses.append(http.post(f"{rest.path}/{place}", json=body))

    thread = threading.Thread(target=post)
    thread.start()
    try:
        yield responses
    finally:
        thread.join()


def test_cancel_stops_what_runs_and_what_waits_and_their_ids_stay_free(rest: Rest) -> None:
    later = {"ops": [op("add", "v", 1.0, to="later")]}
    with posted_meanwhile(rest, "functions/step/scan", LOOP) as first:
        until(rest, lambda now: now["iteration"] > 0)
        with posted_meanwhile(rest, "ops", later) as second:
            until(rest, lambda now: now["requests"] == 2)
            ok(rest.http.post(f"{rest.path}/cancel"))
    assert "cancelled" in problem(first[0], 409, "cancelled")["detail"]  # between steps or between iterations
    problem(second[0], 409, "cancelled")
    until(rest, lambda now: now["requests"] == 0)
    assert rest.done("ops", later)["values"]["later"]["data"] == 2.5
    assert rest.done("functions/step/scan", LOOP | {"length": 3})["values"]["far"]["data"] == 3.0


def test_a_client_joins_a_session_that_computes_at_once(rest: Rest) -> None:
    attach, key = f"{rest.path}/attach", {"Idempotency-Key": "joins"}
    with posted_meanwhile(rest, "functions/step/scan", LOOP):
        until(rest, lambda now: now["iteration"] > 0)
        first, again = (ok(rest.http.post(attach, headers=key)) for _ in range(2))
        assert first.json() == again.json()
        assert (first.status_code, again.headers["Idempotent-Replayed"]) == (200, "true")
        programs = [Program(rest.http, rest.session, nonces=nonce) for nonce in (b"a", b"b")]
        assert running(rest)["requests"] == 4, "they join when the loop has ended"
        ok(rest.http.post(f"{rest.path}/cancel"))
    assert len({first.json()["client"], *(program.client for program in programs)}) == 3
    for program in programs:
        assert program.run(commands.Fetch("v")).failure is None


def test_a_caller_that_disconnects_from_the_events_leaves_work_that_can_be_cancelled(rest: Rest) -> None:
    with unread_post(rest.http, f"{rest.path}/functions/step/scan", json.dumps(LOOP).encode(), **EVENTS) as raw:
        seen = b""
        while b"event: progress" not in seen:
            seen += raw.recv(4096)
    assert running(rest)["requests"] == 1
    ok(rest.http.post(f"{rest.path}/cancel"))
    until(rest, lambda now: now["requests"] == 0)
    assert rest.done("functions/step/call", {"inputs": ["v"], "outputs": ["far"]})["values"]["far"]["data"] == 2.5


def test_two_programs_and_plain_requests_share_a_session(rest: Rest) -> None:
    programs = [Program(rest.http, rest.session, nonces=nonce) for nonce in (b"a", b"b")]
    for turn in range(3):
        for at, program in enumerate(programs):
            name = f"p{at}.{turn}"
            call = commands.CallFunction("bump", ("v", Literal(1.0)), (name,))
            answer = program.run(call, commands.Fetch(name))
            assert answer.failure is None
            assert float(answer.results[-1].array) == 2.5 + 3 * turn + at
        rest.done("functions/bump/call", {"inputs": ["v", 1.0]})
    assert rest.data("variables/v") == 1.5 + 9


@pytest.mark.parametrize(
    ("place", "body"),
    [
        ("functions/bump/call", {"inputs": ["v", 1.0], "outputs": ["y"]}),
        ("functions/bump/gradient", {"inputs": ["v", 1.0]}),
    ],
)
@pytest.mark.parametrize("events", [False, True])
def test_a_retry_under_its_key_happens_once(rest: Rest, place: str, body: Any, events: bool) -> None:
    headers = {"Idempotency-Key": "the first"} | (EVENTS if events else {})
    first, second = (ok(rest.post(place, body, **headers)).text.rpartition("event: ")[2] for _ in range(2))
    assert first == second
    assert rest.data("variables/v") == 2.5
    problem(
        rest.post(place, body | {"inputs": ["v", 2.0]}, **{"Idempotency-Key": "the first"}), 422, "idempotency_conflict"
    )
    assert rest.data("variables/v") == 2.5


@pytest.mark.parametrize("events", [False, True])
def test_retries_of_a_request_that_runs_wait_for_it_and_their_bodies_are_not_kept(rest: Rest, events: bool) -> None:
    headers = {"Idempotency-Key": "long"} | (EVENTS if events else {})
    padded = {**LOOP, "inputs": [0.0], "outputs": ["far"]}
    content = json.dumps(padded).encode() + b" " * (4 << 20)
    bodies = metric(rest.http, "teletape_bodies_bytes")
    threads, answers = [], []

    def post() -> None:
        with httpx.Client(base_url=rest.http.base_url, timeout=60, trust_env=False) as http:
            place = f"{rest.path}/functions/step/scan"
            answers.append(http.post(place, content=content, headers={"Content-Type": "application/json", **headers}))

    for count in range(5):
        threads.append(threading.Thread(target=post))
        threads[-1].start()
        if not count:
            until(rest, lambda now: now["iteration"] > 0)
    other = rest.post("functions/step/scan", LOOP, **headers)
    problem(other, 422, "idempotency_conflict")
    problem(rest.post("functions/step/scan", LOOP | {"length": 2}, **headers), 422, "idempotency_conflict")
    assert running(rest)["requests"] == 1
    assert metric(rest.http, "teletape_bodies_bytes") - bodies == len(content)
    ok(rest.http.post(f"{rest.path}/cancel"))
    for thread in threads:
        thread.join()
    if events:
        assert all('"code": "cancelled"' in answer.text for answer in answers)
    else:
        assert all(problem(answer, 409, "cancelled") for answer in answers)
    assert len(answers) == 5


def test_a_tape_that_answers_once_gives_that_answer_to_a_retry(rest: Rest) -> None:
    rest.create("tapes", {"id": "once"})
    rest.done("tapes/once/ops", {"ops": [op("square", "v", to="vv")]})
    ask = {"questions": [{"targets": ["vv"], "sources": ["v"]}, {"do": "hessian", "targets": ["vv"], "sources": ["v"]}]}
    headers = {"Idempotency-Key": "asked"}
    first, second = (ok(rest.post("tapes/once/questions", ask, **headers)).json() for _ in range(2))
    assert first == second
    assert first["results"][0]["derivatives"][0]["value"]["data"] == 3.0
    problem(rest.post("tapes/once/questions", ask), 409, "tape_consumed")
