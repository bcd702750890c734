"""Gradients of the program's own, in this process: what no recorded program of TensorFlow's shows."""

import functools
import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession


@pytest.fixture(autouse=True)
def session():
    yield use(LocalSession())
    use(LocalSession())


def gradient(f, *sources):
    with tf.GradientTape() as tape:
        y = f(*sources)
    return tape.gradient(y, list(sources))


# ------------------------------------------------------------------------------------------------ gradient functions
def test_variables_come_in_the_order_in_which_they_were_made():
    results = [tf.Variable(float(i), name=f"v{i}") for i in range(6)]
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables):
            seen.append([variable.name for variable in variables])
            return dy, [None] * len(variables)

        return x + sum(results[::-1], tf.constant(0.0)), grad

    gradient(f, tf.Variable(1.0))
    assert seen == [[f"v{i}:0" for i in range(6)]]


class Callable:
    def __init__(self):
        self.variables = None

    def __call__(self, dy, *, variables):
        self.variables = variables
        return dy, [dy]


@pytest.mark.parametrize(
    "grad",
    [
        Callable(),
        lambda dy, **rest: (dy, [dy]),
        functools.partial(lambda scale, dy, variables: (dy * scale, [dy]), 1.0),
        tf.custom_gradient(lambda dy, variables=None: ((dy, [dy]), lambda *rest: rest)),
    ],
)
def test_whatever_can_be_called_with_variables_will_do(grad):
    w = tf.Variable(3.0)
    f = tf.custom_gradient(lambda x: (x * w, grad))
    assert [float(item) for item in gradient(f, tf.Variable(2.0))] == [1.0]


@pytest.mark.parametrize("result", [3, None])
def test_a_second_value_that_cannot_be_called(result):
    with pytest.raises(TypeError, match=f"unsupported callable: .*{result}"):
        tf.custom_gradient(lambda x: (x, result))(tf.constant(1.0))


def test_a_function_that_returns_no_pair_at_all():
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        tf.custom_gradient(lambda x: x)(tf.constant(1.0))


def test_the_decorator_with_parentheses():
    @tf.custom_gradient()
    def f(x):
        return x, lambda dy: dy * 4.0

    assert [float(item) for item in gradient(f, tf.Variable(2.0))] == [4.0]


@pytest.mark.parametrize(("inputs", "expected"), [(3.0, 3.0), (np.float32(3), 3.0), (np.array(3.0), 3.0), ([1.0], 1.0)])
def test_numbers_and_arrays_are_gradients_too(inputs, expected):
    f = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: inputs))
    assert [float(item) for item in gradient(f, tf.Variable(2.0))] == [expected]
    assert [float(item) for item in gradient(lambda x: f(x) + x, tf.Variable(2.0))] == [expected + 1.0]


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        (lambda: "x", TypeError, "Cannot convert 'x' to EagerTensor of dtype float"),
        (lambda: tf.constant(3), tf.errors.InvalidArgumentError, "has dtype int32, the input float32: cast it"),
        (lambda: tf.constant([1.0, 2.0]), tf.errors.InvalidArgumentError, "does not broadcast to the input"),
    ],
)
def test_gradients_that_go_nowhere(inputs, error, text):
    f = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: inputs()))
    with pytest.raises(error, match=text):
        gradient(lambda x: f(x * x), tf.Variable(2.0))


def test_what_broadcasts_goes_on():
    f = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: tf.constant(1.0)))
    (result,) = gradient(lambda x: f(x * x), tf.Variable([1.0, 2.0]))
    assert result.numpy().tolist() == [2.0, 4.0]


def test_a_thread_of_its_own_has_its_own_watchers():
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        reading = threading.Thread(target=lambda: w * 2.0)
        reading.start()
        reading.join()
        return x * 2.0, lambda dy: dy

    assert [float(item) for item in gradient(f, tf.Variable(1.0))] == [1.0]


def test_an_error_in_the_body_leaves_the_tape_usable():
    @tf.custom_gradient
    def f(x):
        raise KeyError("inside")

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        with pytest.raises(KeyError, match="inside"):
            f(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0


def test_what_a_function_closes_over_is_freed_with_the_answer():
    class Kept:
        pass

    retained = Kept()
    reference = weakref.ref(retained)

    def call(x, retained):
        return tf.custom_gradient(lambda x: (x * 2.0, lambda dy: dy if retained else None))(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = call(x, retained)
    del retained
    gc.collect()
    assert reference() is not None
    tape.gradient(y, x)
    gc.collect()
    assert reference() is None


# ------------------------------------------------------------------------------------------------------- recompute_grad
def test_recompute_keeps_a_fraction_at_the_peak():
    """Twelve layers a block, eight blocks: by hand 96 results are kept, recomputed 8 and one block's 12."""
    x = tf.Variable(tf.ones((128, 128)))

    def block(x):
        for _ in range(12):
            x = tf.tanh(x * 1.01)
        return x

    def peak(f):
        gc.collect()
        tracemalloc.start()
        try:
            with tf.GradientTape() as tape:
                y = x
                for _ in range(8):
                    y = f(y)
                y = tf.reduce_sum(y)
            result = tape.gradient(y, x).numpy()
            return tracemalloc.get_traced_memory()[1], result
        finally:
            tracemalloc.stop()

    plain, expected = peak(block)
    again, result = peak(tf.recompute_grad(block))
    assert np.allclose(result, expected, rtol=1e-5)
    assert again * 2.5 < plain, f"{again:,} bytes against {plain:,}"


def test_recompute_of_a_recomputed_function():
    inner = tf.recompute_grad(lambda x: tf.sin(x))
    outer = tf.recompute_grad(lambda x: inner(x) * inner(x * 2.0))
    x = tf.Variable(0.7)
    (result,) = gradient(outer, x)
    assert np.isclose(float(result), np.cos(0.7) * np.sin(1.4) + 2 * np.sin(0.7) * np.cos(1.4))


def test_a_tape_inside_a_recomputed_function_works():
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    (result,) = gradient(tf.recompute_grad(slope), tf.Variable(2.0))
    assert float(result) == 12.0
