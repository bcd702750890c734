"""`tf.autodiff.ForwardAccumulator` where it is not TensorFlow's: shapes, slices, sessions. Else: conformance."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.sessions.current import use
from teletape.sessions.local import LocalSession

make = tf.autodiff.ForwardAccumulator


@pytest.mark.parametrize("tangent", [1.0, [[1.0, 2.0]], np.ones(3)], ids=["scalar", "row", "longer"])
def test_a_tangent_of_another_shape_is_refused_at_construction(tangent: Any) -> None:
    with pytest.raises(ValueError, match=r"for a primal of shape \[2\]: a tangent has the shape"):
        make(tf.constant([1.0, 2.0]), tf.constant(tangent, tf.float32))


def test_a_primal_that_is_an_array_is_reported() -> None:
    with pytest.raises((TypeError, AttributeError)):
        make(np.ones(2), np.ones(2))


def test_the_tangent_of_a_sparse_gradient_has_its_rows() -> None:
    table = tf.Variable([[1.0], [2.0], [3.0]])
    with make(table, tf.ones([3, 1])) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, [2, 0, 2]) ** 3)
        g = tape.gradient(y, table)
    tangents = acc.jvp(g)
    assert isinstance(tangents, tf.IndexedSlices)
    assert tangents.indices.numpy().tolist() == [2, 0, 2]
    assert tangents.values.numpy().ravel().tolist() == [18.0, 6.0, 18.0]
    outside = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([0]), tf.constant([3, 1]))
    assert acc.jvp(outside) is None
    zero = acc.jvp(outside, "zero")
    assert (type(zero).__name__, zero.values.numpy().tolist()) == ("IndexedSlices", [[0.0]])


def test_one_variable_by_two_objects_has_the_sum() -> None:
    v = tf.Variable(2.0)
    same = v.assign(3.0)
    with make([v, same], [tf.constant(1.0), tf.constant(10.0)]) as acc:
        y = v * v
    assert float(acc.jvp(y)) == 66.0


def test_what_the_program_drops_is_not_kept() -> None:
    x = tf.constant(np.ones(1000))
    with make(x, x) as acc:
        y = x * x
        tangent = weakref.ref(acc.jvp(y).recorded)
        del y
        gc.collect()
        assert tangent() is None


def test_a_tensor_of_another_session_is_recognised() -> None:
    x = tf.constant(1.0)
    acc = make(x, x)
    use(LocalSession())
    with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another session"):
        acc.jvp(x)


def test_an_op_without_a_gradient_is_a_lookup_error_on_its_line() -> None:
    image = tf.ones([1, 2, 2, 3])
    with make(image, image), pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2"):
        tf.image.adjust_contrast(image, 2.0)
