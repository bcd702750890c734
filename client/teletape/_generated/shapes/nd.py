"""TensorFlow's functions of teletape_engine.ops.shapes.nd.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_TENSOR_SCATTER_ND_UPDATE = ops.tensor_scatter_nd_update


def tensor_scatter_nd_update(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` at `indices` [..., depth] instead; if an index occurs twice, the last update."""
    try:
        return call(_TENSOR_SCATTER_ND_UPDATE, (tensor, indices, updates))
    except BaseException as error:
        report(error)
        raise
