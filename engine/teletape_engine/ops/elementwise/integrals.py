"""Integrals without a closed form, and the incomplete gamma and beta functions, elementwise."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, special
from teletape_engine.arrays.tiles import in_tiles
from teletape_engine.catalogue.define import on_gpu, sample
from teletape_engine.catalogue.elementwise import elementwise
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.ops.elementwise.logic import equal, where
from teletape_engine.ops.elementwise.math import cos, exp, log, sin
from teletape_engine.ops.elementwise.special import NO_FUNCTION, by_scipy, lgamma, xlog1py, xlogy
from teletape_engine.ops.shapes.create import ones_like
from teletape_engine.spec import DTYPES, FLOATING

_WHOLE_FLOATS = frozenset((DTYPES["float32"], DTYPES["float64"]))

# ---------------------------------------------------------------------------------------------------------- integrals
dawsn = by_scipy(
    "dawsn",
    lambda x, y: 1 - 2 * x * y,
    "Dawson's integral, e^(-x²) times the integral of e^(t²) from 0 to x, elementwise.",
    tf="math.special.dawsn",
    missing=True,
)
expint = by_scipy(
    "expint",
    lambda x: exp(x) / x,
    "The exponential integral Ei, the integral of eᵗ/t from -inf to x, elementwise; -inf at 0.",
    function="expi",
    domain=(0.4, 2.0),
    tf="math.special.expint",
)
spence = by_scipy(
    "spence",
    lambda x: _spence_slope(x),
    "Spence's integral, that of log(t)/(1 - t) from 1 to x, elementwise; nan below 0.",
    domain=(1.2, 3.0),
    tf="math.special.spence",
    missing=True,
)


def _spence_slope(x: Operand) -> Operand:
    ones = ones_like(x)
    at_one = equal(x, ones)
    apart = where(at_one, ones * 2, x)
    return where(at_one, -ones, log(apart) / (1 - apart))


@elementwise(lambda x: cos(math.pi / 2 * x * x), temporaries=1, tf="math.special.fresnel_cos", dtypes=FLOATING)
@on_gpu(missing=NO_FUNCTION)
def fresnel_cos(xp: ArrayModule, x: Array) -> Array:
    """Fresnel's integral of cos(πt²/2) from 0 to x, elementwise. Errors as erfc."""
    return special.function(xp, "fresnel", x, part=1)


@elementwise(lambda x: sin(math.pi / 2 * x * x), temporaries=1, tf="math.special.fresnel_sin", dtypes=FLOATING)
@on_gpu(missing=NO_FUNCTION)
def fresnel_sin(xp: ArrayModule, x: Array) -> Array:
    """Fresnel's integral of sin(πt²/2) from 0 to x, elementwise. Errors as erfc."""
    return special.function(xp, "fresnel", x, part=0)


# ---------------------------------------------------------------------------------------- incomplete gamma and beta
def _gamma_density(a: Operand, x: Operand) -> Operand:
    """The density at x of the gamma distribution of shape a: the derivative of igamma by x."""
    return exp(xlogy(a - 1, x) - x - lgamma(a))


def _gamma_slope(a: Operand, x: Operand) -> Operand:
    """The derivative of igamma by a: minus what moves x while igamma stays as it is."""
    return -ops.random_gamma_grad(a, x) * _gamma_density(a, x)


def _where_positive(xp: ArrayModule, a: Array, result: Array) -> Array:
    """The result, and nan where a is not positive: SciPy has the limit at 0."""
    return xp.where(xp.asarray(a > 0), result, result.dtype.type(np.nan))


@elementwise(
    _gamma_slope,
    _gamma_density,
    temporaries=2,
    tf="math.igamma",
    args="a x",
    dtypes=FLOATING,
    domain=(0.4, 3.0),
    traits=[Trait.FIRST_ORDER],
    weak=False,
)
def igamma(xp: ArrayModule, a: Array, x: Array) -> Array:
    """The regularised lower incomplete gamma function P(a, x), elementwise, in [0, 1]; nan unless a > 0.

    It has gradients by both inputs; no gradient is registered for that by a.
    """
    return _where_positive(xp, a, special.function(xp, "gammainc", a, x))


@elementwise(
    lambda a, x: -_gamma_slope(a, x),
    lambda a, x: -_gamma_density(a, x),
    temporaries=2,
    tf="math.igammac",
    args="a x",
    dtypes=FLOATING,
    domain=(0.4, 3.0),
    traits=[Trait.FIRST_ORDER],
    weak=False,
)
def igammac(xp: ArrayModule, a: Array, x: Array) -> Array:
    """The regularised upper incomplete gamma function, 1 - igamma(a, x), elementwise and exact where it is small."""
    return _where_positive(xp, a, special.function(xp, "gammaincc", a, x))


@composite(samples=[sample((2, 3), low=0.4, high=3.0), sample((2,), low=0.4, high=3.0)], tf="math.lbeta", args="x")
def lbeta(x: Operand) -> Operand:
    """The logarithm of the beta function of the numbers along the last axis: the sum of their lgamma - lgamma of it."""
    return ops.reduce_sum(lgamma(x), axis=-1) - lgamma(ops.reduce_sum(x, axis=-1))


@elementwise(
    NON_DIFFERENTIABLE,
    NON_DIFFERENTIABLE,
    lambda a, b, x: exp(xlog1py(b - 1, -x) + xlogy(a - 1, x) - lgamma(a) - lgamma(b) + lgamma(a + b)),
    temporaries=8,  # of 32 bits: the inputs and the result in 64
    tf="math.betainc",
    args="a b x",
    dtypes=_WHOLE_FLOATS,
    domain=(0.2, 0.9),
    weak=False,
)
def betainc(xp: ArrayModule, a: Array, b: Array, x: Array) -> Array:
    """The regularised incomplete beta function, elementwise, for x in [0, 1]; its gradient is that by x alone."""
    return in_tiles(xp, _betainc, a, b, x)


def _betainc(xp: ArrayModule, a: Array, b: Array, x: Array) -> Array:
    """In 64 bits: SciPy's of 32 bits has relative errors of 3e-5."""
    inputs = [array.astype(np.float64, copy=False) for array in (a, b, x)]
    return special.function(xp, "betainc", *inputs).astype(a.dtype, copy=False)


@elementwise(
    NON_DIFFERENTIABLE,
    lambda x, q: -x * ops.zeta(x + 1, q),
    temporaries=2,
    tf="math.zeta",
    args="x q",
    dtypes=_WHOLE_FLOATS,
    domain=(1.3, 3.0),
    weak=False,
)
def zeta(xp: ArrayModule, x: Array, q: Array) -> Array:
    """Hurwitz's zeta function, the sum of (q + n)⁻ˣ over n = 0, 1, …, elementwise; its gradient is that by q alone."""
    return special.zeta(xp, x, q)
