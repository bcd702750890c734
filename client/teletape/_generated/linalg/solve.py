"""TensorFlow's functions of teletape_engine.ops.linalg.solve.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_INV = ops.inv
_SOLVE = ops.solve
_DET = ops.det


def inv(input: to.TensorInput, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of matrices, or of their adjoints; of float16 computed in float32.

    Raises:
        InvalidArgumentError: A matrix has no inverse.
    """
    try:
        attrs: dict[str, Any] = {}
        if adjoint is not False:
            attrs["adjoint"] = to.flag(adjoint)
        return call(_INV, (input,), **attrs)
    except BaseException as error:
        report(error)
        raise


def solve(matrix: to.TensorInput, rhs: to.TensorInput, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`; matrix [..., n, n], rhs [..., n, k].

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    try:
        attrs: dict[str, Any] = {}
        if adjoint is not False:
            attrs["adjoint"] = to.flag(adjoint)
        return call(_SOLVE, (matrix, rhs), **attrs)
    except BaseException as error:
        report(error)
        raise


def det(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The determinants [...]. The gradient goes through the inverse: of a singular matrix it is an error."""
    try:
        return call(_DET, (input,))
    except BaseException as error:
        report(error)
        raise
