"""`tf.autodiff.ForwardAccumulator` where it is not TensorFlow's: shapes, slices, sessions. Else: conformance."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession

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


@pytest.mark.parametrize(
    ("value", "tangent", "second"), [(1.25, 3 * 1.25**2, 6 * 1.25), (0.5, np.cos(0.5), -np.sin(0.5))]
)
def test_a_tape_around_an_accumulator_sees_the_tangents_of_a_branch(value, tangent, second):
    @tf.function
    def derivatives(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
                y = tf.cond(x > 1.0, lambda: x**3, lambda: tf.sin(x))
            first = acc.jvp(y)
        return first, tape.gradient(first, x)

    np.testing.assert_allclose(derivatives(tf.constant(value)), [tangent, second], rtol=1e-6)


@pytest.mark.parametrize(("value", "product"), [(1.25, 6 * 1.25), (0.5, -np.sin(0.5))])
def test_an_accumulator_follows_the_gradient_of_a_branch(value, product):
    @tf.function
    def hvp(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.cond(x > 1.0, lambda: x**3, lambda: tf.sin(x))
            g = tape.gradient(y, x)
        return acc.jvp(g)

    np.testing.assert_allclose(hvp(tf.constant(value)), product, rtol=1e-6)


def test_an_accumulator_around_an_accumulator_sees_the_tangents_of_a_loop(caplog):
    @tf.function
    def derivatives(x):
        tangent = tf.constant(1.0)
        with tf.autodiff.ForwardAccumulator(x, tangent) as outer:
            with tf.autodiff.ForwardAccumulator(x, tangent) as inner:
                y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))[1]
            first = inner.jvp(y)
        return outer.jvp(y), first, outer.jvp(first)

    np.testing.assert_allclose(derivatives(tf.constant(2.0)), [12.0, 12.0, 12.0])
    assert "runs op by op" not in caplog.text


def test_a_branch_that_assigns_is_not_followed(caplog):
    total = tf.Variable(3.0)

    @tf.function
    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
            y = tf.cond(x > 0.0, lambda: total.assign_add(x) * x, lambda: x + 0.0)
        return acc.jvp(y)

    assert float(tangent(tf.constant(2.0))) == 5.0  # op by op, as in TensorFlow: the variable has no tangent
    assert "assigns to a variable in a loop or a branch that an accumulator follows" in caplog.text
