"""What REST requests do to a session is a batch: a record of the batches alone gives the same session again."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import numpy as np
import pytest
import walk

from teletape_engine.arrays.cpu import DeviceFacts, cpu_facts
from teletape_engine.commands import Batch, Fetch
from teletape_engine.commands.results import Fetched
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server import export
from teletape_server.app import create_app
from teletape_server.hosts.handed_connections import HandedConnections
from teletape_server.hosts.protocols import BodyBuffer, Reply, Running, Start
from teletape_server.hosts.watchdog import Ending
from teletape_server.settings import Settings
from teletape_server.worker import handlers  # noqa: F401  # it registers the methods
from teletape_server.worker.methods import METHODS, Request


class RecordedSession(Session):
    """A session, and a second one that is only given the batches of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.replayed = Session()

    def execute(self, batch: Batch, **how: Any) -> Any:
        self.replayed.execute(batch)
        return super().execute(batch, **how)


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

    def __init__(self, device: str) -> None:
        self.device = device
        self.session = RecordedSession()
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.running: set[Running] = set()
        self.handed = HandedConnections(lambda *_: None, lambda *_: self.submit("batch", {}), lambda: None)

    def body_buffer(self, length: int) -> BodyBuffer:
        return Memory(length)

    def submit(
        self, method: str, params: Mapping[str, Any], *, content_type: str = "", body: BodyBuffer | None = None
    ) -> Running:
        content = memoryview(b"") if body is None else body.view.toreadonly()
        now = time.monotonic()
        request = Request(params, content_type, content, sys.maxsize, lambda: False, lambda *_, **__: None, now)
        running = Running(asyncio.get_running_loop().create_future())
        try:
            result = METHODS[method](self.session, request)
            joined = memoryview(b"".join(result.buffers))
            running.reply.set_result(Reply(None, result.content_type, joined, result.facts))
        except TeletapeError as error:
            facts = {"message": error.message, "details": error.details, "headers": None}
            running.reply.set_result(Reply(error.code, "", memoryview(b""), facts))
        return running

    def cancel(self) -> None:
        """Nothing runs."""

    async def end(self, ending: Ending) -> None:
        if not self.ended.done():
            self.ended.set_result(ending)


class HostsHere:
    """Implements `Hosts` with sessions in this process."""

    def __init__(self) -> None:
        self.hosts: list[HostHere] = []

    def prepare(self) -> None:
        """Nothing has to be prepared."""

    async def start(self, start: Start) -> HostHere:
        self.hosts.append(HostHere(start.device))
        return self.hosts[-1]

    async def devices(self) -> list[DeviceFacts]:
        return [cpu_facts()]

    async def close(self) -> None:
        """Nothing has to be ended."""


@pytest.fixture
def hosts() -> HostsHere:
    return HostsHere()


class Client:
    """Sends requests to an application without a network."""

    def __init__(self, runner: asyncio.Runner, http: httpx.AsyncClient) -> None:
        self._runner, self._http = runner, http

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        return self._runner.run(self._http.request(method, path, **how))

    def post(self, path: str, **how: Any) -> httpx.Response:
        return self.request("POST", path, **how)


@pytest.fixture
def http(hosts: HostsHere) -> Iterator[Any]:
    app = create_app(Settings(), hosts=lambda: hosts)
    with asyncio.Runner() as runner:
        life = app.router.lifespan_context(app)
        runner.run(life.__aenter__())
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
        yield Client(runner, client)
        runner.run(client.aclose())
        runner.run(life.__aexit__(None, None, None))


def contents(session: Session) -> dict[str, list[Any]]:
    """What ids name, with the facts of everything, and the numbers of tensors and variables."""
    listed = {kind: session.listing(kind) for kind in ("tensor", "variable", "slices", "tape", "function")}
    values = {}
    for entry in listed["tensor"] + listed["variable"]:
        [result] = Session.execute(session, Batch((Fetch(entry["id"]),))).results
        assert isinstance(result, Fetched)
        values[entry["id"]] = np.asarray(result.array).tolist()
    return listed | {"values": [values]}


def test_the_batches_of_rest_requests_give_the_same_session_again(http: Any, hosts: HostsHere) -> None:
    """Each example of the API page, one after the other."""
    compared = 0
    for step in walk.steps(export.document()):
        walk.send(http, step)
        for host in hosts.hosts:
            before, after = contents(host.session), contents(host.session.replayed)
            assert repr(before) == repr(after), step.operation
            compared += any(before.values())
    assert compared > 30


def test_requests_that_fail_leave_the_same_session_too(http: Any, hosts: HostsHere) -> None:
    assert http.post("/v1/sessions", json={"id": "demo"}).status_code == 201
    for path, body in (
        ("variables", {"id": "v", "value": [1.0, 2.0]}),
        ("variables", {"id": "v", "value": [1.0, 2.0]}),  # in use
        ("tapes", {"id": "t", "persistent": True}),
        ("tapes", {"id": "inner", "parents": ["t"]}),
        ("tapes", {"id": "lost", "parents": ["nobody"]}),
        ("tapes/t/ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": ["y"]}]}),
        (
            "tapes/t/ops",  # the first stays, the second fails
            {
                "ops": [
                    {"op": "square", "inputs": ["v"], "outputs": ["z"]},
                    {"op": "add", "inputs": ["z", [1.0, 2.0, 3.0]], "outputs": ["w"]},
                ]
            },
        ),
        ("tapes/t/gradient", {"targets": ["y"], "sources": ["nobody"]}),
        ("tapes/t/gradient", {"targets": ["y"], "sources": ["v"]}),
        ("attach", None),
    ):
        http.post(f"/v1/sessions/demo/{path}", json=body)
        [host] = hosts.hosts
        assert repr(contents(host.session)) == repr(contents(host.session.replayed)), path
    assert {entry["id"] for entry in host.session.listing("tape")} == {"t", "inner"}
    assert {entry["id"] for entry in host.session.listing("tensor")} == {"y", "z"}
