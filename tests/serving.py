"""The real server in a thread of the tests: real HTTP, real worker processes, and a clock that tests can move."""

import asyncio
import contextlib
import dataclasses
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import teletape_wire as wire
from programs import load_script
from teletape_engine.commands import Batch, Call
from teletape_engine.commands.results import Answer
from teletape_engine.recording.values import Literal
from teletape_server.app import create_app
from teletape_server.connections.exchanges.frame import FrameExchange
from teletape_server.server import Server as HttpServer
from teletape_server.settings import Settings

#: TELETAPE_FRAMES=off lets the servers of all tests answer frames by the framework.
FRAMES = os.environ.get("TELETAPE_FRAMES", "")
#: Marks tests of what the framework does not do; all others hold with it too.
needs_exchange = pytest.mark.skipif(FRAMES == "off", reason="it looks at the exchange of frames, which is turned off")
KEYS = {"ann": "ann's secret".replace(" ", "-"), "bob": "bob's secret".replace(" ", "-")}


make_certificate = load_script("certificates").make_certificate


class Clock:
    """The time of day, and what tests add to it."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Server:
    """A server that runs, and the test's ways to it; `parts` are those of `create_app`, hosts and store."""

    def __init__(self, settings: Settings, **parts: Any) -> None:
        if FRAMES:
            settings = dataclasses.replace(settings, frames=FRAMES)
        self.settings = settings
        self.clock = Clock()
        self.app = create_app(settings, clock=self.clock, **parts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        # As the server's own listener: asyncio sets it for no listener made so, and each answer would wait 40 ms.
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self.listener.getsockname()[1]
        self.url = f"{'http' if settings.tls_certificate is None else 'https'}://127.0.0.1:{self.port}"
        self._uvicorn = HttpServer(self.app, settings)
        self._thread = threading.Thread(target=self._run, name="server")

    def _run(self) -> None:
        self._uvicorn.run(sockets=[self.listener])

    @contextlib.contextmanager
    def running(self) -> Iterator["Server"]:
        """Starts, and ends with the block."""
        self._thread.start()
        try:
            with self.client() as client:
                deadline = time.monotonic() + 30
                while not self._uvicorn.started and time.monotonic() < deadline:
                    with contextlib.suppress(httpx.TransportError):
                        client.get("/v1/health")
            yield self
        finally:
            self.stop()
            self._thread.join()
            self.listener.close()

    def stop(self) -> None:
        """Begins the server's orderly end, as a signal does."""
        self._uvicorn.should_exit = True

    def client(self, owner: str | None = "ann", **headers: str) -> httpx.Client:
        """A plain HTTP client with that owner's key."""
        if self.settings.api_keys and owner is not None:
            headers = {"Authorization": f"Bearer {KEYS[owner]}", **headers}
        own = self.settings.tls_certificate
        # To read the certificates of authorities takes as long as a session's start; plain HTTP needs none.
        trust = False if own is None else ssl.create_default_context(cafile=own)
        return httpx.Client(base_url=self.url, headers=headers, verify=trust, timeout=60, trust_env=False)

    def connection(self) -> Any:
        """The protocol of a new connection, without a network; call it in the server's loop."""
        config = self._uvicorn.config
        return config.http_protocol_class(config=config, server_state=self._uvicorn.server_state, app_state={})

    def loop(self) -> asyncio.AbstractEventLoop:
        """The server's event loop."""
        loop: asyncio.AbstractEventLoop = self._uvicorn.servers[0].get_loop()  # type: ignore[union-attr]  # uvloop's
        return loop

    def answering(self) -> int:
        """The number of requests that the server has begun to answer."""
        cycles = [item.cycle for item in [*self.app.state.connections.open]]  # the server's thread may change the set
        exchanges = [cycle for cycle in cycles if isinstance(cycle, FrameExchange)]
        return len(self._uvicorn.server_state.tasks) + sum(not item.response_complete for item in exchanges)

    def worker(self, session: str, owner: str = "ann") -> int:
        """The process id of a session's worker."""
        pid: int = self.app.state.registry.find(owner, session).host.pid
        return pid


class Program:
    """A client of one session that speaks frames, as the SDK does."""

    def __init__(self, http: httpx.Client, session: str, *, nonces: bytes = b"n") -> None:
        self.http = http
        self.path = f"/v1/sessions/{session}/batch"
        place = ok(http.post(f"/v1/sessions/{session}/attach")).json()
        self.client, self.seq = place["client"], place["seq"]
        self._nonces = nonces

    def batch(self, *commands: Any) -> Batch:
        """The next batch of this client."""
        batch = Batch(commands, (), self.client, self.seq, (self._nonces * 16)[:8] + self.seq.to_bytes(8, "little"))
        self.seq += 1
        return batch

    def post(self, batch: Batch, **headers: str) -> httpx.Response:
        """Sends a batch, whatever comes."""
        frame = b"".join(wire.encode_batch(batch).buffers)
        return self.http.post(self.path, content=frame, headers={"Content-Type": wire.FRAME_TYPE, **headers})

    def outcome(self, batch: Batch, **headers: str) -> httpx.Response:
        """Sends a batch until it has run or is refused: the servers of tests are not patient."""
        while (response := self.post(batch, **headers)).status_code == 202:
            pass
        return response

    def run(self, *commands: Any) -> Answer:
        """Runs the next batch, and reads the answer."""
        answer, _ = wire.decode_answer(ok(self.outcome(self.batch(*commands))).content)
        return answer


def long_work(count: int = 200) -> tuple[Call, ...]:
    """Commands of some milliseconds each: as few as can be for the time, because to write them takes time too."""
    ids = [f"long.{number}" for number in range(count)]
    fill = Call("fill", (Literal(1.0),), ("long",), {"shape": [1 << 20]})
    return fill, *[Call("reduce_logsumexp", ("long",), (each,)) for each in ids]


def unread_post(
    http: httpx.Client, path: str, body: bytes, *, length: int | None = None, **headers: str
) -> contextlib.closing[socket.socket]:
    """Sends a POST through a connection of its own and reads nothing; leaving the `with` block closes the connection.

    Args:
        http: A client of the server, whose headers are sent too: its key.
        path: The URL's path.
        body: The body, or its beginning.
        length: The Content-Length, if it is not that of `body`.
        **headers: More headers; `_` stands for `-`.
    """
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = http.build_request("POST", path, content=body, headers={"Content-Type": "application/json"} | named)
    request.headers["Content-Length"] = str(len(body) if length is None else length)
    raw = socket.create_connection((request.url.host, request.url.port or 80))
    lines = [b"POST %b HTTP/1.1" % request.url.raw_path, *(b"%b: %b" % pair for pair in request.headers.raw)]
    raw.sendall(b"\r\n".join([*lines, b"", b""]) + body)
    return contextlib.closing(raw)


def ok(response: httpx.Response) -> httpx.Response:
    """The response, which must be a success."""
    assert response.is_success, f"{response.status_code} {response.text}"
    return response


def metric(http: httpx.Client, name: str) -> float:
    """The present value of a metric without labels."""
    lines = ok(http.get("/metrics")).text.splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


def open_files() -> int:
    """How many files this process, the server's too, has open."""
    return len(os.listdir("/proc/self/fd"))


def until(holds: Callable[[], bool]) -> None:
    """Waits for a state; the limit is there only so that a failure ends."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)  # the server under test may run in this process
        time.sleep(0.005)


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem that the response must be."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert body["status"] == status
    assert body["type"] == f"/problems/{code}"
    assert body["title"]
    assert body["detail"]
    assert body["instance"] == f"urn:teletape:request:{response.headers['x-request-id']}"
    return body
