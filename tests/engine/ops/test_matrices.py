"""Cholesky's factorisation, triangular systems and diagonals: what the laws do not see."""

import subprocess
import sys

import numpy as np
import pytest

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.linalg.einsum import terms
from teletape_engine.spec import Spec


def spec(name, *arrays, **attrs):
    op = CATALOGUE[name]
    return bind(op, tuple(Spec.of(array.shape, array.dtype) for array in arrays), op.attrs(attrs)).spec


def test_cholesky_reads_the_lower_triangle_and_spoils_no_neighbour():
    good, bad = np.array([[4.0, 99.0], [2.0, 5.0]]), np.array([[1.0, 0.0], [3.0, 1.0]])
    result = CATALOGUE["cholesky"](np.stack([good, bad]))
    np.testing.assert_allclose(result[0], [[2.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(np.isnan(result[1]), [[True, False], [True, True]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 64, 65, 150])
def test_the_gradient_of_cholesky_block_by_block_is_the_formula(dtype, n):
    random = np.random.default_rng(n)
    turn = 1 + 0.5j if dtype.startswith("complex") else 1
    chol = np.tril(turn * random.normal(size=(n, n)) / n) + np.eye(n)
    ct = turn * random.normal(size=(n, n))
    inner = np.tril(chol.conj().T @ np.tril(ct))
    inner[np.diag_indices(n)] *= 0.5
    inverse = np.linalg.inv(chol)
    whole = inverse.conj().T @ inner @ inverse
    dirty = chol + np.triu(ct, 1)  # the other triangle is not read
    result = CATALOGUE["cholesky_grad"](np.stack([dirty, chol]).astype(dtype), np.stack([ct, 2 * ct]).astype(dtype))
    assert result.dtype == dtype
    expected = (whole + whole.conj().T) / 2
    near = {"rtol": 1e-3, "atol": 1e-3} if dtype in ("float32", "complex64") else {"rtol": 1e-10, "atol": 1e-11}
    np.testing.assert_allclose(result[0], expected, **near)
    np.testing.assert_allclose(result[1], 2 * expected, **near)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_a_triangular_system_in_any_layout(columns, adjoint, turned):
    random = np.random.default_rng(0)
    a = random.normal(size=(5, 5)) + 1j * random.normal(size=(5, 5)) + 4 * np.eye(5)
    a = np.asfortranarray(a) if turned else a
    b = np.asfortranarray(random.normal(size=(5, columns)) + 0j) if turned else random.normal(size=(5, columns)) + 0j
    triangle = np.tril(a).conj().T if adjoint else np.tril(a)
    before = b.copy()
    result = CATALOGUE["triangular_solve"](a, b, lower=True, adjoint=adjoint)
    np.testing.assert_allclose(triangle @ result, b, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(b, before)


def test_without_scipy_there_is_no_session_and_the_message_says_what_to_install():
    code = """if True:
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *package: None if name == "scipy" else find(name, *package)
        from teletape_engine.session.session import Session
        Session()
    """
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert "SciPy is not installed (pip install 'teletape[local]')" in done.stderr


def test_a_zero_on_the_diagonal_divides():
    with np.errstate(all="ignore"):
        result = CATALOGUE["triangular_solve"](np.zeros((2, 2)), np.ones((2, 1)))
    assert np.isinf(result[0, 0])
    assert np.isnan(result[1, 0])


@pytest.mark.parametrize(
    ("attrs", "shape"), [({}, (2, 2)), ({"k": 1}, (3, 3)), ({"k": -2}, (4, 4)), ({"num_rows": 5}, (5, 2))]
)
def test_as_few_rows_and_columns_as_hold_the_diagonal(attrs, shape):
    result = CATALOGUE["diag"](np.array([1.0, 2.0]), **attrs)
    assert result.shape == shape == spec("diag", np.ones(2), **attrs).shape
    k = attrs.get("k", 0)
    np.testing.assert_array_equal(np.diagonal(result, k)[:2], [1.0, 2.0])


def test_diagonals_refused():
    with pytest.raises(InvalidArgumentError, match="too small: 1, 2"):
        spec("diag", np.ones(2), num_rows=1, num_cols=2)
    with pytest.raises(InvalidArgumentError, match="not consistent with the diagonal: 3, 3"):
        spec("diag", np.ones(2), num_rows=3, num_cols=3)
    with pytest.raises(InvalidArgumentError, match="between -2 and 3"):
        spec("set_diag", np.ones((2, 3)), np.ones(1), k=3)


def test_terms_of_an_equation():
    assert terms("ij, jk -> ik", 2) == (["ij", "jk"], "ik")
    assert terms("ba,ac", 2) == (["ba", "ac"], "bc")
    assert terms("...i->i...", 1) == (["...i"], "i...")
    for wrong in ("ij->i->j", "i..j->i", "i,->->", "......->"):
        with pytest.raises(InvalidArgumentError, match="incorrect format"):
            terms(wrong, 1)


def test_einsum_is_numpys():
    random = np.random.default_rng(0)
    sizes = dict(zip("abcde", (2, 3, 4, 2, 3), strict=True))
    for equation in ("abc,cd,bde->ae", "aab,b->a", "ab,cb,db->acd", "abc->cb", "a,b,c->cab", "ad,ad->d"):
        left = equation.split("->")[0].split(",")
        arrays = [random.normal(size=[sizes[label] for label in term]) for term in left]
        np.testing.assert_allclose(CATALOGUE["einsum"](*arrays, equation=equation), np.einsum(equation, *arrays))


VECTORS_AND_MATRICES = [(3,), (2, 3), (3, 2), (4, 2, 3), (4, 3, 2), (1, 3, 3), (5, 1, 3, 3)]


@pytest.mark.parametrize("a", [(), *VECTORS_AND_MATRICES])
@pytest.mark.parametrize("b", [(), *VECTORS_AND_MATRICES])
@pytest.mark.parametrize(("name", "numpy_function"), [("numpy_matmul", np.matmul), ("dot", np.dot)])
def test_products_of_vectors_and_matrices_are_numpys(name, numpy_function, a, b):
    x, y = np.random.default_rng(1).normal(size=a), np.random.default_rng(2).normal(size=b)
    try:
        expected = numpy_function(x, y)
    except ValueError:
        with pytest.raises(InvalidArgumentError):
            CATALOGUE[name].forward(np, x, y)
        return
    result = CATALOGUE[name].forward(np, x, y)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
