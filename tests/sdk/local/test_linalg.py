"""What the SDK's convolution and linear algebra refuse by themselves, and what they take that is no tensor.

What they compute is held by the conformance programs ops_conv and ops_linalg_solve.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import teletape as tf

IMAGES, FILTERS, MATRIX = tf.ones([1, 4, 4, 2]), tf.ones([2, 2, 2, 3]), tf.eye(3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tf.nn.max_pool2d(IMAGES, [1, 1, 1, 2], 1, "SAME"), "the depth window to equal the depth stride"),
        (lambda: tf.nn.conv2d(IMAGES, FILTERS, 1, "SAME", dilations=[1, 2, 2, 2]), "dilations in the batch and depth"),
    ],
)
def test_what_is_not_offered_says_so(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(tf.errors.UnimplementedError, match=says):
        call()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: tf.einsum("ij->i", MATRIX, optimise=True), TypeError, "unexpected keyword argument 'optimise'"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[3], [0]]), ValueError, "axis=3 out of bounds"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [1, 2, 3]), ValueError, "an integer or have length 2"),
        (lambda: tf.tensordot(MATRIX, MATRIX, "ij"), TypeError, "Cannot convert 'ij'"),
        (lambda: tf.norm(MATRIX, axis=[0, 0]), ValueError, "2 unique integers"),
        (lambda: tf.nn.conv2d(IMAGES, FILTERS, 1, [[0, 0], [1, 1]]), ValueError, "of size 2"),
        (lambda: tf.linalg.diag_part(MATRIX, k=(-9, 1)), tf.errors.InvalidArgumentError, "is out of bound: -9"),
        (lambda: tf.linalg.matvec(MATRIX, tf.ones([2])), tf.errors.InvalidArgumentError, "Matrix size-incompatible"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_lists_arrays_and_variables_stand_for_tensors() -> None:
    assert tf.einsum("ij,j->i", [[1.0, 2.0]], [3.0, 4.0]).numpy().tolist() == [11.0]
    assert tf.einsum("ij,j->i", tf.Variable([[1.0, 2.0]]), np.array([3.0, 4.0], np.float32)).numpy().tolist() == [11.0]
    assert tf.linalg.triangular_solve(tf.constant([[2.0]], tf.float64), [[4.0]]).dtype is tf.float64
    assert tf.nn.conv2d(IMAGES, np.ones([2, 2, 2, 1], np.float32), [tf.constant(2)], "VALID").shape == [1, 2, 2, 1]
    assert tf.tensordot(np.ones([2, 3]), tf.Variable(np.ones([3])), tf.constant(1)).numpy().tolist() == [3.0, 3.0]
    assert tf.nn.conv2d_transpose(IMAGES, tf.ones([2, 2, 1, 2]), tf.shape(tf.ones([1, 8, 8, 1])), 2).shape[1] == 8


def test_slogdet_names_its_two_results() -> None:
    sign, log = answer = tf.linalg.slogdet(-MATRIX)
    assert (float(sign), float(log)) == (-1.0, 0.0)
    assert answer.log_abs_determinant is log
    assert type(answer).__name__ == "LogMatrixDeterminant"
