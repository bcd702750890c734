"""TensorFlow's functions of teletape_engine.ops.linalg.matrix.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_CHOLESKY = ops.cholesky
_TRIANGULAR_SOLVE = ops.triangular_solve
_CHOLESKY_SOLVE = ops.cholesky_solve


def cholesky(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The lower triangular L with L Lᴴ = x for Hermitian, positive definite matrices [..., n, n]; else NaN.

    Only the lower triangle of x is read; the gradient is Hermitian.
    """
    try:
        return call(_CHOLESKY, (input,))
    except BaseException as error:
        report(error)
        raise


def triangular_solve(
    matrix: to.TensorInput, rhs: to.TensorInput, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`; only one triangle of the matrix is read.

    matrix [..., n, n], rhs [..., n, k]; leading axes broadcast. A zero on the diagonal gives infinities and NaN.
    """
    try:
        attrs: dict[str, Any] = {}
        if lower is not True:
            attrs["lower"] = to.flag(lower)
        if adjoint is not False:
            attrs["adjoint"] = to.flag(adjoint)
        return call(_TRIANGULAR_SOLVE, (matrix, rhs), **attrs)
    except BaseException as error:
        report(error)
        raise


def cholesky_solve(chol: to.TensorInput, rhs: to.TensorInput, name: str | None = None) -> Tensor:
    """The x with A x = rhs, from A's Cholesky factor: matrices [..., n, n], right sides [..., n, k]."""
    try:
        return call(_CHOLESKY_SOLVE, (chol, rhs))
    except BaseException as error:
        report(error)
        raise
