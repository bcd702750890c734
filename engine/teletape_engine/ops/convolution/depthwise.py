"""Convolution whose filters see one channel each: sums of products elementwise, without matrices.

Filters [height, width, 1, channels · m]. On a CPU a part of the rows of one image at a time, which the cache holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.ops.convolution.windows import Windows
from teletape_engine.spec import Shape

_CACHED: Final = 256 << 10  # bytes of the products of a part


def applies(channels: int, groups: int) -> bool:
    """Whether each group of channels is one channel, of several."""
    return groups == channels > 1


def workspace(at: Windows, out: int, itemsize: int) -> int:
    """Bytes of the products of a part."""
    return max(_CACHED, 2 * at.counts[1] * out * itemsize)


def _parts(xp: ArrayModule, at: Windows, n: int, row_bytes: int) -> Iterator[tuple[slice, int, int]]:
    """(images, first row of windows, row after the last) of each part; on a GPU all at once."""
    if xp is not np:
        yield slice(0, n), 0, at.counts[0]
        return
    rows = max(_CACHED // max(row_bytes, 1), 1)
    for image in range(n):
        for first in range(0, at.counts[0], rows):
            yield slice(image, image + 1), first, min(first + rows, at.counts[0])


def _rows(index: slice, first: int, end: int) -> slice:
    """The part of a slice of rows that holds the windows from `first` to before `end`."""
    return slice(index.start + first * index.step, index.start + (end - 1) * index.step + 1, index.step)


def _apart(filters: Array, channels: int) -> Array:
    """Filters as [height, width, channels], or [height, width, channels, m] if m is not 1."""
    height, width, _, out = filters.shape
    times = out // channels
    return filters.reshape((height, width, channels) if times == 1 else (height, width, channels, times))


def convolved(xp: ArrayModule, images: Array, filters: Array, at: Windows) -> Array:
    """The convolution of bordered images: [n, *counts, channels · m]."""
    n, _, _, channels = images.shape
    weights = _apart(filters, channels)
    out = xp.zeros((n, *at.counts, *weights.shape[2:]), images.dtype)
    x = images if weights.ndim == 3 else images[..., None]
    if out.size:
        for part, first, end in _parts(xp, at, n, out[0, 0].nbytes):
            total = out[part, first:end]
            product = xp.empty_like(total)
            for i, j, (_, rows, columns) in at.offsets():
                xp.multiply(x[part, _rows(rows, first, end), columns], weights[i, j], out=product)
                total += product
    return out.reshape((n, *at.counts, filters.shape[3]))


def images_from(xp: ArrayModule, grads: Array, filters: Array, at: Windows, channels: int) -> Array:
    """The transpose of `convolved` with respect to the bordered images."""
    n, weights = grads.shape[0], _apart(filters, channels)
    out = xp.zeros((n, *at.lengths(), channels), grads.dtype)
    ct = grads.reshape((n, *at.counts, *weights.shape[2:]))
    if grads.size and out.size:
        for part, first, end in _parts(xp, at, n, ct[0, 0].nbytes):
            some = ct[part, first:end]
            product = xp.empty_like(some)
            for i, j, (_, rows, columns) in at.offsets():
                xp.multiply(some, weights[i, j], out=product)
                out[part, _rows(rows, first, end), columns] += product if product.ndim == 4 else product.sum(axis=-1)
    return out


def filters_from(xp: ArrayModule, images: Array, grads: Array, at: Windows, shape: Shape) -> Array:
    """The transpose of `convolved` with respect to the filters, which have that shape."""
    n, channels = images.shape[0], images.shape[3]
    out = _apart(xp.zeros(shape, images.dtype), channels)
    ct = grads.reshape((n, *at.counts, *out.shape[2:]))
    if grads.size and math.prod(shape):
        terms = "nhwc,nhwc->c" if out.ndim == 3 else "nhwc,nhwcm->cm"
        for part, first, end in _parts(xp, at, n, ct[0, 0].nbytes):
            some = ct[part, first:end]
            for i, j, (_, rows, columns) in at.offsets():
                out[i, j] += xp.einsum(terms, images[part, _rows(rows, first, end), columns], some)
    return out.reshape(shape)
