"""`tf.gather_nd`, `tf.scatter_nd` and updates of a tensor at indices. By hand: bad indices may be ignored.

`bad_indices_policy` "IGNORE" takes more ops: a bad index becomes index 0; zeros are read for it, and nothing is
written for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.create import zeros_like
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import INTEGER, finfo

__all__ = [
    "gather_nd",
    "scatter_nd",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
]


def entries_at(tensor: Tensor, places: Tensor) -> Tensor:
    """The entries of the first axis at `places`, with a dense gradient: that of `gather` would be IndexedSlices."""
    entries = call(ops.gather, (call(ops.expand_dims, (tensor,), axis=0), places), axis=1)
    return call(ops.squeeze, (entries,), axis=(0,))


def gather_nd(
    params: to.TensorInput,
    indices: to.TensorInput,
    batch_dims: to.IntInput = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> Tensor:
    """The entries of `params` at `indices` [..., depth] along its first axes: [*indices[:-1], *params[depth:]].

    Args:
        params: The tensor; with indices [n, 1] its gradient is IndexedSlices.
        indices: Whole numbers.
        batch_dims: How many first axes of both are the same; the indices are into the axes after them.
        name: Accepted, without effect.
        bad_indices_policy: "" or "ERROR": an index outside is an error; "IGNORE": zeros are read there.

    Raises:
        InvalidArgumentError: `indices[0] = [0, 5] does not index into param shape [2,3]`.

    Example:
        tf.gather_nd([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [1, 0]])
    """
    tensor, places, first = convert_to_tensor(params), convert_to_tensor(indices), to.whole(batch_dims)
    if not _ignored(bad_indices_policy):
        return call(ops.gather_nd, (tensor, places), batch_dims=first)
    valid, places = _inside(places, tensor.shape.as_list()[first:])
    entries = call(ops.gather_nd, (tensor, places), batch_dims=first)
    return call(ops.where, (_as_entries(valid, entries), entries, zeros_like(entries)))


def scatter_nd(
    indices: to.TensorInput,
    updates: to.TensorInput,
    shape: to.IntsInput,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices` [..., depth]: the transpose of gather_nd.

    For bools: whether any update at an index is true. For strings: the updates at an index, joined.

    Args:
        indices: Whole numbers.
        updates: [*indices[:-1], *shape[depth:]].
        shape: Of the result.
        bad_indices_policy: "" or "ERROR": an index outside is an error; "IGNORE": nothing is added for it.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: `indices[0] = [5] does not index into shape [3]`.

    Example:
        tf.scatter_nd([[0], [2]], tf.constant([1.0, 3.0]), shape=[4])
    """
    lengths = to.ints(shape, "shape")
    if not _ignored(bad_indices_policy):
        return call(ops.scatter_nd, (indices, updates), shape=lengths)
    valid, places = _inside(convert_to_tensor(indices), lengths)
    entries = convert_to_tensor(updates)
    changes = call(ops.where, (_as_entries(valid, entries), entries, zeros_like(entries)))
    return call(ops.scatter_nd, (places, changes), shape=lengths)


def tensor_scatter_nd_add(
    tensor: to.TensorInput,
    indices: to.TensorInput,
    updates: to.TensorInput,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """`tensor` with `updates` added at `indices` [..., depth]; an index that occurs twice counts twice.

    Arguments and errors as scatter_nd.

    Example:
        tf.tensor_scatter_nd_add([1.0, 2.0, 3.0], [[0], [2]], [10.0, 10.0])
    """
    return _changed(ops.tensor_scatter_nd_add, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_sub(
    tensor: to.TensorInput,
    indices: to.TensorInput,
    updates: to.TensorInput,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """`tensor` with `updates` subtracted at `indices` [..., depth]; an index that occurs twice counts twice.

    Arguments and errors as scatter_nd.

    Example:
        tf.tensor_scatter_nd_sub([1.0, 2.0, 3.0], [[0], [2]], [10.0, 10.0])
    """
    return _changed(ops.tensor_scatter_nd_sub, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_max(
    tensor: to.TensorInput,
    indices: to.TensorInput,
    updates: to.TensorInput,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """`tensor` with the larger of its elements and the `updates` at `indices` [..., depth].

    Equal ones share the gradient. Arguments and errors as scatter_nd.

    Example:
        tf.tensor_scatter_nd_max([1.0, 2.0, 3.0], [[0], [2]], [2.0, 2.0])
    """
    return _changed(ops.tensor_scatter_nd_max, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_min(
    tensor: to.TensorInput,
    indices: to.TensorInput,
    updates: to.TensorInput,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """`tensor` with the smaller of its elements and the `updates` at `indices` [..., depth].

    Equal ones share the gradient. Arguments and errors as scatter_nd.

    Example:
        tf.tensor_scatter_nd_min([1.0, 2.0, 3.0], [[0], [2]], [2.0, 2.0])
    """
    return _changed(ops.tensor_scatter_nd_min, tensor, indices, updates, bad_indices_policy)


def _ignored(policy: str) -> bool:
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError(f"bad_indices_policy must be '', 'DEFAULT', 'ERROR' or 'IGNORE', found {policy!r}")
    return policy == "IGNORE"


def _changed(op: Any, tensor: Any, indices: Any, updates: Any, policy: str) -> Tensor:
    if not _ignored(policy):
        return call(op, (tensor, indices, updates))
    whole = convert_to_tensor(tensor)
    entries = convert_to_tensor(updates, whole.dtype)
    valid, places = _inside(convert_to_tensor(indices), whole.shape.as_list())
    nothing = call(ops.fill, (_neutral(op.name, whole.dtype.np),), shape=entries.shape.as_list(), dtype=whole.dtype.np)
    changes = call(ops.where, (_as_entries(valid, entries), entries, nothing))
    return call(op, (whole, places, changes))


def _neutral(op: str, dtype: Any) -> Any:
    """The neutral element of an op: 0 for a sum, the smallest number for a maximum."""
    if op in ("tensor_scatter_nd_add", "tensor_scatter_nd_sub"):
        return 0
    limits = np.iinfo(dtype) if dtype in INTEGER else finfo(dtype)
    smallest, largest = (int(limits.min), int(limits.max)) if dtype in INTEGER else (-np.inf, np.inf)
    return smallest if op == "tensor_scatter_nd_max" else largest


def _inside(indices: Tensor, shape: Any) -> tuple[Tensor, Tensor]:
    """Whether each of the indices [..., depth] is in range: bool [...]; and the indices, with zeros for bad ones."""
    limits = constant(np.asarray(tuple(shape)[: indices.shape.as_list()[-1]], indices.dtype.np))
    each = call(ops.logical_and, (call(ops.greater_equal, (indices, 0)), call(ops.less, (indices, limits))))
    valid = call(ops.reduce_all, (each,), axis=-1)
    column = call(ops.expand_dims, (valid,), axis=-1)
    return valid, call(ops.where, (column, indices, zeros_like(indices)))


def _as_entries(valid: Tensor, entries: Tensor) -> Tensor:
    """bool [...] with an axis of length 1 for each axis of the entries [..., *rest] after them."""
    lengths = valid.shape.as_list()
    return call(ops.reshape, (valid,), shape=(*lengths, *(1,) * (entries.ndim - len(lengths))))
