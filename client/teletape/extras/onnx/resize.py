"""ONNX's Resize: a matrix for each axis, whose rows are the weights of an output's neighbours."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape._generated.linalg.products import matmul
from teletape._generated.shapes.index import gather
from teletape._generated.shapes.shape import transpose
from teletape.core.calls.dispatch import constant
from teletape.extras.onnx.operators import operator
from teletape.extras.onnx.sizes import Size

_FRAMES: Final = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
_RESIZE: Final = {
    "mode": ("nearest", "linear", "cubic"),
    "coordinate_transformation_mode": _FRAMES,
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
}


@operator("Resize", hosts=("roi", "scales", "sizes"), values=_RESIZE)
def _resize(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
) -> Any:
    return _resized(
        x, range(len(x.shape)), scales, sizes, mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a,
        exclude_outside,
    )  # fmt: skip


@operator(
    "Resize",
    since=18,
    hosts=("roi", "scales", "sizes"),
    values={**_RESIZE, "antialias": (0,), "keep_aspect_ratio_policy": ("stretch",)},
)
def _resize_18(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    axes: tuple[int, ...] | None = None,
    antialias: int = 0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
) -> Any:
    return _resized(
        x, range(len(x.shape)) if axes is None else axes, scales, sizes, mode, coordinate_transformation_mode,
        nearest_mode, cubic_coeff_a, exclude_outside,
    )  # fmt: skip


def _resized(
    x: Any, axes: Any, scales: Any, sizes: Any, mode: str, frame: str, nearest: str, a: float, inside: int
) -> Any:
    for number, axis in enumerate(axes):
        length = x.shape[axis]
        by_size = sizes is not None and np.size(sizes)
        if by_size and isinstance(sizes[number], Size):
            continue  # an open axis keeps its size
        new = int(sizes[number]) if by_size else int(np.floor(length * scales[number]))
        scale = new / length if by_size else float(scales[number])
        if scale == 1:
            continue
        at = _positions(np.arange(new, dtype=np.float64), new, length, scale, frame)
        if mode == "nearest":
            x = gather(x, np.clip(_NEAREST[nearest](at), 0, length - 1).astype(np.int64), axis=axis)
            continue
        weights = _neighbours(at, length, mode, a, bool(inside)).astype(x.dtype.as_numpy_dtype)
        order = [*(i for i in range(len(x.shape)) if i != axis), axis]
        x = transpose(matmul(transpose(x, order), constant(weights.T)), np.argsort(order).tolist())
    return x


def _positions(out: Any, new: int, length: int, scale: float, frame: str) -> Any:
    if frame == "asymmetric":
        return out / scale
    if frame == "align_corners":
        return out * (length - 1) / (new - 1) if new > 1 else out * 0
    if frame == "pytorch_half_pixel" and new == 1:
        return out * 0
    return (out + 0.5) / scale - 0.5


_NEAREST: Final = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _neighbours(at: Any, length: int, mode: str, a: float, inside: bool) -> Any:
    """Returns a matrix: the weights of the elements of an axis in each element of the resized one."""
    weights = np.zeros((len(at), length))
    if mode == "linear":
        at = np.clip(at, 0, length - 1)
    first = np.floor(at).astype(int)
    for offset in (0, 1) if mode == "linear" else (-1, 0, 1, 2):
        distance = np.abs(at - (first + offset))
        if mode == "linear":
            part = 1 - distance
        else:
            near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
            far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
            part = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
        column = first + offset
        if inside:
            part = np.where((column >= 0) & (column < length), part, 0)
        np.add.at(weights, (np.arange(len(at)), np.clip(column, 0, length - 1)), part)
    return weights / weights.sum(1, keepdims=True) if inside else weights
