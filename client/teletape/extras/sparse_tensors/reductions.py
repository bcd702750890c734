"""`tf.sparse`: sums and maxima over axes, of chosen rows of a dense tensor, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.places import positions
from teletape.extras.sparse_tensors.tensor import SparseTensor, sparse
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def reduce_sum(
    sp_input: SparseTensor,
    axis: to.IntsInput | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The sums over axes; None: over all.

    Args:
        sp_input: The sparse tensor.
        axis: One axis or several.
        keepdims: Whether the axes stay, with length 1.
        output_is_sparse: Whether the result is sparse, with a value wherever the input has one.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        tf.sparse.reduce_sum(tf.sparse.from_dense([[1.0, 5.0]]), axis=1)
    """
    return _reduced(sparse(sp_input), axis, bool(keepdims), output_is_sparse, ops.unsorted_segment_sum)


def reduce_max(
    sp_input: SparseTensor,
    axis: to.IntsInput | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """The largest of the values over axes, 0 if there is none. Missing zeros do not count. Arguments: see reduce_sum.

    Example:
        tf.sparse.reduce_max(tf.sparse.from_dense([[1.0, 5.0]]), axis=1)
    """
    return _reduced(sparse(sp_input), axis, bool(keepdims), output_is_sparse, ops.unsorted_segment_max)


def _reduced(value: SparseTensor, axis: Any, keepdims: bool, output_is_sparse: bool, op: Any) -> Any:
    lengths = value.shape.as_list()
    rank = len(lengths)
    axes = list(range(rank)) if axis is None else list(to.ints(axis, "axis"))
    if any(not -rank <= at < rank for at in axes):
        raise InvalidArgumentError(f"Invalid reduction dimension {axes}, for input with {rank} dimensions")
    gone = {at % rank for at in axes}
    remaining = [at for at in range(rank) if at not in gone]
    remaining_lengths = [lengths[at] for at in remaining]
    shape = [1 if at in gone else lengths[at] for at in range(rank)] if keepdims else remaining_lengths
    indices = call(ops.gather, (value.indices, constant(np.array(remaining, np.int64))), axis=1)
    if output_is_sparse:
        places, labels = np.unique(value.places()[:, remaining], axis=0, return_inverse=True)
        reduced = call(op, (value.values, constant(labels.reshape(-1).astype(np.int64))), num_segments=places.shape[0])
        full = np.zeros([places.shape[0], rank], np.int64)
        full[:, remaining] = places
        return SparseTensor(constant(full if keepdims else places.astype(np.int64)), reduced, shape)
    rows = positions(indices, remaining_lengths)
    count = int(np.prod(remaining_lengths, dtype=np.int64))
    reduced = call(op, (value.values, rows), num_segments=count)
    if op is ops.unsorted_segment_max:
        ones = call(ops.ones_like, (rows,))
        values = call(ops.unsorted_segment_sum, (ones, rows), num_segments=count)
        there = call(ops.greater, (values, 0))
        reduced = call(ops.where, (there, reduced, call(ops.zeros_like, (reduced,))))
    return call(ops.reshape, (reduced,), shape=tuple(shape))


# ------------------------------------------------------------------------------------------- chosen rows of a dense one
def segment_sum(
    data: to.TensorInput,
    indices: to.TensorInput,
    segment_ids: to.TensorInput,
    num_segments: to.IntInput | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sums of chosen rows of `data` that share an id.

    Args:
        data: [n, *rest].
        indices: [k] int32 or int64: the rows, which may be repeated.
        segment_ids: [k], ascending; their values are read.
        num_segments: The number of sums; None: the last id plus 1.
        name: Accepted, without effect.
        sparse_gradient: Whether the gradient of `data` is IndexedSlices.

    Returns:
        [num_segments, *rest]; zeros for an id that no row has.

    Raises:
        InvalidArgumentError: The ids are not ascending, negative, not below `num_segments`, or not one for each index.

    Example:
        tf.sparse.segment_sum([[1.0], [3.0]], [0, 1], [0, 0])
    """
    return _segments(ops.unsorted_segment_sum, data, indices, segment_ids, num_segments, sparse_gradient)


def segment_mean(
    data: to.TensorInput,
    indices: to.TensorInput,
    segment_ids: to.TensorInput,
    num_segments: to.IntInput | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The means of chosen rows that share an id. Arguments and errors are those of segment_sum.

    Example:
        tf.sparse.segment_mean([[1.0], [3.0]], [0, 1], [0, 0])
    """
    return _segments(ops.unsorted_segment_mean, data, indices, segment_ids, num_segments, sparse_gradient)


def segment_sqrt_n(
    data: to.TensorInput,
    indices: to.TensorInput,
    segment_ids: to.TensorInput,
    num_segments: to.IntInput | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sums of chosen rows that share an id, divided by the root of their number; see segment_sum.

    Example:
        tf.sparse.segment_sqrt_n([[1.0], [3.0]], [0, 1], [0, 0])
    """
    return _segments(ops.unsorted_segment_sqrt_n, data, indices, segment_ids, num_segments, sparse_gradient)


def _segments(op: Any, data: Any, indices: Any, segment_ids: Any, num_segments: Any, sparse_gradient: bool) -> Tensor:
    rows, chosen, labels = convert_to_tensor(data), convert_to_tensor(indices), convert_to_tensor(segment_ids)
    ids = np.asarray(labels.numpy())
    if ids.shape != tuple(chosen.shape.as_list()) or ids.ndim != 1:
        raise InvalidArgumentError(f"segment_ids should be the same size as indices: {labels.shape}, {chosen.shape}")
    if ids.size and (np.diff(ids) < 0).any():
        raise InvalidArgumentError("segment ids are not increasing")
    if ids.size and ids[0] < 0:
        raise InvalidArgumentError("segment ids must be >= 0")
    count = (int(ids[-1]) + 1 if ids.size else 0) if num_segments is None else to.whole(num_segments)
    if ids.size and ids[-1] >= count:
        raise InvalidArgumentError(f"segment ids must be < num_segments: {int(ids[-1])} of {count}")
    if not sparse_gradient:
        rows = call(ops.reshape, (rows,), shape=tuple(rows.shape.as_list()))
    return call(op, (call(ops.gather, (rows, chosen)), labels), num_segments=count)


# -------------------------------------------------------------------------------------------------------------- counts
def bincount(
    values: Any,
    weights: Any = None,
    axis: to.IntInput = 0,
    minlength: to.IntInput | None = None,
    maxlength: to.IntInput | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """The count of each number, or the sum of its weights: sparse [bins], or [rows, bins] with axis -1.

    Args:
        values: int32 or int64 of rank 1 or 2, dense or sparse; they are read.
        weights: A weight for each, of the same form; they have no gradient, as in TensorFlow.
        axis: 0: one count of all; -1: one for each row.
        minlength: The smallest length of the last axis.
        maxlength: This number and larger ones are ignored.
        binary_output: Whether the result is 1 for each number that occurs.
        name: Accepted, without effect.

    Raises:
        ValueError: Another axis; weights together with `binary_output`.
        InvalidArgumentError: Negative numbers; weights of another form.

    Example:
        tf.sparse.bincount([1, 1, 3], axis=0)
    """
    at = to.whole(axis)
    if at not in (0, -1):
        raise ValueError(f"Unsupported value for argument axis={at}. Only 0 and -1 are currently supported.")
    if binary_output and weights is not None:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    rows, numbers, row_count, dtype = _numbers(values)
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(f"the numbers must not be negative, found {numbers.min()}")
    if weights is None:
        amounts = np.ones(numbers.size, dtype)
    else:
        weight_values = weights.values if isinstance(weights, SparseTensor) else convert_to_tensor(weights)
        amounts = np.asarray(weight_values.numpy()).reshape(-1)
        if amounts.size != numbers.size:
            raise InvalidArgumentError(f"weights: one for each of the {numbers.size} numbers, found {amounts.size}")
    bins = max(int(numbers.max()) + 1 if numbers.size else 0, 0 if minlength is None else to.whole(minlength))
    if maxlength is not None:
        bins = min(bins, to.whole(maxlength))
        remaining = numbers < bins
        rows, numbers, amounts = rows[remaining], numbers[remaining], amounts[remaining]
    if at == 0 or row_count is None:
        rows = np.zeros_like(rows)
    places, labels = np.unique(np.stack([rows, numbers], 1).reshape(-1, 2), axis=0, return_inverse=True)
    totals = np.zeros(places.shape[0], amounts.dtype)
    np.add.at(totals, labels.reshape(-1), amounts)
    totals = np.ones_like(totals) if binary_output else totals
    if at == 0 or row_count is None:
        return SparseTensor(constant(places[:, 1:].astype(np.int64)), constant(totals), [bins])
    return SparseTensor(constant(places.astype(np.int64)), constant(totals), [row_count, bins])


def _numbers(values: Any) -> tuple[Any, Any, int | None, Any]:
    """The row and the number of each element, the number of rows (None: no rows), and the numbers' dtype."""
    if isinstance(values, SparseTensor):
        numbers, places = np.asarray(values.values.numpy()), values.places()
        lengths = values.shape.as_list()
    else:
        tensor = convert_to_tensor(values)
        lengths = tensor.shape.as_list()
        numbers = np.asarray(tensor.numpy()).reshape(-1)
        places = np.indices(lengths).reshape(len(lengths), -1).T
    if numbers.dtype not in (dtypes.int32.np, dtypes.int64.np):
        raise InvalidArgumentError(f"the numbers must be int32 or int64, found {numbers.dtype}")
    if len(lengths) == 1:
        return np.zeros(numbers.size, np.int64), numbers.astype(np.int64), None, numbers.dtype
    return places[:, 0].astype(np.int64), numbers.astype(np.int64), lengths[0], numbers.dtype
