"""TensorFlow's functions of teletape_engine.ops.linalg.einsum.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_EINSUM = ops.einsum


def einsum(equation: str, *inputs: Any, optimize: Any = None, name: str | None = None) -> Tensor:
    """Sums products over labelled axes: "ij,jk->ik" is the matrix product, "ii->i" the diagonal, "ij->" the sum.

    Labels are letters; "..." means any leading axes, which broadcast. Several inputs are multiplied from left to right.
    """
    try:
        inputs = to.each(inputs)
        checks.equation(equation, inputs)
        return call(_EINSUM, inputs, equation=equation)
    except BaseException as error:
        report(error)
        raise
