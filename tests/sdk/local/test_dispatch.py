"""`tf.constant`, `tf.convert_to_tensor`, and how the arguments of an op become tensors of one dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import teletape as tf
from teletape.core.sessions.current import current, use
from teletape.core.sessions.local import LocalSession


def test_constant_reshapes_and_fills() -> None:
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy().tolist() == [[1, 2], [3, 4]]
    assert tf.constant(7.0, shape=(2,)).numpy().tolist() == [7.0, 7.0]
    with pytest.raises(TypeError, match="has 3 elements, but got `shape`"):
        tf.constant([1, 2, 3], shape=[2])


def test_constant_of_a_tensor_keeps_its_dtype_or_refuses() -> None:
    x = tf.constant([1.0])
    assert tf.constant(x) is x
    with pytest.raises(TypeError, match="Expected tensor"):
        tf.constant(x, tf.int32)


def test_convert_to_tensor_stacks_lists_that_hold_tensors() -> None:
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.convert_to_tensor([[v, 1.0], [3, v * v]])
    assert y.numpy().tolist() == [[2.0, 1.0], [3.0, 4.0]]
    assert tape.gradient(y, v).numpy() == 5.0


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda: tf.constant([1]), "Tensor conversion requested dtype float32 for Tensor with dtype int32"),
        (
            lambda: tf.Variable([1]),
            "Incompatible type conversion requested to type float32 for `tf.Variable of type int32",
        ),
    ],
)
def test_a_tensor_of_another_dtype_is_not_converted(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tf.convert_to_tensor(value(), tf.float32)


def test_a_hint_is_used_where_it_fits() -> None:
    assert tf.convert_to_tensor(1, dtype_hint=tf.float64).dtype == tf.float64
    assert tf.convert_to_tensor(1.5, dtype_hint=tf.int32).dtype == tf.float32


def test_a_shape_becomes_an_int_tensor() -> None:
    converted = tf.convert_to_tensor(tf.zeros([2, 3]).shape)
    assert (converted.dtype, converted.numpy().tolist()) == (tf.int32, [2, 3])


def test_a_tensor_of_another_session_is_refused_with_what_to_do() -> None:
    x, v, before = tf.constant(1.0), tf.Variable(1.0, name="w"), current()
    try:
        use(LocalSession())
        with pytest.raises(tf.errors.InvalidArgumentError, match="belongs to another session"):
            x + 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"variable 'w:0' belongs to another session"):
            tf.square(v)
        assert x.numpy() == 1.0
    finally:
        use(before)
    assert (x + v).numpy() == 2.0


def test_strings_pass_through_and_are_refused_by_ops() -> None:
    text = tf.constant(["a", "b"])
    assert (text.dtype, text.numpy().tolist()) == (tf.string, [b"a", b"b"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="of string is not in the list of allowed values"):
        text * text
    with pytest.raises(tf.errors.InvalidArgumentError, match="is a string tensor"):
        tf.constant([1.0, 2.0]) + "a"


def test_a_number_next_to_an_array_argument_takes_its_dtype() -> None:
    x = tf.constant([1, 2], tf.int64)
    assert tf.maximum(x, 1).dtype == tf.int64
    assert tf.where(x > 1, x, 0).dtype == tf.int64
    assert tf.maximum(np.array([1.5]), tf.constant([1.0])).dtype == tf.float32
