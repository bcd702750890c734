"""TensorFlow's functions of teletape_engine.ops.elementwise.special.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops

_ASINH = ops.asinh
_ACOSH = ops.acosh
_ATANH = ops.atanh
_ERFC = ops.erfc
_ERFINV = ops.erfinv
_NDTRI = ops.ndtri
_ERFCINV = ops.erfcinv
_LGAMMA = ops.lgamma
_DIGAMMA = ops.digamma
_POLYGAMMA = ops.polygamma
_XLOGY = ops.xlogy
_XLOG1PY = ops.xlog1py
_XDIVY = ops.xdivy
_MUL_NO_NAN = ops.mul_no_nan
_RECIPROCAL_NO_NAN = ops.reciprocal_no_nan
_LOG_SIGMOID = ops.log_sigmoid


def asinh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse hyperbolic sine, elementwise."""
    try:
        return call(_ASINH, (x,))
    except BaseException as error:
        report(error)
        raise


def acosh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse hyperbolic cosine, elementwise; nan below 1."""
    try:
        return call(_ACOSH, (x,))
    except BaseException as error:
        report(error)
        raise


def atanh(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Inverse hyperbolic tangent, elementwise; nan outside [-1, 1]."""
    try:
        return call(_ATANH, (x,))
    except BaseException as error:
        report(error)
        raise


def erfc(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1 - erf(x), elementwise, exact for large x."""
    try:
        return call(_ERFC, (x,))
    except BaseException as error:
        report(error)
        raise


def erfinv(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The y with erf(y) = x, elementwise; nan outside [-1, 1]. Errors as erfc."""
    try:
        return call(_ERFINV, (x,))
    except BaseException as error:
        report(error)
        raise


def ndtri(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The number below which a share x of the standard normal distribution lies, elementwise. Errors as erfc."""
    try:
        return call(_NDTRI, (x,))
    except BaseException as error:
        report(error)
        raise


def erfcinv(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The y with erfc(y) = x, elementwise; nan outside [0, 2]. Errors as erfc."""
    try:
        return call(_ERFCINV, (x,))
    except BaseException as error:
        report(error)
        raise


def lgamma(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function, elementwise; inf at ±inf. Errors as erfc."""
    try:
        return call(_LGAMMA, (x,))
    except BaseException as error:
        report(error)
        raise


def digamma(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The derivative of lgamma, elementwise; nan at its poles, 0 and the negative whole numbers. Errors as erfc."""
    try:
        return call(_DIGAMMA, (x,))
    except BaseException as error:
        report(error)
        raise


def polygamma(a: float | TensorLike, x: to.TensorInput, name: str | None = None) -> Tensor:
    """The derivative of that order of digamma, elementwise; the order is a whole number. Errors as erfc."""
    try:
        result = checks.polygamma_of_tensor_order(a, x)
        if result is not None:
            return result
        return call(_POLYGAMMA, (x,), order=to.real_number(a))
    except BaseException as error:
        report(error)
        raise


def xlogy(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a log(b), elementwise; 0 where a is 0, and so are the gradients there."""
    try:
        return call(_XLOGY, (x, y))
    except BaseException as error:
        report(error)
        raise


def xlog1py(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a log(1 + b), elementwise; 0 where a is 0, and so are the gradients there."""
    try:
        return call(_XLOG1PY, (x, y))
    except BaseException as error:
        report(error)
        raise


def xdivy(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a / b, elementwise; 0 where a is 0, and so are the gradients there."""
    try:
        return call(_XDIVY, (x, y))
    except BaseException as error:
        report(error)
        raise


def multiply_no_nan(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a * b, elementwise, and 0 where b is 0, even if a is nan or infinite."""
    try:
        x = to.like(x, y)
        y = to.hinted(y, x)
        return call(_MUL_NO_NAN, (x, y))
    except BaseException as error:
        report(error)
        raise


def reciprocal_no_nan(x: to.TensorInput, name: str | None = None) -> Tensor:
    """1 / x, elementwise, and 0 where x is 0."""
    try:
        return call(_RECIPROCAL_NO_NAN, (x,))
    except BaseException as error:
        report(error)
        raise


def log_sigmoid(x: to.TensorInput, name: str | None = None) -> Tensor:
    """log(1 / (1 + e⁻ˣ)), elementwise, without overflow."""
    try:
        return call(_LOG_SIGMOID, (x,))
    except BaseException as error:
        report(error)
        raise
