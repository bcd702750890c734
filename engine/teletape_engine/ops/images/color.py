"""Contrast and colours of images [..., height, width, channels]."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_loop, composite
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.arithmetic import clip_by_value, floormod, maximum
from teletape_engine.ops.elementwise.complex import abs_
from teletape_engine.ops.elementwise.logic import equal, logical_and, where
from teletape_engine.ops.elementwise.math import sqrt, square
from teletape_engine.ops.reduce import reduce_mean
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import stack
from teletape_engine.spec import FLOATING, Spec, half_bytes, shape_text, wide, wide_bytes


def _adjust_contrast_spec(images: Spec, contrast_factor: Spec) -> Spec:
    check_dtypes("AdjustContrastv2", (images,), FLOATING)
    if images.ndim < 3:
        raise InvalidArgumentError(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
    if contrast_factor.shape != () or contrast_factor.dtype not in FLOATING:
        raise InvalidArgumentError(
            f"contrast_factor must be a floating scalar: found {contrast_factor.dtype.name} of shape "
            f"{shape_text(contrast_factor.shape)}"
        )
    return images


def _batch(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    return batch_loop(record, args, batched, attrs) if batched[1] else record(*args)


@op(
    infer=_adjust_contrast_spec,
    vjp=NOT_REGISTERED,
    batch=_batch,
    samples=[sample((2, 3, 2), ()), sample((2, 2, 3, 1), (), seed=1)],
    op_type="AdjustContrastv2",
    tf=(by_hand("image.adjust_contrast", "integers are converted, and a factor may be of another dtype"),),
    like=(0, 0),
    workspace=lambda images, contrast_factor: wide_bytes(images) + half_bytes(images),
)
def adjust_contrast(xp: ArrayModule, images: Array, contrast_factor: Array) -> Array:
    """(x - mean) · contrast_factor + mean, with the mean of each channel of each image.

    TensorFlow registers no gradient for it: asking for one is a LookupError.
    """
    dtype = wide(images.dtype)
    # As xp.mean, without its warning for images without elements.
    mean = xp.sum(images, axis=(-3, -2), keepdims=True, dtype=dtype) / dtype.type(math.prod(images.shape[-3:-1]))
    return ((images - mean) * contrast_factor.astype(dtype) + mean).astype(images.dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------ colours
def _channels(x: Operand, what: str) -> list[Operand]:
    """The three channels of images of floating-point numbers."""
    if x.dtype not in FLOATING:
        raise InvalidArgumentError(f"{what} takes floating-point images, found {x.dtype.name}")
    if not x.shape or x.shape[-1] != 3:
        raise InvalidArgumentError(f"{what}: input must have 3 channels but input has shape {shape_text(x.shape)}")
    return [strided_slice(x, index=("...", channel)) for channel in range(3)]


_COLOURS = np.array(
    [[[0.9, 0.3, 0.1], [0.2, 0.8, 0.4], [0.1, 0.25, 0.7]], [[0.6, 0.1, 0.5], [0.35, 0.3, 0.9], [0.7, 0.65, 0.2]]]
)


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    op_type="RGBToHSV",
    tf=(function("image.rgb_to_hsv", Conversion.SINGLE("images"), check="three_channels"),),
)
def rgb_to_hsv(x: Operand) -> Operand:
    """Red, green and blue in [0, 1] as hue, saturation and value in [0, 1]."""
    red, green, blue = _channels(x, "RGBToHSV")
    # Of channels that are equally large one has the derivatives, as in TensorFlow: the first of red, green and blue is
    # the largest, the last the smallest.
    value = where(logical_and(red >= green, red >= blue), red, where(green >= blue, green, blue))
    least = where(logical_and(blue <= red, blue <= green), blue, where(green <= red, green, red))
    span = value - least
    none = equal(span, zeros_like(span))
    safe = where(none, ones_like(span), span)
    turn = where(
        equal(red, value),
        (green - blue) / safe,
        where(equal(green, value), (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = where(none, zeros_like(span), turn / 6)
    hue = where(hue < zeros_like(hue), hue + 1, hue)
    positive = value > zeros_like(value)
    # The saturation has no derivative by a channel that is zero, as in TensorFlow.
    zero = zeros_like(value)
    chroma = value - where(equal(least, zero), zero, least)
    saturation = where(positive, chroma / where(positive, value, ones_like(value)), zero)
    return stack(hue, saturation, value, axis=-1)


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    op_type="HSVToRGB",
    tf=(function("image.hsv_to_rgb", Conversion.SINGLE("images"), check="three_channels"),),
)
def hsv_to_rgb(x: Operand) -> Operand:
    """Hue, saturation and value in [0, 1] as red, green and blue in [0, 1]: the inverse of rgb_to_hsv."""
    hue, saturation, value = _channels(x, "HSVToRGB")
    turn = hue * 6
    shares = (abs_(turn - 3) - 1, 2 - abs_(turn - 2), 2 - abs_(turn - 4))
    low, high = zeros_like(hue), ones_like(hue)
    return stack(*[(1 - saturation + saturation * clip_by_value(d, low, high)) * value for d in shares], axis=-1)


def _mixed(x: Operand, shares: tuple[tuple[float, float, float], ...], what: str) -> Operand:
    """Images whose channels are sums of shares of the channels of x: a row of shares for each channel of x."""
    first, second, third = _channels(x, what)
    return stack(*[first * a + second * b + third * c for a, b, c in zip(*shares, strict=True)], axis=-1)


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    tf=(function("image.rgb_to_yuv", Conversion.TENSOR("images")),),
)
def rgb_to_yuv(x: Operand) -> Operand:
    """Red, green and blue in [0, 1] as luma Y in [0, 1] and the colour differences U and V."""
    return _mixed(
        x,
        (
            (0.299, -0.14714119, 0.61497538),
            (0.587, -0.28886916, -0.51496512),
            (0.114, 0.43601035, -0.10001026),
        ),
        "rgb_to_yuv",
    )


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    tf=(function("image.yuv_to_rgb", Conversion.TENSOR("images")),),
)
def yuv_to_rgb(x: Operand) -> Operand:
    """Luma Y and the colour differences U and V as red, green and blue: the inverse of rgb_to_yuv."""
    return _mixed(x, ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0)), "yuv_to_rgb")


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    tf=(function("image.rgb_to_yiq", Conversion.TENSOR("images")),),
)
def rgb_to_yiq(x: Operand) -> Operand:
    """Red, green and blue in [0, 1] as luma Y in [0, 1] and the colour differences I and Q."""
    return _mixed(
        x,
        (
            (0.299, 0.59590059, 0.2115),
            (0.587, -0.27455667, -0.52273617),
            (0.114, -0.32134392, 0.31119955),
        ),
        "rgb_to_yiq",
    )


@composite(
    samples=[sample(_COLOURS), sample(_COLOURS[:1, 1])],
    tf=(function("image.yiq_to_rgb", Conversion.TENSOR("images")),),
)
def yiq_to_rgb(x: Operand) -> Operand:
    """Luma Y and the colour differences I and Q as red, green and blue: the inverse of rgb_to_yiq."""
    return _mixed(
        x,
        ((1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049)),
        "yiq_to_rgb",
    )


@composite(samples=[sample(_COLOURS[:1], np.array(0.5)), sample(_COLOURS[1, :1], np.array(1.1))], like=(0, 0))
def adjust_saturation(x: Operand, factor: Operand) -> Operand:
    """RGB images with their saturation times factor, a scalar, kept in [0, 1]."""
    hue, saturation, value = _channels(rgb_to_hsv(x), "AdjustSaturation")
    scaled = clip_by_value(saturation * factor, zeros_like(saturation), ones_like(saturation))
    return hsv_to_rgb(stack(hue, scaled, value, axis=-1))


@composite(samples=[sample(_COLOURS[:1], np.array(0.17)), sample(_COLOURS[1, :1], np.array(-0.23))], like=(0, 0))
def adjust_hue(x: Operand, delta: Operand) -> Operand:
    """RGB images with delta, a scalar, added to their hue, which goes round from 1 to 0."""
    hue, saturation, value = _channels(rgb_to_hsv(x), "AdjustHue")
    moved = hue + delta
    return hsv_to_rgb(stack(floormod(moved, ones_like(moved)), saturation, value, axis=-1))


@composite(samples=[sample(_COLOURS)])
def rgb_to_grayscale(x: Operand) -> Operand:
    """The luminance 0.2989·red + 0.587·green + 0.114·blue of images, as their one channel."""
    red, green, blue = _channels(x, "rgb_to_grayscale")
    return stack(red * 0.2989 + green * 0.587 + blue * 0.114, axis=-1)


@composite(samples=[sample((2, 3, 2)), sample((2, 2, 3, 1), seed=1)])
def per_image_standardization(x: Operand) -> Operand:
    """Each image less its mean, over its standard deviation, or over 1 / √(its number of elements) if that is more."""
    if len(x.shape) < 3:
        raise InvalidArgumentError(f"images need height, width and channels, found shape {shape_text(x.shape)}")
    axes = (-3, -2, -1)
    centred = x - reduce_mean(x, axis=axes, keepdims=True)
    deviation = sqrt(reduce_mean(square(centred), axis=axes, keepdims=True))
    count = max(math.prod(x.shape[-3:]), 1)
    return centred / maximum(deviation, 1 / math.sqrt(count))
