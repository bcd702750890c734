"""TensorFlow's functions of teletape_engine.ops.linalg.matrix_functions.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_SQRTM = ops.sqrtm
_LOGM = ops.logm


def sqrtm(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The principal square roots of matrices: products with themselves give the matrices.

    NaN for real matrices with negative eigenvalues, and for matrices of which several eigenvalues are 0.

    Raises:
        UnimplementedError: The matrices are on a GPU.
    """
    try:
        return call(_SQRTM, (input,))
    except BaseException as error:
        report(error)
        raise


def logm(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The principal logarithms of complex matrices; NaN for singular ones.

    Raises:
        UnimplementedError: The matrices are on a GPU.
    """
    try:
        return call(_LOGM, (input,))
    except BaseException as error:
        report(error)
        raise
