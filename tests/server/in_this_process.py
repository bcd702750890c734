"""The server's application without a network, with its sessions in this process."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from teletape_engine.arrays.cpu import DeviceFacts, cpu_facts
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server import handlers  # noqa: F401  # it registers the methods
from teletape_server.app import create_app
from teletape_server.handlers.methods import METHODS, Request
from teletape_server.handlers.published.versions import keep_file
from teletape_server.hosts.protocols import Beginning, BodyBuffer, Ending, HostFacts, Reply, Running, Start
from teletape_server.settings import Settings


class Memory:
    """A request's body in this process."""

    def __init__(self, length: int) -> None:
        self.view = memoryview(bytearray(length))

    def let_go(self, start: int, end: int) -> None:
        """All of it is in this process."""

    def discard(self) -> None:
        """Nothing has to be freed."""


class HostHere:
    """Implements `Host` in this process: a request is executed when it is submitted."""

    def __init__(self, session: Session) -> None:
        self.name, self.log_facts = "session", dict[str, str]()
        self.beginning = Beginning()
        self.session = session
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.running: set[Running] = set()
        self.left: list[Running] = []

    async def open(self, start: Start) -> None:
        """It is open from its beginning."""

    def body_buffer(self, length: int) -> BodyBuffer:
        return Memory(length)

    def submit(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        content_type: str = "",
        body: BodyBuffer | None = None,
        running: Running | None = None,
    ) -> Running:
        content = memoryview(b"") if body is None else body.view.toreadonly()
        now = time.monotonic()
        request = Request(params, content_type, content, sys.maxsize, lambda: False, lambda *_, **__: None, now)
        running = running or Running(asyncio.get_running_loop().create_future())
        try:
            result = METHODS[method](self.session, request)
            joined = memoryview(b"".join(result.buffers))
            running.reply.set_result(Reply(None, result.content_type, joined, result.facts))
        except TeletapeError as error:
            facts = {"message": error.message, "details": error.details, "headers": None}
            running.reply.set_result(Reply(error.code, "", memoryview(b""), facts))
        return running

    def map(self, name: str, file: int) -> None:
        keep_file(name, [file])

    def facts(self) -> HostFacts:
        return HostFacts()

    def lend(self, *_: object) -> None:
        """It takes no connections."""

    lent = 0

    def reclaim(self) -> None:
        """It has no connections."""

    async def recall(self) -> None:
        """It has no connections."""

    async def suspend(self) -> bool:
        return False

    def cancel(self, *, is_stopping: bool = False) -> None:
        """Nothing runs."""

    async def end(self, ending: Ending) -> None:
        if not self.ended.done():
            self.ended.set_result(ending)


class HostsHere:
    """Implements `Hosts` with sessions in this process.

    Args:
        session: Makes one.
    """

    def __init__(self, session: Callable[[], Session]) -> None:
        self.hosts: list[HostHere] = []
        self._session = session

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    def lack(self) -> str:
        """Nothing is missing."""
        return ""

    async def start(self, start: Start) -> HostHere:
        self.hosts.append(HostHere(self._session()))
        return self.hosts[-1]

    async def devices(self) -> list[DeviceFacts]:
        return [cpu_facts()]

    async def close(self) -> None:
        """Nothing has to be ended."""


class Client:
    """Sends requests to an application without a network."""

    def __init__(self, runner: asyncio.Runner, http: httpx.AsyncClient) -> None:
        self._runner, self._http = runner, http

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        return self._runner.run(self._http.request(method, path, **how))

    def post(self, path: str, **how: Any) -> httpx.Response:
        return self.request("POST", path, **how)


@contextmanager
def application(hosts: HostsHere) -> Iterator[Client]:
    """Yields a client of an application whose sessions are here."""
    app = create_app(Settings(), hosts=lambda: hosts)
    with asyncio.Runner() as runner:
        life = app.router.lifespan_context(app)
        runner.run(life.__aenter__())
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
        yield Client(runner, client)
        runner.run(client.aclose())
        runner.run(life.__aexit__(None, None, None))
