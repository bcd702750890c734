"""What the server knows of a session's process without asking it, and what crosses between their clocks: durations."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

import teletape_wire as wire
from serving import Program, Server, ok, until
from teletape_engine.commands import Batch, Call, Constant, Fetch
from teletape_engine.recording.values import Literal
from teletape_server.hosts.processes.watchdog import Watchdog
from teletape_server.hosts.processes.worker_host import WorkerHost
from teletape_server.hosts.protocols import Ending, HostFacts, Running, Start
from teletape_server.ipc.control import socket_pairs
from teletape_server.ipc.heads import FRAME, MOST, Approval
from teletape_server.ipc.leases import Reason, Times
from teletape_server.settings import Settings

PARAMS = {"accept": wire.FRAME_TYPE, "full": False, "encoding": "", "idempotency_key": None}
APPROVAL = Approval(
    *(b"POST / HTTP/1.1\r\nContent-Length: ", b"\r\n\r\n", "batch", wire.FRAME_TYPE, PARAMS, b"%(content-length)b\n"),
    *(None, MOST, MOST, 8192, FRAME, wire.FRAME_TYPE),
)
CODE = """
import socket, sys, time
monotonic, now = time.monotonic, time.time
time.monotonic, time.time = lambda: monotonic() + 1e6, lambda: now() + 1e6
from teletape_server.ipc.control import Sockets
from teletape_server.worker.main import main
main(Sockets(*[socket.socket(fileno=int(file)) for file in sys.argv[1:]]))
"""
#: Commands that take some tenths of a second.
LONG = [
    Call("fill", (Literal(1e-3),), ("a",), {"shape": (600, 600)}),
    *[Call("matmul", ("a", "a"), (f"m{i}",)) for i in range(20)],
]


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server(Settings(shutdown_grace=0.1, direct="off")).running() as server:
        yield server


@pytest.fixture
def http(served: Server) -> Iterator[httpx.Client]:
    with served.client() as client:
        ok(client.post("/v1/sessions", json={"id": "demo"}))
        yield client
        client.delete("/v1/sessions/demo")


def facts_of(server: Server) -> HostFacts:
    facts: HostFacts = server.app.state.registry.find("local", "demo").host.facts()
    return facts


def test_facts_are_there_from_the_start_of_a_session(served: Server, http: httpx.Client) -> None:
    before = facts_of(served)
    assert (before.running, before.waiting, before.frames, before.lent) == (0, 0, 0, 0)
    Program(http, "demo").run(Constant(1, np.arange(100_000.0)), Call("reduce_sum", (1,), (2,)), Fetch(2))
    after = facts_of(served)
    assert after.bytes_in_use >= before.bytes_in_use + 800_000
    assert after.compute_seconds > before.compute_seconds
    assert after.cpu_seconds > before.cpu_seconds


def test_facts_say_what_runs_and_what_waits(served: Server, http: httpx.Client) -> None:
    long = [
        Call("fill", (Literal(1e-3),), ("a",), {"shape": (2000, 2000)}),
        *[Call("matmul", ("a", "a"), (f"m{i}",)) for i in range(200)],
    ]
    program = Program(http, "demo")
    threads = [threading.Thread(target=program.outcome, args=(program.batch(*long),)) for _ in range(3)]
    for waiting, thread in enumerate(threads):  # one by one: batches come in the order of their numbers
        thread.start()
        until(lambda: (facts_of(served).running, facts_of(served).waiting) == (1, waiting))  # noqa: B023
    while any(thread.is_alive() for thread in threads):
        ok(http.post("/v1/sessions/demo/cancel"))
        threads[0].join(0.1)
    until(lambda: (facts_of(served).running, facts_of(served).waiting) == (0, 0))


# ---------------------------------------------------------------------------------------------------- other clocks
class Elsewhere:
    """A session's process whose clocks are far ahead of the server's, as those of another machine may be."""

    def __init__(self) -> None:
        self.sockets, theirs = socket_pairs()
        files = [sock.fileno() for sock in theirs]
        self._process = subprocess.Popen([sys.executable, "-c", CODE, *map(str, files)], pass_fds=files)
        theirs.close()
        self.pid = self._process.pid
        self.sentinel = os.pidfd_open(self.pid)

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        self._process.wait(timeout or None)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        os.close(self.sentinel)


class Connection:
    """A connection that can be lent, and the session that lends it."""

    def __init__(self, *, has_tls: bool = False) -> None:
        self.caller, self.sock = socket.socketpair()
        self.caller.settimeout(60)
        self._facts = {"socket": self.sock, "ssl_object": object() if has_tls else None}
        self.times_now = Times(5000.0, 60.0, 9000.0, 0.0)

    def get_extra_info(self, name: str) -> Any:
        return self._facts[name]

    def times(self) -> Times:
        return self.times_now

    def send(self, frame: bytes) -> None:
        self.caller.sendall(b"%b%d%b" % (APPROVAL.before, len(frame), APPROVAL.after) + frame)

    def answer(self) -> wire.Served:
        length, _, body = self.caller.recv(MOST).partition(b"\n")
        assert int(length) == len(body)
        return wire.decode_answer(body)[1]

    def close(self) -> None:
        self.caller.close()
        self.sock.close()


def frame(*commands: Any, client: int = 0) -> bytes:
    return b"".join(wire.encode_batch(Batch(commands, (), client, 1 if client else 0, b"n" * 16)).buffers)


def with_process_elsewhere(test: Callable[[WorkerHost], Awaitable[None]]) -> None:
    async def whole() -> None:
        process = Elsewhere()
        host = WorkerHost(process, process.sockets, Watchdog(grace=60.0, stuck_after=600.0))
        try:
            await host.open(Start("cpu", 64 << 20, 16 << 20))
            await test(host)
        finally:
            await host.end(Ending(Reason.DELETED, "the test ends it"))

    asyncio.run(whole())


def post(host: WorkerHost, now: float, *commands: Any) -> Running:
    body = host.body_buffer(len(content := frame(*commands)))
    body.view[:] = content
    params = {**PARAMS, "now": now, "terms": (60.0, now + 5000.0, 0.0)}
    return host.submit("batch", params, content_type=wire.FRAME_TYPE, body=body)


def test_a_process_with_another_clock_says_how_long_a_request_waited_and_when_the_session_ends() -> None:
    async def test(host: WorkerHost) -> None:
        began = time.monotonic()
        requests = [post(host, 5000.0, *LONG) for _ in range(2)]
        served = [wire.decode_answer((await running.reply).body)[1] for running in requests]
        took = time.monotonic() - began
        assert 0.0 <= served[0].queue_seconds < took
        assert served[0].compute_seconds * 0.5 < served[1].queue_seconds < took, "it waited for the first one"
        for item in served:
            assert item.expires_at is not None
            assert 5060.0 <= item.expires_at <= 5060.0 + took
        assert 0.0 < host.facts().compute_seconds < took

    with_process_elsewhere(test)


def test_a_process_with_another_clock_serves_a_lent_connection() -> None:
    async def test(host: WorkerHost) -> None:
        await host.submit("attach", {**PARAMS, "client": 2, "now": 0.0}).reply
        connection = Connection()
        began = time.monotonic()
        loan = host.lend(connection, connection, APPROVAL, connection)  # type: ignore[arg-type]
        assert loan is not None
        connection.send(frame(client=2))
        served = await asyncio.to_thread(connection.answer)
        took = time.monotonic() - began
        assert served.expires_at is not None
        assert 5060.0 <= served.expires_at <= 5060.0 + took
        assert served.queue_seconds < took
        facts = host.facts()
        assert (facts.frames, facts.answered[FRAME].total, facts.lent) == (1, 1, 1)
        assert facts.answered[FRAME].seconds < took
        assert 5000.0 < facts.worked <= 5000.0 + took
        loan.close()
        assert (host.facts().answered[FRAME].total, host.facts().lent) == (1, 0)
        connection.close()

    with_process_elsewhere(test)


def test_a_connection_with_tls_is_not_lent() -> None:
    """The process would read what only the server can decrypt."""

    async def test(host: WorkerHost) -> None:
        connection = Connection(has_tls=True)
        assert host.lend(connection, connection, APPROVAL, connection) is None  # type: ignore[arg-type]
        assert host.facts().lent == 0
        connection.close()

    with_process_elsewhere(test)
