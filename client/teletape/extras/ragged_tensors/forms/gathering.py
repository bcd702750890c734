"""Rows and elements of ragged tensors at indices, where a mask is true, and ragged indices of tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor, tensor_or_ragged
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.rows import indices_of, take, uniform
from teletape.extras.ragged_tensors.tensor import RaggedTensor, common_splits
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def gather(params: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    """Returns the entries of `params` along an axis at `indices`; at least one of the two is ragged.

    Args:
        params: A tensor or a ragged tensor.
        indices: int32 or int64, a tensor or a ragged tensor.
        axis: 0, or with batch dims their number.
        batch_dims: The number of leading axes that both share.

    Returns:
        [*params[:axis], *indices[batch_dims:], *params[axis + 1:]].

    Raises:
        InvalidArgumentError: An index out of range.
        ValueError: An axis that is not supported or does not exist.
    """
    values, index = common_splits(tensor_or_ragged(params), tensor_or_ragged(indices))
    at, batch = to.axis_within(axis, len(values.shape)), to.whole(batch_dims)
    batch = batch + len(index.shape) if batch < 0 else batch
    if at < batch:
        raise ValueError(f"axis={at} must be at least batch_dims={batch}")
    if batch:
        return _in_batches(values, index, at, batch)
    if at:
        return _along(values, index, at)
    return _rows_at(values, index)


def _rows_at(values: Any, index: Any) -> Any:
    """Returns the rows of `values` at indices, in the shape of the indices."""
    if isinstance(index, RaggedTensor):
        return RaggedTensor.of(_rows_at(values, index.values), index.partition)
    if not isinstance(values, RaggedTensor):
        return call(ops.gather, (values, index))
    shape = index.shape.as_list()
    rows = take(values, _checked(index, values.partition.rows))
    if len(shape) == 1:
        return rows
    if not shape:
        return rows[0]
    nested = _in_rows(rows, tuple(shape), values.partition.dtype)
    divisions = [each.without_length() for each in nested.partitions[: len(shape) - 1]]
    return RaggedTensor.of(rows, *divisions)


def _checked(index: Any, rows: int) -> HostArray:
    """The indices as numbers.

    Raises:
        InvalidArgumentError: An index is out of range.
    """
    numbers = np.asarray(index.numpy()).reshape(-1).astype(np.int64)
    outside = np.flatnonzero((numbers < 0) | (numbers >= rows))
    if outside.size:
        where = int(outside[0])
        raise InvalidArgumentError(f"indices[{where}] = {numbers[where]} is not in [0, {rows}) [Op:RaggedGather]")
    return numbers


def _in_batches(values: Any, index: Any, axis: int, batch: int) -> Any:
    """Gathers `values[i]` at `index[i]` for each position i along the first `batch` axes."""
    if batch > 1:
        outer, own = (_divided(each) for each in (values, index))
        if not outer.partition.same(own.partition):
            raise InvalidArgumentError("batch dimensions of params and indices differ")
        return RaggedTensor.of(_in_batches(outer.values, own.values, axis - 1, batch - 1), outer.partition)
    if axis > 1:
        raise ValueError("gather of a RaggedTensor with batch_dims offers axis=batch_dims alone")
    rows, count = values.shape.as_list()[0], index.shape.as_list()[0]
    if rows != count:
        raise InvalidArgumentError(f"params.shape[0] = {rows} and indices.shape[0] = {count} differ")
    outer = _divided(values)
    splits = outer.partition.numbers().astype(np.int64)
    lengths = np.diff(splits)
    own = index
    if len(index.shape) == 1:
        places = _within(np.asarray(index.numpy()).astype(np.int64), lengths, splits[:-1])
        return take(outer.values, places)
    own = _divided(index)
    flat = np.asarray(own.flat_values.numpy()).astype(np.int64)
    owner = np.repeat(_owners(own), int(np.prod(flat.shape[1:], dtype=np.int64)))
    places = _within(flat.reshape(-1), lengths[owner], splits[:-1][owner])
    return _rows_at(outer.values, own.with_flat_values(constant(places.reshape(flat.shape))))


def _within(numbers: HostArray, lengths: HostArray, starts: HostArray) -> HostArray:
    """Returns the indices of elements of rows among all values, from their indices in the row."""
    outside = np.flatnonzero((numbers < 0) | (numbers >= lengths))
    if outside.size:
        where = int(outside[0])
        raise InvalidArgumentError(f"indices[{where}] = {numbers[where]} is not in [0, {lengths[where]})")
    return numbers + starts


def _owners(value: RaggedTensor) -> HostArray:
    """Returns for each flat value its row along axis 0."""
    owner = np.arange(value.partition.rows)
    for division in value.partitions:
        owner = np.repeat(owner, np.diff(division.numbers()))
    return owner


def _divided(value: Any) -> RaggedTensor:
    """Returns a ragged tensor unchanged; a tensor as rows of one length."""
    return value if isinstance(value, RaggedTensor) else uniform(value, 1)


def _along(values: Any, index: Any, axis: int) -> Any:
    """Returns the entries along an axis inside the rows, at the same indices in each row."""
    if not isinstance(values, RaggedTensor):
        if isinstance(index, RaggedTensor):
            raise ValueError("gather of a tensor at ragged indices offers axis=0, or batch_dims")
        return call(ops.gather, (values, index), axis=axis)
    if axis > 1:
        return RaggedTensor.of(_along(values.values, index, axis - 1), values.partition)
    if isinstance(index, RaggedTensor):
        raise ValueError("gather of a RaggedTensor at ragged indices offers axis=0, or batch_dims")
    splits = values.partition.numbers().astype(np.int64)
    numbers = np.asarray(index.numpy()).astype(np.int64)
    rows = values.partition.rows
    each = np.tile(numbers.reshape(-1), rows)
    places = _within(each, np.repeat(np.diff(splits), numbers.size), np.repeat(splits[:-1], numbers.size))
    if not numbers.ndim:
        return take(values.values, places)
    return _in_rows(take(values.values, places), (rows, *numbers.shape), values.partition.dtype)


def _in_rows(values: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Returns values under divisions of uniform length, so that their first axes have this shape."""
    for at in range(len(shape) - 1, 0, -1):
        values = RaggedTensor.of(values, RowPartition.of_length(shape[at], math.prod(shape[:at]), dtype))
    return values


def gather_nd(params: Any, indices: Any, batch_dims: Any = 0, name: Any = None, bad_indices_policy: str = "") -> Any:
    """Returns the entries of `params` at indices [..., depth] along its first axes.

    Raises:
        InvalidArgumentError: An index out of range.
        ValueError: Batch dims, or a depth that differs from index to index.
    """
    values, index = tensor_or_ragged(params), tensor_or_ragged(indices)
    if to.whole(batch_dims):
        raise ValueError("batch_dims != 0 is not supported for ragged gather yet.")
    if isinstance(index, RaggedTensor):
        if index.shape.as_list()[-1] is None:
            raise ValueError("indices.shape[-1] must be known: the number of axes that each index names")
        return RaggedTensor.of(gather_nd(values, index.values), index.partition)
    numbers = np.asarray(index.numpy()).astype(np.int64)
    depth = numbers.shape[-1]
    if not depth:
        raise ValueError("gather_nd of a RaggedTensor: indices of depth 0 are not offered")
    flat = numbers.reshape(-1, depth)
    rows: Any = values
    places = _within(flat[:, 0], np.full(len(flat), values.partition.rows), np.zeros(len(flat), np.int64))
    for at in range(1, depth):
        outer = _divided(rows)
        splits = outer.partition.numbers().astype(np.int64)
        places = _within(flat[:, at], np.diff(splits)[places], splits[:-1][places])
        rows = outer.values
    chosen = take(rows, places)
    shape = numbers.shape[:-1]
    if len(shape) == 1:
        return chosen
    if not isinstance(chosen, RaggedTensor):
        return call(ops.reshape, (chosen,), shape=(*shape, *chosen.shape.as_list()[1:]))
    if not shape:
        return chosen[0]
    return _in_rows(chosen, shape, chosen.partition.dtype)


# --------------------------------------------------------------------------------------------------------------- masks
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """`tf.ragged.boolean_mask`: the elements where a mask is true; each row keeps its own.

    Args:
        data: A tensor or a ragged tensor.
        mask: Bools, a tensor or a ragged tensor, which is read; its shape is that of the first axes of `data`.
        name: Accepted, without effect.

    Returns:
        A ragged tensor of the same rank, or a tensor for a mask [n].

    Raises:
        ValueError: The mask is a scalar.
        InvalidArgumentError: Its rows are not those of `data`.

    Example:
        tf.ragged.boolean_mask(tf.constant([[1, 2], [3, 4]]), [[True, False], [True, True]])
    """
    values, flags = common_splits(tensor_or_ragged(data), tensor_or_ragged(mask, dtypes.bool))
    if not isinstance(flags, RaggedTensor) and flags.dtype is not dtypes.bool:
        flags = convert_to_tensor(mask, dtypes.bool)
    if not len(flags.shape):
        raise ValueError("mask cannot be scalar.")
    if len(flags.shape) > 1:
        outer = values if isinstance(values, RaggedTensor) else _divided(values)
        own = flags if isinstance(flags, RaggedTensor) else _divided(flags)
        if outer.partition.rows != own.partition.rows or not outer.partition.same(own.partition):
            raise InvalidArgumentError(
                "Inputs must have identical ragged splits: the mask's rows differ from the data's"
            )
        return _masked_rows(outer, own)
    present = np.asarray(flags.numpy(), bool)
    if present.shape[0] != values.shape.as_list()[0]:
        raise ValueError(f"Shapes {TensorShape(values.shape.as_list()[:1])} and {flags.shape} are incompatible")
    return take(values, np.flatnonzero(present))


def _masked_rows(values: RaggedTensor, flags: RaggedTensor) -> RaggedTensor:
    """Returns the rows of `values`, each without the elements where the mask is false."""
    if len(flags.shape) > 2:
        return RaggedTensor.of(boolean_mask(values.values, flags.values), values.partition.without_length())
    present = np.asarray(flags.flat_values.numpy(), bool)
    before = np.concatenate([[0], np.cumsum(present)])
    splits = before[flags.partition.numbers().astype(np.int64)]
    partition = RowPartition.of_numbers(splits, values.partition.dtype)
    return RaggedTensor.of(take(values.values, np.flatnonzero(present)), partition)


def nonzero(condition: RaggedTensor) -> Any:
    """Returns the indices at which a ragged tensor is true: int64 [n, rank]."""
    outer = indices_of(condition)
    inner = np.argwhere(np.asarray(condition.flat_values.numpy()))
    places = np.concatenate([outer[inner[:, 0]], inner[:, 1:]], axis=1)
    return constant(places.astype(np.int64))
