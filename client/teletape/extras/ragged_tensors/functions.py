"""`tf.ragged`: ragged tensors from nested lists, ranges and partitions; segment ids; functions of the flat values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor, tensor_or_ragged
from teletape.core.calls.dispatch import constant as dense_constant
from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import host_array
from teletape.core.tensors.tensor import Tensor
from teletape.extras.ragged_tensors.factories import from_value_rowids
from teletape.extras.ragged_tensors.forms import arrangement
from teletape.extras.ragged_tensors.forms.gathering import boolean_mask
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.rows import columns, take
from teletape.extras.ragged_tensors.tensor import RaggedTensor, checked_splits_dtype
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

__all__ = [
    "boolean_mask",
    "constant",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]


# ------------------------------------------------------------------------------------------------------- nested lists
def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A ragged tensor of nested lists, in which lists of one level may have several lengths.

    Args:
        pylist: Nested lists, tuples or arrays of numbers or strings; all numbers have the same depth.
        dtype: The dtype of the numbers; None: as for tf.constant.
        ragged_rank: The number of levels of lists below the outermost one that are divisions; None: all but inner ones.
        inner_shape: The lengths of the levels that are not divisions.
        name: Accepted, without effect.
        row_splits_dtype: int32 or int64.

    Returns:
        A ragged tensor; a tensor for a number, for a flat list, and for `ragged_rank` 0.

    Raises:
        ValueError: Numbers at several depths; ranks or lengths that do not fit.

    Example:
        tf.ragged.constant([[1, 2], [], [3]])
    """
    splits_dtype = checked_splits_dtype(row_splits_dtype)
    nested = _as_lists(pylist)
    depth, most = _depth(nested), _most(nested)
    inner: tuple[int, ...] | None = None if inner_shape is None else tuple(to.ints(inner_shape))
    if depth is not None and ragged_rank is not None and ragged_rank >= depth and ragged_rank > 0:
        raise ValueError(
            f"Invalid pylist={pylist}: pylist has scalar values depth {depth}, but ragged_rank={ragged_rank} requires "
            f"scalar value depth greater than {ragged_rank}."
        )
    if depth == 0 or (ragged_rank == 0):
        return _dense(nested, dtype, inner)
    if ragged_rank is None:
        divisions = max(0, (depth or most) - 1 - (len(inner) if inner is not None else 0))
    else:
        divisions = ragged_rank
    partitions, values = [], nested
    for _ in _range(divisions):
        lengths = np.array([len(row) for row in values], np.int64)
        partitions.append(RowPartition.of_lengths(lengths, splits_dtype))
        values = [element for row in values for element in row]
    flat = _dense(values, dtype, inner if inner is None else (len(values), *inner))
    return RaggedTensor.of(flat, *partitions) if partitions else flat


_range = range


def _as_lists(value: Any) -> Any:
    """Returns nested lists, with arrays and tuples among them converted to lists."""
    if isinstance(value, np.ndarray):
        return [_as_lists(row) for row in value] if value.ndim else value[()]
    return [_as_lists(element) for element in value] if isinstance(value, list | tuple) else value


def _depth(value: Any) -> int | None:
    """Returns the depth of the numbers; None if there is none; ValueError if they have several depths."""
    if not isinstance(value, list):
        return 0
    depths = {depth for element in value if (depth := _depth(element)) is not None}
    if len(depths) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    return depths.pop() + 1 if depths else None


def _most(value: Any) -> int:
    """Returns the number of levels of lists."""
    return 1 + max(map(_most, value), default=0) if isinstance(value, list) else 0


def _dense(values: Any, dtype: Any, shape: tuple[int, ...] | None) -> Tensor:
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if shape is None:
        return dense_constant(values, wanted)
    array = host_array(values, wanted) if np.size(values) else np.zeros(0, (wanted or dtypes.float32).np)
    if array.shape != shape and array.size != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(f"Invalid pylist: its inner values have shape {array.shape}, and inner_shape asks for {shape}")
    return dense_constant(array.reshape(shape))


# --------------------------------------------------------------------------------------------- ranges, rows, segments
def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Rows of the numbers from each start to before each limit; with one argument from 0 to before it.

    Args:
        starts: Numbers [rows], or one for all; they are read.
        limits: Numbers likewise.
        deltas: The steps, likewise.
        dtype: Of the result.
        name: Accepted, without effect.
        row_splits_dtype: int32 or int64.

    Raises:
        InvalidArgumentError: A step of 0; numbers of rows that differ.

    Example:
        tf.ragged.range([3, 5])
    """
    if limits is None:
        starts, limits = 0, starts
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    tensors = [convert_to_tensor(value, dtype_hint=wanted) for value in (starts, limits, deltas)]
    ranked = [wanted.np] if wanted is not None else [tensor.dtype.np for tensor in tensors]
    result = max(ranked, key=lambda each: ("f" in each.kind, each.itemsize))
    arrays = [np.asarray(tensor.numpy()).astype(result) for tensor in tensors]
    if any(array.ndim > 1 for array in arrays):
        raise InvalidArgumentError("starts, limits and deltas must be scalars or vectors [Op:RaggedRange]")
    rows = {array.size for array in arrays if array.ndim} or {1}
    if len(rows) > 1:
        raise InvalidArgumentError("starts, limits, and deltas must have the same shape [Op:RaggedRange]")
    (count,) = rows
    first, last, step = (np.broadcast_to(array, (count,)) for array in arrays)
    if (step == 0).any():
        raise InvalidArgumentError("Requires delta != 0 [Op:RaggedRange]")
    lengths = np.maximum(0, np.ceil((last.astype(np.float64) - first) / step)).astype(np.int64)
    partition = RowPartition.of_lengths(lengths, checked_splits_dtype(row_splits_dtype))
    numbers = np.repeat(first, lengths) + (np.repeat(step, lengths) * columns(partition)).astype(result)
    return RaggedTensor.of(dense_constant(numbers.astype(result)), partition)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """Converts row splits, which are read, to the row of each value: [0, 2, 2, 3] gives [0, 0, 2].

    Raises:
        ValueError: No splits, or of another dtype or rank.

    Example:
        tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3])
    """
    tensor = convert_to_tensor(splits, dtype_hint=dtypes.int64)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("splits must have dtype int32 or int64")
    if tensor.ndim != 1:
        raise ValueError(f"Shape {tensor.shape} must have rank 1")
    if not tensor.shape.as_list()[0]:
        raise ValueError("Invalid row_splits: []")
    wanted = tensor.dtype.np if out_type is None else dtypes.as_dtype(out_type).np
    numbers = np.asarray(tensor.numpy())
    return dense_constant(np.repeat(np.arange(numbers.size - 1), np.diff(numbers)).astype(wanted))


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Converts the row of each value, which are read, to row splits: [0, 0, 2] gives [0, 2, 2, 3].

    Raises:
        ValueError: Ids of another dtype than int32 and int64.

    Example:
        tf.ragged.segment_ids_to_row_splits([0, 0, 2])
    """
    ids = convert_to_tensor(segment_ids, dtype_hint=dtypes.int64)
    if ids.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("segment_ids must have dtype int32 or int64")
    wanted = (ids.dtype if out_type is None else dtypes.as_dtype(out_type)).np
    numbers = np.asarray(ids.numpy())
    rows = (int(numbers.max()) + 1 if numbers.size else 0) if num_segments is None else to.whole(num_segments)
    counts = np.bincount(numbers, minlength=rows)[:rows] if numbers.size else np.zeros(rows, np.int64)
    return dense_constant(np.concatenate([[0], np.cumsum(counts)]).astype(wanted))


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Stacks tensors of one rank, whose lengths may differ, along a new axis of a ragged tensor.

    Raises:
        ValueError: Nothing to stack, other ranks, no such axis.

    Example:
        tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])
    """
    return arrangement.stack(values, axis)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """Groups values into rows: row i has the values of partition i. The partitions are read.

    Args:
        data: A tensor or a ragged tensor.
        partitions: int32 or int64, of the shape of the first axes of `data`.
        num_partitions: The number of rows.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: A partition out of range.
        ValueError: Shapes that do not fit.

    Example:
        tf.ragged.stack_dynamic_partitions([1, 2, 3, 4], [0, 1, 0, 2], 3)
    """
    values, labels = tensor_or_ragged(data), tensor_or_ragged(partitions)
    if isinstance(labels, RaggedTensor):
        if not isinstance(values, RaggedTensor) or not values.partition.same(labels.partition):
            raise InvalidArgumentError("partitions: its rows must be those of the data")
        return stack_dynamic_partitions(values.values, labels.values, num_partitions)
    count, rank = to.whole(num_partitions), labels.ndim
    numbers = np.asarray(labels.numpy()).reshape(-1)
    if isinstance(values, RaggedTensor):
        if rank > 1:
            raise ValueError("partitions of a RaggedTensor: one for each row, or a ragged tensor")
    else:
        shape = values.shape.as_list()
        if shape[:rank] != labels.shape.as_list():
            raise ValueError(f"data.shape {values.shape} must begin with partitions.shape {labels.shape}")
        values = call(ops.reshape, (values,), shape=(-1, *shape[rank:])) if rank != 1 else values
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        raise InvalidArgumentError(f"partitions must be in [0, {count}), found {numbers.min()} to {numbers.max()}")
    order = np.argsort(numbers, kind="stable")
    dtype = values.partition.dtype if isinstance(values, RaggedTensor) else labels.dtype.np
    return from_value_rowids(take(values, order), dense_constant(np.sort(numbers).astype(dtype)), count)


# -------------------------------------------------------------------------------------------------------- flat values
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Applies a function to the flat values, and returns its results in rows of the same lengths.

    Args:
        op: A function of tensors; its result has as many rows as the flat values.
        args: Its arguments; ragged tensors among them, also in lists, are replaced by their flat values.
        kwargs: Its named arguments, likewise.

    Returns:
        A ragged tensor; without a ragged argument the result of `op`.

    Raises:
        ValueError: Ragged arguments of several ragged ranks, or a result of another length.
        InvalidArgumentError: Ragged arguments whose rows differ.

    Example:
        tf.ragged.map_flat_values(tf.sqrt, tf.ragged.constant([[1.0, 4.0], [9.0]]))
    """
    ragged: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            ragged.append(value)
            return value.flat_values
        return [flat(each) for each in value] if isinstance(value, list | tuple) else value

    flat_args, flat_kwargs = [flat(value) for value in args], {name: flat(value) for name, value in kwargs.items()}
    if not ragged:
        return op(*args, **kwargs)
    first = ragged[0]
    counts = {each.flat_values.shape.as_list()[0] for each in ragged}
    if len(counts) > 1:
        raise ValueError(
            "Input RaggedTensors' flat_values must all have the same outer-dimension size.  Got sizes: "
            f"{sorted(counts)}"
        )
    if any(other.ragged_rank != first.ragged_rank for other in ragged):
        raise ValueError("All ragged inputs must have the same ragged_rank.")
    for other in ragged[1:]:
        if not all(a.same(b) for a, b in zip(first.partitions, other.partitions, strict=True)):
            raise InvalidArgumentError("Inputs must have identical ragged splits")
    result = tensor_or_ragged(op(*flat_args, **flat_kwargs))
    shape, count = result.shape.as_list(), first.flat_values.shape.as_list()[0]
    if not shape or shape[0] != count:
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as "
            f"flat_values of any ragged inputs. (output shape: {result.shape}; expected outer dimension size: {count})"
        )
    return RaggedTensor.of(result, *first.partitions)
