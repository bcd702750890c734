"""Convolution and pooling with channels first give what they give with channels last; TensorFlow's CPU refuses most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import teletape as tf


def waves(*shape: int) -> tf.Tensor:
    return tf.constant(np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape))


CASES: dict[str, tuple[tuple[int, ...], Callable[[Any, str], Any]]] = {
    "conv1d": ((2, 6, 2), lambda x, form: tf.nn.conv1d(x, waves(3, 2, 3), 2, "SAME", data_format=form)),
    "conv2d": (
        (1, 5, 4, 4),
        lambda x, form: tf.nn.conv2d(x, waves(2, 3, 2, 6), [1, 2], "SAME", data_format=form, dilations=[2, 1]),
    ),
    "border": (
        (1, 5, 4, 2),
        lambda x, form: tf.nn.conv2d(
            x,
            waves(2, 3, 2, 6),
            1,
            [[0, 0], [0, 0], [1, 2], [0, 1]] if form == "NCHW" else [[0, 0], [1, 2], [0, 1], [0, 0]],
            data_format=form,
        ),
    ),
    "conv3d": ((1, 3, 4, 4, 2), lambda x, form: tf.nn.conv3d(x, waves(2, 2, 2, 2, 3), 1, "SAME", data_format=form)),
    "depthwise": (
        (1, 5, 4, 2),
        lambda x, form: tf.nn.depthwise_conv2d(
            x, waves(2, 3, 2, 2), [1, 1, 2, 2] if form == "NCHW" else [1, 2, 2, 1], "SAME", data_format=form
        ),
    ),
    "separable": (
        (1, 5, 4, 2),
        lambda x, form: tf.nn.separable_conv2d(
            x, waves(2, 3, 2, 2), waves(1, 1, 4, 3), [1, 1, 1, 1], "SAME", data_format=form
        ),
    ),
    "max_pool": ((1, 5, 4, 2), lambda x, form: tf.nn.max_pool(x, 2, 2, "SAME", data_format=form)),
    "avg_pool3d": ((1, 3, 4, 4, 2), lambda x, form: tf.nn.avg_pool3d(x, 2, 1, "SAME", data_format=form)),
}


@pytest.mark.parametrize("name", CASES)
def test_channels_first_is_channels_last_transposed(name: str) -> None:
    shape, op = CASES[name]
    rank = len(shape)
    last = {3: "NWC", 4: "NHWC", 5: "NDHWC"}[rank]
    x, ahead, back = waves(*shape), (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    expected = op(x, last).numpy()
    actual = op(tf.transpose(x, ahead), last[0] + last[-1] + last[1:-1]).numpy()
    np.testing.assert_allclose(actual.transpose(back), expected, rtol=1e-12)


def test_a_transpose_with_channels_first() -> None:
    x, f = waves(1, 3, 3, 2), waves(2, 2, 3, 2)
    expected = tf.nn.conv2d_transpose(x, f, [1, 6, 6, 3], 2).numpy()
    ahead = tf.transpose(x, (0, 3, 1, 2))
    actual = tf.nn.conv2d_transpose(ahead, f, [1, 3, 6, 6], [1, 1, 2, 2], data_format="NCHW").numpy()
    np.testing.assert_allclose(actual.transpose(0, 2, 3, 1), expected, rtol=1e-12)


def test_a_format_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"`data_format` must be one of NHWC, NCHW for 2 spatial dimensions"):
        tf.nn.conv2d(waves(1, 3, 3, 1), waves(2, 2, 1, 1), 1, "SAME", data_format="HWCN")
