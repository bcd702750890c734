"""Frames: a connection answers the plain ones itself, the framework the others, and no caller sees a difference."""

import contextlib
import dataclasses
import errno
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from frame_streams import GOOD, MIB, PATH, REFUSED, Answered, Stream, answer, frame, head, host_of

import teletape_wire as wire
from serving import KEYS, Program, Server, needs_exchange, ok, problem, until
from teletape_engine.commands import Assign, Batch, Call, Constant, Fetch, MakeVariable
from teletape_engine.recording.values import Literal
from teletape_server.hosts.protocols import Reply
from teletape_server.identity.keys import environment_keys
from teletape_server.settings import Settings

#: What makes a frame another request for the server, and the same batch for its session.
WAYS = {"connection": "", "framework": "?encoding="}


class Framework:
    """Counts the requests that reach the framework."""

    def __init__(self, server: Server) -> None:
        self._app = server.app.middleware_stack
        self.requests = 0
        server.app.middleware_stack = self  # type: ignore[assignment]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests += scope["type"] == "http"
        await self._app(scope, receive, send)  # type: ignore[misc]


@pytest.fixture(scope="module")
def framed() -> Iterator[Server]:
    """A server with small limits, where nothing ends by itself while a test looks at it."""
    settings = Settings(
        api_keys=KEYS,
        max_body=64 * MIB,
        bodies_per_key=80 * MIB,
        bodies=100 * MIB,
        max_header=8 * MIB,
        patience=600.0,
        stall_limit=600.0,
        shutdown_grace=0.1,
    )
    with Server(settings).running() as server:
        yield server


@pytest.fixture(scope="module")
def framework(framed: Server) -> Framework:
    return Framework(framed)


@pytest.fixture
def http(framed: Server) -> Iterator[httpx.Client]:
    with framed.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client
        client.delete("/v1/sessions/demo")


@pytest.fixture
def program(http: httpx.Client) -> Program:
    return Program(http, "demo")


def beginning(length: int) -> bytes:
    """The prefix of a frame of that length."""
    return GOOD[:48] + (0).to_bytes(8, "little") + length.to_bytes(8, "little")


def exchange(server: Server, *parts: bytes) -> Answered:
    """Sends the parts through a connection of their own, and returns the first answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        for part in parts:
            sock.sendall(part)
        return answer(sock)


def under_way(server: Server) -> dict[str, int]:
    """The bodies, the memory for them and the requests that are left."""
    registry, host = server.app.state.registry, host_of(server)
    host.channel._take_back()
    counts = {
        "bytes": registry.bodies.counts[None],
        "bytes of ann": registry.bodies.counts["ann"],
        "receiving": registry.find("ann", "demo").receiving,
        "requests": server.answering(),
        "segments": len(host.channel.pool.segments) - len(host.channel.pool.idle),
    }
    return {name: count for name, count in counts.items() if count}


# ------------------------------------------------------------------------------------------------------- which way
@needs_exchange
def test_plain_frames_do_not_reach_the_framework(framework: Framework, program: Program) -> None:
    before = framework.requests
    array = np.arange(MIB, dtype=np.float32)
    program.run(Constant(1, array))
    for i in range(5):
        (fetched,) = program.run(Call("neg", (1,), (i + 2,)), Fetch(i + 2)).results
        assert np.array_equal(fetched.array, -array)  # type: ignore[union-attr]
    assert ok(program.post(program.batch(), **{"X-Request-Id": "mine"})).headers["x-request-id"] == "mine"
    assert framework.requests == before


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (PATH + "?full=true", {}),
        (PATH + "?", {}),
        ("/v1/sessions/dem%6f/batch", {}),
        (PATH, {"Accept": "application/json"}),
        (PATH, {"Accept": "text/event-stream"}),
        (PATH, {"Idempotency-Key": "k"}),
        (PATH, {"Expect": "100-continue"}),
        (PATH, {"Connection": "Upgrade", "Upgrade": "h2c"}),
    ],
)
def test_other_frames_reach_the_framework(
    framed: Server, framework: Framework, program: Program, path: str, headers: dict[str, str]
) -> None:
    before = framework.requests
    body = frame(program.batch())
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sock.sendall(head(len(body), path=path, **headers))
        if "Expect" in headers:
            assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        status = answer(sock).status
    assert status == (400 if "Upgrade" in headers else 200)  # there is no other protocol to go on with
    assert framework.requests == before + 1


def test_an_older_protocol_and_chunks_reach_the_framework(framed: Server, framework: Framework, http: Any) -> None:
    before = framework.requests
    assert exchange(framed, head(0).replace(b"HTTP/1.1", b"HTTP/1.0")).status == 400
    chunked = head(0, Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
    assert exchange(framed, chunked, b"0\r\n\r\n").status == 411
    assert framework.requests == before + 2


def test_a_known_head_is_asked_for_its_key_again_after_the_keys_have_changed(framed: Server, program: Program) -> None:
    keys, now = framed.app.state.keys, framed.app.state.keys.fixed
    body = frame(program.batch())
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        for _ in range(2):
            sock.sendall(head(len(body)) + body)
            assert answer(sock).status == 200
        keys.fixed = environment_keys({"ann": "another-secret"}, ())
        keys.replace(())
        try:
            sock.sendall(head(len(body)) + body)
            assert answer(sock).status == 401
        finally:
            keys.fixed = now
            keys.replace(())


# -------------------------------------------------------------------------------------------------- equal answers


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_the_same_on_both_ways(framed: Server, http: httpx.Client, name: str) -> None:
    status, code, body, headers = REFUSED[name]
    fields = dict(headers)
    path = fields.pop("path", PATH)
    refusals = []
    for query in WAYS.values():
        for is_known in (False, True):  # whether the connection has seen such a head before
            with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
                if is_known:
                    sock.sendall(head(len(GOOD), path=PATH + query) + GOOD)
                    assert answer(sock).status == 200
                sock.sendall(head(len(body), path=path + query, **fields) + body)
                refusals.append(answer(sock))
    for item in refusals:
        refusal = problem(httpx.Response(item.status, headers=item.headers, content=item.body), status, code)
        assert refusal["instance"].endswith(dict(item.headers)["x-request-id"])
        assert item.comparable() == refusals[0].comparable()
    until(lambda: not under_way(framed))


def both_ways(server: Server, *parts: bytes) -> list[Any]:
    """What both ways answer, each to a connection of its own, as far as it must be equal."""
    return [
        exchange(server, parts[0].replace(PATH.encode(), (PATH + query).encode(), 1), *parts[1:]).comparable()
        for query in WAYS.values()
    ]


def test_answers_are_the_same_on_both_ways(framed: Server, program: Program) -> None:
    """The second one is a retry: it gets the first one's answer again, with a header that says so."""
    program.run(Constant(1, np.ones(4, np.float32)))
    for commands in ((), (Fetch(1),), (Fetch(99),)):
        body = frame(program.batch(*commands))
        exchange(framed, head(len(body)), body)
        first, second = both_ways(framed, head(len(body)) + body)
        assert first == second
        assert first[0] == 200
    names = {name for name, _ in first[1]}
    assert {"content-type", "content-length", "teletape-boot-id"} <= names


def test_a_connection_that_is_to_be_closed_is(framed: Server, http: httpx.Client) -> None:
    for query in WAYS.values():
        with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
            sock.sendall((head(len(GOOD), path=PATH + query, Connection="close") + GOOD) * 2)
            received = b""
            while part := sock.recv(1 << 16):
                received += part
        assert received.count(b"HTTP/1.1 200 OK") == 1
        assert b"\r\nconnection: close\r\n" in received


def test_a_server_without_keys_refuses_foreign_callers_on_both_ways(server_url: str) -> None:
    port = httpx.URL(server_url).port
    with httpx.Client(base_url=server_url, timeout=60, trust_env=False) as client:
        ok(client.post("/v1/sessions", json={"id": "frames"}))
        path = "/v1/sessions/frames/batch"
        for fields, code in (
            ({"Host": "evil.example"}, "foreign_host"),
            ({"Host": f"localhost:{port}", "Origin": "https://evil.example"}, "foreign_origin"),
            ({"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}, None),
        ):
            refusals = []
            for query in WAYS.values():
                with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
                    for _ in range(2):
                        sock.sendall(head(len(GOOD), path=path + query, **fields) + GOOD)  # type: ignore[arg-type]
                        refusals.append(answer(sock))
            assert len({str(item.comparable()) for item in refusals}) == 1
            assert refusals[0].status == (200 if code is None else 403)
            assert code is None or json.loads(refusals[0].body)["code"] == code
        client.delete("/v1/sessions/frames")


def test_too_many_waiting_requests_are_refused_on_both_ways(framed: Server, program: Program) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(128):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", framed.port), timeout=60))
            sock.sendall(head(len(GOOD) + 1000) + beginning(len(GOOD) + 1000))
        until(lambda: framed.app.state.registry.find("ann", "demo").receiving == 128)
        first, second = both_ways(framed, head(len(GOOD)) + GOOD)
        assert first == second
        assert (first[0], json.loads(first[2])["code"]) == (429, "busy")
        assert ("retry-after", "1") in first[1]
    until(lambda: not under_way(framed))


def test_too_many_bytes_are_refused_on_both_ways(framed: Server, program: Program) -> None:
    """The first body is received into its memory directly, the others are refused before memory is taken."""
    host = host_of(framed)
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sock.sendall(head(60 * MIB) + beginning(60 * MIB))
        until(lambda: bool(framed.app.state.registry.bodies.counts["ann"]))
        segments = len(host.channel.pool.segments)
        first, second = both_ways(framed, head(30 * MIB), beginning(30 * MIB))
        assert first == second
        assert (first[0], json.loads(first[2])["details"]) == (429, {"found": 60 * MIB, "limit": 80 * MIB})
        assert len(host.channel.pool.segments) == segments
    until(lambda: not under_way(framed))


@pytest.mark.parametrize(("number", "code"), [(errno.EMFILE, "overloaded"), (errno.ENOMEM, "resource_exhausted")])
def test_a_lack_of_memory_or_descriptors_is_the_same_on_both_ways(
    framed: Server, program: Program, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    def fail(_: int) -> Any:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(host_of(framed), "body_buffer", fail)
        first, second = both_ways(framed, head(len(GOOD)) + GOOD)
    assert first == second
    assert json.loads(first[2])["code"] == code
    until(lambda: not under_way(framed))


def test_a_session_that_ends_while_a_frame_is_received(framed: Server, http: httpx.Client) -> None:
    for query in WAYS.values():
        ok(http.post("/v1/sessions", json={"id": "short"}))
        path = "/v1/sessions/short/batch" + query
        with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
            body = frame(Batch((Constant(1, np.zeros(MIB)),), (), 0, 0, b""))
            sock.sendall(head(len(body), path=path) + body[:MIB])
            until(lambda: bool(framed.app.state.registry.bodies.counts["ann"]))
            ok(http.delete("/v1/sessions/short"))
            sock.sendall(body[MIB:])
            item = answer(sock)
            assert (item.status, json.loads(item.body)["details"]["reason"]) == (410, "deleted")
        until(lambda: not under_way(framed))


def test_a_defect_is_logged_and_answered(
    framed: Server, http: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: int) -> Any:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(host_of(framed), "body_buffer", fail)
        item = exchange(framed, head(len(GOOD)) + GOOD)
    request_id = dict(item.headers)["x-request-id"]
    assert (item.status, json.loads(item.body)["code"]) == (500, "internal")
    assert [record.getMessage() for record in caplog.records] == [f"request {request_id} failed"]


@needs_exchange
def test_a_process_cannot_add_headers(
    framed: Server, http: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its answer would be taken for two, perhaps by a proxy that others use too."""
    host = host_of(framed)
    submit = host.submit

    def submitted(*arguments: Any, **options: Any) -> Any:
        running = submit(*arguments, **options)
        running.reply = running.reply.get_loop().create_future()
        running.reply.set_result(Reply(None, "a/b\r\nx: y", memoryview(b""), {}))
        return running

    with monkeypatch.context() as patch, socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        patch.setattr(host, "submit", submitted)
        sock.sendall(head(len(GOOD)) + GOOD)
        assert sock.recv(1 << 16) == b""
    assert "cannot be sent" in caplog.text


def lines_of(path: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the log of requests for one path."""
    lines = [item.getMessage() for item in caplog.records if item.name == "teletape.access"]
    return [line for line in lines if f" {path} " in line]


def test_the_log_of_requests_has_the_same_lines_on_both_ways(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with Server(Settings(log_level="debug")).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        for body, status in ((GOOD, 200), (GOOD + b"-", 400)):
            caplog.clear()
            both_ways(server, head(len(body), X_Request_Id="mine") + body)
            until(lambda: len(lines_of(PATH, caplog)) >= len(WAYS))
            for line in (lines := lines_of(PATH, caplog)):
                assert re.fullmatch(rf"\S+Z POST {PATH} {status} \d+ \d+\.\d{{4}} local mine \S+", line), line
            assert len({line.split()[4] for line in lines}) == 1, "both count the bytes of the answer"


# ------------------------------------------------------------------------------------------------------ in any pieces
@needs_exchange
def test_pipelined_frames_are_answered_in_order(framed: Server, framework: Framework, program: Program) -> None:
    """Also frames after other requests, and other requests after frames."""
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    before = framework.requests
    sent, health = b"", b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    for i in range(20):
        constant = Constant(i + 1, np.zeros(i * 700, np.float32))
        body = frame(program.batch(Assign("v", Literal(1.0), "add"), constant, Fetch("v")))
        sent += head(len(body)) + body + (health if i % 5 == 4 else b"")
    values = []
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sender = threading.Thread(target=sock.sendall, args=(sent,))
        sender.start()
        with Stream(sock) as stream:
            for i in range(24):
                item = answer(stream)
                assert item.status == 200
                if i % 6 != 5:
                    (fetched,) = wire.decode_answer(item.body)[0].results
                    values.append(float(fetched.array))  # type: ignore[union-attr]
        sender.join()
    assert values == [i + 1.0 for i in range(20)]
    assert framework.requests < before + 24


@pytest.mark.parametrize("piece", [1, 7, 64, 1000])
def test_frames_may_come_in_small_pieces(framed: Server, program: Program, piece: int) -> None:
    """Twice through one connection: the second head is known, and comes in pieces too."""
    program.run(Constant(1, np.arange(10, dtype=np.float32)))
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(2):
            body = frame(program.batch(Fetch(1)))
            sent = head(len(body)) + body
            for start in range(0, len(sent), piece):
                sock.sendall(sent[start : start + piece])
            (fetched,) = wire.decode_answer(answer(sock).body)[0].results
            assert np.array_equal(fetched.array, np.arange(10))  # type: ignore[union-attr]


def test_large_bodies_stay_as_they_are(framed: Server, program: Program) -> None:
    """What follows a body in the same connection is not taken for a part of it."""
    arrays = [np.random.default_rng(i).random(300_000 + i) for i in range(3)]
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        bodies = [frame(program.batch(Constant(i, array), Fetch(i))) for i, array in enumerate(arrays)]
        sender = threading.Thread(target=sock.sendall, args=(b"".join(head(len(body)) + body for body in bodies),))
        sender.start()
        with Stream(sock) as stream:
            for array in arrays:
                (fetched,) = wire.decode_answer(answer(stream).body)[0].results
                assert np.array_equal(fetched.array, array)  # type: ignore[union-attr]
        sender.join()
    until(lambda: not under_way(framed).keys() - {"segments"})  # tensors stay in the memory of their bodies


# ------------------------------------------------------------------------------------------------ callers that leave
@pytest.mark.parametrize("length", [2000, 8 * MIB])
@pytest.mark.parametrize("part", [10, 64, 1500])
def test_a_caller_that_leaves_in_its_frame_leaves_nothing(
    framed: Server, program: Program, length: int, part: int
) -> None:
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sock.sendall(head(length) + beginning(length).ljust(part, b"-")[:part])
        until(lambda: framed.answering() == 1)
    until(lambda: not under_way(framed))
    program.run(Constant(1, np.ones(2)))


def test_a_caller_that_leaves_before_its_answer_leaves_the_batch_running(framed: Server, program: Program) -> None:
    """The answer can be had by a retry."""
    program.run(MakeVariable("v", np.zeros((), np.float32)))
    chain = [Call("add", (i, Literal(1.0)), (i + 1,)) for i in range(1, 20_000)]
    batch = program.batch(Constant(1, np.zeros(())), *chain, Assign("v", Literal(1.0), "add"), Fetch("v"))
    body = frame(batch)
    with socket.create_connection(("127.0.0.1", framed.port), timeout=60) as sock:
        sock.sendall(head(len(body)) + body)
        until(lambda: bool(host_of(framed).running))
    until(lambda: not framed.answering())
    (fetched,) = wire.decode_answer(ok(program.post(batch)).content)[0].results
    assert fetched.array == 1.0  # type: ignore[union-attr]


@pytest.mark.parametrize("way", WAYS)
def test_a_large_answer_is_written_as_it_is_read(framed: Server, program: Program, way: str) -> None:
    """The server holds no copy of it, and lets go of its memory when the caller leaves in the middle."""
    program.run(Constant(1, np.zeros(32 * MIB, np.uint8)))
    body = frame(program.batch(Fetch(1)))
    host = host_of(framed)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", framed.port))
        sock.sendall(head(len(body), path=PATH + WAYS[way]) + body)
        connections = framed.app.state.connections.open
        until(lambda: any(item.flow.write_paused for item in connections))
        (connection,) = [item for item in connections if item.flow.write_paused]
        for _ in range(20):
            sock.recv(1 << 16)
            assert connection.transport.get_write_buffer_size() <= 2 * MIB
        assert framed.answering() == 1
        assert not host.channel._unused
    until(lambda: not framed.answering())
    until(lambda: len(host.channel._unused) == 1)
    program.run(Fetch(1))


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    """A server that soon ends what has stalled, and that asks for hardly any rate."""
    with Server(Settings(api_keys=KEYS, stall_limit=0.3, min_rate=1, patience=600.0)).running() as server:
        with server.client() as http:
            ok(http.post("/v1/sessions", json={"id": "demo"}))
        yield server


@pytest.mark.parametrize("length", [1000, 8 * MIB])
@pytest.mark.parametrize("part", [10, 64, 900])
def test_a_frame_that_stalls_is_ended_and_its_memory_freed(strict: Server, length: int, part: int) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=60) as sock:
        sock.sendall(head(length) + beginning(length).ljust(part, b"-")[:part])
        refused = answer(sock)
        assert (refused.status, json.loads(refused.body)["code"]) == (408, "request_timeout")
        assert json.loads(refused.body)["details"]["found"] == part
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"-" * 100_000)  # what comes late goes nowhere
    until(lambda: not under_way(strict))


@pytest.mark.parametrize("way", WAYS)
def test_a_caller_that_reads_steadily_gets_a_large_answer(strict: Server, way: str) -> None:
    """It takes longer than the stall limit, and something is taken all the time."""
    with strict.client() as http:
        program = Program(http, "demo", nonces=way[:1].encode())
        name = f"x-{way}"
        program.run(Constant(name, np.arange(6 * MIB, dtype=np.uint8)))
        body = frame(program.batch(Fetch(name)))
    received = 0
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        sock.connect(("127.0.0.1", strict.port))
        sock.sendall(head(len(body), path=PATH + WAYS[way], Connection="close") + body)
        until(lambda: any(item.flow.write_paused for item in strict.app.state.connections.open))
        begin = time.monotonic()
        while part := sock.recv(256 << 10):
            received += len(part)
            if time.monotonic() - begin < 1.0:
                time.sleep(0.001)
    assert received > 6 * MIB


def test_a_caller_that_does_not_read_its_large_answer_is_left(strict: Server) -> None:
    host = host_of(strict)
    with strict.client() as http:
        program = Program(http, "demo", nonces=b"u")
        program.run(Constant("unread", np.zeros(32 * MIB, np.uint8)))
        body = frame(program.batch(Fetch("unread")))
    settings = strict.app.state.connections
    with socket.socket() as sock, pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "min_rate", 1 << 30)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", strict.port))
        sock.sendall(head(len(body)) + body)
        until(lambda: strict.answering() == 1)
        until(lambda: strict.answering() == 0)
        until(lambda: len(host.channel._unused) == 1)


# ----------------------------------------------------------------------------------------------- patience and the end
@pytest.fixture
def stopped(server: Server) -> Iterator[Program]:
    """A client whose session's process is stopped until it gets SIGCONT."""
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        program.run(MakeVariable("v", np.zeros((), np.float32)))
        os.kill(server.worker("demo"), signal.SIGSTOP)
        yield program


def test_a_retry_joins_its_batch_whichever_way_it_comes(server: Server, stopped: Program) -> None:
    """Each way is answered 202 while the batch runs, and in the end with the same answer; it ran once."""
    body = frame(stopped.batch(Assign("v", Literal(1.0), "add"), Fetch("v")))
    first, second = both_ways(server, head(len(body)) + body)
    assert first[0] == second[0] == 202
    assert first[1] == second[1]
    assert {("retry-after", "1"), ("content-type", "application/json")} <= set(first[1])
    assert len(host_of(server).running) == 1
    os.kill(server.worker("demo"), signal.SIGCONT)
    while (items := both_ways(server, head(len(body)) + body))[0][0] == 202:
        pass
    assert items[1][0] == 200
    assert items[0][2] == items[1][2]
    (fetched,) = stopped.run(Fetch("v")).results
    assert fetched.array == 1.0  # type: ignore[union-attr]


@pytest.mark.parametrize("events", [False, True])
def test_the_answer_of_a_retry_that_joined_says_that_it_is_replayed(
    server: Server, stopped: Program, events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = server.app.state
    monkeypatch.setattr(state, "settings", dataclasses.replace(state.settings, patience=60.0))
    headers = {"Idempotency-Key": "joins", **({"Accept": "text/event-stream"} if events else {})}
    replayed: list[str | None] = []

    def send() -> None:
        with server.client() as http:
            response = http.post("/v1/sessions/demo/tensors", json={"id": "x", "value": 1.0}, headers=headers)
            assert response.status_code == (200 if events else 201)
            replayed.append(response.headers.get("Idempotent-Replayed"))

    senders = [threading.Thread(target=send) for _ in range(2)]
    for count, sender in enumerate(senders, 1):
        sender.start()
        until(lambda count=count: server.answering() == count)
    os.kill(server.worker("demo"), signal.SIGCONT)
    for sender in senders:
        sender.join()
    assert sorted(replayed, key=str) == [None, "true"]


def test_a_retry_that_leaves_does_not_end_what_it_joined(server: Server, stopped: Program) -> None:
    """In the middle of its body, and while it waits."""
    batch = stopped.batch(Constant(1, np.zeros(100)))
    assert stopped.post(batch).status_code == 202
    body = frame(batch)
    for part in (80, len(body)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
            sock.sendall((head(len(body)) + body)[: len(head(len(body))) + part])
            until(lambda: server.answering() == 1)
        until(lambda: server.answering() == 0)
    assert len(host_of(server).running) == 1
    os.kill(server.worker("demo"), signal.SIGCONT)
    while (response := stopped.post(batch)).status_code == 202:
        pass
    assert wire.decode_answer(ok(response).content)[0].failure is None


@pytest.mark.parametrize("way", WAYS)
def test_a_frame_that_runs_is_answered_when_the_server_stops(way: str) -> None:
    """New frames are refused meanwhile, and half a frame does not hold the end up."""
    settings = Settings(api_keys=KEYS, patience=600.0, shutdown_grace=600.0)
    with Server(settings).running() as server, server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        program = Program(http, "demo")
        chain = [Call("add", (i, Literal(1.0)), (i + 1,)) for i in range(1, 60_000)]
        body = frame(program.batch(Constant(1, np.zeros(())), *chain, Fetch(60_000)))
        with (
            socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock,
            socket.create_connection(("127.0.0.1", server.port), timeout=60) as half,
            socket.create_connection(("127.0.0.1", server.port), timeout=60) as late,
        ):
            half.sendall(head(8 * MIB, path=PATH + WAYS[way]) + beginning(8 * MIB))
            late.sendall(head(len(GOOD), path=PATH + WAYS[way]) + GOOD)
            assert answer(late).status == 200
            until(lambda: server.app.state.registry.find("ann", "demo").receiving == 1)
            sock.sendall(head(len(body), path=PATH + WAYS[way]) + body)
            until(lambda: bool(host_of(server).running))
            server.stop()
            until(lambda: server.app.state.registry.live.stopping)
            late.sendall(head(len(GOOD), path=PATH + WAYS[way]) + GOOD)
            refused = answer(late)
            assert (refused.status, json.loads(refused.body)["code"]) == (503, "shutting_down")
            assert {("connection", "close"), ("retry-after", "1")} <= set(refused.headers)
            (fetched,) = wire.decode_answer(answer(sock).body)[0].results
            assert fetched.array == 59_999.0  # type: ignore[union-attr]
            with contextlib.suppress(ConnectionResetError):
                while half.recv(1 << 16):
                    pass
