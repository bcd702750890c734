"""Convolution as matrix products: the windows on images are copied into matrices, a part at a time, and multiplied."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.ops.convolution.windows import Windows, windows
from teletape_engine.spec import Shape, wide

# Patches at a time: what a CPU's second cache holds, and at least as many windows as make a product worth its call.
_BUFFER, _FEWEST, MOST_BYTES = 256 << 10, 512, 8 << 20
_FEW = 4  # channels


def images_of(x: Array) -> Array:
    """x [..., height, width, channels] as [n, height, width, channels], in the dtype that sums are computed in."""
    x = x.astype(wide(x.dtype), copy=False)
    return x if x.ndim == 4 else x.reshape((math.prod(x.shape[:-3]), *x.shape[-3:]))


def patches_of(xp: ArrayModule, x: Array, at: Windows) -> Array:
    """The windows of bordered images as a view [n, *counts, *size, channels]."""
    n, row, column, channel = x.strides
    (a, b), (c, d) = at.strides, at.dilations
    shape = (x.shape[0], *at.counts, *at.size, x.shape[3])
    return xp.lib.stride_tricks.as_strided(x, shape, (n, row * a, column * b, row * c, column * d, channel))


def _buffer_bytes(window: int) -> int:
    """Bytes of patches at a time on a CPU, of windows of that many bytes."""
    return min(max(_BUFFER, _FEWEST * window), MOST_BYTES)


def parts(xp: ArrayModule, patches: Array) -> Iterator[tuple[slice, slice]]:
    """(images, rows of windows): parts of the patches, each small enough for the buffer; whole images or one's rows."""
    n, rows, *rest = patches.shape
    row, window = (math.prod(lengths) * patches.dtype.itemsize for lengths in (rest, rest[1:]))
    if not n * rows * row:
        return
    most = _buffer_bytes(window) if xp is np else MOST_BYTES
    images, lines = max(most // (row * rows), 1), max(most // row, 1)
    for i in range(0, n, images):
        for k in range(0, rows, lines):
            yield slice(i, i + images), slice(k, k + lines)


def columns(xp: ArrayModule, patches: Array) -> Iterator[tuple[tuple[slice, slice], Any]]:
    """(part, matrix [windows, height * width * channels]) for all parts; the matrices share one buffer.

    If there are few channels, the elements of the windows are copied one after the other: long rows instead of short.
    """
    buffer, few = None, patches.shape[-1] <= _FEW
    for part in parts(xp, patches):
        chosen = patches[part]
        if few:
            chosen = chosen.transpose((3, 4, 5, 0, 1, 2))
        if buffer is None:
            buffer = xp.empty(chosen.size, chosen.dtype)
        copy = buffer[: chosen.size].reshape(chosen.shape)
        xp.copyto(copy, chosen)
        matrix = copy.reshape((math.prod(chosen.shape[:3]), math.prod(chosen.shape[3:])))
        yield part, matrix.T if few else matrix


def convolved(xp: ArrayModule, images: Array, filters: Array, at: Windows, groups: int) -> Array:
    """The convolution of bordered images: [n, *counts, out]."""
    patches, out = patches_of(xp, images, at), filters.shape[3]
    y = (xp.empty if patches.size else xp.zeros)((images.shape[0], *at.counts, out), images.dtype)
    if groups == 1:
        matrix = filters.reshape((math.prod(filters.shape[:3]), out))
        for part, matrix_of_part in columns(xp, patches):
            xp.matmul(matrix_of_part, matrix, out=y[part].reshape((len(matrix_of_part), out)))
    else:
        matrices = split(filters, groups)
        for part in parts(xp, patches):
            chosen = patches[part]
            y[part] = joined(xp, xp.matmul(grouped(chosen, groups, 3), matrices), (*chosen.shape[:3], out))
    return y


def transposed(at: Windows, channels: int) -> Windows | None:
    """The windows on cotangents whose convolution with the turned filters gives the cotangents of the images.

    None if there are none, or if adding up products at each position of the filters is cheaper: if the result has few
    channels, or much of the bordered cotangents is border.
    """
    if at.strides != (1, 1) or channels <= _FEW or 4 * math.prod(at.images) > 5 * math.prod(at.counts):
        return None
    border = []
    for n, k, d, (before, _), count in zip(at.images, at.size, at.dilations, at.paddings, at.counts, strict=True):
        reach = (k - 1) * d
        if before > reach or reach > count or n + before < count:
            return None
        border.append((reach - before, n + before - count))
    return windows(at.counts, at.size, (1, 1), "EXPLICIT", tuple(border), at.dilations)


def turned(xp: ArrayModule, filters: Array, groups: int) -> Array:
    """Filters [height, width, c, groups * out] turned by half a turn, as those from out to c channels."""
    height, width, c, out = filters.shape
    apart = filters[::-1, ::-1].reshape((height, width, c, groups, out // groups))
    return xp.ascontiguousarray(apart.transpose((0, 1, 4, 3, 2))).reshape((height, width, out // groups, groups * c))


def grouped(x: Array, groups: int, axes: int) -> Array:
    """x [*many, *few, groups * c], with that many axes in `many`, as matrices [groups, many, few * c]."""
    many, few, c = math.prod(x.shape[:axes]), math.prod(x.shape[axes:-1]), x.shape[-1] // groups
    if groups == 1:
        return x.reshape((1, many, few * c))
    return x.reshape((many, few, groups, c)).transpose((2, 0, 1, 3)).reshape((groups, many, few * c))


def joined(xp: ArrayModule, x: Array, shape: Shape) -> Array:
    """Matrices [groups, many, c] as [many, groups * c], in that shape."""
    return xp.swapaxes(x, 0, 1).reshape(shape)


def split(filters: Array, groups: int) -> Array:
    """Filters [height, width, c, groups * out] as matrices [groups, height * width * c, out]."""
    height, width, c, out = filters.shape
    return filters.reshape((height * width * c, groups, out // groups)).transpose((1, 0, 2))
