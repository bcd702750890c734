"""Resizing of images: each row and column of the result is a weighted sum of some of the image's.

The weights are those of TensorFlow's kernels for each method. Resizing is linear: its transpose has the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, on_gpu, sample
from teletape_engine.catalogue.families import linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import FLOATING, REAL, Shape, Spec, shape_text, wide
from teletape_engine.suggestions import with_nearest

_F32 = np.float32
_FEW_TAPS: Final = 32  # weights of one element; with more of them a product of matrices is faster
_TABLE: Final = 1 << 10  # offsets for which TensorFlow has cubic weights


# ------------------------------------------------------------------------------------------------------------ kernels
class ResizeKernel(NamedTuple):
    """A weight by distance, which is zero from `radius` on."""

    radius: float
    weight: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def _triangle(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(x < 1, 1 - x, 0)


def _lanczos(radius: float) -> ResizeKernel:
    def weight(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        angle = np.pi * np.maximum(x, 1e-3)
        inner = radius * np.sin(angle) * np.sin(angle / radius) / (angle * angle)
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, inner))

    return ResizeKernel(radius, weight)


def _gaussian(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.where(x < 1.5, np.exp(-x * x / (2 * 0.5**2)), 0)


def _keys(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    near, far = (7 / 6 * x - 2) * x * x + 8 / 9, ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


_KERNELS: Final[dict[str, ResizeKernel]] = {
    "bilinear": ResizeKernel(1.0, _triangle),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": ResizeKernel(1.5, _gaussian),
    "bicubic": ResizeKernel(2.0, _keys),
    "mitchellcubic": ResizeKernel(2.0, _mitchell),
}
METHODS: Final = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")


# ------------------------------------------------------------------------------------------------------------ weights
@lru_cache(maxsize=256)
def weights(length: int, size: int, method: str, antialias: bool) -> npt.NDArray[Any]:
    """The matrix [size, length] whose product with an axis of that length is the axis resized; float32."""
    matrix = np.zeros((size, length), _F32)
    if size and length:
        if method == "nearest":
            _nearest(matrix)
        elif method == "area":
            _area(matrix)
        elif method == "bilinear" and not antialias:
            _bilinear(matrix)
        elif method == "bicubic" and not antialias:
            _bicubic(matrix)
        else:
            _sampled(matrix, _KERNELS[method], antialias)
    matrix.flags.writeable = False
    return matrix


def _centres(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Where the centre of each element of the result is on the axis, half an element after its beginning."""
    size, length = matrix.shape
    return (np.arange(size, dtype=_F32) + _F32(0.5)) * (_F32(length) / _F32(size))


def _nearest(matrix: npt.NDArray[Any]) -> None:
    size, length = matrix.shape
    matrix[np.arange(size), np.minimum(np.floor(_centres(matrix)).astype(int), length - 1)] = 1


def _bilinear(matrix: npt.NDArray[Any]) -> None:
    size, length = matrix.shape
    at = _centres(matrix) - _F32(0.5)
    below, rows = np.floor(at), np.arange(size)
    np.add.at(matrix, (rows, np.maximum(below.astype(int), 0)), 1 - (at - below))
    np.add.at(matrix, (rows, np.minimum(np.ceil(at).astype(int), length - 1)), at - below)


def _bicubic(matrix: npt.NDArray[Any]) -> None:
    size, length = matrix.shape
    at = _centres(matrix) - _F32(0.5)
    below = np.floor(at).astype(int)
    offset = np.rint((at - below) * _TABLE) / _TABLE
    distances = np.stack([1 + offset, offset, 1 - offset, 2 - offset], axis=1)
    indices = below[:, None] + np.arange(-1, 3)
    taken = np.where((indices >= 0) & (indices < length), _keys(distances), 0)
    taken /= taken.sum(axis=1, keepdims=True)
    np.add.at(matrix, (np.arange(size)[:, None], np.clip(indices, 0, length - 1)), taken)


def _area(matrix: npt.NDArray[Any]) -> None:
    size, length = matrix.shape
    scale = _F32(length) / _F32(size)
    for row in range(size):
        start, end = float(row * scale), float((row + 1) * scale)
        first, last = math.floor(start), min(math.ceil(end), length)
        for j in range(first, max(last, first + 1)):
            matrix[row, min(j, length - 1)] += (min(j + 1, end) - max(j, start)) / scale


def _sampled(matrix: npt.NDArray[Any], kernel: ResizeKernel, antialias: bool) -> None:
    length = matrix.shape[1]
    centres = _centres(matrix)[:, None].astype(np.float64)
    stretch = max(length / matrix.shape[0], 1.0) if antialias else 1.0
    reach, elements = kernel.radius * stretch, np.arange(length)
    inside = (elements >= np.ceil(centres - reach - 0.5)) & (elements <= np.floor(centres + reach - 0.5))
    taken = np.where(inside, kernel.weight(np.abs(elements + 0.5 - centres) / stretch), 0)
    total = taken.sum(axis=1, keepdims=True)
    matrix[...] = np.where(np.abs(total) >= 1000 * np.finfo(_F32).tiny, taken / np.where(total == 0, 1, total), 0)


@lru_cache(maxsize=256)
def _taps(length: int, size: int, method: str, antialias: bool, back: bool) -> tuple[Any, Any] | None:
    """(indices, weights) [n, size] of the weights that are not zero; None: a product of matrices is faster."""
    matrix = weights(length, size, method, antialias)
    matrix = matrix.T if back else matrix
    most = int((matrix != 0).sum(axis=1).max(initial=0))
    if not 0 < most <= _FEW_TAPS:
        return None
    indices = np.argsort(matrix == 0, axis=1, kind="stable")[:, :most]
    return indices.T.copy(), np.take_along_axis(matrix, indices, axis=1).T.copy()


# ---------------------------------------------------------------------------------------------------------------- ops
def _check(x: Spec, size: Ints, method: str) -> None:
    check_dtypes("Resize", (x,), REAL if method == "nearest" else FLOATING)
    if method not in METHODS:
        refusal = f"method must be one of {', '.join(METHODS)}, found {method!r}"
        raise InvalidArgumentError(with_nearest(refusal, method, METHODS))
    if x.ndim < 3:
        raise InvalidArgumentError(f"images need height, width and channels, found shape {shape_text(x.shape)}")
    if len(size) != 2 or min(size) < 1:
        raise InvalidArgumentError(f"size must be two positive lengths, height and width, found {list(size)}")
    if not x.shape[-3] or not x.shape[-2]:
        raise InvalidArgumentError("input image must be of non-zero size")


def _resized(x: Spec, size: Ints) -> Spec:
    return x.with_shape((*x.shape[:-3], *size, x.shape[-1]))


def _spec(x: Spec, *, size: Ints, method: str, antialias: bool) -> Spec:
    _check(x, size, method)
    return _resized(x, size)


def _back_spec(x: Spec, *, shape: Shape, method: str, antialias: bool) -> Spec:
    _check(x.with_shape(shape), x.shape[-3:-1], method)
    if _resized(x.with_shape(shape), x.shape[-3:-1]).shape != x.shape:
        raise InvalidArgumentError(f"images of {shape_text(shape)} do not resize to {shape_text(x.shape)}")
    return x.with_shape(shape)


def _along(
    xp: ArrayModule, x: Array, axis: int, length: int, size: int, method: str, antialias: bool, back: bool
) -> Array:
    """The product of an axis of x, counted from the end, with the weights, or with their transpose."""
    if length == size and method in ("nearest", "bilinear", "area"):
        return x
    taps = _taps(length, size, method, antialias, back)
    if taps is None:
        matrix = xp.asarray(weights(length, size, method, antialias), x.dtype)
        return xp.moveaxis(xp.tensordot(matrix.T if back else matrix, x, (1, x.ndim + axis)), 0, axis)
    total: Any = None
    shape = (-1, *(1,) * (-axis - 1))
    for indices, weight in zip(*taps, strict=True):
        term = xp.take(x, xp.asarray(indices), axis=axis)
        if method != "nearest" or back:
            term *= xp.asarray(weight, x.dtype).reshape(shape)
        if total is None:
            total = term
        else:
            total += term
    return total


def _workspace(x: Spec, out: Shape) -> int:
    largest = max(math.prod(x.shape[:-3]) * max(x.shape[-3], out[-3]) * max(x.shape[-2], out[-2]) * x.shape[-1], 1)
    sides = 4 * (x.shape[-3] * out[-3] + x.shape[-2] * out[-2])
    return 5 * largest * wide(x.dtype).itemsize + 8 * sides + x.nbytes


_CASES: Final[tuple[tuple[Shape, dict[str, Any]], ...]] = (
    ((1, 3, 4, 2), {"size": (5, 6)}),
    ((2, 4, 5, 1), {"size": (2, 3), "antialias": True}),
    ((3, 3, 1), {"size": (6, 3), "method": "nearest"}),
    ((1, 4, 4, 1), {"size": (3, 7), "method": "bicubic"}),
    ((1, 4, 5, 1), {"size": (3, 2), "method": "area"}),
    ((4, 3, 2), {"size": (2, 4), "method": "lanczos3"}),
)


@linear(
    infer=_spec,
    vjp=lambda ct, x_spec, size, method, antialias: ops.resize_backprop(
        ct, shape=x_spec.shape, method=method, antialias=antialias
    ),
    batch=lambda record, args, batched, attrs: record(*args, **attrs),
    samples=[sample(shape, seed=i, **at) for i, (shape, at) in enumerate(_CASES)],
    tf=(by_hand("image.resize", "the result is float32 for most methods, and the ratio of sides may be preserved"),),
    workspace=lambda x, *, size, method, antialias: _workspace(x, _resized(x, size).shape),
    reach=Reach.IMAGES,
)
@on_gpu(up="tables of indices and weights")
def resize(xp: ArrayModule, x: Array, *, size: Ints, method: str = "bilinear", antialias: bool = False) -> Array:
    """Images resized to `size` [height, width], as TensorFlow does by bilinear, nearest, bicubic, area, and so on.

    `method` is bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic; `antialias` widens the
    kernels if images become smaller. nearest keeps the elements as they are, of integers too.
    """
    y = x if method == "nearest" else x.astype(wide(x.dtype), copy=False)
    y = _along(xp, y, -3, x.shape[-3], size[0], method, antialias, False)
    y = _along(xp, y, -2, x.shape[-2], size[1], method, antialias, False)
    return xp.ascontiguousarray(y).astype(x.dtype, copy=y is x)


@linear(
    infer=_back_spec,
    vjp=lambda ct, shape, x_spec, method, antialias: resize(
        ct, size=x_spec.shape[-3:-1], method=method, antialias=antialias
    ),
    batch=lambda record, args, batched, attrs: record(*args, **{**attrs, "shape": (args[0].shape[0], *attrs["shape"])}),
    samples=[
        sample((*shape[:-3], *at["size"], shape[-1]), shape=shape, seed=i, **{k: at[k] for k in at if k != "size"})
        for i, (shape, at) in enumerate(_CASES)
    ],
    workspace=lambda x, *, shape, method, antialias: _workspace(x, shape),
    reach=Reach.IMAGES,
)
@on_gpu(up="tables of indices and weights")
def resize_backprop(
    xp: ArrayModule, x: Array, *, shape: Shape, method: str = "bilinear", antialias: bool = False
) -> Array:
    """The transpose of resize for images of `shape`: each element of x spread over those that it was computed from."""
    y = x.astype(wide(x.dtype), copy=False)
    y = _along(xp, y, -2, shape[-2], x.shape[-2], method, antialias, True)
    y = _along(xp, y, -3, shape[-3], x.shape[-3], method, antialias, True)
    return xp.ascontiguousarray(y).astype(x.dtype, copy=y is x)
