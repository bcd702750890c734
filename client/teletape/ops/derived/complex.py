"""TensorFlow's functions of teletape_engine.ops.elementwise.complex.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops import checks
from teletape.ops.dispatch import call
from teletape.tensors.tensor import Tensor
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
    input = to.tensor(input)
    result = checks.itself_if_real(input)
    if result is not None:
        return result
    return call(_REAL, (input,))


def imag(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The imaginary part of a complex array, as its real dtype."""
    input = to.tensor(input)
    result = checks.zeros_if_real(input)
    if result is not None:
        return result
    return call(_IMAG, (input,))


def conj(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The complex conjugate, elementwise."""
    x = to.tensor(x)
    result = checks.itself_if_real(x)
    if result is not None:
        return result
    return call(_CONJ, (x,))


def complex(real: to.TensorInput, imag: to.TensorInput, name: str | None = None) -> Tensor:
    """a + ib from two real arrays (float32 or float64), elementwise; shapes broadcast."""
    real = to.value(real)
    imag = to.value(imag)
    checks.complex_parts(real, imag)
    return call(_COMPLEX, (real, imag))


def abs(x: to.TensorInput, name: str | None = None) -> Tensor:
    """|x|, elementwise; of a complex array as its real dtype. The gradient at 0 is 0."""
    return call(_ABS, (x,))


def sign(x: to.TensorInput, name: str | None = None) -> Tensor:
    """-1, 0 or 1 as x is below, at or above zero, elementwise; x/|x| of a complex x.

    The gradient of a real x is zero, not None. In TensorFlow that of a complex x is zero too, unlike the
    derivative.
    """
    return call(_SIGN, (x,))


def angle(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The angle of a complex x in (-π, π], elementwise, in radians, as its real dtype."""
    input = to.tensor(input)
    result = checks.angle_if_real(input)
    if result is not None:
        return result
    return call(_ANGLE, (input,))
