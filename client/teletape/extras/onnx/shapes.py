"""ONNX's operators that arrange elements: shapes, slices, indices, pads, sizes of images."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape._generated.cumulative import cumsum
from teletape._generated.elementwise.arithmetic import floormod
from teletape._generated.linalg.diagonal import band_part
from teletape._generated.nn.blocks import depth_to_space, space_to_depth
from teletape._generated.shapes.cast import cast
from teletape._generated.shapes.index import gather
from teletape._generated.shapes.nd import tensor_scatter_nd_update
from teletape._generated.shapes.shape import expand_dims, reshape, squeeze, tile, transpose
from teletape.core.calls.dispatch import constant
from teletape.extras.onnx.operators import Place, operator
from teletape.extras.onnx.sizes import host, shape_of, slice_of, to_larger, to_shape
from teletape.tf.ops.arrays.create import one_hot
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.arrays.places import gather_nd, tensor_scatter_nd_add
from teletape.tf.ops.arrays.rearrange import concat, split, where

_TF_PADS: Final = {"constant": "CONSTANT", "reflect": "REFLECT"}


@operator("Shape")
def _shape(x: Any, *, start: int = 0, end: int | None = None, place: Place) -> Any:
    return host(shape_of(x, place.open_axes)[start:end])


@operator("Size")
def _size(x: Any, *, place: Place) -> Any:
    return host(np.prod(shape_of(x, place.open_axes)) if x.shape.rank else np.int64(1))


@operator("Reshape", hosts=("shape",))
def _reshape(x: Any, shape: Any, *, allowzero: int = 0, place: Place) -> Any:
    return to_shape(x, list(shape), place.open_axes, bool(allowzero))


@operator("Flatten")
def _flatten(x: Any, *, axis: int = 1, place: Place) -> Any:
    lengths = list(shape_of(x, place.open_axes))
    axis = axis % len(lengths) if axis < 0 else axis
    rows, columns = (np.prod(part, initial=1) for part in (np.array(lengths[:axis], object), lengths[axis:]))
    return to_shape(x, [rows, columns], place.open_axes, allowzero=True)


@operator("Transpose")
def _transpose(x: Any, *, perm: tuple[int, ...] | None = None) -> Any:
    return transpose(x, perm)


@operator("Concat")
def _concat(*values: Any, axis: int) -> Any:
    return concat(values, axis)


@operator("Split", hosts=("sizes",), results=None)
def _split(x: Any, sizes: Any = None, *, axis: int = 0, place: Place) -> Any:
    return _parts(x, sizes, axis, place.outputs)


@operator("Split", since=18, hosts=("sizes",), results=None)
def _split_18(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int = 0, place: Place) -> Any:
    return _parts(x, sizes, axis, num_outputs or place.outputs)


def _parts(x: Any, sizes: Any, axis: int, number: int) -> Any:
    if sizes is None:
        length, largest = x.shape[axis], -(-x.shape[axis] // number)
        sizes = [min(largest, max(length - i * largest, 0)) for i in range(number)]
    return split(x, [int(size) for size in sizes], axis)


@operator("Squeeze", hosts=("axes",))
def _squeeze(x: Any, axes: Any = None) -> Any:
    return squeeze(x, None if axes is None else axes.tolist())


@operator("Unsqueeze", hosts=("axes",))
def _unsqueeze(x: Any, axes: Any) -> Any:
    rank = len(x.shape) + len(axes)
    for axis in sorted(int(axis) % rank for axis in axes):
        x = expand_dims(x, axis)
    return x


@operator("Expand", hosts=("shape",))
def _expand(x: Any, shape: Any) -> Any:
    return to_larger(x, list(shape))


@operator("ConstantOfShape", hosts=("shape",))
def _filled(shape: Any, *, value: Any = None) -> Any:
    value = np.zeros(1, np.float32) if value is None else value
    return to_larger(constant(value.reshape((1,) * len(shape))), list(shape))


@operator("Tile", hosts=("repeats",))
def _tile(x: Any, repeats: Any) -> Any:
    return tile(x, repeats.tolist())


@operator("Gather")
def _gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return gather(x, _forward(indices, x.shape[axis]), axis=axis)


def _forward(indices: Any, length: int) -> Any:
    """Returns indices that count from the start."""
    return where(indices < 0, indices + length, indices)


@operator("GatherElements")
def _gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    rank = len(x.shape)
    axis %= rank
    order = [*(i for i in range(rank) if i != axis), axis]
    sizes = list(indices.shape)
    parts = [slice(None) if i == axis or sizes[i] == x.shape[i] else slice(0, sizes[i]) for i in range(rank)]
    rows, columns = transpose(x[tuple(parts)], order), transpose(_forward(indices, x.shape[axis]), order)
    return transpose(gather(rows, columns, axis=rank - 1, batch_dims=rank - 1), np.argsort(order).tolist())


@operator("GatherND")
def _gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    lengths = constant(np.array(x.shape[batch_dims : batch_dims + indices.shape[-1]], np.int64))
    return gather_nd(x, floormod(indices, cast(lengths, indices.dtype)), batch_dims=batch_dims)


@operator("ScatterND", values={"reduction": ("none",)})
def _scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    return _scattered(x, indices, updates, reduction)


@operator("ScatterND", since=16, values={"reduction": ("none", "add")})
def _scatter_nd_16(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    return _scattered(x, indices, updates, reduction)


def _scattered(x: Any, indices: Any, updates: Any, reduction: str) -> Any:
    lengths = cast(constant(np.array(x.shape[: indices.shape[-1]], np.int64)), indices.dtype)
    scatter = tensor_scatter_nd_add if reduction == "add" else tensor_scatter_nd_update
    return scatter(x, floormod(indices, lengths), updates)


@operator("Slice", hosts=("starts", "ends", "axes", "steps"))
def _slice(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    parts = [slice(None)] * len(x.shape)
    for number, axis in enumerate(range(len(starts)) if axes is None else axes):
        step = 1 if steps is None else int(steps[number])
        parts[axis] = slice_of(int(starts[number]), int(ends[number]), step, x.shape[axis])
    return x[tuple(parts)]


@operator("Pad", hosts=("pads",), values={"mode": ("constant", "reflect", "edge")})
def _pad(x: Any, pads: Any, value: Any = None, *, mode: str = "constant") -> Any:
    return _padded(x, pads, value, None, mode)


@operator("Pad", since=18, hosts=("pads", "axes"), values={"mode": ("constant", "reflect", "edge", "wrap")})
def _pad_18(x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    return _padded(x, pads, value, axes, mode)


def _padded(x: Any, pads: Any, value: Any, axes: Any, mode: str) -> Any:
    rank = len(x.shape)
    amounts = [[0, 0] for _ in range(rank)]
    named = range(rank) if axes is None else axes
    for number, axis in enumerate(named):
        amounts[axis] = [int(pads[number]), int(pads[number + len(pads) // 2])]
    if any(amount < 0 for pair in amounts for amount in pair):
        ends = [x.shape[axis] + min(after, 0) for axis, (_, after) in enumerate(amounts)]
        x = x[tuple([slice(max(-before, 0), end) for (before, _), end in zip(amounts, ends, strict=True)])]
        amounts = [[max(before, 0), max(after, 0)] for before, after in amounts]
    if mode == "constant":
        if value is None:
            return pad(x, amounts)
        return where(pad(cast(x * 0 + 1, "bool"), amounts), pad(x, amounts), reshape(value, ()))
    if mode == "reflect":
        return pad(x, amounts, "REFLECT")
    for axis, (before, after) in enumerate(amounts):
        if before or after:
            positions = np.arange(-before, x.shape[axis] + after)
            positions = positions % x.shape[axis] if mode == "wrap" else np.clip(positions, 0, x.shape[axis] - 1)
            x = gather(x, positions, axis=axis)
    return x


@operator("Range", hosts=("start", "limit", "delta"))
def _range(start: Any, limit: Any, delta: Any) -> Any:
    return np.arange(int(start), int(limit), int(delta))


@operator("OneHot", hosts=("depth",))
def _one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    count = int(depth.reshape(-1)[0])
    whole = cast(indices, "int64")
    ones = one_hot(where(whole < 0, whole + count, whole), count, axis=axis, dtype=values.dtype)
    return values[0] + ones * (values[1] - values[0])


@operator("Trilu", since=14, hosts=("k",))
def _triangle(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    if x.dtype.name == "bool":
        return cast(_triangle(cast(x, "int32"), k, upper=upper), "bool")
    shift = 0 if k is None else int(k.reshape(-1)[0])
    if upper:
        return band_part(x, -shift, -1) if shift <= 0 else x - band_part(x, -1, shift - 1)
    return band_part(x, -1, shift) if shift >= 0 else x - band_part(x, -shift - 1, -1)


@operator("CumSum", since=14, hosts=("axis",))
@operator("CumSum", hosts=("axis",))
def _cumulative(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return cumsum(x, int(axis.reshape(-1)[0]), bool(exclusive), bool(reverse))


@operator("DepthToSpace", values={"mode": ("DCR", "CRD")})
def _depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    if mode == "CRD":
        _, channels, height, width = x.shape
        rows = reshape(x, [-1, channels // blocksize**2, blocksize, blocksize, height, width])
        rows = transpose(rows, [0, 1, 4, 2, 5, 3])
        return reshape(rows, [-1, channels // blocksize**2, height * blocksize, width * blocksize])
    return depth_to_space(x, blocksize, "NCHW")


@operator("SpaceToDepth")
def _space_to_depth(x: Any, *, blocksize: int) -> Any:
    return space_to_depth(x, blocksize, "NCHW")
