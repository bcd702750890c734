"""The forms for ragged tensors of functions written by hand; the functions themselves take dense tensors only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors import dtypes
from teletape.extras.ragged_tensors.forms import arrangement, gathering
from teletape.extras.ragged_tensors.functions import boolean_mask, stack_dynamic_partitions
from teletape.extras.ragged_tensors.rows import outer_rowids
from teletape.extras.ragged_tensors.shape import DynamicRaggedShape
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape.tf.ops.arrays import counting, create, partitions, places, rearrange, sums
from teletape.tf.ops.nn import dropout
from teletape_engine.catalogue.namespace import ops


def _boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: Any = None) -> Any:
    if axis not in (None, 0):
        raise ValueError(f"boolean_mask of a RaggedTensor has no axis, found {axis}")
    return boolean_mask(tensor, mask)


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    def form(input: Any, dtype: Any = None, name: Any = None, layout: Any = None) -> Any:
        return input.with_flat_values(function(input.flat_values, dtype))

    return form


def _size(input: Any, out_type: Any = None, name: Any = None) -> Any:
    return rearrange.size(input.flat_values, out_type)


def _rank(input: Any, name: Any = None) -> Any:
    return rearrange.rank(input.flat_values) + input.ragged_rank


def _one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Any:
    at = None if axis is None or to.whole(axis) == -1 else to.axis_within(axis, len(indices.shape) + 1)
    if at is not None and at <= indices.ragged_rank:
        raise ValueError(f"axis (={at}) must be greater than indices.ragged_rank (={indices.ragged_rank}).")
    within = -1 if at is None else at - indices.ragged_rank
    return indices.with_flat_values(create.one_hot(indices.flat_values, depth, on_value, off_value, within, dtype))


def _without_shape(function: Callable[..., Any]) -> Callable[..., Any]:
    """The form of a function that draws a number for each element."""

    def form(x: Any, rate: Any, *args: Any, noise_shape: Any = None, **kwargs: Any) -> Any:
        if noise_shape is not None:
            raise ValueError("noise_shape is not supported yet for RaggedTensor x")
        return x.with_flat_values(function(x.flat_values, rate, *args, **kwargs))

    return form


def _dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: Any = None) -> list[Any]:
    rows = stack_dynamic_partitions(data, partitions, num_partitions)
    return [rows[number] for number in range(to.whole(num_partitions))]


def _scalar_mul(scalar: Any, x: Any, name: Any = None) -> Any:
    return call(ops.mul, (x, to.like(scalar, x)))


def _shape(input: Any, out_type: Any = None, name: Any = None) -> DynamicRaggedShape:
    return DynamicRaggedShape(input, dtypes.int32 if out_type is None else out_type)


def _bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: Any = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Any:
    """Counts all numbers, or with axis -1 those of each row: [rows, bins]."""
    flat = arr.flat_values
    amounts = None if weights is None else weights.flat_values if isinstance(weights, RaggedTensor) else weights
    if axis != -1:
        return counting.bincount(flat, amounts, minlength, maxlength, dtype, None, axis, binary_output)
    bins = counting.bincount(flat, None, minlength, maxlength).shape.as_list()[0]
    numbers, rows = np.asarray(flat.numpy()).astype(np.int64), np.asarray(outer_rowids(arr).numpy())
    places = np.where(numbers < bins, numbers + rows * bins, -1)
    values = constant(np.ones(numbers.shape, dtypes.as_dtype(dtype).np)) if amounts is None else amounts
    size = (arr.partition.rows, bins)
    counts = call(ops.unsorted_segment_sum, (values, constant(places)), num_segments=size[0] * size[1])
    counts = call(ops.reshape, (counts,), shape=size)
    return call(ops.cast, (call(ops.greater, (counts, 0)),), dtype=counts.dtype.np) if binary_output else counts


#: The form by function; it has the function's arguments. None of the functions reports its errors itself.
FORMS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    rearrange.boolean_mask: _boolean_mask,
    rearrange.rank: _rank,
    rearrange.shape: _shape,
    rearrange.size: _size,
    rearrange.split: arrangement.split,
    counting.bincount: _bincount,
    create.one_hot: _one_hot,
    create.ones_like: _like(create.ones_like),
    create.zeros_like: _like(create.zeros_like),
    dropout.dropout: _without_shape(dropout.dropout),
    dropout.stateless_dropout: _without_shape(dropout.stateless_dropout),
    partitions.dynamic_partition: _dynamic_partition,
    places.gather_nd: gathering.gather_nd,
    sums.scalar_mul: _scalar_mul,
}
