"""No input from a stranger holds the event loop for 50 ms: what one piece of input makes it do is bounded."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving import KEYS, Server
from teletape_server.connections.connection import Connection
from teletape_server.connections.reader import MAX_HEAD
from teletape_server.settings import Settings

LIMIT = 0.05  #: Seconds of CPU time that a turn of the loop may take, other programs on this machine left out.
PIECE = 256_000  #: Bytes that uvloop reads at once.
PIECES = 4
TURNS = 40  #: Of the loop after each piece: more than a refusal takes.
ATTEMPTS = 3  #: The best counts: caches and the garbage collector differ.


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(Settings(api_keys=KEYS, stall_limit=600.0)).running() as item:
        yield item


class Transport(asyncio.Transport):
    """A connection without a network. What is written is counted and dropped.

    Attributes:
        sent: The beginnings of what was sent.
        closed: Whether it was closed.
    """

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 80)})
        self.sent: list[bytes] = []
        self.closed = self.paused = False

    def write(self, data: Any) -> None:
        self.sent.append(bytes(data[:12]))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = write_eof = close

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


def head(line: bytes = b"GET /v1/sessions", header: bytes = b"") -> bytes:
    return line + b" HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n"


ROOM = MAX_HEAD - 200  # bytes of a long part of a head that is let through
POST = b"POST /v1/sessions/demo/batch"
CHUNKED = head(POST, b"Transfer-Encoding: chunked\r\n")
STREAMS = {  # (start, what is sent again and again)
    "a URL without end": (b"GET /", b"a"),
    "a header without end": (b"GET / HTTP/1.1\r\nX: ", b"a"),
    "a header's name without end": (b"GET / HTTP/1.1\r\n", b"a"),
    "headers without end": (b"GET / HTTP/1.1\r\n", b"a: b\r\n"),
    "empty headers": (b"GET / HTTP/1.1\r\n", b"a:\r\n"),
    "empty lines": (b"", b"\r\n"),
    "ends of heads": (b"", b"\r\n\r\n"),
    "not HTTP": (b"", bytes(range(256))),
    "requests": (b"", head()),
    "short requests": (b"", b"GET / HTTP/1.1\r\n\r\n"),
    "requests of unknown paths": (b"", head(b"GET /" + b"a/" * 2000)),
    "requests with bodies": (b"", head(POST, b"Content-Length: 3\r\n") + b"abc"),
    "requests with empty bodies": (b"", head(POST, b"Content-Length: 0\r\n")),
    "requests with many headers": (b"", head(header=b"a: b\r\n" * 90)),
    "requests with heads that are as large as may be": (b"", head(header=b"X: " + b"a" * (MAX_HEAD - 100) + b"\r\n")),
    "a body without end": (head(POST, b"Content-Length: 999999999\r\n"), b"a"),
    "small chunks": (CHUNKED, b"1\r\na\r\n"),
    "chunks with extensions": (CHUNKED, b"1;a=b\r\na\r\n"),
    "a chunk of ends of heads": (CHUNKED + b"fffffff\r\n", b"\r\n\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n"),
    "a request for another protocol": (b"", head(header=b"Connection: Upgrade\r\nUpgrade: websocket\r\n")),
    "a path of escapes": (b"", head(b"GET /v1/" + b"%41" * (ROOM // 3))),
    "a path of slashes": (b"", head(b"GET /v1" + b"/" * ROOM)),
    "a path of dots": (b"", head(b"GET /v1/sessions" + b"/.." * (ROOM // 3))),
    "a long session": (b"", head(b"GET /v1/sessions/" + b"a" * ROOM)),
    "a long query": (b"", head(b"GET /v1/sessions?" + b"a=1&" * (ROOM // 4))),
    "a query of escapes": (b"", head(b"GET /v1/sessions?a=" + b"%41" * (ROOM // 3))),
    "a long list of media types": (b"", head(b"GET /v1/ops", b"Accept: " + b"a/b;q=0.1," * (ROOM // 10) + b"\r\n")),
    "a long media type": (
        b"",
        head(POST, b"Content-Type: a/b" + b"; c=d" * (ROOM // 5) + b"\r\nContent-Length: 0\r\n"),
    ),
    "a long key": (b"", head(header=b"Authorization: Bearer " + b"a" * ROOM + b"\r\n")),
    "long cookies": (b"", head(header=b"Cookie: " + b"a=b; " * (ROOM // 5) + b"\r\n")),
    "a long Host": (b"", b"GET /v1/health HTTP/1.1\r\nHost: " + b"a." * (ROOM // 2) + b"\r\n\r\n"),
    "a long origin": (b"", head(header=b"Origin: http://" + b"a." * (ROOM // 2) + b"\r\n")),
    "a long request id": (b"", head(header=b"X-Request-Id: " + b"a" * ROOM + b"\r\n")),
    "a static file": (b"", head(b"GET /static/" + b"../" * (ROOM // 3))),
}


async def longest_turn(server: Server, start: bytes, repeated: bytes) -> float:
    """CPU seconds of the longest turn of the server's loop, while a connection of its own receives the stream."""
    connection: Connection = server.connection()
    transport = Transport()
    connection.connection_made(transport)
    stream = start + repeated * (PIECE * PIECES // len(repeated) + 1)
    longest = 0.0
    for position in range(0, PIECE * PIECES, PIECE):
        if transport.closed or transport.paused:
            break
        before = time.thread_time()
        connection.data_received(stream[position : position + PIECE])
        longest = max(longest, time.thread_time() - before)
        for _ in range(TURNS):
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
    transport.closed = True
    connection.connection_lost(None)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    return longest


@pytest.mark.parametrize("name", STREAMS)
def test_no_input_from_a_stranger_holds_the_event_loop_for_50_ms(server: Server, name: str) -> None:
    for _ in range(ATTEMPTS):
        seconds = asyncio.run_coroutine_threadsafe(longest_turn(server, *STREAMS[name]), server.loop()).result(60)
        if seconds < LIMIT:
            return
    pytest.fail(f"{name}: {seconds * 1000:.0f} ms")


LOADED = """
import encodings.idna  # which the client of this process loads when it connects
import sys
from serving import KEYS, Server, ok, until
from teletape_server.settings import Settings

with Server(Settings(api_keys=KEYS)).running() as server, server.client() as http:
    until(lambda: server.app.state.hosts.spare.done())  # a thread loads what starts processes
    loaded = set(sys.modules)
    for path in ("/v1/health", "/v1/ops", "/docs", "/console", "/problems/busy", "/metrics"):
        ok(http.get(path))
    with http.stream("GET", "/v1/sessions", headers={"Accept": "text/event-stream"}) as stream:
        next(stream.iter_lines())
    ok(http.post("/v1/expressions", json={"text": "x * x"}))
    print(*sorted(set(sys.modules) - loaded))
"""


@pytest.mark.long
def test_no_module_is_loaded_while_the_server_answers() -> None:
    """To load one stops all connections, for a tenth of a second where the machine is busy."""
    tests = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", LOADED]
    program = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": tests}, capture_output=True, text=True, check=False
    )
    assert (program.returncode, program.stdout) == (0, "\n"), program.stderr
