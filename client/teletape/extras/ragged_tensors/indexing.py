"""`ragged[…]`: rows, parts of rows, and new axes, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.tensors.tensor import TensorLike
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.rows import take, take_range
from teletape.extras.ragged_tensors.tensor import RaggedTensor


def item(self: RaggedTensor, key: Any) -> Any:
    """Returns the rows, or parts of rows, at a key: integers, slices, `...`, `tf.newaxis`, or a tuple of those.

    Raises:
        ValueError: An integer along an axis whose length differs from row to row.
        IndexError: A row out of range; too many indices.
        TypeError: Anything else.
    """
    return _outer(self, list(key) if isinstance(key, list | tuple) else [key])


def _outer(value: Any, keys: Sequence[Any]) -> Any:
    """`value[keys]`, from the outermost axis on."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        return _outer(value, _without_ellipsis(keys, len(value.shape)))
    if key is None:
        return _under(_outer(value, rest), rows=1)
    if isinstance(key, slice):
        return _inner(_rows(value, key), rest)
    row, rows = _index(key), value.partition.rows
    if row >= rows:
        raise IndexError(f"Row key {row} out of bounds")
    if row < -rows:
        raise IndexError(f"slice index {row} of dimension 0 out of bounds.")
    numbers = value.partition.numbers()
    return _outer(take_range(value.values, int(numbers[row % rows]), int(numbers[row % rows + 1])), rest)


def _inner(value: Any, keys: Sequence[Any]) -> Any:
    """`value[:, keys]`: keys from the second axis on."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[(slice(None), *keys)]
    key, rest, uniform = keys[0], keys[1:], value.partition.uniform
    if key is Ellipsis:
        return _inner(value, _without_ellipsis(keys, len(value.shape) - 1))
    if key is None:
        return _under(_inner(value, rest), length=1)
    if isinstance(key, slice):
        if key == slice(None):
            return RaggedTensor.of(_inner(value.values, rest), value.partition)
        cut = _columns(value, key)
        return RaggedTensor.of(_inner(cut.values, rest), cut.partition)
    if uniform is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    column = _index(key)
    if not -uniform <= column < uniform:
        raise IndexError(f"Index out of bounds when indexing into a ragged tensor: {column} of {uniform}")
    places = np.arange(value.partition.rows) * uniform + column % uniform
    return _inner(take(value.values, places, dense=True), rest)


def _under(inner: Any, *, rows: int = 0, length: int = 0) -> RaggedTensor:
    """Returns a ragged or dense tensor under one more division: one row of all, or a row for each."""
    dtype: Any = inner.partition.dtype if isinstance(inner, RaggedTensor) else np.int64
    count = inner.shape.as_list()[0]
    return RaggedTensor.of(inner, RowPartition.of_length(length or count, rows or count, dtype))


def _rows(value: RaggedTensor, key: slice) -> RaggedTensor:
    """The rows of a slice."""
    start, stop, step = _bounds(key).indices(value.partition.rows)
    if key == slice(None):
        return value
    if step == 1:
        return take_range(value, start, max(start, stop))  # type: ignore[no-any-return]  # of a ragged tensor
    return take(value, np.arange(start, stop, step))  # type: ignore[no-any-return]  # of a ragged tensor


def _columns(value: RaggedTensor, key: slice) -> RaggedTensor:
    """Returns the part of each row at a slice."""
    numbers = value.partition.numbers().astype(np.int64)
    cut, sizes = _bounds(key), np.diff(numbers)
    step = 1 if cut.step is None else cut.step
    if not step:
        raise ValueError("slice step cannot be zero")
    first, last = (0, sizes) if step > 0 else (-1, sizes - 1)  # the smallest and the largest index of a bound
    start = (first if step > 0 else last) if cut.start is None else np.clip(_from_front(cut.start, sizes), first, last)
    stop = (last if step > 0 else first) if cut.stop is None else np.clip(_from_front(cut.stop, sizes), first, last)
    start, stop = np.broadcast_to(start, sizes.shape), np.broadcast_to(stop, sizes.shape)
    lengths = np.maximum(0, -((start - stop) // step))
    places = np.repeat(numbers[:-1] + start, lengths) + step * ranges(np.zeros_like(lengths), lengths)
    uniform = value.partition.uniform
    whole = None if uniform is None else len(range(*cut.indices(uniform)))
    return RaggedTensor.of(take(value.values, places), RowPartition.of_lengths(lengths, value.partition.dtype, whole))


def _from_front(bound: int, sizes: Any) -> Any:
    return sizes + bound if bound < 0 else bound


def _bounds(key: slice) -> slice:
    parts = (key.start, key.stop, key.step)
    if any(isinstance(part, float) for part in parts):
        raise TypeError("slice offsets must be integers or None")
    return slice(*(None if part is None else to.whole(part) for part in parts))


def _index(key: Any) -> int:
    whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
    if whole or (isinstance(key, TensorLike) and key.dtype.is_integer and not key.shape.rank):
        return int(key)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {key!r}"
    )


def _without_ellipsis(keys: Sequence[Any], axes: int) -> list[Any]:
    """Returns keys without their first one, `...`: it becomes a whole axis, or nothing if no axis is left for it."""
    count = sum(key is not None for key in keys)
    if count > axes + 1:
        raise IndexError("Too many indices for RaggedTensor")
    return list(keys[1:]) if count == axes + 1 else [slice(None), *keys]
