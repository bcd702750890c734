"""Elementwise ops on ragged tensors: they act on the flat values, after broadcasting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import call, tensor_or_ragged
from teletape.extras.ragged_tensors.partition import RowPartition, ranges
from teletape.extras.ragged_tensors.rows import outer_rowids, take
from teletape.extras.ragged_tensors.tensor import RaggedTensor, common_splits
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach
from teletape_engine.errors import InvalidArgumentError

#: Composites, conversions and functions of the shape that act on each element, although their records do not say so.
_ALSO: Final = frozenset(
    getattr(ops, name)
    for name in (
        "clip_by_value erfcinv log_poisson_loss log_sigmoid no_gradient ones_like reciprocal_no_nan saturate_cast "
        "sigmoid_cross_entropy silu stop_gradient xdivy xlog1py xlogy zeros_like"
    ).split()
)
#: Elementwise ops that broadcast by another rule.
_NOT: Final = frozenset({ops.bias_add})


def acts_on_elements(op: Op) -> bool:
    """Whether an op is elementwise."""
    return (op.reach is Reach.ELEMENTS or op in _ALSO) and op not in _NOT


def elementwise(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Applies an op to each element. The arguments broadcast: an axis whose length is 1 in all rows is stretched.

    Raises:
        InvalidArgumentError: Rows of other lengths.
        ValueError: Row splits of several dtypes.
    """
    dtype = next(arg.dtype for arg in args if isinstance(arg, RaggedTensor))
    operands = [arg if isinstance(arg, bool | int | float) else tensor_or_ragged(arg, dtype) for arg in args]
    partitions, flat = broadcast(operands)
    return RaggedTensor.of(call(op, flat, **attrs), *partitions)


def broadcast(operands: Sequence[Any]) -> tuple[Sequence[RowPartition], list[Any]]:
    """Returns the common divisions of operands after broadcasting, and the flat values of each.

    Args:
        operands: Ragged tensors, at least one, tensors and numbers. The inner axes of the flat values still broadcast.
    """
    ragged = [operand for operand in common_splits(*operands) if isinstance(operand, RaggedTensor)]
    first = ragged[0]
    rank = max(len(operand.shape) for operand in operands if hasattr(operand, "shape"))
    if len(first.shape) == rank and all(_alike(first, other) for other in ragged[1:]):
        flat = [_on_rows(first, operand) for operand in operands]
        if all(values is not None for values in flat):
            return _shared(ragged), flat
    divisions = max(value.ragged_rank + rank - len(value.shape) for value in ragged)
    aligned = [None if not hasattr(x, "shape") else _Aligned(x, rank, divisions) for x in operands]
    partitions = _descend([each for each in aligned if each is not None], divisions, first.partition.dtype)
    flat = [x if each is None else each.flat() for x, each in zip(operands, aligned, strict=True)]
    whole = [each.value for each in aligned if each is not None and each.is_whole]
    return _shared(whole) if whole else partitions, flat


def _shared(ragged: Sequence[RaggedTensor]) -> list[RowPartition]:
    """The divisions of ragged tensors with the same rows; of uniform length if it is uniform in all of them."""
    levels = zip(*(value.partitions for value in ragged), strict=True)
    return [next((each for each in level if each.uniform is None), level[0]) for level in levels]


def _alike(first: RaggedTensor, other: RaggedTensor) -> bool:
    """Whether two ragged tensors have the same rows; if that is not known, the splits of both are read."""
    if first.ragged_rank != other.ragged_rank or len(first.shape) != len(other.shape):
        return False
    pairs = list(zip(first.partitions, other.partitions, strict=True))
    return all(a.rows == b.rows for a, b in pairs) and all(a.same(b) for a, b in pairs)


def _on_rows(first: RaggedTensor, operand: Any) -> Any:
    """The flat values of an operand that needs no splits: it has the same rows, one value for each row, or no rows."""
    if isinstance(operand, RaggedTensor):
        return operand.flat_values
    inner = len(first.flat_values.shape) - 1
    if not hasattr(operand, "shape") or len(operand.shape) <= inner:
        return operand
    lengths = [1] * (len(first.shape) - len(operand.shape)) + operand.shape.as_list()
    divided, rest = lengths[: first.ragged_rank + 1], lengths[first.ragged_rank + 1 :]
    if divided[0] not in (1, first.partition.rows) or any(length != 1 for length in divided[1:]):
        return None
    column = call(ops.reshape, (operand,), shape=(divided[0], *rest))
    return column if divided[0] == 1 else entries_at(column, outer_rowids(first))


class _Aligned:
    """An operand with the axes of the result; its missing axes have length 1.

    Attributes:
        value: The operand.
        axes: For each axis from 0 to the last division its length, or the row splits of a division.
        index: For each row of the result so far the operand's row.
    """

    def __init__(self, value: Any, rank: int, divisions: int) -> None:
        self.value, self._padded = value, rank - len(value.shape)
        lengths = value.shape.as_list()
        splits = [] if not isinstance(value, RaggedTensor) else value.partitions
        axes: list[Any] = [1] * self._padded + lengths[:1]
        axes += [each.numbers().astype(np.int64) if each.uniform is None else each.uniform for each in splits]
        self.axes = [*axes, *lengths[len(axes) - self._padded :]][: divisions + 1]
        self._inner = lengths[max(divisions + 1 - self._padded, 0) :]
        self.index: HostArray = np.zeros(1, np.int64)
        self._whole = self._padded == 0 and isinstance(value, RaggedTensor) and value.ragged_rank == divisions

    @property
    def is_whole(self) -> bool:
        """Whether its rows are the result's."""
        return self._whole and bool((self.index == np.arange(self._count())).all())

    def _count(self) -> int:
        return int(self.value.flat_values.shape.as_list()[0])

    def lengths(self, axis: int) -> HostArray | None:
        """The length of each row along an axis; None if the axis is stretched."""
        division = self.axes[axis]
        if isinstance(division, np.ndarray):
            return np.asarray(np.diff(division)[self.index])
        return None if division == 1 else np.full(self.index.size, division, np.int64)

    def step(self, axis: int, lengths: HostArray) -> None:
        """Goes from the rows along one axis to those along the next; `lengths` are their lengths in the result."""
        division = self.axes[axis]
        if isinstance(division, np.ndarray):
            starts = division[:-1][self.index]
        else:
            starts = self.index * division
        stretched = not isinstance(division, np.ndarray) and division == 1
        self._whole = self._whole and not (stretched and bool((lengths != 1).any()))
        self.index = np.repeat(starts, lengths) if stretched else ranges(starts, lengths)

    def flat(self) -> Any:
        """The operand's flat values in the rows of the result."""
        if self._padded > len(self.axes) - 1:
            return self.value  # it has only inner axes, which the op broadcasts
        values = self.value.flat_values if isinstance(self.value, RaggedTensor) else self.value
        values = call(ops.reshape, (values,), shape=(-1, *self._inner))
        if values.shape.as_list()[0] == 1 and not isinstance(self.value, RaggedTensor):
            return values
        return take(values, self.index, dense=True)


def _descend(operands: Sequence[_Aligned], divisions: int, dtype: Any) -> list[RowPartition]:
    """The divisions of the result, from the outermost axis to the innermost division."""
    partitions: list[RowPartition] = []
    rows = 1
    for axis in range(divisions + 1):
        known = [lengths for each in operands if (lengths := each.lengths(axis)) is not None]
        lengths = known[0] if known else np.ones(rows, np.int64)
        for other in known[1:]:
            if not np.array_equal(lengths, other):
                raise InvalidArgumentError(
                    f"Incompatible shapes: the rows along axis {axis} have the lengths {lengths.tolist()} in one "
                    f"argument and {other.tolist()} in another"
                )
        for each in operands:
            each.step(axis, lengths)
        if axis:
            same = all(not isinstance(each.axes[axis], np.ndarray) for each in operands)
            uniform = (int(lengths[0]) if lengths.size else 1) if same else None
            partitions.append(RowPartition.of_lengths(lengths, dtype, uniform))
        rows = int(lengths.sum())
    return partitions
