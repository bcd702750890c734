"""Questions over many cotangents through gradient functions of the program: traced, or one pass per row."""

import functools
import logging

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(autouse=True)
def session():
    yield use(LocalSession())
    use(LocalSession())


@tf.custom_gradient
def reading(x):
    """Its gradient function reads its upstream."""
    return x * 2.0, lambda dy: dy * 3.0 if float(tf.reduce_sum(dy)) > 1.5 else dy


def test_questions_through_a_function_that_reads(caplog):
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        y = reading(x) * 2.0
    with caplog.at_level(logging.WARNING, "teletape"):
        whole = tape.jacobian(y, x).numpy()
        by_example = tape.batch_jacobian(y, x).numpy()
        stacked = tape.vjps(y, x, tf.stack([tf.ones((2, 2)) * 0.1, tf.ones((2, 2))])).numpy()
    assert np.array_equal(whole.reshape(4, 4), 6.0 * np.eye(4))
    assert np.array_equal(by_example, np.broadcast_to(6.0 * np.eye(2), (2, 2, 2)))
    assert stacked[:, 0, 0].tolist() == pytest.approx([0.2, 6.0])
    for ask in (tape.hessian, functools.partial(tape.hvp, vectors=tf.ones((2, 2)))):
        with pytest.raises(tf.errors.UnimplementedError, match="differentiate a gradient with an outer tape"):
            ask(y, x)


def test_rows_of_an_unconnected_source_through_a_function_that_reads():
    x, other = tf.Variable([1.0, 2.0]), tf.Variable([1.0])
    with tf.GradientTape(persistent=True) as tape:
        y = reading(x)
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients="zero").numpy().shape == (2, 1)


@tf.custom_gradient
def product(x, w):
    """x @ w, its gradient by hand."""
    return x @ w, lambda dy: (dy @ tf.transpose(w), tf.transpose(x) @ dy)


@pytest.mark.parametrize("how", [{}, {"max_bytes": 2000}, {"parallel_iterations": 3}])
def test_a_jacobian_through_a_traced_function_in_chunks(how):
    rng = np.random.default_rng(5)
    x, w = (tf.Variable(rng.normal(size=shape).astype(np.float32)) for shape in ((4, 8), (8, 8)))
    again = tf.recompute_grad(lambda x: tf.tanh(x @ w))
    with tf.GradientTape(persistent=True) as tape:
        y, z, plain = tf.tanh(product(x, w)), again(x), tf.tanh(x @ w)
    expected = tape.jacobian(plain, [x, w])
    for target in (y, z):
        for jacobian, wanted in zip(tape.jacobian(target, [x, w], **how), expected, strict=True):
            assert np.allclose(jacobian, wanted, atol=1e-5)
    assert np.allclose(tape.batch_jacobian(y, x), tape.batch_jacobian(plain, x), atol=1e-5)


def test_a_jacobian_inside_a_function():
    rng = np.random.default_rng(6)
    x, w = (tf.constant(rng.normal(size=shape).astype(np.float32)) for shape in ((2, 3), (3, 3)))

    def rows(multiply):
        @tf.function
        def ask(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sin(multiply(x, w))
            return tape.jacobian(y, x)

        return ask(x).numpy()

    assert np.allclose(rows(product), rows(lambda x, w: x @ w), atol=1e-5)


def test_hessian_and_hvp_through_a_function_that_is_traced():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = square(x) * x
    assert np.allclose(tape.hessian(y, x), np.diag([6.0, 12.0]))
    assert np.allclose(tape.hvp(y, x, tf.constant([1.0, -1.0])), [6.0, -12.0])


@pytest.mark.parametrize("rows", [1, 2])
def test_one_row_is_one_pass_and_needs_no_notice(caplog, rows):
    @tf.custom_gradient
    def scaled(x):
        return 2.0 * x, lambda upstream: upstream * float(tf.reduce_sum(upstream))  # reads a value

    x = tf.Variable(tf.ones([rows]))
    with tf.GradientTape() as tape:
        y = scaled(x)
    assert tape.jacobian(y, x).numpy().tolist() == np.eye(rows).tolist()
    assert ["One backward pass" in message for message in caplog.messages] == [True] * (rows - 1)


def _within_a_gradient(calls):
    """The square of x, whose gradient function calls another custom gradient, with a derivative twice too large."""

    @tf.custom_gradient
    def square(x):
        def grad(dy):
            @tf.custom_gradient
            def product(u, v):
                calls.append(1)
                return u * v * 2.0, lambda d: (d * v * 4.0, d * u * 2.0)

            return product(x, dy)

        return x * x, grad

    return square


def test_a_custom_gradient_inside_a_gradient_function_runs_once_for_all_rows(caplog):
    calls, x = [], tf.constant([1.0, 2.0, 3.0, 4.0])
    square = _within_a_gradient(calls)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(square(x) ** 2)
        g = inner.gradient(y, x)  # 2 x (2 x²)
    np.testing.assert_allclose(outer.jacobian(g, x), np.diag(16.0 * np.square(x)))  # 2 (2 x²), and 2 x (4 x)
    assert len(calls) == 2
    assert not [message for message in caplog.messages if "One backward pass" in message]


def test_a_tape_around_the_rows_sees_a_custom_gradient_inside_a_gradient_function():
    x = tf.constant([1.0, 2.0])
    square = _within_a_gradient([])
    with tf.GradientTape() as around:
        around.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = square(x)
        jacobian = tape.jacobian(y, x)  # 2 x on the diagonal; TensorFlow's pfor loses the inner rule
        total = tf.reduce_sum(jacobian)
    np.testing.assert_allclose(around.gradient(total, x), [4.0, 4.0])
