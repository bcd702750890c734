"""`tf.image`: resizing, cropping, flipping. By hand: the rank of images decides, and arguments are checked together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.nn.windows import lengths, word
from teletape_engine.catalogue.namespace import ops
from teletape_engine.ops.images.resize import METHODS
from teletape_engine.suggestions import with_nearest

__all__ = [
    "ResizeMethod",
    "central_crop",
    "crop_to_bounding_box",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "image_gradients",
    "pad_to_bounding_box",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rot90",
    "transpose",
]

_ALL: Final = (None, None, None)
_BACK: Final = (None, None, -1)
_SMOOTHING: Final = ("gaussian", "mitchellcubic")  #: Methods that change an image even if its size stays.


class ResizeMethod:
    """The names of the methods of `tf.image.resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def pixels(image: Any, what: str = "image") -> Tensor:
    """Images [height, width, channels] or [n, height, width, channels]; ValueError for another rank."""
    tensor = convert_to_tensor(image)
    if tensor.ndim not in (3, 4):
        raise ValueError(f"'{what}' (shape {tensor.shape}) must have either 3 or 4 dimensions.")
    return tensor


# --------------------------------------------------------------------------------------------------------------- sizes
def resize(
    images: to.TensorInput,
    size: to.IntsInput,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images resized to `size` [height, width]: float32; their own dtype by nearest.

    Raises:
        ValueError: Images of another rank than 3 or 4, a size that is not two positive lengths, an unknown method.

    Example:
        tf.image.resize([[[1.0], [2.0]]], size=[1, 4])
    """
    tensor = convert_to_tensor(images)
    if tensor.ndim not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    height, width = tuple(tensor.shape)[-3:-1]
    target = target_size((height, width), size, preserve_aspect_ratio)
    if method not in METHODS:
        raise ValueError(with_nearest(f"Resize method is not implemented: {method}", method, METHODS))
    if method != "nearest" and tensor.dtype is not dtypes.float32:
        tensor = call(ops.cast, (tensor,), dtype=dtypes.float32.np)
    if target == (height, width) and method not in _SMOOTHING:
        return tensor
    widened = bool(antialias) and method not in ("nearest", "area")
    return call(ops.resize, (tensor,), size=target, method=method, antialias=widened)


def target_size(sides: tuple[int, int], size: to.IntsInput, preserve_aspect_ratio: bool) -> tuple[int, int]:
    """Returns the height and width that images of these sides get.

    Raises:
        ValueError: The size is not two lengths.
    """
    target = to.ints(size, "size")
    if len(target) != 2:
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    height, width = sides
    if not preserve_aspect_ratio:
        return target[0], target[1]
    scale = min(np.float32(target[0]) / np.float32(height), np.float32(target[1]) / np.float32(width))
    return round(float(scale * np.float32(height))), round(float(scale * np.float32(width)))


def resize_with_pad(
    image: to.TensorInput,
    target_height: to.IntInput,
    target_width: to.IntInput,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Images resized to fit into a size, with the ratio of their sides kept, and zeros around.

    Example:
        tf.image.resize_with_pad([[[1.0], [2.0]]], target_height=2, target_width=2)
    """
    tensor, target = pixels(image), (to.whole(target_height), to.whole(target_width))
    if min(target) <= 0:
        raise ValueError(f"target_{'height' if target[0] <= 0 else 'width'} must be > 0.")
    sides = tuple(tensor.shape)[-3:-1]
    ratio = max(np.float64(side) / np.float64(length) for side, length in zip(sides, target, strict=True))
    inner = [int(np.floor(side / ratio)) for side in sides]
    before = [max(int((length - side / ratio) // 2), 0) for side, length in zip(sides, target, strict=True)]
    resized = resize(tensor, inner, method, antialias=antialias)
    return pad_to_bounding_box(resized, before[0], before[1], *target)


def resize_with_crop_or_pad(image: to.TensorInput, target_height: to.IntInput, target_width: to.IntInput) -> Tensor:
    """Images cropped, or padded with zeros, to a size, by the same number on both sides.

    Example:
        tf.image.resize_with_crop_or_pad([[[1.0], [2.0]]], target_height=1, target_width=4)
    """
    tensor, target = pixels(image), (to.whole(target_height), to.whole(target_width))
    if min(target) <= 0:
        raise ValueError(f"target_{'height' if target[0] <= 0 else 'width'} must be > 0.")
    height, width = tuple(tensor.shape)[-3:-1]
    cut = [max((side - length) // 2, 0) for side, length in ((height, target[0]), (width, target[1]))]
    added = [max((length - side) // 2, 0) for side, length in ((height, target[0]), (width, target[1]))]
    inside = crop_to_bounding_box(tensor, cut[0], cut[1], min(height, target[0]), min(width, target[1]))
    return pad_to_bounding_box(inside, added[0], added[1], *target)


def crop_to_bounding_box(
    image: to.TensorInput,
    offset_height: to.IntInput,
    offset_width: to.IntInput,
    target_height: to.IntInput,
    target_width: to.IntInput,
) -> Tensor:
    """The part of images that begins at an offset, of a height and a width.

    Raises:
        ValueError: It is not inside.

    Example:
        tf.image.crop_to_bounding_box(
            [[[1.0], [2.0]], [[3.0], [4.0]]], offset_height=1, offset_width=0, target_height=1, target_width=2
        )
    """
    tensor = pixels(image)
    top, left, height, width = map(to.whole, (offset_height, offset_width, target_height, target_width))
    for what, number in (("offset_width", left), ("offset_height", top)):
        if number < 0:
            raise ValueError(f"{what} must be >= 0.")
    for what, number in (("target_width", width), ("target_height", height)):
        if number <= 0:
            raise ValueError(f"{what} must be > 0.")
    rows, columns = tuple(tensor.shape)[-3:-1]
    if left + width > columns:
        raise ValueError("width must be >= target + offset.")
    if top + height > rows:
        raise ValueError("height must be >= target + offset.")
    index = ("...", (top, top + height, None), (left, left + width, None), _ALL)
    return call(ops.strided_slice, (tensor,), index=index)


def pad_to_bounding_box(
    image: to.TensorInput,
    offset_height: to.IntInput,
    offset_width: to.IntInput,
    target_height: to.IntInput,
    target_width: to.IntInput,
) -> Tensor:
    """Images padded with zeros: at an offset from the top and left, in an image of a height and a width.

    Raises:
        ValueError: They do not fit.

    Example:
        tf.image.pad_to_bounding_box([[[1.0], [2.0]]], offset_height=1, offset_width=0, target_height=2, target_width=3)
    """
    tensor = pixels(image)
    top, left, height, width = map(to.whole, (offset_height, offset_width, target_height, target_width))
    rows, columns = tuple(tensor.shape)[-3:-1]
    bottom, right = height - top - rows, width - left - columns
    if top < 0:
        raise ValueError("offset_height must be >= 0")
    if left < 0:
        raise ValueError("offset_width must be >= 0")
    if right < 0:
        raise ValueError("width must be <= target - offset")
    if bottom < 0:
        raise ValueError("height must be <= target - offset")
    if not any((top, left, bottom, right)):
        return tensor
    paddings = (*((0, 0),) * (tensor.ndim - 3), (top, bottom), (left, right), (0, 0))
    return call(ops.pad, (tensor,), paddings=paddings)


def central_crop(image: to.TensorInput, central_fraction: Any) -> Tensor:
    """The middle of images: that fraction of their height and width.

    Example:
        tf.image.central_crop(np.arange(16.0).reshape(4, 4, 1), central_fraction=0.5)
    """
    tensor, fraction = pixels(image), float(central_fraction)
    if not 0 < fraction <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    if fraction == 1:
        return tensor
    starts = [int((side - side * fraction) / 2) for side in tuple(tensor.shape)[-3:-1]]
    index = ("...", *((at, side - at, None) for at, side in zip(starts, tuple(tensor.shape)[-3:-1], strict=True)), _ALL)
    return call(ops.strided_slice, (tensor,), index=index)


# -------------------------------------------------------------------------------------------------------------- places
def flip_left_right(image: to.TensorInput) -> Tensor:
    """Images mirrored from left to right.

    Example:
        tf.image.flip_left_right([[[1.0], [2.0]], [[3.0], [4.0]]])
    """
    return call(ops.strided_slice, (pixels(image),), index=("...", _BACK, _ALL))


def flip_up_down(image: to.TensorInput) -> Tensor:
    """Images mirrored from top to bottom.

    Example:
        tf.image.flip_up_down([[[1.0], [2.0]], [[3.0], [4.0]]])
    """
    return call(ops.strided_slice, (pixels(image),), index=("...", _BACK, _ALL, _ALL))


def transpose(image: to.TensorInput, name: str | None = None) -> Tensor:
    """Images with their rows as columns.

    Example:
        tf.image.transpose([[[1.0], [2.0], [3.0]]])
    """
    tensor = pixels(image)
    perm = (1, 0, 2) if tensor.ndim == 3 else (0, 2, 1, 3)
    return call(ops.transpose, (tensor,), perm=perm)


def rot90(image: to.TensorInput, k: to.IntInput = 1, name: str | None = None) -> Tensor:
    """Images rotated counterclockwise by k times 90 degrees.

    Example:
        tf.image.rot90([[[1.0], [2.0]], [[3.0], [4.0]]])
    """
    tensor = pixels(image)
    match to.whole(k) % 4:
        case 1:
            return flip_up_down(transpose(tensor))
        case 2:
            return call(ops.strided_slice, (tensor,), index=("...", _BACK, _BACK, _ALL))
        case 3:
            return transpose(flip_up_down(tensor))
    return tensor


def grayscale_to_rgb(images: to.TensorInput, name: str | None = None) -> Tensor:
    """The one channel of images three times.

    Example:
        tf.image.grayscale_to_rgb([[[0.2], [0.5]]])
    """
    tensor = convert_to_tensor(images)
    if not tensor.ndim or tuple(tensor.shape)[-1] != 1:
        raise ValueError(f"images must have one channel, found shape {tensor.shape}")
    return call(ops.tile, (tensor,), multiples=(*(1,) * (tensor.ndim - 1), 3))


def image_gradients(image: to.TensorInput) -> tuple[Tensor, Tensor]:
    """The differences to the next row and to the next column of images [n, height, width, channels], 0 at the end.

    Example:
        tf.image.image_gradients([[[[1.0], [2.0]], [[3.0], [5.0]]]])
    """
    tensor = convert_to_tensor(image)
    if tensor.ndim != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {tensor.shape}.")
    results = []
    for axis in (1, 2):
        after: list[Any] = [_ALL] * 4
        before: list[Any] = [_ALL] * 4
        after[axis], before[axis] = (1, None, None), (None, -1, None)
        later = call(ops.strided_slice, (tensor,), index=tuple(after))
        difference = later - call(ops.strided_slice, (tensor,), index=tuple(before))
        paddings = tuple((0, 1) if k == axis else (0, 0) for k in range(4))
        results.append(call(ops.pad, (difference,), paddings=paddings))
    return results[0], results[1]


def extract_patches(
    images: to.TensorInput,
    sizes: to.IntsInput,
    strides: to.IntsInput,
    rates: to.IntsInput,
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The windows on images [n, height, width, c], each as a row of (window height · window width · c) elements.

    Example:
        tf.image.extract_patches(
            [[[[1.0], [2.0]], [[3.0], [4.0]]]],
            sizes=[1, 2, 2, 1],
            strides=[1, 1, 1, 1],
            rates=[1, 1, 1, 1],
            padding="VALID",
        )
    """
    attrs = {"sizes": lengths(sizes, 2, "sizes"), "strides": lengths(strides, 2, "strides")}
    rate = lengths(rates, 2, "rates")
    return call(ops.extract_patches, (convert_to_tensor(images),), **attrs, rates=rate, padding=word(padding))
