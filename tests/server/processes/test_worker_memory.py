"""A session's process stays within its bound, whatever a client makes it keep: measured as resident memory."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape_wire as wire
from teletape_engine.commands import Batch, Call, ClientAttach, Command, Constant, TapeOpen, TapeWatch
from teletape_engine.recording.values import Literal
from teletape_server.hosts.processes.worker_host import WorkerHost
from teletape_server.hosts.processes.worker_pool import WorkerPool
from teletape_server.hosts.protocols import Start

MIB = 1 << 20
LIMIT = MIB
#: What a session's process may take beyond its limit, the batch that it executes included: far less than its cap.
ALLOWED = 24 * MIB
CLIENT = 1 << 40
PARAMS = {"accept": wire.FRAME_TYPE, "full": False, "encoding": "", "now": 0.0, "terms": (60.0, 600.0, 0.0)}


def resident(pid: int) -> int:
    """The process's own resident memory, without shared memory and files."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) << 10  # type: ignore[index]


def nodes(n: int) -> tuple[tuple[Command, ...], tuple[int, ...]]:
    """2000 ops on a tape, whose results are released."""
    ids = tuple(range(CLIENT + 2000 * n, CLIENT + 2000 * (n + 1)))
    return tuple([Call("add", ("x", Literal(1.0)), (i,)) for i in ids]), ids


def labels(n: int) -> tuple[tuple[Command, ...], tuple[int, ...]]:
    """50 ops with call sites of 60 kB, on a tape."""
    ids = tuple(range(CLIENT + 50 * n, CLIENT + 50 * (n + 1)))
    return tuple([Call("add", ("x", Literal(1.0)), (i,), {}, f"{i:060000}") for i in ids]), ids


def tensors(n: int) -> tuple[tuple[Command, ...], tuple[int, ...]]:
    """1000 tensors of one number, whose ids are texts."""
    return tuple([Call("add", ("x", Literal(1.0)), (f"{n}.{i}",)) for i in range(1000)]), ()


def clients(n: int) -> tuple[tuple[Command, ...], tuple[int, ...]]:
    """2000 clients."""
    return (ClientAttach(),) * 2000, ()


@pytest.mark.parametrize("attack", [nodes, labels, tensors, clients])
def test_resident_memory_stays_within_the_bound(
    attack: Callable[[int], tuple[tuple[Command, ...], tuple[int, ...]]],
) -> None:
    async def execute(host: WorkerHost, commands: tuple[Any, ...], releases: tuple[int, ...] = ()) -> Any:
        frame = b"".join(wire.encode_batch(Batch(commands, releases)).buffers)
        buffer = host.body_buffer(len(frame))
        buffer.view[:] = frame
        reply = await host.submit("batch", PARAMS, content_type=wire.FRAME_TYPE, body=buffer).reply
        assert reply.code is None, reply.facts
        return wire.decode_answer(reply.body)[0]

    async def peaks() -> tuple[list[int], list[str]]:
        pool = WorkerPool()
        pool.prepare()
        try:
            host = await pool.start(Start("cpu", LIMIT, 16 * MIB))
            assert isinstance(host, WorkerHost)
            assert host.pid is not None
            x = Constant("x", np.ones(1, np.float32))
            await execute(host, (x, TapeOpen("t", True), TapeWatch("t", ("x",))))
            memory, codes = [resident(host.pid)], []
            for n in range(24):
                failure = (await execute(host, *attack(n))).failure
                codes.append("" if failure is None else failure.code)
                memory.append(resident(host.pid))
            return memory, codes
        finally:
            await pool.close()

    memory, codes = asyncio.run(peaks())
    assert set(codes) <= {"", "resource_exhausted"}
    assert codes[-1] == "resource_exhausted"
    assert max(memory) - memory[0] < LIMIT + ALLOWED, [size >> 20 for size in memory]
    assert max(memory[13:]) - max(memory[:13]) < 2 * MIB, "it does not grow any more"
