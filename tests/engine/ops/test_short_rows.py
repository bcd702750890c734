"""Sums over, and biases of, many short rows: they are computed as fewer long ones, with the same result."""

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.ops.reduce import _rows_together
from teletape_engine.spec import DTYPES

SHAPES = [(64, 28, 3), (2, 3, 1), (128, 5, 7), (4096, 16), (97, 4), (1, 8), (0, 4), (64, 0), (640, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint8", "complex128"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_a_sum_over_leading_axes(shape, dtype, keepdims):
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(DTYPES[dtype])
    for count in range(1, len(shape)):
        axes = tuple(range(count))
        result = CATALOGUE["reduce_sum"](x, axis=axes, keepdims=keepdims)
        expected = np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(result, expected)  # small whole numbers are summed exactly


def test_long_rows_and_few_rows_are_left_as_they_are():
    assert _rows_together(50176, 16) == 512
    assert _rows_together(97, 4) == 1
    assert _rows_together(50176, 2000) == 1
    assert _rows_together(8, 2) == 1


@pytest.mark.parametrize("shape", [*SHAPES, (64, 7, 200)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_bias_is_added_to_each_row(shape, dtype):
    random = np.random.default_rng(0)
    value, bias = (random.integers(-9, 9, size).astype(DTYPES[dtype]) for size in (shape, shape[-1:]))
    for x in (value, np.asfortranarray(value)):
        np.testing.assert_array_equal(CATALOGUE["bias_add"](x, bias), value + bias)
