"""`tf.compat.v1.image.resize`: it aligns the first pixels of both images, or all four corners.

By hand: the function of TensorFlow 2 aligns the centers of pixels, and has other kernels.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.images.sizes import pixels, target_size
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.suggestions import with_nearest


class ResizeMethod:
    """The numbers of the methods of `tf.compat.v1.image.resize`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def resize(
    images: to.TensorInput,
    size: to.IntsInput,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Images resized to `size` [height, width]: float32; their own dtype by nearest, or if the size stays.

    Args:
        images: [height, width, channels] or [n, height, width, channels].
        size: The new height and width.
        method: A number of ResizeMethod, or "bilinear", "nearest", "bicubic" or "area".
        align_corners: Whether the centers of the corner pixels are aligned.
        preserve_aspect_ratio: Whether the new image keeps the ratio of its sides, and fits into `size`.
        name: Accepted, without effect.

    Raises:
        ValueError: Images of another rank than 3 or 4, a size that is not two positive lengths, an unknown method.

    Example:
        tf.compat.v1.image.resize([[[1.0], [2.0]]], size=[1, 4])
    """
    tensor = pixels(images, "images")
    height, width = tuple(tensor.shape)[-3:-1]
    target = target_size((height, width), size, preserve_aspect_ratio)
    kernel = _METHODS.get(method)
    if kernel is None:
        names = [name for name in _METHODS if isinstance(name, str)]
        raise ValueError(with_nearest(f"Resize method is not implemented: {method}", method, names))
    if target == (height, width):
        return tensor
    steps = [_step(*lengths, align_corners) for lengths in ((height, target[0]), (width, target[1]))]
    if kernel is _nearest:
        for axis, length, count, step in zip((-3, -2), (height, width), target, steps, strict=True):
            tensor = call(ops.gather, (tensor, constant(_nearest(length, count, step, align_corners))), axis=axis)
        return tensor
    if tensor.dtype is not dtypes.float32:
        tensor = call(ops.cast, (tensor,), dtype=dtypes.float32.np)
    rows, columns = (
        constant(kernel(length, count, step))
        for length, count, step in zip((height, width), target, steps, strict=True)
    )
    letters = "nhwc"[-tensor.ndim :]
    across = call(ops.einsum, (columns, tensor), equation=f"xw,{letters}->{letters.replace('w', 'x')}")
    return call(ops.einsum, (rows, across), equation=f"yh,{letters}->{letters.replace('h', 'y')}")


def _step(length: int, count: int, align_corners: bool) -> np.float32:
    """Returns the size of a new pixel in old pixels."""
    if align_corners and count > 1:
        return np.float32(length - 1) / np.float32(count - 1)
    return np.float32(length) / np.float32(count)


def _nearest(length: int, count: int, step: np.float32, align_corners: bool) -> HostArray:
    """Returns the index of the old pixel for each new one, int32 [count]."""
    positions = np.arange(count, dtype=np.float32) * step
    indices = np.floor(positions + np.float32(0.5)) if align_corners else np.floor(positions)
    nearest: HostArray = np.clip(indices, 0, length - 1).astype(np.int32)
    return nearest


# Each returns the weights of the old pixels in each new one, float32 [count, length].
def _bilinear(length: int, count: int, step: np.float32) -> HostArray:
    positions = np.arange(count, dtype=np.float32) * step
    lower = np.floor(positions).astype(np.int64)
    share = (positions - lower).astype(np.float32)
    return _weights(length, [(lower, 1 - share), (lower + 1, share)])


def _bicubic(length: int, count: int, step: np.float32) -> HostArray:
    """Keys' kernel with the slope -0.75, looked up at 1,024 distances as TensorFlow does."""
    positions = np.arange(count, dtype=np.float32) * step
    lower = np.floor(positions).astype(np.int64)
    distance = np.rint((positions - lower).astype(np.float32) * _DISTANCES) / _DISTANCES
    near = [((_SLOPE + 2) * x - (_SLOPE + 3)) * x * x + 1 for x in (distance, 1 - distance)]
    far = [((_SLOPE * x - 5 * _SLOPE) * x + 8 * _SLOPE) * x - 4 * _SLOPE for x in (distance + 1, 2 - distance)]
    return _weights(length, list(zip((lower - 1, lower, lower + 1, lower + 2), (far[0], *near, far[1]), strict=True)))


def _area(length: int, count: int, step: np.float32) -> HostArray:
    starts = np.arange(count, dtype=np.float32) * step
    ends = np.arange(1, count + 1, dtype=np.float32) * step
    first = np.floor(starts).astype(np.int64)
    pairs = []
    for offset in range(int((np.ceil(ends) - first).max())):
        pixel = first + offset
        covered = np.minimum(pixel + 1, ends) - np.maximum(pixel, starts)
        pairs.append((pixel, np.maximum(covered, 0) / step))
    return _weights(length, pairs)


def _weights(length: int, pairs: list[tuple[HostArray, HostArray]]) -> HostArray:
    """Adds up weights at indices; an index beyond the border counts for the pixel at the border."""
    matrix = np.zeros((len(pairs[0][0]), length), np.float32)
    for indices, weights in pairs:
        np.add.at(matrix, (np.arange(len(indices)), np.clip(indices, 0, length - 1)), weights)
    return matrix


_SLOPE: Final = -0.75
_DISTANCES: Final = 1024
_METHODS: Final[dict[Any, Any]] = {
    ResizeMethod.BILINEAR: _bilinear,
    ResizeMethod.NEAREST_NEIGHBOR: _nearest,
    ResizeMethod.BICUBIC: _bicubic,
    ResizeMethod.AREA: _area,
    "bilinear": _bilinear,
    "nearest": _nearest,
    "bicubic": _bicubic,
    "area": _area,
}
