"""Keys share the CPU by time slices: which processes are stopped, on processors that are simulated and on true ones."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from serving import ok
from teletape_server.hosts.chosen_shares import chosen_shares
from teletape_server.hosts.time_slices import Look, Slices, TimeSlices
from teletape_server.ipc.processes import CpuClock
from teletape_server.ipc.rights import Rights

SLICE = 0.02
SPIN = "while True: pass"


def fair(wanted: Mapping[int, float], amount: float) -> dict[int, float]:
    """What processes get of processors that are fair to processes."""
    got: dict[int, float] = {}
    todo = dict(wanted)
    while todo:
        each = amount / len(todo)
        small = [pid for pid, wants in todo.items() if wants <= each]
        for pid in small or [*todo]:
            got[pid] = min(todo.pop(pid), each)
            amount -= got[pid]
        if not small:
            break
    return got


def simulated(
    rights: Rights, cores: int, keys: Mapping[str, tuple[int, float]], outside: int = 0
) -> tuple[dict[str, float], float]:
    """The parts that keys get, and the processors that they use together, after two of twenty seconds.

    Args:
        rights: Of the keys.
        cores: How many processors there are.
        keys: How many processes each key has, and for which part of the time each of them would compute.
        outside: Processes of others that compute all the time.
    """
    slices = Slices(rights, cores)
    names = [name for name, (count, _) in keys.items() for _ in range(count)]
    owners = dict(enumerate(names))
    used = dict.fromkeys(keys, 0.0)
    for number in range(1000):
        wants = {pid: keys[owner][1] * SLICE for pid, owner in owners.items() if pid not in slices.stopped}
        wants |= {-1 - other: SLICE for other in range(outside)}
        got = fair(wants, cores * SLICE)
        looks = {pid: Look(got.get(pid, 0.0), wants.get(pid, 0.0) - got.get(pid, 0.0)) for pid in owners}
        if number >= 100:
            for pid, owner in owners.items():
                used[owner] += looks[pid].used
        slices.choose(owners, looks, SLICE)
    whole = sum(used.values())
    return {owner: seconds / whole for owner, seconds in used.items()}, whole / (900 * SLICE)


def test_a_key_with_a_hundred_processes_gets_what_one_with_one_gets() -> None:
    parts, cores = simulated(Rights(), 2, {"flood": (100, 1.0), "one": (1, 1.0)})
    assert parts == pytest.approx({"flood": 0.5, "one": 0.5}, abs=0.01)
    assert cores > 1.98


def test_what_a_key_does_not_use_the_others_get() -> None:
    parts, cores = simulated(Rights(), 2, {"flood": (100, 1.0), "one": (1, 0.1)})
    assert parts == pytest.approx({"flood": 0.95, "one": 0.05}, abs=0.01)
    assert cores > 1.98
    parts, cores = simulated(Rights(), 2, {"flood": (100, 1.0)})
    assert cores > 1.98


def test_processes_that_compute_now_and_then_are_not_taken_for_busy_ones() -> None:
    parts, cores = simulated(Rights(), 2, {"small calls": (100, 0.1), "one": (1, 1.0)})
    assert parts == pytest.approx({"small calls": 0.5, "one": 0.5}, abs=0.02)
    assert cores > 1.95


def test_weights_and_parts_of_groups_count() -> None:
    parts, _ = simulated(Rights({"ann": 3.0}), 2, {"ann": (20, 1.0), "bob": (20, 1.0)})
    assert parts == pytest.approx({"ann": 0.75, "bob": 0.25}, abs=0.01)
    rights = Rights({"@lab": 0.5, "cid": 3.0}, lambda owner: "@lab" if owner in ("cid", "dora") else "")
    parts, _ = simulated(rights, 4, dict.fromkeys(("ann", "bob", "cid", "dora"), (20, 1.0)))
    assert parts == pytest.approx({"ann": 0.25, "bob": 0.25, "cid": 0.375, "dora": 0.125}, abs=0.01)


def test_programs_outside_the_server_do_not_change_the_parts_much() -> None:
    parts, cores = simulated(Rights(), 2, {"flood": (100, 1.0), "one": (1, 1.0)}, outside=3)
    assert parts["one"] > 0.4  # at most one of two processes more than the other key may have is there at a time
    assert cores > 0.75


def test_nothing_is_stopped_while_there_is_enough() -> None:
    slices = Slices(Rights(), 4)
    for _ in range(100):
        slices.choose({1: "ann", 2: "ann", 3: "bob"}, dict.fromkeys((1, 2, 3), Look(SLICE, 0.0)), SLICE)
        assert not slices.stopped


@contextlib.contextmanager
def spinning(owners: Mapping[str, int], shares: TimeSlices) -> Iterator[dict[str, list[int]]]:
    """Processes of keys that compute on one processor without end; yields their numbers."""
    [cpu, *_] = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-I", "-S", "-c", f"import os; os.sched_setaffinity(0, [{cpu}])\n{SPIN}"]
    pids: dict[str, list[int]] = {owner: [] for owner in owners}
    with ExitStack() as stack:
        for owner, count in owners.items():
            for _ in range(count):
                process = stack.enter_context(subprocess.Popen(command))
                stack.callback(process.kill)
                shares.enter(process.pid, owner)
                pids[owner].append(process.pid)
        yield pids
        for owner, numbers in pids.items():
            for pid in numbers:
                shares.leave(pid, owner)


def state(pid: int) -> str:
    """What the system says of a process: T for one that is stopped, Z for one that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def test_true_processes_share_a_true_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teletape_server.hosts.time_slices.cores", lambda: 1)

    async def shared() -> tuple[dict[str, float], set[str]]:
        shares = chosen_shares("slices", Rights())
        assert isinstance(shares, TimeSlices)
        with spinning({"flood": 8, "one": 1}, shares) as pids:
            clocks = {owner: [*map(CpuClock, numbers)] for owner, numbers in pids.items()}
            for count in range(4):
                await asyncio.sleep(1.0)
                shares.balance({"flood": 8, "one": 1})
                if count == 0:
                    for clock in (clock for some in clocks.values() for clock in some):
                        clock.begin()
            used = {owner: sum(clock.seconds() for clock in some) for owner, some in clocks.items()}
            shares.release()
            await asyncio.sleep(0.1)
            states = {state(pid) for numbers in pids.values() for pid in numbers}
        return used, states

    used, states = asyncio.run(shared())
    assert used["one"] > 0.3 * sum(used.values())  # as processes do it would be a ninth
    assert "T" not in states


def test_processes_that_are_stopped_go_on_when_their_key_is_alone_again() -> None:
    async def left_alone() -> set[str]:
        shares = TimeSlices(Rights())
        with spinning({"flood": 8}, shares) as pids:
            with spinning({"one": 1}, shares):
                await asyncio.sleep(1.0)
                shares.balance({})
                for _ in range(50):
                    await asyncio.sleep(SLICE)
                    if "T" in map(state, pids["flood"]):
                        break
                else:
                    raise AssertionError("nothing was stopped")
            shares.balance({})
            await asyncio.sleep(0.2)
            states = {*map(state, pids["flood"])}
            shares.release()
            await asyncio.sleep(0)
            return states

    assert "T" not in asyncio.run(left_alone())


def test_nothing_is_looked_at_once_a_process_has_ended() -> None:
    shares = TimeSlices(Rights())
    files = len(os.listdir("/proc/self/fd"))
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "pass"]) as process:
        shares.enter(process.pid, "ann")
    shares.balance({})
    shares.leave(process.pid, "ann")
    shares.enter(process.pid, "ann")  # it is there no longer
    shares.leave(process.pid, "ann")
    assert len(os.listdir("/proc/self/fd")) == files


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    tasks = os.listdir(f"/proc/{pid}/task")
    return [int(child) for task in tasks for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]


def test_processes_that_are_stopped_end_when_the_server_is_killed() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert url
            ok(httpx.post(f"{url[0]}/v1/sessions", json={"id": "demo"}, trust_env=False, timeout=60))
            [session, *_] = [worker for child in children(process.pid) for worker in children(child)]
            os.kill(session, signal.SIGSTOP)
        finally:
            process.kill()
    deadline = time.monotonic() + 60
    while state(session) != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)
