"""NumPy's names of dtypes and constants, and questions about dtypes."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.promotion import array, common_dtype, dtype_of

NAMES: Final[dict[str, Any]] = {
    "bool_": np.bool_,
    "complex128": np.complex128,
    "complex64": np.complex64,
    "complex_": np.complex128,
    "e": math.e,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "float_": np.float64,
    "inexact": np.inexact,
    "inf": math.inf,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "int8": np.int8,
    "int_": np.int64,
    "ndarray": Tensor,
    "newaxis": None,
    "object_": np.object_,
    "pi": math.pi,
    "string_": np.bytes_,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "uint8": np.uint8,
    "unicode_": np.str_,
}


def finfo(dtype: Any) -> Any:
    """Returns the limits of a floating dtype, as `numpy.finfo` does."""
    return np.finfo(dtypes.as_dtype(dtype).np)


def iinfo(int_type: Any) -> Any:
    """Returns the limits of an integer dtype, as `numpy.iinfo` does."""
    return np.iinfo(dtypes.as_dtype(int_type).np)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Returns whether a dtype belongs to a kind, as `numpy.issubdtype` does."""
    first = arg1.np if isinstance(arg1, dtypes.DType) else arg1
    return np.issubdtype(first, arg2.np if isinstance(arg2, dtypes.DType) else arg2)


def promote_types(type1: Any, type2: Any) -> Any:
    """Returns the NumPy dtype that holds two dtypes."""
    return np.promote_types(dtype_of(type1).np, dtype_of(type2).np)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Returns the NumPy dtype that arrays, numbers and dtypes have in common."""
    return common_dtype(*[_kind(value) for value in arrays_and_dtypes]).np


def _kind(value: Any) -> Any:
    if isinstance(value, type | np.dtype | str):
        return dtype_of(value)
    return value if isinstance(value, bool | int | float | complex | dtypes.DType) else array(value)
