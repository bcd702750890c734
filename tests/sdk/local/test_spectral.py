"""Fourier transforms over any axes, which TensorFlow refuses on a CPU: as NumPy's, with right derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import teletape as tf

CASES = [(None, None), ([3, 6], [0, 2]), ([5, 2], [-1, 0]), (None, [1]), ([4, 4, 4], None)]
REAL = np.random.default_rng(0).normal(size=(4, 3, 5))
COMPLEX = REAL + 1j * REAL[::-1]


@pytest.mark.parametrize("norm", [None, "backward", "forward", "ortho"])
@pytest.mark.parametrize(("lengths", "axes"), CASES)
def test_transforms_over_any_axes_are_numpys(lengths: Any, axes: Any, norm: str | None) -> None:
    keywords = {"s": lengths, "axes": axes if axes or lengths is None else [0, 1, 2], "norm": norm}
    for ours, theirs, x in (
        (tf.signal.fftnd, np.fft.fftn, COMPLEX),
        (tf.signal.ifftnd, np.fft.ifftn, COMPLEX),
        (tf.signal.rfftnd, np.fft.rfftn, REAL),
        (tf.signal.irfftnd, np.fft.irfftn, COMPLEX),
    ):
        np.testing.assert_allclose(ours(x, lengths, axes, norm).numpy(), theirs(x, **keywords), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("lengths", "axes"), CASES)
def test_their_gradients_are_those_of_differences(lengths: Any, axes: Any) -> None:
    def powers(x: Any) -> Any:
        spectrum = tf.signal.rfftnd(x, lengths, axes, "ortho")
        back = tf.signal.irfftnd(spectrum * spectrum, None, axes)
        return tf.reduce_sum(back**2) + tf.reduce_sum(tf.abs(tf.signal.fftnd(spectrum, None, axes)) ** 3)

    assert tf.debugging.check_gradients(powers, [tf.constant(REAL)]).agrees


def test_what_no_transform_can_be_is_refused() -> None:
    with pytest.raises(ValueError, match="norm must be"):
        tf.signal.fftnd(COMPLEX, norm="half")
    with pytest.raises(ValueError, match="out of range"):
        tf.signal.fftnd(COMPLEX, axes=[3])
    with pytest.raises(ValueError, match="each once"):
        tf.signal.ifftnd(COMPLEX, axes=[0, 0])
    with pytest.raises(ValueError, match="found 1"):
        tf.signal.rfftnd(REAL, [4], [0, 1])
