"""Functions of stacked square matrices [..., n, n]: exponential, logarithm and square root.

The exponential is written on products and solutions, so that it runs on a GPU too; the others are SciPy's, which has
Schur's decomposition, on the CPU alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, linalg
from teletape_engine.spec import REAL_OF

#: Numerators of Padé approximants of exp, of degrees 3, 5, 7, 9 and 13, and the 1-norms up to which each is exact in
#: float64 and in float32 (Higham 2005, The scaling and squaring method for the matrix exponential revisited).
_PADE: Final[tuple[tuple[float, float | None, tuple[float, ...]], ...]] = (
    (1.495585217958292e-2, 4.258730016922831e-1, (120.0, 60.0, 12.0, 1.0)),
    (2.539398330063230e-1, 1.880152677804762e0, (30240.0, 15120.0, 3360.0, 420.0, 30.0, 1.0)),
    (
        9.504178996162932e-1,
        3.925724783138660e0,
        (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0),
    ),
    (
        2.097847961257068e0,
        None,
        (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0, 1.0),
    ),
    (
        5.371920351148152e0,
        None,
        (
            64764752532480000.0,
            32382376266240000.0,
            7771770303897600.0,
            1187353796428800.0,
            129060195264000.0,
            10559470521600.0,
            670442572800.0,
            33522128640.0,
            1323241920.0,
            40840800.0,
            960960.0,
            16380.0,
            182.0,
            1.0,
        ),
    ),
)


def expm(xp: ArrayModule, a: Array) -> Array:
    """The exponentials, each matrix scaled and squared by its own norm; NaN for matrices that are not finite."""
    n = a.shape[-1]
    if a.size == 0:
        return xp.zeros_like(a)
    matrices = a.reshape((-1, n, n))
    norms = xp.max(xp.sum(abs(matrices), axis=-2), axis=-1)
    finite = xp.isfinite(norms)
    matrices = xp.where(finite[:, None, None], matrices, 0)
    norms = xp.where(finite, norms, 0)
    single = np.dtype(REAL_OF.get(a.dtype, a.dtype)).itemsize == 4
    rows: list[tuple[float, tuple[float, ...]]] = []
    for double_bound, single_bound, coefficients in _PADE:
        largest = single_bound if single else double_bound
        if largest is not None:
            rows.append((largest, coefficients))
    squarings = xp.ceil(xp.log2(xp.maximum(norms / rows[-1][0], 1))).astype(np.int64)
    scaled = xp.ldexp(xp.ones_like(norms), -squarings)[:, None, None] * matrices
    result, lowest = xp.empty_like(matrices), -1.0
    for bound, coefficients in rows:
        last = coefficients is rows[-1][1]
        chosen = xp.flatnonzero((norms > lowest) & ((norms <= bound) | last))
        if len(chosen):
            result[chosen] = _pade(xp, scaled[chosen].astype(a.dtype, copy=False), coefficients)
        lowest = bound
    for step in range(int(squarings.max())):
        chosen = xp.flatnonzero(squarings > step)
        result[chosen] = xp.matmul(result[chosen], result[chosen])
    result[~finite] = complex(np.nan, np.nan) if a.dtype.kind == "c" else np.nan
    return result.reshape(a.shape)


def _pade(xp: ArrayModule, a: Array, coefficients: tuple[float, ...]) -> Array:
    """(V - U)⁻¹ (V + U) with the odd terms U and the even ones V."""
    square = xp.matmul(a, a)
    power = xp.broadcast_to(xp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    kind = a.dtype.type
    odd, even = power * kind(coefficients[1]), power * kind(coefficients[0])
    for k in range(2, len(coefficients), 2):
        power = xp.matmul(power, square) if k > 2 else square
        even = even + power * kind(coefficients[k])
        odd = odd + power * kind(coefficients[k + 1])
    odd = xp.matmul(a, odd)
    return linalg.solve(xp, even - odd, even + odd)


def logm(xp: ArrayModule, a: Array) -> Array:
    """The principal logarithms of complex matrices; NaN of singular ones."""
    return _by_schur(_logm, a)


def sqrtm(xp: ArrayModule, a: Array) -> Array:
    """The principal square roots; NaN of real matrices that have no real one, and if several eigenvalues are 0."""
    return _by_schur(_sqrtm, a)


def _by_schur(function: Callable[[Any, Array], Array | complex], a: Array) -> Array:
    """Calls a function of one matrix and SciPy for each of the matrices."""
    import scipy.linalg

    result, n = np.full_like(a, complex(np.nan, np.nan) if a.dtype.kind == "c" else np.nan), a.shape[-1]
    with warnings.catch_warnings():  # SciPy warns of singular matrices, and where rounding errors are large
        warnings.simplefilter("ignore", RuntimeWarning)
        for out, matrix in zip(result.reshape((-1, n, n)), a.reshape((-1, n, n)), strict=True) if a.size else ():
            if np.isfinite(matrix).all():
                out[...] = function(scipy.linalg, matrix)
    return result


def _logm(scipy_linalg: Any, a: Array) -> Array | complex:
    triangle, _ = scipy_linalg.schur(a, output="complex")
    return scipy_linalg.logm(a) if np.diagonal(triangle).all() else complex(np.nan, np.nan)


def _sqrtm(scipy_linalg: Any, a: Array) -> Array | complex:
    triangle, turn = scipy_linalg.schur(a, output="real" if a.dtype.kind == "f" else "complex")
    if a.dtype.kind == "f":
        eigenvalues = np.diagonal(triangle)
        below = np.append(np.diagonal(triangle, -1), 0) != 0
        if (eigenvalues[~below & ~np.roll(below, 1)] < 0).any():
            return np.nan
        triangle, turn = scipy_linalg.rsf2csf(triangle, turn)
    if np.count_nonzero(np.diagonal(triangle)) < len(a) - 1:
        return np.nan if a.dtype.kind == "f" else complex(np.nan, np.nan)
    result = turn @ scipy_linalg.sqrtm(triangle) @ turn.conj().T
    return result.real if a.dtype.kind == "f" else result
