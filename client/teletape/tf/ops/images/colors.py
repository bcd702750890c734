"""`tf.image`: colours. By hand: images of integers are converted to floats in [0, 1], and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from teletape._generated.elementwise.arithmetic import saturate_cast
from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops


def convert_image_dtype(
    image: to.TensorInput, dtype: to.DTypeInput, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images of another dtype: of floats in [0, 1], of integers in [0, the largest of the dtype].

    Raises:
        AttributeError: A dtype that is neither of floats nor of integers.

    Example:
        tf.image.convert_image_dtype(np.array([[[0], [255]]], np.uint8), tf.float32)
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
    """Applies `compute` to images as floats (float32 if their dtype is not in `floats`); keeps the images' dtype."""
    tensor = to.value(image)
    if tensor.dtype in floats:
        return compute(tensor)
    return convert_image_dtype(compute(convert_image_dtype(tensor, dtypes.float32)), tensor.dtype, saturate=True)


# -------------------------------------------------------------------------------------------------------------- colours
def adjust_brightness(image: to.TensorInput, delta: to.TensorInput) -> Tensor:
    """Images with `delta` added to each channel, as floats in [0, 1].

    Example:
        tf.image.adjust_brightness([[[0.2], [0.5]]], delta=0.1)
    """
    return _as_floats(image, lambda x: call(ops.add, (x, to.cast(delta, x))))


def adjust_contrast(images: to.TensorInput, contrast_factor: to.TensorInput) -> Tensor:
    """(x - mean) · contrast_factor + mean, with the mean of each channel of each image.

    Example:
        tf.image.adjust_contrast([[[1.0], [3.0]]], contrast_factor=2.0)
    """
    return _as_floats(images, lambda x: call(ops.adjust_contrast, (x, to.cast(contrast_factor, x))))


def adjust_gamma(image: to.TensorInput, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain · xᵞ for images x, as floats in [0, 1].

    Raises:
        ValueError: gamma is negative.

    Example:
        tf.image.adjust_gamma([[[0.5], [1.0]]], gamma=2.0)
    """
    if isinstance(gamma, int | float) and gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    return _as_floats(image, lambda x: call(ops.mul, (call(ops.pow, (x, to.cast(gamma, x))), to.cast(gain, x))))


def adjust_saturation(image: to.TensorInput, saturation_factor: to.TensorInput, name: str | None = None) -> Tensor:
    """RGB images with their saturation times a factor, kept in [0, 1].

    Example:
        tf.image.adjust_saturation([[[1.0, 0.5, 0.5]]], saturation_factor=0.5)
    """
    return _as_floats(image, lambda x: call(ops.adjust_saturation, (x, to.cast(saturation_factor, x))))


def adjust_hue(image: to.TensorInput, delta: to.TensorInput, name: str | None = None) -> Tensor:
    """RGB images with `delta` added to their hue.

    Raises:
        ValueError: delta is outside [-1, 1].

    Example:
        tf.image.adjust_hue([[[1.0, 0.0, 0.0]]], delta=0.5)
    """
    if isinstance(delta, int | float) and not -1 <= delta <= 1:
        raise ValueError("delta must be in the interval [-1, 1]")
    return _as_floats(image, lambda x: call(ops.adjust_hue, (x, to.cast(delta, x))))


def rgb_to_grayscale(images: to.TensorInput, name: str | None = None) -> Tensor:
    """The luminance of RGB images, as their one channel.

    Example:
        tf.image.rgb_to_grayscale([[[1.0, 0.0, 0.0]]])
    """
    tensor = convert_to_tensor(images)
    floats = convert_image_dtype(tensor, dtypes.float32)
    return convert_image_dtype(call(ops.rgb_to_grayscale, (floats,)), tensor.dtype)


def per_image_standardization(image: to.TensorInput) -> Tensor:
    """Each image less its mean, divided by its standard deviation: float32.

    Raises:
        ValueError: Images without height, width and channels.

    Example:
        tf.image.per_image_standardization([[[1.0], [3.0]]])
    """
    tensor = convert_to_tensor(image)
    if tensor.ndim < 3:
        raise ValueError(f"'image' (shape {tensor.shape}) must be at least three-dimensional.")
    floats = tensor if tensor.dtype is dtypes.float32 else cast(tensor, dtypes.float32)
    return call(ops.per_image_standardization, (floats,))
