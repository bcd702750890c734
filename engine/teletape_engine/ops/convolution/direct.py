"""Convolution and pooling by the kernels of `arrays.kernels`, for shapes for which those are faster than NumPy."""

from __future__ import annotations

import math
from typing import Any, Final

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.kernels import Geometry, applied, kernel
from teletape_engine.ops.convolution.windows import Windows
from teletape_engine.spec import Shape

#: Input channels times output channels. With more of them a BLAS with two threads is faster than one thread here.
_FEW_PRODUCTS: Final = 2048
_VECTORS, _SUMMED = 128, 512  # bytes of two vectors; windows that are summed one after the other


def convolved(
    xp: ArrayModule, images: Array, filters: Array, at: Windows, shape: Shape, *, groups: int = 1, turned: bool = False
) -> Array | None:
    """The convolution of images with filters, of that shape; None: it is for NumPy.

    Args:
        xp: The namespace of the arrays.
        images: [n, height, width, channels], without a border.
        filters: Of the dtype of the images.
        at: The windows on the images.
        shape: Of the result.
        groups: Of channels.
        turned: Whether the filters are those of the transpose; see `patches.transposed`.
    """
    return _applied(xp, "convolve", (images, filters), at, shape[-1], shape, groups, turned)


def filters_from(
    xp: ArrayModule, images: Array, grads: Array, at: Windows, shape: Shape, *, groups: int
) -> Array | None:
    """The transpose of `convolved` with respect to the filters, which have that shape; None: it is for NumPy."""
    return _applied(xp, "convolve_filters", (images, grads), at, shape[-1], shape, groups)


def pooled(
    xp: ArrayModule, name: str, images: Array, inputs: tuple[Array, ...], at: Windows, shape: Shape
) -> Array | None:
    """A kernel of pooling on the windows of images; None: it is for NumPy."""
    loops = kernel(xp, name, images.dtype, _geometry(images.shape, at, 1))
    return None if loops is None else applied(xp, loops, inputs, shape)


def _applied(
    xp: ArrayModule,
    name: str,
    inputs: tuple[Any, Any],
    at: Windows,
    out: int,
    shape: Shape,
    groups: int,
    turned: bool = False,
) -> Array | None:
    images = inputs[0]
    if groups > 1 or images.shape[-1] * out > _FEW_PRODUCTS or math.prod(at.size) == 1:
        return None
    loops = kernel(xp, name, images.dtype, _geometry(images.shape, at, out, turned))
    return None if loops is None else applied(xp, loops, inputs, shape)


def _geometry(images: Shape, at: Windows, out: int, turned: bool = False) -> Geometry:
    before, lengths = (at.paddings[0][0], at.paddings[1][0]), at.lengths()
    sliding = (*at.size, *at.counts, *at.strides, *at.dilations, *before, *lengths)
    return Geometry._make((*images, out, *sliding, int(turned), int(at.apart)))


def buffer_bytes(at: Windows, channels: int) -> int:
    """What the kernels of convolution allocate, but for one image with its border."""
    return math.prod(at.size) * channels * (_VECTORS + 16) + max(_SUMMED, at.counts[1]) * (_VECTORS + 16)
