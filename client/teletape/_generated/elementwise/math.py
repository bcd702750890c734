"""TensorFlow's functions of teletape_engine.ops.elementwise.math.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
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
    try:
        return call(_NEG, (x,))
    except BaseException as error:
        report(error)
        raise


def square(x: to.TensorInput, name: str | None = None) -> Tensor:
    """x², elementwise."""
    try:
        return call(_SQUARE, (x,))
    except BaseException as error:
        report(error)
        raise


def sqrt(x: to.TensorInput, name: str | None = None) -> Tensor:
    """√x, elementwise; nan below zero. The gradient at 0 is inf."""
    try:
        return call(_SQRT, (x,))
    except BaseException as error:
        report(error)
        raise


def rsqrt(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1/√x, elementwise; inf at zero."""
    try:
        return call(_RSQRT, (x,))
    except BaseException as error:
        report(error)
        raise


def reciprocal(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1/x, elementwise."""
    try:
        return call(_RECIPROCAL, (x,))
    except BaseException as error:
        report(error)
        raise


def exp(x: to.TensorInput, name: str | None = None) -> Tensor:
    """eˣ, elementwise."""
    try:
        return call(_EXP, (x,))
    except BaseException as error:
        report(error)
        raise


def expm1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """eˣ - 1, elementwise, exact near zero."""
    try:
        return call(_EXPM1, (x,))
    except BaseException as error:
        report(error)
        raise


def log(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Natural logarithm, elementwise; -inf at zero, nan below."""
    try:
        return call(_LOG, (x,))
    except BaseException as error:
        report(error)
        raise


def log1p(x: to.TensorInput, name: str | None = None) -> Tensor:
    """log(1 + x), elementwise, exact near zero."""
    try:
        return call(_LOG1P, (x,))
    except BaseException as error:
        report(error)
        raise


def sin(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Sine of x in radians, elementwise."""
    try:
        return call(_SIN, (x,))
    except BaseException as error:
        report(error)
        raise


def cos(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Cosine of x in radians, elementwise."""
    try:
        return call(_COS, (x,))
    except BaseException as error:
        report(error)
        raise


def tan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Tangent of x in radians, elementwise."""
    try:
        return call(_TAN, (x,))
    except BaseException as error:
        report(error)
        raise


def sinh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic sine, elementwise."""
    try:
        return call(_SINH, (x,))
    except BaseException as error:
        report(error)
        raise


def cosh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic cosine, elementwise."""
    try:
        return call(_COSH, (x,))
    except BaseException as error:
        report(error)
        raise


def tanh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Hyperbolic tangent, elementwise."""
    try:
        return call(_TANH, (x,))
    except BaseException as error:
        report(error)
        raise


def asin(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse sine in radians, elementwise; nan outside [-1, 1]."""
    try:
        return call(_ASIN, (x,))
    except BaseException as error:
        report(error)
        raise


def acos(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse cosine in radians, elementwise; nan outside [-1, 1]."""
    try:
        return call(_ACOS, (x,))
    except BaseException as error:
        report(error)
        raise


def atan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse tangent in radians, elementwise."""
    try:
        return call(_ATAN, (x,))
    except BaseException as error:
        report(error)
        raise


def sigmoid(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1 / (1 + e⁻ˣ), elementwise."""
    try:
        return call(_SIGMOID, (x,))
    except BaseException as error:
        report(error)
        raise


def softplus(features: to.TensorInput, name: str | None = None) -> Tensor:
    """log(1 + eˣ), elementwise, without overflow."""
    try:
        return call(_SOFTPLUS, (features,))
    except BaseException as error:
        report(error)
        raise


def erf(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt, elementwise."""
    try:
        return call(_ERF, (x,))
    except BaseException as error:
        report(error)
        raise


def round(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    try:
        return call(_ROUND, (x,))
    except BaseException as error:
        report(error)
        raise


def rint(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, elementwise; the gradient is None."""
    try:
        return call(_RINT, (x,))
    except BaseException as error:
        report(error)
        raise


def floor(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The largest whole number not above x, elementwise; the gradient is None."""
    try:
        return call(_FLOOR, (x,))
    except BaseException as error:
        report(error)
        raise


def ceil(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The smallest whole number not below x, elementwise; the gradient is None."""
    try:
        return call(_CEIL, (x,))
    except BaseException as error:
        report(error)
        raise
