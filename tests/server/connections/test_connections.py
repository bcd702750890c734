"""What a caller may send before its answer, how slowly, and on how many connections; none of this needs a key."""

import contextlib
import json
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serving import KEYS, Server, ok, problem, until
from teletape_server.connections.connection import Connection
from teletape_server.connections.open_connections import Connections, most_connections
from teletape_server.connections.reader import MAX_HEAD, MAX_HEADERS
from teletape_server.settings import Settings

HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
KEY = b"Authorization: Bearer " + KEYS["ann"].encode() + b"\r\n"
POST = b"POST /v1/sessions/demo/batch HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that soon ends what has stalled."""
    with Server(Settings(api_keys=KEYS, stall_limit=0.3, min_rate=1 << 20, connections=20)).running() as item:
        yield item


@pytest.fixture(scope="module")
def patient() -> Iterator[Server]:
    """A server that waits longer than any test, so that nothing else ends what a test looks at."""
    with Server(Settings(api_keys=KEYS, stall_limit=600.0, connections=20)).running() as item:
        yield item


@contextlib.contextmanager
def connection(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        yield sock


def received(sock: socket.socket) -> bytes:
    """Everything that the server sends until it closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := sock.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def refusal(sock: socket.socket, status: int, code: str) -> dict[str, Any]:
    """The problem after which the server closes the connection."""
    head, _, body = received(sock).partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    response = httpx.Response(status, headers=headers, content=body)
    assert lines[0].startswith(f"HTTP/1.1 {status} "), (lines, body)
    assert headers["connection"] == "close"
    return problem(response, status, code)


def connections_of(server: Server) -> Connections:
    connections: Connections = server.app.state.connections
    return connections


# ---------------------------------------------------------------------------------------------------------------- heads
@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + b"A", b"\r\n"])
@pytest.mark.parametrize("piece", [1000, MAX_HEAD * 4])
def test_a_head_without_end_is_refused_as_it_comes(patient: Server, start: bytes, piece: int) -> None:
    """In the request's line, in a header, in a header's name, before all of them; the head never ends."""
    with connection(patient) as sock:
        sock.sendall(start)
        block = (b"\r\n" if start == b"\r\n" else b"a") * piece
        sent = len(start)
        with contextlib.suppress(ConnectionError):
            while sent <= MAX_HEAD:
                sock.sendall(block)
                sent += len(block)
        body = refusal(sock, 431, "headers_too_large")
        assert body["details"] == {"limit": MAX_HEAD, "headers": MAX_HEADERS}


def test_the_largest_head_is_served(patient: Server) -> None:
    with connection(patient) as sock:
        start = HEALTH + b"Connection: close\r\nX: "
        sock.sendall(start + b"a" * (MAX_HEAD - len(start) - 4) + b"\r\n\r\n")
        assert received(sock).startswith(b"HTTP/1.1 200 ")
    with connection(patient) as sock:
        sock.sendall(start + b"a" * (MAX_HEAD - len(start) - 3) + b"\r\n\r\n")
        refusal(sock, 431, "headers_too_large")


def test_headers_are_counted(patient: Server) -> None:
    for count in (MAX_HEADERS - 2, MAX_HEADERS - 1):
        with connection(patient) as sock:
            sock.sendall(HEALTH + b"Connection: close\r\n" + b"a: b\r\n" * count)
            if count + 2 <= MAX_HEADERS:
                sock.sendall(b"\r\n")
                assert received(sock).startswith(b"HTTP/1.1 200 ")
            else:
                sock.sendall(b"c")  # a header ends where the next one begins
                refusal(sock, 431, "headers_too_large")


def test_trailers_are_counted_with_the_head(patient: Server) -> None:
    with connection(patient) as sock:
        sock.sendall(HEALTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ")
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"a" * (4 * MAX_HEAD))
        assert received(sock).startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 200 "))  # it may have been answered before


def test_a_client_sees_why_its_head_was_refused(patient: Server) -> None:
    with patient.client() as http:
        for _ in range(5):
            problem(http.get("/v1/health", headers={"X": "a" * (1 << 20)}), 431, "headers_too_large")
            ok(http.get("/v1/health"))


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        POST + b"Content-Length: x\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(patient: Server, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with connection(patient) as sock:
        sock.sendall(sent)
        refusal(sock, 400, "malformed_http")
    assert not caplog.records, "anybody could fill the log"


def test_a_path_too_long_for_any_name_is_not_compared_with_the_routes(patient: Server) -> None:
    with patient.client() as http:
        problem(http.put("/v1/sessions/" + "a" * 9000 + "/cancel"), 404, "not_found")


# -------------------------------------------------------------------------------------------------------------- stalled
@pytest.mark.parametrize("start", [b"", b"\r\n"])
def test_a_connection_that_begins_no_request_is_closed(guarded: Server, start: bytes) -> None:
    with connection(guarded) as sock:
        sock.sendall(start)
        assert received(sock) == b""


@pytest.mark.parametrize("start", [b"G", HEALTH])
def test_a_half_sent_head_is_ended(guarded: Server, start: bytes) -> None:
    with connection(guarded) as sock:
        sock.sendall(start)
        assert refusal(sock, 408, "request_timeout")["details"] == {"limit": 0.3}


def test_a_connection_without_further_requests_is_closed_after_some_time(
    patient: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sooner than one that has sent none yet, but not while an answer is due."""
    with connection(patient) as sock, connection(patient) as other:
        for item in (sock, other):
            item.sendall(HEALTH + b"\r\n")
            assert item.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        other.sendall(HEALTH)
        until(lambda: any(item._reader.head_bytes for item in connections_of(patient).open))
        monkeypatch.setattr("teletape_server.connections.connection.KEEP_ALIVE_SECONDS", 0.1)
        assert received(sock) == b""
        other.sendall(b"Connection: close\r\n\r\n")
        assert received(other).startswith(b"HTTP/1.1 200 ")


def answer_while_sending(server: Server, start: bytes, byte: bytes) -> bytes:
    """The beginning of the answer to a request that goes on, byte by byte, until it is answered."""
    with connection(server) as sock:
        sock.sendall(start)
        sock.settimeout(0.01)
        first = b""
        while not first:
            sock.sendall(byte)
            with contextlib.suppress(TimeoutError):
                first = sock.recv(12)
    return first


def test_a_head_that_comes_byte_by_byte_is_ended(guarded: Server) -> None:
    assert answer_while_sending(guarded, HEALTH + b"X: ", b"a") == b"HTTP/1.1 408"


def test_half_a_second_request_is_ended(guarded: Server) -> None:
    with connection(guarded) as sock:
        sock.sendall(HEALTH + b"\r\n" + HEALTH)
        answers = received(sock)
        assert answers.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in answers


def post_head(length: int) -> bytes:
    return POST + f"Authorization: Bearer {KEYS['ann']}\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.fixture
def demo(guarded: Server) -> Iterator[Any]:
    """The host of a session that has no body under way."""
    with guarded.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        yield guarded.app.state.registry.find("ann", "demo").host
        ok(http.delete("/v1/sessions/demo"))


def test_a_body_that_stalls_is_ended_and_its_memory_freed(guarded: Server, demo: Any) -> None:
    with connection(guarded) as sock:
        sock.sendall(post_head(1 << 20) + b'{"commands": [' + b" " * (200 << 10))
        until(lambda: bool(demo.channel.pool.segments))
        assert not demo.channel.pool.idle
        details = refusal(sock, 408, "request_timeout")["details"]
        assert (details["found"], details["limit"]) == ((200 << 10) + 14, 0.3)
    until(lambda: len(demo.channel.pool.idle) == len(demo.channel.pool.segments))


def test_a_body_that_comes_too_slowly_is_ended(guarded: Server, demo: Any) -> None:
    """It never rests for as long as the limit, and has fewer bytes a second than it must."""
    assert answer_while_sending(guarded, post_head(1 << 20), b" ") == b"HTTP/1.1 408"


REFUSED = {
    "without a key": (POST, b"", 401, "unauthenticated"),
    "no such path": (b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\n", KEY, 404, "not_found"),
    "no such session": (POST, KEY, 404, "unknown_session"),
    "too large": (
        b"POST /v1/sessions HTTP/1.1\r\nHost: x\r\n",
        KEY + b"Content-Length: 99999999999\r\n",
        413,
        "body_too_large",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_answer_before_the_body_is_here_ends_the_connection(patient: Server, case: str) -> None:
    """Also if the caller goes on sending, which must not cost it the answer."""
    line, headers, status, code = REFUSED[case]
    length = b"" if b"Content-Length" in headers else b"Content-Length: 1000000\r\n"
    with connection(patient) as sock:
        sock.sendall(line + headers + length + b"\r\n" + b"a" * 1000)
        until(lambda: bool(connections_of(patient).refused))
        for _ in range(10):
            sock.sendall(b"a" * 10_000)
        refusal(sock, status, code)
    until(lambda: not connections_of(patient).refused)


def test_a_caller_that_reads_nothing_before_it_has_sent_all_of_its_body_gets_such_an_answer(patient: Server) -> None:
    length = 64 << 20
    with connection(patient) as sock:
        sock.sendall(POST + b"Content-Length: %d\r\n\r\n" % length)
        until(lambda: bool(connections_of(patient).refused))
        sock.sendall(bytes(length))
        refusal(sock, 401, "unauthenticated")


def test_a_caller_that_goes_on_sending_too_slowly_after_such_an_answer_is_left(
    guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.connections.pace._LINGER_SECONDS", 0.2)
    with connection(guarded) as sock, contextlib.suppress(ConnectionError):
        sock.sendall(POST + b"Content-Length: 1000000\r\n\r\n")
        until(lambda: bool(connections_of(guarded).refused))
        while connections_of(guarded).refused:
            sock.sendall(b" ")
            time.sleep(0.005)
    until(lambda: not connections_of(guarded).refused)


def test_a_caller_that_reads_such_an_answer_slowly_gets_all_of_it(
    guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.connections.pace._LINGER_SECONDS", 0.0)
    monkeypatch.setattr(connections_of(guarded), "stall_limit", 600.0)
    sweeps, check = [], Connection.check
    monkeypatch.setattr(Connection, "check", lambda self, seconds: (check(self, seconds), sweeps.append(self)))
    guarded.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 << 10)
    with guarded.client() as http:
        expected = ok(http.get("/v1/ops?limit=80")).content
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", guarded.port))
        sock.sendall(b"GET /v1/ops?limit=80 HTTP/1.1\r\nHost: x\r\n" + KEY + b"Content-Length: 1\r\n\r\n")
        until(lambda: bool(connections_of(guarded).refused))
        sweeps.clear()
        until(lambda: len(sweeps) >= 3)
        (left,) = connections_of(guarded).refused
        assert left.transport.get_write_buffer_size() > 0
        assert not left.flow.write_paused, "then the application waits with the rest of the answer"
        assert received(sock).partition(b"\r\n\r\n")[2] == expected


def test_a_caller_that_does_not_close_after_such_an_answer_is_left(
    guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teletape_server.connections.pace._LINGER_SECONDS", 0.0)
    with connection(guarded) as sock:
        sock.sendall(POST + b"Content-Length: 1000000\r\n\r\n")
        refusal(sock, 401, "unauthenticated")
        until(lambda: not connections_of(guarded).refused)


def test_a_connection_whose_refused_request_is_complete_goes_on(patient: Server) -> None:
    with connection(patient) as sock:
        sock.sendall((POST + b"Content-Length: 7\r\n\r\n{body:}") * 3 + HEALTH + b"Connection: close\r\n\r\n")
        answers = received(sock)
    assert (answers.count(b"HTTP/1.1 401 "), answers.count(b"HTTP/1.1 200 ")) == (3, 1)


@pytest.mark.parametrize("reads", [False, True])
def test_a_caller_that_does_not_read_its_answers_or_too_slowly_is_left(guarded: Server, reads: bool) -> None:
    connections = connections_of(guarded)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", guarded.port))
        sock.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        until(lambda: any(item.flow.write_paused for item in connections.open))
        deadline = time.monotonic() + 60
        while any(item.flow.write_paused for item in connections.open):
            assert time.monotonic() < deadline
            if reads:
                with contextlib.suppress(ConnectionResetError):
                    sock.recv(512)
            time.sleep(0.01)


# -------------------------------------------------------------------------------------------------------------- counted
def test_a_connection_too_many_is_refused(patient: Server) -> None:
    with contextlib.ExitStack() as stack:
        until(lambda: not connections_of(patient).open)
        for _ in range(20):
            stack.enter_context(connection(patient))
        until(lambda: len(connections_of(patient).open) == 20)
        for _ in range(10):
            with patient.client() as http:
                assert problem(http.get("/v1/health"), 503, "overloaded")["details"] == {"limit": 20}
        assert len(connections_of(patient).open) == 20
    until(lambda: not connections_of(patient).open)
    with patient.client() as http:
        ok(http.get("/v1/health"))


def test_a_stranger_that_takes_all_connections_gives_them_up_for_others(patient: Server) -> None:
    """Its half-sent requests are closed, the oldest first; one that is answered stays, and so do those of others."""
    stranger = ("127.0.0.2", 0)
    with contextlib.ExitStack() as stack, patient.client() as http:
        ok(http.get("/v1/health"))  # a connection that stays open
        halves = []
        for _ in range(30):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", patient.port), 60, stranger))
            sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: ")
            halves.append(sock)
        until(lambda: len(connections_of(patient).open) == 20)
        with contextlib.ExitStack() as others:
            for _ in range(5):
                ok(others.enter_context(patient.client()).get("/v1/health"))
            ok(http.get("/v1/health"))
            assert len(connections_of(patient).open) == 20
            assert [read(sock) for sock in halves[:5]] == [b""] * 5
            halves[5].sendall(b"localhost\r\nConnection: close\r\n\r\n")
            assert received(halves[5]).startswith(b"HTTP/1.1 200")
        problem_line = received(halves[-1])
        assert b"overloaded" in problem_line
    until(lambda: not connections_of(patient).open)


def read(sock: socket.socket) -> bytes:
    """What comes next; empty if the connection was closed or cut."""
    try:
        return sock.recv(1)
    except ConnectionResetError:
        return b""


def test_connections_take_half_of_the_descriptors_at_most(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    for hard, most in ((resource.RLIM_INFINITY, 1024), (1 << 20, 1024), (100, 50)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, hard=hard: (64, hard))
        assert most_connections(Settings()) == most
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "ulimit -n" in caplog.text


# ------------------------------------------------------------------------------------------------------------ pipelined
def test_pipelined_requests_are_answered_in_order_and_one_at_a_time(patient: Server) -> None:
    with connection(patient) as sock:
        requests = [HEALTH + f"X-Request-Id: r{i}\r\n".encode() for i in range(500)]
        requests[-1] += b"Connection: close\r\n"
        sender = threading.Thread(target=sock.sendall, args=(b"".join(request + b"\r\n" for request in requests),))
        sender.start()
        answers = received(sock)
        sender.join()
    lines = [line for line in answers.split(b"\r\n") if line.lower().startswith(b"x-request-id")]
    assert lines == [f"x-request-id: r{i}".encode() for i in range(500)]


def test_bodies_of_pipelined_requests_stay_with_them(patient: Server) -> None:
    with patient.client() as http:
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        sent = b""
        for i in range(20):
            commands = [{"do": "constant", "id": f"x{i}", "value": [float(i)] * (i * 400)}]
            body = json.dumps({"commands": commands}).encode()
            sent += post_head(len(body)) + body
        with connection(patient) as sock:
            sender = threading.Thread(target=sock.sendall, args=(sent + HEALTH + b"Connection: close\r\n\r\n",))
            sender.start()
            answers = received(sock)
            sender.join()
        assert answers.count(b"HTTP/1.1 200 ") == 21
        for i in range(20):
            assert ok(http.get(f"/v1/sessions/demo/tensors/x{i}")).json()["shape"] == [i * 400]
        ok(http.delete("/v1/sessions/demo"))


def test_a_caller_that_leaves_its_pipelined_requests_leaves_no_traceback(
    patient: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The requests run one after the other, each in a session of its own; the caller leaves during the first ones."""
    caplog.set_level(logging.WARNING)
    body = b'{"commands": []}'
    head = f"Host: x\r\nAuthorization: Bearer {KEYS['ann']}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for answers in (0, 0, 1, 2):
        with connection(patient) as sock:
            sock.sendall((b"POST /v1/run HTTP/1.1\r\n" + head + body) * 8)
            answered = b""
            while answered.count(b"HTTP/1.1 200 ") < answers:
                part = sock.recv(1 << 16)
                assert part, f"the connection ended after {answered!r}"
                answered += part
    until(lambda: not connections_of(patient).open)
    with patient.client() as http:
        until(lambda: not ok(http.get("/v1/sessions")).json()["sessions"])
    assert not caplog.records


def test_a_stream_for_an_older_protocol_ends_with_the_connection(patient: Server) -> None:
    """HTTP/1.0 has no chunks."""
    with connection(patient) as sock:
        sock.sendall(b"GET /v1/sessions HTTP/1.0\r\nAccept: text/event-stream\r\n" + KEY + b"\r\n")
        answer = b""
        while b"event: " not in answer:
            answer += sock.recv(1 << 16)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"\r\nconnection: close" in head
    assert body.startswith(b"event: "), "a chunk begins with its length"


def test_a_request_for_another_protocol_is_answered_as_any_other(
    patient: Server, caplog: pytest.LogCaptureFixture
) -> None:
    for protocol in (b"websocket", b"h2c"):
        with connection(patient) as sock:
            sock.sendall(HEALTH + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n")
            assert received(sock).startswith(b"HTTP/1.1 200 ")
    assert not caplog.records
