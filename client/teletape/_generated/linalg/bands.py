"""TensorFlow's functions of teletape_engine.ops.linalg.bands.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_BANDED_TRIANGULAR_SOLVE = ops.banded_triangular_solve


def banded_triangular_solve(
    bands: to.TensorInput, rhs: to.TensorInput, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x with matrix x = rhs, or matrixᴴ x = rhs if `adjoint`, for triangular matrices of b diagonals.

    bands [..., b, n]: the main diagonal first and each lower one below it, or if not `lower` the highest first and the
    main one last. Element i of a band is that of row i of the matrix; those outside of it are ignored. rhs [..., n, k];
    leading axes broadcast. The matrices are not written out, and the host computes the result of a GPU too. NaN in a
    band goes into the result.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    try:
        attrs: dict[str, Any] = {}
        if lower is not True:
            attrs["lower"] = to.flag(lower)
        if adjoint is not False:
            attrs["adjoint"] = to.flag(adjoint)
        return call(_BANDED_TRIANGULAR_SOLVE, (bands, rhs), **attrs)
    except BaseException as error:
        report(error)
        raise
