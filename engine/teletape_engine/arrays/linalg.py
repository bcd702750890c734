"""Factorisations and systems of stacked matrices [..., n, n]: LAPACK's on the CPU, cuSOLVER's on a GPU.

For a matrix without a factor or a solution the result is NaN if TensorFlow's is NaN, and InvalidArgumentError if
TensorFlow raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.errors import InvalidArgumentError

_BLOCK: Final = 64  # columns at a time


def cholesky(xp: ArrayModule, a: Array) -> Array:
    """The lower triangular L with L Lᴴ = a, from the lower triangle of a; NaN if a is not positive definite."""
    if a.size == 0:
        return xp.zeros_like(a)
    try:
        return np.linalg.cholesky(a) if xp is np else xp.tril(raising(xp.linalg.cholesky, a))
    except np.linalg.LinAlgError:
        if a.ndim > 2:
            return xp.stack([cholesky(xp, matrix) for matrix in a])
        return xp.tril(xp.full_like(a, np.nan))


def cholesky_grad(xp: ArrayModule, chol: Array, ct: Array) -> Array:
    """The Hermitian gradient of `cholesky`: L⁻ᴴ Φ(Lᴴ ct) L⁻¹ made Hermitian, from the lower triangles of L and ct.

    On the CPU block by block, as the factorisation itself: a third of the operations of that formula, all of them
    matrix products (Murray 2016, Differentiation of the Cholesky decomposition, section 3).
    """
    if chol.size == 0:
        return xp.zeros_like(chol)
    if chol.ndim > 2:
        n = chol.shape[-1]
        pairs = zip(chol.reshape((-1, n, n)), ct.reshape((-1, n, n)), strict=True)
        return xp.stack([cholesky_grad(xp, *pair) for pair in pairs]).reshape(chol.shape)
    n, step = len(chol), _BLOCK if xp is np else len(chol)
    grad = xp.tril(ct)  # the gradient so far: of L below and right of the block, of the matrix elsewhere
    for first in reversed(range(0, n, step)):
        end = min(first + step, n)
        left, block = slice(0, first), slice(first, end)
        diagonal = chol[block, block]
        inverse = triangular_solve(xp, diagonal, xp.eye(end - first, dtype=chol.dtype), lower=True, adjoint=False)
        if end < n:
            below = grad[end:, block] @ inverse
            adjoint = _adjoint(below)
            grad[end:, block] = below
            grad[end:, left] -= below @ chol[block, left]
            grad[block, block] -= adjoint @ chol[end:, block]
            grad[block, left] -= adjoint @ chol[end:, left]
        inner = _half_lower(xp, _adjoint(xp.tril(diagonal)) @ xp.tril(grad[block, block]))
        whole = _adjoint(inverse) @ (inner @ inverse)
        whole = whole + _adjoint(whole)
        grad[block, left] -= whole @ chol[block, left]
        grad[block, block] = _half_lower(xp, whole)
    grad = grad + _adjoint(grad)
    grad *= 0.5
    return grad


def _adjoint(a: Array) -> Array:
    return a.conj().T if a.dtype.kind == "c" else a.T  # the conjugate of real numbers would be a copy


def _half_lower(xp: ArrayModule, a: Array) -> Array:
    """The lower triangle of a square matrix, half of the diagonal; a new array."""
    lower = xp.tril(a)
    at = xp.arange(len(a))
    lower[at, at] *= 0.5
    return lower


def triangular_solve(xp: ArrayModule, a: Array, b: Array, *, lower: bool, adjoint: bool) -> Array:
    """The x with a x = b, or aᴴ x = b, from one triangle of a; leading axes are equal. Zeros on the diagonal divide."""
    if b.size == 0:
        return xp.zeros_like(b)
    if a.ndim > 2:
        n, k = b.shape[-2:]
        pairs = zip(a.reshape((-1, n, n)), b.reshape((-1, n, k)), strict=True)
        solved = [triangular_solve(xp, matrix, rhs, lower=lower, adjoint=adjoint) for matrix, rhs in pairs]
        return xp.stack(solved).reshape(b.shape)
    if xp is not np:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(a, b, lower=lower, trans="C" if adjoint else "N")
    from scipy.linalg.blas import get_blas_funcs

    # BLAS reads columns first: to it a is aᵀ, with the other triangle, and the equation is xᵀ aᵀ = bᵀ.
    trsm, trsv = get_blas_funcs(("trsm", "trsv"), (a, b))
    matrix = _adjoint(a) if adjoint else a.T
    if b.shape[1] == 1:
        return trsv(matrix, b[:, 0], lower=not lower, trans=0 if adjoint else 1)[:, None]
    return np.ascontiguousarray(trsm(1.0, matrix, b.T, side=1, lower=not lower, trans_a=1 if adjoint else 0).T)


def tridiagonal_solve(xp: ArrayModule, diagonals: Array, rhs: Array) -> Array:
    """The x with T x = rhs; diagonals [..., 3, n] of T: above (its last is ignored), main, below (its first is).

    NaN for singular matrices.
    """
    if rhs.size == 0:
        return xp.zeros_like(rhs)
    n, k = rhs.shape[-2:]
    pairs = zip(diagonals.reshape((-1, 3, n)), rhs.reshape((-1, n, k)), strict=True)
    solved = xp.stack([_tridiagonal_solve(xp, *pair) for pair in pairs]).reshape(rhs.shape)
    return solved.astype(rhs.dtype, copy=False)


def _tridiagonal_solve(xp: ArrayModule, diagonals: Array, rhs: Array) -> Array:
    above, main, below = diagonals[0, :-1], diagonals[1], diagonals[2, 1:]
    if xp is not np:
        dense = xp.diag(above, 1) + xp.diag(main) + xp.diag(below, -1)
        x = xp.linalg.solve(dense, rhs)  # of a singular matrix some numbers are infinite, and others are not
        return xp.where(xp.isfinite(x).all(axis=0), x, x.dtype.type(np.nan))
    if len(main) == 1:  # LAPACK's binding takes no empty diagonals
        return np.where(main == 0, rhs.dtype.type(np.nan), rhs / main)
    from scipy.linalg.lapack import get_lapack_funcs

    *_, x, info = get_lapack_funcs(("gtsv",), (diagonals, rhs))[0](below, main, above, rhs)
    return np.full_like(rhs, np.nan) if info else x


def inv(xp: ArrayModule, a: Array) -> Array:
    """The inverses; InvalidArgumentError if a matrix has none."""
    try:
        return np.linalg.inv(a) if xp is np else raising(xp.linalg.inv, a)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input is not invertible.") from None


def solve(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The x with a x = b; leading axes are equal. InvalidArgumentError if a is singular."""
    if b.size == 0:
        return xp.zeros_like(b)
    try:
        return np.linalg.solve(a, b) if xp is np else raising(xp.linalg.solve, a, b)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input matrix is not invertible.") from None


def raising(function: Callable[..., Any], *arrays: Any) -> Any:
    """Calls a function of CuPy, which raises LinAlgError only on request."""
    import cupyx

    with cupyx.errstate(linalg="raise"):
        return function(*arrays)


def banded_solve(xp: ArrayModule, bands: Array, rhs: Array, *, lower: bool, adjoint: bool) -> Array:
    """The x with a x = rhs, or aᴴ x = rhs, of triangular a of bands [..., b, n]; element i is that of row i.

    Of lower triangles the main diagonal is the first band, of upper ones the last. NaN goes into the result. The host
    solves the systems of a GPU too: one unknown needs another, and cuSOLVER would need the matrices written out.

    Raises:
        InvalidArgumentError: There is a zero on a main diagonal.
    """
    if rhs.size == 0:
        return xp.zeros_like(rhs)
    bands, rhs = on_host(bands), on_host(rhs)
    if not bands[..., 0 if lower else -1, :].all():
        raise InvalidArgumentError("Input matrix is not invertible.")
    (count, n), k = bands.shape[-2:], rhs.shape[-1]
    pairs = zip(bands.reshape((-1, count, n)), rhs.reshape((-1, n, k)), strict=True)
    return xp.asarray(np.stack([_banded_solve(*pair, lower, adjoint) for pair in pairs]).reshape(rhs.shape))


def _banded_solve(bands: Array, rhs: Array, lower: bool, adjoint: bool) -> Array:
    count, n = bands.shape
    offsets = [-i if lower else count - 1 - i for i in range(count)]
    columns = np.zeros_like(bands)  # element j of a band is that of column j, as LAPACK has it
    for column, band, offset in zip(columns, bands, offsets, strict=True):
        column[max(offset, 0) : n + min(offset, 0)] = band[max(-offset, 0) : n - max(offset, 0)]
    from scipy.linalg.lapack import get_lapack_funcs

    (solve,) = get_lapack_funcs(("tbtrs",), (bands, rhs))
    return solve(columns, rhs, uplo="L" if lower else "U", trans="C" if adjoint else "N")[0]
