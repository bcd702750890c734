"""`tf.random`: seeds, counters, moments and bounds, and gradients by mean and stddev."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import prepared
import teletape as tf


def test_a_seed_repeats_all_that_follows() -> None:
    def draws() -> list[float]:
        tf.random.set_seed(7)
        parts = [
            tf.random.normal([3]),
            tf.random.uniform([3]),
            tf.random.normal([3], seed=1),
            tf.random.normal([3], seed=1),
        ]
        return [float(n) for part in parts for n in part.numpy()]

    first = draws()
    assert draws() == first
    assert len(set(first)) == len(first), "no two draws are alike, op seed or not"
    tf.random.set_seed(8)
    assert float(tf.random.normal([])) != first[0]


def test_without_a_seed_two_programs_draw_different_numbers() -> None:
    program = "import teletape as tf; print(tf.random.normal([2]).numpy(), tf.random.shuffle(tf.range(9)).numpy())"
    runs = [prepared.run([sys.executable, "-P", "-c", program]) for _ in range(2)]
    assert runs[0].stdout != runs[1].stdout


def test_a_function_without_a_seed_draws_other_numbers_at_each_call_also_after_a_seed() -> None:
    tf.random.set_seed(None)
    draw = tf.function(lambda: tf.random.normal([4]))
    draws = [draw().numpy()]
    for _ in range(2):
        tf.random.set_seed(3)
        draws.append(draw().numpy())
    assert len({each.tobytes() for each in draws}) == 3


def test_threads_draw_different_numbers() -> None:
    tf.random.set_seed(1)
    with ThreadPoolExecutor(4) as pool:
        draws = list(pool.map(lambda _: tf.random.normal([2], seed=5).numpy().tobytes(), range(20)))
    assert len(set(draws)) == 20


def test_sessions_share_the_seed() -> None:
    tf.random.set_seed(11)
    first = [tf.random.normal([2]).numpy(), tf.random.normal([2], seed=1).numpy()]
    tf.random.set_seed(11)
    again = [tf.random.normal([2]).numpy()]
    with tf.connect(local=True, default=False):
        again.append(tf.random.normal([2], seed=1).numpy())
    np.testing.assert_array_equal(first, again)


def test_moments_and_bounds() -> None:
    tf.random.set_seed(0)
    sample = tf.random.normal([20000], mean=2.0, stddev=3.0).numpy()
    assert abs(sample.mean() - 2.0) < 0.1
    assert abs(sample.std() - 3.0) < 0.1
    cut = tf.random.truncated_normal([5000]).numpy()
    assert np.abs(cut).max() <= 2.0
    even = tf.random.uniform([5000], -1.0, 4.0).numpy()
    assert -1.0 <= even.min() < -0.9
    assert 3.9 < even.max() < 4.0
    whole = tf.random.uniform([1000], 2, 5, dtype=tf.int32)
    assert (whole.dtype, sorted(set(whole.numpy().tolist()))) == (tf.int32, [2, 3, 4])


def test_the_gradient_reaches_mean_and_stddev() -> None:
    mean, stddev = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        drawn = tf.random.normal([4], mean, stddev)
        y = tf.reduce_sum(drawn)
    by_mean, by_stddev = tape.gradient(y, [mean, stddev])
    assert by_mean.numpy() == 4.0
    np.testing.assert_allclose(by_stddev.numpy(), ((drawn.numpy() - 1.0) / 2.0).sum(), rtol=1e-4)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"Must specify maxval for integer dtype tf.int32"):
        tf.random.uniform([2], dtype=tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape must be a vector"):
        tf.random.normal(3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be >= 0"):
        tf.random.normal([-1])
