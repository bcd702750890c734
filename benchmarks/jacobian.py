"""What a Jacobian costs: of a network of 64 in and 64 out, beside a loop of 64 backward passes and the same in NumPy.

    make bench

Three tanh layers on one example, float32. The numbers are medians of interleaved runs; read the ratios. `by hand` is
the product of the layers' Jacobians: a floor. One BLAS thread; OPENBLAS_CORETYPE is taken away, since it slows NumPy
where it is set.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

_QUIET = {"OPENBLAS_CORETYPE": None, "OPENBLAS_NUM_THREADS": "1"}
if any(os.environ.get(name) != value for name, value in _QUIET.items()):
    kept = {name: value for name, value in os.environ.items() if name not in _QUIET}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**kept, "OPENBLAS_NUM_THREADS": "1"})

import numpy as np  # noqa: E402  # after the environment is as the numbers need it

import teletape as tf  # noqa: E402

WIDTH, LAYERS = 64, 3
_DRAWN = np.random.default_rng(0)
START = _DRAWN.normal(size=(1, WIDTH)).astype(np.float32)
WEIGHTS = [(_DRAWN.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for _ in range(LAYERS)]
UNITS = np.eye(WIDTH, dtype=np.float32)


def by_hand() -> np.ndarray:
    """∂y/∂x = D₃ W₃ᵀ D₂ W₂ᵀ D₁ W₁ᵀ, the Ds diagonal."""
    x, jacobian = START, UNITS
    for w in WEIGHTS:
        x = np.tanh(x @ w)
        jacobian = (1 - x * x).T * (w.T @ jacobian)
    return jacobian


def network(*, persistent: bool) -> tuple[tf.GradientTape, tf.Tensor, tf.Tensor]:
    """The forward pass on a tape."""
    start = x = tf.constant(START)
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(start)
        for w in _WEIGHTS:
            x = tf.tanh(x @ w)
    return tape, x, start


def at_once() -> np.ndarray:
    """One backward pass over 64 rows."""
    tape, y, x = network(persistent=False)
    return tape.jacobian(y, x).numpy().reshape(WIDTH, WIDTH)


def loop() -> np.ndarray:
    """64 backward passes."""
    tape, y, x = network(persistent=True)
    rows = [tape.gradient(y, x, output_gradients=unit) for unit in _ROWS]
    return np.concatenate([row.numpy() for row in rows])


def gradient() -> np.ndarray:
    """One backward pass for one row: what a Jacobian cannot be cheaper than."""
    tape, y, x = network(persistent=False)
    return tape.gradient(y, x, output_gradients=_ROWS[0]).numpy()


def product() -> np.ndarray:
    """A Hessian-vector product of the outputs' sum."""
    tape, y, x = network(persistent=False)
    return tape.hvp(y, x, x).numpy()


_WEIGHTS = [tf.constant(w) for w in WEIGHTS]
_ROWS = [tf.constant(unit[None]) for unit in UNITS]


def measure(runs: int) -> dict[str, float]:
    """Median microseconds of each, forward pass and reading included, the runs interleaved."""
    ways: dict[str, Callable[[], np.ndarray]] = {
        "NumPy, by hand": by_hand,
        "jacobian": at_once,
        "loop of 64 gradients": loop,
        "one gradient": gradient,
        "one hvp": product,
    }
    for name in ("jacobian", "loop of 64 gradients"):
        np.testing.assert_allclose(ways[name](), by_hand(), rtol=1e-3, atol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(runs):
        for name, way in ways.items():
            begin = time.perf_counter()
            way()
            times[name].append((time.perf_counter() - begin) * 1e6)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    where = os.environ.get("TELETAPE_URL") or "this process"
    result = measure(runs)
    print(f"{LAYERS} tanh layers of {WIDTH} in and {WIDTH} out in {where}, medians of {runs} interleaved runs")
    print(f"{'':24}{'µs':>10}{'x by hand':>12}{'x jacobian':>12}")
    for name, taken in result.items():
        print(f"{name:24}{taken:10.0f}{taken / result['NumPy, by hand']:12.1f}{taken / result['jacobian']:12.2f}")


if __name__ == "__main__":
    main()
