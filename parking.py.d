"""Parked sessions: how quickly one is back, what many cost, and how long programs wait while the server is restarted.

`make parking`. The row has milliseconds from a request to a parked session of 100 MB to its answer; the server's memory
and processes without and with parked sessions, and the seconds to the first answer of its start; and the longest wait
of SDK programs, each with a session of its own that it adds to, whose server is stopped in order and started again.
The parked sessions are copies of the files of one, so that they need not be created one by one.
"""

import argparse
import contextlib
import datetime
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import observing

import teletape as tf


class Server:
    """`teletape serve` with a folder for data, at one address from start to start."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.port = unused.getsockname()[1]
        self.url, self.folder = f"http://127.0.0.1:{self.port}", folder
        self.process: subprocess.Popen[bytes]

    def start(self) -> float:
        """Starts it; returns the seconds until it has answered."""
        began = time.monotonic()
        command = [observing.TELETAPE, "serve", "--port", str(self.port), "--data-dir", str(self.folder)]
        limits = ["--sessions", "100", "--sessions-per-key", "100", "--lasting-per-key", "100000"]
        self.process = subprocess.Popen([*command, *limits], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with httpx.Client(base_url=self.url, trust_env=False) as http:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    http.get("/v1/health")
                    return time.monotonic() - began
                time.sleep(0.005)

    def stop(self) -> None:
        """Stops it in order."""
        self.process.terminate()
        self.process.wait()

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A plain HTTP client."""
        with httpx.Client(base_url=self.url, trust_env=False, timeout=120) as http:
            yield http


def ok(response: httpx.Response) -> httpx.Response:
    """The response, which must be a success."""
    if not response.is_success:
        raise ValueError(f"{response.status_code} {response.text}")
    return response


def wakes(server: Server, nbytes: int, times: int) -> list[float]:
    """Milliseconds from the request that wakes a session with an array of that many bytes to its answer."""
    server.start()
    taken = []
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "large", "durability": "journal"}))
        headers = {"Content-Type": "application/octet-stream", "Tensor-Dtype": "float32", "Tensor-Id": "x"}
        headers["Tensor-Shape"] = str(nbytes // 4)
        values = np.arange(nbytes // 4, dtype=np.float32).tobytes()
        ok(http.post("/v1/sessions/large/tensors?id=x", content=values, headers=headers))
        for _ in range(times):
            ok(http.post("/v1/sessions/large/park"))
            began = time.monotonic()
            ok(http.get("/v1/sessions/large/tensors"))
            taken.append(1000 * (time.monotonic() - began))
        ok(http.delete("/v1/sessions/large"))
    server.stop()
    return taken


def copy_session(folder: Path, count: int) -> None:
    """Makes sessions of the files of the one that is there."""
    [first] = [path for path in (folder / "sessions").iterdir() if path.is_dir()]
    manifest = json.loads((first / "manifest.json").read_text())
    for number in range(count - 1):
        uid = secrets.token_hex(16)
        other = first.with_name(uid)
        shutil.copytree(first, other)
        (other / "manifest.json").write_text(json.dumps({**manifest, "uid": uid, "id": f"copy{number}"}))


def dormant(server: Server, count: int) -> dict[str, Any]:
    """What sessions without a process cost a server."""
    server.start()
    with server.client() as http:
        ok(http.post("/v1/sessions", json={"id": "first", "durability": "journal"}))
        ok(http.post("/v1/sessions/first/variables", json={"id": "w", "value": [1.0] * 100}))
    server.stop()
    seconds, memory, processes = [], [], []
    for wanted in (1, count):
        if wanted > 1:
            copy_session(server.folder, wanted)
        seconds.append(min(server.start() if turn == 0 else _again(server) for turn in range(3)))
        with server.client() as http:
            listed = ok(http.get("/v1/sessions", params={"limit": 1})).json()
            assert listed["sessions"][0]["state"] == "parked", listed
        memory.append(observing.memory(server.process.pid))
        processes.append(len(observing.workers(server.process.pid)))
        if wanted > 1:
            with server.client() as http:
                began = time.monotonic()
                ok(http.get("/v1/sessions/first/variables"))
                wake = 1000 * (time.monotonic() - began)
        server.stop()
    shutil.rmtree(server.folder / "sessions")
    return {
        "dormant": count,
        "first_answer_s": [round(value, 3) for value in seconds],
        "front_mb": [round(value, 1) for value in memory],
        "processes": processes,
        "wake_ms": round(wake, 1),
    }


def _again(server: Server) -> float:
    server.stop()
    return server.start()


class Client:
    """An SDK program that adds to a variable of its own session, and sees each sum."""

    def __init__(self, url: str, number: int) -> None:
        self.answers: list[float] = []
        self.wrong, self._ends = 0, threading.Event()
        self._session = tf.connect(url, session=f"client{number}", default=False)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with self._session.as_default():
            total = tf.Variable(0.0)
            while not self._ends.is_set():
                total.assign_add(1.0)
                self.wrong += float(total) != len(self.answers) + 1
                self.answers.append(time.monotonic())

    def end(self) -> None:
        """Ends the program; its session is deleted."""
        self._ends.set()
        self._thread.join()
        self._session.close()


def restart(server: Server, count: int, seconds: float) -> dict[str, Any]:
    """What programs notice of a server that is stopped in order and started again at once."""
    server.start()
    clients = [Client(server.url, number) for number in range(count)]
    time.sleep(seconds)
    began = time.monotonic()
    server.stop()
    stopped = time.monotonic()
    start = server.start()
    answered = time.monotonic()
    deadline = answered + 120
    while any(not client.answers or client.answers[-1] < answered for client in clients):
        assert time.monotonic() < deadline, "a client does not go on"
        time.sleep(0.01)
    time.sleep(seconds)
    for client in clients:
        client.end()
    server.stop()
    after = [next(at for at in client.answers if at > stopped) - answered for client in clients]
    return {
        "clients": count,
        "additions": sum(len(client.answers) for client in clients),
        "wrong": sum(client.wrong for client in clients),
        "stop_s": round(stopped - began, 2),
        "start_s": round(start, 2),
        "goes_on_s": [round(statistics.median(after), 2), round(max(after), 2)],
    }


def main() -> None:
    """Measures, and prints the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100, help="of the session that is parked and woken")
    parser.add_argument("--times", type=int, default=7, help="that it is")
    parser.add_argument("--dormant", type=int, default=1000, help="parked sessions")
    parser.add_argument("--clients", type=int, default=64, help="programs while the server is restarted")
    parser.add_argument("--seconds", type=float, default=5.0, help="that they run before and after")
    arguments = parser.parse_args()
    row: dict[str, Any] = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    row["load"] = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory(prefix="parking-") as folder:
        server = Server(Path(folder))
        taken = wakes(server, arguments.megabytes * 1_000_000, arguments.times)
        row["wake_ms"] = [round(min(taken), 1), round(statistics.median(taken), 1), round(max(taken), 1)]
        row |= {"many": dormant(server, arguments.dormant)}
        row |= {"restart": restart(server, arguments.clients, arguments.seconds)}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
