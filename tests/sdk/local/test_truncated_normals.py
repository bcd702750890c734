"""Normal numbers between bounds: their distribution, whose numbers are not TensorFlow's, and their gradients."""

import numpy as np
import pytest

import teletape as tf

DRAW = tf.random.stateless_parameterized_truncated_normal


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (3.0, 9.0), (-np.inf, 0.5), (25.0, 26.0), (-40.0, -35.0), (31.0, 40.0), (-2.0, np.inf), (-0.1, 50.0)],
)
def test_numbers_are_distributed_as_scipy_says(low: float, high: float) -> None:
    from scipy import stats  # here, because every test process reads this file: it takes a second

    drawn = DRAW([20_000], [5, 6], *np.array([1.0, 2.0, 1.0 + 2.0 * low, 1.0 + 2.0 * high])).numpy()
    standard = (drawn - 1.0) / 2.0
    assert standard.min() >= low
    assert standard.max() <= high
    distance, _ = stats.kstest(standard, lambda x: stats.truncnorm.cdf(x, low, high))
    assert distance < 1.63 / np.sqrt(20_000)  # of true draws 99 % are nearer


def test_gradients_are_those_of_a_share_between_the_bounds() -> None:
    from scipy import stats  # here, because every test process reads this file: it takes a second

    mean, spread, low, high = parameters = [tf.constant(x, tf.float64) for x in (1.0, 2.0, -1.0, 4.0)]
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        drawn = DRAW([], [1, 2], mean, spread, low, high)
    by_mean, by_spread, by_low, by_high = (float(gradient) for gradient in tape.gradient(drawn, parameters))
    standard, left, right = (float(x - mean) / float(spread) for x in (drawn, low, high))
    share = stats.truncnorm.cdf(standard, left, right)
    density = stats.norm.pdf(standard)
    assert by_mean == 1.0
    assert by_spread == pytest.approx(standard)
    assert by_low == pytest.approx((1.0 - share) * stats.norm.pdf(left) / density)
    assert by_high == pytest.approx(share * stats.norm.pdf(right) / density)


def test_an_infinite_bound_has_no_share_in_the_number() -> None:
    for low, high in ((-np.inf, -35.0), (-np.inf, 0.0), (30.5, np.inf)):
        bounds = tf.Variable([low, high])
        with tf.GradientTape() as tape:
            drawn = DRAW([4], [1, 2], 0.0, 1.0, bounds[0], bounds[1])
        gradient = tape.gradient(drawn, bounds).numpy()
        assert np.isfinite(gradient).all()
        assert gradient[np.isinf([low, high])] == 0.0
