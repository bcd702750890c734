"""Bessel functions of orders 0 and 1, elementwise; their derivatives are made of those of the other order.

Abramowitz and Stegun, Handbook of Mathematical Functions, 9.1.27 and 9.6.26. The names that end in e have their growth
divided out: I is divided by e^|x|, K by e⁻ˣ.
"""

from __future__ import annotations

from collections.abc import Callable

from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.operand import Operand
from teletape_engine.ops.elementwise.complex import sign
from teletape_engine.ops.elementwise.logic import equal, where
from teletape_engine.ops.elementwise.special import by_scipy
from teletape_engine.ops.shapes.create import ones_like, zeros_like

_POSITIVE = (0.4, 3.0)  # K and Y have no values below 0


def _half_at_zero(x: Operand, slope: Callable[[Operand], Operand]) -> Operand:
    """`slope(x)`, and 1/2 where x is 0: the derivative of I and J of order 1."""
    zero = equal(x, zeros_like(x))
    ones = ones_like(x)
    return where(zero, ones * 0.5, slope(where(zero, ones, x)))


bessel_i0 = by_scipy(
    "bessel_i0",
    lambda x: ops.bessel_i1(x),
    "The modified Bessel function of the first kind of order 0, elementwise.",
    function="i0",
    tf="math.bessel_i0 math.special.bessel_i0",
)
bessel_i0e = by_scipy(
    "bessel_i0e",
    lambda x, y: ops.bessel_i1e(x) - sign(x) * y,
    "bessel_i0 divided by e^|x|, elementwise.",
    function="i0e",
    tf="math.bessel_i0e math.special.bessel_i0e",
)
bessel_i1 = by_scipy(
    "bessel_i1",
    lambda x, y: _half_at_zero(x, lambda x: ops.bessel_i0(x) - y / x),
    "The modified Bessel function of the first kind of order 1, elementwise.",
    function="i1",
    tf="math.bessel_i1 math.special.bessel_i1",
)
bessel_i1e = by_scipy(
    "bessel_i1e",
    lambda x, y: _half_at_zero(x, lambda x: ops.bessel_i0e(x) - y * (sign(x) + 1 / x)),
    "bessel_i1 divided by e^|x|, elementwise.",
    function="i1e",
    tf="math.bessel_i1e math.special.bessel_i1e",
)
bessel_k0 = by_scipy(
    "bessel_k0",
    lambda x: -ops.bessel_k1(x),
    "The modified Bessel function of the second kind of order 0, elementwise; nan below 0.",
    function="k0",
    domain=_POSITIVE,
    tf="math.special.bessel_k0",
)
bessel_k0e = by_scipy(
    "bessel_k0e",
    lambda x, y: y - ops.bessel_k1e(x),
    "bessel_k0 divided by e⁻ˣ, elementwise.",
    function="k0e",
    domain=_POSITIVE,
    tf="math.special.bessel_k0e",
)
bessel_k1 = by_scipy(
    "bessel_k1",
    lambda x, y: -ops.bessel_k0(x) - y / x,
    "The modified Bessel function of the second kind of order 1, elementwise; nan below 0.",
    function="k1",
    domain=_POSITIVE,
    tf="math.special.bessel_k1",
)
bessel_k1e = by_scipy(
    "bessel_k1e",
    lambda x, y: y * (1 - 1 / x) - ops.bessel_k0e(x),
    "bessel_k1 divided by e⁻ˣ, elementwise.",
    function="k1e",
    domain=_POSITIVE,
    tf="math.special.bessel_k1e",
)
bessel_j0 = by_scipy(
    "bessel_j0",
    lambda x: -ops.bessel_j1(x),
    "The Bessel function of the first kind of order 0, elementwise.",
    function="j0",
    tf="math.special.bessel_j0",
)
bessel_j1 = by_scipy(
    "bessel_j1",
    lambda x, y: _half_at_zero(x, lambda x: ops.bessel_j0(x) - y / x),
    "The Bessel function of the first kind of order 1, elementwise.",
    function="j1",
    tf="math.special.bessel_j1",
)
bessel_y0 = by_scipy(
    "bessel_y0",
    lambda x: -ops.bessel_y1(x),
    "The Bessel function of the second kind of order 0, elementwise; -inf at 0, nan below.",
    function="y0",
    domain=_POSITIVE,
    tf="math.special.bessel_y0",
)
bessel_y1 = by_scipy(
    "bessel_y1",
    lambda x, y: ops.bessel_y0(x) - y / x,
    "The Bessel function of the second kind of order 1, elementwise; -inf at 0, nan below.",
    function="y1",
    domain=_POSITIVE,
    tf="math.special.bessel_y1",
)
