"""What it costs to write sessions down, at each level: calls by one caller and by 64, and a remote training step.

`make durability`. One server has sessions of every level, which are measured in turn, with the disk's own fdatasync
between them. How many answers shared a sync is read from the logs: each record has the last one that was on the disk.
"""

import argparse
import datetime
import importlib
import json
import os
import selectors
import socket
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import observing

import teletape as tf
import teletape_wire as wire
from teletape_engine.commands import Assign, Batch, Fetch, MakeVariable
from teletape_server.durable import records
from teletape_server.durable.folders import FOLDER, Folder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

LEVELS = ("none", "journal", "journal-sync")
X = np.array([1.0, 2.0], np.float32)
RECORD = 400  # bytes of a small call's record
MANY = 64  # callers


class Caller:
    """A client over one connection, whose calls add to a variable and read it."""

    def __init__(self, port: int, session: str) -> None:
        self._head = f"POST /v1/sessions/{session}/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: {wire.FRAME_TYPE}"
        self.client = post(port, f"/v1/sessions/{session}/attach", {})["client"]
        self.seq = 0
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, *commands: Any) -> None:
        """Sends a batch."""
        self.seq += 1
        batch = Batch(commands or (Assign("v", X, "add"), Fetch("v")), (), self.client, self.seq, os.urandom(16))
        body = b"".join(wire.encode_batch(batch).buffers)
        self.sock.sendall(f"{self._head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def answer(self) -> None:
        """Reads the answer, which comes in one piece or a few."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.sock.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), data
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.sock.recv(65536)
        answer, _ = wire.decode_answer(body)
        assert answer.failure is None, answer.failure

    def call(self, *commands: Any) -> float:
        """Sends a batch and reads its answer; returns the seconds."""
        began = time.perf_counter()
        self.send(*commands)
        self.answer()
        return time.perf_counter() - began


def post(port: int, path: str, body: dict[str, Any]) -> Any:
    """Returns the answer to a POST."""
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)) as answer:
        return json.load(answer)


class Syncs:
    """Writes of a record's length to a file, each with an fdatasync, as a log has them."""

    def __init__(self, folder: Path) -> None:
        self._file, self._offset = os.open(folder / "syncs", os.O_RDWR | os.O_CREAT), 0
        os.posix_fallocate(self._file, 0, 1 << 20)
        os.fsync(self._file)

    def call(self) -> float:
        """Writes and syncs; returns the seconds of both."""
        began = time.perf_counter()
        os.pwrite(self._file, b"x" * RECORD, self._offset)
        os.fdatasync(self._file)
        self._offset = (self._offset + RECORD) % (1 << 19)
        return time.perf_counter() - began


def in_turn(calls: dict[str, Callable[[], float]], seconds: float, block: int) -> dict[str, list[float]]:
    """Calls each for `block` times, again and again; returns the median of each block, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(block):
            call()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, call in calls.items():
            times[name].append(1000 * statistics.median(call() for _ in range(block)))
    return times


def quiet(blocks: dict[str, list[float]]) -> dict[str, float]:
    """Returns the median of each in its quiet blocks, the best tenth: on a machine that has other work too."""
    return {name: sorted(times)[len(times) // 10] for name, times in blocks.items()}


def small_calls(port: int, folder: Path, seconds: float) -> dict[str, Any]:
    """One caller of a session at each level, and the disk: alone, and each time after a call.

    A program that does something between two syncs, as the session's process does, waits longer for each.
    """
    disk = Syncs(folder).call
    calls: dict[str, Callable[[], float]] = {}
    for level in LEVELS:
        post(port, "/v1/sessions", {"id": f"one-{level}", "durability": level})
        caller = Caller(port, f"one-{level}")
        caller.call(MakeVariable("v", X))
        calls[level] = caller.call
    calls["fdatasync alone"], calls["fdatasync"] = disk, lambda: (calls["journal"](), disk())[1]
    blocks = in_turn(calls, seconds, 20)
    medians, best = {name: statistics.median(times) for name, times in blocks.items()}, quiet(blocks)
    expected = medians["journal"] + medians["fdatasync"]
    return {
        **{f"p50 ms, {name}": round(median, 3) for name, median in medians.items()},
        "journal over none": round(medians["journal"] / medians["none"], 3),
        "journal-sync over journal + fdatasync": round(medians["journal-sync"] / expected, 3),
        **{f"quiet ms, {name}": round(median, 3) for name, median in best.items()},
        "quiet: journal over none": round(best["journal"] / best["none"], 3),
        "quiet: journal-sync over journal + fdatasync": round(
            best["journal-sync"] / (best["journal"] + best["fdatasync"]), 3
        ),
    }


def training(port: int, seconds: float) -> dict[str, Any]:
    """A step of a network of three layers from the SDK, at each level; its batch of 128 rows is sent each time."""
    mlp = importlib.import_module("suite.programs.mlp")
    calls: dict[str, Callable[[], float]] = {}
    for level in LEVELS[:2]:
        post(port, "/v1/sessions", {"id": f"mlp-{level}", "durability": level})
        session = tf.connect(f"http://127.0.0.1:{port}", session=f"mlp-{level}", default=False)
        with session.as_default():
            step, (x, y) = mlp.tensorflow(tf, mlp.inputs(128, update=True))

        def call(session: Any = session, step: Any = step, x: Any = x, y: Any = y) -> float:
            began = time.perf_counter()
            with session.as_default():
                step(tf.constant(x), tf.constant(y))[0].numpy()
            return time.perf_counter() - began

        calls[level] = call
    blocks = in_turn(calls, seconds, 5)
    medians, best = {name: statistics.median(times) for name, times in blocks.items()}, quiet(blocks)
    return {
        **{f"p50 ms, {name}": round(median, 3) for name, median in medians.items()},
        "journal over none": round(medians["journal"] / medians["none"], 3),
        **{f"quiet ms, {name}": round(median, 3) for name, median in best.items()},
        "quiet: journal over none": round(best["journal"] / best["none"], 3),
    }


def many_callers(port: int, data: Path, sessions: int, level: str, seconds: float) -> dict[str, Any]:
    """64 callers of some sessions, each with one call at a time."""
    names = [f"many-{sessions}-{level}-{number}" for number in range(sessions)]
    callers = []
    for name in names:
        post(port, "/v1/sessions", {"id": name, "durability": level})
        own = [Caller(port, name) for _ in range(MANY // sessions)]
        own[0].call(MakeVariable("v", X))
        callers += own
    selector = selectors.DefaultSelector()
    began: dict[Caller, float] = {}
    for caller in callers:
        selector.register(caller.sock, selectors.EVENT_READ, caller)
        began[caller] = time.perf_counter()
        caller.send()
    times: list[float] = []
    start = time.monotonic()
    while time.monotonic() < start + seconds or began:
        for key, _ in selector.select():
            caller = key.data
            caller.answer()
            times.append(1000 * (time.perf_counter() - began.pop(caller)))
            if time.monotonic() < start + seconds:
                began[caller] = time.perf_counter()
                caller.send()
    facts = {
        "answers a second": round(len(times) / seconds),
        "p50 ms": round(statistics.median(times), 2),
        "p99 ms": round(sorted(times)[len(times) * 99 // 100], 2),
    }
    if level == "journal-sync":
        requests, syncs = counted(data, names)
        facts["answers a sync"] = round(requests / syncs, 1)
    return facts


def counted(data: Path, names: list[str]) -> tuple[int, int]:
    """Returns how many records the logs of sessions have, and how many syncs they saw."""
    requests = syncs = 0
    for path in (data / FOLDER).iterdir():
        folder = Folder(str(path))
        manifest = folder.manifest() if path.is_dir() else None
        if manifest is not None and manifest["id"] in names:
            log = records.read(folder.bytes_of_log(folder.newest()))
            assert log is not None
            requests += len(log.records)
            syncs += len({record.synced for record in log.records})
    return requests, syncs


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path.cwd(), help="on the disk that is measured")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--only", nargs="*", default=["one", "step", "many"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".durability-", dir=options.folder) as name:
        folder = Path(name)
        with observing.server(folder, data_dir=folder / "data", sessions=64, sessions_per_key=64) as (port, _):
            rows: dict[str, Any] = {}
            if "one" in options.only:
                rows["one caller"] = small_calls(port, folder, options.seconds)
            if "step" in options.only:
                rows["MLP step"] = training(port, options.seconds)
            if "many" in options.only:
                for sessions, level in ((1, "journal"), (1, "journal-sync"), (8, "journal-sync")):
                    facts = many_callers(port, folder / "data", sessions, level, options.seconds / 2)
                    rows[f"{MANY} callers of {sessions} sessions, {level}"] = facts
    print(f"{datetime.datetime.now(datetime.UTC).date()}, load average {os.getloadavg()[0]:.1f}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
