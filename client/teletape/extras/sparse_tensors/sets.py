"""`tf.sets`: the rows of tensors as sets of numbers or strings, on the host. The last axis holds the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape_engine.errors import InvalidArgumentError

_DTYPES = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.string)


def size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """The number of distinct elements of each row of a sparse tensor: int32 [*shape[:-1]].

    Raises:
        TypeError: It is not sparse, or its elements are neither integers nor strings.

    Example:
        tf.sets.size(tf.sparse.from_dense([[1, 2, 2], [3, 0, 0]]))
    """
    if not isinstance(a, SparseTensor):
        raise TypeError("Expected `SparseTensor`, got %s." % a)  # noqa: UP031  # TensorFlow's text
    rows, lengths, _ = _rows(a)
    counts = np.zeros(lengths[:-1], np.int32)
    for place, elements in rows.items():
        counts[place] = len(elements)
    return constant(counts)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that both rows have, in ascending order, as a sparse tensor.

    Args:
        a: A tensor or sparse tensor [*rows, elements] of integers or strings.
        b: The same, with the same rows.
        validate_indices: Accepted, without effect: sets have no order.

    Raises:
        TypeError: Elements of another dtype, or of two.
        InvalidArgumentError: Other rows.

    Example:
        tf.sets.intersection(np.array([[1, 2, 3]]), np.array([[2, 3, 4]]))
    """
    return _combined(a, b, lambda first, second: first & second)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in a row of `a` but not of `b`; the reverse if not `aminusb`.

    Example:
        tf.sets.difference(np.array([[1, 2, 3]]), np.array([[2, 4, 4]]))
    """
    return _combined(a, b, (lambda first, second: first - second) if aminusb else lambda first, second: second - first)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in either row. Arguments and errors are those of intersection.

    Example:
        tf.sets.union(np.array([[1, 2]]), np.array([[2, 4]]))
    """
    return _combined(a, b, lambda first, second: first | second)


Sets = dict[tuple[int, ...], set[Any]]


def _rows(value: Any) -> tuple[Sets, list[int], Any]:
    if isinstance(value, SparseTensor):
        places, elements, lengths = value.places(), value.values, value.shape.as_list()
    else:
        elements = convert_to_tensor(value)
        lengths = elements.shape.as_list()
        places = np.indices(lengths).reshape(len(lengths), -1).T
    if elements.dtype not in _DTYPES:
        raise TypeError(f"a set has integers or strings, found {elements.dtype.name}")
    rows: Sets = {}
    flat = np.asarray(elements.numpy()).reshape(-1).tolist()
    for place, element in zip(places[:, :-1].tolist(), flat, strict=True):
        rows.setdefault(tuple(place), set()).add(element)
    return rows, lengths, elements.dtype


def _combined(a: Any, b: Any, how: Callable[[set[Any], set[Any]], set[Any]]) -> SparseTensor:
    (first, lengths, dtype), (second, other_lengths, other_dtype) = _rows(a), _rows(b)
    if dtype is not other_dtype:
        raise TypeError(f"the sets must have one dtype, found {dtype.name} and {other_dtype.name}")
    if lengths[:-1] != other_lengths[:-1]:
        raise InvalidArgumentError(
            f"the rows of two sets must be the same, found {lengths[:-1]} and {other_lengths[:-1]}"
        )
    places, elements, longest = [], [], 0
    for place in sorted({*first, *second}):
        row = sorted(how(first.get(place, set()), second.get(place, set())))
        places += [[*place, number] for number in range(len(row))]
        elements += row
        longest = max(longest, len(row))
    indices = np.array(places, np.int64).reshape(-1, len(lengths))
    values = constant(elements, dtype) if elements else constant(np.zeros(0, dtype.np), dtype)
    return SparseTensor(constant(indices), values, [*lengths[:-1], longest])
