"""Measures of images [..., height, width, channels]: variation, edges, and how alike two are."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution.conv import conv2d
from teletape_engine.ops.elementwise.arithmetic import squared_difference
from teletape_engine.ops.elementwise.complex import abs_
from teletape_engine.ops.elementwise.math import log, square
from teletape_engine.ops.reduce import reduce_mean, reduce_sum
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.pad import mirror_pad
from teletape_engine.ops.shapes.shape import expand_dims, reshape, stack, transpose
from teletape_engine.spec import shape_text

_ALL = (None, None, None)


def _part(x: Operand, rows: tuple[int, int], columns: tuple[int, int]) -> Operand:
    """x [..., height, width, channels] in these rows and columns, which are [first, after the last]."""
    return strided_slice(x, index=("...", (*rows, None), (*columns, None), _ALL))


@composite(
    samples=[sample((3, 4, 2)), sample((2, 3, 3, 1), seed=1)],
    tf=(function("image.total_variation", Conversion.TENSOR("images"), check="one_or_many_images"),),
)
def total_variation(x: Operand) -> Operand:
    """The sum of the differences between neighbouring pixels, for each image."""
    if len(x.shape) not in (3, 4):
        raise InvalidArgumentError(f"'images' must be either 3 or 4-dimensional, found shape {shape_text(x.shape)}")
    height, width = x.shape[-3:-1]
    down = _part(x, (1, height), (0, width)) - _part(x, (0, height - 1), (0, width))
    right = _part(x, (0, height), (1, width)) - _part(x, (0, height), (0, width - 1))
    return reduce_sum(abs_(down), axis=(-3, -2, -1)) + reduce_sum(abs_(right), axis=(-3, -2, -1))


@composite(
    samples=[sample((1, 3, 4, 2)), sample((2, 2, 3, 1), seed=1)],
    tf=(function("image.sobel_edges", Conversion.TENSOR("image")),),
)
def sobel_edges(x: Operand) -> Operand:
    """Sobel's filters for differences along rows and columns of images: [n, height, width, channels, 2]."""
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"images must be 4-dimensional, found shape {shape_text(x.shape)}")
    height, width = x.shape[1:3]
    wide = mirror_pad(x, paddings=((0, 0), (1, 1), (1, 1), (0, 0)), mode="REFLECT")

    def smooth_columns(first: int) -> Operand:
        rows = (first, first + height)
        inner = _part(wide, rows, (1, width + 1)) * 2
        return _part(wide, rows, (0, width)) + inner + _part(wide, rows, (2, width + 2))

    def smooth_rows(first: int) -> Operand:
        columns = (first, first + width)
        inner = _part(wide, (1, height + 1), columns) * 2
        return _part(wide, (0, height), columns) + inner + _part(wide, (2, height + 2), columns)

    return stack(smooth_columns(2) - smooth_columns(0), smooth_rows(2) - smooth_rows(0), axis=-1)


# ---------------------------------------------------------------------------------------------------------- two images
@composite(samples=[sample((2, 3, 3, 1), (2, 3, 3, 1), max_val=1.0), sample((2, 2, 1), (2, 2, 1), max_val=2.0, seed=1)])
def psnr(a: Operand, b: Operand, *, max_val: float) -> Operand:
    """The peak signal-to-noise ratio of two images of floats, in decibels, for each pair."""
    error = reduce_mean(squared_difference(a, b), axis=(-3, -2, -1))
    peak = math.log10(max_val) if max_val > 0 else math.nan if max_val else -math.inf
    return 20 * peak - log(error) * (10 / math.log(10))


def _filtered(x: Operand, kernel: Operand) -> Operand:
    """x [n, height, width, channels], each channel convolved with a kernel [size, size]."""
    n, height, width, channels = x.shape
    apart = reshape(transpose(x, perm=(0, 3, 1, 2)), shape=(n * channels, height, width, 1))
    y = conv2d(apart, expand_dims(expand_dims(kernel, axis=-1), axis=-1))
    rows, columns = y.shape[1:3]
    return transpose(reshape(y, shape=(n, channels, rows, columns)), perm=(0, 2, 3, 1))


def _likeness(a: Operand, b: Operand, kernel: Operand, max_val: float, k1: float, k2: float) -> tuple[Operand, Operand]:
    """How alike images are in luminance, and in contrast and structure, at each place of the kernel."""
    if len(a.shape) != 4 or a.shape != b.shape:
        raise InvalidArgumentError(
            f"ssim takes images [n, height, width, channels] of one shape, found {shape_text(a.shape)} and "
            f"{shape_text(b.shape)}"
        )
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_a, mean_b = _filtered(a, kernel), _filtered(b, kernel)
    product, squares = mean_a * mean_b * 2, square(mean_a) + square(mean_b)
    both, each = _filtered(a * b, kernel) * 2, _filtered(square(a) + square(b), kernel)
    return (product + c1) / (squares + c1), (both - product + c2) / (each - squares + c2)


_WINDOW = np.full((3, 3), 1 / 9)
_PAIR = [sample((1, 3, 4, 1), (1, 3, 4, 1), _WINDOW, max_val=1.0, low=0.1, high=0.9)]


@composite(samples=_PAIR)
def ssim(a: Operand, b: Operand, kernel: Operand, *, max_val: float, k1: float = 0.01, k2: float = 0.03) -> Operand:
    """The structural similarity of images [n, height, width, channels] at each place of the kernel (Wang et al. 2004).

    kernel: the weights [size, size] of a window, whose sum is 1. The result: [n, rows, columns, channels].
    """
    luminance, contrast = _likeness(a, b, kernel, max_val, k1, k2)
    return luminance * contrast


@composite(samples=_PAIR)
def ssim_contrast(
    a: Operand, b: Operand, kernel: Operand, *, max_val: float, k1: float = 0.01, k2: float = 0.03
) -> Operand:
    """The part of ssim that compares contrast and structure, without luminance."""
    return _likeness(a, b, kernel, max_val, k1, k2)[1]
