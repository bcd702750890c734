"""Operators on tensors and variables: conversions of the other side, comparisons, matmul, indexing."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import teletape as tf

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize("other", [2.0, 2, np.float32(2.0), [2.0, 2.0], np.array([2.0, 2.0])], ids=repr)
@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_arithmetic_with_anything_gives_the_tensors_dtype(op: Callable[..., Any], other: Any, make: Any) -> None:
    x, mine = make([3.0, 5.0]), np.array([3.0, 5.0], np.float32)
    theirs = np.asarray(other, np.float32)
    for got, expected in ((op(x, other), op(mine, theirs)), (op(other, x), op(theirs, mine))):
        assert got.dtype == tf.float32
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_division_asks_for_one_numeric_dtype(make: Any) -> None:
    says = "`x` and `y` must have the same dtype, got tf.int32 != tf.float32."
    for other in (tf.constant([2.0]), tf.Variable([2.0]), 2.0, [2.5]):
        with pytest.raises(TypeError) as error:
            make([1]) / other
        assert str(error.value) == says
    with pytest.raises(TypeError, match=r"Cannot convert 2.0 to EagerTensor of dtype int32"):
        2.0 / make([1])
    with pytest.raises(TypeError, match=r"Invalid dtype tf\.bool in __truediv__"):
        make([True]) / make([True])
    assert (make([1]) / 2).dtype == tf.float64


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda i: i + 1.5, tf.errors.InvalidArgumentError),
        (lambda i: 1.5 + i, TypeError),
        (lambda i: i - 1.5, TypeError),
        (lambda i: i * 1.5, TypeError),
        (lambda i: i < 1.5, TypeError),
        (lambda i: i + tf.constant([1.0]), tf.errors.InvalidArgumentError),
        (lambda i: i + None, ValueError),
        (lambda i: i + object(), ValueError),
    ],
)
def test_a_pair_that_does_not_fit(call: Callable[[Any], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(tf.constant([1, 2]))


def test_numbers_that_do_not_fit_an_integer_dtype_wrap() -> None:
    assert (tf.constant([1, 2]) + 2**40).numpy().tolist() == [1, 2]
    assert (tf.constant([1], tf.uint8) + 300).numpy().tolist() == [45]
    assert (5 - tf.constant([6], tf.uint8)).numpy().tolist() == [255]


def test_matmul_converts_either_side() -> None:
    a = tf.constant([[1.0, 2.0]])
    for product in (np.array([[3.0], [4.0]]) @ a, a @ np.array([[3.0], [4.0]]), [[3], [4]] @ a, a @ [[3], [4]]):
        assert product.dtype == tf.float32
    assert tf.matmul(a, [[3], [4]]).numpy().tolist() == [[11.0]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.matmul(np.eye(2), tf.constant([[1.0], [2.0]]))


def test_comparison_with_none_and_with_other_shapes() -> None:
    x = tf.constant([1.0, 2.0])
    assert (x == None, x != None) == (False, True)  # noqa: E711
    assert (x == [1.0, 2.0, 3.0]).numpy() == False  # noqa: E712  # a scalar tensor
    assert x != [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="Attempt to convert a value"):
        assert tf.Variable(1.0) == None  # noqa: E711


def test_what_has_its_own_reflected_operator_is_asked() -> None:
    class Other:
        def __radd__(self, tensor: Any) -> str:
            return "mine"

    assert tf.constant(1.0) + Other() == "mine"


def test_bits_and_truths() -> None:
    assert (tf.constant([True, False]) ^ True).numpy().tolist() == [False, True]
    assert (tf.constant([6, 5]) & 3).numpy().tolist() == [2, 1]
    assert (~tf.constant([True])).numpy().tolist() == [False]
    assert (~tf.constant([1])).numpy().tolist() == [-2]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((slice(None), 1), [2.0, 5.0]),
        ([1, 2], 6.0),
        ((Ellipsis, slice(None, None, -2)), [[3.0, 1.0], [6.0, 4.0]]),
        ((None, 0), [[1.0, 2.0, 3.0]]),
        (np.array([True, False]), [[1.0, 2.0, 3.0]]),
        (np.int64(-1), [4.0, 5.0, 6.0]),
    ],
)
@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_indexing(make: Any, key: Any, expected: Any) -> None:
    assert make([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])[key].numpy().tolist() == expected


def test_a_tensor_as_mask_and_its_gradient() -> None:
    x = tf.Variable([1.0, -2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x[x > 0.0] ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(y, x))
    assert gradient.numpy().tolist() == [2.0, 0.0, 6.0]


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        (1.0, TypeError, "Only integers, slices"),
        ("a", TypeError, "Only integers, slices"),
        ((..., ...), tf.errors.InvalidArgumentError, "Multiple ellipses"),
        (True, ValueError, "mask cannot be scalar"),
        (5, tf.errors.InvalidArgumentError, "out of bounds"),
    ],
)
def test_a_key_that_is_none(key: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        tf.constant([1.0, 2.0])[key]
