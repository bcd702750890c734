"""Conversions between ragged, dense and sparse tensors, and the merging of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.ragged_tensors.factories import from_row_lengths
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.rows import indices_of, uniform
from teletape.extras.ragged_tensors.tensor import RaggedTensor, checked_splits_dtype
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


# ---------------------------------------------------------------------------------------------------------- from dense
def from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """A ragged tensor of the rows of a tensor, whole or without the padding at their ends.

    Args:
        tensor: Of rank 2 or more.
        lengths: [rows]: the number of elements of each row; or a list of such tensors, one for each division.
        padding: An element that is left out at the ends of the rows, not together with `lengths`.
        ragged_rank: The number of divisions.
        name: Accepted, without effect.
        row_splits_dtype: int32 or int64.

    Raises:
        ValueError: A rank that is too low, a ragged rank below 1, lengths together with a padding.
    """
    dense, dtype = convert_to_tensor(tensor), checked_splits_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise ValueError("Specify argument `lengths` or `padding`, but not both.")
    if ragged_rank <= 0:
        raise ValueError(f"Argument `ragged_rank` must be greater than 0. Received {ragged_rank}.")
    if dense.ndim <= 1:
        raise ValueError(
            "The rank of a RaggedTensor must be greater than 1, i.e., a list of scalars won't have ragged dimensions. "
            f"Received argument `tensor` with rank {dense.ndim}."
        )
    several = isinstance(lengths, list | tuple) and len(lengths) > 0 and np.ndim(lengths[0]) > 0
    divisions = len(lengths) if several else ragged_rank
    dense.shape.with_rank_at_least(divisions + 1)
    whole = uniform(dense, divisions, dtype)
    if padding is not None:
        return _without_padding(whole, padding)
    if lengths is None:
        return whole
    return _cut(whole, lengths if several else [lengths], dtype)


def _cut(whole: RaggedTensor, lengths: Sequence[Any], dtype: Any) -> RaggedTensor:
    """Returns a ragged tensor with each row cut to its length, division by division."""
    rows = np.arange(whole.partition.rows)
    partitions = []
    for at, division in enumerate(whole.partitions):
        size = division.uniform or 0
        wanted = np.asarray(convert_to_tensor(lengths[at]).numpy()) if at < len(lengths) else np.full(rows.size, size)
        if wanted.shape != rows.shape:
            raise ValueError(f"Shapes {TensorShape(wanted.shape)} and {TensorShape(rows.shape)} are incompatible")
        cut = np.clip(wanted, 0, size).astype(np.int64)
        rows = ranges(rows * size, cut)
        partitions.append(RowPartition.of_lengths(cut, dtype))
    flat = call(ops.gather, (whole.flat_values, constant(rows)))
    return RaggedTensor.of(flat, *partitions)


def _without_padding(whole: RaggedTensor, padding: Any) -> RaggedTensor:
    """Returns a ragged tensor without the padding at the ends of its innermost rows."""
    flat, division = whole.flat_values, whole.partitions[-1]
    element = convert_to_tensor(padding, flat.dtype) if not isinstance(padding, TensorLike) else padding
    inner = flat.shape.as_list()[1:]
    if element.shape.as_list() != inner:
        raise ValueError(f"Shapes {element.shape} and {TensorShape(inner)} are incompatible")
    values = np.asarray(flat.numpy())
    differs = (values != np.asarray(element.numpy())).reshape(values.shape[0], -1).any(axis=1)
    size = division.uniform or 0
    last = np.where(differs, np.arange(values.shape[0]) % max(size, 1) + 1, 0)
    cut = last.reshape(division.rows, size).max(axis=1, initial=0)
    chosen = ranges(np.arange(division.rows) * size, cut)
    rows = RowPartition.of_lengths(cut, division.dtype)
    return RaggedTensor.of(call(ops.gather, (flat, constant(chosen))), *whole.partitions[:-1], rows)


# ----------------------------------------------------------------------------------------------------------- to dense
def bounding_shape(self: RaggedTensor, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape of the smallest dense tensor that has room for all rows, or its lengths along some axes.

    Args:
        self: A ragged tensor.
        axis: An axis, or a list of axes; None: all.
        name: Accepted, without effect.
        out_type: int32 or int64; None: that of the row splits.
    """
    lengths = np.array(bounds(self), self.partition.dtype if out_type is None else checked_splits_dtype(out_type))
    return constant(lengths if axis is None else lengths[np.asarray(axis)])


def bounds(value: RaggedTensor) -> list[int]:
    """The shape of the smallest dense tensor that has room for all rows."""
    longest = [
        p.uniform if p.uniform is not None else int(np.diff(p.numbers()).max(initial=0)) for p in value.partitions
    ]
    return [value.partition.rows, *longest, *value.flat_values.shape.as_list()[1:]]


def to_tensor(self: RaggedTensor, default_value: Any = None, name: str | None = None, shape: Any = None) -> Tensor:
    """A dense tensor whose rows are padded to one length.

    Args:
        self: A ragged tensor.
        default_value: The padding, of the values' dtype, and of a shape that broadcasts to the inner one; None: zeros.
        name: Accepted, without effect.
        shape: The result's shape: rows are cut or padded to it; None, or None for a length: as long as needed.

    Raises:
        TypeError: A default value of another dtype.
        InvalidArgumentError: A shape of another rank.
    """
    lengths = bounds(self)
    if shape is not None:
        wanted = TensorShape(to.ints(shape) if isinstance(shape, TensorLike) else shape).as_list()
        if len(wanted) != len(lengths):
            raise InvalidArgumentError(
                f"rt_input.shape and shape={wanted} are incompatible: rt_input.rank = {len(lengths)} but shape.rank = "
                f"{len(wanted)} [Op:RaggedTensorToTensor]"
            )
        lengths = [own if length in (None, -1) else length for own, length in zip(lengths, wanted, strict=True)]
    flat, divisions = self.flat_values, self.ragged_rank
    inner = flat.shape.as_list()[1:]
    if lengths[divisions + 1 :] != inner:
        raise InvalidArgumentError(
            f"shape {lengths}: the inner axes of the values are {inner} [Op:RaggedTensorToTensor]"
        )
    places, present = _places(self, lengths[: divisions + 1])
    count = int(np.prod(lengths[: divisions + 1], dtype=np.int64))
    padding = to.like(0 if default_value is None and flat.dtype.is_numeric else _empty(default_value, flat), flat)
    if not present.any():
        return call(ops.broadcast_to, (padding,), shape=tuple(lengths))
    rows = call(ops.gather, (call(ops.expand_dims, (flat,), axis=0), constant(places)), axis=1)
    rows = call(ops.reshape, (rows,), shape=(count, *inner))
    if not present.all():
        mask = constant(present.reshape(count, *(1 for _ in inner)))
        rows = call(ops.where, (mask, rows, padding))
    return call(ops.reshape, (rows,), shape=tuple(lengths))


def _empty(default_value: Any, flat: Any) -> Any:
    if default_value is not None:
        return default_value
    return "" if flat.dtype is dtypes.string else False


def _places(value: RaggedTensor, lengths: Sequence[int]) -> tuple[Any, Any]:
    """For each position along the dense tensor's outer axes the index of a flat value, and whether there is one."""
    rows = np.arange(lengths[0])
    present = rows < value.partition.rows
    rows = np.where(present, rows, 0)
    for division, length in zip(value.partitions, lengths[1:], strict=True):
        numbers = division.numbers().astype(np.int64)
        sizes = np.diff(numbers) if division.rows else np.zeros(1, np.int64)
        starts = numbers[:-1] if division.rows else np.zeros(1, np.int64)
        column = np.arange(length)
        present = (present[:, None] & (column < sizes[rows][:, None])).reshape(-1)
        rows = np.where(present, (starts[rows][:, None] + column).reshape(-1), 0)
    return rows, present


# ------------------------------------------------------------------------------------------------------------- sparse
def to_sparse(self: RaggedTensor, name: str | None = None) -> SparseTensor:
    """A sparse tensor of the values at their indices in the dense shape."""
    flat = self.flat_values
    inner = flat.shape.as_list()[1:]
    outer = indices_of(self)
    within = np.indices(inner).reshape(len(inner), int(np.prod(inner, dtype=np.int64))).T
    indices = np.concatenate([np.repeat(outer, len(within), axis=0), np.tile(within, (len(outer), 1))], axis=1)
    values = call(ops.reshape, (flat,), shape=(-1,)) if inner else flat
    return SparseTensor(constant(indices.astype(np.int64)), values, bounds(self))


def from_sparse(st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> RaggedTensor:
    """A ragged tensor of the rows of a sparse matrix; each row must begin at column 0 and have no gap.

    Raises:
        TypeError: No sparse tensor.
        ValueError: Another rank than 2.
        InvalidArgumentError: A row has a gap.
    """
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"Argument `st_input` must be of type SparseTensor, but is of type {type(st_input).__name__}.")
    lengths = st_input.shape.as_list()
    if len(lengths) != 2:
        raise ValueError("rank(st_input) must be 2.")
    places = st_input.places()
    counts = np.bincount(places[:, 0], minlength=lengths[0])
    if not np.array_equal(places[:, 1], ranges(np.zeros(lengths[0], np.int64), counts)):
        raise InvalidArgumentError("SparseTensor is not right-ragged: a place of a row is left out before another")
    return from_row_lengths(st_input.values, constant(counts.astype(checked_splits_dtype(row_splits_dtype))))


# ----------------------------------------------------------------------------------------------------------- divisions
def merge_dims(self: RaggedTensor, outer_axis: int, inner_axis: int) -> Any:
    """Merges the axes from one to another: rows of rows become rows. The result is a tensor if no division is left.

    Raises:
        ValueError: Axes out of range, or in the wrong order.
    """
    rank = len(self.shape)
    outer, inner = to.axis_within(outer_axis, rank, "outer_axis"), to.axis_within(inner_axis, rank, "inner_axis")
    if not outer < inner:
        if outer == inner:
            return self
        raise ValueError(f"Expected outer_axis ({outer}) to be less than or equal to inner_axis ({inner}).")
    return _merged(self, outer, inner)


def _merged(value: Any, outer: int, inner: int) -> Any:
    if not isinstance(value, RaggedTensor):
        lengths = value.shape.as_list()
        merged = int(np.prod(lengths[outer : inner + 1], dtype=np.int64))
        return call(ops.reshape, (value,), shape=(*lengths[:outer], merged, *lengths[inner + 1 :]))
    if outer > 1:
        return RaggedTensor.of(_merged(value.values, outer - 1, inner - 1), value.partition)
    if outer == 0:
        return _merged(value.values, 0, inner - 1) if inner > 1 else value.values
    values, partition = value.values, value.partition
    for _ in range(inner - 1):
        if not isinstance(values, RaggedTensor):
            values = uniform(values, 1, partition.dtype)
        lengths = [partition.uniform, values.partition.uniform]
        whole = None if None in lengths else lengths[0] * lengths[1]
        splits = values.partition.numbers()[partition.numbers()]
        partition, values = RowPartition.of_numbers(splits, partition.dtype, whole), values.values
    return RaggedTensor.of(values, partition)
