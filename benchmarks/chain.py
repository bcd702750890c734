"""What an op costs: forward and backward of a chain of 1000 tiny ops, beside the same mathematics in NumPy; and what an
empty round trip costs.

    make bench

Arrays of eight float32, Python scalars among the operands, every check on. The numbers are medians of interleaved runs;
read the ratios. `by hand` writes into buffers that it made before and checks nothing: a floor. One BLAS thread;
OPENBLAS_CORETYPE is taken away, since it slows NumPy where it is set.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

_QUIET = {"OPENBLAS_CORETYPE": None, "OPENBLAS_NUM_THREADS": "1"}
if any(os.environ.get(name) != value for name, value in _QUIET.items()):
    kept = {name: value for name, value in os.environ.items() if name not in _QUIET}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**kept, "OPENBLAS_NUM_THREADS": "1"})

import numpy as np  # noqa: E402  # after the environment is as the numbers need it

import teletape as tf  # noqa: E402
from teletape_engine.commands import Batch, Call, Constant, Fetch, Gradient, TapeOpen, TapeWatch  # noqa: E402
from teletape_engine.recording.values import Literal  # noqa: E402
from teletape_engine.session.session import Session  # noqa: E402

OPS = 1000
START = np.linspace(0.5, 1.5, 8, dtype=np.float32)
SCALE, SHIFT = 1.001, -0.0005


def by_hand() -> np.ndarray:
    """x * c, + c, * x0, … and back, into buffers made beforehand."""
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
_SCALE, _SHIFT, _ONE = (np.full(8, item) for item in (_SCALE, _SHIFT, _ONE))


def plain_numpy() -> np.ndarray:
    """The same as anybody writes it: a new array for each result."""
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
    results = []
    for i in range(OPS):
        kind, x, y = i % 4, 10 + i, (11 + i,)
        if kind in (0, 2):
            results.append(Call("mul", (x, scale), y))
        elif kind == 1:
            results.append(Call("add", (x, shift), y))
        else:
            results.append(Call("tanh", (x,), y))
    return tuple(results)


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
    """Median microseconds an op of each, the runs interleaved."""
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
    return {name: statistics.median(taken) for name, taken in times.items()}


def round_trip(runs: int) -> float:
    """Median microseconds of an empty batch to the server at TELETAPE_URL and back."""
    session = tf.session()
    times = []
    for i in range(runs + 20):
        begin = time.perf_counter()
        session.round_trip()
        if i >= 20:
            times.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Measures, prints a table, and writes out/chain.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    url = os.environ.get("TELETAPE_URL")
    trip = round_trip(runs * 3) if url else None
    tf.connect(device="cpu", local=True)
    result = measure(runs)
    floor, plain = result["NumPy, by hand"], result["NumPy, plain"]
    print(f"chain of {OPS} tiny ops, forward + backward, medians of {runs} interleaved runs")
    print(f"{'':18}{'µs an op':>10}{'x by hand':>12}{'x plain':>10}")
    for name, taken in result.items():
        print(f"{name:18}{taken:10.2f}{taken / floor:12.1f}{taken / plain:10.1f}")
    if trip is not None:
        print(f"round trip of an empty batch: {trip:.0f} µs")
    out = Path("out/chain.json")
    out.parent.mkdir(exist_ok=True)
    facts = {"python": platform.python_version(), "numpy": np.__version__, "date": datetime.now(UTC).date().isoformat()}
    out.write_text(json.dumps({**facts, "us_an_op": result, "round_trip_us": trip}, indent=1) + "\n")


if __name__ == "__main__":
    main()
