"""TensorFlow's functions of teletape_engine.ops.elementwise.complex.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_REAL = ops.real
_IMAG = ops.imag
_CONJ = ops.conj
_COMPLEX = ops.complex
_ABS = ops.abs
_SIGN = ops.sign
_ANGLE = ops.angle


def real(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The real part of a complex array, as its real dtype."""
    try:
        input = to.tensor(input)
        result = checks.itself_if_real(input)
        if result is not None:
            return result
        return call(_REAL, (input,))
    except BaseException as error:
        report(error)
        raise


def imag(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The imaginary part of a complex array, as its real dtype."""
    try:
        input = to.tensor(input)
        result = checks.zeros_if_real(input)
        if result is not None:
            return result
        return call(_IMAG, (input,))
    except BaseException as error:
        report(error)
        raise


def conj(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The complex conjugate, elementwise."""
    try:
        x = to.tensor(x)
        result = checks.itself_if_real(x)
        if result is not None:
            return result
        return call(_CONJ, (x,))
    except BaseException as error:
        report(error)
        raise


def complex(real: to.TensorInput, imag: to.TensorInput, name: str | None = None) -> Tensor:
    """a + ib from two real arrays (float32 or float64), elementwise; shapes broadcast."""
    try:
        real = to.value(real)
        imag = to.value(imag)
        checks.complex_parts(real, imag)
        return call(_COMPLEX, (real, imag))
    except BaseException as error:
        report(error)
        raise


def abs(x: to.TensorInput, name: str | None = None) -> Tensor:
    """|x|, elementwise; of a complex array as its real dtype. The gradient at 0 is 0."""
    try:
        return call(_ABS, (x,))
    except BaseException as error:
        report(error)
        raise


def sign(x: to.TensorInput, name: str | None = None) -> Tensor:
    """-1, 0 or 1 as x is below, at or above zero, elementwise; x/|x| of a complex x.

    The gradient of a real x is zero, not None. In TensorFlow that of a complex x is zero too, unlike the
    derivative.
    """
    try:
        return call(_SIGN, (x,))
    except BaseException as error:
        report(error)
        raise


def angle(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The angle of a complex x in (-π, π], elementwise, in radians, as its real dtype."""
    try:
        input = to.tensor(input)
        result = checks.angle_if_real(input)
        if result is not None:
            return result
        return call(_ANGLE, (input,))
    except BaseException as error:
        report(error)
        raise
