"""Worker processes and the channel to them, without HTTP."""

import asyncio
import functools
import gc
import os
import re
import resource
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from teletape_engine.commands import Batch, Call, Constant, Fetch
from teletape_engine.commands.results import Answer, Fetched
from teletape_engine.errors import UnimplementedError
from teletape_engine.recording.values import Literal
from teletape_server.hosts.protocols import HostGone, Running, Start
from teletape_server.hosts.worker_host import WorkerHost
from teletape_server.hosts.worker_pool import WorkerPool
from teletape_server.worker.channel import INLINE, Channel
from teletape_server.worker.idempotency import IdempotencyConflictError, ReplyStore
from teletape_server.worker.methods import METHODS, Request, Result, method

START = Start("cpu", 64 << 20, 16 << 20)
BATCH = {"accept": wire.FRAME_TYPE, "full": False, "encoding": "", "now": 0.0, "terms": (60.0, 600.0, 0.0)}


# ------------------------------------------------------------------------------------------------------------- channel
@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = (Channel(sock) for sock in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    yield one, other
    one.close()
    other.close()


def send(channel: Channel, head: Any, content: bytes | None = None) -> int:
    """Sends a message; returns the id of the segment that its body lies in, 0 for none."""
    body = None
    if content is not None:
        body = channel.body(len(content))
        body.view[:] = content
    segment = body.segment.id if body is not None and body.segment is not None else 0
    channel.transmit(*channel.encode(head, body))
    return segment


def test_small_bodies_travel_in_their_message(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    assert send(one, ["head", 1], b"x" * INLINE) == 0
    head, body = other.receive() or (None, None)
    assert head == ("head", 1)
    assert body == b"x" * INLINE
    assert send(one, ["no body"]) == 0
    assert other.receive() == (("no body",), None)


def test_large_bodies_lie_in_memory_that_is_used_again_once_nobody_looks(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    size = INLINE + 1
    first = send(one, 1, b"a" * size)
    _, body = other.receive() or (None, None)
    assert body is not None
    assert body.readonly
    array = np.frombuffer(body[100:200], np.uint8)
    del body
    second = send(one, 2, b"b" * size)
    other.receive()
    send(other, "what is free")
    one.receive()
    assert second != first
    third = send(one, 3, b"c" * size)
    other.receive()
    assert third == second
    assert (array == ord("a")).all()
    del array
    gc.collect()
    send(other, "what is free")
    one.receive()
    assert {send(one, 4, b"d" * size), send(one, 5, b"e" * size)} == {first, second}


def test_a_room_that_is_given_back_is_used_again(ends: tuple[Channel, Channel]) -> None:
    one, _ = ends
    body = one.body(INLINE + 1)
    assert body.segment is not None
    number = body.segment.id
    body.discard()
    again = one.body(INLINE + 1)
    assert again.segment is not None
    assert again.segment.id == number


def test_idle_memory_is_bounded_and_the_other_end_lets_go_of_it(ends: tuple[Channel, Channel]) -> None:
    """Bodies of ever new sizes: what is kept for reuse stays under 256 MiB, on both ends."""
    one, other = ends
    for n in range(40):
        body = one.body((10 << 20) + (n << 20))
        one.transmit(*one.encode(n, body))
        other.receive()
        send(other, "what is free")
        one.receive()
    one.body(0)
    send(one, "what is forgotten")
    other.receive()
    assert sum(segment.size for segment in one.pool._idle) <= 256 << 20
    assert len(other._maps) == len(one.pool._segments) < 20


def test_the_end_of_one_end_is_seen_by_the_other(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    one.close()
    assert other.receive() is None
    with pytest.raises(OSError, match="closed"):
        one.body(INLINE + 1)


# -------------------------------------------------------------------------------------------------------------- workers
@asynccontextmanager
async def workers() -> AsyncIterator[WorkerPool]:
    made = WorkerPool()
    made.prepare()
    try:
        yield made
    finally:
        await made.close()


def run(test: Callable[[WorkerPool], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with workers() as made:
            await test(made)

    asyncio.run(whole())


async def started(made: WorkerPool, start: Start = START) -> WorkerHost:
    host = await made.start(start)
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
    async def test(made: WorkerPool) -> None:
        first = await started(made)
        second = await started(made)
        assert first.pid != second.pid
        await execute(first, Constant("x", np.ones(2, np.float32)))
        answer = await execute(second, Fetch("x"))
        assert answer.failure is not None
        assert answer.failure.code == "unknown_id"

    run(test)


def test_a_spare_that_died_is_replaced() -> None:
    async def test(made: WorkerPool) -> None:
        assert made._spare is not None
        spare = await made._spare
        assert spare.pid is not None
        os.kill(spare.pid, signal.SIGKILL)
        await spare.ended
        host = await started(made)
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


def test_requests_run_in_the_order_in_which_they_came() -> None:
    async def test(made: WorkerPool) -> None:
        host = await started(made)
        first = submit(host, Constant("x", np.full(3, 2.0, np.float32)))
        second = submit(host, Call("mul", ("x", "x"), ("y",)), Fetch("y"))
        assert len(host.running) == 2
        await first.reply
        answer = wire.decode_answer((await second.reply).body)[0]
        (found,) = answer.results
        assert isinstance(found, Fetched)
        assert found.array.tolist() == [4.0] * 3
        assert not host.running

    run(test)


def test_large_tensors_stay_in_the_bodys_memory_and_small_ones_do_not() -> None:
    """A megabyte put is held once: the body's segment leaves the pool until the value is released."""

    async def test(made: WorkerPool) -> None:
        host = await started(made)
        large = np.arange(1 << 18, dtype=np.float32)
        await execute(host, Constant("large", large))
        assert len(host._channel.pool._segments) == 1
        await execute(host, Constant("other", large + 1))
        assert len(host._channel.pool._segments) == 2
        await submit(host, releases=("large",)).reply
        for n in range(6):
            await execute(host, *[Constant(1000 * n + i, large[: 1 << 10]) for i in range(256)])
        answer = await execute(host, Fetch("other"), Fetch(5))
        assert [one.array.ravel()[-1] for one in answer.results if isinstance(one, Fetched)] == [1 << 18, 1023.0]
        assert len(host._channel.pool._segments) <= 4  # two that held values, two that take turns

    run(test)


def test_a_worker_does_not_grow_with_the_requests_it_answers() -> None:
    """Good ones and refused ones, small and large: memory that waits for a garbage collection counts as used."""

    async def test(made: WorkerPool) -> None:
        host = await started(made)
        assert host.pid is not None
        good = b"".join(wire.encode_batch(Batch((Constant("x", np.ones(1 << 16)),), ("x",))).buffers)
        sizes = []
        for n in range(1200):
            await post(host, good if n % 4 == 0 else GOOD_SMALL if n % 4 == 1 else good[:-8] + b"spoiled!").reply
            if n in (200, 1199):
                sizes.append(int(re.search(r"VmData:\s+([0-9]+) kB", proc(host.pid, "status"))[1]))  # type: ignore[index]
        assert sizes[1] - sizes[0] < 8192
        assert len(host._channel.pool._segments) <= 4

    run(test)


def test_progress_comes_before_the_answer() -> None:
    async def test(made: WorkerPool) -> None:
        host = await started(made)
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
    async def test(made: WorkerPool) -> None:
        host = await started(made)
        running = [post(host, long()), post(host, long())]
        while not running[0].total:  # noqa: ASYNC110  # what the front shows is polled by its callers too
            await asyncio.sleep(0)
        host.cancel()
        for one in running:
            failure = wire.decode_answer((await one.reply).body)[0].failure
            assert failure is not None
            assert failure.code in ("cancelled", "id_in_use")
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


def test_a_process_that_is_killed_answers_everyone_with_the_reason() -> None:
    async def test(made: WorkerPool) -> None:
        host, other = await started(made), await started(made)
        running = [post(host, long()), post(host, long())]
        assert host.pid is not None
        os.kill(host.pid, signal.SIGKILL)
        for one in running:
            with pytest.raises(HostGone, match=r"SIGKILL.*memory runs out"):
                await one.reply
        assert "SIGKILL" in await host.ended
        with pytest.raises(HostGone):
            host.submit("attach", {})
        with pytest.raises(HostGone):
            host.body_buffer(10)
        assert (await execute(other, Constant("x", np.ones(2)))).failure is None
        await host.end("again")

    run(test)


def test_ending_a_host_ends_its_process_also_while_it_computes() -> None:
    async def test(made: WorkerPool) -> None:
        host = await started(made)
        running = post(host, long())
        await host.end("enough")
        with pytest.raises(HostGone, match="enough"):
            await running.reply
        assert await host.ended == "enough"
        assert host.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(host.pid, 0)

    run(test)


def test_a_device_that_cannot_be_used_is_refused_and_leaves_no_process() -> None:
    async def test(made: WorkerPool) -> None:
        with pytest.raises(UnimplementedError, match="gpu"):
            await made.start(Start("gpu:99", 1 << 20, 1 << 20))
        assert all(host.device == "" for host in made._hosts)
        assert (await made.devices())[0] == "cpu"
        assert await made.devices() == await made.devices()

    run(test)


def test_no_host_starts_after_the_end() -> None:
    async def test(made: WorkerPool) -> None:
        await made.close()
        made.prepare()
        made._spare = None
        with pytest.raises(HostGone, match="shutting down"):
            await made.start(START)

    run(test)


def proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def test_a_workers_memory_is_capped_and_its_linear_algebra_has_one_thread() -> None:
    async def test(made: WorkerPool) -> None:
        host = await started(made)
        assert host.pid is not None
        cap = int(re.search(r"Max address space +([0-9]+)", proc(host.pid, "limits"))[1])  # type: ignore[index]
        assert START.memory_limit < cap < 8 << 30
        assert "OPENBLAS_NUM_THREADS=1" in proc(host.pid, "environ").split("\0")
        assert resource.getrlimit(resource.RLIMIT_AS)[0] != cap

    run(test)


def test_an_unknown_method_is_a_defect_and_the_session_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(made: WorkerPool) -> None:
        host = await started(made)
        reply = await host.submit("no.such.method", {}).reply
        assert reply.code == "internal"
        assert "no.such.method" in reply.facts["message"]
        assert (await execute(host, Constant("x", np.ones(2)))).failure is None

    run(test)


def test_a_method_has_one_function() -> None:
    assert {"attach", "batch"} <= METHODS.keys()
    with pytest.raises(TypeError, match="registered twice"):
        method("batch")(lambda session, request: Result("", [], 0))


# -------------------------------------------------------------------------------------------------------------- replays
def request(body: bytes = b"", **params: Any) -> Request:
    return Request(params, "text/plain", memoryview(body), 0, lambda: False, lambda done, total: None, 0.0)


def test_an_answer_is_kept_under_its_key_and_given_to_that_request_alone() -> None:
    ran: list[str] = []

    def go(name: str, one: Request) -> Result:
        ran.append(name)
        return Result("text/plain", [b"ran ", str(len(ran)).encode()], 5)

    store = ReplyStore()
    first = store.once("key", "kind", request(b"x", now=1.0), go)
    again = store.once("key", "kind", request(b"x", now=2.0), go)
    assert b"".join(first.buffers) == b"".join(again.buffers) == b"ran 1"
    store.once(None, "kind", request(b"x"), go)
    assert len(ran) == 2
    for other in (request(b"y"), request(b"x", full=True)):
        with pytest.raises(IdempotencyConflictError, match="'key'"):
            store.once("key", "kind", other, go)
    with pytest.raises(IdempotencyConflictError):
        store.once("key", "another", request(b"x"), go)


def test_a_refusal_is_kept_too() -> None:
    ran: list[str] = []

    def go(name: str, one: Request) -> Result:
        ran.append(name)
        raise UnimplementedError("no")

    store = ReplyStore()
    for _ in range(2):
        with pytest.raises(UnimplementedError):
            store.once("key", "kind", request(), go)
    assert len(ran) == 1


def test_what_is_kept_is_bounded_but_holds_the_last() -> None:
    store = ReplyStore()
    large = b"x" * (40 << 20)
    for n in range(3):
        store.once(str(n), "kind", request(), lambda name, one: Result("", [large], len(large)))
    assert list(store._replies) == ["2"]
    for n in range(100):
        store.once(f"small{n}", "kind", request(), lambda name, one: Result("", [b"x"], 1))
    assert len(store._replies) <= 64
