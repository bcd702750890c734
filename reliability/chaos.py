"""Kills sessions' processes and the server while programs train, and compares their weights: `make chaos`.

Half of the programs use the SDK, half REST with Idempotency-Keys; none has a line for what happens to the server. Their
sessions have a journal. At any moment the process of a session, the server, or all of them get SIGKILL, sometimes the
server once more before anything has gone on. Then every program has to begin two more steps. After the last kill they
stop, and an undisturbed server gets the same programs with as many steps: all weights have to be equal, bit for bit.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import observing

SHAPES = {"w1": (8, 16), "b1": (16,), "w2": (16, 1)}
ROWS = 32  # of a step's batch
RATE, DECAY = 0.05, 0.9
PATIENCE = 600.0  # seconds in which every program has to go on after a kill
TIMEOUT = 1800.0  # seconds that the undisturbed programs may take
#: What gets SIGKILL at once, by its share: one session's process, those of all sessions, the server, or all of them.
KILLS = {"session": 5, "sessions": 3, "server": 1, "all": 1}
AGAIN = 0.1  # chance that the server is killed once more within a second


# ----------------------------------------------------------------------------------------------------------- programs
def sdk_program(url: str, session: str, seed: int, steps: Iterator[int]) -> list[Any]:
    """Trains as a program for TensorFlow does; returns the weights."""
    import teletape as tf

    tf.connect(url, session=session, durability="journal")
    draw = np.random.default_rng(seed)
    weights = {name: tf.Variable(value) for name, value in beginning(draw).items()}
    momenta = {name: tf.Variable(tf.zeros_like(weight)) for name, weight in weights.items()}
    for step in steps:
        x, y = batch(draw)
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.matmul(x, weights["w1"]) + weights["b1"])
            loss = tf.reduce_mean(tf.square(tf.matmul(hidden, weights["w2"]) - y))
        gradients = tape.gradient(loss, weights)
        for name, weight in weights.items():
            momenta[name].assign(DECAY * momenta[name] + gradients[name])
            weight.assign_sub(RATE * momenta[name])
        if step % 3 == 0:  # other steps leave with those after them
            float(loss)
    return [weight.numpy() for weight in weights.values()]


def rest_program(url: str, session: str, seed: int, steps: Iterator[int]) -> list[Any]:
    """Trains by REST: it repeats each request under its key until it is answered; returns the weights."""
    import httpx

    draw = np.random.default_rng(seed)
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as http:

        def send(path: str, body: Any) -> Any:
            headers, until = {"Idempotency-Key": uuid.uuid4().hex}, time.monotonic() + PATIENCE
            while time.monotonic() < until:
                with contextlib.suppress(httpx.TransportError):
                    response = http.post(f"/v1/sessions{path}", json=body, headers=headers)
                    if response.is_success and response.status_code != 202:
                        return response.json()
                    if response.status_code not in (202, 429, 503):
                        raise RuntimeError(response.text)
                time.sleep(0.1)
            raise TimeoutError(f"POST {path}: no answer in {PATIENCE:g} s")

        send("", {"id": session, "durability": "journal"})
        for name, value in beginning(draw).items():
            send(f"/{session}/variables", {"id": name, "value": tensor(value)})
            send(f"/{session}/variables", {"id": f"{name}-momentum", "value": tensor(0 * value), "trainable": False})
        for _ in steps:
            x, y = batch(draw)
            body = {"tensors": {"x": tensor(x), "y": tensor(y)}, "commands": commands(), "fetch": ["loss"]}
            send(f"/{session}/run", {"scratch": True, **body})
        answer = send(f"/{session}/run", {"commands": [], "fetch": [*SHAPES]})
    return [np.array(answer["values"][name]["data"], np.float32) for name in SHAPES]


def tensor(value: Any) -> dict[str, Any]:
    """An array in JSON."""
    return {"dtype": str(value.dtype), "data": value.tolist()}


def commands() -> list[dict[str, Any]]:
    """A step of `rest_program`."""

    def op(name: str, *inputs: str | float, output: str) -> dict[str, Any]:
        return {"do": "op", "op": name, "inputs": inputs, "outputs": [output]}

    step: list[dict[str, Any]] = [
        {"do": "tape.open", "id": "tape"},
        op("matmul", "x", "w1", output="product"),
        op("add", "product", "b1", output="sum"),
        op("tanh", "sum", output="hidden"),
        op("matmul", "hidden", "w2", output="guess"),
        op("sub", "guess", "y", output="error"),
        op("square", "error", output="squares"),
        op("reduce_mean", "squares", output="loss"),
        {
            "do": "gradient",
            "tape": "tape",
            "targets": ["loss"],
            "sources": [*SHAPES],
            "outputs": [f"{name}-gradient" for name in SHAPES],
        },
    ]
    for name in SHAPES:
        step += [
            op("mul", f"{name}-momentum", DECAY, output=f"{name}-part"),
            op("add", f"{name}-part", f"{name}-gradient", output=f"{name}-next"),
            {"do": "assign", "variable": f"{name}-momentum", "value": f"{name}-next"},
            op("mul", f"{name}-next", RATE, output=f"{name}-change"),
            {"do": "assign", "variable": name, "value": f"{name}-change", "mode": "sub"},
        ]
    return step


def beginning(draw: np.random.Generator) -> dict[str, Any]:
    """The weights before the first step."""
    return {name: draw.normal(0, 0.3, shape).astype(np.float32) for name, shape in SHAPES.items()}


def batch(draw: np.random.Generator) -> tuple[Any, Any]:
    """The inputs of a step, and the numbers that the network learns to give."""
    x = draw.normal(0, 1, (ROWS, 8)).astype(np.float32)
    return x, np.sin(x.sum(axis=1, keepdims=True)).astype(np.float32)


PROGRAMS = {"sdk": sdk_program, "rest": rest_program}


class Steps:
    """The steps of a program, whose number others can see.

    Args:
        file: Gets a byte for each step that has begun.
        most: Steps; 0: until there is a file `stop` beside it.
        pause: Seconds after each.
    """

    def __init__(self, file: Path, most: int, pause: float) -> None:
        self._file, self._most, self._pause = file, most, pause

    def __iter__(self) -> Iterator[int]:
        step, stop = 0, self._file.with_name("stop")
        with self._file.open("ab", buffering=0) as file:
            while step < self._most if self._most else not stop.exists():
                file.write(b".")
                yield step
                time.sleep(self._pause)
                step += 1


def run_program(kind: str, url: str, name: str, seed: int, file: Path, most: int, pause: float) -> None:
    """Runs a program, and prints its steps and a checksum of its weights."""
    weights = PROGRAMS[kind](url, name, seed, iter(Steps(file, most, pause)))
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(weight).tobytes() for weight in weights)).hexdigest()
    if not all(np.isfinite(weight).all() and weight.any() for weight in weights):
        raise AssertionError("the weights are not numbers, or all 0: nothing was trained that could be compared")
    print(json.dumps({"steps": file.stat().st_size, "weights": digest}))


class Programs:
    """Programs that run, each in a process and a session of its own."""

    def __init__(self, url: str, folder: Path, count: int, seed: int, steps: list[int], pause: float) -> None:
        folder.mkdir()
        kinds = [*PROGRAMS]
        self._stop = folder / "stop"
        self.files = [folder / f"program-{number}" for number in range(count)]
        self._running: list[subprocess.Popen[str]] = []
        for number, file in enumerate(self.files):
            arguments = [
                kinds[number % 2],
                url,
                file.name,
                str(seed + number),
                str(file),
                str(steps[number]),
                str(pause),
            ]
            command = [sys.executable, __file__, "--program", *arguments]
            self._running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    def steps(self) -> list[int]:
        """Returns how many steps each has begun."""
        return [file.stat().st_size if file.exists() else 0 for file in self.files]

    def go_on(self) -> float:
        """Returns when each has ended a step and begun another; returns the seconds until then.

        Raises:
            AssertionError: One has not, or it has ended.
        """
        began, before = time.monotonic(), self.steps()
        while not all(now > step + 1 for now, step in zip(self.steps(), before, strict=True)):
            ended = [program.args for program in self._running if program.poll() is not None]
            assert not ended, f"a program has ended: {ended}"
            assert time.monotonic() < began + PATIENCE, f"no step in {PATIENCE:g} s: {before}, now {self.steps()}"
            time.sleep(0.01)
        return time.monotonic() - began

    def results(self) -> list[dict[str, Any]]:
        """Lets them stop, if they have no number of steps, and returns what they print."""
        self._stop.touch()
        return [json.loads(program.communicate(timeout=TIMEOUT)[0]) for program in self._running]

    def kill(self) -> None:
        """Ends those that still run."""
        for program in self._running:
            program.kill()


class Server(observing.KillableServer):
    """A server that can be killed, and whose processes can."""

    def sessions(self) -> list[int]:
        """Returns the processes of sessions: those that have worked, and not the one that waits for a session."""
        return sorted(observing.workers(self.pid), key=observing.cpu_seconds)[observing.SPARE :]


# ----------------------------------------------------------------------------------------------------------- the chaos
def chaos(kills: int, minutes: float, count: int, every: float, pause: float, seed: int) -> dict[str, Any]:
    """Kills, and returns the numbers of the run."""
    draw, counts, waits = random.Random(seed), Counter[str](), list[float]()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as cleanup:
        folder, began = Path(name), time.monotonic()
        server = Server(folder / "killed")
        cleanup.callback(lambda: server.stop())
        programs = Programs(f"http://127.0.0.1:{server.port}", folder / "programs", count, seed, [0] * count, pause)
        cleanup.callback(programs.kill)
        programs.go_on()
        while counts.total() < kills and time.monotonic() < began + 60 * minutes:
            time.sleep(draw.uniform(0.0, every))
            kind = draw.choices([*KILLS], [*KILLS.values()])[0]
            victims = server.sessions() if kind != "server" else []
            for pid in [draw.choice(victims)] if kind == "session" and victims else victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    counts["processes of sessions"] += 1
            if kind in ("server", "all"):
                counts["servers"] += 1
                server.kill()
            if draw.random() < AGAIN:
                time.sleep(draw.uniform(0.0, 1.0))
                counts["servers"] += 1
                server.kill()
            waits.append(programs.go_on())
        results, seconds = programs.results(), time.monotonic() - began
        server.stop()
        server = Server(folder / "undisturbed")
        steps = [result["steps"] for result in results]
        undisturbed = Programs(f"http://127.0.0.1:{server.port}", folder / "again", count, seed, steps, 0.0)
        cleanup.callback(undisturbed.kill)
        expected = undisturbed.results()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "minutes": round(seconds / 60, 1),
        "killed": dict(counts),
        "steps": steps,
        "equal": sum(result == other for result, other in zip(results, expected, strict=True)),
        "different": sum(result != other for result, other in zip(results, expected, strict=True)),
        "seconds until all have gone on": observing.summary(waits),
    }


def main() -> int:
    """Runs the command line; the status is 1 if any weights are not those of the undisturbed run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=120.0, help="after which it stops with fewer kills")
    parser.add_argument("--programs", type=int, default=4)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="the longest wait before a kill")
    parser.add_argument("--pause", type=float, default=0.02, metavar="SECONDS", help="of a program after each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        kind, url, name, seed, file, most, pause = options.program
        run_program(kind, url, name, int(seed), Path(file), int(most), float(pause))
        return 0
    row = chaos(options.kills, options.minutes, options.programs, options.every, options.pause, options.seed)
    print(json.dumps(row))
    return bool(row["different"])


if __name__ == "__main__":
    sys.exit(main())
