"""ONNX's convolutions and pools. Images have their channels first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape._generated.reduce import reduce_max, reduce_mean
from teletape._generated.shapes.rearrange import reverse
from teletape._generated.shapes.shape import reshape, transpose
from teletape.core.calls.dispatch import as_tensor, constant
from teletape.extras.onnx.operators import operator
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.arrays.rearrange import concat, split
from teletape.tf.ops.nn.convolutions import convolution
from teletape.tf.ops.nn.pools import pool

_FORMATS: Final = {3: "NCW", 4: "NCHW", 5: "NCDHW"}
_AUTO: Final = {"auto_pad": ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")}
Ints = tuple[int, ...]


def _amounts(
    lengths: Sequence[int], kernel: Sequence[int], strides: Ints, dilations: Ints, pads: Ints | None, auto: str
) -> list[tuple[int, int]]:
    """Returns how many elements are added before and after each axis of an image."""
    rank = len(lengths)
    if not auto.startswith("SAME"):
        pads = (0,) * (2 * rank) if pads is None or auto == "VALID" else pads
        return list(zip(pads[:rank], pads[rank:], strict=True))
    amounts = []
    for length, window, stride, dilation in zip(lengths, kernel, strides, dilations, strict=True):
        total = max((math.ceil(length / stride) - 1) * stride + (window - 1) * dilation + 1 - length, 0)
        small = total // 2
        amounts.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return amounts


def _padded(x: Any, amounts: list[tuple[int, int]], value: Any = 0) -> Any:
    if not any(any(pair) for pair in amounts):
        return x
    return pad(x, [[0, 0], [0, 0], *[list(pair) for pair in amounts]], constant_values=value)


def _with_bias(x: Any, bias: Any) -> Any:
    return x if bias is None else x + reshape(bias, [1, -1, *[1] * (len(x.shape) - 2)])


@operator("Conv", values=_AUTO)
def _convolution(
    x: Any,
    filters: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    filters = as_tensor(filters)
    rank = len(x.shape) - 2
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    amounts = _amounts(x.shape[2:], filters.shape[2:], strides, dilations, pads, auto_pad)
    x = _padded(x, amounts)
    kernel = transpose(filters, [*range(2, rank + 2), 1, 0])  # [..., channels / group, out]
    return _with_bias(convolution(x, kernel, list(strides), "VALID", _FORMATS[rank + 2], list(dilations)), bias)


@operator("ConvTranspose", values={"auto_pad": ("NOTSET", "VALID")})
def _transposed(
    x: Any,
    filters: Any,
    bias: Any = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Slides the mirrored filters over the image with zeros between its elements."""
    filters = as_tensor(filters)
    rank = len(x.shape) - 2
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    extra, pads = output_padding or (0,) * rank, pads or (0,) * (2 * rank)
    amounts = []
    for axis in range(rank):
        x = _spread(x, axis + 2, strides[axis])
        reach = (filters.shape[axis + 2] - 1) * dilations[axis]
        amounts.append((reach - pads[axis], reach - pads[axis + rank] + extra[axis]))
    for axis, (before, after) in enumerate(amounts):  # a negative amount takes elements away
        parts = [slice(None)] * (rank + 2)
        parts[axis + 2] = slice(max(-before, 0), x.shape[axis + 2] - max(-after, 0))
        x = x[tuple(parts)] if min(before, after) < 0 else x
    x = _padded(x, [(max(before, 0), max(after, 0)) for before, after in amounts])
    kernel = transpose(reverse(filters, [*range(2, rank + 2)]), [*range(2, rank + 2), 0, 1])  # [..., in, out / group]
    if group > 1:
        kernel = concat(split(kernel, group, rank), rank + 1)
    return _with_bias(convolution(x, kernel, [1] * rank, "VALID", _FORMATS[rank + 2], list(dilations)), bias)


def _spread(x: Any, axis: int, stride: int) -> Any:
    """Puts zeros between the elements of an axis."""
    if stride == 1:
        return x
    length = x.shape[axis]
    lengths = [-1, *x.shape[1:]]
    cells = reshape(x, [*lengths[: axis + 1], 1, *lengths[axis + 1 :]])
    cells = pad(cells, [[0, stride - 1] if i == axis + 1 else [0, 0] for i in range(len(lengths) + 1)])
    lengths[axis] = length * stride
    return reshape(cells, lengths)[(slice(None),) * axis + (slice(0, (length - 1) * stride + 1),)]


# -------------------------------------------------------------------------------------------------------------- pools
def _ceiled(
    lengths: Sequence[int], kernel: Ints, strides: Ints, dilations: Ints, amounts: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Returns the amounts with which the last window, that begins in the image or before it, is whole."""
    result = []
    for length, window, stride, dilation, (before, after) in zip(
        lengths, kernel, strides, dilations, amounts, strict=True
    ):
        span = (window - 1) * dilation + 1
        steps = math.ceil((length + before + after - span) / stride)
        steps -= steps * stride >= length + before
        result.append((before, max(steps * stride + span - length - before, after)))
    return result


@operator("MaxPool", values={**_AUTO, "storage_order": (0,)})
def _max_pool(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    storage_order: int = 0,
    strides: Ints | None = None,
) -> Any:
    rank = len(x.shape) - 2
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    amounts = _amounts(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad)
    if ceil_mode:
        amounts = _ceiled(x.shape[2:], kernel_shape, strides, dilations, amounts)
    lowest = -np.inf if x.dtype.is_floating else x.dtype.min
    x = _padded(x, amounts, lowest)
    return pool(x, list(kernel_shape), "MAX", list(strides), "VALID", _FORMATS[rank + 2], list(dilations))


@operator("AveragePool", values=_AUTO)
def _average_pool(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    return _average(x, kernel_shape, auto_pad, ceil_mode, count_include_pad, None, pads, strides)


@operator("AveragePool", since=19, values=_AUTO)
def _average_pool_19(
    x: Any,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    return _average(x, kernel_shape, auto_pad, ceil_mode, count_include_pad, dilations, pads, strides)


def _average(
    x: Any,
    kernel: Ints,
    auto: str,
    ceil_mode: int,
    counts_pads: int,
    dilations: Ints | None,
    pads: Ints | None,
    strides: Ints | None,
) -> Any:
    rank, lengths = len(x.shape) - 2, x.shape[2:]
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    amounts = _amounts(lengths, kernel, strides, dilations, pads, auto)
    whole = _ceiled(lengths, kernel, strides, dilations, amounts) if ceil_mode else amounts
    means = pool(_padded(x, whole), list(kernel), "AVG", list(strides), "VALID", _FORMATS[rank + 2], list(dilations))
    counts = np.ones(())
    for axis in range(rank):
        before, after = amounts[axis]
        first = np.arange(means.shape[axis + 2])[:, None] * strides[axis] - before
        positions = first + np.arange(kernel[axis]) * dilations[axis]
        low, high = (-before, lengths[axis] + after) if counts_pads else (0, lengths[axis])
        counts = counts[..., None] * ((positions >= low) & (positions < high)).sum(1)
    ratio = math.prod(kernel) / counts
    return means if np.all(ratio == 1) else means * constant(ratio.astype(x.dtype.as_numpy_dtype))


@operator("GlobalAveragePool")
def _global_average(x: Any) -> Any:
    return reduce_mean(x, list(range(2, len(x.shape))), True)


@operator("GlobalMaxPool")
def _global_max(x: Any) -> Any:
    return reduce_max(x, list(range(2, len(x.shape))), True)
