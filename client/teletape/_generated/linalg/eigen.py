"""TensorFlow's functions of teletape_engine.ops.linalg.eigen.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_EIGVALSH = ops.eigvalsh


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
