"""Linear operators beyond what TensorFlow's answers show: batches that broadcast, parts, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape as tf

RNG = np.random.default_rng(0)


def numbers(*shape: int) -> tf.Tensor:
    return tf.constant(RNG.normal(size=shape))


def dominant(*shape: int) -> tf.Tensor:
    return numbers(*shape) + 4 * tf.eye(shape[-1], dtype=tf.float64)


FULL = tf.linalg.LinearOperatorFullMatrix
OPERATORS = {
    "full": FULL(dominant(2, 1, 4, 4)),
    "diagonal": tf.linalg.LinearOperatorDiag(numbers(2, 1, 4) + 4),
    "identity": tf.linalg.LinearOperatorIdentity(4, [2, 1], tf.float64),
    "scaled": tf.linalg.LinearOperatorScaledIdentity(4, numbers(2, 1) + 4),
    "triangular": tf.linalg.LinearOperatorLowerTriangular(dominant(2, 1, 4, 4)),
    "update": tf.linalg.LinearOperatorLowRankUpdate(FULL(dominant(2, 1, 4, 4)), numbers(4, 2), numbers(2)),
    "composition": tf.linalg.LinearOperatorComposition([FULL(dominant(2, 1, 4, 4)), FULL(dominant(3, 4, 4))]),
    "adjoint": FULL(dominant(2, 1, 4, 4)).adjoint(),
    "inverse": FULL(dominant(2, 1, 4, 4)).inverse(),
    "kronecker": tf.linalg.LinearOperatorKronecker([FULL(dominant(2, 1, 2, 2)), FULL(dominant(3, 2, 2))]),
    "blocks": tf.linalg.LinearOperatorBlockDiag([FULL(dominant(2, 1, 3, 3)), FULL(dominant(3, 1, 1))]),
    "lower blocks": tf.linalg.LinearOperatorBlockLowerTriangular(
        [[FULL(dominant(3, 3))], [FULL(numbers(2, 1, 1, 3)), FULL(dominant(1, 1))]]
    ),
    "permutation": tf.linalg.LinearOperatorPermutation([[[3, 0, 1, 2]], [[1, 0, 2, 3]]], tf.float64),
    "householder": tf.linalg.LinearOperatorHouseholder(numbers(2, 1, 4)),
    "tridiagonal": tf.linalg.LinearOperatorTridiag(
        tf.concat([numbers(2, 1, 1, 4), numbers(2, 1, 1, 4) + 5, numbers(2, 1, 1, 4)], -2)
    ),
    "toeplitz": tf.linalg.LinearOperatorToeplitz(5 * tf.one_hot(0, 4, dtype=tf.float64) + numbers(2, 1, 4), numbers(4)),
    "circulant": tf.linalg.LinearOperatorCirculant(tf.abs(numbers(2, 1, 4)) + 1, tf.complex128),
    "circulant of two axes": tf.linalg.LinearOperatorCirculant2D(tf.abs(numbers(2, 1, 2, 2)) + 1, tf.complex128),
}


def adjoint(matrix: Any) -> Any:
    return np.conj(np.swapaxes(matrix, -1, -2))


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_does_what_its_written_out_matrix_does_with_batches_that_broadcast(name: str) -> None:
    operator = OPERATORS[name]
    dense = operator.to_dense().numpy()
    x = RNG.normal(size=(3, 4, 2)).astype(dense.dtype)
    vector = x[..., 0]

    def same(tensor: Any, expected: Any) -> None:
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-9, atol=1e-9)

    assert operator.shape == dense.shape
    same(operator.matmul(x), dense @ x)
    same(operator.matmul(x, adjoint=True), adjoint(dense) @ x)
    same(operator.matmul(adjoint(x), adjoint_arg=True), dense @ x)
    same(operator.matvec(vector), np.einsum("...ij,...j->...i", dense, vector))
    same(operator.solve(x), np.linalg.inv(dense) @ x)
    same(operator.solve(x, adjoint=True), np.linalg.inv(adjoint(dense)) @ x)
    same(operator.solvevec(vector), np.einsum("...ij,...j->...i", np.linalg.inv(dense), vector))
    same(operator.adjoint().to_dense(), adjoint(dense))
    same(operator.inverse().to_dense(), np.linalg.inv(dense))
    same(operator.determinant(), np.linalg.det(dense))
    same(operator.trace(), np.trace(dense, axis1=-2, axis2=-1))
    same(operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1))
    same(operator.add_to_tensor(x[..., :1] * np.ones(4)), dense + x[..., :1] * np.ones(4))
    same(operator.cond(), np.linalg.cond(dense))
    if not operator.dtype.is_complex:
        same(operator.log_abs_determinant(), np.linalg.slogdet(dense)[1])


@pytest.mark.parametrize("name", OPERATORS)
def test_products_and_quotients_of_operators_are_those_of_their_matrices(name: str) -> None:
    operator = OPERATORS[name]
    for other in OPERATORS.values():
        if other.dtype != operator.dtype:
            continue
        left, right = operator.to_dense().numpy(), other.to_dense().numpy()
        product = operator.matmul(other).to_dense().numpy()
        np.testing.assert_allclose(product, np.broadcast_to(left @ right, product.shape), rtol=1e-9, atol=1e-9)
        quotient = operator.solve(other).to_dense().numpy()
        expected = np.broadcast_to(np.linalg.inv(left) @ right, quotient.shape)
        np.testing.assert_allclose(quotient, expected, rtol=1e-9, atol=1e-9)


def test_structures_are_not_written_out() -> None:
    size = 1_000_000
    x = tf.ones([size, 1])
    diagonal = tf.linalg.LinearOperatorDiag(tf.linspace(1.0, 2.0, size))
    update = tf.linalg.LinearOperatorLowRankUpdate(diagonal, x / 1000)
    np.testing.assert_allclose(update.matmul(update.solve(x)), x, rtol=1e-4)
    kronecker = tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorIdentity(1000)] * 2)
    assert kronecker.matmul(x).shape == (size, 1)
    circulant = tf.linalg.LinearOperatorCirculant(tf.ones([size]), tf.float32)
    assert circulant.matmul(x).shape == (size, 1)


def test_a_part_of_the_batch() -> None:
    operator = FULL(numbers(4, 3, 3), is_non_singular=True)
    for index in (1, slice(1, 3), (slice(None, None, 2),), (tf.newaxis, 2)):
        part = operator[index]
        np.testing.assert_array_equal(part.to_dense(), operator.to_dense().numpy()[index])
        assert part.is_non_singular


def test_a_variable_counts_and_is_saved_once(tmp_path: Path) -> None:
    variable = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(variable)
    assert operator.variables == (variable,)
    path = tf.train.Checkpoint(operator=operator).save(str(tmp_path / "saved"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert [name for name in names if "operator" in name] == ["operator/_diag/.ATTRIBUTES/VARIABLE_VALUE"]
    assert operator.parameters["diag"] is variable


def test_an_operator_where_a_tensor_is_expected_is_written_out() -> None:
    variable = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(variable)
    with tf.GradientTape() as tape:
        total = tf.linalg.trace(tf.linalg.inv(operator)) + tf.reduce_sum(tf.matmul(operator, tf.ones([2, 1])))
    np.testing.assert_array_equal(tape.gradient(total, variable), [0.0, 0.75])


def test_a_spectrum_whose_kernel_is_not_real() -> None:
    make = tf.linalg.LinearOperatorCirculant
    make(tf.constant([4.0, 2.0, 1.0, 2.0]), tf.float32).assert_hermitian_spectrum()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not Hermitian"):
        make(tf.constant([4.0, 2.0, 1.0, 3.0]), tf.float32).assert_hermitian_spectrum()


def test_what_no_operator_can_be_is_refused() -> None:
    full = FULL(dominant(2, 2))
    with pytest.raises(TypeError, match="same dtype"):
        tf.linalg.LinearOperatorComposition([full, tf.linalg.LinearOperatorIdentity(2)])
    with pytest.raises(ValueError, match="not compatible"):
        tf.linalg.LinearOperatorComposition([full, FULL(dominant(3, 3))])
    with pytest.raises(ValueError, match="not compatible"):
        tf.linalg.LinearOperatorLowRankUpdate(full, numbers(3, 1))
    with pytest.raises(ValueError, match="must contain `2` blocks"):
        tf.linalg.LinearOperatorBlockLowerTriangular([[full], [full]])
    with pytest.raises(ValueError, match="must have the shape"):
        tf.linalg.LinearOperatorBlockLowerTriangular([[full], [FULL(numbers(2, 3)), full]])
    with pytest.raises(TypeError, match="integer"):
        tf.linalg.LinearOperatorIdentity(2.0)
    with pytest.raises(ValueError, match="num_columns"):
        tf.linalg.LinearOperatorZeros(2, 3)
    with pytest.raises(ValueError, match="not square"):
        _ = FULL(numbers(2, 3), is_square=True).is_square
