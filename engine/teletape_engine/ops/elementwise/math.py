"""Functions of one array, elementwise: the formula is the derivative, by x or, where that is cheaper, the result y."""

from __future__ import annotations

import math
from typing import Any

from teletape_engine.arrays import special
from teletape_engine.catalogue.elementwise import elementwise, linear_map
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.trait import Trait
from teletape_engine.spec import DIFFERENTIABLE, FLOATING, INTEGER, SIGNED, wide

SIGNED_NUMBERS = DIFFERENTIABLE | SIGNED


@elementwise(-1, tf="negative math.negative", dtypes=SIGNED_NUMBERS)
def neg(xp: Any, x: Any) -> Any:
    """-x, elementwise."""
    return xp.negative(x)


@elementwise(lambda x: 2 * x, tf="square math.square")
def square(xp: Any, x: Any) -> Any:
    """x², elementwise."""
    return xp.square(x)


@elementwise(
    linear_map(lambda ct, y: ops.sqrt_grad(y, ct)),
    jvp=[lambda y: 0.5 / y],
    tf="sqrt math.sqrt",
    dtypes=DIFFERENTIABLE,
    domain=(0.2, 2.0),
)
def sqrt(xp: Any, x: Any) -> Any:
    """√x, elementwise; nan below zero. The gradient at 0 is inf."""
    return xp.sqrt(x)


@elementwise(
    linear_map(lambda ct, y: ops.rsqrt_grad(y, ct)),
    temporaries=1,
    tf="math.rsqrt",
    dtypes=DIFFERENTIABLE,
    domain=(0.2, 2.0),
)
def rsqrt(xp: Any, x: Any) -> Any:
    """1/√x, elementwise; inf at zero."""
    return xp.reciprocal(xp.sqrt(x))


@elementwise(
    linear_map(lambda ct, y: ops.reciprocal_grad(y, ct)),
    tf="math.reciprocal",
    dtypes=DIFFERENTIABLE,
    domain=(0.2, 2.0),
)
def reciprocal(xp: Any, x: Any) -> Any:
    """1/x, elementwise."""
    return xp.reciprocal(x)


# TensorFlow's kernels send back 0 where the gradient is 0, even at √0: under tf.where the other branch stays finite.
@elementwise(lambda y, root: -y / root, lambda root: 0.5 / root, dtypes=DIFFERENTIABLE, domain=(0.2, 2.0))
def sqrt_grad(xp: Any, root: Any, grad: Any) -> Any:
    """grad / (2 root), elementwise: the vjp of √x = root. 0 where grad is 0."""
    return xp.where(grad == 0, grad, 0.5 * grad / root)


@elementwise(
    lambda root, grad: -1.5 * grad * root * root,
    linear_map(lambda ct, root: ops.rsqrt_grad(root, ct)),
    temporaries=2,
    dtypes=DIFFERENTIABLE,
    domain=(0.2, 2.0),
)
def rsqrt_grad(xp: Any, root: Any, grad: Any) -> Any:
    """-grad root³ / 2, elementwise: the vjp of 1/√x = root. 0 where grad is 0."""
    return xp.where(grad == 0, grad, -0.5 * grad * root * root * root)


@elementwise(
    lambda inverse, grad: -2 * grad * inverse,
    linear_map(lambda ct, inverse: ops.reciprocal_grad(inverse, ct)),
    temporaries=1,
    dtypes=DIFFERENTIABLE,
    domain=(0.2, 2.0),
)
def reciprocal_grad(xp: Any, inverse: Any, grad: Any) -> Any:
    """-grad inverse², elementwise: the vjp of 1/x = inverse. 0 where grad is 0."""
    return xp.where(grad == 0, grad, -grad * inverse * inverse)


@elementwise(lambda y: y, tf="exp math.exp", dtypes=DIFFERENTIABLE)
def exp(xp: Any, x: Any) -> Any:
    """eˣ, elementwise."""
    return xp.exp(x)


@elementwise(lambda x: exp(x), tf="math.expm1", dtypes=DIFFERENTIABLE)
def expm1(xp: Any, x: Any) -> Any:
    """eˣ - 1, elementwise, exact near zero."""
    return xp.expm1(x)


@elementwise(lambda x: reciprocal(x), tf="math.log", dtypes=DIFFERENTIABLE, domain=(0.2, 2.0))
def log(xp: Any, x: Any) -> Any:
    """Natural logarithm, elementwise; -inf at zero, nan below."""
    return xp.log(x)


@elementwise(lambda x: reciprocal(1 + x), tf="math.log1p", dtypes=DIFFERENTIABLE, domain=(-0.7, 1.5))
def log1p(xp: Any, x: Any) -> Any:
    """log(1 + x), elementwise, exact near zero."""
    return xp.log1p(x)


@elementwise(lambda x: ops.cos(x), tf="sin math.sin", dtypes=DIFFERENTIABLE)
def sin(xp: Any, x: Any) -> Any:
    """Sine of x in radians, elementwise."""
    return xp.sin(x)


@elementwise(lambda x: -sin(x), tf="cos math.cos", dtypes=DIFFERENTIABLE)
def cos(xp: Any, x: Any) -> Any:
    """Cosine of x in radians, elementwise."""
    return xp.cos(x)


@elementwise(lambda y: 1 + y * y, tf="tan math.tan", dtypes=DIFFERENTIABLE, domain=(-1.2, 1.2))
def tan(xp: Any, x: Any) -> Any:
    """Tangent of x in radians, elementwise."""
    return xp.tan(x)


@elementwise(lambda x: ops.cosh(x), tf="sinh math.sinh", dtypes=DIFFERENTIABLE)
def sinh(xp: Any, x: Any) -> Any:
    """Hyperbolic sine, elementwise."""
    return xp.sinh(x)


@elementwise(lambda x: sinh(x), tf="cosh math.cosh", dtypes=DIFFERENTIABLE)
def cosh(xp: Any, x: Any) -> Any:
    """Hyperbolic cosine, elementwise."""
    return xp.cosh(x)


@elementwise(lambda y: 1 - y * y, tf="tanh math.tanh nn.tanh", dtypes=DIFFERENTIABLE, traits=[Trait.SATURATES])
def tanh(xp: Any, x: Any) -> Any:
    """Hyperbolic tangent, elementwise."""
    return xp.tanh(x)


@elementwise(lambda x: rsqrt(1 - x * x), tf="asin math.asin", dtypes=DIFFERENTIABLE, domain=(-0.8, 0.8))
def asin(xp: Any, x: Any) -> Any:
    """Inverse sine in radians, elementwise; nan outside [-1, 1]."""
    return xp.arcsin(x)


@elementwise(lambda x: -rsqrt(1 - x * x), tf="acos math.acos", dtypes=DIFFERENTIABLE, domain=(-0.8, 0.8))
def acos(xp: Any, x: Any) -> Any:
    """Inverse cosine in radians, elementwise; nan outside [-1, 1]."""
    return xp.arccos(x)


@elementwise(lambda x: reciprocal(1 + x * x), tf="atan math.atan", dtypes=DIFFERENTIABLE, domain=(-0.8, 0.8))
def atan(xp: Any, x: Any) -> Any:
    """Inverse tangent in radians, elementwise."""
    return xp.arctan(x)


@elementwise(
    lambda y: y * (1 - y),
    temporaries=1,
    tf="sigmoid math.sigmoid nn.sigmoid",
    dtypes=DIFFERENTIABLE,
    traits=[Trait.SATURATES],
)
def sigmoid(xp: Any, x: Any) -> Any:
    """1 / (1 + e⁻ˣ), elementwise."""
    return 1 / (1 + xp.exp(-x))


@elementwise(
    lambda x: sigmoid(x), temporaries=1, tf="math.softplus nn.softplus", dtypes=FLOATING, traits=[Trait.SATURATES]
)
def softplus(xp: Any, x: Any) -> Any:
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
def erf(xp: Any, x: Any) -> Any:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt, elementwise.

    Raises:
        UnimplementedError: SciPy is missing; the message names the extra that brings it.
    """
    return special.erf(xp, x.astype(wide(x.dtype), copy=False)).astype(x.dtype, copy=False)


# ---------------------------------------------------------------------------------------------- piecewise constant
@elementwise(0, dtypes=FLOATING | INTEGER)
def step(xp: Any, x: Any) -> Any:
    """1 where x > 0, else 0, in x's dtype, elementwise. The gradient is zero, not None: what relu's derivative is."""
    return xp.greater(x, 0).astype(x.dtype)


@elementwise(NON_DIFFERENTIABLE, tf="round math.round", dtypes=FLOATING | SIGNED)
def round_(xp: Any, x: Any) -> Any:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    return x if x.dtype in INTEGER else xp.rint(x)


@elementwise(NON_DIFFERENTIABLE, tf="math.rint", dtypes=FLOATING)
def rint(xp: Any, x: Any) -> Any:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    return xp.rint(x)


@elementwise(NON_DIFFERENTIABLE, tf="floor math.floor", dtypes=FLOATING)
def floor(xp: Any, x: Any) -> Any:
    """The largest whole number not above x, elementwise; the gradient is None."""
    return xp.floor(x)


@elementwise(NON_DIFFERENTIABLE, tf="math.ceil", dtypes=FLOATING)
def ceil(xp: Any, x: Any) -> Any:
    """The smallest whole number not below x, elementwise; the gradient is None."""
    return xp.ceil(x)
