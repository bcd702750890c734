"""Frames over a socket of their own, against a server that is scripted byte by byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpcore
import pytest
from loopback import PROGRESS
from teletape.errors import ConnectionFailed, RequestError

from teletape.core.network import address, frame_socket
from teletape.core.network import http as module
from teletape.core.network.http import Connection, _frame_headers
from teletape.core.network.options import ConnectOptions

TYPE = "application/x-frame"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer"


class Scripted:
    """A server that answers each request with the next item of a list.

    Attributes:
        answers: Lists of parts, each sent by itself; after an empty part the connection is closed.
        requests: What came: the connection's number, the head's lines, the body.
        closed: Released for each connection that the server has closed.
    """

    def __init__(self, listening: socket.socket) -> None:
        self.listening = listening
        self.answers: list[list[bytes]] = []
        self.requests: list[tuple[int, list[bytes], bytes]] = []
        self.closed = threading.Semaphore(0)
        self.takes_bodies = True
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            while data := connection.recv(1 << 16):
                while b"\r\n\r\n" not in data:
                    data += connection.recv(1 << 16)
                head, _, body = data.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                while len(body) < length and self.takes_bodies:
                    body += connection.recv(1 << 20)
                self.requests.append((number, head.split(b"\r\n"), body))
                for part in self.answers.pop(0):
                    if not part:
                        connection.shutdown(socket.SHUT_RDWR)
                        self.closed.release()
                        return
                    connection.sendall(part)


@pytest.fixture
def server() -> Iterator[Scripted]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Scripted(listening)
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def http(server: Scripted) -> Iterator[Connection]:
    connection = Connection(
        ConnectOptions(url=f"http://127.0.0.1:{server.listening.getsockname()[1]}", api_key="secret")
    )
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, without waiting."""
    taken: list[float] = []
    monkeypatch.setattr(module.time, "sleep", taken.append)
    return taken


def post(http: Connection, body: bytes = b"frame") -> bytes:
    return bytes(http.frame("/v1/batch", [body[:2], memoryview(body)[2:]], len(body), TYPE).body)


# -------------------------------------------------------------------------------------------------------------- sending
def test_a_request_is_the_one_that_httpx_sends(server: Scripted, http: Connection) -> None:
    server.answers = [[PLAIN], [PLAIN]]
    assert post(http) == b"answer"
    assert bytes(http._frame_by_client("/v1/batch", [b"frame"], 5, _frame_headers(TYPE, None)).body) == b"answer"
    (_, mine, body), (_, other, same) = server.requests
    assert body == same == b"frame"
    assert mine[0] == other[0] == b"POST /v1/batch HTTP/1.1"
    assert {line.lower() for line in mine} == {line.lower() for line in other}
    assert b"Authorization: Bearer secret" in mine


@pytest.mark.parametrize("gathers", [True, False], ids=["sendmsg", "as on Windows"])
@pytest.mark.parametrize("size", [0, 100, (1 << 16) + 1, (5 << 20) + 3])
def test_a_frame_arrives_whole(
    server: Scripted, http: Connection, monkeypatch: pytest.MonkeyPatch, gathers: bool, size: int
) -> None:
    monkeypatch.setattr(frame_socket, "_GATHERS", gathers and frame_socket._GATHERS)
    server.answers = [[PLAIN]]
    middle = bytes(range(256)) * (size // 256) + bytes(size % 256)
    buffers = [b"head", *[memoryview(middle)[i : i + 10_000] for i in range(0, size, 10_000)], b"", b"tail"]
    http.frame("/v1/batch", buffers, size + 8, TYPE)
    assert server.requests[0][2] == b"head" + middle + b"tail"


class SlowNetwork:
    """A socket that takes a thousand bytes in a call, each of which has the socket's time; it has no `sendall`."""

    def __init__(self) -> None:
        self.taken = b""

    def send(self, part: memoryview) -> int:
        self.taken += part[:1000]
        return len(part[:1000])

    def sendmsg(self, parts: Sequence[memoryview]) -> int:
        return self.send(parts[0])


@pytest.mark.parametrize("gathers", [True, False], ids=["sendmsg", "as on Windows"])
def test_each_piece_of_a_large_frame_has_its_own_time(monkeypatch: pytest.MonkeyPatch, gathers: bool) -> None:
    monkeypatch.setattr(frame_socket, "_GATHERS", gathers)
    network: Any = SlowNetwork()
    frame_socket._send_parts(network, [b"head", bytes(range(200)) * 50, b"tail"])
    assert network.taken == b"head" + bytes(range(200)) * 50 + b"tail"


def test_connections_are_kept_open_and_kept_alive(server: Scripted, http: Connection) -> None:
    server.answers = [[PLAIN]] * 3
    assert [post(http) for _ in range(3)] == [b"answer"] * 3
    assert server.connections == 1
    assert http._frames is not None
    assert http._frames.idle_link is not None
    open_socket = http._frames.idle_link._socket
    assert open_socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert open_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# ------------------------------------------------------------------------------------------------------------- answers
ANSWERS = {
    "plain": [PLAIN],
    "byte by byte": [PLAIN[i : i + 1] for i in range(len(PLAIN))],
    "without a reason": [b"HTTP/1.1 200\r\ncontent-length:6\r\n\r\nanswer"],
    "after a 1xx": [b"HTTP/1.1 102 Processing\r\n\r\n", PLAIN],
    "with the 1xx in one piece": [b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN],
    "chunked": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nans\r\n", b"3\r\nwer\r\n0\r\n\r\n"],
    "without a length": [b"HTTP/1.1 200 OK\r\n\r\nans", b"wer", b""],
    "HTTP/1.0": [b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nanswer", b""],
    "a folded header": [b"HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 6\r\n\r\nanswer"],
    "bare line ends": [b"HTTP/1.1 200 OK\r\nX: y\nContent-Length: 6\r\n\r\nanswer"],
    "a header twice": [b"HTTP/1.1 200 OK\r\nVia: a\r\nVia: b\r\nContent-Length: 6\r\n\r\nans", b"wer"],
    "the last one": [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\nanswer", b""],
}
LAST = {"without a length", "HTTP/1.0", "the last one"}


@pytest.mark.parametrize("form", ANSWERS)
def test_an_answer_in_any_form_of_http(server: Scripted, http: Connection, waits: list[float], form: str) -> None:
    server.answers = [ANSWERS[form], [PLAIN]]
    assert post(http) == b"answer"
    if form in LAST:
        assert server.closed.acquire(timeout=10)
    assert post(http) == b"answer"
    assert server.connections == (2 if form in LAST else 1)
    assert waits == []


def test_a_large_answer_is_received_into_memory_of_its_size(server: Scripted, http: Connection) -> None:
    whole = bytes(range(256)) * 20_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(whole)
    server.answers = [[head + whole[:1000], whole[1000:]]]
    assert post(http) == whole


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Length: 7\r\n\r\nanswer",
        b"HTTP/1.1 200 OK\r\nContent-Length: -6\r\n\r\nanswer",
        b"HTTP/1.1 200 OK\r\nContent Length: 6\r\n\r\nanswer",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * (1 << 16),
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(
    server: Scripted, http: Connection, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    server.answers = [[answer, b""], [PLAIN]]
    with pytest.raises(ConnectionFailed, match=r"no answer \(RemoteProtocolError: "):
        post(http)
    assert post(http) == b"answer"


# ------------------------------------------------------------------------------------------------------------- failures
def test_a_connection_closed_while_idle_is_replaced_at_once(
    server: Scripted, http: Connection, waits: list[float]
) -> None:
    server.answers = [[PLAIN, b""], [PLAIN]]
    assert post(http) == b"answer"
    assert server.closed.acquire(timeout=10)
    assert post(http) == b"answer"
    assert (server.connections, waits) == (2, [])


def test_a_kept_connection_that_closes_instead_of_an_answer_is_replaced_at_once(
    server: Scripted, http: Connection, waits: list[float]
) -> None:
    server.answers = [[PLAIN], [b""], [PLAIN]]
    assert [post(http), post(http)] == [b"answer"] * 2
    assert [number for number, _, _ in server.requests] == [1, 1, 2]
    assert waits == []


@pytest.mark.parametrize("parts", [[PLAIN[:10], b""], [PLAIN[:-3], b""], [b""]])
def test_an_answer_that_is_cut_is_asked_for_again(
    server: Scripted, http: Connection, waits: list[float], parts: list[bytes]
) -> None:
    server.answers = [parts, [PLAIN]]
    assert post(http) == b"answer"
    assert [body for _, _, body in server.requests] == [b"frame"] * 2
    assert len(waits) == 1


def test_a_refusal_in_the_middle_of_a_large_frame_is_read(server: Scripted, http: Connection) -> None:
    server.takes_bodies = False  # it closes the connection with most of the body unread
    problem = b'{"code": "body_too_large", "title": "t", "detail": "at most 3 bytes"}'
    head = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(problem)
    server.answers = [[head + problem, b""]]
    with pytest.raises(RequestError, match="at most 3 bytes"):
        post(http, bytes(10 << 20))


def test_silence_ends_a_request(server: Scripted, http: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_LIMIT", 0.02)
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    server.answers = [[PLAIN[:30]]]
    with pytest.raises(ConnectionFailed, match=r"no answer \(ReadTimeout: timed out\)"):
        post(http)


def test_a_server_that_asks_for_patience(server: Scripted, http: Connection, waits: list[float]) -> None:
    head = b"HTTP/1.1 %d Later\r\nRetry-After: 2\r\nContent-Length: %d\r\n\r\n"
    later = [head % (status, len(PROGRESS)) + PROGRESS for status in (202, 503)]
    server.answers = [[later[0]], [later[1]], [PLAIN]]
    assert post(http) == b"answer"
    assert (waits, http.requests) == ([2.0, 2.0], 1)
    assert server.connections == 1


def test_nothing_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ConnectionFailed, match="nothing answers there"):
        post(Connection(ConnectOptions(url=f"http://127.0.0.1:{port}")))


def test_what_sets_cookies_gets_them_back(server: Scripted, http: Connection) -> None:
    """A load balancer that finds the session's server by a cookie."""
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: server=b\r\nContent-Length: 6\r\n\r\nanswer"
    server.answers = [[cookie], [cookie], [PLAIN]]
    assert [post(http) for _ in range(3)] == [b"answer"] * 3
    assert b"cookie: server=b" in [line.lower() for line in server.requests[2][1]]


# ------------------------------------------------------------------------------------------------------------ addresses
@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def set_them(**values: str) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_them()
    return set_them


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://gpu-box:8470", ("gpu-box", 8470, "")),
        ("http://gpu-box", ("gpu-box", 80, "")),
        ("http://[::1]:8470/prefix", ("::1", 8470, "")),
        ("unix:///run/teletape.sock", ("", 0, "/run/teletape.sock")),
        ("https://gpu-box:8470", None),
        ("gpu-box:8470", None),
    ],
)
def test_what_a_plain_socket_connects_to(
    url: str, endpoint: tuple[str, int, str] | None, proxies: Callable[..., None]
) -> None:
    assert address.plain_endpoint(url) == endpoint


def test_a_proxy_is_left_to_httpx(proxies: Callable[..., None]) -> None:
    proxies(http_proxy="http://proxy:3128", no_proxy="gpu-box")
    assert address.plain_endpoint("http://elsewhere:8470") is None
    assert address.plain_endpoint("http://gpu-box:8470") is not None
    proxies(all_proxy="http://proxy:3128")
    assert address.plain_endpoint("http://elsewhere:8470") is None


def transport_to(url: str) -> Any:
    return address.transport(url, ConnectOptions(url=url))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.8.7", "localhost", "[::1]", "a.localhost"])
def test_this_machine_is_reached_without_a_proxy(host: str, proxies: Callable[..., None]) -> None:
    """A proxy would read the key, which is allowed in the clear to this machine only."""
    proxies(http_proxy="http://proxy:3128", https_proxy="http://proxy:3128", all_proxy="http://proxy:3128")
    assert address.plain_endpoint(f"http://{host}:8470") is not None
    for scheme in ("http", "https"):
        with transport_to(f"{scheme}://{host}:8470") as transport:
            assert type(transport._pool) is httpcore.ConnectionPool
    with transport_to("http://elsewhere:8470") as transport:
        assert type(transport._pool) is httpcore.HTTPProxy


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
def test_a_name_with_several_addresses_and_ipv6(host: str) -> None:
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    try:
        listening = socket.create_server((host.strip("[]"), 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listening:
        server = Scripted(listening)
        server.answers = [[PLAIN]]
        http = Connection(ConnectOptions(url=f"http://{host}:{listening.getsockname()[1]}"))
        assert post(http) == b"answer"
        assert f"Host: {host}:{listening.getsockname()[1]}".encode() in server.requests[0][1]
        http.close()
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system's Python has no Unix sockets")
def test_a_unix_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        server = Scripted(listening)
        server.answers = [[PLAIN], [PLAIN.replace(b"answer", b'{"a":1').replace(b"6", b"7") + b"}"]]
        http = Connection(ConnectOptions(url=f"unix://{tmp_path}/s", api_key="secret"))
        assert post(http) == b"answer"
        assert http.json("GET", "/v1/info") == {"a": 1}
        assert b"Host: localhost" in server.requests[0][1]
        http.close()
        listening.shutdown(socket.SHUT_RDWR)


def test_an_address_of_a_unix_socket_is_an_absolute_path() -> None:
    with pytest.raises(module.address.InvalidArgumentError, match="an absolute path, as unix:///run/"):
        Connection(ConnectOptions(url="unix://teletape.sock"))


def test_a_closed_unix_socket_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailed, match="nothing answers there"):
        post(Connection(ConnectOptions(url=f"unix://{tmp_path}/none")))
