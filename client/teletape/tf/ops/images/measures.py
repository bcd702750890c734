"""`tf.image`: the similarity of two images. By hand: images of integers become floats, and filters are made."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.images.colors import convert_image_dtype
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import shape_text

_SCALES: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  #: Weights of Wang, Simoncelli and Bovik, 2003.


def _pair(a: Any, b: Any, max_val: Any) -> tuple[Tensor, Tensor, float]:
    """Two images as float32, and their largest value converted likewise."""
    first = convert_to_tensor(a)
    x, y = (convert_image_dtype(image, dtypes.float32) for image in (first, convert_to_tensor(b, first.dtype)))
    return x, y, float(max_val) / first.dtype.max if first.dtype.is_integer else float(max_val)


def psnr(a: to.TensorInput, b: to.TensorInput, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels, for each pair.

    Example:
        tf.image.psnr([[[0.0], [1.0]]], [[[0.1], [0.9]]], max_val=1.0)
    """
    x, y, largest = _pair(a, b, max_val)
    return call(ops.psnr, (x, y), max_val=largest)


# --------------------------------------------------------------------------------------------------------- similarity
def ssim(
    img1: to.TensorInput,
    img2: to.TensorInput,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of two images, for each pair; or at each place if `return_index_map`.

    Args:
        img1: [..., height, width, channels].
        img2: Of the same height, width and channels; the axes before are broadcast.
        max_val: The difference between the largest and the smallest possible value.
        filter_size: The size of the window that is compared.
        filter_sigma: The deviation of the window's Gaussian weights.
        k1: Keeps the comparison of luminance finite.
        k2: Keeps that of contrast finite.
        return_index_map: Whether the result is a map of places.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An image is smaller than the window.

    Example:
        tf.image.ssim(np.ones([11, 11, 1], np.float32), np.ones([11, 11, 1], np.float32), max_val=1.0)
    """
    x, y, largest = _pair(img1, img2, max_val)
    x, y, lead = _flat(x, y)
    kernel = _window(x, int(filter_size), float(filter_sigma))
    similar = call(ops.ssim, (x, y, kernel), max_val=largest, k1=float(k1), k2=float(k2))
    mean = call(ops.reduce_mean, (similar,), axis=-1 if return_index_map else (1, 2, 3))
    return call(ops.reshape, (mean,), shape=(*lead, *tuple(mean.shape)[1:]))


def ssim_multiscale(
    img1: to.TensorInput,
    img2: to.TensorInput,
    max_val: Any,
    power_factors: Sequence[float] = _SCALES,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of two images at several scales, each half the one before, for each pair.

    The product of the similarities in contrast at all scales but the last, and of ssim at the last, each to the power
    of its factor; the mean of the channels. The other arguments are those of `ssim`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An image is smaller than the window at one of the scales.

    Example:
        tf.image.ssim_multiscale(
            np.ones([1, 16, 16, 1], np.float32),
            np.ones([1, 16, 16, 1], np.float32),
            max_val=1.0,
            power_factors=[0.5, 0.5],
            filter_size=4,
        )
    """
    x, y, largest = _pair(img1, img2, max_val)
    x, y, lead = _flat(x, y)
    total, last = None, len(power_factors) - 1
    for scale, power in enumerate(power_factors):
        if scale:
            x, y = _halved(x), _halved(y)
        kernel = _window(x, int(filter_size), float(filter_sigma))
        op = ops.ssim if scale == last else ops.ssim_contrast
        similar = call(op, (x, y, kernel), max_val=largest, k1=float(k1), k2=float(k2))
        mean = call(ops.relu, (call(ops.reduce_mean, (similar,), axis=(1, 2)),))
        factor = call(ops.pow, (mean, float(power)))
        total = factor if total is None else call(ops.mul, (total, factor))
    if total is None:
        raise ValueError("power_factors must have a factor for each scale, at least one")
    return call(ops.reshape, (call(ops.reduce_mean, (total,), axis=-1),), shape=lead)


def _flat(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Images [..., height, width, channels] as [n, height, width, channels], and the axes before, broadcast."""
    shapes = tuple(x.shape), tuple(y.shape)
    for shape in shapes:
        if len(shape) < 3:
            raise ValueError(f"images need height, width and channels, found shape {shape_text(shape)}")
    if shapes[0][-3:] != shapes[1][-3:]:
        raise ValueError(f"Incompatible image shapes: {shape_text(shapes[0])} and {shape_text(shapes[1])}")
    try:
        lead = np.broadcast_shapes(shapes[0][:-3], shapes[1][:-3])
    except ValueError:
        raise ValueError(
            f"Two images are not compatible: {shape_text(shapes[0])} and {shape_text(shapes[1])}"
        ) from None
    images = []
    for image, shape in zip((x, y), shapes, strict=True):
        whole = (*lead, *shape[-3:])
        wide = image if shape == whole else call(ops.broadcast_to, (image,), shape=whole)
        images.append(wide if len(lead) == 1 else call(ops.reshape, (wide,), shape=(math.prod(lead), *shape[-3:])))
    return images[0], images[1], lead


def _halved(x: Tensor) -> Tensor:
    """Images of half the height and width; an odd last row or column is repeated first."""
    shape = tuple(x.shape)
    odd = [length % 2 for length in shape[1:3]]
    if any(odd):
        paddings = ((0, 0), (0, odd[0]), (0, odd[1]), (0, 0))
        x = call(ops.mirror_pad, (x,), paddings=paddings, mode="SYMMETRIC")
    return call(ops.avg_pool, (x,), ksize=(2, 2), strides=(2, 2))


def _window(x: Tensor, size: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights of a window that fits into images."""
    if min(tuple(x.shape)[1:3]) < size:
        raise InvalidArgumentError(
            f"images of shape {shape_text(tuple(x.shape))} are smaller than the filter of size {size}"
        )
    return _gaussian(size, sigma)


@functools.lru_cache(maxsize=16)
def _gaussian(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights [size, size] of a Gaussian window, whose sum is 1."""
    at = np.arange(size, dtype=np.float32) - (size - 1) / 2.0
    exponents = -0.5 * (at / np.float32(sigma)) ** 2
    weights = np.exp(exponents[:, None] + exponents[None, :])
    normal: np.ndarray[Any, Any] = (weights / weights.sum()).astype(np.float32)
    return normal
