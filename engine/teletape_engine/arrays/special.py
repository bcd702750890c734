"""Special functions: SciPy's on the CPU, CuPy's on a GPU. Loaded when first called: to import them takes long."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.tiles import in_tiles
from teletape_engine.errors import UnimplementedError
from teletape_engine.spec import wide

_ONE, _ERF_END = np.float32(1), np.float32(3.832506856900711)  # from there on it is 1
_ERF_TOP = np.array(
    [0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861, 0.18520832239976145, 1.128379143519084],
    np.float32,
)
_ERF_BOTTOM = np.array(
    [
        -1.1791602954361697e-7,
        2.3547966471313185e-5,
        0.0010179625278914885,
        0.014070470171167667,
        0.11098505178285362,
        0.49746925110067538,
        1.0,
    ],
    np.float32,
)


def erf(xp: ArrayModule, x: Array) -> Array:
    """The error function of floating-point numbers, of 16 bits in float32."""
    dtype = x.dtype
    if xp.__name__ != "numpy" or dtype.itemsize > 4:
        return _module(xp, "erf").erf(x.astype(wide(dtype), copy=False)).astype(dtype, copy=False)
    return in_tiles(xp, lambda xp, x: _erf32(xp, x.astype(wide(dtype), copy=False)).astype(dtype, copy=False), x)


def _erf32(xp: ArrayModule, x: Array) -> Array:
    """x P(x²)/Q(x²), the rational function of Eigen's and XLA's kernels: within 6 units in the last place."""
    x = xp.minimum(xp.maximum(x, -_ERF_END), _ERF_END)
    square = x * x
    bottom = _polynomial(square, _ERF_BOTTOM)
    x *= _polynomial(square, _ERF_TOP)
    x /= bottom
    return xp.minimum(xp.maximum(x, -_ONE), _ONE)


def _polynomial(x: Array, coefficients: np.ndarray[Any, Any]) -> Array:
    y = x * coefficients[0]
    for coefficient in coefficients[1:-1]:
        y += coefficient
        y *= x
    y += coefficients[-1]
    return y


def function(xp: ArrayModule, name: str, *arrays: Array, part: int | None = None) -> Array:
    """SciPy's or CuPy's function of that name, of floating-point arrays of one dtype; of 16 bits in float32.

    Args:
        xp: The array namespace.
        name: The function's name in scipy.special.
        *arrays: What it takes.
        part: Which of its results; None: it has one.

    Raises:
        UnimplementedError: CuPy has no such function; the message names what to do.
    """
    dtype = arrays[0].dtype
    inputs = [array.astype(wide(dtype), copy=False) for array in arrays]
    try:
        compute = getattr(_module(xp, name), name)
    except AttributeError:
        raise UnimplementedError(f"{name}: CuPy has no such function; run it in a session on the CPU") from None
    results = compute(*inputs)
    return (results if part is None else results[part]).astype(dtype, copy=False)


def zeta(xp: ArrayModule, x: Array, q: Array) -> Array:
    """Hurwitz's zeta function; at q = 0, -1, … inf if x is even, else nan. Errors as `function`."""
    diverges = (q <= 0) & (q == xp.floor(q)) & (xp.mod(x, 2) != 0)
    return xp.where(diverges, x.dtype.type(xp.nan), function(xp, "zeta", x, q))


def _module(xp: ArrayModule, function: str) -> Any:
    if xp is not np:
        import cupyx.scipy.special

        return cupyx.scipy.special
    import scipy.special

    return scipy.special
