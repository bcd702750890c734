"""Conversion of arguments by NumPy's rules: to arrays, and to the common dtype of several arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape._generated.shapes import cast
from teletape.core.calls.dispatch import constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.tensor import Tensor, TensorLike

_NUMBERS: Final = (bool, int, float, complex)
_cast: Final = cast.cast


class Preference:
    """The dtypes of Python's numbers.

    Attributes:
        floats: The dtype of a float.
        integers: The dtype of an int.
    """

    floats: dtypes.DType = dtypes.float64
    integers: dtypes.DType = dtypes.int64


def prefer_float32(wanted: bool) -> None:
    """Makes Python's numbers 32 bits wide, or 64 again."""
    Preference.floats = dtypes.float32 if wanted else dtypes.float64
    Preference.integers = dtypes.int32 if wanted else dtypes.int64


def dtype_of(dtype: Any) -> dtypes.DType:
    """Returns a dtype; for Python's float and int the preferred one."""
    if dtype is float:
        return Preference.floats
    if dtype is int:
        return Preference.integers
    return dtypes.as_dtype("complex128" if dtype is complex else dtype)


def array(value: Any, dtype: Any = None) -> Tensor:
    """Returns a value as a tensor: Python's numbers are 64 bits wide, other values keep their dtype.

    Args:
        value: A number, an array or a tensor, or nested lists of them.
        dtype: The dtype; None: that of the value.
    """
    if not isinstance(value, TensorLike):
        leaves = nest.flatten(value)
        if any(isinstance(leaf, TensorLike) for leaf in leaves):
            kind = common_dtype(*leaves)
            value = convert_to_tensor(nest.map_structure(lambda leaf: _cast(array(leaf), kind), value))
        else:
            numbers = np.asarray(value)
            narrow = {"f": Preference.floats, "i": Preference.integers}.get(numbers.dtype.kind)
            plain = narrow is not None and not any(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves)
            value = constant(numbers.astype(narrow.np) if plain and narrow is not None else numbers)
    tensor = convert_to_tensor(value)
    return tensor if dtype is None else _cast(tensor, dtype_of(dtype))


def common_dtype(*values: Any) -> dtypes.DType:
    """Returns the common dtype of all values by NumPy's rules, in which arrays have precedence over Python's numbers.

    Raises:
        InvalidArgumentError: NumPy knows no such dtype.
    """
    kinds: list[Any] = []
    for value in values:
        if type(value) in _NUMBERS:
            kinds.append(value)
        else:
            kinds.append(value.np if isinstance(value, dtypes.DType) else array(value).dtype.np)
    try:
        result = dtypes.as_dtype(np.result_type(*kinds))
    except TypeError as error:
        raise InvalidArgumentError(f"no dtype holds all of {', '.join(map(str, kinds))}: {error}") from None
    if all(type(kind) in _NUMBERS for kind in kinds):
        return {dtypes.float64: Preference.floats, dtypes.int64: Preference.integers}.get(result, result)
    return result


def promoted(*values: Any) -> list[Tensor]:
    """Returns values as tensors of their common dtype."""
    kind = common_dtype(*values)
    return [
        array(value) if isinstance(value, TensorLike) and value.dtype is kind else array(value, kind)
        for value in values
    ]


def inexact(value: Any) -> Tensor:
    """Returns a value as a tensor of floats or complex numbers: integers and booleans become floats."""
    tensor = array(value)
    return tensor if tensor.dtype.is_floating or tensor.dtype.is_complex else _cast(tensor, Preference.floats)
