"""The cost of an op: forward and backward of a chain of 1000 tiny ops, compared with the same in NumPy.

With TELETAPE_URL also the cost of an empty round trip.

    make bench

Arrays of eight float32, Python scalars among the operands, every check on. The numbers are medians of interleaved runs;
read the ratios. `by hand` writes into buffers allocated before and checks nothing: it is the lower bound.
"""

# isort: off
import one_thread  # noqa: F401  # first: it sets the environment in which NumPy is imported
# isort: on

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import teletape as tf
from teletape_engine.commands import Batch, Call, Constant, Fetch, Gradient, TapeOpen, TapeWatch
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

OPS = 1000
START = np.linspace(0.5, 1.5, 8, dtype=np.float32)
SCALE, SHIFT = 1.001, -0.0005


def by_hand() -> np.ndarray:
    """The chain and its gradient, into buffers allocated before."""
    values = _BUFFERS
    np.copyto(values[0], START)
    for i in range(OPS):
        kind = i % 4
        if kind in (0, 2):
            np.multiply(values[i], _SCALE, values[i + 1])
        elif kind == 1:
            np.add(values[i], _SHIFT, values[i + 1])
        else:
            np.tanh(values[i], values[i + 1])
    ct, scratch = _CT, _SCRATCH
    ct.fill(1)
    for i in range(OPS - 1, -1, -1):
        kind = i % 4
        if kind in (0, 2):
            np.multiply(ct, _SCALE, ct)
        elif kind == 3:
            np.multiply(values[i + 1], values[i + 1], scratch)
            np.subtract(_ONE, scratch, scratch)
            np.multiply(ct, scratch, ct)
    return ct


_BUFFERS = [np.empty_like(START) for _ in range(OPS + 1)]
_CT, _SCRATCH = np.empty_like(START), np.empty_like(START)
_SCALE, _SHIFT, _ONE = np.float32(SCALE), np.float32(SHIFT), np.float32(1)
_SCALE, _SHIFT, _ONE = (np.full(8, number) for number in (_SCALE, _SHIFT, _ONE))


def plain_numpy() -> np.ndarray:
    """The same as it is usually written: a new array for each result."""
    values = [START]
    for i in range(OPS):
        kind, x = i % 4, values[-1]
        values.append(x * SCALE if kind in (0, 2) else x + SHIFT if kind == 1 else np.tanh(x))
    ct = np.ones_like(START)
    for i in range(OPS - 1, -1, -1):
        kind = i % 4
        if kind in (0, 2):
            ct = ct * SCALE
        elif kind == 3:
            y = values[i + 1]
            ct = ct * (1 - y * y)
    return ct


def commands() -> tuple[Call, ...]:
    """The chain as a batch's commands, ids from 10 on."""
    scale, shift = Literal(SCALE), Literal(SHIFT)
    calls = []
    for i in range(OPS):
        kind, x, y = i % 4, 10 + i, (11 + i,)
        if kind in (0, 2):
            calls.append(Call("mul", (x, scale), y))
        elif kind == 1:
            calls.append(Call("add", (x, shift), y))
        else:
            calls.append(Call("tanh", (x,), y))
    return tuple(calls)


_COMMANDS = (
    Constant(10, START),
    TapeOpen(1),
    TapeWatch(1, (10,)),
    *commands(),
    Gradient(1, (10 + OPS,), (10,), (9,)),
    Fetch(9),
)


def engine() -> np.ndarray:
    """`Session.execute` of the chain, its gradient, and the fetch."""
    answer = Session(memory_limit=1 << 30).execute(Batch(_COMMANDS))
    assert answer.failure is None, answer.failure
    return answer.results[-1].array  # type: ignore[union-attr, return-value]  # the last command is a fetch


def sdk() -> np.ndarray:
    """The program that a person writes, inside this process."""
    start = x = tf.constant(START)
    with tf.GradientTape() as tape:
        tape.watch(start)
        for i in range(OPS):
            kind = i % 4
            x = x * SCALE if kind in (0, 2) else x + SHIFT if kind == 1 else tf.tanh(x)
    return tape.gradient(x, start).numpy()


def measure(runs: int) -> dict[str, float]:
    """The median microseconds per op of each, the runs interleaved."""
    chains: dict[str, Callable[[], np.ndarray]] = {
        "NumPy, by hand": by_hand,
        "NumPy, plain": plain_numpy,
        "engine": engine,
        "SDK in-process": sdk,
    }
    expected = plain_numpy()
    for name, chain in chains.items():
        np.testing.assert_allclose(chain(), expected, rtol=1e-4, atol=1e-7, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in chains}
    for _ in range(runs):
        for name, chain in chains.items():
            begin = time.perf_counter()
            chain()
            times[name].append((time.perf_counter() - begin) / OPS * 1e6)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def round_trip(runs: int) -> float:
    """The median microseconds of an empty batch to the server at TELETAPE_URL and back."""
    channel = tf.session().channel
    times = []
    for i in range(runs + 20):
        begin = time.perf_counter()
        channel.round_trip()
        if i >= 20:
            times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Measures, prints a table, and writes out/chain.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    url = os.environ.get("TELETAPE_URL")
    round_trip_us = round_trip(runs * 3) if url else None
    tf.connect(device="cpu", local=True)
    us_per_op = measure(runs)
    floor, plain = us_per_op["NumPy, by hand"], us_per_op["NumPy, plain"]
    print(f"chain of {OPS} tiny ops, forward + backward, medians of {runs} interleaved runs")
    print(f"{'':18}{'µs an op':>10}{'x by hand':>12}{'x plain':>10}")
    for name, median in us_per_op.items():
        print(f"{name:18}{median:10.2f}{median / floor:12.1f}{median / plain:10.1f}")
    if round_trip_us is not None:
        print(f"round trip of an empty batch: {round_trip_us:.0f} µs")
    out = Path("out/chain.json")
    out.parent.mkdir(exist_ok=True)
    facts = {"python": platform.python_version(), "numpy": np.__version__, "date": datetime.now(UTC).date().isoformat()}
    out.write_text(json.dumps({**facts, "us_an_op": us_per_op, "round_trip_us": round_trip_us}, indent=1) + "\n")


if __name__ == "__main__":
    main()
