"""Joins, stacks, repeats, reverses and splits ragged tensors; adds and removes axes of length 1."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, tensor_or_ragged
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.rows import columns, take, take_range, uniform
from teletape.extras.ragged_tensors.tensor import RaggedTensor, common_splits
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


# ------------------------------------------------------------------------------------------------------------ joining
def concat(values: Any, axis: Any) -> Any:
    """Joins ragged tensors and tensors of one rank along an axis; along an inner axis row by row.

    Raises:
        ValueError: Nothing to join, other ranks, no such axis, row splits of several dtypes.
        InvalidArgumentError: Other numbers of rows.
    """
    several = list(values) if isinstance(values, list | tuple) else [values]
    return _joined(_operands(several), to.ints(axis, "axis")[0], stacks=False)


def stack(values: Any, axis: Any = 0) -> Any:
    """Stacks ragged tensors and tensors of one rank along a new axis; arguments and errors are those of concat."""
    several = list(values) if isinstance(values, list | tuple) else [values]
    return _joined(_operands(several), to.whole(axis), stacks=True)


def _operands(values: Sequence[Any]) -> list[Any]:
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    operands = common_splits(*[tensor_or_ragged(value) for value in values])
    for each in operands[1:]:
        each.shape.assert_has_rank(len(operands[0].shape))
    return operands


def _joined(values: list[Any], axis: int, *, stacks: bool) -> Any:
    if len(values) == 1 and not stacks:
        return values[0]
    rank = len(values[0].shape)
    at = to.axis_within(axis, rank + stacks)
    dtype: Any = next((each.partition.dtype for each in values if isinstance(each, RaggedTensor)), np.dtype(np.int64))
    if stacks and rank == 1 and at == 0:
        lengths = np.array([each.shape.as_list()[0] for each in values])
        return RaggedTensor.of(call(ops.concat, values, axis=0), RowPartition.of_lengths(lengths, np.int32))
    if not any(isinstance(each, RaggedTensor) for each in values) and at in (rank + stacks - 1, rank - 1):
        return call(ops.stack if stacks else ops.concat, values, axis=at)
    divisions = max([1, *(each.ragged_rank for each in values if isinstance(each, RaggedTensor))])
    ragged = [_divided(each, divisions, dtype) for each in values]
    if at == 0:
        return _one_after_the_other(ragged, stacks)
    if at == 1:
        return _row_by_row(ragged, stacks)
    for each in ragged[1:]:
        if not ragged[0].partition.same(each.partition):
            raise InvalidArgumentError("Inputs must have identical ragged splits")
    return RaggedTensor.of(_joined([each.values for each in ragged], at - 1, stacks=stacks), ragged[0].partition)


def _divided(value: Any, divisions: int, dtype: Any) -> Any:
    """Returns a tensor or ragged tensor with at least `divisions` divisions."""
    if not divisions:
        return value
    if not isinstance(value, RaggedTensor):
        whole = uniform(value, divisions, dtype)
        return RaggedTensor.of(whole.flat_values, *(each.without_length() for each in whole.partitions))
    return RaggedTensor.of(_divided(value.values, divisions - 1, dtype), value.partition)


def _one_after_the_other(values: list[RaggedTensor], stacks: bool) -> RaggedTensor:
    flat = call(ops.concat, [each.flat_values for each in values], axis=0)
    partitions = []
    for divisions in zip(*(each.partitions for each in values), strict=True):
        known = [each.known() for each in divisions]
        lengths = {each.uniform for each in divisions}
        whole = lengths.pop() if len(lengths) == 1 else None
        if all(numbers is not None for numbers in known):
            sizes = np.concatenate([np.diff(numbers) for numbers in known if numbers is not None])
            partitions.append(RowPartition.of_lengths(sizes, divisions[0].dtype, whole))
        else:
            ends = call(ops.cumsum, (call(ops.concat, [each.lengths() for each in divisions], axis=0),))
            zero = np.zeros(1, divisions[0].dtype)
            partitions.append(RowPartition(call(ops.concat, (zero, ends), axis=0), whole))
    if stacks:
        rows = np.array([each.partition.rows for each in values])
        partitions.insert(0, RowPartition.of_lengths(rows, values[0].partition.dtype))
    return RaggedTensor.of(flat, *partitions)


def _row_by_row(values: list[RaggedTensor], stacks: bool) -> RaggedTensor:
    rows, count = values[0].partition.rows, len(values)
    for number, each in enumerate(values[1:], 1):
        if each.partition.rows != rows:
            raise InvalidArgumentError(
                f"Input tensors at index 0 (=x) and {number} (=y) have incompatible shapes.: {rows} and "
                f"{each.partition.rows} rows"
            )
    order = np.arange(rows * count).reshape(count, rows).T.reshape(-1)
    mixed = take(_one_after_the_other(values, False), order)
    if stacks:
        return RaggedTensor.of(mixed, RowPartition.of_numbers(np.arange(rows + 1) * count, mixed.partition.dtype))
    numbers = mixed.partition.numbers()
    return RaggedTensor.of(mixed.values, RowPartition.of_numbers(numbers[::count], mixed.partition.dtype))


# --------------------------------------------------------------------------------------------------- axes of length 1
def expand_dims(value: RaggedTensor, axis: Any) -> RaggedTensor:
    """Adds an axis of length 1."""
    at, dtype = to.axis_within(axis, len(value.shape) + 1), value.partition.dtype
    if at == 0:
        return RaggedTensor.of(value, RowPartition.of_length(value.partition.rows, 1, dtype))
    if at == 1:
        return RaggedTensor.of(value, RowPartition.of_length(1, value.partition.rows, dtype))
    return RaggedTensor.of(_expanded(value.values, at - 1), value.partition)


def _expanded(value: Any, axis: int) -> Any:
    return expand_dims(value, axis) if isinstance(value, RaggedTensor) else call(ops.expand_dims, (value,), axis=axis)


def squeeze(value: RaggedTensor, axis: Any) -> Any:
    """Removes axes of length 1.

    Raises:
        ValueError: No axis is named.
        InvalidArgumentError: An axis is longer.
    """
    if axis is None or axis == ():
        raise ValueError("Ragged.squeeze must have an axis argument.")
    named = {to.axis_within(number, len(value.shape)) for number in ([axis] if isinstance(axis, int) else list(axis))}
    divisions = value.ragged_rank
    inner = sorted(at - divisions for at in named if at > divisions)
    flat = call(ops.squeeze, (value.flat_values,), axis=tuple(inner)) if inner else value.flat_values
    remaining = []
    for at, division in enumerate(value.partitions, 1):
        if at not in named:
            remaining.append(division)
        elif division.uniform != 1 and not bool((np.diff(division.numbers()) == 1).all()):
            raise InvalidArgumentError(f"the given axis (axis = {at}) is not squeezable!")
    if 0 in named:
        if value.partition.rows != 1:
            raise InvalidArgumentError("the given axis (axis = 0) is not squeezable!")
        if not remaining:
            return call(ops.squeeze, (flat,), axis=(0,)) if 1 in named or divisions == 0 else flat
        remaining = remaining[1:]
    return RaggedTensor.of(flat, *remaining)


# ----------------------------------------------------------------------------------------------------- repeated, turned
def tile(value: RaggedTensor, multiples: Any) -> Any:
    """Repeats a ragged tensor along each axis."""
    counts = to.ints(multiples, "multiples")
    if len(counts) != len(value.shape):
        raise InvalidArgumentError(f"multiples: one for each of the {len(value.shape)} axes, found {list(counts)}")
    return _tiled(value, counts)


def _tiled(value: Any, counts: Sequence[int]) -> Any:
    if not isinstance(value, RaggedTensor):
        return value if all(count == 1 for count in counts) else call(ops.tile, (value,), multiples=tuple(counts))
    inner = _tiled(value.values, (1, *counts[2:])) if counts[2:] else value.values
    rows, partition = RaggedTensor.of(inner, value.partition), value.partition
    if counts[1] != 1:
        numbers = partition.numbers().astype(np.int64)
        starts, lengths = (np.repeat(each, counts[1]) for each in (numbers[:-1], np.diff(numbers)))
        length = None if partition.uniform is None else partition.uniform * counts[1]
        longer = RowPartition.of_lengths(np.diff(numbers) * counts[1], partition.dtype, length)
        rows = RaggedTensor.of(take(inner, ranges(starts, lengths), dense=True), longer)
    if counts[0] == 1:
        return rows
    return take(rows, np.tile(np.arange(partition.rows), counts[0]), dense=True)


def reverse(value: RaggedTensor, axis: Any) -> Any:
    """Reverses the elements along some axes.

    Raises:
        ValueError: No such axis.
    """
    result: Any = value
    for each in to.ints(axis, "axis"):
        result = _reversed(result, to.axis_within(each, len(value.shape)))
    return result


def _reversed(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return call(ops.reverse, (value,), axis=(axis,))
    if axis == 0:
        return take(value, np.arange(value.partition.rows)[::-1], dense=True)
    if axis > 1:
        return RaggedTensor.of(_reversed(value.values, axis - 1), value.partition)
    numbers = value.partition.numbers().astype(np.int64)
    ends = np.repeat(numbers[1:] - 1, np.diff(numbers))
    return RaggedTensor.of(take(value.values, ends - columns(value.partition), dense=True), value.partition)


def split(value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: Any = None) -> list[Any]:
    """Cuts a ragged tensor into pieces along axis 0 or an axis inside the divisions, like tf.split.

    Raises:
        ValueError: An axis whose length differs from row to row.
        InvalidArgumentError: Pieces that do not fit.
    """
    at, shape = to.axis_within(axis, len(value.shape)), value.shape.as_list()
    length = shape[at]
    if length is None:
        raise ValueError(f"tf.split of a RaggedTensor along axis {at}: its length differs from row to row")
    pieces = num_or_size_splits
    scalar = isinstance(pieces, int) or (hasattr(pieces, "shape") and not len(pieces.shape))
    if scalar:
        count = to.whole(pieces)
        if count < 1 or length % count:
            raise InvalidArgumentError(f"Cannot exactly split an axis of length {length} into {count} pieces")
        sizes = [length // count] * count
    else:
        sizes = list(to.ints(pieces, "num_or_size_splits"))
        rest = length - sum(size for size in sizes if size >= 0)
        sizes = [rest if size == -1 else size for size in sizes]
        if sum(sizes) != length or min(sizes, default=0) < 0:
            raise InvalidArgumentError(f"the sizes {sizes} do not add up to {length}, the length of axis {at}")
    ends = np.cumsum([0, *sizes]).tolist()
    key = (slice(None),) * at
    if at == 0:
        return [take_range(value, a, b) for a, b in itertools.pairwise(ends)]
    return [value[(*key, slice(a, b))] for a, b in itertools.pairwise(ends)]
