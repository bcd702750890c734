"""Random functions: a plan of each, gradients included, gives the bytes that the interpreter gives.

The mode `force` compares them, and runs each plan twice in memory that is filled with no numbers.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

import numpy as np

import teletape as tf
from fuzz.target import Finding
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape_engine.errors import InternalError
from teletape_engine.plans.policy import POLICY, Policy

_UNARY: Final = (
    tf.tanh,
    tf.exp,
    tf.sin,
    tf.square,
    tf.sigmoid,
    tf.nn.relu,
    tf.abs,
    tf.nn.softplus,
    tf.negative,
    tf.nn.elu,
    tf.transpose,
    tf.nn.softmax,
    lambda x: tf.sqrt(tf.abs(x) + 0.1),
    lambda x: x**3,
    lambda x: 1.0 / (x * x + 1.0),
    lambda x: tf.reduce_sum(x, axis=0, keepdims=True),
    lambda x: tf.reduce_mean(x, axis=-1, keepdims=True),
    lambda x: tf.reduce_max(x, axis=-1, keepdims=True),
    lambda x: tf.reduce_sum(tf.transpose(x)) * x,
    lambda x: x[..., ::-1],
    lambda x: x[..., :1],
    lambda x: tf.reshape(tf.reshape(x, [-1]), x.shape),
    lambda x: tf.concat([x, x], -1)[..., ::2],
    lambda x: tf.math.reduce_logsumexp(x, axis=-1, keepdims=True),
    lambda x: tf.clip_by_value(x, -0.5, 0.5),
    lambda x: tf.cumsum(x, axis=-1),
    lambda x: tf.cast(tf.cast(x, tf.int32), x.dtype) + x,
    lambda x: tf.gather(x, [0], axis=0) * x,
)
_BINARY: Final = (
    tf.add,
    tf.subtract,
    tf.multiply,
    tf.maximum,
    tf.minimum,
    tf.math.squared_difference,
    lambda x, y: x / (tf.abs(y) + 1.0),
    lambda x, y: tf.where(x > y, x, y * 0.5),
    lambda x, y: tf.matmul(x, y, transpose_b=True),
)


class Plans:
    """The target: a case is {dtype, shape, seed, steps}; a step is [function, operand, second operand or null]."""

    name = "plans"

    def draw(self, rng: random.Random) -> Any:
        """A function of three arrays that broadcast."""
        wide = rng.random() < 0.2
        steps = [
            [rng.randrange(1000), rng.randrange(100), rng.choice([None, rng.randrange(100)])]
            for _ in range(rng.randrange(3, 15))
        ]
        shape = [rng.randrange(1, 40), rng.randrange(100, 3000) if wide else rng.randrange(1, 40)]
        return {
            "dtype": rng.choice(["float32", "float64"]),
            "shape": shape,
            "seed": rng.randrange(1 << 30),
            "steps": steps,
        }

    def check(self, case: Any) -> list[str]:
        """Runs the function once; `planned`, `refused` (an op does not take its operands) or `interpreted`.

        Raises:
            Finding: The bytes differ.
        """
        numbers = np.random.default_rng(case["seed"])
        m, n = case["shape"]
        with forced():
            xs = [
                tf.constant(numbers.standard_normal(shape).astype(case["dtype"])) for shape in ((m, n), (1, n), (m, 1))
            ]
            try:
                results = _function(case["steps"])(*xs)
            except InternalError as error:
                if "a plan gives" not in str(error):
                    raise
                raise Finding("another result", f"{case}: {error}") from error
        return ["planned" if results else "interpreted"]

    def smaller(self, case: Any) -> Iterator[Any]:
        """Without one of the steps."""
        for at in range(len(case["steps"])):
            yield {**case, "steps": case["steps"][:at] + case["steps"][at + 1 :]}

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def forced() -> Iterator[None]:
    """A block with a session of its own in this process, in which every function is planned at once."""
    before = asdict(POLICY)
    for name, setting in asdict(Policy.of("force")).items():
        setattr(POLICY, name, setting)
    use(LocalSession())
    try:
        yield
    finally:
        for name, setting in before.items():
            setattr(POLICY, name, setting)
        use(LocalSession())


def _function(steps: Any) -> Any:
    @tf.function
    def step(*xs: Any) -> Any:
        with tf.GradientTape() as tape:
            for x in xs:
                tape.watch(x)
            values = list(xs)
            for number, first, second in steps:
                x = values[-1 - first % min(3, len(values))]
                try:
                    if second is None:
                        value = _UNARY[number % len(_UNARY)](x)
                    else:
                        value = _BINARY[number % len(_BINARY)](x, values[second % len(values)])
                except (tf.errors.InvalidArgumentError, ValueError):
                    continue
                if value.shape.num_elements() < 50_000:
                    values.append(value)
            loss = tf.reduce_sum(values[-1]) + tf.reduce_sum(values[-2])
        return [values[-1], loss, *[each for each in tape.gradient(loss, xs) if each is not None]]

    return step
