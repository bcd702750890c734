"""How quickly a server and its sessions are back: under load, many dormant ones, and a large one: `make restarts`.

`load`: programs of the SDK, each in a session of its own with a journal, add to a variable and read it, in some
processes with a thread for each; the server is stopped in order, or killed, and started again at the same port. When
each program has begun and ended a step after that is measured, from the moment at which the server answers again.
`dormant`: a server starts with and without 1,000 parked sessions in its folder. `wake`: a parked session of 100 MB
answers its first request. `begin`: sessions are created, one after the other, and do nothing (as root: another user may
not look into their processes). `crowd`: the same with 500 sessions, and 5,000 parked ones in the folder: how quickly
those who use one of them are answered.
"""

import argparse
import contextlib
import datetime
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import observing

import teletape as tf
from teletape_server.durable import records
from teletape_server.durable.folders import FOLDER, Folder

PATIENCE = 120.0  # seconds in which every program has to go on
PROCESSES = 4  # that the programs are in
KINDS = ("stopped in order", "killed")


def ask(port: int, path: str, body: Any = None) -> Any:
    """Returns the answer to a GET, or with a body to a POST."""
    data, headers = None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


# ---------------------------------------------------------------------------------------------------------- under load
def run_programs(url: str, first: int, count: int, pause: float, folder: Path) -> None:
    """Runs programs until there is a file `stop`; each writes the time of each step into a file of its own."""

    def program(number: int) -> None:
        session = tf.connect(url, session=f"program-{number}", durability="journal", default=False)
        with session.as_default(), (folder / str(number)).open("ab", buffering=0) as file:
            total, steps = tf.Variable(0.0), 0
            while not (folder / "stop").exists():
                total.assign_add(1.0)
                steps += 1
                if float(total) != steps:
                    raise AssertionError(f"program {number}: {float(total)} after {steps} steps")
                file.write(f"{time.time()}\n".encode())
                time.sleep(pause)
            session.detach()

    threads = [threading.Thread(target=program, args=(number,)) for number in range(first, first + count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def steps_of(folder: Path, number: int) -> list[float]:
    """When each step of a program has ended, in Unix seconds."""
    file = folder / str(number)
    return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


@contextlib.contextmanager
def programs(port: int, folder: Path, count: int, pause: float) -> Iterator[None]:
    """A block in which that many programs run."""
    share = -(-count // PROCESSES)
    command = [sys.executable, __file__, "--programs", f"http://127.0.0.1:{port}"]
    running = [
        subprocess.Popen([*command, str(first), str(min(share, count - first)), str(pause), str(folder)])
        for first in range(0, count, share)
    ]
    try:
        until(lambda: all(len(steps_of(folder, number)) > 2 for number in range(count)), "the programs begin")
        yield
        (folder / "stop").touch()
        failed = [process.args for process in running if process.wait(PATIENCE)]
        assert not failed, f"a program has seen another number than it has counted: {failed}"
    finally:
        for process in running:
            process.kill()


def spread(seconds: list[float]) -> dict[str, float]:
    """The median, the 90th percentile and the maximum."""
    ordered = sorted(seconds)
    places = {"p50": len(ordered) // 2, "p90": int(0.9 * (len(ordered) - 1)), "max": -1}
    return {name: round(ordered[place], 3) for name, place in places.items()}


def until(holds: Any, what: str) -> None:
    """Returns when something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)


def under_load(folder: Path, count: int, pause: float, kind: str) -> dict[str, Any]:
    """Restarts a server that that many programs use; returns the numbers."""
    data, steps = folder / "data", folder / "steps"
    settings = {"data_dir": data, "sessions": count, "sessions_per_key": count, "shutdown_grace": "1s"}
    steps.mkdir(parents=True)
    with contextlib.ExitStack() as cleanup:
        first = contextlib.ExitStack()
        cleanup.callback(first.close)
        port, pid = first.enter_context(observing.server(folder, **settings))
        with programs(port, steps, count, pause):
            began = time.time()
            if kind == "killed":
                os.kill(pid, signal.SIGKILL)
            first.close()  # a signal for an orderly end, and a wait for it
            ended = time.time()
            cleanup.enter_context(observing.server(folder, port=port, **settings))
            up = time.time()
            until(lambda: all(_goes_on(steps, number, up) for number in range(count)), "every program goes on")
            waits = [min(at for at in steps_of(steps, number) if at > up) - up for number in range(count)]
            rate = sum(began - 2.0 < at < began for number in range(count) for at in steps_of(steps, number)) / 2
    return {
        "programs": count,
        "steps a second before": rate,
        "seconds until it had ended": round(ended - began, 2),
        "seconds until it answered again": round(up - ended, 2),
        "seconds until each went on": spread(waits),
    }


def _goes_on(steps: Path, number: int, since: float) -> bool:
    return any(at > since for at in steps_of(steps, number))


# ----------------------------------------------------------------------------------------------------- dormant sessions
def make_dormant(data: Path, count: int) -> None:
    """Has a server park one session, and copies its folder: each copy is a session of its own."""
    with tempfile.TemporaryDirectory() as logs, observing.server(Path(logs), data_dir=data) as (port, _):
        ask(port, "/v1/sessions", {"id": "dormant-0", "durability": "journal"})
        ask(port, "/v1/sessions/dormant-0/variables", {"id": "w", "value": [1.0, 2.0]})
        ask(port, "/v1/sessions/dormant-0/park", {})
    [origin] = [path for path in (data / FOLDER).iterdir() if path.is_dir()]
    manifest = Folder(str(origin)).manifest()
    number = Folder(str(origin)).newest()
    log = records.read(Folder(str(origin)).bytes_of_log(number))
    assert manifest is not None
    assert log is not None
    assert not log.records, "a parked session has a base, and a log without records"
    for copy in range(1, count):
        uid = uuid.uuid4().hex
        folder = data / FOLDER / uid
        shutil.copytree(origin, folder)
        head = records.written_head({**log.head, "uid": uid})
        (folder / f"log-{number}.ttj").write_bytes(head)
        os.truncate(folder / f"log-{number}.ttj", records.with_reserve(len(head)))
        (folder / "manifest.json").write_text(json.dumps({**manifest, "uid": uid, "id": f"dormant-{copy}"}))


def dormant(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Starts servers with and without dormant sessions, in turn; returns the numbers."""
    make_dormant(folder / "many", count)
    (folder / "none").mkdir()
    starts: dict[str, list[float]] = {"none": [], "many": []}
    memory: dict[str, list[float]] = {"none": [], "many": []}
    cpu: dict[str, list[float]] = {"none": [], "many": []}
    for _ in range(rounds):
        for name in starts:
            began = time.monotonic()
            with observing.server(folder, data_dir=folder / name) as (port, pid):
                starts[name].append(time.monotonic() - began)
                cpu[name].append(observing.cpu_seconds(pid))
                listed = ask(port, "/v1/sessions?limit=1000")["sessions"]
                assert len(listed) == (count if name == "many" else 0), len(listed)
                memory[name].append(observing.memory(pid))
                processes = len(observing.workers(pid)) - observing.SPARE
                last = listed[-1]["id"] if listed else ""
                if last:
                    begins = time.monotonic()
                    assert ask(port, f"/v1/sessions/{last}/variables/w")["value"]["data"] == [1.0, 2.0]
                    woken = time.monotonic() - begins
    taken = statistics.median(memory["many"]) - statistics.median(memory["none"])
    return {
        "dormant": count,
        "seconds until the first answer without": round(statistics.median(starts["none"]), 2),
        "seconds until the first answer with": round(statistics.median(starts["many"]), 2),
        "CPU seconds of the server until then without": round(statistics.median(cpu["none"]), 2),
        "CPU seconds of the server until then with": round(statistics.median(cpu["many"]), 2),
        "MB of the server that they take": round(taken, 1),
        "processes of theirs": processes,
        "seconds to wake one": round(woken, 3),
    }


def wake(folder: Path, megabytes: int, rounds: int) -> dict[str, Any]:
    """Wakes a session that has a variable of that many MB, again and again; returns the numbers."""
    waits = []
    with (
        observing.server(folder, data_dir=folder / "data") as (port, _),
        tf.connect(f"http://127.0.0.1:{port}", session="large", durability="journal") as session,
    ):
        variable = tf.Variable(np.random.default_rng(1).random(megabytes * 125_000))
        session.sync()
        for _ in range(rounds):
            ask(port, "/v1/sessions/large/park", {})
            assert ask(port, "/v1/sessions/large")["state"] == "parked"
            time.sleep(1.0)  # the server starts a process again for whoever comes next
            began = time.monotonic()
            [listed] = ask(port, "/v1/sessions/large/variables")["variables"]
            waits.append(time.monotonic() - began)
            assert listed["shape"] == variable.shape.as_list()
    return {"MB": megabytes, "seconds to the first answer": spread(waits)}


# ------------------------------------------------------------------------------------------------------ idle sessions
def begin(folder: Path, count: int) -> dict[str, Any]:
    """Creates that many sessions, which then do nothing; returns the numbers."""
    waits = []
    with observing.server(folder, sessions=count, sessions_per_key=count) as (port, pid):
        for _ in range(count):
            began = time.monotonic()
            ask(port, "/v1/sessions", {})
            waits.append(time.monotonic() - began)
            time.sleep(0.5)  # the server starts a process again for whoever comes next
        parts = [observing.parts_of_memory(worker) for worker in observing.workers(pid)]
    own = [part["Private_Dirty"] + part["Private_Clean"] for part in parts]
    return {
        "sessions": count,
        "seconds until one has begun": spread(waits),
        "MB of its own": round(statistics.median(own), 1),
        "MB with its part of what is shared": round(statistics.median(part["Pss"] for part in parts), 1),
    }


def timed(port: int, path: str, count: int, body: Any = None) -> dict[str, float]:
    """How long the answers to that many requests take, one after the other, in milliseconds."""
    latencies = []
    for _ in range(count):
        began = time.monotonic()
        ask(port, path, body)
        latencies.append(1000 * (time.monotonic() - began))
    return observing.summary(latencies)


def crowd(folder: Path, live: int, parked: int) -> dict[str, Any]:
    """Creates live sessions on a server that has parked ones; returns the numbers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server inherits it
    data = folder / "data"
    make_dormant(data, parked)
    settings = {"data_dir": data, "sessions": live + 1, "sessions_per_key": live + 1, "lasting_per_key": parked + live}
    waits = []
    began = time.monotonic()
    with observing.server(folder, **settings) as (port, pid):
        started = time.monotonic() - began
        for number in range(live):
            begins = time.monotonic()
            ask(port, "/v1/sessions", {"id": f"live-{number}"})
            waits.append(time.monotonic() - begins)
        call = {"commands": [{"do": "op", "op": "square", "inputs": [3.0], "outputs": ["y"]}]}
        parts = [observing.parts_of_memory(worker) for worker in observing.workers(pid)]
        own = [part["Private_Dirty"] + part["Private_Clean"] for part in parts]
        idle = observing.cpu_seconds(pid)
        time.sleep(10.0)
        idle = observing.cpu_seconds(pid) - idle
        began = time.monotonic()
        assert ask(port, "/v1/sessions/dormant-1/variables/w")["value"]["data"] == [1.0, 2.0]
        woken = time.monotonic() - began
        return {
            "live": len(parts) - observing.SPARE,
            "parked": parked,
            "seconds until the first answer": round(started, 2),
            "seconds until a session has begun": spread(waits),
            "MB of a session's own": round(statistics.median(own), 1),
            "MB of all sessions": round(sum(part["Pss"] for part in parts)),
            "MB of the server": round(observing.memory(pid)),
            "part of a processor that the idle server takes": round(idle / 10, 3),
            "seconds to wake one": round(woken, 3),
            "ms of a small batch": timed(port, "/v1/sessions/live-0/run", 500, call | {"scratch": True}),
            "ms of the health": timed(port, "/v1/health", 500),
            "ms of a list of 100": timed(port, "/v1/sessions?limit=100", 50),
            "ms of GET /v1/usage": timed(port, "/v1/usage", 20),
            "ms of GET /v1/me": timed(port, "/v1/me", 20),
        }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["load", "dormant", "wake", "begin", "crowd"], help="one part alone")
    parser.add_argument("--count", type=int, default=64, help="programs")
    parser.add_argument("--pause", type=float, default=0.2, metavar="SECONDS", help="of a program after each step")
    parser.add_argument("--dormant", type=int, default=1000, help="sessions")
    parser.add_argument("--megabytes", type=int, default=100, help="of the session that is woken")
    parser.add_argument("--sessions", type=int, default=30, help="that are created and do nothing")
    parser.add_argument("--crowd", type=int, nargs=2, default=(500, 5000), metavar=("LIVE", "PARKED"), help="sessions")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each kind, and times that a session is woken")
    parser.add_argument("--folder", help="where sessions are written; a temporary one without it")
    parser.add_argument("--programs", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.programs:
        url, first, count, pause, folder = options.programs
        run_programs(url, int(first), int(count), float(pause), Path(folder))
        return
    now = datetime.datetime.now(datetime.UTC)
    rows: dict[str, Any] = {"date": now.strftime("%Y-%m-%d"), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if options.only in (None, "load"):
            for kind in KINDS:
                rows[kind] = under_load(Path(name) / kind.replace(" ", "-"), options.count, options.pause, kind)
        if options.only in (None, "dormant"):
            (Path(name) / "dormant").mkdir()
            rows["dormant"] = dormant(Path(name) / "dormant", options.dormant, options.rounds)
        if options.only in (None, "wake"):
            (Path(name) / "wake").mkdir()
            rows["wake"] = wake(Path(name) / "wake", options.megabytes, options.rounds)
        if options.only in (None, "begin"):
            (Path(name) / "begin").mkdir()
            rows["begin"] = begin(Path(name) / "begin", options.sessions)
        if options.only in (None, "crowd"):
            (Path(name) / "crowd").mkdir()
            rows["crowd"] = crowd(Path(name) / "crowd", *options.crowd)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
