"""Inverse hyperbolic functions, functions of probability and the gamma function, and products that hide nan.

By SciPy, on a GPU by CuPy, where NumPy has no function. Composites where a zero decides: its gradient is zero too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, special
from teletape_engine.arrays.checks import condition_of
from teletape_engine.catalogue.define import on_gpu, sample
from teletape_engine.catalogue.elementwise import Formula, elementwise, elementwise_spec, linear_map, unary
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.arithmetic import div_no_nan
from teletape_engine.ops.elementwise.logic import equal, where
from teletape_engine.ops.elementwise.math import cosh, exp, log, log1p, reciprocal, sinh, softplus
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.spec import COMPLEX, DTYPES, FLOATING, Spec

_WHOLE_FLOATS = frozenset((DTYPES["float32"], DTYPES["float64"]))


NO_FUNCTION: Final = "CuPy has no such function"


def by_scipy(name: str, formula: Formula, doc: str, *, function: str = "", missing: bool = False, **options: Any) -> Op:
    """An elementwise op of one array that is a function of scipy.special.

    Args:
        name: The op's.
        formula: Its derivative.
        doc: Its docstring.
        function: The name of SciPy's function; by default the op's.
        missing: Whether CuPy has no such function.
        **options: As of `elementwise`.
    """
    called = function or name

    def forward(xp: ArrayModule, x: Array) -> Array:
        return special.function(xp, called, x)

    forward.__name__, forward.__doc__ = name, f"{doc} Errors as erfc."
    forward.__module__ = sys._getframe(1).f_globals["__name__"]  # the family's file, as namedtuple finds it
    if missing:
        forward = on_gpu(missing=NO_FUNCTION)(forward)
    return elementwise(formula, temporaries=1, dtypes=FLOATING, **options)(forward)


# ------------------------------------------------------------------------------------------------ inverse hyperbolics
asinh = unary(
    "asinh",
    lambda y: reciprocal(cosh(y)),
    "Inverse hyperbolic sine, elementwise.",
    numpy="arcsinh",
    tf="asinh math.asinh",
)
acosh = unary(
    "acosh",
    lambda y: reciprocal(sinh(y)),
    "Inverse hyperbolic cosine, elementwise; nan below 1.",
    numpy="arccosh",
    domain=(1.3, 3.0),
    tf="acosh math.acosh",
)
atanh = unary(
    "atanh",
    lambda x: reciprocal(1 - x * x),
    "Inverse hyperbolic tangent, elementwise; nan outside [-1, 1].",
    numpy="arctanh",
    domain=(-0.8, 0.8),
    tf="atanh math.atanh",
)


# -------------------------------------------------------------------------------------------------------- probability
@elementwise(
    lambda x: -2 / math.sqrt(math.pi) * exp(-x * x),
    temporaries=1,
    tf="math.erfc",
    dtypes=FLOATING,
    traits=[Trait.SATURATES],
)
def erfc(xp: ArrayModule, x: Array) -> Array:
    """1 - erf(x), elementwise, exact for large x."""
    return special.function(xp, "erfc", x)


@elementwise(
    lambda y: math.sqrt(math.pi) / 2 * exp(y * y), temporaries=1, tf="math.erfinv", dtypes=FLOATING, domain=(-0.9, 0.9)
)
def erfinv(xp: ArrayModule, x: Array) -> Array:
    """The y with erf(y) = x, elementwise; nan outside [-1, 1]. Errors as erfc."""
    return special.function(xp, "erfinv", x)


@elementwise(
    lambda y: math.sqrt(2 * math.pi) * exp(y * y / 2),
    temporaries=1,
    tf="math.ndtri",
    dtypes=FLOATING,
    domain=(0.05, 0.95),
)
def ndtri(xp: ArrayModule, x: Array) -> Array:
    """The number below which a share x of the standard normal distribution lies, elementwise. Errors as erfc."""
    return special.function(xp, "ndtri", x)


@composite(samples=[sample((2, 3), low=0.1, high=1.9)], tf="math.erfcinv")
def erfcinv(x: Operand) -> Operand:
    """The y with erfc(y) = x, elementwise; nan outside [0, 2]. Errors as erfc."""
    return ndtri(x * 0.5) * -math.sqrt(0.5)


# ---------------------------------------------------------------------------------------------------- gamma functions
_GAMMA = (0.4, 3.0)
_HIGHEST = 100  #: The factorial of a larger order, times zeta, is soon no float64.


@elementwise(lambda x: ops.digamma(x), temporaries=1, tf="math.lgamma", dtypes=FLOATING, domain=_GAMMA)
def lgamma(xp: ArrayModule, x: Array) -> Array:
    """The logarithm of the absolute value of the gamma function, elementwise; inf at ±inf. Errors as erfc."""
    return xp.where(x == -xp.inf, -x, special.function(xp, "gammaln", x))


@elementwise(lambda x: ops.polygamma(x, order=1), temporaries=1, tf="math.digamma", dtypes=FLOATING, domain=_GAMMA)
def digamma(xp: ArrayModule, x: Array) -> Array:
    """The derivative of lgamma, elementwise; nan at its poles, 0 and the negative whole numbers. Errors as erfc."""
    return xp.where(x == 0, x.dtype.type(xp.nan), special.function(xp, "digamma", x))


def _polygamma_spec(x: Spec, *, order: float) -> Spec:
    if not (order.is_integer() and 0 <= order <= _HIGHEST):
        raise InvalidArgumentError(f"the order must be a whole number in [0, {_HIGHEST}], found {order}")
    return elementwise_spec("Polygamma", x, dtypes=FLOATING)


@elementwise(
    lambda x, order: ops.polygamma(x, order=order + 1),
    infer=_polygamma_spec,
    temporaries=3,
    tf=(function("math.polygamma", Conversion.REAL("a", to="order"), "x", shortcut="polygamma_of_tensor_order"),),
    dtypes=FLOATING,
    samples=[sample((2, 3), order=1.0, low=0.4, high=3.0), sample((3,), order=0.0, low=0.4, high=3.0)],
)
def polygamma(xp: ArrayModule, x: Array, *, order: float) -> Array:
    """The derivative of that order of digamma, elementwise; the order is a whole number. Errors as erfc."""
    if order == 0:
        return special.function(xp, "digamma", x)
    factor = math.gamma(order + 1) * (-1 if order % 2 == 0 else 1)
    return (special.zeta(xp, xp.full_like(x, order + 1), x) * factor).astype(x.dtype, copy=False)


# ------------------------------------------------------------------------------------------------- where zero decides
_PAIRS = [
    sample((2, 3), (2, 3), low=0.3, high=2.0, seed=1),
    sample((2, 1, 3), (4, 1), low=0.3, high=2.0),
    sample((3,), 0.7, low=0.3, high=2.0),
]


def _unless_zero(x: Operand, y: Operand, result: Callable[[Operand, Operand], Operand]) -> Operand:
    """`result(x, y)`, and 0 where x is 0, whatever y is there."""
    zero = equal(x, zeros_like(x))
    product = result(x, where(zero, ones_like(y), y))
    return where(zero, zeros_like(product), product)


@composite(samples=_PAIRS, tf="math.xlogy", args="x y")
def xlogy(a: Operand, b: Operand) -> Operand:
    """a log(b), elementwise; 0 where a is 0, and so are the gradients there."""
    return _unless_zero(a, b, lambda x, y: x * log(y))


@composite(samples=_PAIRS, tf="math.xlog1py", args="x y")
def xlog1py(a: Operand, b: Operand) -> Operand:
    """a log(1 + b), elementwise; 0 where a is 0, and so are the gradients there."""
    return _unless_zero(a, b, lambda x, y: x * log1p(y))


@composite(samples=_PAIRS, tf="math.xdivy", args="x y")
def xdivy(a: Operand, b: Operand) -> Operand:
    """a / b, elementwise; 0 where a is 0, and so are the gradients there."""
    return _unless_zero(a, b, lambda x, y: x / y)


@elementwise(
    linear_map(lambda ct, b: ops.mul_no_nan(ct, b)),
    linear_map(lambda ct, a: ops.mul_no_nan(a, ct)),
    op_type="MulNoNan",
    args="x y",
    tf=(function("math.multiply_no_nan", Conversion.LIKE("x", of="y"), Conversion.HINTED("y", of="x")),),
    dtypes=FLOATING | COMPLEX,
    domain=(0.3, 2.0),
    temporaries=2,
    traits=[Trait.MULTIPLIES],
)
def mul_no_nan(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a * b, elementwise, and 0 where b is 0, even if a is nan or infinite."""
    product = xp.multiply(a, b)
    return xp.where(condition_of(xp, b == 0), product.dtype.type(0), product)


@composite(samples=[sample(np.array([0.3, 0.5, -2.0]))], tf="math.reciprocal_no_nan")
def reciprocal_no_nan(x: Operand) -> Operand:
    """1 / x, elementwise, and 0 where x is 0."""
    return div_no_nan(ones_like(x), x)


@composite(samples=[sample((2, 3)), sample(())], tf="math.log_sigmoid")
def log_sigmoid(x: Operand) -> Operand:
    """log(1 / (1 + e⁻ˣ)), elementwise, without overflow."""
    return -softplus(-x)
