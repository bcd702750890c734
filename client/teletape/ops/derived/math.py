"""TensorFlow's functions of teletape_engine.ops.elementwise.math.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_NEG = ops.neg
_SQUARE = ops.square
_SQRT = ops.sqrt
_RSQRT = ops.rsqrt
_RECIPROCAL = ops.reciprocal
_EXP = ops.exp
_EXPM1 = ops.expm1
_LOG = ops.log
_LOG1P = ops.log1p
_SIN = ops.sin
_COS = ops.cos
_TAN = ops.tan
_SINH = ops.sinh
_COSH = ops.cosh
_TANH = ops.tanh
_ASIN = ops.asin
_ACOS = ops.acos
_ATAN = ops.atan
_SIGMOID = ops.sigmoid
_SOFTPLUS = ops.softplus
_ERF = ops.erf
_ROUND = ops.round
_RINT = ops.rint
_FLOOR = ops.floor
_CEIL = ops.ceil


def negative(x: to.TensorInput, name: str | None = None) -> Tensor:
    """-x, elementwise."""
    return call(_NEG, (x,))


def square(x: to.TensorInput, name: str | None = None) -> Tensor:
    """x², elementwise."""
    return call(_SQUARE, (x,))


def sqrt(x: to.TensorInput, name: str | None = None) -> Tensor:
    """√x, elementwise; nan below zero. The gradient at 0 is inf."""
    return call(_SQRT, (x,))


def rsqrt(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1/√x, elementwise; inf at zero."""
    return call(_RSQRT, (x,))


def reciprocal(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1/x, elementwise."""
    return call(_RECIPROCAL, (x,))


def exp(x: to.TensorInput, name: str | None = None) -> Tensor:
    """eˣ, elementwise."""
    return call(_EXP, (x,))


def expm1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """eˣ - 1, elementwise, exact near zero."""
    return call(_EXPM1, (x,))


def log(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Natural logarithm, elementwise; -inf at zero, nan below."""
    return call(_LOG, (x,))


def log1p(x: to.TensorInput, name: str | None = None) -> Tensor:
    """log(1 + x), elementwise, exact near zero."""
    return call(_LOG1P, (x,))


def sin(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Sine of x in radians, elementwise."""
    return call(_SIN, (x,))


def cos(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Cosine of x in radians, elementwise."""
    return call(_COS, (x,))


def tan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Tangent of x in radians, elementwise."""
    return call(_TAN, (x,))


def sinh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic sine, elementwise."""
    return call(_SINH, (x,))


def cosh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic cosine, elementwise."""
    return call(_COSH, (x,))


def tanh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic tangent, elementwise."""
    return call(_TANH, (x,))


def asin(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse sine in radians, elementwise; nan outside [-1, 1]."""
    return call(_ASIN, (x,))


def acos(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse cosine in radians, elementwise; nan outside [-1, 1]."""
    return call(_ACOS, (x,))


def atan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse tangent in radians, elementwise."""
    return call(_ATAN, (x,))


def sigmoid(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1 / (1 + e⁻ˣ), elementwise."""
    return call(_SIGMOID, (x,))


def softplus(x: to.TensorInput, name: str | None = None) -> Tensor:
    """log(1 + eˣ), elementwise, without overflow."""
    return call(_SOFTPLUS, (x,))


def erf(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt, elementwise.

    Raises:
        UnimplementedError: float64, and SciPy is missing; the message names the extra that brings it.
    """
    return call(_ERF, (x,))


def round(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    return call(_ROUND, (x,))


def rint(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    return call(_RINT, (x,))


def floor(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The largest whole number not above x, elementwise; the gradient is None."""
    return call(_FLOOR, (x,))


def ceil(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The smallest whole number not below x, elementwise; the gradient is None."""
    return call(_CEIL, (x,))
