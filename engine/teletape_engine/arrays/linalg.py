"""Factorisations and triangular systems of stacked matrices [..., n, n]: LAPACK's on the CPU, cuSOLVER's on a GPU.

Where TensorFlow gives NaN for what has no factor or no solution, so does this; where it raises, InvalidArgumentError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.errors import InvalidArgumentError


def cholesky(xp: Any, a: Any) -> Any:
    """The lower triangular L with L Lᴴ = a, from the lower triangle of a; NaN where a is not positive definite."""
    if a.size == 0:
        return xp.zeros_like(a)
    try:
        return np.linalg.cholesky(a) if xp is np else xp.tril(_raising(xp.linalg.cholesky, a))
    except np.linalg.LinAlgError:
        if a.ndim > 2:
            return xp.stack([cholesky(xp, one) for one in a])
        return xp.tril(xp.full_like(a, np.nan))


def triangular_solve(xp: Any, a: Any, b: Any, *, lower: bool, adjoint: bool) -> Any:
    """The x with a x = b, or aᴴ x = b, from one triangle of a; leading axes are equal. Zeros on the diagonal divide."""
    if b.size == 0:
        return xp.zeros_like(b)
    if a.ndim > 2:
        n, k = b.shape[-2:]
        pairs = zip(a.reshape((-1, n, n)), b.reshape((-1, n, k)), strict=True)
        solved = [triangular_solve(xp, one, other, lower=lower, adjoint=adjoint) for one, other in pairs]
        return xp.stack(solved).reshape(b.shape)
    if xp is not np:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(a, b, lower=lower, trans="C" if adjoint else "N")
    try:
        from scipy.linalg.blas import get_blas_funcs
    except ImportError:
        return _substituted(a, b, lower=lower, adjoint=adjoint)
    # BLAS reads columns first: to it a is aᵀ, with the other triangle.
    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    given = a.conj() if adjoint else a
    return np.ascontiguousarray(trsm(1.0, given.T, b, lower=not lower, trans_a=0 if adjoint else 1))


def _substituted(a: Any, b: Any, *, lower: bool, adjoint: bool) -> Any:
    """Forward or backward substitution, where NumPy is all there is."""
    if adjoint:
        a, lower = a.conj().T, not lower
    x = np.array(b)
    n = len(a)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        x[i] = (x[i] - a[i, known] @ x[known]) / a[i, i]
    return x


def inv(xp: Any, a: Any) -> Any:
    """The inverses; InvalidArgumentError where there is none."""
    try:
        return np.linalg.inv(a) if xp is np else _raising(xp.linalg.inv, a)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input is not invertible.") from None


def solve(xp: Any, a: Any, b: Any) -> Any:
    """The x with a x = b; leading axes are equal. InvalidArgumentError where a is singular."""
    if b.size == 0:
        return xp.zeros_like(b)
    try:
        return np.linalg.solve(a, b) if xp is np else _raising(xp.linalg.solve, a, b)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError("Input matrix is not invertible.") from None


def _raising(function: Any, *arrays: Any) -> Any:
    """The function on a GPU, which has to be told to raise LinAlgError."""
    import cupyx

    with cupyx.errstate(linalg="raise"):
        return function(*arrays)
