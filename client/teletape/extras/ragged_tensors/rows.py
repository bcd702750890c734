"""Rows of ragged tensors by their numbers; the row splits have the indices of their flat values."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops


def indices_of(value: RaggedTensor) -> HostArray:
    """Returns the indices of each flat value along the axes that are divided, [values, divisions + 1]."""
    ids = np.arange(value.flat_values.shape.as_list()[0])
    indices = []
    for division in reversed(value.partitions):
        indices.append(columns(division)[ids])
        ids = np.repeat(np.arange(division.rows), np.diff(division.numbers()))[ids]
    return np.stack([ids, *reversed(indices)], axis=1)


def take(value: Any, index: HostArray, *, dense: bool = False) -> Any:
    """Returns the rows of a tensor or a ragged tensor with these numbers, in this order.

    Args:
        value: The tensor.
        index: int64 [n], in the range of the rows.
        dense: Whether the gradient is a dense tensor; otherwise it is IndexedSlices, as in TensorFlow.
    """
    if isinstance(value, RaggedTensor):
        numbers = value.partition.numbers().astype(np.int64)
        starts, lengths = numbers[:-1][index], np.diff(numbers)[index]
        partition = RowPartition.of_lengths(lengths, value.partition.dtype, value.partition.uniform)
        return RaggedTensor.of(take(value.values, ranges(starts, lengths), dense=dense), partition)
    if index.size == value.shape.as_list()[0] and bool((index == np.arange(index.size)).all()):
        return value
    return entries_at(value, constant(index)) if dense else call(ops.gather, (value, constant(index)))


def take_range(value: Any, start: int, end: int) -> Any:
    """Returns the rows from `start` to before `end`."""
    if isinstance(value, RaggedTensor):
        numbers = value.partition.numbers()
        splits = numbers[start : max(start, end) + 1]
        first = int(splits[0])
        partition = RowPartition.of_numbers(splits - first, value.partition.dtype, value.partition.uniform)
        return RaggedTensor.of(take_range(value.values, first, int(splits[-1])), partition)
    return call(ops.strided_slice, (value,), index=((start, end, None),))


def outer_rowids(value: RaggedTensor) -> Any:
    """Returns for each flat value the number of its row along axis 0, as a tensor."""
    partitions = value.partitions
    counts = [partition.rows for partition in partitions[1:]] + [value.flat_values.shape.as_list()[0]]
    ids = partitions[0].rowids(counts[0])
    for partition, count in zip(partitions[1:], counts[1:], strict=True):
        ids = call(ops.gather, (ids, partition.rowids(count)))
    return ids


def columns(partition: RowPartition) -> HostArray:
    """Returns for each value its index in its row, int64."""
    numbers = partition.numbers().astype(np.int64)
    return ranges(np.zeros(partition.rows, np.int64), np.diff(numbers))


def uniform(tensor: Any, divisions: int, dtype: Any = np.int64) -> RaggedTensor:
    """Returns a tensor of rank above `divisions` as a ragged tensor with rows of one length in each division."""
    lengths = tensor.shape.as_list()
    count = int(np.prod(lengths[: divisions + 1], dtype=np.int64))
    flat = call(ops.reshape, (tensor,), shape=(count, *lengths[divisions + 1 :]))
    partitions = [
        RowPartition.of_length(lengths[axis + 1], int(np.prod(lengths[: axis + 1], dtype=np.int64)), dtype)
        for axis in range(divisions)
    ]
    return RaggedTensor.of(flat, *partitions)
