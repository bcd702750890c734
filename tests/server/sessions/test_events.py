"""Long requests: progress events, cancel, limits, and the state after each."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import Request

from serving import KEYS, Server, metric, ok, problem, unread_post, until
from teletape_server.hosts.protocols import Reply, Running
from teletape_server.http.events import PIECE, event_stream
from teletape_server.settings import Settings

EVENTS = {"Accept": "text/event-stream"}


def functions(iterations: int) -> list[dict[str, Any]]:
    """A loop's condition and body: from 0, add 1 while it is below `iterations`."""
    below = {"op": "less", "inputs": ["i", iterations], "outputs": ["more"]}
    power = {"op": "pow", "inputs": ["i", 1], "outputs": ["same"]}  # has no loop in C: each iteration is Python's
    add = {"op": "add", "inputs": ["same", 1], "outputs": ["next"]}
    return [
        {"do": "function", "id": f"below{iterations}", "inputs": ["i"], "steps": [below], "outputs": ["more"]},
        {"do": "function", "id": f"add{iterations}", "inputs": ["i"], "steps": [power, add], "outputs": ["next"]},
    ]


def loop(iterations: int, to: str = "last", **more: Any) -> list[dict[str, Any]]:
    """Commands that count to `iterations` in one of them."""
    count = {
        "do": "while",
        "cond": f"below{iterations}",
        "body": f"add{iterations}",
        "inputs": [0],
        "outputs": [to],
        **more,
    }
    return [*functions(iterations), count]


LONG = 40_000  # iterations of some 50 µs each: longer than the 0.3 s after which progress is reported


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client


def events(response: httpx.Response) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) of a stream."""
    for block in response.read().decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n") if line and not line.startswith(":"))
        if fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])


def test_a_batch_reports_progress_and_answers_last(http: httpx.Client) -> None:
    commands = [*loop(LONG), {"do": "fetch", "id": "last"}]
    response = http.post("/v1/sessions/demo/batch", json={"commands": commands}, headers=EVENTS)
    assert response.headers["content-type"].startswith("text/event-stream")
    *progress, (kind, status, answer) = events(response)
    assert (kind, status) == ("answer", "200")
    assert answer["failure"] is None
    assert answer["results"][0]["value"]["data"] == LONG
    assert {event[0] for event in progress} == {"progress"}
    iterations = [data["iteration"] for _, _, data in progress]
    assert iterations == sorted(iterations)
    assert 0 < iterations[-1] < LONG
    assert progress[-1][2]["total"] == len(commands)


def test_the_iterations_to_come_are_reported_where_they_are_known(http: httpx.Client) -> None:
    power = {"op": "pow", "inputs": ["s", 1.5], "outputs": ["p"]}
    add = {"op": "add", "inputs": ["s", "p"], "outputs": ["t"]}
    commands = [
        {"do": "function", "id": "body", "inputs": ["s"], "steps": [power, add], "outputs": ["t"]},
        {"do": "scan", "body": "body", "inputs": [0.0], "outputs": ["last"], "carried": 1, "length": LONG},
    ]
    response = http.post("/v1/sessions/demo/batch", json={"commands": commands}, headers=EVENTS)
    *progress, (kind, _, answer) = events(response)
    assert (kind, answer["failure"]) == ("answer", None)
    assert {data["iterations"] for _, _, data in progress} == {LONG}


def test_a_refusal_is_the_last_event(http: httpx.Client) -> None:
    response = http.post(
        "/v1/sessions/demo/ops", json={"ops": [{"op": "addd", "inputs": [1, 2], "outputs": ["x"]}]}, headers=EVENTS
    )
    assert response.status_code == 200, "the stream had begun"
    *_, (kind, status, refusal) = events(response)
    assert (kind, status, refusal["code"]) == ("problem", "422", "unknown_op")
    assert refusal["instance"].startswith("urn:teletape:request:")


def test_what_is_refused_before_it_runs_is_an_ordinary_problem(http: httpx.Client) -> None:
    problem(http.post("/v1/sessions/missing/ops", json={}, headers=EVENTS), 404, "unknown_session")


def test_run_reports_progress_and_its_session_is_gone_after_it(http: httpx.Client) -> None:
    response = http.post("/v1/run", json={"commands": loop(LONG), "fetch": ["last"]}, headers=EVENTS)
    *progress, (kind, _, answer) = events(response)
    assert (kind, answer["values"]["last"]["data"]) == ("answer", LONG)
    assert progress
    assert [session["id"] for session in ok(http.get("/v1/sessions")).json()["sessions"]] == ["demo"]


def running(http: httpx.Client) -> dict[str, Any]:
    work: dict[str, Any] = ok(http.get("/v1/sessions/demo")).json()["running"]
    return work


def test_cancel_stops_a_loop_between_iterations_and_the_session_goes_on(http: httpx.Client) -> None:
    body = json.dumps({"commands": [*loop(50_000_000), {"do": "constant", "id": "after", "value": 1.0}]})
    headers = {"Content-Type": "application/json", "Idempotency-Key": "once"}
    assert http.post("/v1/sessions/demo/batch", content=body, headers=headers).status_code == 202
    while not running(http)["iteration"]:
        pass
    ok(http.post("/v1/sessions/demo/cancel"))
    while (answer := http.post("/v1/sessions/demo/batch", content=body, headers=headers)).status_code == 202:
        pass
    failure = ok(answer).json()["failure"]
    assert (failure["code"], failure["command"]) == ("cancelled", 2)
    assert "cancelled, in" in failure["message"], "between iterations, or between the steps of one"
    later = ok(http.post("/v1/sessions/demo/batch", json={"commands": [{"do": "fetch", "id": "after"}]})).json()
    assert later["failure"]["code"] == "poisoned", "both sides know that it was never made"
    fresh = [{"do": "constant", "id": "new", "value": 2.0}, {"do": "fetch", "id": "new"}]
    assert ok(http.post("/v1/sessions/demo/batch", json={"commands": fresh})).json()["failure"] is None


def test_a_cancelled_request_with_events_ends_with_its_failure(http: httpx.Client) -> None:
    with http.stream(
        "POST", "/v1/sessions/demo/batch", json={"commands": loop(50_000_000)}, headers=EVENTS
    ) as response:
        lines = response.iter_lines()
        assert next(lines) == "event: progress"
        ok(http.post("/v1/sessions/demo/cancel"))
        rest = list(lines)
    assert "event: answer" in rest
    assert any('"code":"cancelled"' in line for line in rest)


def test_cancelling_nothing_does_nothing_to_what_comes_later(http: httpx.Client) -> None:
    for _ in range(3):
        ok(http.post("/v1/sessions/demo/cancel"))
    assert ok(http.post("/v1/sessions/demo/ops", json={"ops": [{"op": "add", "inputs": [1.0, 2.0], "outputs": ["x"]}]}))


@contextmanager
def limited(**limits: Any) -> Iterator[httpx.Client]:
    """A client with a session, of a server with limits."""
    with Server(Settings(api_keys=KEYS, **limits)).running() as server, server.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client


def test_a_loop_without_end_is_stopped_by_its_iterations() -> None:
    fine = [*loop(900, "first"), {"do": "fetch", "id": "first"}, *loop(950, "again")]
    with limited(max_iterations=1000) as http:
        answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": loop(5000)})).json()
        assert ok(http.post("/v1/sessions/demo/batch", json={"commands": fine})).json()["failure"] is None
    failure = answer["failure"]
    assert failure["code"] == "resource_exhausted"
    assert failure["details"] == {"iterations": 1001, "limit": 1000}
    assert "maximum_iterations" in failure["message"]


def test_work_without_end_is_stopped_by_the_clock() -> None:
    body = {"op": "matmul", "inputs": ["m", "m"], "outputs": ["p"]}
    commands = [
        {"do": "function", "id": "body", "inputs": ["m"], "steps": [body], "outputs": ["p"]},
        {"do": "op", "op": "fill", "inputs": [0.0], "outputs": ["m"], "attrs": {"shape": [600, 600]}},
        {"do": "scan", "body": "body", "inputs": ["m"], "outputs": ["last"], "carried": 1, "length": 9_000_000},
    ]
    with limited(time_limit=0.5) as http:
        answer = ok(http.post("/v1/sessions/demo/batch", json={"commands": commands})).json()
        refusal = http.post("/v1/run", json={"commands": commands})
    assert answer["failure"]["code"] == "deadline_exceeded"
    detail = problem(refusal, 422, "deadline_exceeded")["detail"]
    assert re.search(r"0\.5 s", detail)  # stopped between two iterations, or before one for which no time was left


def test_a_caller_that_disconnects_from_run_frees_the_server(http: httpx.Client) -> None:
    body = json.dumps({"commands": loop(50_000_000)}).encode()
    with unread_post(http, "/v1/run", body):
        until(lambda: metric(http, "teletape_runs") == 1)
    until(lambda: metric(http, "teletape_runs") == 0)  # the session of the abandoned request has ended


def test_a_large_answer_is_sent_in_pieces() -> None:
    body = b"[1.5,\n" + b"2.5," * (PIECE // 2) + b"3.5]"

    async def parts() -> list[bytes]:
        running = Running(asyncio.get_running_loop().create_future())
        running.reply.set_result(Reply(None, "application/json", memoryview(body), {}))
        request = Request({"type": "http", "headers": []})
        stream = event_stream(request, running, status=200, session_ended=AssertionError, wait=AssertionError)
        return [bytes(part) async for part in stream.body_iterator]  # type: ignore[arg-type]  # bytes

    sent = asyncio.run(parts())
    assert max(map(len, sent)) <= PIECE + 100
    assert b"".join(sent) == b"event: answer\nid: 200\ndata: " + body.replace(b"\n", b"\ndata: ") + b"\n\n"


def test_a_tensor_as_an_event_is_that_of_its_json(http: httpx.Client) -> None:
    commands = [{"do": "op", "op": "broadcast_to", "inputs": [0.125], "attrs": {"shape": [600, 600]}, "outputs": ["x"]}]
    ok(http.post("/v1/sessions/demo/run", json={"commands": commands}))
    path = "/v1/sessions/demo/tensors/x?full=true"
    *_, (name, id, tensor) = events(ok(http.get(path, headers=EVENTS)))
    assert (name, id, tensor) == ("answer", "200", ok(http.get(path)).json())
