"""The rows that `tf.map_fn` collects for a ragged result, and then makes one ragged tensor of."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls.dispatch import constant, tensor_or_ragged
from teletape.core.errors import InvalidArgumentError
from teletape.extras.ragged_tensors.factories import from_nested_row_splits
from teletape.extras.ragged_tensors.forms.arrangement import stack as stacked
from teletape.extras.ragged_tensors.spec import RaggedTensorSpec
from teletape.tf.ops.arrays.create import zeros


class MappedRows:
    """Tensors or ragged tensors of one dtype and rank, which become the rows of a ragged tensor.

    Args:
        spec: The spec of each; for tensors its ragged rank is 0.
    """

    def __init__(self, spec: RaggedTensorSpec) -> None:
        self._spec = spec
        self._rows: list[Any] = []

    def write(self, value: Any) -> None:
        """Appends a value; raises as `check`."""
        self._rows.append(self.check(value))

    def check(self, value: Any) -> Any:
        """Returns a value as a tensor or ragged tensor.

        Raises:
            teletape.errors.InvalidArgumentError: It has another dtype.
            ValueError: It has another shape.
        """
        row = tensor_or_ragged(value, self._spec.dtype)
        if row.dtype is not self._spec.dtype:
            raise InvalidArgumentError(
                f"fn_output_signature has dtype {self._spec.dtype.name}, but the function returned {row.dtype.name}"
            )
        if not self._spec.shape.is_compatible_with(row.shape):
            raise ValueError(f"Incompatible shape for value ({row.shape}), expected ({self._spec.shape})")
        return row

    def stack(self) -> Any:
        """Returns all of them as the rows of a ragged tensor."""
        if self._rows:
            return stacked(self._rows).with_row_splits_dtype(self._spec.row_splits_dtype)
        shape = self._spec.shape
        inner = [] if shape.rank is None else shape.as_list()[self._spec.ragged_rank + 1 :]
        values = zeros([0, *(length or 0 for length in inner)], self._spec.dtype)
        splits = [constant(np.zeros(1, self._spec.row_splits_dtype.np))] * (self._spec.ragged_rank + 1)
        return from_nested_row_splits(values, splits)
