"""How tensors and variables print; the texts were recorded with TensorFlow 2.21 and NumPy 2.4."""

from typing import Any

import numpy as np
import pytest

from teletape.core.tensors.dtypes import as_dtype
from teletape.core.tensors.printing import slices_str, tensor_repr, tensor_str, variable_repr
from teletape.core.tensors.tensor_shape import TensorShape

CASES = [
    # value, dtype, shape, in str(tensor), in repr(tensor) and repr(variable)
    (1.6, "float32", "()", "1.6", "1.600000023841858"),
    (0.1, "float64", "()", "0.1", "0.1"),
    (0.1, "float16", "()", "0.1", "0.0999755859375"),
    (0.1, "bfloat16", "()", "0.100098", "0.10009765625"),
    (1e20, "float32", "()", "1e+20", "1.0000000200408773e+20"),
    (float("nan"), "float32", "()", "nan", "nan"),
    (5, "uint8", "()", "5", "5"),
    (True, "bool", "()", "True", "True"),
    (1 + 2j, "complex128", "()", "(1+2j)", "(1+2j)"),
    (b"a", "string", "()", "b'a'", "b'a'"),
    ([], "float32", "(0,)", "[]", "array([], dtype=float32)"),
    ([[], []], "float32", "(2, 0)", "[]", "array([], shape=(2, 0), dtype=float32)"),
    ([1.6, 2.0], "float32", "(2,)", "[1.6 2. ]", "array([1.6, 2. ], dtype=float32)"),
    ([1, 2], "int64", "(2,)", "[1 2]", "array([1, 2])"),
    ([0.1, 2], "bfloat16", "(2,)", "[0.100098 2]", "array([0.100098, 2], dtype=bfloat16)"),
    ([True, False], "bool", "(2,)", "[ True False]", "array([ True, False])"),
    ([b"a", b"bc"], "string", "(2,)", "[b'a' b'bc']", "array([b'a', b'bc'], dtype=object)"),
    (
        *([[1.0, 2.0], [3.0, 4.0]], "float32", "(2, 2)"),
        *("\n[[1. 2.]\n [3. 4.]]", "\narray([[1., 2.],\n       [3., 4.]], dtype=float32)"),
    ),
    (
        *(list(range(2000)), "int32", "(2000,)", "[   0    1    2 ... 1997 1998 1999]"),
        "\narray([   0,    1,    2, ..., 1997, 1998, 1999],\n      shape=(2000,), dtype=int32)",
    ),
]


@pytest.mark.parametrize(("value", "name", "shape", "short", "exact"), CASES)
def test_text(value: Any, name: str, shape: str, short: str, exact: str) -> None:
    dtype = as_dtype(name)
    array = np.array(value, dtype=dtype.np)
    static = TensorShape(array.shape)
    for read in (array, array[()]):  # .numpy() of a scalar may give either
        assert tensor_str(read, static, dtype) == f"tf.Tensor({short}, shape={shape}, dtype={name})"
        assert tensor_repr(read, static, dtype) == f"<tf.Tensor: shape={shape}, dtype={name}, numpy={exact}>"
        text = variable_repr(read, static, dtype, "w:0")
        assert text == f"<tf.Variable 'w:0' shape={shape} dtype={name}, numpy={exact}>"


def test_a_variable_shows_its_static_shape() -> None:
    text = variable_repr(np.array([1.0], np.float32), TensorShape([None]), as_dtype("float32"), "v:0")
    assert text == "<tf.Variable 'v:0' shape=(None,) dtype=float32, numpy=array([1.], dtype=float32)>"


def test_slices() -> None:
    assert slices_str("I", "V", None) == "IndexedSlices(indices=I, values=V)"
    assert slices_str("I", "V", "D") == "IndexedSlices(indices=I, values=V, dense_shape=D)"
