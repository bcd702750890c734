"""`tf.signal`'s windows.

By hand: their values follow from a length that must be known. Kaiser's `beta` may be a tensor, and has a gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.shapes.rearrange import reverse
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops


def hann_window(
    window_length: to.IntInput,
    periodic: bool = True,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Hann's window: 1/2 - 1/2 cos(2 π i / n); n is the length less 1 if it is odd or the window is not periodic.

    Example:
        tf.signal.hann_window(4)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5)


def hamming_window(
    window_length: to.IntInput,
    periodic: bool = True,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Hamming's window: 0.54 - 0.46 cos(2 π i / n), with the n of hann_window.

    Example:
        tf.signal.hamming_window(4)
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54)


def _raised_cosine(window_length: Any, periodic: Any, dtype: Any, constant_part: float) -> Tensor:
    length = to.whole(window_length)
    if length == 1:
        return _window(np.ones(1), dtype)
    end = length - 1 + (1 if bool(periodic) and length % 2 == 0 else 0)
    return _window(constant_part - (1 - constant_part) * np.cos(2 * np.pi * np.arange(length) / end), dtype)


def kaiser_window(
    window_length: to.IntInput,
    beta: to.NumberInput = 12.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Kaiser's window with the parameter `beta`, a scalar, which has a gradient.

    Example:
        tf.signal.kaiser_window(4)
    """
    length, wanted = to.whole(window_length), _floating(dtype)
    if length == 1:
        return _window(np.ones(1), wanted)
    kind = dtypes.float64 if wanted is dtypes.float64 else dtypes.float32
    middle = (length - 1) / 2
    heights = np.sqrt(np.maximum(0, 1 - ((np.arange(length) - middle) / (middle or 1)) ** 2))
    peak = call(ops.cast, (convert_to_tensor(beta),), dtype=kind.np)
    arguments = peak * constant(heights, kind)
    values = call(ops.exp, (arguments - peak,)) * (call(ops.bessel_i0e, (arguments,)) / call(ops.bessel_i0e, (peak,)))
    return values if wanted is kind else call(ops.cast, (values,), dtype=wanted.np)


def kaiser_bessel_derived_window(
    window_length: to.IntInput,
    beta: to.NumberInput = 12.0,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The Kaiser-Bessel-derived window of an even length: roots of the cumulative sums of Kaiser's window.

    Example:
        tf.signal.kaiser_bessel_derived_window(4)
    """
    sums = call(ops.cumsum, (kaiser_window(to.whole(window_length) // 2 + 1, beta, dtype),))
    left = call(ops.sqrt, (sums[:-1] / sums[-1],))
    return call(ops.concat, (left, reverse(left, [0])), axis=0)


def vorbis_window(window_length: to.IntInput, dtype: to.DTypeInput = dtypes.float32, name: str | None = None) -> Tensor:
    """Vorbis's window: sin(π/2 sin²(π (i + 1/2) / n)).

    Example:
        tf.signal.vorbis_window(4)
    """
    length = to.whole(window_length)
    places = np.pi / max(1, length) * (np.arange(length) + 0.5)
    return _window(np.sin(np.pi / 2 * np.sin(places) ** 2), dtype)


def _window(values: Any, dtype: Any) -> Tensor:
    return constant(values.astype(_floating(dtype).np))


def _floating(dtype: Any) -> dtypes.DType:
    wanted = dtypes.as_dtype(dtype)
    if not wanted.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {wanted}")
    return wanted
