"""Segments: extremes, products and means of entries that share an id. Sums are in index.py: the transpose of gather."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.scatter import change_rows, check_ids, extreme_rows
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.elementwise.math import sqrt
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like
from teletape_engine.ops.shapes.index import gather, unsorted_segment_sum
from teletape_engine.ops.shapes.shape import reshape, transpose
from teletape_engine.spec import COMPLEX, INDEX, NUMERIC, REAL, REAL_OF, Shape, Spec, shape_text


# ----------------------------------------------------------------------------------------------------------- extremes
def _infer(data: Spec, segment_ids: Spec, *, num_segments: int) -> Spec:
    if data.dtype not in REAL:
        raise InvalidArgumentError(f"the extremes of segments are not defined for dtype {data.dtype.name}")
    return _entries_spec(data, segment_ids, num_segments)


def _entries_spec(data: Spec, segment_ids: Spec, num_segments: int) -> Spec:
    if segment_ids.dtype not in INDEX:
        raise InvalidArgumentError(f"segment_ids must be int32 or int64, found {segment_ids.dtype.name}")
    if num_segments < 0:
        raise InvalidArgumentError(f"num_segments must be non-negative, found {num_segments}")
    if data.shape[: segment_ids.ndim] != segment_ids.shape:
        raise InvalidArgumentError(
            f"data.shape = {shape_text(data.shape)} does not start with segment_ids.shape = "
            f"{shape_text(segment_ids.shape)}"
        )
    return data.with_shape((num_segments, *data.shape[segment_ids.ndim :]))


def _chosen(
    data: Operand, segment_ids: Operand, y: Operand, data_spec: Spec, segment_ids_spec: Spec
) -> tuple[Operand, Operand, Operand]:
    """Whether each entry is its segment's extreme; the ids, negative ones as 0; each segment's number of extremes."""
    valid = segment_ids >= 0
    ids = where(valid, segment_ids, 0)
    after = (1,) * (data_spec.ndim - segment_ids_spec.ndim)
    valid = reshape(valid, shape=(*segment_ids_spec.shape, *after))
    chosen = ops.logical_and(valid, ops.equal(data, gather(y, ids)))
    count = unsorted_segment_sum(cast(chosen, dtype=data_spec.dtype), segment_ids, num_segments=y.shape[0])
    return chosen, ids, count


def _vjp(
    ct: Operand,
    data: Operand,
    segment_ids: Operand,
    y: Operand,
    data_spec: Spec,
    segment_ids_spec: Spec,
    num_segments: int,
) -> Operand:
    chosen, ids, count = _chosen(data, segment_ids, y, data_spec, segment_ids_spec)
    return where(chosen, gather(ct / count, ids), 0.0)


def _jvp(
    t: Operand,
    data: Operand,
    segment_ids: Operand,
    y: Operand,
    data_spec: Spec,
    segment_ids_spec: Spec,
    num_segments: int,
) -> Operand:
    chosen, ids, count = _chosen(data, segment_ids, y, data_spec, segment_ids_spec)
    return unsorted_segment_sum(where(chosen, t / gather(count, ids), 0.0), segment_ids, num_segments=num_segments)


def _batch(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    data, segment_ids = args
    if batched[1]:
        return batch_loop(record, args, batched, attrs)
    n = len(segment_ids.shape)  # the batch axis is moved after the axes of the ids, and back
    inside = record(transpose(data, perm=(*range(1, n + 1), 0, *range(n + 1, len(data.shape)))), segment_ids, **attrs)
    return transpose(inside, perm=(1, 0, *range(2, len(inside.shape))))


def _samples() -> Sequence[Sample]:
    return [
        sample((4,), np.array([0, 1, 0, 1]), num_segments=2),
        sample((2, 2, 3), np.array([[1, 0], [1, -1]], np.int32), num_segments=2),
        sample((0, 2), np.zeros((0,), np.int64), num_segments=0),
    ]


def _bytes(data: Spec, segment_ids: Spec, **_: int) -> int:
    return 3 * data.nbytes + 2 * segment_ids.nbytes


def _valid_rows(xp: ArrayModule, data: Array, segment_ids: Array, num_segments: int) -> tuple[Any, Any, Shape]:
    """The rows [n, d] whose ids are not negative, those ids, and the shape of the result; the ids are checked."""
    none_is_negative = check_ids(xp, segment_ids, num_segments)
    after = data.shape[segment_ids.ndim :]
    rows, ids = data.reshape((segment_ids.size, math.prod(after))), segment_ids.reshape(-1)
    if not none_is_negative:
        valid = ids >= 0
        rows, ids = rows[valid], ids[valid]
    return rows, ids, (num_segments, *after)


def _extremes(xp: ArrayModule, data: Array, segment_ids: Array, num_segments: int, largest: bool) -> Array:
    rows, ids, shape = _valid_rows(xp, data, segment_ids, num_segments)
    return extreme_rows(xp, rows, ids, num_segments, largest=largest).reshape(shape)


@op(
    infer=_infer,
    vjp=[_vjp, NON_DIFFERENTIABLE],
    jvp=[_jvp, NON_DIFFERENTIABLE],
    batch=_batch,
    samples=_samples,
    refuses=("segment_ids",),
    integers=("segment_ids",),
    tf="math.unsorted_segment_max",
    workspace=_bytes,
    traits=[Trait.SELECTS],
    reach=Reach.SEGMENTS,
)
@on_gpu(waits="a check of the ids, unless the host knows their bounds")
def unsorted_segment_max(xp: ArrayModule, data: Array, segment_ids: Array, *, num_segments: int) -> Array:
    """The largest of the entries that share an id; the dtype's lowest number for an id without entries.

    data: [*segment_ids.shape, *rest]; the result: [num_segments, *rest]. A negative id is left out. Equal entries share
    the gradient.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    return _extremes(xp, data, segment_ids, num_segments, largest=True)


@op(
    infer=_infer,
    vjp=[_vjp, NON_DIFFERENTIABLE],
    jvp=[_jvp, NON_DIFFERENTIABLE],
    batch=_batch,
    samples=_samples,
    refuses=("segment_ids",),
    integers=("segment_ids",),
    tf="math.unsorted_segment_min",
    workspace=_bytes,
    traits=[Trait.SELECTS],
    reach=Reach.SEGMENTS,
)
@on_gpu(waits="a check of the ids, unless the host knows their bounds")
def unsorted_segment_min(xp: ArrayModule, data: Array, segment_ids: Array, *, num_segments: int) -> Array:
    """The smallest of the entries that share an id; the dtype's highest number for an id without entries.

    Otherwise as unsorted_segment_max.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    return _extremes(xp, data, segment_ids, num_segments, largest=False)


# ----------------------------------------------------------------------------------------------------------- products
def _prod_spec(data: Spec, segment_ids: Spec, *, num_segments: int) -> Spec:
    if data.dtype not in NUMERIC:
        raise InvalidArgumentError(f"the products of segments are not defined for dtype {data.dtype.name}")
    return _entries_spec(data, segment_ids, num_segments)


def _partial(
    data: Operand, segment_ids: Operand, y: Operand, data_spec: Spec, segment_ids_spec: Spec
) -> tuple[Operand, Operand]:
    """The product of the others of each entry's segment, 0 without a segment; and the ids, negative ones as 0."""
    num_segments = y.shape[0]
    valid = segment_ids >= 0
    ids = where(valid, segment_ids, 0)
    valid = reshape(valid, shape=(*segment_ids_spec.shape, *(1,) * (data_spec.ndim - segment_ids_spec.ndim)))
    zero = ops.equal(data, ops.zeros_like(data))
    zeros = unsorted_segment_sum(cast(zero, dtype=data_spec.dtype), segment_ids, num_segments=num_segments)
    filled = where(zero, ones_like(data), data)
    others = gather(ops.unsorted_segment_prod(filled, segment_ids, num_segments=num_segments), ids) / filled
    # Of a segment with one zero the product of the others; with two zeros each entry has a zero among the others.
    count = gather(zeros, ids) - cast(zero, dtype=data_spec.dtype)
    return where(ops.logical_and(valid, ops.equal(count, ops.zeros_like(count))), others, 0.0), ids


def _prod_vjp(
    ct: Operand, data: Operand, segment_ids: Operand, y: Operand, data_spec: Spec, segment_ids_spec: Spec
) -> Operand:
    partial, ids = _partial(data, segment_ids, y, data_spec, segment_ids_spec)
    return gather(ct, ids) * (ops.conj(partial) if data_spec.dtype in COMPLEX else partial)


def _prod_jvp(
    t: Operand, data: Operand, segment_ids: Operand, y: Operand, data_spec: Spec, segment_ids_spec: Spec
) -> Operand:
    partial, _ = _partial(data, segment_ids, y, data_spec, segment_ids_spec)
    return unsorted_segment_sum(t * partial, segment_ids, num_segments=y.shape[0])


@op(
    infer=_prod_spec,
    vjp=[_prod_vjp, NON_DIFFERENTIABLE],
    jvp=[_prod_jvp, NON_DIFFERENTIABLE],
    batch=_batch,
    samples=_samples,
    refuses=("segment_ids",),
    integers=("segment_ids",),
    tf="math.unsorted_segment_prod",
    workspace=_bytes,
    traits=[Trait.MULTIPLIES],
    reach=Reach.SEGMENTS,
)
@on_gpu(
    waits="a check of the ids",
    down="the ids, to find equal ones",
    up="the order in which rows change",
)
def unsorted_segment_prod(xp: ArrayModule, data: Array, segment_ids: Array, *, num_segments: int) -> Array:
    """The product of the entries that share an id; 1 for an id without entries. Otherwise as unsorted_segment_max.

    The gradient is right where an entry is 0; the second one is not, as in TensorFlow.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    rows, ids, shape = _valid_rows(xp, data, segment_ids, num_segments)
    out = xp.ones((num_segments, rows.shape[1]), rows.dtype)
    if rows.size:
        change_rows(xp, out, ids, rows, "mul")
    return out.reshape(shape)


# -------------------------------------------------------------------------------------------------------------- means
def _count(data: Operand, segment_ids: Operand, num_segments: int) -> Operand:
    """The number of entries of each segment, at least 1, with an axis of length 1 for each axis after the ids'."""
    real = REAL_OF.get(data.dtype, data.dtype)
    ones = cast(ones_like(segment_ids), dtype=real)
    count = unsorted_segment_sum(ones, segment_ids, num_segments=num_segments)
    after = len(data.shape) - len(segment_ids.shape)
    return cast(reshape(ops.maximum(count, ones_like(count)), shape=(num_segments, *(1,) * after)), dtype=data.dtype)


@composite(tf="math.unsorted_segment_mean", samples=_samples, like=(0, 1), integers=("segment_ids",))
def unsorted_segment_mean(data: Operand, segment_ids: Operand, *, num_segments: int) -> Operand:
    """The mean of the entries that share an id; 0 for an id without entries."""
    total = unsorted_segment_sum(data, segment_ids, num_segments=num_segments)
    return total / _count(data, segment_ids, num_segments)


@composite(tf="math.unsorted_segment_sqrt_n", samples=_samples, like=(0, 1), integers=("segment_ids",))
def unsorted_segment_sqrt_n(data: Operand, segment_ids: Operand, *, num_segments: int) -> Operand:
    """The sum of the entries that share an id, over the root of their number; 0 for an id without entries."""
    total = unsorted_segment_sum(data, segment_ids, num_segments=num_segments)
    return total / sqrt(_count(data, segment_ids, num_segments))
