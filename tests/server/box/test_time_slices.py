"""Keys share the CPU by time slices: which processes are stopped, on processors that are simulated and on true ones."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from serving import ok, until
from teletape_server.hosts.chosen_shares import chosen_shares
from teletape_server.hosts.control_groups import Tree
from teletape_server.hosts.shares import SharesError
from teletape_server.hosts.time_slices import Look, Slices, TimeSlices, obstacle
from teletape_server.ipc.confinement import User
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
    assert parts == pytest.approx({"flood": 0.5, "one": 0.5}, abs=0.01)
    assert cores > 0.75  # two of five processes that compute would have 0.8


def test_keys_use_all_processors_together_also_where_a_key_has_a_right_to_a_part_of_one() -> None:
    parts, cores = simulated(Rights(), 2, {f"key{number}": (5, 1.0) for number in range(10)})
    assert [*parts.values()] == pytest.approx([0.1] * 10, abs=0.01)
    assert cores > 1.98
    parts, cores = simulated(Rights(), 8, {f"key{number}": (1, 1.0) for number in range(25)})
    assert [*parts.values()] == pytest.approx([0.04] * 25, abs=0.01)
    assert cores > 7.9
    rights = Rights({"ann": 10.0, "bob": 0.5})
    parts, cores = simulated(rights, 16, {"ann": (30, 1.0), "bob": (30, 1.0), "cid": (1, 1.0)})
    assert parts == pytest.approx({"ann": 15 / 16 * 20 / 21, "bob": 15 / 16 / 21, "cid": 1 / 16}, abs=0.01)
    assert cores > 15.9


def test_a_key_that_is_alone_has_twice_as_many_processes_ready_as_there_are_processors() -> None:
    slices = Slices(Rights(), 2)
    owners = dict.fromkeys(range(100), "flood")
    ran: set[int] = set()
    for _ in range(30):
        going = [pid for pid in owners if pid not in slices.stopped]
        part = 2 / max(len(going), 2)
        looks = dict.fromkeys(owners, Look(0.0, 0.0)) | dict.fromkeys(going, Look(part * SLICE, (1 - part) * SLICE))
        slices.choose(owners, looks, SLICE)
        ran |= owners.keys() - slices.stopped
        assert 4 <= len(going) <= 100
    assert ran == owners.keys()
    assert len(going) == 4


def test_a_process_that_has_waited_without_end_counts_as_a_busy_one_from_the_first_slice_on() -> None:
    """The kernel says how long a process has waited only when that has got a processor."""
    slices = Slices(Rights(), 2)
    owners = dict.fromkeys(range(100), "flood") | {100: "one"}
    looks = dict.fromkeys(owners, Look(0.0, 0.0)) | {0: Look(SLICE, 0.0), 1: Look(SLICE, 0.0)}
    slices.choose(owners, looks, SLICE)
    assert 100 not in slices.stopped
    assert len(slices.stopped) > 95


def test_a_key_that_has_nearly_its_right_is_owed_what_the_other_had_more() -> None:
    """Its only process waits for those of the other key, which has two and a right to a single processor."""
    slices = Slices(Rights(), 2)
    owners = {1: "one"} | dict.fromkeys(range(2, 9), "flood")
    used = {"one": 0.0, "flood": 0.0}
    for number in range(300):
        going = [pid for pid in owners if pid not in slices.stopped]
        others = max(len(going) - 1, 1) if 1 not in slices.stopped else len(going)
        looks = dict.fromkeys(owners, Look(0.0, 0.0))
        for pid in going:  # the kernel gives the only one two thirds of what it could compute
            part = 0.65 if pid == 1 else min(1.3 / others, 1.0)
            looks[pid] = Look(part * SLICE, (0.3 if pid == 1 else 0.0) * SLICE)
        if number >= 100:
            for pid, owner in owners.items():
                used[owner] += looks[pid].used
        slices.choose(owners, looks, SLICE)
    assert used["one"] > 0.45 * sum(used.values())


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


def test_processes_that_are_stopped_have_turns_when_their_key_is_alone_again() -> None:
    async def left_alone() -> list[float]:
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
            clocks = [*map(CpuClock, pids["flood"])]
            for clock in clocks:
                clock.begin()
            await asyncio.sleep(1.0)
            shares.release()
            await asyncio.sleep(0)
            return [clock.seconds() for clock in clocks]

    assert min(asyncio.run(left_alone())) > 0


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


@contextlib.contextmanager
def serving() -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server that is killed after the block, and a client of it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TELETAPE_")}
    command = [sys.executable, "-P", "-m", "teletape_server.cli", "serve", "--port", "0", "--log-level", "error"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert url
            with httpx.Client(base_url=url[0], trust_env=False, timeout=60) as http:
                yield process, http
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> tuple[int, list[int]]:
    """The forkserver of a server, and what it has started."""
    [forkserver] = [child for child in children(process.pid) if children(child)]
    return forkserver, children(forkserver)


@pytest.mark.parametrize("has_forkserver", [True, False])
def test_processes_that_are_stopped_end_when_the_server_is_killed(has_forkserver: bool) -> None:
    with serving() as (process, http):
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        forkserver, sessions = started(process)
        until(lambda: {os.getpriority(os.PRIO_PROCESS, pid) for pid in sessions} == {max(5, os.nice(0))})
        if not has_forkserver:
            os.kill(forkserver, signal.SIGKILL)
            until(lambda: set(sessions) <= set(children(process.pid)))
        for pid in sessions:
            os.kill(pid, signal.SIGSTOP)
        until(lambda: {*map(state, sessions)} == {"T"})
    until(lambda: {*map(state, sessions)} == {"Z"})


def test_a_session_that_ends_after_the_forkserver_leaves_nothing() -> None:
    with serving() as (process, http):
        ok(http.post("/v1/sessions", json={"id": "demo"}))
        forkserver, sessions = started(process)
        os.kill(forkserver, signal.SIGKILL)
        until(lambda: set(sessions) <= set(children(process.pid)))
        ok(http.delete("/v1/sessions/demo"))
        until(lambda: not all(Path(f"/proc/{pid}").exists() for pid in sessions))


def capabilities(folder: Path, effective: int) -> Path:
    """A folder with what the kernel says of a process that has these capabilities."""
    folder.mkdir()
    (folder / "status").write_text(f"Name:\tteletape\nCapEff:\t{effective:016x}\n")
    return folder


def test_a_server_that_may_not_stop_its_processes_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    everything, less = capabilities(tmp_path / "all", 0x1FFFFFFFFFF), capabilities(tmp_path / "less", 0x1FFFFFFFFDF)
    user = User(65534, 65534)
    assert not obstacle(None, less)
    assert not obstacle(user, everything)
    assert not obstacle(user, tmp_path)  # it has ended
    why = "the server may not stop processes of user 65534 (--worker-user) without CAP_KILL"
    assert obstacle(user, less) == why
    monkeypatch.setattr("teletape_server.hosts.time_slices.obstacle", lambda user: why if user else "")
    with pytest.raises(SharesError, match="without CAP_KILL"):
        chosen_shares("slices", Rights(), user)
    assert chosen_shares("slices", Rights()).way == "by time slices"
    monkeypatch.setattr("teletape_server.hosts.chosen_shares.own_tree", lambda: Tree(tmp_path, "cpu.weight", 100, True))
    shares = chosen_shares("auto", Rights(), user)
    assert (shares.by_right, shares.way) == (False, "as their processes do")
    assert (
        f"a key with many sessions gets more of the CPU than one with few, whatever --weights says: {why}"
        in caplog.text
    )
