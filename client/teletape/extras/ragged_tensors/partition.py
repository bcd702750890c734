"""The division of values into rows: the row splits as a tensor, and as numbers if these are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant
from teletape.core.tensors.tensor import EagerTensor, Tensor
from teletape_engine.arrays import HostArray
from teletape_engine.catalogue.namespace import ops


class RowPartition:
    """The division of values into rows: row i has the values from `splits[i]` to before `splits[i + 1]`.

    Attributes:
        splits: int32 or int64 [rows + 1]; in the arguments of a trace its spec.
        uniform: The length of every row, if the division was made with one.
    """

    __slots__ = ("_numbers", "splits", "uniform")

    def __init__(self, splits: Any, uniform: int | None = None, numbers: HostArray | None = None) -> None:
        self.splits, self.uniform, self._numbers = splits, uniform, numbers

    @classmethod
    def of_numbers(cls, numbers: Any, dtype: Any, uniform: int | None = None) -> RowPartition:
        """The partition with these splits, as a tensor of a NumPy dtype."""
        array = np.asarray(numbers).astype(dtype)
        return cls(constant(array), uniform, array)

    @classmethod
    def of_lengths(cls, lengths: HostArray, dtype: Any, uniform: int | None = None) -> RowPartition:
        """The partition into rows of these lengths."""
        return cls.of_numbers(np.concatenate([[0], np.cumsum(lengths)]), dtype, uniform)

    @classmethod
    def of_length(cls, length: int, rows: int, dtype: Any) -> RowPartition:
        """The partition into rows of one length."""
        return cls.of_numbers(np.arange(rows + 1) * length, dtype, length)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.splits.shape.as_list()[0]) - 1

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the splits."""
        return self.splits.dtype.np

    def known(self) -> HostArray | None:
        """The splits as numbers, if that takes no request; None if they are an argument of a traced function."""
        if self._numbers is None:
            splits: EagerTensor = self.splits
            host = getattr(splits.recorded, "host", None)
            if host is None and splits.session.local and not splits.session.tracing:
                host = splits.numpy()
            self._numbers = None if host is None else np.asarray(host)
        return self._numbers

    def numbers(self) -> HostArray:
        """The splits as numbers, read once. A function that has them as an argument then runs op by op."""
        if self.known() is None:
            self._numbers = np.asarray(self.splits.numpy())
        assert self._numbers is not None
        return self._numbers

    def lengths(self) -> Tensor:
        """The length of each row, of the splits' dtype."""
        known = self.known()
        if known is not None:
            return constant(np.diff(known))
        return call(ops.sub, (self.splits[1:], self.splits[:-1]))

    def rowids(self, count: int) -> Tensor:
        """The row of each of `count` values, of the splits' dtype."""
        known = self.known()
        if known is not None:
            return constant(np.repeat(np.arange(self.rows), np.diff(known)).astype(self.dtype))
        places = constant(np.arange(count).astype(self.dtype))
        after = call(ops.searchsorted, (self.splits, places), side="right", out_type=self.dtype)
        return call(ops.sub, (after, 1))

    def same(self, other: RowPartition) -> bool:
        """Whether another partition has the same rows; if that is not known, both are read."""
        if self is other or self.splits is other.splits:
            return True
        if self.rows != other.rows:
            return False
        return bool(np.array_equal(self.numbers(), other.numbers()))

    def without_length(self) -> RowPartition:
        """Returns the same rows without a uniform length."""
        return RowPartition(self.splits, None, self.known())

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The same rows with splits of another NumPy dtype."""
        if dtype == self.dtype:
            return self
        known = self.known()
        if known is not None:
            return RowPartition.of_numbers(known, dtype, self.uniform)
        return RowPartition(call(ops.cast, (self.splits,), dtype=dtype), self.uniform)


def ranges(starts: HostArray, lengths: HostArray) -> HostArray:
    """The numbers from each start on, as many as its length says, one range after the other: int64."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.repeat(starts - before, lengths) + np.arange(int(lengths.sum())), np.int64)
