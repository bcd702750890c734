"""`tf.sparse`: conversions from and to dense tensors, and to other orders, shapes and axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.places import check, places_of, positions
from teletape.extras.sparse_tensors.tensor import SparseTensor, sparse
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import axis_in

__all__ = [
    "expand_dims",
    "eye",
    "from_dense",
    "reorder",
    "reset_shape",
    "reshape",
    "to_dense",
    "to_indicator",
    "transpose",
]


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: to.DTypeInput | None = None, name: str | None = None
) -> Tensor | SparseTensor:
    """Returns a sparse tensor unchanged, anything else as a tensor.

    Raises:
        RuntimeError: A sparse tensor of another dtype.

    Example:
        tf.compat.v1.convert_to_tensor_or_sparse_tensor([1.0, 2.0])
    """
    if not isinstance(value, SparseTensor) and not all(hasattr(value, part) for part in ("indices", "dense_shape")):
        return convert_to_tensor(value, dtype)
    tensor = SparseTensor.from_value(value)
    if dtype is not None and tensor.dtype is not dtypes.as_dtype(dtype):
        raise RuntimeError(
            f"Sparse dtype mismatch. Requested: {dtypes.as_dtype(dtype).name},  Actual: {tensor.dtype.name}"
        )
    return tensor


def from_dense(tensor: to.TensorInput, name: str | None = None) -> SparseTensor:
    """A sparse tensor of the elements that are not zero (not empty), in row-major order. Their number is read.

    Example:
        tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    """
    dense = convert_to_tensor(tensor)
    zero = call(ops.zeros_like, (dense,)) if dense.dtype is not dtypes.string else constant("")
    places = call(ops.nonzero, (call(ops.not_equal, (dense, zero)),))
    return SparseTensor(places, call(ops.gather_nd, (dense, places)), dense.shape.as_list())


def to_dense(
    sp_input: SparseTensor,
    default_value: to.TensorInput | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The dense tensor.

    Args:
        sp_input: The sparse tensor.
        default_value: The value of the other elements; None: zero, or the empty string.
        validate_indices: Whether the indices are checked to be in order, without repetition, before they are used.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: An index outside the shape, or one that is out of order or repeated.

    Example:
        tf.sparse.to_dense(tf.sparse.SparseTensor([[1]], [5.0], [3]))
    """
    value = sparse(sp_input)
    lengths = tuple(value.shape.as_list())
    if validate_indices and not current().tracing:
        check(value, "SparseToDense")
    if default_value is None:
        empty = constant("") if value.dtype is dtypes.string else constant(0).numpy().astype(value.dtype.np)
        default_value = convert_to_tensor(empty)
    background = call(ops.broadcast_to, (to.like(default_value, value.values),), shape=lengths)
    if not lengths:
        return value.values[0] if value.values.shape.as_list()[0] else background
    return call(ops.tensor_scatter_nd_update, (background, value.indices, value.values))


def eye(
    num_rows: to.IntInput,
    num_columns: to.IntInput | None = None,
    dtype: to.DTypeInput = dtypes.float32,
    name: str | None = None,
) -> SparseTensor:
    """The identity matrix [num_rows, num_columns]; without `num_columns` it is square.

    Example:
        tf.sparse.eye(2)
    """
    rows = to.whole(num_rows)
    columns = rows if num_columns is None else to.whole(num_columns)
    diagonal = np.arange(min(rows, columns), dtype=np.int64)
    ones = np.ones(diagonal.size, dtypes.as_dtype(dtype).np)
    return SparseTensor(np.stack([diagonal, diagonal], 1), ones, [rows, columns])


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same values sorted by their indices in row-major order; values of equal indices keep their order.

    Example:
        tf.sparse.reorder(tf.sparse.SparseTensor([[1], [0]], [2.0, 1.0], [2]))
    """
    value = sparse(sp_input)
    order = call(ops.argsort, (positions(value.indices, value.shape.as_list()),))
    return value.rebuilt(entries_at(value.values, order), call(ops.gather, (value.indices, order)))


def reshape(sp_input: SparseTensor, shape: to.IntsInput, name: str | None = None) -> SparseTensor:
    """The same values in another shape of as many elements; one length may be -1.

    Raises:
        InvalidArgumentError: Several lengths are not known; the number of elements differs.

    Example:
        tf.sparse.reshape(tf.sparse.from_dense([[1.0, 2.0]]), [2, 1])
    """
    value, lengths = sparse(sp_input), list(to.ints(shape))
    size = math.prod(value.shape.as_list())
    unknown = [axis for axis, length in enumerate(lengths) if length == -1]
    known = math.prod(length for length in lengths if length != -1)
    if len(unknown) > 1:
        raise InvalidArgumentError(f"At most one dimension can be inferred (-1). Found: {lengths}")
    if unknown and known and size % known == 0:
        lengths[unknown[0]] = size // known
    if math.prod(lengths) != size or min(lengths, default=0) < 0:
        raise InvalidArgumentError(
            f"Cannot reshape a tensor of shape {value.shape} with {size} elements to shape {list(to.ints(shape))}"
        )
    places = places_of(positions(value.indices, value.shape.as_list()), lengths)
    return SparseTensor(places, value.values, lengths)


def expand_dims(sp_input: SparseTensor, axis: to.IntInput | None = None, name: str | None = None) -> SparseTensor:
    """The same values with an axis of length 1 before `axis`; None: at the end.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        tf.sparse.expand_dims(tf.sparse.from_dense([1.0, 0.0]), axis=0)
    """
    value = sparse(sp_input)
    rank = len(value.shape)
    at = axis_in(rank if axis is None else to.whole(axis), rank + 1)
    lengths = value.shape.as_list()
    zeros = (
        call(ops.zeros_like, (value.indices[:, :1],)) if rank else constant(np.zeros([value.places().shape[0], 1], int))
    )
    parts = (value.indices[:, :at], zeros, value.indices[:, at:])
    return SparseTensor(call(ops.concat, parts, axis=1), value.values, [*lengths[:at], 1, *lengths[at:]])


def transpose(sp_input: SparseTensor, perm: to.IntsInput | None = None, name: str | None = None) -> SparseTensor:
    """Permutes the axes; the values are sorted by their new indices in row-major order.

    Args:
        sp_input: The sparse tensor.
        perm: For each axis of the result its axis in the input; None: the reverse order.
        name: Accepted, without effect.

    Raises:
        ValueError: `perm` is no permutation of the axes.

    Example:
        tf.sparse.transpose(tf.sparse.from_dense([[1.0, 2.0]]))
    """
    value = sparse(sp_input)
    rank = len(value.shape)
    axes = (
        list(range(rank))[::-1]
        if perm is None
        else [to.axis_within(axis, rank, "perm") for axis in to.ints(perm, "perm")]
    )
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"perm must be a permutation of the {rank} axes, found {axes}")
    indices = call(ops.gather, (value.indices, constant(np.array(axes, np.int64))), axis=1)
    lengths = value.shape.as_list()
    return reorder(SparseTensor(indices, value.values, [lengths[axis] for axis in axes]))


def reset_shape(sp_input: SparseTensor, new_shape: to.IntsInput | None = None) -> SparseTensor:
    """The same values at the same indices in a larger shape; None: in the smallest possible one.

    Raises:
        ValueError: Another rank, or a length that is smaller than that of the sparse tensor.
        InvalidArgumentError: An index is outside the shape.

    Example:
        tf.sparse.reset_shape(tf.sparse.from_dense([1.0]), new_shape=[3])
    """
    value = sparse(sp_input)
    own = value.shape.as_list()
    if new_shape is None:
        places = value.places()
        return SparseTensor(
            value.indices, value.values, (places.max(0) + 1).tolist() if places.size else [0] * len(own)
        )
    lengths = list(to.ints(new_shape))
    if len(lengths) != len(own):
        raise ValueError(f"Rank of input {len(own)} and of the new shape {len(lengths)} must be equal")
    if any(length < old for length, old in zip(lengths, own, strict=True)):
        raise InvalidArgumentError(f"new_shape {lengths} must not be smaller than the shape {own} in any axis")
    return SparseTensor(value.indices, value.values, lengths)


def to_indicator(sp_input: SparseTensor, vocab_size: to.IntInput, name: str | None = None) -> Tensor:
    """Bools [*shape[:-1], vocab_size]: whether each row has each of the ids, which are the values.

    Raises:
        TypeError: The values are neither int32 nor int64.
        InvalidArgumentError: An id outside [0, vocab_size).

    Example:
        tf.sparse.to_indicator(tf.sparse.SparseTensor([[0, 0]], np.array([2]), [1, 1]), vocab_size=3)
    """
    value, size = sparse(sp_input), to.whole(vocab_size)
    if value.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(f"the ids must be int32 or int64, found {value.dtype.name}")
    ids = np.asarray(value.values.numpy(), np.int64)
    if ids.size and not 0 <= ids.min() <= ids.max() < size:
        raise InvalidArgumentError(f"ids must be in [0, {size}), found {ids.min()} to {ids.max()}")
    outer = value.shape.as_list()[:-1]
    dense = np.zeros([*outer, size], bool)
    dense[(*value.places()[:, :-1].T, ids)] = True
    return constant(dense)
