"""What requests cost in an old session, over what they cost in a young one: 1.0 if nothing grows with a session's past.

    .venv/bin/python benchmarks/growth.py [request ...]

Two sessions of one server: the old one has answered a thousand requests of a kind, the young one ten. Then both answer
more of them in turn. Compared is the CPU time of their processes, so that other work of the machine matters little; the
ratio is the median of the turns' ratios. The goal is 1.1. Of the SDK's steps, each of them one frame, the CPU time of
this process is a row too.
"""

import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from with_server import server  # a script, not a package

import teletape as tf

YOUNG, OLD, TURNS, EACH = 10, 1000, 15, 20
GOAL = 1.1

FUNCTION = {
    "id": "loss",
    "inputs": ["w", "x", "y"],
    "steps": [
        {"op": "matmul", "inputs": ["x", "w"], "outputs": ["product"]},
        {"op": "tanh", "inputs": ["product"], "outputs": ["predicted"]},
        {"op": "squared_difference", "inputs": ["predicted", "y"], "outputs": ["squares"]},
        {"op": "reduce_mean", "inputs": ["squares"], "outputs": ["loss"]},
    ],
    "outputs": ["loss"],
}
INPUTS = {"w": [[0.1], [0.2], [0.3]], "x": [[0.1 * i, 0.2, 0.3] for i in range(16)], "y": [[1.0]] * 16}
QUESTION = {"inputs": INPUTS, "sources": ["w"]}
CHAIN = [{"op": "tanh", "inputs": [f"a{i}" if i else "v"], "outputs": [f"a{i + 1}"]} for i in range(10)]


class Session:
    """A session, by REST."""

    def __init__(self, url: str, name: str) -> None:
        self._path = f"{url}/v1/sessions/{name}"
        self.count = 0
        self._send("POST", f"{url}/v1/sessions", {"id": name})
        self.post("functions", FUNCTION)
        self.post("variables", {"id": "v", "value": [0.5, 1.5]})

    def _send(self, method: str, address: str, body: Any) -> None:
        headers = {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        urllib.request.urlopen(urllib.request.Request(address, data, headers, method=method)).read()

    def post(self, path: str, body: Any, method: str = "POST") -> None:
        """Sends a request to the session."""
        self._send(method, f"{self._path}/{path}", body)

    def end(self) -> None:
        """Ends the session."""
        self._send("DELETE", self._path, None)


def tape(session: Session) -> None:
    """A tape's life, and that of what it records."""
    name, y = f"t{session.count}", f"y{session.count}"
    session.post("tapes", {"id": name})
    session.post(f"tapes/{name}/ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": [y]}]})
    session.post(f"tapes/{name}/gradient", {"targets": [y], "sources": ["v"]})
    session.post(f"tapes/{name}", None, "DELETE")
    session.post(f"tensors/{y}", None, "DELETE")


def batch(session: Session) -> None:
    """A batch, as frames have them, whose ids are new each time."""
    name = f"b{session.count}"
    op = {"do": "op", "op": "tanh", "inputs": ["v"], "outputs": [name]}
    session.post("batch", {"commands": [op, {"do": "fetch", "id": name}], "release": [name]})


def function(session: Session) -> None:
    """A function's definition and end."""
    name = f"f{session.count}"
    session.post("functions", {**FUNCTION, "id": name})
    session.post(f"functions/{name}", None, "DELETE")


class Program:
    """A program of the SDK in a session of its own.

    Attributes:
        v: A variable.
        loss: A function.
    """

    def __init__(self, url: str) -> None:
        self._session = tf.connect(url)
        with self._session.as_default():
            self.v = tf.Variable([0.5, 1.5])
            self.loss = tf.function(lambda x: tf.reduce_mean(tf.tanh(x) ** 2))
            self.loss(self.v).numpy()

    def steps(self, step: Callable[[Any], None], times: int) -> None:
        """Makes a step several times in the session."""
        with self._session.as_default():
            for _ in range(times):
                step(self)

    def end(self) -> None:
        """Ends the session."""
        self._session.close()


def gradient_step(program: Program) -> None:
    """A training step whose loss is read."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.tanh(program.v * program.v))
    program.v.assign_sub(0.01 * tape.gradient(loss, program.v))
    loss.numpy()


def traced_step(program: Program) -> None:
    """A function's trace, one call of it, and its end."""
    tf.function(lambda x: tf.reduce_sum(tf.sin(x)))(program.v).numpy()


def op_step(program: Program) -> None:
    """Two ops, and the result's values."""
    (tf.tanh(program.v) * 2.0).numpy()


def call_step(program: Program) -> None:
    """The call of a function."""
    program.loss(program.v).numpy()


def null(session: Session) -> None:
    """A tape whose gradient is null, with the reason."""
    name, y = f"n{session.count}", f"z{session.count}"
    session.post("tapes", {"id": name})
    session.post("ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": [f"{y}.outside"]}]})
    session.post(f"tapes/{name}/ops", {"ops": [{"op": "square", "inputs": [f"{y}.outside"], "outputs": [y]}]})
    session.post(f"tapes/{name}/gradient", {"targets": [y], "sources": ["v"]})
    session.post(f"tapes/{name}/explain", {"targets": [y], "sources": ["v"]})
    session.post(f"tapes/{name}", None, "DELETE")
    for tensor in (y, f"{y}.outside"):
        session.post(f"tensors/{tensor}", None, "DELETE")


STEPS: dict[str, Callable[[Program], None]] = {
    "SDK: two ops": op_step,
    "SDK: a training step": gradient_step,
    "SDK: a function's call": call_step,
    "SDK: a function's definition and end": traced_step,
}

REQUESTS: dict[str, Callable[[Session], None]] = {
    "value_and_gradient": lambda session: session.post("functions/loss/value_and_gradient", QUESTION),
    "call": lambda session: session.post("functions/loss/call", {"inputs": INPUTS, "scratch": True}),
    "jacobian": lambda session: session.post("functions/loss/jacobian", QUESTION),
    "hessian": lambda session: session.post("functions/loss/hessian", QUESTION),
    "ops, one tensor more each time": lambda session: session.post(
        "ops", {"ops": [{"op": "square", "inputs": ["v"], "outputs": [f"s{session.count}"]}]}
    ),
    "run": lambda session: session.post("run", {"commands": [{"do": "op", **op} for op in CHAIN], "scratch": True}),
    "tape, 5 requests": tape,
    "a null and its reason, 8 requests": null,
    "function, 2 requests": function,
    "batch": batch,
}


def seconds(thread: Path) -> float:
    """The CPU time of a thread, in seconds."""
    return int((thread / "schedstat").read_text().split()[0]) / 1e9


def processes() -> dict[int, float]:
    """The CPU time of each process that a child of this one has started, and their descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(path.name)] = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
    todo = [child for child, parent in parents.items() if parents.get(parent) == os.getpid()]
    for number in todo:
        todo += [child for child, parent in parents.items() if parent == number]
    times = {}
    for number in todo:
        with contextlib.suppress(OSError):
            times[number] = sum(seconds(thread) for thread in Path(f"/proc/{number}/task").iterdir())
    return times


def cost(run: Callable[[], None]) -> tuple[float, float]:
    """Returns the CPU times that work takes: of the process that took most, which is the session's, and of this one."""
    before, own = processes(), time.process_time()
    run()
    own = time.process_time() - own
    return max(after - before[number] for number, after in processes().items() if number in before), own


def requests(session: Session, request: Callable[[Session], None], times: int) -> None:
    """Sends a request several times."""
    for _ in range(times):
        request(session)
        session.count += 1


def row(name: str, pairs: list[tuple[float, float]]) -> bool:
    """Prints a row, and returns whether it misses the goal."""
    ratio = statistics.median(after / before for before, after in pairs)
    milliseconds = 1000 * statistics.median(before for before, _ in pairs) / EACH
    print(f"| {name} | {milliseconds:.2f} | {ratio:.2f} |", flush=True)
    return ratio > GOAL


def main(names: list[str]) -> int:
    """Measures the requests with these names, or all, and prints a row for each."""
    failed = False
    with (
        tempfile.TemporaryDirectory() as folder,
        server([Path(sys.executable).with_name("teletape")], Path(folder)) as url,
    ):
        print("| request | ms of the process, tenth | over that, thousandth |\n| --- | --- | --- |")
        for name in names or [*REQUESTS, *STEPS]:
            young: Any
            old: Any
            if name in REQUESTS:
                young, old = Session(url, "young"), Session(url, "old")
                run = partial(requests, request=REQUESTS[name])
            else:
                young, old = Program(url), Program(url)
                run = partial(Program.steps, step=STEPS[name])
            run(old, times=OLD)
            run(young, times=YOUNG)
            costs = [(cost(partial(run, young, times=EACH)), cost(partial(run, old, times=EACH))) for _ in range(TURNS)]
            failed |= row(name, [(before[0], after[0]) for before, after in costs])
            if name in STEPS:
                failed |= row(f"{name}, the program's process", [(before[1], after[1]) for before, after in costs])
            for session in (young, old):
                session.end()
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
