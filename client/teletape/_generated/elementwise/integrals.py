"""TensorFlow's functions of teletape_engine.ops.elementwise.integrals.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_DAWSN = ops.dawsn
_EXPINT = ops.expint
_SPENCE = ops.spence
_FRESNEL_COS = ops.fresnel_cos
_FRESNEL_SIN = ops.fresnel_sin
_IGAMMA = ops.igamma
_IGAMMAC = ops.igammac
_LBETA = ops.lbeta
_BETAINC = ops.betainc
_ZETA = ops.zeta


def dawsn(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Dawson's integral, e^(-x²) times the integral of e^(t²) from 0 to x, elementwise. Errors as erfc."""
    try:
        return call(_DAWSN, (x,))
    except BaseException as error:
        report(error)
        raise


def expint(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The exponential integral Ei, the integral of eᵗ/t from -inf to x, elementwise; -inf at 0. Errors as erfc."""
    try:
        return call(_EXPINT, (x,))
    except BaseException as error:
        report(error)
        raise


def spence(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Spence's integral, that of log(t)/(1 - t) from 1 to x, elementwise; nan below 0. Errors as erfc."""
    try:
        return call(_SPENCE, (x,))
    except BaseException as error:
        report(error)
        raise


def fresnel_cos(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Fresnel's integral of cos(πt²/2) from 0 to x, elementwise. Errors as erfc."""
    try:
        return call(_FRESNEL_COS, (x,))
    except BaseException as error:
        report(error)
        raise


def fresnel_sin(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Fresnel's integral of sin(πt²/2) from 0 to x, elementwise. Errors as erfc."""
    try:
        return call(_FRESNEL_SIN, (x,))
    except BaseException as error:
        report(error)
        raise


def igamma(a: to.TensorInput, x: to.TensorInput, name: str | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x), elementwise, in [0, 1]; nan unless a > 0.

    It has gradients by both inputs; no gradient is registered for that by a.
    """
    try:
        return call(_IGAMMA, (a, x))
    except BaseException as error:
        report(error)
        raise


def igammac(a: to.TensorInput, x: to.TensorInput, name: str | None = None) -> Tensor:
    """The regularised upper incomplete gamma function, 1 - igamma(a, x), elementwise and exact where it is small."""
    try:
        return call(_IGAMMAC, (a, x))
    except BaseException as error:
        report(error)
        raise


def lbeta(x: to.TensorInput, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the numbers along the last axis: the sum of their lgamma - lgamma of it."""
    try:
        return call(_LBETA, (x,))
    except BaseException as error:
        report(error)
        raise


def betainc(a: to.TensorInput, b: to.TensorInput, x: to.TensorInput, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function, elementwise, for x in [0, 1]; its gradient is that by x alone."""
    try:
        return call(_BETAINC, (a, b, x))
    except BaseException as error:
        report(error)
        raise


def zeta(x: to.TensorInput, q: to.TensorInput, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function, the sum of (q + n)⁻ˣ over n = 0, 1, …, elementwise; its gradient is that by q alone."""
    try:
        return call(_ZETA, (x, q))
    except BaseException as error:
        report(error)
        raise
