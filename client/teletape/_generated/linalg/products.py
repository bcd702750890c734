"""TensorFlow's functions of teletape_engine.ops.linalg.products.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_MATMUL = ops.matmul


def matmul(
    a: to.TensorInput,
    b: to.TensorInput,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: Any = False,
    b_is_sparse: Any = False,
    output_type: to.DTypeInput | None = None,
    grad_a: Any = False,
    grad_b: Any = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product over the last two axes: [..., m, k] and [..., k, n] give [..., m, n]; leading axes broadcast.

    `transpose_*` swaps the last two axes of an input first; `adjoint_*` conjugates it too. Both need two axes or more.
    """
    try:
        a = to.value(a)
        b = to.hinted(b, a)
        if output_type is not None:
            a, b = to.factors_of(output_type, a, b, "matmul", "output_type")
        attrs: dict[str, Any] = {}
        if transpose_a is not False:
            attrs["transpose_a"] = to.flag(transpose_a)
        if transpose_b is not False:
            attrs["transpose_b"] = to.flag(transpose_b)
        if adjoint_a is not False:
            attrs["adjoint_a"] = to.flag(adjoint_a)
        if adjoint_b is not False:
            attrs["adjoint_b"] = to.flag(adjoint_b)
        return call(_MATMUL, (a, b), **attrs)
    except BaseException as error:
        report(error)
        raise
