"""TensorFlow's functions of teletape_engine.ops.linalg.eigen.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_EIGH = ops.eigh
_EIGVALSH = ops.eigvalsh
_EIG = ops.eig


def eigh(tensor: to.TensorInput, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues [..., n] and eigenvectors [..., n, n], the columns, of Hermitian matrices [..., n, n].

    Their lower triangle is read, and has the gradient; that of the vectors takes each vector's phase for fixed.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    try:
        tensor = to.tensor(tensor)
        values, vectors = call(_EIGH, (tensor,))
        return values, vectors
    except BaseException as error:
        report(error)
        raise


def eigvalsh(tensor: to.TensorInput, name: str | None = None) -> Tensor:
    """The ascending eigenvalues [..., n] of Hermitian matrices [..., n, n], of which the lower triangle is read.

    The gradient computes the eigenvectors too, and is a lower triangle.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    try:
        return call(_EIGVALSH, (tensor,))
    except BaseException as error:
        report(error)
        raise


def eig(tensor: to.TensorInput, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues [..., n] and eigenvectors [..., n, n] of matrices [..., n, n] without symmetry, complex.

    The eigenvectors are columns of length 1. The order is LAPACK's for real matrices, and by magnitude for complex
    ones. The gradient of the vectors takes each vector's phase for fixed.

    Raises:
        InvalidArgumentError: The iteration does not converge, as with NaN in a matrix.
    """
    try:
        tensor = to.tensor(tensor)
        values, vectors = call(_EIG, (tensor,))
        return values, vectors
    except BaseException as error:
        report(error)
        raise
