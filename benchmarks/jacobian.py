"""The cost of a Jacobian: a network of 64 in and 64 out, compared with 64 backward passes and the same in NumPy.

    make bench

Three tanh layers on one example, float32. The numbers are medians of interleaved runs; read the ratios. `by hand` is
the product of the layers' Jacobians: it is the lower bound.
"""

# isort: off
import one_thread  # noqa: F401  # first: it sets the environment in which NumPy is imported
# isort: on

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import teletape as tf

WIDTH, LAYERS = 64, 3
_RANDOM = np.random.default_rng(0)
START = _RANDOM.normal(size=(1, WIDTH)).astype(np.float32)
WEIGHTS = [(_RANDOM.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for _ in range(LAYERS)]
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
    """One backward pass for one row, which a Jacobian cannot be cheaper than."""
    tape, y, x = network(persistent=False)
    return tape.gradient(y, x, output_gradients=_ROWS[0]).numpy()


def product() -> np.ndarray:
    """A Hessian-vector product of the outputs' sum."""
    tape, y, x = network(persistent=False)
    return tape.hvp(y, x, x).numpy()


_WEIGHTS = [tf.constant(w) for w in WEIGHTS]
_ROWS = [tf.constant(unit[None]) for unit in UNITS]


def measure(runs: int) -> dict[str, float]:
    """The median microseconds of each, forward pass and reading included, the runs interleaved."""
    cases: dict[str, Callable[[], np.ndarray]] = {
        "NumPy, by hand": by_hand,
        "jacobian": at_once,
        "loop of 64 gradients": loop,
        "one gradient": gradient,
        "one hvp": product,
    }
    for name in ("jacobian", "loop of 64 gradients"):
        np.testing.assert_allclose(cases[name](), by_hand(), rtol=1e-3, atol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(runs):
        for name, case in cases.items():
            begin = time.perf_counter()
            case()
            times[name].append((time.perf_counter() - begin) * 1e6)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    where = os.environ.get("TELETAPE_URL") or "this process"
    medians = measure(runs)
    print(f"{LAYERS} tanh layers of {WIDTH} in and {WIDTH} out in {where}, medians of {runs} interleaved runs")
    print(f"{'':24}{'µs':>10}{'x by hand':>12}{'x jacobian':>12}")
    for name, median in medians.items():
        ratios = f"{median / medians['NumPy, by hand']:12.1f}{median / medians['jacobian']:12.2f}"
        print(f"{name:24}{median:10.0f}{ratios}")


if __name__ == "__main__":
    main()
