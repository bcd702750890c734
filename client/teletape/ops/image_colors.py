"""`tf.image`: colours and measures. By hand: images of integers are converted to floats in [0, 1], and back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.ops import arguments as to
from teletape.ops.derived.arithmetic import saturate_cast
from teletape.ops.derived.cast import cast
from teletape.ops.dispatch import call, convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "convert_image_dtype",
    "per_image_standardization",
    "psnr",
    "rgb_to_grayscale",
    "ssim",
]


def convert_image_dtype(
    image: to.TensorInput, dtype: to.DTypeInput, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images of another dtype: of floats in [0, 1], of integers in [0, the largest of the dtype].

    Raises:
        AttributeError: A dtype that is neither of floats nor of integers.
    """
    tensor, wanted = convert_to_tensor(image), dtypes.as_dtype(dtype)
    if not wanted.is_floating and not wanted.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if not tensor.dtype.is_floating and not tensor.dtype.is_integer:
        raise AttributeError("image dtype must be either floating point or integer")
    if wanted is tensor.dtype:
        return tensor
    if tensor.dtype.is_integer and wanted.is_integer:
        scale_in, scale_out = tensor.dtype.max, wanted.max
        if scale_in > scale_out:
            scaled = call(ops.floordiv, (tensor, (scale_in + 1) // (scale_out + 1)))
            return saturate_cast(scaled, wanted) if saturate else cast(scaled, wanted)
        wide = saturate_cast(tensor, wanted) if saturate else cast(tensor, wanted)
        return call(ops.mul, (wide, (scale_out + 1) // (scale_in + 1)))
    if tensor.dtype.is_floating and wanted.is_floating:
        return cast(tensor, wanted)
    if tensor.dtype.is_integer:
        return call(ops.mul, (cast(tensor, wanted), 1.0 / tensor.dtype.max))
    steps = call(ops.mul, (tensor, float(wanted.max) + 0.5))
    return saturate_cast(steps, wanted) if saturate else cast(steps, wanted)


def _as_floats(
    image: Any, compute: Callable[[TensorLike], Tensor], floats: Any = (dtypes.float16, dtypes.float32)
) -> Tensor:
    """What `compute` gives for images of floats (others than `floats` as float32), in the dtype of the images."""
    tensor = to.value(image)
    if tensor.dtype in floats:
        return compute(tensor)
    return convert_image_dtype(compute(convert_image_dtype(tensor, dtypes.float32)), tensor.dtype, saturate=True)


# -------------------------------------------------------------------------------------------------------------- colours
def adjust_brightness(image: to.TensorInput, delta: to.TensorInput) -> Tensor:
    """Images with `delta` added to each channel, as floats in [0, 1]."""
    return _as_floats(image, lambda x: call(ops.add, (x, to.cast(delta, x))))


def adjust_contrast(images: to.TensorInput, contrast_factor: to.TensorInput) -> Tensor:
    """(x - mean) · contrast_factor + mean, with the mean of each channel of each image."""
    return _as_floats(images, lambda x: call(ops.adjust_contrast, (x, to.cast(contrast_factor, x))))


def adjust_gamma(image: to.TensorInput, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain · xᵞ for images x, as floats in [0, 1].

    Raises:
        ValueError: gamma is negative.
    """
    if isinstance(gamma, int | float) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return _as_floats(image, lambda x: call(ops.mul, (call(ops.pow, (x, to.cast(gamma, x))), to.cast(gain, x))))


def adjust_saturation(image: to.TensorInput, saturation_factor: to.TensorInput, name: str | None = None) -> Tensor:
    """RGB images with their saturation times a factor, kept in [0, 1]."""
    return _as_floats(image, lambda x: call(ops.adjust_saturation, (x, to.cast(saturation_factor, x))))


def adjust_hue(image: to.TensorInput, delta: to.TensorInput, name: str | None = None) -> Tensor:
    """RGB images with `delta` added to their hue.

    Raises:
        ValueError: delta is outside [-1, 1].
    """
    if isinstance(delta, int | float) and not -1 <= delta <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")
    return _as_floats(image, lambda x: call(ops.adjust_hue, (x, to.cast(delta, x))))


def rgb_to_grayscale(images: to.TensorInput, name: str | None = None) -> Tensor:
    """The luminance of RGB images, as their one channel."""
    tensor = convert_to_tensor(images)
    floats = convert_image_dtype(tensor, dtypes.float32)
    return convert_image_dtype(call(ops.rgb_to_grayscale, (floats,)), tensor.dtype)


def per_image_standardization(image: to.TensorInput) -> Tensor:
    """Each image less its mean, divided by its standard deviation; integers as float32."""
    tensor = convert_to_tensor(image)
    return call(ops.per_image_standardization, (tensor if tensor.dtype.is_floating else cast(tensor, dtypes.float32),))


# ------------------------------------------------------------------------------------------------------------- measures
def _compared(op: Op, a: Any, b: Any, max_val: Any, *others: Any, **attrs: Any) -> Tensor:
    """An op of two images as float32, whose largest value is `max_val` before it is converted alike."""
    first = convert_to_tensor(a)
    images = [convert_image_dtype(image, dtypes.float32) for image in (first, convert_to_tensor(b, first.dtype))]
    largest = float(max_val) / first.dtype.max if first.dtype.is_integer else float(max_val)
    return call(op, (*images, *others), max_val=largest, **attrs)


def psnr(a: to.TensorInput, b: to.TensorInput, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels, for each pair."""
    return _compared(ops.psnr, a, b, max_val)


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
    """The structural similarity of two images, for each pair; or at each place if `return_index_map`."""
    first = convert_to_tensor(img1)
    single = first.ndim == 3
    if single:
        first, img2 = (call(ops.expand_dims, (convert_to_tensor(image),), axis=0) for image in (first, img2))
    if min(tuple(first.shape)[1:3]) < filter_size:
        raise ValueError(f"images of shape {first.shape} are smaller than the filter of size {filter_size}")
    kernel = _gaussian(int(filter_size), float(filter_sigma))
    similar = _compared(ops.ssim, first, img2, max_val, kernel, k1=float(k1), k2=float(k2))
    mean = call(ops.reduce_mean, (similar,), axis=-1 if return_index_map else (1, 2, 3))
    return call(ops.squeeze, (mean,), axis=(0,)) if single else mean


@functools.lru_cache(maxsize=16)
def _gaussian(size: int, sigma: float) -> np.ndarray[Any, Any]:
    """The weights [size, size] of a Gaussian window, whose sum is 1."""
    at = np.arange(size, dtype=np.float32) - (size - 1) / 2.0
    exponents = -0.5 * (at / np.float32(sigma)) ** 2
    weights = np.exp(exponents[:, None] + exponents[None, :])
    normal: np.ndarray[Any, Any] = (weights / weights.sum()).astype(np.float32)
    return normal
