"""`tf.RaggedTensorSpec`: the shape and dtype of a ragged tensor that does not exist yet."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

from teletape.core.functions.tensor_spec import TensorSpec
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import RaggedValue, ShapedSpec
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.ragged_tensors.partition import RowPartition


class RaggedTensorSpec(ShapedSpec):
    """Shape, dtype and ragged rank of a ragged tensor.

    Args:
        shape: Anything that TensorShape takes; None if the rank is unknown.
        dtype: The element type.
        ragged_rank: The number of axes after the first one that have rows; None: all but the first.
        row_splits_dtype: int32 or int64.

    Raises:
        ValueError: The ragged rank is unknown, or not less than the rank; another dtype of the row splits.
    """

    ragged_type: ClassVar[Any] = RaggedValue  # RaggedTensor's module sets it

    __slots__ = ("_ragged_rank", "_row_splits_dtype")

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        self._shape, self._dtype = TensorShape(shape), dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        if self._row_splits_dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(
                "Argument `row_splits_dtype` must be int32 or int64, found " + self._row_splits_dtype.name + "."
            )
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if rank is not None and ragged_rank >= rank:
            raise ValueError(f"Argument `ragged_rank` ({ragged_rank}) must be less than rank ({rank}).")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a ragged tensor.

        Raises:
            ValueError: Something else.
        """
        if not isinstance(value, RaggedValue):
            raise ValueError(f"`value` should be a tf.RaggedTensor, but got type {type(value)}.")
        ragged: Any = value
        return cls(value.shape, value.dtype, ragged.ragged_rank, ragged.row_splits.dtype)

    def in_parts(self) -> Any:
        """Returns a ragged tensor of the specs of its parts; without ragged axes a TensorSpec."""
        divisions = self._ragged_rank
        if not divisions:
            return TensorSpec(self._shape, self._dtype)
        is_known = self._shape.rank is not None
        rows, *lengths = self._shape.as_list() if is_known else [None] * (divisions + 1)
        values = TensorSpec([None, *lengths[divisions:]] if is_known else None, self._dtype)
        ends = [None if rows is None else rows + 1, *[None] * (divisions - 1)]
        splits = [TensorSpec([end], self._row_splits_dtype) for end in ends]
        return self.ragged_type.of(values, *map(RowPartition, splits, lengths[:divisions]))

    def rows(self) -> Any:
        """Returns a collector of rows: `write` appends one, `stack` makes a ragged tensor of them."""
        return importlib.import_module("teletape.extras.ragged_tensors.mapped_rows").MappedRows(self)  # built on this

    @property
    def value_type(self) -> type:
        """The type of the values: RaggedTensor, or Tensor for a spec without ragged axes."""
        return self.ragged_type if self._ragged_rank else Tensor

    @property
    def ragged_rank(self) -> int:
        """The number of axes after the first one that have rows."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """The dtype of the row splits."""
        return self._row_splits_dtype

    @property
    def name(self) -> None:
        """Always None: ragged specs have no label."""
        return None

    @property
    def fields(self) -> tuple[Any, ...]:
        """The constructor arguments of an equal spec."""
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype
