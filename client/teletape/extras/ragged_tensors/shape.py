"""The result of `tf.shape` of a ragged tensor: the lengths of its axes, or those of each row if they differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import constant
from teletape.core.tensors.dtypes import DType, as_dtype
from teletape.extras.ragged_tensors.tensor import RaggedTensor


class DynamicRaggedShape:
    """The shape of a ragged tensor: `shape[i]` is the length of axis i, as a tensor, if it does not differ by row.

    Args:
        value: The ragged tensor.
        dtype: The dtype of the lengths.
    """

    def __init__(self, value: RaggedTensor, dtype: Any) -> None:
        self._value, self._dtype = value, as_dtype(dtype)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self._value.shape)

    @property
    def num_row_partitions(self) -> int:
        """The number of divisions."""
        return self._value.ragged_rank

    @property
    def dtype(self) -> DType:
        """The dtype of the lengths."""
        return self._dtype

    def static_lengths(self) -> list[Any]:
        """The length of each axis: a number, or a tuple of the lengths of the rows."""
        lengths = self._value.shape.as_list()
        for axis, division in enumerate(self._value.partitions, 1):
            if division.uniform is None:
                lengths[axis] = tuple(np.diff(division.numbers()).tolist())
        return lengths

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, axis: Any) -> Any:
        """The length of an axis as a tensor.

        Raises:
            ValueError: It differs from row to row.
            TypeError: No whole number.
        """
        if isinstance(axis, slice):
            raise TypeError("a part of the shape of a RaggedTensor: use x.shape, or x.bounding_shape()")
        lengths = self._value.shape.as_list()
        length = lengths[axis]
        if length is None:
            raise ValueError(f"Index {axis} is not uniform")
        return constant(np.array(length, self._dtype.np))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{shown}] num_row_partitions={self.num_row_partitions}>"
