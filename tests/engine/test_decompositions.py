"""Eigenvalues, singular values, LU factors and functions of matrices: what the laws do not see."""

import sys
import tracemalloc

import numpy as np
import pytest
import scipy.linalg

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.arrays import decompositions, linalg
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.checking.harness import Case
from teletape_engine.errors import InvalidArgumentError, UnimplementedError

NAN = np.full((2, 2), np.nan)
TALL = np.array([[3.0, 0.1], [0.2, 2.0], [0.5, -0.3], [0.1, 0.7]])


@pytest.mark.parametrize("turn", [1, 1 + 0.5j])
def test_elimination_without_scipy_is_the_same(turn):
    a = turn * np.random.default_rng(0).normal(size=(5, 5)) + 0.3 * np.eye(5)[::-1]
    factors, order = decompositions._eliminated(a)
    expected, permutation = decompositions.lu(np, a)
    np.testing.assert_allclose(factors, expected, rtol=1e-12)
    np.testing.assert_array_equal(order, permutation)


def test_a_singular_matrix_among_others_has_no_factors():
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        CATALOGUE["lu"](np.stack([np.eye(2), np.ones((2, 2))]))


def test_only_the_matrix_with_nan_has_singular_values_that_are_nan():
    values = CATALOGUE["svdvals"](np.stack([np.eye(2), NAN]))
    np.testing.assert_array_equal(np.isnan(values), [[False, False], [True, True]])
    assert np.isnan(CATALOGUE["svd"](NAN)).all()


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "eigvals"])
def test_eigenvalues_of_nan_are_refused(name):
    with pytest.raises(InvalidArgumentError, match="not successful"):
        CATALOGUE[name](np.stack([np.eye(2), NAN]))


def test_eigenvectors_read_the_lower_triangle_alone():
    a = np.array([[2.0, 99.0], [1.0, 3.0]])
    np.testing.assert_allclose(CATALOGUE["eigvalsh"](a), np.linalg.eigvalsh([[2.0, 1.0], [1.0, 3.0]]))


def test_full_singular_vectors_are_orthonormal_and_have_no_derivative():
    op = CATALOGUE["svd"]
    y = op(TALL, full_matrices=True)
    assert y.shape == (7, 4)
    u = y[1:5]
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-12)
    with pytest.raises(UnimplementedError, match="differ by 1 at most, found 4 and 2"):
        Case(op, sample(TALL, full_matrices=True)).vjp(np.ones_like(y))


def test_a_basis_of_the_whole_space_has_no_derivative():
    op = CATALOGUE["qr"]
    y = op(TALL, full_matrices=True)
    assert y.shape == (6, 4)
    np.testing.assert_allclose(y[:4].T @ y[:4], np.eye(4), atol=1e-12)
    np.testing.assert_allclose(y[:4] @ y[4:].T, TALL, atol=1e-12)
    with pytest.raises(UnimplementedError, match="of more rows than columns, found 4 and 2"):
        Case(op, sample(TALL, full_matrices=True)).vjp(np.ones_like(y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_exponentials_of_every_size_are_scipys(dtype):
    random = np.random.default_rng(1)
    a = random.normal(size=(3, 3)) + (1j * random.normal(size=(3, 3)) if dtype.startswith("complex") else 0)
    a = np.stack([a * scale for scale in (1e-4, 0.05, 0.2, 0.5, 2.0, 9.0)]).astype(dtype)
    result = CATALOGUE["expm"](a)
    expected = scipy.linalg.expm(a.astype(np.complex128))
    assert result.dtype == dtype
    for actual, right in zip(result, expected, strict=True):
        error = np.abs(actual - right).max() / np.abs(right).max()
        assert error < (1e-4 if dtype in ("float32", "complex64") else 1e-12)


def test_an_exponential_that_is_not_finite_spoils_no_neighbour():
    result = CATALOGUE["expm"](np.stack([np.zeros((2, 2)), NAN]))
    np.testing.assert_array_equal(result[0], np.eye(2))
    assert np.isnan(result[1]).all()


def test_square_roots_of_real_matrices_stay_real():
    turned = np.array([[0.0, -4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    root = CATALOGUE["sqrtm"](turned)
    assert root.dtype == turned.dtype
    np.testing.assert_allclose(root @ root, turned, atol=1e-12)
    assert np.isnan(CATALOGUE["sqrtm"](np.diag([-1.0, 2.0]))).all()


def test_the_order_of_rows_must_be_a_permutation():
    with pytest.raises(InvalidArgumentError, match="a permutation of 0 to 2"):
        CATALOGUE["permute_rows"](np.ones((3, 1)), np.array([0, 0, 2], np.int32))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_substitution_in_bands_without_scipy_is_the_same(lower, adjoint, monkeypatch):
    random = np.random.default_rng(4)
    bands, rhs = random.normal(size=(2, 3, 6)) + 1j, random.normal(size=(2, 6, 2)) + 2j
    by_lapack = linalg.banded_solve(np, bands, rhs, lower=lower, adjoint=adjoint)
    monkeypatch.setitem(sys.modules, "scipy.linalg.lapack", None)
    np.testing.assert_allclose(linalg.banded_solve(np, bands, rhs, lower=lower, adjoint=adjoint), by_lapack, rtol=1e-9)


def test_systems_of_bands_are_never_written_out_as_matrices(monkeypatch):
    bands, rhs = np.full((2, 20_000), 2.0), np.ones((20_000, 1))
    monkeypatch.setitem(sys.modules, "scipy.linalg.lapack", None)
    tracemalloc.start()
    try:
        linalg.banded_solve(np, bands, rhs, lower=True, adjoint=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * (bands.nbytes + rhs.nbytes)


@pytest.mark.parametrize("turn", [1, 1 + 0.5j])
def test_tridiagonal_elimination_without_scipy_is_the_same(turn):
    random = np.random.default_rng(2)
    diagonals, rhs = turn * random.normal(size=(3, 6)), turn * random.normal(size=(6, 2))
    diagonals[1, 2] = 0  # rows must be exchanged
    above, main, below = diagonals
    result = linalg._eliminated(above[:-1], main, below[1:], rhs)
    np.testing.assert_allclose(result, linalg.tridiagonal_solve(np, diagonals, rhs), rtol=1e-10)
    dense = np.diag(above[:-1], 1) + np.diag(main) + np.diag(below[1:], -1)
    np.testing.assert_allclose(dense @ result, rhs, rtol=1e-9, atol=1e-9)
    assert np.isnan(linalg._eliminated(np.zeros(1), np.zeros(2), np.zeros(1), np.ones((2, 1)))).all()
