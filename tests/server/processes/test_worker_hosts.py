"""Worker processes without HTTP: start, requests, cancel, kill, end."""

import asyncio
import contextlib
import dataclasses
import functools
import gc
import os
import re
import resource
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from serving import open_files
from teletape_engine.commands import Batch, Call, ClientAttach, Constant, Fetch
from teletape_engine.commands.results import Answer, Facts, Fetched
from teletape_engine.errors import AnswerDroppedError, UnimplementedError
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_server.hosts.processes import worker_host, worker_pool
from teletape_server.hosts.processes.forkserver import start_process
from teletape_server.hosts.processes.worker_host import WorkerHost
from teletape_server.hosts.processes.worker_pool import WorkerPool
from teletape_server.hosts.protocols import Ending, HostGone, Running, Start
from teletape_server.hosts.running import REQUEST_ID
from teletape_server.ipc.channel import Channel
from teletape_server.ipc.confinement import User
from teletape_server.ipc.control import Sockets, Watcher, socket_pairs
from teletape_server.ipc.leases import Reason
from teletape_server.ipc.page import Page
from teletape_server.ipc.processes import ProcessKind
from teletape_server.worker import main

START = Start("cpu", 64 << 20, 16 << 20)
BATCH = {"accept": wire.FRAME_TYPE, "full": False, "encoding": "", "now": 0.0, "terms": (60.0, 600.0, 0.0)}


@asynccontextmanager
async def workers(grace: float) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(grace=grace)
    pool.prepare()
    try:
        yield pool
    finally:
        await pool.close()


def run(test: Callable[[WorkerPool], Awaitable[None]], *, grace: float = 10.0) -> None:
    async def whole() -> None:
        async with workers(grace) as pool:
            await test(pool)

    asyncio.run(whole())


async def started(pool: WorkerPool, start: Start = START) -> WorkerHost:
    host = await pool.start(start)
    assert isinstance(host, WorkerHost)
    return host


def submit(host: WorkerHost, *commands: Any, releases: tuple[Any, ...] = ()) -> Running:
    return post(host, b"".join(wire.encode_batch(Batch(commands, releases)).buffers))


def post(host: WorkerHost, frame: bytes) -> Running:
    buffer = host.body_buffer(len(frame))
    buffer.view[:] = frame
    return host.submit("batch", BATCH, content_type=wire.FRAME_TYPE, body=buffer)


async def execute(host: WorkerHost, *commands: Any) -> Answer:
    reply = await submit(host, *commands).reply
    assert reply.code is None, reply.facts
    return wire.decode_answer(reply.body)[0]


GOOD_SMALL = b"".join(wire.encode_batch(Batch(())).buffers)


@functools.cache
def long() -> bytes:
    """A batch that takes a good part of a second: made once, since making it takes as long."""
    chain = [Call("add", (i, Literal(1.0)), (i + 1,)) for i in range(1, 100_000)]
    return b"".join(wire.encode_batch(Batch((Constant(1, np.zeros((), np.float32)), *chain, Fetch(100_000)))).buffers)


def test_a_spare_process_becomes_the_next_session() -> None:
    async def test(pool: WorkerPool) -> None:
        first = await started(pool)
        second = await started(pool)
        assert first.pid != second.pid
        await execute(first, Constant("x", np.ones(2, np.float32)))
        answer = await execute(second, Fetch("x"))
        assert answer.failure is not None
        assert answer.failure.code == "unknown_id"

    run(test)


def test_a_spare_that_died_is_replaced() -> None:
    async def test(pool: WorkerPool) -> None:
        assert pool.spare is not None
        spare = await pool.spare
        assert spare.pid is not None
        os.kill(spare.pid, signal.SIGKILL)
        await spare.ended
        host = await started(pool)
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Reference cycles are not collected: what they refer to stays open unless something closes it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_processes_that_have_ended_leave_no_file_open() -> None:
    async def test(pool: WorkerPool) -> None:
        before = 0
        for end in ("first", "killed", "killed", "deleted", "deleted"):
            host = await started(pool)
            await execute(host, Constant("x", np.ones(1 << 16, np.float32)))
            if end == "deleted":
                await host.end(Ending(Reason.DELETED, "the test ends it"))
            else:
                assert host.pid is not None
                os.kill(host.pid, signal.SIGKILL)
            await host.gone
            assert pool.spare is not None
            await pool.spare
            before = before or open_files()
            assert open_files() == before

    run(test)


def test_requests_run_in_the_order_in_which_they_came() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        first = submit(host, Constant("x", np.full(3, 2.0, np.float32)))
        second = submit(host, Call("mul", ("x", "x"), ("y",)), Fetch("y"))
        assert len(host.running) == 2
        await first.reply
        answer = wire.decode_answer((await second.reply).body)[0]
        (fetched,) = answer.results
        assert isinstance(fetched, Fetched)
        assert fetched.array.tolist() == [4.0] * 3
        assert not host.running

    run(test)


def test_large_tensors_stay_in_the_bodys_memory_and_small_ones_do_not() -> None:
    """A megabyte put is held once: the body's segment leaves the pool until the value is released."""

    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        large = np.arange(1 << 18, dtype=np.float32)
        await execute(host, Constant("large", large))
        assert len(host.channel.pool.segments) == 1
        await execute(host, Constant("other", large + 1))
        assert len(host.channel.pool.segments) == 2
        await submit(host, releases=("large",)).reply
        for n in range(6):
            await execute(host, *[Constant(1000 * n + i, large[: 1 << 10]) for i in range(256)])
        answer = await execute(host, Fetch("other"), Fetch(5))
        assert [result.array.ravel()[-1] for result in answer.results if isinstance(result, Fetched)] == [
            1 << 18,
            1023.0,
        ]
        assert len(host.channel.pool.segments) <= 4  # two that held values, two that take turns

    run(test)


def test_the_shared_memory_of_an_idle_session_is_freed_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_IDLE_SECONDS", 0.0)

    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        large = np.arange(1 << 18, dtype=np.float32)
        answer = await execute(host, Constant("x", large), Fetch("x"))
        assert host.channel.pool.segments
        assert host.channel.maps
        del answer
        await submit(host, releases=("x",)).reply
        deadline = time.monotonic() + 20
        while host.channel.pool.segments or host.channel.maps:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        assert host.pid is not None
        deadline = time.monotonic() + 20
        while "teletape-body" in proc(host.pid, "maps"):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        assert (await execute(host, Constant("y", large), Fetch("y"))).failure is None

    run(test, grace=0.2)  # sessions are looked at four times in this time


def test_a_worker_does_not_grow_with_the_requests_it_answers() -> None:
    """Good ones and refused ones, small and large: memory that waits for a garbage collection counts as used."""

    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        assert host.pid is not None
        good = b"".join(wire.encode_batch(Batch((Constant("x", np.ones(1 << 16)),), ("x",))).buffers)
        sizes = []
        for n in range(1200):
            await post(host, good if n % 4 == 0 else GOOD_SMALL if n % 4 == 1 else good[:-8] + b"spoiled!").reply
            if n in (200, 1199):
                sizes.append(int(re.search(r"VmData:\s+([0-9]+) kB", proc(host.pid, "status"))[1]))  # type: ignore[index]
        assert sizes[1] - sizes[0] < 8192
        assert len(host.channel.pool.segments) <= 4

    run(test)


def test_progress_comes_before_the_answer() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        running = post(host, long())
        seen = set()
        while not running.reply.done():
            seen.add((running.done, running.total))
            await asyncio.sleep(0)
        steps = sorted(done for done, total in seen if total)
        assert steps
        assert {total for _, total in seen} <= {0, 100_001}

    run(test)


def test_cancel_reaches_what_runs_and_what_waits_and_nothing_later() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        running = [post(host, long()), post(host, long())]
        while not running[0].total:  # noqa: ASYNC110  # what the front shows is polled by its callers too
            await asyncio.sleep(0)
        host.cancel()
        for request in running:
            failure = wire.decode_answer((await request.reply).body)[0].failure
            assert failure is not None
            assert failure.code in ("cancelled", "id_in_use")
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


def test_a_process_that_is_killed_answers_everyone_with_the_reason() -> None:
    async def test(pool: WorkerPool) -> None:
        host, other = await started(pool), await started(pool)
        running = [post(host, long()), post(host, long())]
        assert host.pid is not None
        os.kill(host.pid, signal.SIGKILL)
        for request in running:
            with pytest.raises(HostGone, match=r"SIGKILL.*memory runs out"):
                await request.reply
        assert "SIGKILL" in (await host.ended).text
        with pytest.raises(HostGone):
            host.submit("attach", {})
        with pytest.raises(HostGone):
            host.body_buffer(10)
        assert (await execute(other, Constant("x", np.ones(2)))).failure is None
        await host.end(Ending(Reason.DELETED, "again"))

    run(test)


def test_bodies_on_their_way_to_a_process_that_has_ended_leave_no_open_file() -> None:
    """Whether the server finds its end when it sends, or while what it could not send yet waits."""
    large = b"".join(wire.encode_batch(Batch((Constant("x", np.ones(1 << 16)),), ("x",))).buffers)

    async def test(pool: WorkerPool) -> None:
        for waits in (False, True):
            host = await started(pool)
            pid = host.pid
            assert pid is not None
            assert pool.spare is not None
            await pool.spare  # its start opens and closes files
            before = open_files()
            os.kill(pid, signal.SIGSTOP)
            if waits:
                while not host._outbox._unsent:
                    post(host, GOOD_SMALL)
            else:
                end(pid)
            running = [post(host, large) for _ in range(8)]
            if waits:
                end(pid)
            for request in running:
                with pytest.raises(HostGone, match="SIGKILL"):
                    await request.reply
            await host.gone
            assert open_files() < before

    run(test)


def end(pid: int) -> None:
    """Ends a process, whose server learns of it in its next turn."""
    os.kill(pid, signal.SIGKILL)
    while re.search(r"^State:\s+[^ZX]", status_of(pid), re.M):
        pass


def stop(pid: int) -> None:
    """Stops a process; when this returns, it runs no more."""
    os.kill(pid, signal.SIGSTOP)
    while not re.search(r"^State:\s+T", status_of(pid), re.M):
        pass


def status_of(pid: int) -> str:
    try:
        return proc(pid, "status")
    except (FileNotFoundError, ProcessLookupError):  # it is gone, or goes while it is read
        return ""


def test_a_process_that_cannot_be_ended_keeps_no_caller_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise PermissionError("not permitted")

    async def test(pool: WorkerPool) -> None:
        monkeypatch.setattr(worker_host, "_GRACE", 0.01)
        host = await started(pool)
        request, process = post(host, long()), host._process
        with monkeypatch.context() as patch:
            patch.setattr(process, "kill", refuse)
            stop(process.pid or 0)
            host.channel.sock.shutdown(socket.SHUT_RDWR)
            with pytest.raises(HostGone, match="how it ended is not known"):
                await request.reply
            await host.end(Ending(Reason.SHUTDOWN, "as at the server's end"))
        process.kill()

    run(test)
    assert "could not be ended" in caplog.text


def test_ending_a_host_ends_its_process_also_while_it_computes() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        running = post(host, long())
        await host.end(Ending(Reason.DELETED, "enough"))
        with pytest.raises(HostGone, match="enough"):
            await running.reply
        assert (await host.ended).text == "enough"
        assert host.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(host.pid, 0)

    run(test)


def test_a_device_that_cannot_be_used_is_refused_and_leaves_no_process() -> None:
    async def test(pool: WorkerPool) -> None:
        with pytest.raises(UnimplementedError, match="gpu"):
            await pool.start(Start("gpu:99", 1 << 20, 1 << 20))
        assert len(pool.hosts) <= 1, "the one for the next session"
        assert (await pool.devices())[0].device == "cpu"
        assert await pool.devices() == await pool.devices()

    run(test)


def test_a_pool_whose_processes_do_not_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(pool: WorkerPool) -> None:
        assert pool.lack() == ""
        monkeypatch.setattr(worker_pool, "_SPARE_SECONDS", -1.0)
        assert "has not started" in pool.lack()
        assert pool.spare is not None
        await pool.spare
        assert pool.lack() == ""

        def refuse(*_: Any) -> Any:
            raise OSError("too many processes")

        monkeypatch.setattr(worker_pool, "start_process", refuse)
        host, pool.spare = pool.spare.result(), None
        pool.prepare()
        await asyncio.wait([pool.spare])
        assert "too many processes" in pool.lack()
        await host.end(Ending(Reason.DELETED, "the test ends it"))

    run(test)


def test_no_host_starts_after_the_end() -> None:
    async def test(pool: WorkerPool) -> None:
        await pool.close()
        pool.prepare()
        pool.spare = None
        with pytest.raises(HostGone, match="shutting down"):
            await pool.start(START)

    run(test)


def test_a_process_that_starts_after_the_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    processes: list[tuple[BaseProcess, Sockets]] = []

    def start_late(*arguments: Any) -> tuple[BaseProcess, Sockets]:
        released.wait(60)
        processes.append(start_process(*arguments))
        return processes[-1]

    async def test() -> None:
        pool = WorkerPool()
        pool.prepare()
        await pool.close()

    monkeypatch.setattr(worker_pool, "start_process", start_late)
    monkeypatch.setattr(worker_pool, "_START_SECONDS", 0.01)
    asyncio.run(test())
    released.set()
    while not processes:
        pass
    process, sockets = processes[0]
    process.join(60)
    assert process.exitcode == 0
    assert [sock.fileno() for sock in sockets] == [-1, -1]


def test_one_who_waits_for_the_end_may_leave_and_others_wait_on() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        ending = Ending(Reason.DELETED, "the test ends it")
        leaver = asyncio.create_task(host.end(ending))
        await asyncio.sleep(0)
        leaver.cancel()
        await host.end(ending)
        assert leaver.cancelled()
        assert host.gone.done()

    run(test)


def test_a_process_whose_server_is_gone_ends_when_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended(Exception):
        pass

    def end(status: int) -> None:
        raise Ended(status)

    server, process = socket_pairs()
    monkeypatch.setattr(os, "_exit", end)
    worker = main.Worker(Channel(process.requests), Watcher(process.control))
    server.close()
    with contextlib.closing(process):
        with pytest.raises(Ended, match="0"):
            worker.answers.send(("ready", None, 0))
        with pytest.raises(Ended, match="0"):
            worker._next_message()


@pytest.mark.parametrize("closed", [0, 1])
def test_a_process_ends_when_the_server_closes_either_socket_even_while_it_computes(closed: int) -> None:
    process, sockets = start_process(ProcessKind.SESSION)
    channel = Channel(sockets.requests)
    page, file = Page.new()
    page.close()
    channel.transmit(channel.encode(("open", dataclasses.asdict(START)))[0], [file])
    assert (channel.receive() or ((), None))[0] == ("ready", None, 0)
    body = channel.body(len(long()))
    body.view[:] = long()
    channel.transmit(*channel.encode(("do", 1, "batch", BATCH, wire.FRAME_TYPE, True, None), body))
    message = channel.receive()
    assert message is not None
    assert message[0][0] == "progress"
    # The end of the requests is seen after the request that runs; that of the control socket at once.
    sockets[closed].close()
    process.join(60)
    assert process.exitcode == 0
    sockets.close()


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def test_a_workers_memory_is_capped_and_its_linear_algebra_has_one_thread() -> None:
    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        assert host.pid is not None
        limits = {name.strip(): value for name, value in re.findall(r"^(.{25}) *(\S+)", proc(host.pid, "limits"), re.M)}
        growth = START.memory_limit + START.max_body + (512 << 20)
        assert growth < int(limits["Max data size"]) < growth + (256 << 20)  # what the process has at its start
        assert START.memory_limit < int(limits["Max address space"]) < 8 << 30
        assert limits["Max core file size"] == "0"
        assert int(limits["Max open files"]) <= 1024
        assert "NoNewPrivs:\t1" in proc(host.pid, "status")
        # OPENBLAS_NUM_THREADS is set for the tests themselves too.
        assert {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"} <= {*proc(host.pid, "environ").split("\0")}
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] != int(limits["Max data size"])

    run(test)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its processes another user")
def test_workers_run_as_their_own_user() -> None:
    async def test() -> None:
        pool = WorkerPool(User(65534, 65533))
        try:
            host = await started(pool)
            assert host.pid is not None
            status = proc(host.pid, "status")
            assert re.search(r"^Uid:\s+65534\s+65534\s+65534", status, re.M)
            assert re.search(r"^Gid:\s+65533\s+65533\s+65533", status, re.M)
            assert re.search(r"^Groups:\s*$", status, re.M)
            body = np.ones(1 << 16)
            answer = await execute(host, Constant("x", body), Call("add", ("x", Literal(1.0)), ("y",)), Fetch("y"))
            assert answer.results[-1].array[0] == 2.0  # type: ignore[union-attr]
        finally:
            await pool.close()

    asyncio.run(test())


def test_an_unknown_method_is_a_defect_and_the_session_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the traceback, with the session and the request."""

    async def test(pool: WorkerPool) -> None:
        host = await started(pool)
        host.name = "session demo of ann"
        REQUEST_ID.set("my-request")
        reply = await host.submit("no.such.method", {}).reply
        [record] = [record for record in caplog.records if "traceback" in record.getMessage().lower()]
        assert record.getMessage().startswith(
            "session demo of ann: request my-request met a defect of the server\nTrace"
        )
        assert record.getMessage().endswith("KeyError: 'no.such.method'")
        assert reply.code == "internal"
        assert "no.such.method" in reply.facts["message"]
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


def test_answers_are_forgotten_from_time_to_time_also_in_a_session_that_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = socket_pairs()
    with contextlib.closing(ours), contextlib.closing(theirs):
        monkeypatch.setattr(main, "_ANSWERS_SECONDS", 0.001)
        worker, server = main.Worker(Channel(theirs.requests), Watcher(theirs.control)), Channel(ours.requests)
        session = worker._session = Session()
        client = attached(session)
        batch = Batch((Constant("x", np.ones(1000)), Fetch("x")), ("x",), client, 1, b"1" * 16)
        session.execute(batch)
        before = session.bytes_in_use()
        while session.bytes_in_use() == before:
            server.transmit(*server.encode(("do",)))  # a message waits each time
            assert worker._next_message() == (("do",), None)
        with pytest.raises(AnswerDroppedError):
            session.execute(batch)


def test_answers_are_forgotten_in_an_idle_session(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket_pairs()
    with contextlib.closing(ours), contextlib.closing(theirs):
        monkeypatch.setattr(main, "_ANSWERS_SECONDS", 0.001)
        worker, server = main.Worker(Channel(theirs.requests), Watcher(theirs.control)), Channel(ours.requests)
        session = worker._session = Session()
        session.execute(Batch((Constant("x", np.ones(1000)), Fetch("x")), ("x",), attached(session), 1, b"1" * 16))
        forget, times = session.forget_old_answers, []

        def forget_and_count() -> None:
            forget()
            times.append(session.bytes_in_use())
            if len(times) == 2:
                server.transmit(*server.encode(("do",)))

        monkeypatch.setattr(session, "forget_old_answers", forget_and_count)
        assert worker._next_message() == (("do",), None)
        assert times[0] > times[1]


def attached(session: Session) -> int:
    [result] = session.execute(Batch((ClientAttach(),))).results
    assert isinstance(result, Facts)
    return int(result.facts["client"])
