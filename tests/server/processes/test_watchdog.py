"""Processes that compute too long or are stuck: noticed, ended with a reason, and replaced."""

import asyncio
import contextlib
import errno
import os
import select
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from teletape_server.hosts.processes.watchdog import Watchdog
from teletape_server.hosts.processes.worker_host import WorkerHost
from teletape_server.hosts.processes.worker_pool import WorkerPool
from teletape_server.hosts.protocols import Ending, HostGone, Start
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.control import Sockets, socket_pairs
from teletape_server.ipc.leases import Reason

START = Start("cpu", 64 << 20, 16 << 20, time_limit=5.0)


# ------------------------------------------------------------------------------------------------------- the decisions
def watchdog() -> Watchdog:
    dog = Watchdog(grace=2.0, stuck_after=20.0)
    dog.time_limit = 5.0
    return dog


def answered(dog: Watchdog, now: float, seconds: float, *, cpu: float) -> Any:
    """A tick, and a sign of life if the watchdog asks for one."""
    ending = dog.tick(now, seconds)
    if dog.wants_ping():
        dog.sign_of_life(cpu)
    return ending


def test_a_request_past_limit_and_grace_ends_its_process() -> None:
    dog = watchdog()
    dog.begin(100.0)
    endings = [answered(dog, 100.0 + second, 1.0, cpu=second) for second in range(1, 9)]
    assert endings[:7] == [None] * 7
    assert endings[7].reason is Reason.DEADLINE
    assert "5 s" in endings[7].text
    assert "2 s" in endings[7].text


def test_each_request_has_its_own_time() -> None:
    dog = watchdog()
    for second in range(0, 100, 4):
        dog.begin(float(second))
        assert answered(dog, second + 4.0, 1.0, cpu=float(second)) is None
    dog.begin(None)
    assert [answered(dog, 1000.0, 1.0, cpu=100.0) for _ in range(10)] == [None] * 10


def test_a_pause_of_the_server_itself_makes_no_process_late() -> None:
    dog = watchdog()
    dog.begin(100.0)
    assert answered(dog, 101.0, 1.0, cpu=0.1) is None
    assert answered(dog, 9999.0, 1.0, cpu=0.2) is None  # the machine slept: the process gets its grace as well
    assert answered(dog, 10000.0, 1.0, cpu=0.3) is None
    assert answered(dog, 10001.0, 1.0, cpu=0.4).reason is Reason.DEADLINE


def test_a_process_without_a_sign_of_life_is_stuck() -> None:
    dog = watchdog()
    pings, endings = [], []
    for second in range(1, 22):
        endings.append(dog.tick(float(second), 1.0))
        pings.append(dog.wants_ping())
    assert pings.count(True) == 1
    assert endings[:20] == [None] * 20
    assert endings[20].reason is Reason.STUCK
    assert "20 s" in endings[20].text


def test_a_request_that_uses_no_cpu_is_stuck_and_an_idle_process_is_not() -> None:
    idle = watchdog()
    assert [answered(idle, float(second), 1.0, cpu=0.5) for second in range(100)] == [None] * 100
    still = watchdog()
    still.time_limit = float("inf")
    still.begin(0.0)
    endings = [answered(still, float(second), 1.0, cpu=0.5) for second in range(60)]
    assert next(ending for ending in endings if ending).reason is Reason.STUCK
    waits = watchdog()
    waits.time_limit, waits.needs_cpu = float("inf"), False
    waits.begin(0.0)
    assert [answered(waits, float(second), 1.0, cpu=0.5) for second in range(100)] == [None] * 100


# --------------------------------------------------------------------------------------------- a process of the test's
class FakeProcess:
    """A process that never ends by itself; its sentinel becomes readable when it is killed."""

    pid = -1
    exitcode: int | None = None

    def __init__(self) -> None:
        self.sentinel, self._writer = os.pipe()
        self._files = [self.sentinel, self._writer]
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1
        self.exitcode = -signal.SIGKILL
        os.write(self._writer, b".")

    def join(self, timeout: float | None = None) -> None:
        pass

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())


def with_fake(test: Callable[[WorkerHost, Sockets, FakeProcess], Awaitable[None]]) -> None:
    async def whole() -> None:
        ours, theirs = socket_pairs()
        process = FakeProcess()
        host = WorkerHost(process, ours, watchdog())  # type: ignore[arg-type]  # what a host uses of a process
        worker = Channel(theirs.requests)
        try:
            opening = asyncio.ensure_future(host.open(START))
            await asyncio.sleep(0)
            assert worker.receive() is not None
            worker.transmit(*worker.encode(("ready", None, 0)))
            await opening
            await test(host, theirs, process)
        finally:
            worker.close()
            theirs.close()
            process.close()

    asyncio.run(whole())


def test_the_request_that_ran_too_long_is_deadline_exceeded_and_those_that_wait_learn_why() -> None:
    async def test(host: WorkerHost, sockets: Sockets, process: FakeProcess) -> None:
        host._loop.time = lambda: now  # type: ignore[method-assign]
        now = 100.0
        running, waiting = host.submit("one", {}), host.submit("two", {})
        now = 106.0
        for _ in range(3):
            host.watch(1.0)
        reply = await running.reply
        assert reply.code == "deadline_exceeded"
        assert reply.facts["details"] == {"limit": 5.0, "reason": "deadline"}
        assert "session was ended" in reply.facts["message"]
        with pytest.raises(HostGone, match="limit of 5 s"):
            await waiting.reply
        assert (await host.ended).reason is Reason.DEADLINE
        assert process.kills == 1
        await host.gone
        with pytest.raises(HostGone):
            host.submit("three", {})

    with_fake(test)


def test_a_process_that_answers_pings_lives_and_one_that_does_not_is_ended() -> None:
    async def test(host: WorkerHost, sockets: Sockets, process: FakeProcess) -> None:
        dog = host._watchdog
        for _ in range(5):
            for _ in range(5):
                host.watch(1.0)
            assert sockets.control.recv(100)[:1] == b"p"
            sockets.control.send(bytes(8))  # no CPU time
            while dog.pinged:  # noqa: ASYNC110  # until the host has read it
                await asyncio.sleep(0)
        assert not host.ended.done()
        for _ in range(21):
            host.watch(1.0)
        assert (await host.ended).reason is Reason.STUCK
        await host.gone
        assert process.kills == 1

    with_fake(test)


def test_a_cancel_reaches_a_process_that_did_not_read_for_a_while() -> None:
    async def test(host: WorkerHost, sockets: Sockets, process: FakeProcess) -> None:
        host.submit("one", {})
        host.cancel()
        first = sockets.control.recv(100)
        assert first[:1] == b"c"
        filled = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                host._control.sock.send(first)
                filled += 1
        host.submit("two", {})
        host.cancel()
        assert [sockets.control.recv(100) for _ in range(filled)] == [first] * filled
        host.watch(0.001)
        assert int.from_bytes(sockets.control.recv(100)[1:], "little") == 2

    with_fake(test)


def test_requests_wait_while_too_many_file_descriptors_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(host: WorkerHost, sockets: Sockets, process: FakeProcess) -> None:
        worker, transmit = Channel(sockets.requests), host.channel.transmit
        refused: list[bytes] = []

        def send(data: bytes, fds: list[int]) -> None:
            if len(refused) < 3:
                refused.append(data)
                raise OSError(errno.ETOOMANYREFS, "Too many references: cannot splice")
            transmit(data, fds)

        monkeypatch.setattr(host.channel, "transmit", send)
        running = [host.submit("one", {}), host.submit("two", {})]
        while len(refused) < 3:  # noqa: ASYNC110  # until the host has tried again
            await asyncio.sleep(0)
        for number in (1, 2):
            while not select.select([sockets.requests], [], [], 0)[0]:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0)
            head, _ = worker.receive() or ((), None)
            assert head[:2] == ("do", number)
            worker.transmit(*worker.encode(("reply", number, None, "", {})))
        for each in running:
            assert (await each.reply).code is None
        assert len(set(refused)) == 1

    with_fake(test)


# ------------------------------------------------------------------------------------------------------ real processes
def test_a_stopped_spare_is_replaced_and_a_stopped_session_ends() -> None:
    async def whole() -> None:
        pool = WorkerPool(grace=0.2, stuck_after=0.8)
        pool.prepare()
        try:
            host = await pool.start(Start("cpu", 64 << 20, 16 << 20))
            assert isinstance(host, WorkerHost)
            assert pool.spare is not None
            spare = await pool.spare
            for process in (host, spare):
                assert process.pid is not None
                with contextlib.suppress(ProcessLookupError):  # on a busy machine it may count as stuck already
                    os.kill(process.pid, signal.SIGSTOP)
            for process in (host, spare):
                assert (await process.ended).reason is Reason.STUCK
                await process.gone
            while pool.spare is None or (await pool.spare).pid == spare.pid:  # noqa: ASYNC110  # the pool's own state
                await asyncio.sleep(0)
        finally:
            await pool.close()
        assert not pool.hosts

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_processes_start_while_every_other_thread_waits_and_hanging_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.hosts.processes.worker_host._GRACE", 3600.0)

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        release = threading.Event()
        waits = [loop.run_in_executor(None, release.wait) for _ in range(64)]  # all threads of the default executor
        pool, fakes, hosts = WorkerPool(), [FakeProcess() for _ in range(64)], []
        try:
            for fake in fakes:
                ours, theirs = socket_pairs()
                theirs.close()
                hosts.append(WorkerHost(fake, ours, watchdog()))  # type: ignore[arg-type]  # as above
            ends = [asyncio.ensure_future(host.end(Ending(Reason.DELETED, "enough"))) for host in hosts]
            host = await pool.start(START)
            assert (await host.submit("attach", {"accept": "application/json"}).reply).code is None
            assert not any(end.done() for end in ends)
            for fake in fakes:
                fake.kill()
            await asyncio.gather(*ends)
        finally:
            release.set()
            await asyncio.gather(*waits)
            await pool.close()
            for fake in fakes:
                fake.close()

    asyncio.run(asyncio.wait_for(whole(), 60))
