"""Eigenvalues, singular values, LU factors and functions of matrices: what the laws do not see."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case
from teletape_engine.arrays import linalg
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError, UnimplementedError

NAN = np.full((2, 2), np.nan)
TALL = np.array([[3.0, 0.1], [0.2, 2.0], [0.5, -0.3], [0.1, 0.7]])


def test_a_singular_matrix_among_others_has_no_factors():
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        CATALOGUE["lu"](np.stack([np.eye(2), np.ones((2, 2))]))


def test_only_the_matrix_with_nan_has_singular_values_that_are_nan():
    values = CATALOGUE["svdvals"](np.stack([np.eye(2), NAN]))
    np.testing.assert_array_equal(np.isnan(values), [[False, False], [True, True]])
    assert all(np.isnan(part).all() for part in CATALOGUE["svd"](NAN))


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "eigvals"])
def test_eigenvalues_of_nan_are_refused(name):
    with pytest.raises(InvalidArgumentError, match="not successful"):
        CATALOGUE[name](np.stack([np.eye(2), NAN]))


def test_eigenvectors_read_the_lower_triangle_alone():
    a = np.array([[2.0, 99.0], [1.0, 3.0]])
    np.testing.assert_allclose(CATALOGUE["eigvalsh"](a), np.linalg.eigvalsh([[2.0, 1.0], [1.0, 3.0]]))


def test_full_singular_vectors_are_orthonormal_and_have_no_derivative():
    op = CATALOGUE["svd"]
    s, u, v = op(TALL, full_matrices=True)
    assert (s.shape, u.shape, v.shape) == ((2,), (4, 4), (2, 2))
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-12)
    with pytest.raises(UnimplementedError, match="differ by 1 at most, found 4 and 2"):
        Case(op, sample(TALL, full_matrices=True)).vjp(np.ones(22))


def test_a_basis_of_the_whole_space_has_no_derivative():
    op = CATALOGUE["qr"]
    q, r = op(TALL, full_matrices=True)
    assert (q.shape, r.shape) == ((4, 4), (4, 2))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(q @ r, TALL, atol=1e-12)
    with pytest.raises(UnimplementedError, match="of more rows than columns, found 4 and 2"):
        Case(op, sample(TALL, full_matrices=True)).vjp(np.ones(24))


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


def test_systems_of_bands_are_never_written_out_as_matrices():
    bands, rhs = np.full((2, 20_000), 2.0), np.ones((20_000, 1))
    tracemalloc.start()
    try:
        linalg.banded_solve(np, bands, rhs, lower=True, adjoint=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * (bands.nbytes + rhs.nbytes)


def test_a_tridiagonal_system_of_one_number():
    solved = linalg.tridiagonal_solve(np, np.array([[9.0], [4.0], [9.0]]), np.array([[2.0, 6.0]]))
    np.testing.assert_array_equal(solved, [[0.5, 1.5]])
    with np.errstate(all="ignore"):
        assert np.isnan(linalg.tridiagonal_solve(np, np.zeros((3, 1)), np.ones((1, 2)))).all()
