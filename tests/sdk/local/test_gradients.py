"""Gradients of the program's own, in this process: what no recorded program of TensorFlow's shows."""

import functools
import gc
import logging
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import teletape as tf
from teletape.sessions.current import use
from teletape.sessions.local import LocalSession


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


# -------------------------------------------------------------------------------------------------- questions over rows
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


# ------------------------------------------------------------------------------------------------- RegisterGradient
IMAGE = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)


def test_registering_belongs_to_the_session():
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy, None))
    use(LocalSession())
    x = tf.Variable(IMAGE)
    with pytest.raises(LookupError, match="gradient registry has no entry for: AdjustContrastv2"):
        gradient(lambda x: tf.image.adjust_contrast(x, 2.0), x)


@pytest.mark.parametrize("inputs", [lambda dy: dy, lambda dy: (dy, dy, dy)])
def test_another_count_than_the_inputs(inputs):
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: inputs(dy))
    with pytest.raises(tf.errors.OpError, match=r"returned too few gradients\. Expected 2 but received"):
        gradient(lambda x: tf.image.adjust_contrast(x, 2.0), tf.Variable(IMAGE))


def test_none_is_none_and_an_attribute_that_is_not_there():
    seen = []

    @tf.RegisterGradient("AdjustContrastv2")
    def grad(op, dy):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Attribute 'N' does not exist for this operation"):
            op.get_attr("N")
        seen.append([op.get_attr("T"), op.inputs[0].numpy().tolist(), float(op.inputs[1])])
        return None, None

    assert gradient(lambda x: tf.image.adjust_contrast(x, 2.0), tf.Variable(IMAGE)) == [None]
    assert seen == [[tf.float32, IMAGE.tolist(), 2.0]]


def test_a_jacobian_through_a_registered_op_goes_row_by_row():
    tf.RegisterGradient("AdjustContrastv2")(lambda op, dy: (dy * op.inputs[1], None))
    x = tf.Variable(IMAGE)
    with tf.GradientTape() as tape:
        y = tf.image.adjust_contrast(x, 2.0)
    assert np.array_equal(tape.jacobian(y, x).numpy().reshape(12, 12), 2.0 * np.eye(12))
