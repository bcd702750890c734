"""TensorFlow's functions of teletape_engine.ops.shapes.nd.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.ops import arguments as to
from teletape.ops.dispatch import call
from teletape.program.tracebacks import report
from teletape.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_GATHER_ND = ops.gather_nd
_SCATTER_ND = ops.scatter_nd
_TENSOR_SCATTER_ND_UPDATE = ops.tensor_scatter_nd_update
_TENSOR_SCATTER_ND_ADD = ops.tensor_scatter_nd_add
_TENSOR_SCATTER_ND_SUB = ops.tensor_scatter_nd_sub
_TENSOR_SCATTER_ND_MAX = ops.tensor_scatter_nd_max
_TENSOR_SCATTER_ND_MIN = ops.tensor_scatter_nd_min


def gather_nd(
    params: to.TensorInput, indices: to.TensorInput, batch_dims: to.IntInput = 0, name: str | None = None
) -> Tensor:
    """The entries of params at `indices` [..., depth] along its first axes: [*indices[:-1], *params[depth:]].

    The first `batch_dims` axes of both are the same, and the indices are into the axes after them. With indices [n, 1]
    the gradient of params is sparse, as in TensorFlow.

    Raises:
        InvalidArgumentError: `indices[0] = [0, 5] does not index into param shape [2,3]`.
    """
    try:
        params = to.tensor(params)
        indices = to.tensor(indices)
        return call(_GATHER_ND, (params, indices), batch_dims=to.whole(batch_dims))
    except Exception as error:
        report(error)
        raise


def scatter_nd(
    indices: to.TensorInput, updates: to.TensorInput, shape: to.IntsInput, name: str | None = None
) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices` [..., depth]: the transpose of gather_nd.

    Of truth values: whether an update at an index is true. Of strings: those at an index, joined.

    Raises:
        InvalidArgumentError: `indices[0] = [5] does not index into shape [3]`.
    """
    try:
        return call(_SCATTER_ND, (indices, updates), shape=to.ints(shape, "shape"))
    except Exception as error:
        report(error)
        raise


def tensor_scatter_nd_update(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` at `indices` [..., depth] instead; if an index occurs twice, the last update."""
    try:
        return call(_TENSOR_SCATTER_ND_UPDATE, (tensor, indices, updates))
    except Exception as error:
        report(error)
        raise


def tensor_scatter_nd_add(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` added at `indices` [..., depth]; an index that occurs twice counts twice."""
    try:
        return call(_TENSOR_SCATTER_ND_ADD, (tensor, indices, updates))
    except Exception as error:
        report(error)
        raise


def tensor_scatter_nd_sub(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with `updates` subtracted at `indices` [..., depth]; an index that occurs twice counts twice."""
    try:
        return call(_TENSOR_SCATTER_ND_SUB, (tensor, indices, updates))
    except Exception as error:
        report(error)
        raise


def tensor_scatter_nd_max(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with the larger of its elements and `updates` at `indices` [..., depth]; equal ones share the gradient.

    Errors as scatter_nd.
    """
    try:
        return call(_TENSOR_SCATTER_ND_MAX, (tensor, indices, updates))
    except Exception as error:
        report(error)
        raise


def tensor_scatter_nd_min(
    tensor: to.TensorInput, indices: to.TensorInput, updates: to.TensorInput, name: str | None = None
) -> Tensor:
    """`tensor` with the smaller of its elements and `updates` at `indices` [..., depth]; otherwise as the maximum."""
    try:
        return call(_TENSOR_SCATTER_ND_MIN, (tensor, indices, updates))
    except Exception as error:
        report(error)
        raise
