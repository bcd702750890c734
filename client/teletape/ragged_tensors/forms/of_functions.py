"""What functions that are written by hand do with ragged tensors, which they refuse themselves as not dense."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from teletape.ops import arguments as to
from teletape.ops import arrays, create, dropout, partitions, places, sums
from teletape.ops.dispatch import call
from teletape.ragged_tensors.forms import arrangement, gathering
from teletape.ragged_tensors.functions import boolean_mask, stack_dynamic_partitions
from teletape.tensors.composite import NotDense
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
    return arrays.size(input.flat_values, out_type)


def _rank(input: Any, name: Any = None) -> Any:
    return arrays.rank(input.flat_values) + input.ragged_rank


def _one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Any:
    at = None if axis is None or to.whole(axis) == -1 else arrangement.positive(axis, len(indices.shape) + 1)
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


def _shape(input: Any, out_type: Any = None, name: Any = None) -> Any:
    raise NotDense(
        "tf.shape of a RaggedTensor is a DynamicRaggedShape, which is not here. Use x.shape, x.nrows(), "
        "x.row_lengths() or x.bounding_shape()"
    )


#: By the function, none of which reports its errors itself; each form has its arguments.
FUNCTIONS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    arrays.boolean_mask: _boolean_mask,
    arrays.rank: _rank,
    arrays.shape: _shape,
    arrays.size: _size,
    arrays.split: arrangement.split,
    create.one_hot: _one_hot,
    create.ones_like: _like(create.ones_like),
    create.zeros_like: _like(create.zeros_like),
    dropout.dropout: _without_shape(dropout.dropout),
    dropout.stateless_dropout: _without_shape(dropout.stateless_dropout),
    partitions.dynamic_partition: _dynamic_partition,
    places.gather_nd: gathering.gather_nd,
    sums.scalar_mul: _scalar_mul,
}
