"""What plans gain: functions step by step, as plans in Python, and as plans in C, in turn in one run.

    .venv/bin/python benchmarks/plans.py [program ...]

The numbers are medians in milliseconds; read the ratios. A line before them has what a plan costs: microseconds to
build an instruction, the first time in a process and later, and after how many calls that is paid back.
"""

# isort: off
import one_thread  # noqa: F401  # first: it sets the environment in which NumPy is imported
# isort: on

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import teletape as tf
from teletape_engine.plans import cache
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.plan import Plan

RANDOM = np.random.default_rng(0)
WAYS = {"steps": (False, False), "Python": (True, False), "C": (True, True)}


def numbers(*shape: int) -> np.ndarray:
    """Random float32 numbers."""
    return RANDOM.standard_normal(shape).astype("f4")


def chain() -> Callable[[], object]:
    """1000 tiny ops and their gradient; no number becomes denormal."""
    x = tf.Variable(np.linspace(-1, 0.7, 8).astype("f4"))
    scale, shift = (np.full(8, number, "f4") for number in (1.25, -1.2262))

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = x
            for _ in range(250):
                y = tf.exp(tf.tanh(y * scale + shift))
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    return step


def single() -> Callable[[], object]:
    """One tiny op and its gradient: what a call costs."""
    x = tf.constant(np.linspace(-1, 0.7, 8).astype("f4"))

    @tf.function
    def step(x: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(x)
        return tape.gradient(y, x)

    return lambda: step(x)


def hessian() -> Callable[[], object]:
    """The Hessian of Rosenbrock's function of 50 variables."""
    x = tf.constant(RANDOM.random(50))

    @tf.function
    def step(x: tf.Tensor) -> object:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                a, b = x[:-1], x[1:]
                loss = tf.reduce_sum(100.0 * tf.square(b - a * a) + tf.square(1.0 - a))
            gradient = inner.gradient(loss, x)
        return outer.jacobian(gradient, x)

    return lambda: step(x)


def jacobian() -> Callable[[], object]:
    """The Jacobian of three tanh layers of 64."""
    x = tf.constant(numbers(1, 64))
    weights = [tf.constant(numbers(64, 64) / 8) for _ in range(3)]

    @tf.function
    def step(x: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for w in weights:
                y = tf.tanh(y @ w)
        return tape.jacobian(y, x)

    return lambda: step(x)


def long_chain() -> Callable[[], object]:
    """Nine elementwise ops on ten million numbers, their mean and its gradient."""
    x = tf.constant(numbers(10_000_000))

    @tf.function
    def step(x: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(2):
                y = tf.tanh(y * 1.1 + 0.3)
            loss = tf.reduce_mean(tf.exp(-y * y))
        return loss, tape.gradient(loss, x)

    return lambda: step(x)


def training_loop() -> Callable[[], object]:
    """A while loop of 1000 training steps of a model with four parameters."""
    w = tf.Variable(np.zeros((4, 1), "f4"))
    x, y = tf.constant(numbers(16, 4)), tf.constant(numbers(16, 1))

    @tf.function
    def train(count: tf.Tensor) -> object:
        def body(i: tf.Tensor) -> tuple[tf.Tensor]:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
            w.assign_sub(0.01 * tape.gradient(loss, w))
            return (i + 1,)

        return tf.while_loop(lambda i: i < count, body, (tf.constant(0),))

    count = tf.constant(1000)
    return lambda: train(count)


def loop() -> Callable[[], object]:
    """A while loop of 100,000 iterations of ten tiny ops: a million in one request."""
    x = tf.constant(np.linspace(-1, 0.7, 8).astype("f4"))

    @tf.function
    def turn(count: tf.Tensor, x: tf.Tensor) -> object:
        def body(i: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            for _ in range(3):
                y = tf.tanh(tf.exp(y) * 1.25)
            return i + 1, y

        return tf.while_loop(lambda i, y: i < count, body, (tf.constant(0), x))

    count = tf.constant(100_000)
    return lambda: turn(count, x)


def scan() -> Callable[[], object]:
    """A scan over 1000 rows of 8 numbers."""
    rows, start = tf.constant(numbers(1000, 8)), tf.constant(numbers(8))

    @tf.function
    def step(rows: tf.Tensor, start: tf.Tensor) -> object:
        return tf.scan(lambda state, row: tf.tanh(state * 0.5 + row), rows, start)

    return lambda: step(rows, start)


def rosenbrock() -> Callable[[], object]:
    """Rosenbrock's function of ten variables and its gradient."""
    x = tf.constant(RANDOM.random(10))

    @tf.function
    def step(x: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b = x[:-1], x[1:]
            loss = tf.reduce_sum(100.0 * tf.square(b - a * a) + tf.square(1.0 - a))
        return loss, tape.gradient(loss, x)

    return lambda: step(x)


def logistic_regression() -> Callable[[], object]:
    """A loss of 1000 rows of 20 numbers and its gradient."""
    w, b = tf.Variable(numbers(20, 1) * 0.1), tf.Variable(np.zeros(1, "f4"))
    x, y = tf.constant(numbers(1000, 20)), tf.constant((RANDOM.random((1000, 1)) > 0.5).astype("f4"))

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, w) + b
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        return [loss, *tape.gradient(loss, [w, b])]

    return lambda: step(x, y)


def mlp() -> Callable[[], object]:
    """A step of a network 784-512-256-10 on 128 rows: the loss and every gradient."""
    weights = [tf.Variable(numbers(*shape) * 0.05) for shape in ((784, 512), (512, 256), (256, 10))]
    biases = [tf.Variable(np.zeros(n, "f4")) for n in (512, 256, 10)]
    x, y = tf.constant(numbers(128, 784)), tf.constant(RANDOM.integers(0, 10, 128).astype("i4"))

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> object:
        with tf.GradientTape() as tape:
            h = x
            for i, (w, b) in enumerate(zip(weights, biases, strict=True)):
                h = tf.matmul(h, w) + b
                if i < 2:
                    h = tf.nn.relu(h)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h))
        return [loss, *tape.gradient(loss, weights + biases)]

    return lambda: step(x, y)


STRAIGHT = (single, rosenbrock, hessian, jacobian, logistic_regression, chain, mlp, long_chain)
LOOPS = (training_loop, scan, loop)


def measure(make: Callable[[], Callable[[], object]], seconds: float = 3.0) -> dict[str, float]:
    """The median of each way, the ways in turn."""
    ways = WAYS if LIBRARY_LOADED is not None else {name: way for name, way in WAYS.items() if name != "C"}
    steps = {}
    for name, (POLICY.enabled, POLICY.compiled) in ways.items():
        steps[name] = make()
        for _ in range(5):
            steps[name]()
    times: dict[str, list[float]] = {name: [] for name in ways}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or min(map(len, times.values())) < 20:
        for name, (POLICY.enabled, POLICY.compiled) in ways.items():
            start = time.perf_counter()
            steps[name]()
            times[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(row) for name, row in times.items()}


def seconds(step: Callable[[], object], calls: int = 1) -> float:
    """The shortest of some calls."""
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


def building(make: Callable[[], Callable[[], object]]) -> tuple[float, int, float]:
    """The seconds that a plan costs before its first run ends, its instructions, and the calls that pay it back."""
    counts: list[int] = []
    build = Plan.__init__

    def counted(plan: Plan, *args: object) -> None:
        build(plan, *args)  # type: ignore[arg-type]
        counts.append(len(plan.instructions))

    POLICY.enabled = False
    step = make()
    step()
    stepwise = seconds(step, 3)
    POLICY.enabled = POLICY.compiled = True
    step()
    Plan.__init__ = counted  # type: ignore[method-assign]
    try:
        second, third = seconds(step), seconds(step)
    finally:
        Plan.__init__ = build  # type: ignore[method-assign]
    planned = seconds(step, 5)
    cost = second - stepwise + third - planned
    return cost, sum(counts), cost / max(stepwise - planned, 1e-9)


def main() -> None:
    """Prints two rows for each program."""
    names = sys.argv[1:]
    for make in [make for make in (*STRAIGHT, *LOOPS) if not names or make.__name__ in names]:
        if make in STRAIGHT:
            cache._LARGE = 1 << 60  # the first call runs step by step
            rows = [building(make) for _ in range(6)]
            first, again = rows[0], min(rows[1:])
            print(f"{make.__name__:20} {first[1]} instructions:", end=" ")
            print(f"{1e6 * first[0] / first[1]:.0f}, then {1e6 * again[0] / again[1]:.0f} us each;", end=" ")
            print(f"paid back after {first[2]:.1f}, then {again[2]:.1f} calls")
        medians = measure(make)
        print(f"{make.__name__:20}", "   ".join(f"{name} {ms:8.4f}" for name, ms in medians.items()), end="   ")
        print("times faster", ", ".join(f"{medians['steps'] / ms:.1f}" for ms in list(medians.values())[1:]))


if __name__ == "__main__":
    main()
