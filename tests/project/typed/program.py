"""A program with the types that users see. Type checkers read it, and it runs too: `assert_type` is for the former."""

from typing import Any, assert_type

import numpy as np
import teletape.experimental.numpy as tnp
from teletape.data import Dataset

import teletape as tf


class Model(tf.Module):
    """A variable and a decorated method."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = tf.Variable(3.0)

    @tf.function
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return x * self.scale


@tf.function
def scaled(x: tf.Tensor, factor: int = 1) -> tf.Tensor:
    """A decorated function keeps its signature."""
    return tf.tanh(x) * factor


@tf.function(reduce_retracing=True)
def negated(x: tf.Tensor) -> tf.Tensor:
    """The decorator with options does so too."""
    return -x


@tf.custom_gradient
def clipped(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
    """The result of a custom gradient's function is the first of the pair."""

    def grad(upstream: tf.Tensor) -> tf.Tensor:
        return tf.clip_by_value(upstream, -1.0, 1.0)

    return x, grad


def number(x: tf.Tensor) -> float:
    """`tf.Tensor` has all that a tensor can do."""
    return float(x[0, 0]) + len(x) + x.ndim + sum(float(row[0]) for row in x)


def main() -> None:
    """Everything once."""
    x, w = tf.constant([[1.0, 2.0]]), tf.Variable([[1.0], [2.0]])
    assert_type(x, tf.Tensor)
    assert_type(tf.constant(1) * 2, tf.Tensor)
    assert_type(2 * tf.constant(1.0) - w, tf.Tensor)
    assert_type(x @ w, tf.Tensor)
    assert_type(-x[0] > 1, tf.Tensor)
    assert_type(tf.matmul(x, w, transpose_b=False), tf.Tensor)
    assert_type(tf.reduce_sum([[1.0, 2.0]], axis=[0, 1], keepdims=True), tf.Tensor)
    assert_type(tf.reshape(np.ones(4), [2, -1]), tf.Tensor)
    assert_type(tf.cast(x, tf.float64), tf.Tensor)
    assert_type(tf.random.normal([2, 3]), tf.Tensor)
    assert_type(tf.nn.conv2d(tf.zeros([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SAME"), tf.Tensor)
    assert_type(tf.split(x, 2, axis=1), list[tf.Tensor])
    assert_type(tnp.arange(3), tf.Tensor)
    assert_type(Dataset.range(3).batch(2), Dataset)
    assert_type(Model()(x), tf.Tensor)
    assert_type(scaled(x, factor=2), tf.Tensor)
    assert_type(negated(x), tf.Tensor)
    assert_type(clipped(x), tf.Tensor)
    assert_type(number(x), float)

    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(x @ w - 1.0))
    assert_type(tape.gradient(loss, w), tf.Tensor | Any)
    assert_type(tape.gradient(loss, [w]), list[tf.Tensor | Any])
    assert_type(tape.gradient(loss, (w,)), tuple[tf.Tensor | Any, ...])
    assert tape.gradient(loss, w).numpy().shape == (2, 1)


if __name__ == "__main__":
    main()
