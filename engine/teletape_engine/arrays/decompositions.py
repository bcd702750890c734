"""Eigenvalues, singular values and LU factors of stacked matrices [..., m, n]: by LAPACK, on a GPU by cuSOLVER.

Where an iteration does not converge, as with NaN in the matrix, TensorFlow's answer is given: NaN, or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.linalg import raising
from teletape_engine.errors import InvalidArgumentError, UnimplementedError
from teletape_engine.spec import COMPLEX


def eigh(xp: ArrayModule, a: Array) -> tuple[Array, Array]:
    """Ascending eigenvalues [..., n] and eigenvectors [..., n, n], from the lower triangles of Hermitian matrices."""
    return _converging(xp, "eigh", a)


def eigvalsh(xp: ArrayModule, a: Array) -> Array:
    """The eigenvalues of `eigh` alone."""
    return _converging(xp, "eigvalsh", a)


def eig(xp: ArrayModule, a: Array) -> tuple[Array, Array]:
    """Complex eigenvalues [..., n] and eigenvectors [..., n, n] of matrices without symmetry."""
    values, vectors = _converging(xp, "eig", a)
    order = _order(xp, a, values)
    return xp.take_along_axis(values, order, -1), xp.take_along_axis(vectors, order[..., None, :], -1)


def eigvals(xp: ArrayModule, a: Array) -> Array:
    """The eigenvalues of `eig` alone."""
    values = _converging(xp, "eigvals", a)
    return xp.take_along_axis(values, _order(xp, a, values), -1)


def _order(xp: ArrayModule, a: Array, values: Array) -> Array:
    """Those of complex matrices by magnitude, as TensorFlow's; those of real ones as LAPACK returns them."""
    keys = abs(values) if a.dtype in COMPLEX else xp.zeros(values.shape)
    return xp.argsort(keys, -1, kind="stable")


def _converging(xp: ArrayModule, name: str, a: Array) -> Any:
    function = getattr(xp.linalg, name, None)
    if function is None:
        raise UnimplementedError(f"{name} is not offered on a GPU: its library has no such function")
    try:
        if not bool(xp.isfinite(xp.tril(a) if name.endswith("h") else a).all()):
            raise np.linalg.LinAlgError  # LAPACK's Hermitian solver returns some numbers
        return function(a) if xp is np else raising(function, a)
    except np.linalg.LinAlgError:
        whose = "Self-adjoint eigen decomposition" if name.endswith("h") else "Eigen decomposition"
        raise InvalidArgumentError(f"{whose} was not successful. The input might not be valid.") from None


def svd(xp: ArrayModule, a: Array, *, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """U, the descending singular values s [..., min(m, n)] and Vᴴ; NaN if they cannot be computed."""
    u, s, v = _or_nan(xp, lambda xp, a: xp.linalg.svd(a, full_matrices=full_matrices), a)
    return u, s, v


def svdvals(xp: ArrayModule, a: Array) -> Array:
    """The singular values of `svd` alone."""
    return _or_nan(xp, lambda xp, a: [xp.linalg.svd(a, compute_uv=False)], a)[0]


def _or_nan(xp: ArrayModule, function: Callable[[Any, Any], Any], a: Array) -> list[Array]:
    """The results of a function that may fail; of stacked matrices only those of the failing ones are NaN."""
    try:
        return list(function(xp, a) if xp is np else raising(function, xp, a))
    except np.linalg.LinAlgError:
        if a.ndim > 2:
            return [xp.stack(parts) for parts in zip(*(_or_nan(xp, function, matrix) for matrix in a), strict=True)]
        return [xp.full_like(part, np.nan) for part in function(xp, xp.zeros_like(a))]


def lu(xp: ArrayModule, a: Array) -> tuple[Array, Array]:
    """L below the diagonal and U [..., n, n], and the permutation [..., n]: row i of L U is row p[i] of a.

    Raises:
        InvalidArgumentError: A matrix is singular, or has NaN.
    """
    n = a.shape[-1]
    if a.size == 0:
        return xp.zeros_like(a), xp.zeros(a.shape[:-1], np.int64)
    pairs = [_lu_of_one(xp, matrix) for matrix in a.reshape((-1, n, n))]
    factors, orders = (xp.stack(parts) for parts in zip(*pairs, strict=True))
    if not bool(xp.all(abs(xp.diagonal(factors, axis1=-2, axis2=-1)) > 0)):
        raise InvalidArgumentError("Input is not invertible.")
    return factors.reshape(a.shape), orders.reshape(a.shape[:-1])


def _lu_of_one(xp: ArrayModule, a: Array) -> tuple[Array, Array]:
    if xp is np:
        from scipy.linalg.lapack import get_lapack_funcs

        factors, swaps, _ = get_lapack_funcs(("getrf",), (a,))[0](a)
    else:
        from cupyx.scipy.linalg import lu_factor

        factors, swaps = lu_factor(a)
        swaps = swaps.get()
    order = np.arange(len(a))
    for row, other in enumerate(swaps):
        order[[row, other]] = order[[other, row]]
    return xp.ascontiguousarray(factors), xp.asarray(order)
