"""Reductions, softmax and running sums of ragged tensors, by segment ops: the rows are the segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape._generated.elementwise.arithmetic import truediv
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors import dtypes
from teletape.extras.ragged_tensors.conversions import from_tensor
from teletape.extras.ragged_tensors.forms.arrangement import expand_dims
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.rows import columns
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op

#: The segment op of each reduction.
SEGMENT_OPS: Final[Mapping[Op, Op]] = {
    ops.reduce_sum: ops.unsorted_segment_sum,
    ops.reduce_prod: ops.unsorted_segment_prod,
    ops.reduce_max: ops.unsorted_segment_max,
    ops.reduce_min: ops.unsorted_segment_min,
}


def reduce(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Reduces by a sum, product, maximum or minimum over all axes, one, or several."""
    (value,), axis, keepdims = args, attrs.get("axis"), bool(attrs.get("keepdims"))
    if axis is None:
        total = call(op, (value.flat_values,), keepdims=keepdims)
        missing = len(value.shape) - len(total.shape) if keepdims else 0
        return call(ops.reshape, (total,), shape=(1,) * len(value.shape)) if missing else total

    def dense(tensor: Any, axis: int) -> Any:
        return call(op, (tensor,), axis=axis, keepdims=keepdims)

    def segments(values: Any, ids: Any, count: int) -> Any:
        return call(SEGMENT_OPS[op], (values, ids), num_segments=count)

    axes = [axis] if isinstance(axis, int) else list(axis)
    return reduced(value, axes, dense, segments, keepdims=keepdims)


def reduced(value: Any, axes: Sequence[int], dense: Any, segments: Any, *, keepdims: bool) -> Any:
    """Reduces a ragged tensor along axes, the last one first.

    Args:
        value: The ragged tensor.
        axes: The axes.
        dense: `dense(tensor, axis)` reduces a tensor.
        segments: `segments(values, ids, count)` reduces the values of each of `count` ids.
        keepdims: Whether axes of length 1 stay; `dense` keeps them itself.

    Raises:
        ValueError: There is no such axis.
    """
    for number in sorted([to.axis_within(number, len(value.shape)) for number in axes], reverse=True):
        value = _reduced(value, number, dense, segments, keepdims)
    return value


def _reduced(value: Any, axis: int, dense: Any, segments: Any, keepdims: bool) -> Any:
    if not isinstance(value, RaggedTensor):
        return dense(value, axis)
    if axis > 1:
        return RaggedTensor.of(_reduced(value.values, axis - 1, dense, segments, keepdims), value.partition)
    partition, values = value.partition, value.values
    if axis == 0:
        ids: Any = columns(partition)
        count = int(np.diff(partition.numbers()).max(initial=0))
    else:
        ids, count = None, partition.rows
    if isinstance(values, RaggedTensor):
        if ids is None:
            ids = np.repeat(np.arange(count), np.diff(partition.numbers()))
        total = _of_rows(values, ids, count, segments)
    else:
        total = segments(values, partition.rowids(values.shape.as_list()[0]) if ids is None else constant(ids), count)
    if not keepdims:
        return total
    return expand_dims(total, axis) if isinstance(total, RaggedTensor) else call(ops.expand_dims, (total,), axis=axis)


def _of_rows(values: Any, ids: Any, count: int, segments: Any) -> Any:
    """Reduces the rows of each id element by element; the result is as long as the longest row."""
    if not isinstance(values, RaggedTensor):
        return segments(values, constant(ids), count)
    numbers = values.partition.numbers().astype(np.int64)
    lengths = np.diff(numbers)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, ids, lengths)
    partition = RowPartition.of_lengths(longest, values.partition.dtype)
    inner = ranges(partition.numbers().astype(np.int64)[:-1][ids], lengths)
    return RaggedTensor.of(_of_rows(values.values, inner, int(longest.sum()), segments), partition)


def reduce_mean(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The mean: the sum divided by the number of elements; NaN for empty rows."""
    (value,) = args
    total = reduce(ops.reduce_sum, args, attrs)
    flat = call(ops.ones_like, (value.flat_values,))
    return truediv(total, reduce(ops.reduce_sum, (value.with_flat_values(flat),), attrs))


def reduce_variance(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The variance: the mean of squares minus the square of the mean, at least 0, as TensorFlow computes it."""
    (value,) = args
    if value.dtype.is_complex:
        raise ValueError("reduce_variance is not supported for RaggedTensors with complex dtypes.")
    squares = reduce_mean(op, (call(ops.square, (value,)),), attrs)
    mean = reduce_mean(op, args, attrs)
    return call(ops.maximum, (call(ops.sub, (squares, call(ops.square, (mean,)))), 0))


def reduce_std(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The standard deviation: the root of the variance."""
    return call(ops.sqrt, (reduce_variance(op, args, attrs),))


def reduce_truths(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Whether all, or any, are true: a product, or a sum, of ones and zeros."""
    (value,) = args
    numbers = call(ops.cast, (value,), dtype=dtypes.int32.np)
    total = reduce(ops.reduce_prod if op is ops.reduce_all else ops.reduce_sum, (numbers,), attrs)
    return call(ops.cast, (total,), dtype=dtypes.bool.np)


def softmax(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The softmax over each row, or along another axis."""
    (logits,) = args
    over = {"axis": attrs.get("axis", -1), "keepdims": True}
    largest = call(ops.stop_gradient, (reduce(ops.reduce_max, args, over),))
    powers = call(ops.exp, (call(ops.sub, (logits, largest)),))
    return call(ops.div, (powers, reduce(ops.reduce_sum, (powers,), over)))


def cumsum(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Running sums along an axis; along an outer one of the rows padded with zeros."""
    (value,), axis = args, to.axis_within(attrs.get("axis", 0), len(args[0].shape))
    flat, exclusive, backward = value.flat_values, bool(attrs.get("exclusive")), bool(attrs.get("reverse"))
    if axis > value.ragged_rank:
        return value.with_flat_values(call(op, (flat,), **{**attrs, "axis": axis - value.ragged_rank}))
    if axis < value.ragged_rank:
        return from_tensor(
            call(op, (value.to_tensor(),), **{**attrs, "axis": axis}),
            lengths=[constant(np.diff(division.numbers())) for division in value.partitions],
            row_splits_dtype=value.partition.dtype,
        )
    division, count = value.partitions[-1], flat.shape.as_list()[0]
    if not count:
        return value
    sums = call(op, (flat,), axis=0, exclusive=exclusive, reverse=backward)
    numbers = division.numbers().astype(np.int64)
    lengths = np.diff(numbers)
    edge = np.repeat(np.where(lengths > 0, numbers[1:] - 1 if backward else numbers[:-1], 0), lengths)
    before = call(op, (flat,), axis=0, exclusive=True, reverse=backward)
    return value.with_flat_values(call(ops.sub, (sums, entries_at(before, constant(edge)))))
