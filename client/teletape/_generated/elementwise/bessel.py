"""TensorFlow's functions of teletape_engine.ops.elementwise.bessel.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_BESSEL_I0 = ops.bessel_i0
_BESSEL_I0E = ops.bessel_i0e
_BESSEL_I1 = ops.bessel_i1
_BESSEL_I1E = ops.bessel_i1e
_BESSEL_K0 = ops.bessel_k0
_BESSEL_K0E = ops.bessel_k0e
_BESSEL_K1 = ops.bessel_k1
_BESSEL_K1E = ops.bessel_k1e
_BESSEL_J0 = ops.bessel_j0
_BESSEL_J1 = ops.bessel_j1
_BESSEL_Y0 = ops.bessel_y0
_BESSEL_Y1 = ops.bessel_y1


def bessel_i0(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_I0, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_i0e(x: to.TensorInput, name: str | None = None) -> Tensor:
    """bessel_i0 divided by e^|x|, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_I0E, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_i1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_I1, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_i1e(x: to.TensorInput, name: str | None = None) -> Tensor:
    """bessel_i1 divided by e^|x|, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_I1E, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_k0(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 0, elementwise; nan below 0. Errors as erfc."""
    try:
        return call(_BESSEL_K0, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_k0e(x: to.TensorInput, name: str | None = None) -> Tensor:
    """bessel_k0 divided by e⁻ˣ, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_K0E, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_k1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The modified Bessel function of the second kind of order 1, elementwise; nan below 0. Errors as erfc."""
    try:
        return call(_BESSEL_K1, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_k1e(x: to.TensorInput, name: str | None = None) -> Tensor:
    """bessel_k1 divided by e⁻ˣ, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_K1E, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_j0(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind of order 0, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_J0, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_j1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The Bessel function of the first kind of order 1, elementwise. Errors as erfc."""
    try:
        return call(_BESSEL_J1, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_y0(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind of order 0, elementwise; -inf at 0, nan below. Errors as erfc."""
    try:
        return call(_BESSEL_Y0, (x,))
    except BaseException as error:
        report(error)
        raise


def bessel_y1(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The Bessel function of the second kind of order 1, elementwise; -inf at 0, nan below. Errors as erfc."""
    try:
        return call(_BESSEL_Y1, (x,))
    except BaseException as error:
        report(error)
        raise
