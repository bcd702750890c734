"""Model-agnostic meta-learning on sine waves (Finn et al. 2017): weights from which one step learns a new wave.

    python examples/maml.py                    # inside this process; TELETAPE_URL=http://… for a server

The outer loss is the error after an inner step of gradient descent, so its gradient goes through that step's gradient.
Prints the error on waves never seen, one step after the learnt weights and one step after untrained ones.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import teletape as tf

HIDDEN, TASKS, POINTS, STEPS, INNER, OUTER = 32, 4, 10, 150, 0.05, 5e-3
Weights = Sequence[tf.Tensor | tf.Variable]


def weights(random: np.random.Generator, dtype: type[np.floating] = np.float32) -> list[tf.Variable]:
    """Of a perceptron with two hidden layers, from x to y."""
    sizes = [1, HIDDEN, HIDDEN, 1]
    results = []
    for m, n in pairwise(sizes):
        results += [random.normal(size=(m, n)) * np.sqrt(2 / m), np.zeros(n)]
    return [tf.Variable(item.astype(dtype)) for item in results]


def network(x: tf.Tensor, weights: Weights) -> tf.Tensor:
    """y [n, 1] at x [n, 1]; the weights are variables, or tensors that an inner step made of them."""
    w1, b1, w2, b2, w3, b3 = weights
    return tf.tanh(tf.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3


def error(x: tf.Tensor, y: tf.Tensor, weights: Weights) -> tf.Tensor:
    """Mean squared error."""
    return tf.reduce_mean((network(x, weights) - y) ** 2)


def adapted(x: tf.Tensor, y: tf.Tensor, weights: Weights) -> list[tf.Tensor]:
    """The weights after one step of gradient descent on a task's examples."""
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = error(x, y, weights)
    return [w - INNER * g for w, g in zip(weights, tape.gradient(loss, weights), strict=True)]


def task(random: np.random.Generator, dtype: type[np.floating] = np.float32) -> tuple[tf.Tensor, ...]:
    """Examples to adapt to and examples to judge by, of a wave of random amplitude and phase."""
    amplitude, phase = random.uniform(0.5, 2.0), random.uniform(0, np.pi)
    x = random.uniform(-3, 3, size=(2, POINTS, 1))
    y = amplitude * np.sin(x - phase)
    return tuple(tf.constant(item.astype(dtype)) for item in (x[0], y[0], x[1], y[1]))


def meta_loss(tasks: list[tuple[tf.Tensor, ...]], weights: Weights) -> tf.Tensor:
    """The error after adapting, over the tasks."""
    losses = [error(x2, y2, adapted(x1, y1, weights)) for x1, y1, x2, y2 in tasks]
    return tf.add_n(losses) / float(len(losses))


def main() -> dict[str, float]:
    """Trains and tests; errors after one step, and the outer steps taken."""
    random = np.random.default_rng(0)
    start = weights(random)
    untrained = [tf.identity(w) for w in start]
    moments = [(tf.Variable(tf.zeros_like(w)), tf.Variable(tf.zeros_like(w))) for w in start]
    first = 0.0
    for step in range(1, STEPS + 1):
        tasks = [task(random) for _ in range(TASKS)]
        with tf.GradientTape() as tape:
            loss = meta_loss(tasks, start)
        rate = OUTER * float(np.sqrt(1 - 0.999**step) / (1 - 0.9**step))
        for weight, g, (m, v) in zip(start, tape.gradient(loss, start), moments, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            weight.assign_sub(rate * m / (tf.sqrt(v) + 1e-8))
        if step == 1:
            first = float(loss)
    unseen = [task(random) for _ in range(50)]
    return {
        "first loss": first,
        "error after a step from the learnt weights": float(meta_loss(unseen, start)),
        "error after a step from untrained weights": float(meta_loss(unseen, untrained)),
        "steps": STEPS,
    }


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name}: {value:.6g}")
