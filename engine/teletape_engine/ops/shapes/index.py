"""Slices, entries and segments of an array along an axis, and the transposes that add them into zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.scatter import add_rows, check_ids, check_indices
from teletape_engine.catalogue.attributes import Attrs, Axis, Slices
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.shapes.shape import reshape
from teletape_engine.spec import DTYPES, INDEX, KERNEL_NAMES, NUMERIC, PLACES, Shape, Spec, axis_in, shape_text


# ------------------------------------------------------------------------------------------------------------ slices
@lru_cache(maxsize=1024)
def _key(index: Slices) -> tuple[Any, ...]:
    """The index as NumPy takes it."""
    return tuple(slice(*part) if isinstance(part, tuple) else ... if part == "..." else part for part in index)


def sliced(shape: Shape, index: Slices) -> Shape:
    """The shape of `x[index]` for an x of `shape`.

    Raises:
        InvalidArgumentError: An integer out of bounds, a step of zero, more parts than axes.
    """
    used = sum(part is not None and part != "..." for part in index)
    if used and not shape:
        raise InvalidArgumentError("Attempting to slice scalar input.")
    if used > len(shape):
        raise InvalidArgumentError(f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims")
    out: list[int] = []
    axis = 0
    for i, part in enumerate(index):
        if part is None:
            out.append(1)
        elif isinstance(part, str):
            out.extend(shape[axis : axis + len(shape) - used])
            axis += len(shape) - used
        elif isinstance(part, int):
            at = part + shape[axis] if part < 0 else part
            if not 0 <= at < shape[axis]:
                raise InvalidArgumentError(f"slice index {at} of dimension {axis} out of bounds.")
            axis += 1
        else:
            if part[2] == 0:
                raise InvalidArgumentError(f"strides[{i}] must be non-zero")
            out.append(len(range(*slice(*part).indices(shape[axis]))))
            axis += 1
    return (*out, *shape[axis:])


def _after_batch(index: Slices) -> Slices:
    return ((None, None, None), *index)


_INDICES: tuple[tuple[Shape, Slices], ...] = (
    ((3, 4), (1,)),
    ((3, 4), ((None, None, None), (1, None, None))),
    ((3, 4), ("...", -1)),
    ((3, 4), ((None, None, -1), None, (None, None, 2))),
    ((2, 3, 4), (None, "...", (-3, 10, None))),
    ((3, 4), (2, 3)),
    ((4,), ((3, 1, None),)),
    ((4,), ((-1, -4, -2),)),
    ((3,), ()),
    ((), ("...", None)),
)


@linear(
    infer=lambda x, *, index: x.with_shape(sliced(x.shape, index)),
    vjp=lambda ct, x_spec, index: ops.strided_slice_grad(ct, index=index, shape=x_spec.shape),
    batch=lambda record, args, batched, attrs: record(args[0], index=_after_batch(attrs["index"])),
    samples=[sample(shape, index=index) for shape, index in _INDICES],
    views=True,
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
def strided_slice(xp: ArrayModule, x: Array, *, index: Slices) -> Array:
    """x[index], as Python indexes.

    `index` lists integers, [start, stop, step] triples (each or null), "..." at most once, and null for a new axis.
    """
    return x[_key(index)]


def _slice_grad_spec(ct: Spec, *, index: Slices, shape: Shape) -> Spec:
    if sliced(shape, index) != ct.shape:
        raise InvalidArgumentError(
            f"shape {shape_text(ct.shape)} does not fit the part {shape_text(sliced(shape, index))} of "
            f"{shape_text(shape)}"
        )
    return ct.with_shape(shape)


def _batch_slice_grad(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (ct,) = args
    return record(ct, index=_after_batch(attrs["index"]), shape=(ct.shape[0], *attrs["shape"]))


@linear(
    infer=_slice_grad_spec,
    vjp=lambda ct, index: strided_slice(ct, index=index),
    batch=_batch_slice_grad,
    samples=[sample(sliced(shape, index), index=index, shape=shape) for shape, index in _INDICES],
    reach=Reach.MOVES,
)
def strided_slice_grad(xp: ArrayModule, x: Array, *, index: Slices, shape: Shape) -> Array:
    """Zeros of `shape` with x at `index`: the transpose of strided_slice."""
    out = xp.zeros(shape, x.dtype)
    out[_key(index)] = x
    return out


# ------------------------------------------------------------------------------------------------------------ gather
def _check_gather(params: Spec, indices: Spec, axis: int, batch_dims: int) -> tuple[int, int]:
    """Returns axis and batch_dims counted from the front.

    Raises:
        InvalidArgumentError: One is out of range, or the batch axes differ.
    """
    if indices.dtype not in PLACES:
        raise InvalidArgumentError(
            f"Value for attr 'Tindices' of {KERNEL_NAMES[indices.dtype]} is not in the list of allowed values: "
            "int16, int32, int64"
        )
    if params.ndim == 0:
        raise InvalidArgumentError("params must be at least 1 dimensional")
    if not -params.ndim <= axis < params.ndim:
        raise InvalidArgumentError(
            f"Shape must be at least rank {axis + 1 if axis >= 0 else -axis} but is rank {params.ndim}"
        )
    at, batch = axis % params.ndim, batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(indices.ndim, at):
        raise InvalidArgumentError(
            f"batch_dims {batch_dims} must be at most axis {at} and the {indices.ndim} dimensions of indices"
        )
    if params.shape[:batch] != indices.shape[:batch]:
        raise InvalidArgumentError(
            f"params {shape_text(params.shape)} and indices {shape_text(indices.shape)} must agree in the first "
            f"{batch} dimensions"
        )
    return at, batch


def _gather_spec(params: Spec, indices: Spec, *, axis: int, batch_dims: int) -> Spec:
    at, batch = _check_gather(params, indices, axis, batch_dims)
    return params.with_shape((*params.shape[:at], *indices.shape[batch:], *params.shape[at + 1 :]))


def _gather_vjp(
    ct: Operand, indices: Operand, params_spec: Spec, indices_spec: Spec, axis: int, batch_dims: int
) -> Operand | SparseGradient:
    if indices_spec.dtype not in INDEX:
        indices = ops.cast(indices, dtype=DTYPES["int32"])
    if axis == 0 and batch_dims == 0:
        n = indices_spec.size
        return SparseGradient(reshape(ct, shape=(n, *params_spec.shape[1:])), reshape(indices, shape=(n,)), params_spec)
    at, batch = _check_gather(params_spec, indices_spec, axis, batch_dims)
    return unsorted_segment_sum(ct, indices, num_segments=params_spec.shape[at], axis=at, batch_dims=batch)


def _batch_pair(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs, *, ndim: int) -> Operand:
    """The batch rule of gather and its transpose: one more axis before `axis`, a batch dimension if both have it.

    `ndim` is the rank, without the batch, from which a negative axis counts.
    """
    values, indices = args
    axis = axis_in(attrs["axis"], ndim)
    batch_dims = attrs["batch_dims"] + (len(indices.shape) - batched[1] if attrs["batch_dims"] < 0 else 0)
    if not batched[1] and batch_dims == 0:
        return record(values, indices, **{**attrs, "axis": axis + 1})
    return record(*batch_all(args, batched), **{**attrs, "axis": axis + 1, "batch_dims": batch_dims + 1})


def _batch_gather(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    return _batch_pair(record, args, batched, attrs, ndim=len(args[0].shape) - batched[0])


@op(
    infer=_gather_spec,
    vjp=[_gather_vjp, NON_DIFFERENTIABLE],
    jvp=[
        lambda t, indices, axis, batch_dims: ops.gather(t, indices, axis=axis, batch_dims=batch_dims),
        NON_DIFFERENTIABLE,
    ],
    batch=_batch_gather,
    samples=[
        sample((4,), np.array([0, 0, 2])),
        sample((4, 2), np.array([[1, 3], [1, 0]], np.int32)),
        sample((3, 2), np.array(2)),
        sample((2, 3, 2), np.array([2, 0, 0, 1]), axis=1),
        sample((2, 3), np.array([[2], [1]]), axis=-1),
        sample((2, 3, 4), np.array([[2, 0], [1, 1]]), axis=1, batch_dims=1),
        sample((2, 3), np.array([2, 0]), axis=1, batch_dims=1),
        sample((2, 2, 3), np.array([[2, 0], [1, 1]]), axis=2, batch_dims=1),
        sample((4, 2), np.zeros((0,), np.int64)),
        sample((4,), np.array([3, 1], np.int16)),
    ],
    op_type="GatherV2",
    refuses=("indices",),
    tf=(
        function(
            "gather",
            "params",
            Conversion.TENSOR("indices"),
            Conversion.IGNORED("validate_indices", None),
            Conversion.AXIS("axis", None, of="batch_dims"),
            Conversion.INT("batch_dims", 0),
        ),
        by_hand("nn.embedding_lookup", "params may be parts, and rows have a largest norm"),
    ),
    sparse=(0,),
    integers=("indices",),
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
@on_gpu(waits="a check of the indices, unless the host knows their bounds")
def gather(xp: ArrayModule, params: Array, indices: Array, *, axis: Axis = 0, batch_dims: int = 0) -> Array:
    """The entries of `params` along `axis` at `indices`: [*params[:axis], *indices[batch_dims:], *params[axis + 1:]].

    The first `batch_dims` axes of both are the same. With axis 0 the gradient of params is sparse, as in TensorFlow.

    Raises:
        InvalidArgumentError: `indices[0] = 5 is not in [0, 3)`; an index counts from the front only.
    """
    at = axis % params.ndim
    batch = batch_dims % indices.ndim if batch_dims < 0 else batch_dims
    length = params.shape[at]
    check_indices(xp, indices, length)
    if not batch and params.flags.c_contiguous:
        return xp.take(params, indices, axis=at)
    if not batch:  # take would copy all of it first
        return params[(slice(None),) * at + (indices,)]
    lead, between, after = params.shape[:batch], params.shape[batch:at], params.shape[at + 1 :]
    rows = xp.moveaxis(params, at, batch).reshape((math.prod(lead) * length, *between, *after))
    out = xp.take(rows, _row_numbers(xp, indices, batch, length), axis=0)
    picked = indices.shape[batch:]
    out = out.reshape((*lead, *picked, *between, *after))
    return xp.transpose(out, _swap(batch, len(picked), len(between), len(after)))


def _row_numbers(xp: ArrayModule, indices: Array, batch: int, length: int) -> Array:
    """Indices into axis `batch` as flat indices into rows of all batches together."""
    count = math.prod(indices.shape[:batch])
    return (indices.reshape((count, -1 if count else 0)) + xp.arange(count)[:, None] * length).reshape(-1)


def _swap(batch: int, first: int, second: int, after: int) -> tuple[int, ...]:
    """The order that exchanges two groups of neighbouring axes."""
    a, b = batch + first, batch + first + second
    return (*range(batch), *range(a, b), *range(batch, a), *range(b, b + after))


_SEGMENT_IDS = INDEX | {DTYPES["int16"]}


def _segment_spec(data: Spec, segment_ids: Spec, *, num_segments: int, axis: int, batch_dims: int) -> Spec:
    if data.dtype not in NUMERIC:
        raise InvalidArgumentError(f"unsorted_segment_sum does not take dtype {data.dtype.name}")
    if segment_ids.dtype not in _SEGMENT_IDS:
        raise InvalidArgumentError(f"segment_ids must be int16, int32 or int64, found {segment_ids.dtype.name}")
    if num_segments < 0:
        raise InvalidArgumentError(f"num_segments must be non-negative, found {num_segments}")
    picked = segment_ids.shape[batch_dims:]
    if not 0 <= batch_dims <= min(axis, segment_ids.ndim) or (
        axis + len(picked) > data.ndim
        or data.shape[:batch_dims] != segment_ids.shape[:batch_dims]
        or data.shape[axis : axis + len(picked)] != picked
    ):
        raise InvalidArgumentError(
            f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = "
            f"{shape_text(segment_ids.shape)}"
        )
    return data.with_shape((*data.shape[:axis], num_segments, *data.shape[axis + len(picked) :]))


def _segment_vjp(
    ct: Operand, segment_ids: Operand, data_spec: Spec, segment_ids_spec: Spec, axis: int, batch_dims: int
) -> Operand:
    # An entry with a negative id is not in the sum: its gradient is zero.
    valid = segment_ids >= 0
    ids = where(valid, segment_ids, 0)
    gathered = gather(ct, ids, axis=axis, batch_dims=batch_dims)
    picked = segment_ids_spec.shape[batch_dims:]
    after = data_spec.ndim - axis - len(picked)
    between = (1,) * (axis - batch_dims)
    shape = (*segment_ids_spec.shape[:batch_dims], *between, *picked, *(1,) * after)
    return where(reshape(valid, shape=shape), gathered, 0.0)


def _batch_segment(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    # Ids whose axes are all batch dimensions have none in the data: `axis` may then be one after the last of the data.
    return _batch_pair(record, args, batched, attrs, ndim=len(args[0].shape) - batched[0] + 1)


@op(
    infer=_segment_spec,
    vjp=[_segment_vjp, NON_DIFFERENTIABLE],
    jvp=[
        lambda t, segment_ids, num_segments, axis, batch_dims: ops.unsorted_segment_sum(
            t, segment_ids, num_segments=num_segments, axis=axis, batch_dims=batch_dims
        ),
        NON_DIFFERENTIABLE,
    ],
    batch=_batch_segment,
    samples=[
        sample((3,), np.array([0, 2, 0]), num_segments=4),
        sample((2, 2, 3), np.array([[1, 0], [1, -1]], np.int32), num_segments=2),
        sample((2, 3, 2), np.array([2, 0, 0]), num_segments=3, axis=1),
        sample((2, 2, 3), np.array([[2, 0], [1, 1]]), num_segments=3, axis=1, batch_dims=1),
        sample((2,), np.array([2, 0]), num_segments=3, axis=1, batch_dims=1),
        sample((2, 3, 2), np.array([[2, 0], [1, 1]]), num_segments=3, axis=2, batch_dims=1),
        sample((0, 2), np.zeros((0,), np.int64), num_segments=2),
    ],
    refuses=("segment_ids",),
    integers=("segment_ids",),
    tf="math.unsorted_segment_sum",
    workspace=lambda data, segment_ids, **_: 3 * data.nbytes + 2 * segment_ids.nbytes,
    traits=[Trait.SELECTS],
    reach=Reach.SUMS,
)
@on_gpu(waits="a check of the ids, unless the host knows their bounds")
def unsorted_segment_sum(
    xp: ArrayModule, data: Array, segment_ids: Array, *, num_segments: int, axis: Axis = 0, batch_dims: int = 0
) -> Array:
    """Sums the entries of `data` that share an id: the transpose of gather. It makes sparse gradients dense.

    data: [*lead, *segment_ids.shape, *rest] with the ids' axes from `axis` on (0 in TensorFlow); the result has
    [num_segments] in their place. A negative id is left out. `axis` is counted from the front.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    count = math.prod(segment_ids.shape[:batch_dims])
    none_is_negative = check_ids(xp, segment_ids, num_segments)
    lead, picked = data.shape[:batch_dims], segment_ids.shape[batch_dims:]
    between, after = data.shape[batch_dims:axis], data.shape[axis + len(picked) :]
    moved = xp.transpose(data, _swap(batch_dims, len(between), len(picked), len(after)))
    width = math.prod((*between, *after))
    rows = moved.reshape((math.prod((*lead, *picked)), width))
    ids = _row_numbers(xp, segment_ids, batch_dims, num_segments)
    if not none_is_negative:
        valid = (segment_ids >= 0).reshape(-1)
        rows, ids = rows[valid], ids[valid]
    out = add_rows(xp, rows, ids, count * num_segments).reshape((*lead, num_segments, *between, *after))
    return xp.transpose(out, _swap(batch_dims, 1, len(between), len(after)))
