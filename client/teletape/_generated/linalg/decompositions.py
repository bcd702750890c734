"""TensorFlow's functions of teletape_engine.ops.linalg.decompositions.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import NamedTuple

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_LU = ops.lu


class Lu(NamedTuple):
    """The results of lu."""

    lu: Tensor
    p: Tensor


def lu(input: to.TensorInput, output_idx_type: to.DTypeInput = dtypes.int32, name: str | None = None) -> Lu:
    """The LU factors [..., n, n] of matrices with rows exchanged (partial pivoting), and the permutations p [..., n].

    U is in the upper triangle and L below the diagonal; L has ones on its diagonal. Row i of L U is row p[i] of x.

    Raises:
        InvalidArgumentError: A matrix is singular.
    """
    try:
        input = to.tensor(input)
        return Lu(*call(_LU, (input,), index_type=to.dtype(output_idx_type)))
    except BaseException as error:
        report(error)
        raise
