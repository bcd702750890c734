"""Reading and writing elements by indices [..., depth] along the first axes of an array: gather_nd and scatter_nd."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.scatter import add_rows, change_rows, check_inside, flat_indices
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all, batch_loop, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.create import zeros_like
from teletape_engine.ops.shapes.shape import reshape
from teletape_engine.spec import (
    BOOL,
    DTYPES,
    INDEX,
    KERNEL_NAMES,
    NUMERIC,
    PLACES,
    REAL,
    STRING,
    DType,
    Shape,
    Spec,
    shape_text,
)

_POLICY = "indices that there are not can be ignored"


def _depth(indices: Spec, shape: Shape, dtypes: frozenset[DType] = INDEX) -> int:
    if indices.dtype not in dtypes:
        takes = ", ".join(dtype.name for dtype in KERNEL_NAMES if dtype in dtypes)
        raise InvalidArgumentError(
            f"Value for attr 'Tindices' of {indices.dtype.name} is not in the list of allowed values: {takes}"
        )
    if not indices.ndim:
        raise InvalidArgumentError("indices must be at least a vector")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(shape)}"
        )
    return depth


def _gather_spec(params: Spec, indices: Spec, *, batch_dims: int) -> Spec:
    if batch_dims < 0:
        raise InvalidArgumentError("tf.gather_nd does not allow negative batch_dims.")
    if batch_dims and batch_dims >= indices.ndim:
        raise InvalidArgumentError(
            f"Argument `batch_dims` = {batch_dims} must be less than rank(`indices`) = {indices.ndim}"
        )
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise InvalidArgumentError(
            f"params {shape_text(params.shape)} and indices {shape_text(indices.shape)} must agree in the first "
            f"{batch_dims} dimensions"
        )
    depth = _depth(indices, params.shape[batch_dims:], PLACES)
    return params.with_shape((*indices.shape[:-1], *params.shape[batch_dims + depth :]))


def _whole_indices(indices: Any, batch_dims: int) -> Any:
    """Indices into params from its first axis on: each with its place along the batch axes in front."""
    if not batch_dims:
        return indices
    ones = ops.ones_like(ops.reduce_sum(indices, axis=-1, keepdims=True))
    return ops.concat(*[ops.cumsum(ones, axis=axis, exclusive=True) for axis in range(batch_dims)], indices, axis=-1)


def _gather_vjp(
    ct: Operand, indices: Operand, params_spec: Spec, indices_spec: Spec, batch_dims: int
) -> Operand | SparseGradient:
    if indices_spec.dtype not in INDEX:
        indices = ops.cast(indices, dtype=DTYPES["int32"])
    if batch_dims:
        return scatter_nd(_whole_indices(indices, batch_dims), ct, shape=params_spec.shape)
    if indices_spec.ndim == 2 and indices_spec.shape[1] == 1:
        return SparseGradient(ct, reshape(indices, shape=indices_spec.shape[:1]), params_spec)
    return scatter_nd(indices, ct, shape=params_spec.shape)


@op(
    infer=_gather_spec,
    vjp=[_gather_vjp, NON_DIFFERENTIABLE],
    jvp=[lambda t, indices, batch_dims: ops.gather_nd(t, indices, batch_dims=batch_dims), NON_DIFFERENTIABLE],
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched), batch_dims=attrs["batch_dims"] + 1),
    samples=[
        sample((4, 2), np.array([[3], [0], [3]])),
        sample((3, 3, 2), np.array([[0, 1], [1, 2], [0, 1]], np.int32)),
        sample((3, 3), np.array([[[0, 2]], [[1, 0]]])),
        sample((3,), np.zeros((0, 1), np.int64)),
        sample((2, 3), np.zeros((2, 0), np.int64)),
        sample((2, 3, 2), np.array([[[0], [2], [0]], [[1], [0], [1]]]), batch_dims=1),
        sample((2, 2, 3), np.array([[[2], [0]], [[1], [1]]], np.int16), batch_dims=2),
    ],
    refuses=("indices",),
    integers=("indices",),
    tf=(by_hand("gather_nd", _POLICY),),
    workspace=lambda params, indices, **_: 4 * 8 * (indices.size + math.prod(indices.shape[:-1]) * params.ndim),
    sparse=(0,),
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
@on_gpu(waits="a check of the indices, unless the host knows their bounds")
def gather_nd(xp: ArrayModule, params: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    """The entries of params at `indices` [..., depth] along its first axes: [*indices[:-1], *params[depth:]].

    The first `batch_dims` axes of both are the same, and the indices are into the axes after them. With indices [n, 1]
    the gradient of params is sparse, as in TensorFlow.

    Raises:
        InvalidArgumentError: `indices[0] = [0, 5] does not index into param shape [2,3]`.
    """
    indices = _whole_indices(indices, batch_dims)
    depth = indices.shape[-1]
    check_inside(xp, indices, params.shape, what="param shape")
    if not depth:
        return xp.broadcast_to(params, (*indices.shape[:-1], *params.shape)).copy()
    return params[tuple(indices[..., axis] for axis in range(depth))]


def _check_updates(indices: Spec, updates: Spec, shape: Shape) -> None:
    depth = _depth(indices, shape)
    expected = (*indices.shape[:-1], *shape[depth:])
    if updates.shape != expected:
        raise InvalidArgumentError(
            f"updates of shape {shape_text(updates.shape)}: indices of shape {shape_text(indices.shape)} into shape "
            f"{shape_text(shape)} take updates of shape {shape_text(expected)}"
        )


def _scatter_spec(indices: Spec, updates: Spec, *, shape: Shape) -> Spec:
    if updates.dtype not in NUMERIC | {BOOL, STRING}:
        raise InvalidArgumentError(f"scatter_nd does not take dtype {updates.dtype.name}")
    _check_updates(indices, updates, shape)
    return updates.with_shape(shape)


@op(
    infer=_scatter_spec,
    vjp=[NON_DIFFERENTIABLE, lambda ct, indices: gather_nd(ct, indices)],
    jvp=[NON_DIFFERENTIABLE, lambda t, indices, shape: ops.scatter_nd(indices, t, shape=shape)],
    batch=batch_loop,
    samples=[
        sample(np.array([[1], [3], [1]]), (3,), shape=(5,)),
        sample(np.array([[1], [0]], np.int32), (2, 2), shape=(2, 2)),
        sample(np.array([[0, 1], [1, 2]]), (2, 2), shape=(3, 3, 2)),
        sample(np.zeros((0, 1), np.int64), (0,), shape=(2,)),
        sample(np.array([[1], [1], [3]]), np.array([True, False, False]), shape=(4,)),
    ],
    refuses=("indices",),
    integers=("indices",),
    tf=(by_hand("scatter_nd", _POLICY),),
    workspace=lambda indices, updates, shape, **_: (
        3 * updates.nbytes
        + 2 * indices.nbytes
        + (16 * (updates.size + math.prod(shape)) if updates.dtype == BOOL else 0)
    ),
    reach=Reach.SUMS,
)
@on_gpu(waits="a check of the indices, unless the host knows their bounds")
def scatter_nd(xp: ArrayModule, indices: Array, updates: Array, *, shape: Shape) -> Array:
    """Zeros of `shape` with `updates` added at `indices` [..., depth]: the transpose of gather_nd.

    Of truth values: whether an update at an index is true. Of strings: those at an index, joined.

    Raises:
        InvalidArgumentError: `indices[0] = [5] does not index into shape [3]`.
    """
    depth = indices.shape[-1]
    width = math.prod(shape[depth:])
    ids = flat_indices(xp, indices, shape)
    if updates.dtype == STRING:
        strings = np.full((math.prod(shape[:depth]), width), b"", STRING)
        np.add.at(strings, ids.reshape(-1), updates.reshape((ids.size, width)))
        return strings.reshape(shape)
    if updates.dtype == BOOL:
        updates = updates.astype(np.int32)
        return add_rows(xp, updates.reshape((ids.size, width)), ids, math.prod(shape[:depth])).reshape(shape) > 0
    return add_rows(xp, updates.reshape((ids.size, width)), ids, math.prod(shape[:depth])).reshape(shape)


def _put_spec(tensor: Spec, indices: Spec, updates: Spec) -> Spec:
    if updates.dtype is not tensor.dtype:
        raise InvalidArgumentError(f"updates of dtype {updates.dtype.name} for a tensor of {tensor.dtype.name}")
    _check_updates(indices, updates, tensor.shape)
    return tensor


@op(
    infer=_put_spec,
    vjp=[
        lambda ct, indices: ops.tensor_scatter_nd_update(ct, indices, zeros_like(gather_nd(ct, indices))),
        NON_DIFFERENTIABLE,
        lambda ct, indices: gather_nd(ct, indices),
    ],
    jvp=[
        lambda t, indices, updates: ops.tensor_scatter_nd_update(t, indices, zeros_like(updates)),
        NON_DIFFERENTIABLE,
        lambda t, tensor, indices: ops.tensor_scatter_nd_update(zeros_like(tensor), indices, t),
    ],
    batch=batch_loop,
    samples=[
        sample((3,), np.array([[1], [2]]), (2,)),
        sample((2, 3), np.array([[1]], np.int32), (1, 3)),
        sample((3, 3, 2), np.array([[0, 1], [1, 2]]), (2, 2)),
    ],
    op_type="TensorScatterUpdate",
    like=(0, 1, 0),
    refuses=("indices",),
    integers=("indices",),
    tf="tensor_scatter_nd_update",
    traits=[Trait.SELECTS],
    reach=Reach.MOVES,
)
@on_gpu(
    waits="a check of the indices",
    down="the indices, to find equal ones",
    up="the order in which rows change",
)
def tensor_scatter_nd_update(xp: ArrayModule, tensor: Array, indices: Array, updates: Array) -> Array:
    """`tensor` with `updates` at `indices` [..., depth] instead; if an index occurs twice, the last update."""
    return _changed(xp, tensor, indices, updates, "update")


def _put_samples() -> list[Sample]:
    return [sample((3,), np.array([[1], [1]]), (2,)), sample((2, 3), np.array([[1]], np.int32), (1, 3))]


@composite(
    op_type="TensorScatterAdd",
    tf=(by_hand("tensor_scatter_nd_add", _POLICY),),
    samples=_put_samples,
    like=(0, 1, 0),
    integers=("indices",),
)
def tensor_scatter_nd_add(tensor: Operand, indices: Operand, updates: Operand) -> Operand:
    """`tensor` with `updates` added at `indices` [..., depth]; an index that occurs twice counts twice."""
    return tensor + scatter_nd(indices, updates, shape=tensor.shape)


@composite(
    op_type="TensorScatterSub",
    tf=(by_hand("tensor_scatter_nd_sub", _POLICY),),
    samples=_put_samples,
    like=(0, 1, 0),
    integers=("indices",),
)
def tensor_scatter_nd_sub(tensor: Operand, indices: Operand, updates: Operand) -> Operand:
    """`tensor` with `updates` subtracted at `indices` [..., depth]; an index that occurs twice counts twice."""
    return tensor - scatter_nd(indices, updates, shape=tensor.shape)


# ----------------------------------------------------------------------------------------------------------- extremes


def _extreme_spec(tensor: Spec, indices: Spec, updates: Spec) -> Spec:
    if tensor.dtype not in REAL:
        raise InvalidArgumentError(f"the extremes are not defined for dtype {tensor.dtype.name}")
    return _put_spec(tensor, indices, updates)


def _shares(tensor: Operand, indices: Operand, updates: Operand, y: Operand) -> tuple[Operand, Operand, Operand]:
    """1 where the tensor is the extreme, 1 where an update is, and how many of them there are for each element."""
    own = ops.cast(ops.equal(tensor, y), dtype=tensor.dtype)
    put = ops.cast(ops.equal(updates, gather_nd(y, indices)), dtype=tensor.dtype)
    return own, put, own + scatter_nd(indices, put, shape=tensor.shape)


def _extreme_vjp_tensor(ct: Operand, tensor: Operand, indices: Operand, updates: Operand, y: Operand) -> Operand:
    own, _, count = _shares(tensor, indices, updates, y)
    return ct * own / count


def _extreme_vjp_updates(ct: Operand, tensor: Operand, indices: Operand, updates: Operand, y: Operand) -> Operand:
    _, put, count = _shares(tensor, indices, updates, y)
    return gather_nd(ct / count, indices) * put


def _extreme_jvp_updates(t: Operand, tensor: Operand, indices: Operand, updates: Operand, y: Operand) -> Operand:
    _, put, count = _shares(tensor, indices, updates, y)
    return scatter_nd(indices, t * put, shape=tensor.shape) / count


def _extreme_samples() -> list[Sample]:
    return [
        sample((3,), np.array([[1], [2], [1]]), (3,), seed=2),
        sample((2, 3), np.array([[1]], np.int32), (1, 3)),
        sample((3, 3, 2), np.array([[0, 1], [1, 2]]), (2, 2)),
    ]


def _changed(xp: ArrayModule, tensor: Array, indices: Array, updates: Array, how: str) -> Array:
    depth = indices.shape[-1]
    ids = flat_indices(xp, indices, tensor.shape)
    out = tensor.copy()
    width = math.prod(tensor.shape[depth:])
    rows = updates.reshape((ids.size, width))
    change_rows(xp, out.reshape((math.prod(tensor.shape[:depth]), width)), ids, rows, how)
    return out


@op(
    infer=_extreme_spec,
    vjp=[_extreme_vjp_tensor, NON_DIFFERENTIABLE, _extreme_vjp_updates],
    jvp=[_extreme_vjp_tensor, NON_DIFFERENTIABLE, _extreme_jvp_updates],
    batch=batch_loop,
    samples=_extreme_samples,
    op_type="TensorScatterMax",
    like=(0, 1, 0),
    refuses=("indices",),
    integers=("indices",),
    tf=(by_hand("tensor_scatter_nd_max", _POLICY),),
    workspace=lambda tensor, indices, updates: 3 * updates.nbytes + 4 * 8 * indices.size,
    traits=[Trait.SELECTS],
)
@on_gpu(
    waits="a check of the indices",
    down="the indices, to find equal ones",
    up="the order in which rows change",
)
def tensor_scatter_nd_max(xp: ArrayModule, tensor: Array, indices: Array, updates: Array) -> Array:
    """`tensor` with the larger of its elements and `updates` at `indices` [..., depth]; equal ones share the gradient.

    Errors as scatter_nd.
    """
    return _changed(xp, tensor, indices, updates, "max")


@op(
    infer=_extreme_spec,
    vjp=[_extreme_vjp_tensor, NON_DIFFERENTIABLE, _extreme_vjp_updates],
    jvp=[_extreme_vjp_tensor, NON_DIFFERENTIABLE, _extreme_jvp_updates],
    batch=batch_loop,
    samples=_extreme_samples,
    op_type="TensorScatterMin",
    like=(0, 1, 0),
    refuses=("indices",),
    integers=("indices",),
    tf=(by_hand("tensor_scatter_nd_min", _POLICY),),
    workspace=lambda tensor, indices, updates: 3 * updates.nbytes + 4 * 8 * indices.size,
    traits=[Trait.SELECTS],
)
@on_gpu(
    waits="a check of the indices",
    down="the indices, to find equal ones",
    up="the order in which rows change",
)
def tensor_scatter_nd_min(xp: ArrayModule, tensor: Array, indices: Array, updates: Array) -> Array:
    """`tensor` with the smaller of its elements and `updates` at `indices` [..., depth]; otherwise as the maximum."""
    return _changed(xp, tensor, indices, updates, "min")
