"""Functions of one array, elementwise. The formula is the derivative, by x or, if that is cheaper, by the result y.

`unary` is one line for a function of NumPy's; `@elementwise` is for an op with a forward of its own. Functions of two
arrays are in arithmetic.py, those of complex numbers in complex.py.
"""

from __future__ import annotations

import math

from teletape_engine.arrays import Array, ArrayModule, special
from teletape_engine.arrays.checks import condition_of
from teletape_engine.arrays.kernels import Count, applied, kernel
from teletape_engine.catalogue.elementwise import ByDType, elementwise, linear_map, unary
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.spec import DIFFERENTIABLE, DTYPES, FLOATING, INTEGER, NUMERIC, REAL, SIGNED, wide

_POSITIVE = (0.2, 2.0)
_INNER = (-0.8, 0.8)


# ------------------------------------------------------------------------------------------------------------- powers
neg = unary(
    "neg", -1, "-x, elementwise.", numpy="negative", dtypes=DIFFERENTIABLE | SIGNED, tf="negative math.negative"
)
square = unary("square", lambda x: 2 * x, "x², elementwise.", dtypes=NUMERIC, tf="square math.square")
sqrt = unary(
    "sqrt",
    linear_map(lambda ct, y: ops.sqrt_grad(y, ct)),
    "√x, elementwise; nan below zero. The gradient at 0 is inf.",
    jvp=[lambda y: 0.5 / y],
    domain=_POSITIVE,
    tf="sqrt math.sqrt",
)


@elementwise(
    linear_map(lambda ct, y: ops.rsqrt_grad(y, ct)),
    temporaries=1,
    tf="math.rsqrt",
    dtypes=DIFFERENTIABLE,
    domain=_POSITIVE,
)
def rsqrt(xp: ArrayModule, x: Array) -> Array:
    """1/√x, elementwise; inf at zero."""
    return xp.reciprocal(xp.sqrt(x))


reciprocal = unary(
    "reciprocal",
    linear_map(lambda ct, y: ops.reciprocal_grad(y, ct)),
    "1/x, elementwise.",
    domain=_POSITIVE,
    tf="math.reciprocal",
)


# In TensorFlow's kernels a gradient of 0 stays 0 even at √0, so that the unused branch of a tf.where stays finite.
@elementwise(
    lambda y, root: -y / root, linear_map(lambda ct, root: 0.5 * ct / root), dtypes=DIFFERENTIABLE, domain=_POSITIVE
)
def sqrt_grad(xp: ArrayModule, root: Array, grad: Array) -> Array:
    """grad / (2 root), elementwise: the vjp of √x = root. 0 where grad is 0."""
    return xp.where(condition_of(xp, grad == 0), grad, 0.5 * grad / root)


@elementwise(
    lambda root, grad: -1.5 * grad * root * root,
    linear_map(lambda ct, root: ops.rsqrt_grad(root, ct)),
    temporaries=2,
    dtypes=DIFFERENTIABLE,
    domain=_POSITIVE,
)
def rsqrt_grad(xp: ArrayModule, root: Array, grad: Array) -> Array:
    """-grad root³ / 2, elementwise: the vjp of 1/√x = root. 0 where grad is 0."""
    return xp.where(condition_of(xp, grad == 0), grad, -0.5 * grad * root * root * root)


@elementwise(
    lambda inverse, grad: -2 * grad * inverse,
    linear_map(lambda ct, inverse: ops.reciprocal_grad(inverse, ct)),
    temporaries=1,
    dtypes=DIFFERENTIABLE,
    domain=_POSITIVE,
)
def reciprocal_grad(xp: ArrayModule, inverse: Array, grad: Array) -> Array:
    """-grad inverse², elementwise: the vjp of 1/x = inverse. 0 where grad is 0."""
    return xp.where(condition_of(xp, grad == 0), grad, -grad * inverse * inverse)


# ------------------------------------------------------------------------------------------ exponentials, logarithms
exp = unary("exp", lambda y: y, "eˣ, elementwise.", tf="exp math.exp")
expm1 = unary("expm1", lambda x: exp(x), "eˣ - 1, elementwise, exact near zero.", tf="math.expm1")
log = unary(
    "log",
    lambda x: reciprocal(x),
    "Natural logarithm, elementwise; -inf at zero, nan below.",
    domain=_POSITIVE,
    tf="math.log",
)
log1p = unary(
    "log1p",
    lambda x: reciprocal(1 + x),
    "log(1 + x), elementwise, exact near zero.",
    domain=(-0.7, 1.5),
    tf="math.log1p",
)

# ------------------------------------------------------------------------------------------------------- trigonometry
sin = unary("sin", lambda x: ops.cos(x), "Sine of x in radians, elementwise.", tf="sin math.sin")
cos = unary("cos", lambda x: -sin(x), "Cosine of x in radians, elementwise.", tf="cos math.cos")
tan = unary("tan", lambda y: 1 + y * y, "Tangent of x in radians, elementwise.", domain=(-1.2, 1.2), tf="tan math.tan")
sinh = unary("sinh", lambda x: ops.cosh(x), "Hyperbolic sine, elementwise.", tf="sinh math.sinh")
cosh = unary("cosh", lambda x: sinh(x), "Hyperbolic cosine, elementwise.", tf="cosh math.cosh")
tanh = unary(
    "tanh",
    ByDType(lambda y: 1 - y * y, {DTYPES["float64"]: linear_map(lambda ct, x, y: ops.tanh_grad(ct, x, y))}),
    "Hyperbolic tangent, elementwise.",
    traits=[Trait.SATURATES],
    tf="tanh math.tanh nn.tanh",
)
asin = unary(
    "asin",
    lambda x: rsqrt(1 - x * x),
    "Inverse sine in radians, elementwise; nan outside [-1, 1].",
    numpy="arcsin",
    domain=_INNER,
    tf="asin math.asin",
)
acos = unary(
    "acos",
    lambda x: -rsqrt(1 - x * x),
    "Inverse cosine in radians, elementwise; nan outside [-1, 1].",
    numpy="arccos",
    domain=_INNER,
    tf="acos math.acos",
)
atan = unary(
    "atan",
    lambda x: reciprocal(1 + x * x),
    "Inverse tangent in radians, elementwise.",
    numpy="arctan",
    domain=_INNER,
    tf="atan math.atan",
)


@elementwise(
    linear_map(lambda ct, x, tanh: ops.tanh_grad(ct, x, tanh)),
    NON_DIFFERENTIABLE,
    lambda grad, tanh: -2 * grad * tanh,
    temporaries=5,
    dtypes=FLOATING,
    domain=_INNER,
    weak=False,
)
def tanh_grad(xp: ArrayModule, grad: Array, x: Array, tanh: Array) -> Array:
    """grad (1 - tanh²), elementwise: the vjp of tanh x. Near ±1, x has the digits that the tanh has lost."""
    loops = kernel(xp, "tanh_grad", x.dtype, Count(x.size)) if grad.shape == x.shape == tanh.shape else None
    if loops is not None:
        return applied(xp, loops, (grad, x, tanh), x.shape)
    small = xp.exp(-2 * xp.abs(x))
    return xp.where(1 - tanh * tanh < 0.001, grad * (4 * small / xp.square(1 + small)), grad * (1 - tanh * tanh))


# ----------------------------------------------------------------------------------------------------------- sigmoids
@elementwise(
    lambda y, x: y * ops.sigmoid(-x),
    temporaries=3,
    tf="sigmoid math.sigmoid nn.sigmoid",
    dtypes=DIFFERENTIABLE,
    traits=[Trait.SATURATES],
)
def sigmoid(xp: ArrayModule, x: Array) -> Array:
    """1 / (1 + e⁻ˣ), elementwise."""
    return (1 / (1 + xp.exp(-x.astype(wide(x.dtype), copy=False)))).astype(x.dtype, copy=False)


@elementwise(
    lambda x: sigmoid(x),
    temporaries=1,
    tf="math.softplus nn.softplus",
    args="features",
    dtypes=FLOATING,
    traits=[Trait.SATURATES],
)
def softplus(xp: ArrayModule, x: Array) -> Array:
    """log(1 + eˣ), elementwise, without overflow."""
    return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, 0)


@elementwise(
    lambda x: 2 / math.sqrt(math.pi) * exp(-x * x),
    temporaries=3,
    args="x",
    tf="math.erf",
    dtypes=FLOATING,
    traits=[Trait.SATURATES],
)
def erf(xp: ArrayModule, x: Array) -> Array:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt, elementwise."""
    return special.erf(xp, x)


# ------------------------------------------------------------------------------------------------- piecewise constant
@elementwise(0, dtypes=REAL)
def step(xp: ArrayModule, x: Array) -> Array:
    """1 where x > 0, else 0, in x's dtype, elementwise. The gradient is zero, not None: what relu's derivative is."""
    return xp.greater(x, 0).astype(x.dtype)


@elementwise(NON_DIFFERENTIABLE, tf="round math.round", dtypes=REAL)
def round_(xp: ArrayModule, x: Array) -> Array:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    return x if x.dtype in INTEGER else xp.rint(x)


rint = unary(
    "rint",
    NON_DIFFERENTIABLE,
    "The nearest whole number, halves to the even one, elementwise; the gradient is None.",
    dtypes=FLOATING,
    tf="math.rint",
)
floor = unary(
    "floor",
    NON_DIFFERENTIABLE,
    "The largest whole number not above x, elementwise; the gradient is None.",
    dtypes=FLOATING,
    tf="floor math.floor",
)
ceil = unary(
    "ceil",
    NON_DIFFERENTIABLE,
    "The smallest whole number not below x, elementwise; the gradient is None.",
    dtypes=FLOATING,
    tf="math.ceil",
)
