"""`tf.RaggedTensor.from_…`: ragged tensors made of values and of the bounds of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import as_tensor, call, constant, convert_to_tensor, tensor_or_ragged
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.tensor import RaggedTensor
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def from_row_splits(values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
    """Rows that begin and end at the splits: row i has the values from `row_splits[i]` to before `row_splits[i + 1]`.

    Args:
        values: [values, ...]: a tensor, or a ragged tensor.
        row_splits: int32 or int64 [rows + 1]: 0 first, ascending, the number of values last.
        name: Accepted, without effect.
        validate: Whether the splits are checked. Through a server they are checked when the next value is read.

    Raises:
        ValueError: No splits; splits of another dtype or rank.
        InvalidArgumentError: They do not divide the values.
    """
    splits = _integers(row_splits, "row_splits", values)
    if splits.shape.as_list() == [0]:
        raise ValueError("row_splits tensor may not be empty.")
    return _divided(values, splits, "from_row_splits", validate)


def from_row_lengths(values: Any, row_lengths: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
    """Rows of these lengths; arguments and errors are those of from_row_splits."""
    lengths = _integers(row_lengths, "row_lengths", values)
    if validate:
        _ensure(lengths, lambda numbers: bool((numbers >= 0).all()), lambda n: n >= 0, "from_row_lengths")
    return _divided(values, _splits_of(lengths), "_from_row_partition", validate)


def from_value_rowids(
    values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
) -> RaggedTensor:
    """Rows made of the row number of each value, ascending; `nrows` rows, by default up to the last number.

    Arguments and errors as from_row_splits. Without `nrows` the last number is read.
    """
    ids = _integers(value_rowids, "value_rowids", values)
    inner = tensor_or_ragged(values)
    _check_dtype(inner, ids)
    TensorShape(inner.shape.as_list()[:1]).assert_is_compatible_with(ids.shape)
    known = _known(ids)
    if nrows is None:
        known = np.asarray(ids.numpy())
        rows = int(known[-1]) + 1 if known.size else 0
    else:
        rows = to.whole(nrows)
        if rows < 0:
            raise ValueError(f"Expected nrows >= 0; got {rows}")
        if known is not None and known.size and known[-1] >= rows:
            raise ValueError(f"Expected nrows >= value_rowids[-1] + 1; got nrows={rows}, value_rowids[-1]={known[-1]}")
    if validate:
        _ensure(
            ids,
            lambda n: bool((np.diff(n) >= 0).all() and (n >= 0).all() and (n < rows).all()),
            lambda n: (n[1:] >= n[:-1]) if n.shape.as_list()[0] > 1 else n >= 0,
            "from_value_rowids",
        )
    if known is not None:
        lengths = np.bincount(known, minlength=rows) if known.size else np.zeros(rows, np.int64)
        return RaggedTensor.of(inner, RowPartition.of_lengths(lengths, ids.dtype.np))
    ones = call(ops.ones_like, (ids,))
    counts = call(ops.unsorted_segment_sum, (ones, ids), num_segments=rows)
    return RaggedTensor.of(inner, RowPartition(_splits_of(counts)))


def from_row_starts(values: Any, row_starts: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
    """Rows that begin at these indices and end before the next one; arguments and errors as for from_row_splits."""
    starts, inner = _integers(row_starts, "row_starts", values), tensor_or_ragged(values)
    end = np.array(inner.shape.as_list()[:1], starts.dtype.np)
    known = _known(starts)
    splits = constant(np.concatenate([known, end])) if known is not None else call(ops.concat, (starts, end), axis=0)
    return _divided(inner, splits, "from_row_starts", validate)


def from_row_limits(values: Any, row_limits: Any, name: str | None = None, validate: bool = True) -> RaggedTensor:
    """Rows that end before these indices, and begin where the row before ends; arguments as for from_row_splits."""
    limits, zero = _integers(row_limits, "row_limits", values), np.zeros(1, np.int64)
    known = _known(limits)
    zero = zero.astype(limits.dtype.np)
    splits = constant(np.concatenate([zero, known])) if known is not None else call(ops.concat, (zero, limits), axis=0)
    return _divided(values, splits, "_from_row_partition", validate)


def from_uniform_row_length(
    values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
) -> RaggedTensor:
    """Rows of one length, which is the length of that axis in the shape.

    Args:
        values: [values, ...]: a tensor, or a ragged tensor.
        uniform_row_length: The length.
        nrows: The number of rows; needed if the length is 0.
        validate: Accepted: the numbers are always checked.
        name: Accepted, without effect.

    Raises:
        ValueError: The number of values is no multiple of the length.
    """
    inner, length = tensor_or_ragged(values), to.whole(uniform_row_length)
    dtype: Any = inner.partition.dtype if isinstance(inner, RaggedTensor) else np.dtype(np.int64)
    if not isinstance(inner, RaggedTensor) and isinstance(uniform_row_length, TensorLike):
        dtype = uniform_row_length.dtype.np
    if length < 0:
        raise ValueError(f"uniform_row_length must be at least 0, found {length}")
    count = inner.shape.as_list()[0]
    rows = to.whole(nrows) if nrows is not None else count // length if length else 0
    if rows * length != count:
        raise ValueError(f"uniform_row_length={length} times nrows={rows} must equal nvals={count}")
    return RaggedTensor.of(inner, RowPartition.of_length(length, rows, dtype))


def from_nested_row_splits(
    flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None, validate: bool = True
) -> RaggedTensor:
    """Flat values under several divisions, with the row splits of each, the outermost first."""
    values = tensor_or_ragged(flat_values)
    for splits in reversed(_several(nested_row_splits, "nested_row_splits")):
        values = from_row_splits(values, splits, validate=validate)
    return values  # type: ignore[no-any-return]  # a ragged tensor


def from_nested_row_lengths(
    flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None, validate: bool = True
) -> RaggedTensor:
    """Flat values under several divisions, with the row lengths of each, the outermost first."""
    values = tensor_or_ragged(flat_values)
    for lengths in reversed(_several(nested_row_lengths, "nested_row_lengths")):
        values = from_row_lengths(values, lengths, validate=validate)
    return values  # type: ignore[no-any-return]  # a ragged tensor


def from_nested_value_rowids(
    flat_values: Any,
    nested_value_rowids: Sequence[Any],
    nested_nrows: Sequence[Any] | None = None,
    name: str | None = None,
    validate: bool = True,
) -> RaggedTensor:
    """Flat values under several divisions, with the row numbers of the values of each, the outermost first.

    Raises:
        ValueError: `nested_nrows` and `nested_value_rowids` have different lengths.
    """
    ids = _several(nested_value_rowids, "nested_value_rowids")
    counts = [None] * len(ids) if nested_nrows is None else list(nested_nrows)
    if len(counts) != len(ids):
        raise ValueError(
            "Argument `nested_nrows` must have the same length as argument `nested_value_rowids`. len(nested_nrows) = "
            f"{len(counts)} vs. len(nested_value_rowids) = {len(ids)}."
        )
    values = tensor_or_ragged(flat_values)
    for rowids, rows in zip(reversed(ids), reversed(counts), strict=True):
        values = from_value_rowids(values, rowids, rows, validate=validate)
    return values  # type: ignore[no-any-return]  # a ragged tensor


# ------------------------------------------------------------------------------------------------------------- checks
def _several(nested: Any, name: str) -> list[Any]:
    if isinstance(nested, TensorLike):
        raise TypeError(f"Argument `{name}` must be a list of Tensors. Received {nested}.")
    return list(nested)


def _integers(value: Any, name: str, values: Any) -> Tensor:
    """Returns an int32 or int64 tensor [n] for a division; numbers get the dtype of the values' splits, or int64."""
    hint = values.row_splits.dtype if isinstance(values, RaggedTensor) else dtypes.int64
    if isinstance(value, TensorLike):
        tensor = as_tensor(value)
    elif isinstance(value, np.ndarray):
        tensor = convert_to_tensor(value)
    else:
        tensor = convert_to_tensor(np.asarray(value, hint.np) if not np.size(value) else value, dtype_hint=hint)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name} must have dtype int32 or int64")
    if tensor.ndim != 1:
        raise ValueError(f"Shape {tensor.shape} must have rank 1")
    return tensor


def _known(tensor: Tensor) -> HostArray | None:
    return RowPartition(tensor).known()


def _splits_of(lengths: Tensor) -> Tensor:
    known = _known(lengths)
    zero = np.zeros(1, lengths.dtype.np)
    if known is not None:
        return constant(np.concatenate([zero, np.cumsum(known, dtype=lengths.dtype.np)]))
    return call(ops.concat, (zero, call(ops.cumsum, (lengths,))), axis=0)


def _divided(values: Any, splits: Tensor, function: str, validate: bool) -> RaggedTensor:
    inner = tensor_or_ragged(values)
    shape = inner.shape.as_list()
    if not shape:
        raise InvalidArgumentError("slice index 0 of dimension 0 out of bounds: values must have at least one axis")
    _check_dtype(inner, splits)
    if validate:
        count = shape[0]
        checks: tuple[tuple[Any, Any, str], ...] = (
            (lambda n: n[0] == 0, lambda n: n[0] == 0, function),
            (lambda n: bool((np.diff(n) >= 0).all()), lambda n: n[1:] >= n[:-1], function),
            (lambda n: n[-1] == count, lambda n: n[-1] == count, "_from_row_partition"),
        )
        for numbers_hold, tensor_holds, names in checks:
            _ensure(splits, numbers_hold, tensor_holds, names)
    return RaggedTensor.of(inner, RowPartition(splits))


def _check_dtype(values: Any, partition: Tensor) -> None:
    """Raises ValueError unless the division has the dtype of the values' own row splits."""
    if isinstance(values, RaggedTensor) and values.partition.dtype != partition.dtype.np:
        raise ValueError(
            f"rows of dtype {partition.dtype.name} over values whose row_splits are {values.row_splits.dtype.name}; "
            "use RaggedTensor.with_row_splits_dtype() to convert them to compatible dtypes."
        )


def _ensure(tensor: Tensor, numbers_hold: Any, tensor_holds: Any, function: str) -> None:
    """Raises InvalidArgumentError unless the condition holds; if it is not known yet, an op raises it when it runs."""
    known = _known(tensor)
    of_partition = function in ("from_row_lengths", "from_value_rowids")
    text = f"Arguments to {function} do not form a valid {'RowPartition' if of_partition else 'RaggedTensor'}"
    if known is None:
        call(ops.ensure, (call(ops.reduce_all, (tensor_holds(tensor),)),), message=text)
    elif not numbers_hold(known):
        raise InvalidArgumentError(f"{text}: found {known.tolist()}")
