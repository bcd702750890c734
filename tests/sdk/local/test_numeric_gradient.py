"""`tf.numeric_gradient`: gradients from values alone, as a tape uses them."""

import numpy as np
import pytest

import teletape as tf


def gradient(f, *sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = f(*sources)
    return tape.gradient(y, sources)


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-8), ("float32", 2e-3)])
def test_it_is_the_gradient_of_a_smooth_function(dtype, rtol):
    x = tf.constant([[0.5, -1.5, 20.0], [0.25, 2.0, -0.1]], dtype)
    w = tf.constant([1.0, -2.0, 0.5], dtype)

    def f(x, w):
        return {"waves": tf.sin(x * w), "total": tf.reduce_sum(x) * w[0], "rows": tf.argmax(x, axis=1)}

    def loss(f):
        return lambda x, w: tf.reduce_sum(f(x, w)["waves"] * [1.0, 2.0, 3.0]) + f(x, w)["total"]

    for numeric, exact in zip(gradient(loss(tf.numeric_gradient(f)), x, w), gradient(loss(f), x, w), strict=True):
        assert (numeric.dtype, numeric.shape) == (exact.dtype, exact.shape)
        np.testing.assert_allclose(numeric, exact, rtol=rtol, atol=rtol)


def test_ops_without_a_gradient_get_one():
    x = tf.constant([0.25, 2.75])
    assert gradient(tf.floor, x)[0] is None
    np.testing.assert_allclose(gradient(tf.numeric_gradient(tf.floor, step=0.5), x)[0], [1.0, 1.0])


def test_a_function_of_numpy_is_called_for_each_evaluation():
    calls = []

    def cubes(x):
        calls.append(x)
        return x**3

    f = tf.numeric_gradient(lambda x: tf.numpy_function(cubes, [x], tf.float64))
    np.testing.assert_allclose(gradient(f, tf.constant([1.0, 2.0], tf.float64))[0], [3.0, 12.0], rtol=1e-8)
    assert len(calls) == 1 + 2 * 2


def test_evaluations_of_ops_run_at_once():
    traced = []

    def f(x):
        traced.append(x.shape)
        return tf.reduce_sum(x * x)

    x = tf.constant(np.arange(50.0))
    np.testing.assert_allclose(gradient(tf.numeric_gradient(f), x)[0], 2 * np.arange(50.0), atol=1e-5)
    assert len(traced) < 10


def test_it_works_inside_a_function_and_for_empty_arguments():
    f = tf.function(lambda x: gradient(tf.numeric_gradient(lambda x: tf.reduce_sum(x * x)), x)[0])
    np.testing.assert_allclose(f(tf.constant([1.0, -2.0], tf.float64)), [2.0, -4.0], rtol=1e-8)
    assert gradient(tf.numeric_gradient(tf.reduce_sum), tf.zeros([0, 3]))[0].shape == (0, 3)


def test_whole_numbers_and_variables_that_it_reads_get_none():
    scale = tf.Variable(2.0)
    f = tf.numeric_gradient(lambda x, n: tf.reduce_sum(x) * tf.cast(n, tf.float32) * scale)
    x, n = tf.constant([1.0, 2.0]), tf.constant(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, n)
    by_x, by_scale = tape.gradient(y, [x, scale])
    np.testing.assert_allclose(by_x, [6.0, 6.0], rtol=1e-3)
    assert by_scale is None


def test_a_step_is_above_zero():
    with pytest.raises(tf.errors.InvalidArgumentError, match="above 0; found 0"):
        tf.numeric_gradient(tf.floor, step=0)
