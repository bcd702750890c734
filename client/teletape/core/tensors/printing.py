"""The texts of tensors, variables and slices, as TensorFlow prints them, from values that were read before."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor_shape import TensorShape


def tensor_str(value: Any, shape: TensorShape, dtype: DType) -> str:
    """`str(tensor)`: `tf.Tensor([1. 2.], shape=(2,), dtype=float32)`, numbers as NumPy prints them.

    Args:
        value: The result of `tensor.numpy()`: an array, a NumPy scalar, or bytes.
        shape: The static shape.
        dtype: The dtype, which `value` does not have for strings.
    """
    return f"tf.Tensor({_own_lines(str(_scalar(value)))}, shape={shape}, dtype={dtype.name})"


def tensor_repr(value: Any, shape: TensorShape, dtype: DType) -> str:
    """`repr(tensor)`: `<tf.Tensor: shape=(), dtype=float32, numpy=1.5>`; scalars in full, arrays as NumPy's repr.

    The arguments are `tensor_str`'s.
    """
    return f"<tf.Tensor: shape={shape}, dtype={dtype.name}, numpy={_exact(value)}>"


def variable_repr(value: Any, shape: TensorShape, dtype: DType, name: str) -> str:
    """`repr(variable)` and `str(variable)`: `<tf.Variable 'w:0' shape=() dtype=float32, numpy=1.5>`.

    `name` is the variable's whole name, with its ":0"; the other arguments are `tensor_str`'s.
    """
    return f"<tf.Variable '{name}' shape={shape} dtype={dtype.name}, numpy={_exact(value)}>"


def slices_str(indices: Any, values: Any, dense_shape: Any | None) -> str:
    """`str(slices)` of an IndexedSlices made of these tensors; its repr is Python's own, as in TensorFlow."""
    dense = "" if dense_shape is None else f", dense_shape={dense_shape!s}"
    return f"IndexedSlices(indices={indices!s}, values={values!s}{dense})"


def _scalar(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _exact(value: Any) -> str:
    value = _scalar(value)
    return _own_lines(repr(value.item() if isinstance(value, np.generic) else value))


def _own_lines(text: str) -> str:
    return "\n" + text if "\n" in text else text
