"""Python values and arrays as tensors: dtypes and shapes as in TensorFlow, copies, and what cannot be a tensor."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import fits, host_array, wrapped


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1, "int32", ()),
        (2**31, "int64", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        (1j, "complex128", ()),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([1, 2.5], "float32", (2,)),
        ([1, True], "int32", (2,)),
        (range(3), "int32", (3,)),
        ([range(2), range(2, 4)], "int32", (2, 2)),
        (((1, 2), (3, 4)), "int32", (2, 2)),
        (np.float64(2.0), "float64", ()),
        ([np.float64(2.0), 1.0], "float64", (2,)),
        (np.ones([2], np.uint8), "uint8", (2,)),
        ([np.ones(2), np.zeros(2)], "float64", (2, 2)),
        (np.ones([1], ml_dtypes.bfloat16), "bfloat16", (1,)),
        ("text", "object", ()),
        (["a", b"b"], "object", (2,)),
    ],
)
def test_the_dtype_and_shape_that_tensorflow_gives(value: Any, dtype: str, shape: tuple[int, ...]) -> None:
    array = host_array(value)
    assert (array.dtype.name, array.shape) == (dtype, shape)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (True, dtypes.int32, 1),
        ([True, False], dtypes.float32, [1.0, 0.0]),
        (3, dtypes.float16, 3.0),
        (np.array([1.7, -1.7]), dtypes.int32, [1, -1]),
        (range(2), dtypes.float64, [0.0, 1.0]),
    ],
)
def test_what_takes_a_dtype(value: Any, dtype: dtypes.DType, expected: Any) -> None:
    array = host_array(value, dtype)
    assert array.dtype == dtype.np
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype", "error", "says"),
    [
        (None, None, ValueError, "Attempt to convert a value"),
        (object(), None, ValueError, "unsupported type"),
        ([[1], [1, 2]], None, ValueError, "non-rectangular"),
        ([True, 1], None, ValueError, "mixed types"),
        ([1, "a"], None, ValueError, "mixed types"),
        (2**64, None, ValueError, "64 bits"),
        (1.5, dtypes.int32, TypeError, "Cannot convert 1.5 to EagerTensor of dtype int32"),
        (1j, dtypes.float32, TypeError, "of dtype float"),
        ("a", dtypes.float64, TypeError, "of dtype double"),
        (1 << 64, dtypes.uint8, ValueError, "does not fit 64 bits"),
    ],
)
def test_what_cannot_be_a_tensor(value: Any, dtype: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        host_array(value, dtype)


def test_nothing_aliases_the_callers_array() -> None:
    mine = np.zeros(3, np.float32)
    assert not np.shares_memory(host_array(mine), mine)
    assert not np.shares_memory(host_array(mine[::2]), mine)


def test_numbers_wrap_as_tensorflows_arithmetic_does() -> None:
    assert fits(-128, np.dtype(np.int8))
    assert not fits(128, np.dtype(np.int8))
    assert not fits(1, np.dtype(np.float32))
    assert [wrapped(n, np.dtype(np.int8)) for n in (128, -129, 300)] == [-128, 127, 44]
    assert wrapped(2**40, np.dtype(np.int32)) == 0
