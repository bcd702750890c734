"""Row-major positions of a sparse tensor's values, and the indices of positions in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def positions(indices: Tensor, lengths: Sequence[int]) -> Tensor:
    """The row-major positions [n] of indices [n, rank] in an array with these lengths, int64."""
    return call(ops.reduce_sum, (call(ops.mul, (indices, constant(strides(lengths)))),), axis=(1,))


def places_of(numbers: Tensor, lengths: Sequence[int]) -> Tensor:
    """The indices [n, rank] of row-major positions [n] in an array with these lengths, int64."""
    if not lengths:
        return call(ops.zeros_like, (call(ops.reshape, (numbers,), shape=(*numbers.shape.as_list(), 1)),))[:, :0]
    columns = call(ops.reshape, (numbers,), shape=(*numbers.shape.as_list(), 1))
    quotients = call(ops.floordiv, (columns, constant(np.maximum(strides(lengths), 1))))
    return call(ops.floormod, (quotients, constant(np.maximum(np.array(lengths, np.int64), 1))))


def strides(lengths: Sequence[int]) -> HostArray:
    """The row-major strides: the growth of a position with each index, int64 [rank]."""
    return np.array([math.prod(lengths[axis + 1 :]) for axis in range(len(lengths))], np.int64)


def check(value: SparseTensor, op_type: str) -> None:
    """Reads the indices and checks that they are inside the shape, ascending, and without repetition.

    Raises:
        InvalidArgumentError: An index is not.
    """
    places, lengths = value.places(), np.array(value.shape.as_list(), np.int64)
    outside = np.flatnonzero(((places < 0) | (places >= lengths)).any(axis=1))
    if outside.size:
        where = int(outside[0])
        raise InvalidArgumentError(
            f"indices[{where}] = {_text(places[where])} is out of bounds: need 0 <= index < {_text(lengths)} "
            f"[Op:{op_type}]"
        )
    steps = np.diff(places @ strides(value.shape.as_list()))
    wrong = np.flatnonzero(steps <= 0)
    if wrong.size:
        where = int(wrong[0])
        problem = (
            "is repeated"
            if steps[where] == 0
            else "is out of order. Many sparse ops require sorted indices.\n  Use `tf.sparse.reorder` to create a "
            "correctly ordered copy."
        )
        raise InvalidArgumentError(f"indices[{where + 1}] = {_text(places[where + 1])} {problem} [Op:{op_type}]")


def _text(numbers: Any) -> str:
    return "[" + ",".join(map(str, numbers.tolist())) + "]"


def chosen(value: SparseTensor, selection: HostArray, places: HostArray, lengths: Sequence[int]) -> SparseTensor:
    """Some values of a sparse tensor, at new indices in a new shape.

    Args:
        value: The sparse tensor.
        selection: int64 [m]: the positions of the values, in their new order.
        places: int64 [m, rank]: their new indices.
        lengths: The new shape.
    """
    everything = selection.size == value.places().shape[0] and bool((np.diff(selection) == 1).all())
    selected = value.values if everything else entries_at(value.values, constant(selection))
    return SparseTensor(constant(places.reshape(-1, len(lengths)).astype(np.int64)), selected, lengths)
