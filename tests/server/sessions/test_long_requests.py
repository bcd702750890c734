"""Requests with an address: what takes long, or is to be answered later, is waited for there, without its body."""

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from rest_client import Rest, op

import teletape as tf
import teletape_wire as wire
from serving import KEYS, Program, Server, ok, problem, until
from teletape_engine.commands import Assign, Batch, Constant, Fetch
from teletape_engine.recording.values import Literal
from teletape_server.handlers.idempotency import Once, RequestNotFoundError
from teletape_server.handlers.methods import Request, Result
from teletape_server.ipc.control import Control, Watcher
from teletape_server.settings import Settings

ASYNC = {"Prefer": "respond-async"}
EVENTS = {"Accept": "text/event-stream"}
RUN = {"commands": [{"do": "op", "op": "exp", "inputs": [0.5], "outputs": ["x"]}], "fetch": ["x"]}
BUMP = {
    "id": "bump",
    "inputs": ["x", "v"],
    "outputs": ["y"],
    "steps": [{"do": "assign", "variable": "v", "value": 1.0, "mode": "add"}, op("square", "x", to="y")],
}
LOSS = {"id": "loss", "inputs": ["v"], "outputs": ["y"], "steps": [op("square", "v", to="y")]}
#: Requests to a session: verb, path below the session's, body; each adds 1 to the variable, or says why it does not.
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "a new tensor": ("POST", "tensors", {"value": [1.0, 2.0]}),
    "an assignment": ("PUT", "variables/v", {"mode": "add", "value": 1.0}),
    "a gradient of a tape": ("POST", "tapes/tape/gradient", {"target": "y", "sources": ["x"]}),
    "a picture of a tape": ("GET", "tapes/tape/graph", None),
    "a function call": ("POST", "functions/bump/call", {"inputs": [2.0, "v"]}),
    "a training": (
        "POST",
        "functions/loss/train",
        {"inputs": {"v": "v"}, "optimizer": {"name": "sgd", "learning_rate": 0.1}, "steps": 3},
    ),
    "a batch": ("POST", "batch", {"commands": [{"do": "assign", "variable": "v", "value": 1.0, "mode": "add"}]}),
    "a deletion": ("DELETE", "tensors/x", None),
    "what is refused": ("POST", "ops", {"ops": [op("exp", "nothing", to="z")]}),
}


SETTINGS = Settings(api_keys=KEYS, admins=frozenset({"bob"}), patience=0.05, shutdown_grace=0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that is not patient."""
    with Server(SETTINGS).running() as item:
        yield item


@pytest.fixture
def rest(server: Server) -> Iterator[Rest]:
    with server.client() as http:
        yield prepared(http, "demo")
        for name in ("demo", "other"):
            http.delete(f"/v1/sessions/{name}")


@pytest.fixture
def own_server() -> Iterator[Server]:
    """One for a test that moves its clock, or counts."""
    with Server(SETTINGS).running() as item:
        yield item


def prepared(http: httpx.Client, name: str) -> Rest:
    """A session with what the requests name."""
    ok(http.post("/v1/sessions", json={"id": name}))
    rest = Rest(http, name)
    rest.create("variables", {"id": "v", "value": 0.0})
    rest.create("tensors", {"id": "x", "value": 3.0})
    rest.create("functions", BUMP)
    rest.create("functions", LOSS)
    rest.create("tapes", {"id": "tape", "persistent": True})
    rest.done("tapes/tape/watch", {"tensors": ["x"]})
    rest.done("tapes/tape/ops", {"ops": [op("square", "x", to="y")]})
    return rest


@contextlib.contextmanager
def stopped(server: Server, session: str = "demo") -> Iterator[None]:
    """A block in which the session's process does nothing."""
    worker = server.worker(session)
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


def accepted(response: httpx.Response) -> str:
    """The address in a response that is to be followed."""
    assert response.status_code == 202, response.text
    assert response.json()["status"] == "running"
    assert response.headers["retry-after"] == "1"
    location: str = response.headers["location"]
    assert location.startswith("/v1/requests/")
    assert len(location) > len("/v1/requests/") + 20
    return location


def answer_at(http: httpx.Client, location: str, **headers: str) -> httpx.Response:
    """The answer of a request, which is waited for."""
    while (response := http.get(location, headers=headers)).status_code == 202:
        assert response.headers["location"] == location
    return response


def send(rest: Rest, name: str, **headers: str) -> httpx.Response:
    verb, path, body = REQUESTS[name]
    content = {} if body is None else {"json": body}
    return rest.http.request(verb, f"{rest.path}/{path}", headers=headers, **content)


def comparable(response: httpx.Response) -> Any:
    """What two answers to the same request have in common; not times, and ids that the server makes."""
    text = re.sub(r"_[0-9a-f]{12}", "_ID", response.text)
    if response.headers.get("content-type", "").startswith(("application/json", "application/problem")):
        content = json.loads(text)
        for name in ("id", "instance", "queue_seconds", "compute_seconds", "expires_at"):
            content.pop(name, None)
        text = json.dumps(content)
    named = [name in response.headers for name in ("etag", "location")]
    return response.status_code, response.headers.get("content-type"), named, text


# ------------------------------------------------------------------------------------------------ every kind of request
@pytest.mark.parametrize("name", REQUESTS)
def test_any_request_to_a_session_is_answered_later_with_the_very_answer(server: Server, rest: Rest, name: str) -> None:
    expected = send(prepared(rest.http, "other"), name)
    assert expected.status_code != 202
    value = Rest(rest.http, "other").data("variables/v")
    response = send(rest, name, **ASYNC)
    assert response.headers["preference-applied"] == "respond-async"
    location = accepted(response)
    for _ in range(2):
        answer = answer_at(rest.http, location)
        assert comparable(answer) == comparable(expected)
        assert "idempotent-replayed" not in answer.headers
    assert rest.data("variables/v") == value, "it was executed once"
    assert ok(rest.http.get(location)).headers["teletape-boot-id"] if expected.is_success else True


def test_a_frame_is_answered_later_as_a_frame_with_and_without_an_identity(server: Server, rest: Rest) -> None:
    program = Program(rest.http, "demo")
    add = Assign("v", Literal(1.0), "add")
    batches = [
        program.batch(add, Fetch("v")),
        Batch((add, Fetch("v")), (), 0, 0, b""),
        Batch((add,), (), 0, 0, b"n" * 16),
    ]
    for total, batch in enumerate(batches, 1):
        location = accepted(program.post(batch, **ASYNC))
        for _ in range(2):
            answer = ok(answer_at(rest.http, location, Accept=wire.FRAME_TYPE))
            assert answer.headers["content-type"] == wire.FRAME_TYPE
            assert "idempotent-replayed" not in answer.headers
            assert wire.decode_answer(answer.content)[0].failure is None
        assert rest.data("variables/v") == total
    program.run(Fetch("v"))
    location = accepted(program.post(program.batch(Fetch("v")), **ASYNC))
    program.seq -= 1
    assert program.run(Fetch("v")).failure is None, (
        "a frame that was to be answered later is its client's like any other"
    )
    ok(answer_at(rest.http, location))
    program.run(Fetch("v"))
    problem(answer_at(rest.http, location), 404, "request_not_found")


def test_what_no_session_answers_is_answered_later_too(server: Server) -> None:
    with server.client() as http:
        for path, body, status in (
            ("/v1/run", RUN, 200),
            ("/v1/run?full=true", {"commands": []} | {"fetch": ["none"]}, None),
            ("/v1/sessions", {"id": "made"}, 201),
            ("/v1/sessions/made/extend", {"seconds": 60}, 200),
            ("/v1/expressions", {"text": "y = x * x"}, 200),
            ("/v1/sessions", {"id": "m", "memory": 5}, 422),
            ("/v1/sessions", {"device": "gpu:99"}, 422),
        ):
            location = accepted(http.post(path, json=body, headers=ASYNC))
            answer = answer_at(http, location)
            again = answer_at(http, location)
            assert comparable(answer) == comparable(again)
            assert "idempotent-replayed" not in again.headers
            if status is None:
                assert answer.status_code >= 400
                assert comparable(answer) == comparable(http.post(path, json=body))
            else:
                assert answer.status_code == status, answer.text
                assert ("location" in answer.headers) == (status == 201)


@pytest.mark.parametrize("path", ["/v1/run", "/v1/expressions"])
def test_an_answer_that_comes_in_the_time_that_its_caller_waits_is_given_at_once(path: str) -> None:
    with Server(Settings()).running() as server, server.client() as http:
        body = RUN if path == "/v1/run" else {"text": "x * x"}
        answer = ok(http.post(path, json=body, headers={"Prefer": 'foo; bar=1, RESPOND-ASYNC, wait="60"'}))
        assert (answer.status_code, "preference-applied" in answer.headers) == (200, False)
        created = prepared(http, "demo").post("tensors", {"value": 1.5}, Prefer="wait=60,respond-async")
        assert created.status_code == 201
        assert ok(http.post(path, json=body, headers={"Prefer": "return=minimal, wait=soon"})).status_code == 200


# ------------------------------------------------------------------------------------------------------- while it runs
def test_all_who_wait_for_a_request_wait_for_one_and_a_retry_joins_it(server: Server, rest: Rest) -> None:
    headers = {"Idempotency-Key": "add"}
    with stopped(server):
        first, second = (send(rest, "an assignment", **headers) for _ in range(2))
        location = accepted(first)
        assert accepted(second) == location
        assert accepted(rest.http.get(location)) == location
        assert accepted(send(rest, "an assignment", **headers, **ASYNC)) == location
        assert len(server.app.state.registry.find("ann", "demo").running) == 1
        conflict = rest.put("variables/v", {"mode": "add", "value": 2.0}, **headers)
        assert "'add'" in problem(conflict, 422, "idempotency_conflict")["detail"]
        frame = b"".join(wire.encode_batch(Batch((Constant("k", 1.0),), ())).buffers)
        conflict = rest.http.post(
            f"{rest.path}/batch", content=frame, headers=headers | {"Content-Type": wire.FRAME_TYPE}
        )
        problem(conflict, 422, "idempotency_conflict")
    ok(answer_at(rest.http, location))
    assert rest.data("variables/v") == 1.0


def test_a_frame_under_a_key_joins_and_is_compared(server: Server, rest: Rest) -> None:
    def post(*commands: Any) -> httpx.Response:
        content = b"".join(wire.encode_batch(Batch(commands, ())).buffers)
        headers = {"Content-Type": wire.FRAME_TYPE, "Idempotency-Key": "frame"}
        return rest.http.post(f"{rest.path}/batch", content=content, headers=headers)

    add = Assign("v", Literal(1.0), "add")
    with stopped(server):
        location = accepted(post(add))
        assert accepted(post(add)) == location
        assert len(server.app.state.registry.find("ann", "demo").running) == 1
        problem(post(add, add), 422, "idempotency_conflict")
    answer = ok(answer_at(rest.http, location))
    assert answer.content == ok(post(add)).content
    assert rest.data("variables/v") == 1.0


def test_the_same_requests_whose_bodies_come_at_the_same_time_run_once(server: Server, rest: Rest) -> None:
    """Neither knows of the other when its body begins to come."""
    program = Program(rest.http, "demo")
    frame = b"".join(wire.encode_batch(program.batch(Assign("v", Literal(1.0), "add"))).buffers)
    as_json = json.dumps(REQUESTS["an assignment"][2]).encode()
    entry = server.app.state.registry.find("ann", "demo")
    for verb, path, body, headers in (
        ("POST", "batch", frame, {"Content-Type": wire.FRAME_TYPE}),
        ("PUT", "variables/v", as_json, {"Content-Type": "application/json", "Idempotency-Key": "twice"}),
    ):
        go_on = threading.Event()
        statuses: list[int] = []

        def parts(body: bytes = body, go_on: threading.Event = go_on) -> Iterator[bytes]:
            yield body[:-1]
            go_on.wait()
            yield body[-1:]

        def post(
            verb: str = verb, path: str = path, body: bytes = body, headers: Any = headers, statuses: Any = statuses
        ) -> None:
            with server.client() as http:
                length = {"Content-Length": str(len(body))}
                answer = http.request(verb, f"{rest.path}/{path}", content=parts(), headers=headers | length)
                statuses.append(answer.status_code)

        with stopped(server):
            threads = [threading.Thread(target=post) for _ in range(2)]
            for thread in threads:
                thread.start()
            until(lambda: entry.receiving == 2)
            go_on.set()
            for thread in threads:
                thread.join()
            assert statuses == [202, 202]
            assert len(entry.running) == 1
            assert entry.receiving == 0
        until(lambda: not entry.running)
    assert rest.data("variables/v") == 2.0


def test_the_answer_of_a_frame_that_joined_says_that_it_is_replayed() -> None:
    with Server(Settings(patience=600.0, shutdown_grace=0.1)).running() as server, server.client() as http:
        prepared(http, "demo")
        program = Program(http, "demo")
        batch, marks = program.batch(Fetch("v")), list[str | None]()

        def post() -> None:
            with server.client() as client:
                marks.append(
                    ok(client.post(program.path, content=body, headers=headers)).headers.get("idempotent-replayed")
                )

        body, headers = b"".join(wire.encode_batch(batch).buffers), {"Content-Type": wire.FRAME_TYPE}
        threads = [threading.Thread(target=post) for _ in range(2)]
        worker = server.worker("demo", owner="local")
        os.kill(worker, signal.SIGSTOP)
        for count, thread in enumerate(threads, 1):
            thread.start()
            until(lambda count=count: server.answering() == count)
        os.kill(worker, signal.SIGCONT)
        for thread in threads:
            thread.join()
        assert sorted(marks, key=str) == [None, "true"]


def test_events_have_the_progress_of_a_request_and_then_its_answer(server: Server, rest: Rest) -> None:
    with stopped(server):
        location = accepted(send(rest, "a function call", **ASYNC))
        with rest.http.stream("GET", location, headers=EVENTS) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            assert next(lines) == "event: progress"
            os.kill(server.worker("demo"), signal.SIGCONT)
            text = "\n".join(lines)
    _, _, last = text.partition("event: answer\nid: 200\ndata: ")
    assert json.loads(last.split("\n")[0]) == ok(rest.http.get(location)).json()
    assert "event: answer\nid: 200" in ok(rest.http.get(location, headers=EVENTS)).text
    refused = answer_at(rest.http, accepted(send(rest, "what is refused", **ASYNC)), **EVENTS)
    assert "event: problem\nid: 404" in refused.text
    created = rest.http.post("/v1/sessions", json={"id": "demo"}, headers=EVENTS | {"Idempotency-Key": "existing"})
    assert ok(created).json()["id"] == "demo", "a creation has no events of its own"
    run = accepted(rest.http.post("/v1/run", json=RUN, headers=ASYNC | EVENTS))
    assert "event: answer\nid: 200" in ok(rest.http.get(run, headers=EVENTS)).text


def test_a_get_waits_no_longer_than_its_caller_wants() -> None:
    with (
        Server(Settings(api_keys=KEYS, patience=600.0, shutdown_grace=0.1)).running() as server,
        server.client() as http,
    ):
        rest = prepared(http, "demo")
        with stopped(server):
            location = accepted(send(rest, "an assignment", **ASYNC))
            for prefer in ("wait=0", "respond-async, wait=0"):
                assert accepted(http.get(location, headers={"Prefer": prefer})) == location
            assert accepted(send(rest, "a new tensor", Prefer="wait=0", **{"Idempotency-Key": "new"})) != location
        assert ok(http.get(location, headers=ASYNC)).status_code == 200, (
            "it waits for the answer, whatever is preferred"
        )


# ------------------------------------------------------------------------------------------------------------ cancelled
ENDLESS = {"inputs": [{"dtype": "float32", "data": 1.0}], "carried": 1, "length": 9_000_000}
SLOW = {"id": "slow", "inputs": ["x"], "outputs": ["y"], "steps": [op("pow", "x", 1.0, to="y")]}

ENDLESS_RUN = {
    "commands": [{"do": "function", **SLOW}, {"do": "scan", "body": "slow", "outputs": ["z"], **ENDLESS}],
    "fetch": ["z"],
}


def is_cancelled(response: httpx.Response) -> bool:
    """Whether a problem, or the failure of a batch, says that it was cancelled."""
    facts = response.json()
    return "cancelled" in (facts.get("code"), (facts.get("failure") or {}).get("code"))


def test_deleting_a_request_cancels_it_and_no_other_one(rest: Rest) -> None:
    """The one that runs, and another that waits."""
    rest.create("functions", SLOW)
    running = accepted(rest.post("functions/slow/scan", ENDLESS, **ASYNC))
    until(lambda: (ok(rest.http.get(rest.path)).json()["running"] or {"iteration": 0})["iteration"] > 0)
    waiting, other = (accepted(send(rest, name, **ASYNC)) for name in ("an assignment", "a function call"))
    for location in (waiting, running):
        assert accepted(rest.http.delete(location)) == location
    for location in (running, waiting):
        assert is_cancelled(answer_at(rest.http, location)), location
        assert rest.http.delete(location).status_code == 204, "it has ended"
        assert is_cancelled(answer_at(rest.http, location)), "its answer stays"
    ok(answer_at(rest.http, other))
    assert rest.data("variables/v") == 1.0


def test_a_frame_and_a_run_are_cancelled_too(rest: Rest) -> None:
    rest.create("functions", SLOW)
    run = accepted(rest.http.post("/v1/run", json=ENDLESS_RUN, headers=ASYNC))
    batch = wire.batch_from_json({"commands": ENDLESS_RUN["commands"][1:]})
    program = Program(rest.http, "demo")
    frame = accepted(program.post(Batch(batch.commands, (), program.client, 1, b"n" * 16)))
    for location in (frame, run):
        assert accepted(rest.http.delete(location)) == location
    assert is_cancelled(answer_at(rest.http, run))
    answer, _ = wire.decode_answer(ok(answer_at(rest.http, frame)).content)
    assert answer.failure is not None
    assert answer.failure.code == "cancelled"


def test_a_run_that_waits_for_its_turn_has_an_address_and_is_cancelled() -> None:
    settings = dataclasses.replace(SETTINGS, runs=1, patience=600.0)  # for a turn too
    with Server(settings).running() as server, server.client() as http:
        first = accepted(http.post("/v1/run", json=ENDLESS_RUN, headers=ASYNC))
        second, third = (accepted(http.post("/v1/run", json=RUN, headers=ASYNC)) for _ in range(2))
        accepted(http.get(second, headers={"Prefer": "wait=0"}))
        assert accepted(http.delete(second)) == second
        assert is_cancelled(answer_at(http, second))
        http.delete(first)
        assert is_cancelled(answer_at(http, first))
        ok(answer_at(http, third))


def test_an_answer_that_waits_for_another_request_says_that_its_own_has_ended(server: Server, rest: Rest) -> None:
    location = accepted(rest.http.post(f"{rest.path}/run", json={"commands": []}, headers=ASYNC))
    ok(answer_at(rest.http, location))
    with stopped(server):
        running = accepted(rest.http.post(f"{rest.path}/run", json={"commands": []}, headers=ASYNC))
        ended = [rest.http.get(address, headers={"Prefer": "wait=0"}) for address in (location, running)]
        assert [accepted(response) for response in ended] == [location, running]
        assert [response.json()["has_ended"] for response in ended] == [True, False]
    ok(answer_at(rest.http, location))


def test_another_run_under_a_key_is_refused_however_it_is_to_be_answered(server: Server) -> None:
    with server.client() as http:
        headers = {"Idempotency-Key": "run", **ASYNC}
        location = accepted(http.post("/v1/run", json=ENDLESS_RUN, headers=headers))
        assert accepted(http.post("/v1/run", json=ENDLESS_RUN, headers=headers)) == location
        for prefers in ({}, ASYNC, {"Prefer": "respond-async, wait=1"}):
            conflict = http.post("/v1/run", json=RUN, headers=headers | {"Prefer": ""} | prefers)
            problem(conflict, 422, "idempotency_conflict")
        assert http.delete(location).status_code == 202
        problem(answer_at(http, location), 409, "cancelled")


def test_cancels_of_single_requests_that_find_no_room_are_sent_later() -> None:
    """The process of the session does not read for a while."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        control, watcher, numbers = Control(ours), Watcher(theirs, lambda: None), {*range(1, 100), -5}
        with contextlib.suppress(BlockingIOError):
            while True:
                control.sock.send(struct.pack("<cq", b"c", 0))
        for number in numbers:
            control.cancel_one(number)
        assert not watcher.cancelled
        watcher.start()

        def is_sent() -> bool:
            control.send_again()
            return {*watcher.cancelled} == numbers

        until(is_sent)
        assert watcher.cancelled_up_to == 0
        for number in range(1000, 1300):
            control.cancel_one(number)
            until(lambda number=number: number in watcher.cancelled)
        assert watcher.cancelled == (*range(1044, 1300),), "no more requests wait at a time"
        ours.shutdown(socket.SHUT_RDWR)
        until(lambda: watcher.has_ended)


def test_the_creation_of_a_session_goes_on(server: Server) -> None:
    with server.client() as http:
        location = accepted(http.post("/v1/sessions", json={"id": "begun"}, headers=ASYNC))
        assert http.delete(location).status_code in (202, 204)
        assert answer_at(http, location).status_code == 201
        assert http.delete(location).status_code == 204
        assert answer_at(http, location).status_code == 201


# ------------------------------------------------------------------------------------------------- whose, and how long
def test_a_request_is_its_owners_and_an_admins(rest: Rest, server: Server) -> None:
    with server.client("bob") as bob:
        mine, theirs = (accepted(item.post("/v1/run", json=RUN, headers=ASYNC)) for item in (rest.http, bob))
        for method in ("GET", "DELETE"):
            problem(rest.http.request(method, theirs), 404, "request_not_found")
            problem(rest.http.request(method, f"{mine}x"), 404, "request_not_found")
        assert answer_at(bob, mine).content == answer_at(rest.http, mine).content
    with server.client(None) as stranger:
        problem(stranger.get(mine), 401, "unauthenticated")


def test_an_answer_is_kept_for_the_window_which_begins_with_it(own_server: Server) -> None:
    server, window = own_server, own_server.settings.idempotency_window
    with server.client() as http:
        rest = prepared(http, "demo")
        ok(rest.post("extend", {"seconds": 4 * window}))
        with stopped(server):
            late = accepted(send(rest, "an assignment", **ASYNC))
            server.clock.ahead += window / 2
            assert accepted(http.get(late)) == late
        ok(answer_at(http, late))
        refused = accepted(http.post("/v1/sessions", json={"device": "gpu:99"}, headers=ASYNC))
        run = accepted(http.post("/v1/run", json=RUN, headers=ASYNC))
        problem(answer_at(http, refused), 422, "unknown_device")
        ok(answer_at(http, run))
        server.clock.ahead += window / 2 - 60
        for location in (late, run):
            ok(answer_at(http, location))
        server.clock.ahead += window / 2 + 61
        for location in (late, refused, run):
            problem(http.get(location), 404, "request_not_found")
            problem(http.delete(location), 404, "request_not_found")


def test_a_reply_is_known_for_the_window_after_it_however_long_its_request_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])

    def run(name: str, request: Request) -> Result:
        seconds[0] += 500.0
        return Result("text/plain", [b"done"], 4)

    def request(**params: Any) -> Request:
        return Request(params, "", memoryview(b""), 0, lambda: False, lambda *_, **__: None, seconds[0])

    once = Once(60.0)
    once.run("key", "kind", request(now=1000.0), run)
    assert isinstance(once.run("key", "kind", request(now=1559.0), run), Result)
    assert seconds[0] == 600.0, "it was not run again"
    stored = once.run("key", "kind", request(now=1559.0, stored=True), run)
    assert isinstance(stored, Result)
    assert stored.facts == {}
    with pytest.raises(RequestNotFoundError, match="idempotency_window"):
        once.run("key", "kind", request(now=1561.0, stored=True), run)


def test_of_too_many_answers_of_one_owner_the_first_have_no_address_any_more(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.long_requests._MOST", 2)
    with own_server.client() as http, own_server.client("bob") as bob:

        def expression(client: httpx.Client) -> str:
            location = accepted(client.post("/v1/expressions", json={"text": "x"}, headers=ASYNC))
            ok(answer_at(client, location))
            return location

        rest, other = prepared(http, "demo"), expression(bob)
        with stopped(own_server):
            running = accepted(send(rest, "an assignment", **ASYNC))
            locations = [expression(http) for _ in range(3)]
            problem(http.get(locations[0]), 404, "request_not_found")
            for location in locations[1:]:
                ok(http.get(location))
            assert accepted(http.get(running)) == running
        ok(answer_at(http, running))
        problem(http.get(locations[1]), 404, "request_not_found")
        ok(answer_at(bob, other))


def test_the_front_keeps_no_answer_of_a_session(own_server: Server) -> None:
    """Its process has it, and the memory that it came in is used again."""
    with own_server.client() as http:
        prepared(http, "demo")
        body = {"commands": [{"do": "fetch", "id": "x"}]}
        location = accepted(http.post("/v1/sessions/demo/batch", json=body, headers=ASYNC))
        for _ in range(2):
            ok(answer_at(http, location))
            [(_, long)] = own_server.app.state.long_requests._ended.values()
            until(lambda: long.running is None)  # noqa: B023  # it is called here


# ---------------------------------------------------------------------------------------------------------- the SDK
class Relay(socketserver.ThreadingTCPServer):
    """Passes what callers send on to a server, and counts it: `received` bytes, and `polls` of requests."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self, server: Server) -> None:
        self.target, self.received, self.polls = ("127.0.0.1", server.port), 0, 0
        super().__init__(("127.0.0.1", 0), Relayed)

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        """Yields its address."""
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{self.server_address[1]}"
        self.shutdown()
        self.server_close()


class Relayed(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        with socket.create_connection(self.server.target) as there:
            back = threading.Thread(target=self.answer, args=(there,), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while data := self.request.recv(1 << 20):
                    self.server.received += len(data)
                    self.server.polls += data.count(b"GET /v1/requests/")
                    there.sendall(data)
                there.shutdown(socket.SHUT_WR)
            back.join()

    def answer(self, there: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := there.recv(1 << 20):
                self.request.sendall(data)


def test_the_sdk_sends_the_body_of_a_batch_once_however_long_it_takes(server: Server) -> None:
    relay, numbers = Relay(server), np.arange(300_000.0)
    with relay.running() as url, tf.connect(url, api_key=KEYS["ann"]) as session:
        total = tf.Variable(np.zeros(300_000))
        total.numpy()
        before, worker = relay.received, server.worker(session.id)
        os.kill(worker, signal.SIGSTOP)

        def go_on() -> None:
            until(lambda: relay.polls >= 3)
            os.kill(worker, signal.SIGCONT)

        waiting = threading.Thread(target=go_on)
        waiting.start()
        total.assign_add(numbers)
        assert np.array_equal(total.numpy(), numbers)
        waiting.join()
        assert numbers.nbytes <= relay.received - before < 1.1 * numbers.nbytes


# ----------------------------------------------------------------------------------------------------------- at the end
def test_the_requests_of_a_session_end_with_it(rest: Rest, server: Server) -> None:
    ended = accepted(send(rest, "a new tensor", **ASYNC))
    ok(answer_at(rest.http, ended))
    with stopped(server):
        cut = accepted(send(rest, "a new tensor", **ASYNC))
        ok(rest.http.delete(rest.path))
    for location in (ended, cut):
        problem(rest.http.get(location), 410, "session_ended")
    prepared(rest.http, "demo")
    for location in (ended, cut):
        assert "send the request again" in problem(rest.http.get(location), 404, "request_not_found")["detail"].lower()


def test_a_restarted_server_knows_no_requests(rest: Rest) -> None:
    location = accepted(send(rest, "a new tensor", **ASYNC))
    ok(answer_at(rest.http, location))
    with Server(Settings(api_keys=KEYS)).running() as other, other.client() as http:
        response = http.get(location)
        problem(response, 404, "request_not_found")
        assert response.headers["teletape-boot-id"] == http.get("/v1/info").json()["boot_id"]
