"""`tf.Tensor` as a Python object: conversion to numbers and arrays, truth, iteration, formatting, copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import teletape as tf


def test_a_tensor_is_no_variable_and_a_variable_no_tensor() -> None:
    x, v = tf.constant(1.0), tf.Variable(1.0)
    assert isinstance(x, tf.Tensor)
    assert not isinstance(v, tf.Tensor)
    assert isinstance(v, tf.Variable)
    assert [tf.is_tensor(item) for item in (x, v, 1.0, np.ones(1))] == [True, True, False, False]


def test_numpy_never_aliases_the_session() -> None:
    x = tf.constant([1.0, 2.0])
    x.numpy()[0] = 9.0
    np.asarray(x)[0] = 9.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_python_numbers_of_scalars_only() -> None:
    assert (float(tf.constant(2.5)), int(tf.constant(2.5)), complex(tf.constant(1j))) == (2.5, 2, 1j)
    for convert in (float, int, complex):
        with pytest.raises(TypeError, match="only 0-dimensional arrays can be converted to Python scalars"):
            convert(tf.constant([2]))
    assert list(range(3))[tf.constant(1)] == 1
    with pytest.raises(TypeError, match="scalar index"):
        [1, 2][tf.constant(1.0)]


def test_truth() -> None:
    assert [bool(tf.constant(value)) for value in (0, 2.5, [1.0], [])] == [False, True, True, False]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tf.constant([1, 2]))


def test_length_and_iteration() -> None:
    x = tf.constant([[1.0], [2.0]])
    assert len(x) == 2
    assert [row.numpy().tolist() for row in x] == [[1.0], [2.0]]
    with pytest.raises(TypeError, match="Scalar tensor has no `len"):
        len(tf.constant(1.0))
    with pytest.raises(TypeError, match="Cannot iterate over a scalar tensor"):
        iter(tf.constant(1.0))


def test_format_is_that_of_the_values() -> None:
    assert f"{tf.constant(1.5):.2f}" == "1.50"
    assert f"{tf.constant([1, 2])}" == "[1 2]"
    with pytest.raises(TypeError):
        f"{tf.constant([1.5]):.2f}"


def test_keys_are_references() -> None:
    x = tf.constant(1.0)
    with pytest.raises(TypeError, match=r"Tensor is unhashable. Instead, use tensor.ref\(\) as the key."):
        hash(x)
    table = {x.ref(): "x"}
    assert table[x.ref()] == "x"
    assert x.ref() != tf.constant(1.0).ref()
    assert next(iter(table)).deref() is x


def test_copies() -> None:
    x = tf.constant([1.0, 2.0])
    assert copy.copy(x) is x
    assert copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [1.0, 2.0]  # noqa: S301  # our own bytes


def test_shape_is_checked_not_set() -> None:
    x = tf.zeros([2, 3])
    x.set_shape([2, None])
    with pytest.raises(ValueError, match="is not compatible with supplied shape"):
        x.set_shape([3, 3])
    assert x.get_shape() == x.shape == (2, 3)
    assert x.ndim == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("reshape", "If you are looking for numpy-related methods"),
        ("name", "Tensor.name is undefined when eager execution is enabled."),
        ("nope", "'EagerTensor' object has no attribute 'nope'"),
    ],
)
def test_attributes_that_there_are_not(name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=says):
        getattr(tf.constant(1.0), name)


def test_numpy_functions_read_tensors() -> None:
    assert np.sum(tf.constant([1.0, 2.0])) == 3.0
    assert (np.float64(2.0) * tf.constant([1.0])).dtype == tf.float32
    assert np.array(tf.constant([1.7]), dtype=np.int32).tolist() == [1]


@pytest.mark.parametrize("value", [tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])], ids=["tensor", "variable"])
def test_an_array_that_must_not_be_a_copy_is_refused(value):
    with pytest.raises(ValueError, match="unable to avoid a copy"):
        np.array(value, copy=False)
    array = np.asarray(value, np.float64)
    assert (array.dtype, array.tolist()) == (np.float64, [1.0, 2.0])
    array[0] = 7.0  # the caller's own
    assert np.array(value).tolist() == [1.0, 2.0]
