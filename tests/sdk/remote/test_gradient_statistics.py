"""Statistics of gradients: the numbers that NumPy computes of the gradient, in one small request."""

from __future__ import annotations

import math

import numpy as np
import pytest
from loopback import Loopback

import teletape as tf
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.core.sessions.remote import RemoteSession


@pytest.fixture(params=["in this process", "through a server"])
def session(request: pytest.FixtureRequest) -> None:
    if request.param == "through a server":
        request.getfixturevalue("remote")
    else:
        use(LocalSession())


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_the_numbers_are_numpys_of_the_gradient(dtype: str) -> None:
    numbers = np.linspace(-2, 3, 600_000 if dtype == "float32" else 600).reshape(2, -1)  # of several parts
    x = tf.Variable(tf.cast(numbers, dtype))
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * tf.cast(numbers > 0, dtype)
    statistics, gradient = tape.gradient_statistics(y, x), tape.gradient(y, x).numpy()
    wide = gradient.astype(np.complex128 if dtype.startswith("complex") else np.float64)
    assert (statistics.kind, statistics.dtype, statistics.shape) == ("dense", dtype, gradient.shape)
    np.testing.assert_allclose(statistics.norm, np.linalg.norm(wide), rtol=1e-12)
    assert statistics.max_abs == abs(wide).max()
    np.testing.assert_allclose(statistics.mean, wide.mean(), rtol=1e-12)
    assert statistics.zeros == np.mean(wide == 0) > 0.3
    assert statistics.non_finite == 0


@pytest.mark.usefixtures("session")
def test_numbers_that_are_not_finite_are_counted() -> None:
    x = tf.Variable([0.0, 1.0, -1.0, 4.0])
    with tf.GradientTape() as tape:
        y = tf.sqrt(x)
    statistics = tape.gradient_statistics(y, x)
    assert statistics.non_finite == 0.5
    assert math.isnan(statistics.norm)
    assert math.isnan(statistics.max_abs)
    assert "50.00% not finite" in str(statistics)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(("dtype", "size"), [("float32", 3e38), ("float64", 1e300), ("float64", 1e-300)])
def test_no_square_overflows_or_vanishes(dtype: str, size: float) -> None:
    x = tf.Variable(tf.ones([4], dtype))
    with tf.GradientTape() as tape:
        y = x * tf.constant([3.0, 4.0, 0.0, 0.0], dtype) / 5 * tf.constant(size, dtype)
    np.testing.assert_allclose(tape.gradient_statistics(y, x).norm, size, rtol=1e-6)


@pytest.mark.usefixtures("session")
def test_rows_of_a_sparse_gradient_that_are_absent_are_zeros_and_equal_ones_add_up() -> None:
    table = tf.Variable(tf.ones([1000, 8]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.gather(table, [3, 3, 7]) ** 2
    statistics, dense = tape.gradient_statistics(y, table), tf.convert_to_tensor(tape.gradient(y, table)).numpy()
    assert (statistics.kind, statistics.shape, statistics.zeros) == ("slices", (1000, 8), 0.998)
    np.testing.assert_allclose(statistics.norm, np.linalg.norm(dense))
    np.testing.assert_allclose(statistics.mean, dense.mean())
    assert statistics.max_abs == 4.0


@pytest.mark.usefixtures("session")
def test_the_answer_has_the_structure_of_the_sources_and_the_tape_stays() -> None:
    x, unused, empty = tf.Variable([1.0, 2.0]), tf.Variable(1.0), tf.Variable(tf.zeros([0, 3]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x) + tf.reduce_sum(empty)
    statistics = tape.gradient_statistics(y, {"x": x, "others": [unused, empty]}, output_gradients=tf.constant(10.0))
    assert statistics["x"].max_abs == 40.0
    assert statistics["others"][0] is None
    assert (statistics["others"][1].norm, statistics["others"][1].zeros) == (0.0, 0.0)
    assert math.isnan(statistics["others"][1].mean)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="one"):
        tape.gradient_statistics(y, x)


@pytest.mark.usefixtures("session")
def test_a_gradient_function_of_the_program_counts() -> None:
    @tf.custom_gradient
    def tripled(x: tf.Tensor) -> object:
        return x * 2, lambda upstream: upstream * 3

    x, table = tf.Variable([1.0, 2.0]), tf.Variable(tf.ones([10, 2]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tripled(x)) + tf.reduce_sum(tripled(tf.gather(table, [1, 1])))
    dense, sparse = tape.gradient_statistics(y, [x, table])
    assert (dense.max_abs, sparse.max_abs, sparse.kind) == (3.0, 6.0, "slices")


def test_one_request_answers_and_no_gradient_is_sent(remote: RemoteSession, loopback: Loopback) -> None:
    x = tf.Variable(tf.zeros([1000, 1000]))
    with tf.GradientTape() as tape:
        y = tf.sin(x)
    remote.sync()
    requests = remote.requests
    received = remote.summary()
    assert tape.gradient_statistics(y, x).norm == pytest.approx(1000.0)
    assert remote.requests == requests + 1, received


def test_a_traced_function_has_no_values_to_describe() -> None:
    x = tf.Variable([1.0, 2.0])

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(x * x)
        tape.gradient_statistics(y, x)
        return y

    with pytest.raises(tf.errors.UnimplementedError, match="gradient_statistics"):
        step()
