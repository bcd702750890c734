"""Whole numbers out of arguments: shapes, axes and counts, given as numbers, lists, arrays or tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.tensors.convert import host_array
from teletape.tensors.tensor import TensorLike
from teletape.tensors.tensor_shape import TensorShape
from teletape_engine.errors import InvalidArgumentError


def ints(value: Any, what: str = "shape") -> tuple[int, ...]:
    """Whole numbers from a list, an array, a TensorShape or an integer tensor (whose values are read).

    Raises:
        InvalidArgumentError: No whole numbers.
        TypeError: Fractions for an axis.
    """
    if isinstance(value, TensorShape):
        return tuple(value.as_list())
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    if isinstance(value, list | tuple):
        if all(type(one) is int for one in value):
            return tuple(value)
        value = [int(one) if isinstance(one, TensorLike) and one.dtype.is_integer else one for one in value]
    array = value.numpy() if isinstance(value, TensorLike) else host_array(value)
    array = np.asarray(array)
    if array.size and array.dtype.kind not in "iu":
        if what == "axis" and array.dtype.kind == "f":
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype int32")
        raise InvalidArgumentError(f"{what} must be whole numbers (int32 or int64), found {value!r}")
    return tuple(int(one) for one in array.reshape(-1))


def lengths(value: Any, op: str) -> tuple[int, ...]:
    """A shape, none of whose lengths is negative."""
    found = ints(value)
    for one in found:
        if one < 0:
            raise InvalidArgumentError(f"Dimension {one} must be >= 0 [Op:{op}]")
    return found


def axis_of(value: Any) -> int:
    """One axis or count, from a number or a tensor."""
    return value if type(value) is int else int(value)


def axes(value: Any) -> Any:
    """An axis, several, or None, from numbers, lists or tensors."""
    if value is None or type(value) is int:
        return value
    if isinstance(value, TensorLike | np.ndarray | np.generic):
        array = np.asarray(value)
        return int(array) if array.ndim == 0 else tuple(int(one) for one in array)
    return ints(value, "axis")
