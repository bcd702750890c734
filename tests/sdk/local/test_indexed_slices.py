"""`tf.IndexedSlices`: the order of rows, slices as operands, targets and output gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import teletape as tf

TABLE = [[1.0], [2.0], [3.0]]


def gathered(table: Any, *rows: int) -> Any:
    return tf.gather(table, list(rows))


# The orders are those that TensorFlow 2.21 gives.
@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (lambda v: gathered(v, 0) * 1.0 + gathered(v, 1) * 2.0 + gathered(v, 2) * 3.0, [2, 0, 1]),
        (lambda v: tf.reduce_sum(gathered(v, 0)) + tf.reduce_sum(gathered(v, 1, 2)), [0, 1, 2]),
        (lambda v: tf.concat([gathered(v, 0), gathered(v, 1), gathered(v, 2)], 0), [0, 1, 2]),
        (lambda v: gathered(v.value(), 0) + gathered(v, 1) + gathered(v, 2), [2, 1, 0]),
    ],
)
@pytest.mark.parametrize("persistent", [False, True])
def test_rows_come_in_the_order_of_tensorflows_backward_pass(
    function: Callable[[Any], Any], rows: list[int], persistent: bool
) -> None:
    v = tf.Variable(TABLE)
    with tf.GradientTape(persistent=persistent) as tape:
        y = function(v)
    assert tape.gradient(y, v).indices.numpy().tolist() == rows


def test_order_and_values_are_the_same_under_an_outer_tape() -> None:
    v = tf.Variable(TABLE)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(gathered(v, 0) ** 2) + tf.reduce_sum(gathered(v, 2) ** 2)
        g = tape.gradient(y, v)
        total = tf.reduce_sum(g.values * g.values)
    assert g.indices.numpy().tolist() == [0, 2]
    assert tf.convert_to_tensor(outer.gradient(total, v)).numpy().tolist() == [[8.0], [0.0], [24.0]]


def test_a_long_tape_with_slices_takes_no_recursion() -> None:
    v = tf.Variable(TABLE)
    with tf.GradientTape() as tape:
        y = gathered(v, 0) + gathered(v, 1)
        for _ in range(5000):
            y = y + 1.0
    assert sorted(tape.gradient(y, v).indices.numpy().tolist()) == [0, 1]


def test_slices_as_operands_become_dense() -> None:
    s = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([0, 0]), tf.constant([2, 1]))
    for dense in (s + tf.zeros([2, 1]), tf.ones([2, 1]) * s, tf.convert_to_tensor(s), tf.add_n([s, tf.zeros([2, 1])])):
        assert dense.numpy().tolist() == [[3.0], [0.0]]
    assert isinstance(tf.identity(s), tf.IndexedSlices)
    assert (-s).values.numpy().tolist() == [[-1.0], [-2.0]]


def test_slices_without_a_dense_shape_stay_sparse() -> None:
    s = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3]))
    assert s.shape.rank is None
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(s)


def test_attributes() -> None:
    s = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([3]), tf.constant([5, 1]))
    assert (s.shape, s.dtype, s.device) == ((5, 1), tf.float32, s.values.device)
    with pytest.raises(AttributeError, match=r"Tensor.name is undefined"):
        s.name  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        s.nope  # noqa: B018


def test_slices_as_target_and_as_output_gradient() -> None:
    s = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([2, 1]))
    with tf.GradientTape() as tape:
        tape.watch(s)
        y = tf.convert_to_tensor(s) * 3.0
    assert tape.gradient(y, s).numpy().tolist() == [[3.0]]
    v = tf.Variable([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        target = tf.IndexedSlices(v[:1] ** 2, tf.constant([0]), tf.constant([2, 1]))
    assert tape.gradient(target, v).numpy().tolist() == [[2.0], [0.0]]
    v = tf.Variable([[1.0], [2.0]])
    with tf.GradientTape() as tape:
        z = v * v
    assert tape.gradient(z, v, output_gradients=s).numpy().tolist() == [[2.0], [0.0]]
