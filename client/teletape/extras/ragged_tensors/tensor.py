"""`tf.RaggedTensor`: rows of several lengths. A composite of flat values and of row splits.

Methods that need other functions are defined in the modules above this one, and are added by `methods.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import numpy as np

from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import NotDense, RaggedValue, Structure
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.extras.ragged_tensors.partition import RowPartition
from teletape.extras.ragged_tensors.spec import RaggedTensorSpec
from teletape_engine.catalogue.op import Op
from teletape_engine.spec import Spec

#: An op's form for ragged tensors: a function of its arguments and attributes.
Form = Callable[[Op, Sequence[Any], Mapping[str, Any]], Any]


class RaggedTensor(RaggedValue):
    """Rows of several lengths: `flat_values`, and for each ragged axis `row_splits`, the bounds of its rows.

    The factories `from_row_splits`, `from_row_lengths` and others make one, and so does `tf.ragged.constant`.
    Gradients are those of `flat_values`; `tape.watch` and `tape.gradient` take the ragged tensor itself.

    Attributes:
        partition: The outermost division.
    """

    #: The form of an op, or None; `methods.py` sets it.
    form_of: ClassVar[Callable[[Op], Form | None]]

    _values: Any
    partition: RowPartition

    if TYPE_CHECKING:  # methods.py defines them
        from_row_splits: Any
        from_row_lengths: Any
        from_value_rowids: Any
        from_row_starts: Any
        from_row_limits: Any
        from_uniform_row_length: Any
        from_nested_row_splits: Any
        from_nested_row_lengths: Any
        from_nested_value_rowids: Any
        from_tensor: Any
        from_sparse: Any

        def bounding_shape(self, axis: Any = None, name: Any = None, out_type: Any = None) -> Tensor: ...
        def to_tensor(self, default_value: Any = None, name: Any = None, shape: Any = None) -> Tensor: ...
        def to_sparse(self, name: Any = None) -> Any: ...
        def merge_dims(self, outer_axis: int, inner_axis: int) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
            "RaggedTensor.from_row_lengths())"
        )

    @classmethod
    def of(cls, values: Any, *partitions: RowPartition) -> RaggedTensor:
        """Returns values under partitions, the outermost one first; nothing is checked."""
        for partition in reversed(partitions):
            ragged = cls.__new__(cls)
            ragged._values, ragged.partition = values, partition
            values = ragged
        return values  # type: ignore[no-any-return]  # at least one partition

    # ---------------------------------------------------------------------------------------------------------- parts
    @property
    def values(self) -> Any:
        """The values of all rows, without the outermost division: a tensor, or a ragged tensor."""
        return self._values

    @property
    def flat_values(self) -> Any:
        """The values under all divisions, a tensor."""
        inner = self.values
        while isinstance(inner, RaggedTensor):
            inner = inner.values
        return inner

    @property
    def partitions(self) -> tuple[RowPartition, ...]:
        """The divisions, the outermost one first."""
        inner = self.values.partitions if isinstance(self.values, RaggedTensor) else ()
        return (self.partition, *inner)

    @property
    def row_splits(self) -> Any:
        """The bounds of the rows in `values`: [rows + 1]."""
        return self.partition.splits

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of each division, the outermost one first."""
        return tuple([partition.splits for partition in self.partitions])

    def parts(self) -> tuple[Any, ...]:
        """The flat values and the row splits."""
        return (self.flat_values, *self.nested_row_splits)

    def structure(self) -> Structure:
        """The number of divisions, and the length of the rows of those with a uniform length."""
        return _Ragged(tuple([partition.uniform for partition in self.partitions]))

    def type_spec(self) -> RaggedTensorSpec:
        """The spec that describes it."""
        return RaggedTensorSpec.from_value(self)

    def row_spec(self) -> RaggedTensorSpec:
        """The spec of its rows; of ragged rank 0 if they are dense."""
        return RaggedTensorSpec(self.shape[1:], self.dtype, self.ragged_rank - 1, self.row_splits.dtype)

    # ------------------------------------------------------------------------------------------------------ properties
    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.flat_values.dtype  # type: ignore[no-any-return]  # a tensor's

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for an axis whose length differs from row to row."""
        uniform = [partition.uniform for partition in self.partitions]
        return TensorShape([self.partition.rows, *uniform, *self.flat_values.shape.as_list()[1:]])

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """The number of divisions."""
        return 1 + (self.values.ragged_rank if isinstance(self.values, RaggedTensor) else 0)

    @property
    def uniform_row_length(self) -> Any:
        """The length of every row as a tensor, if the rows were made with one; else None."""
        uniform = self.partition.uniform
        return None if uniform is None else convert_to_tensor(np.array(uniform, self.partition.dtype))

    def consumers(self) -> list[Any]:
        """Returns an empty list: consumers are not recorded."""
        return []

    # ---------------------------------------------------------------------------------------------------------- copies
    def with_values(self, new_values: Any) -> RaggedTensor:
        """Returns the same rows of other values, one for each.

        Raises:
            ValueError: Their number differs.
        """
        values = new_values if isinstance(new_values, RaggedTensor) else convert_to_tensor(new_values)
        TensorShape(self.values.shape.as_list()[:1]).assert_is_compatible_with(TensorShape(values.shape.as_list()[:1]))
        return self.of(values, self.partition)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Returns rows of the same lengths with other flat values, one for each.

        Raises:
            ValueError: Their number differs.
        """
        inner = self.values.with_flat_values(new_values) if isinstance(self.values, RaggedTensor) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """Returns the same ragged tensor with row splits of int32 or int64.

        Raises:
            ValueError: Another dtype.
        """
        wanted = checked_splits_dtype(dtype)
        return self.of(self.flat_values, *[partition.with_dtype(wanted) for partition in self.partitions])

    # ------------------------------------------------------------------------------------------------------------ ops
    def applied(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Returns an op's result for ragged arguments: by its own form, or from the flat values if it is elementwise.

        Raises:
            NotDense: It has neither.
        """
        form = type(self).form_of(op)
        if form is None:
            function = f"tf.{op.functions[0].names[0]}" if op.functions else op.name
            raise NotDense(f"{function} takes no RaggedTensor. {_INSTEAD}")
        return form(op, args, attrs)

    def __tf_tensor__(self, dtype: Any = None, name: Any = None) -> NoReturn:
        self.refuse_conversion()

    def refuse_conversion(self) -> NoReturn:
        """Raises NotDense, whose message says what to do."""
        raise NotDense(f"a tensor is needed, and a RaggedTensor of shape {self.shape} is none. {_INSTEAD}")

    # --------------------------------------------------------------------------------------------------------- values
    def nrows(self, out_type: Any = None, name: Any = None) -> Tensor:
        """Returns the number of rows as a tensor, of the dtype of the row splits or another."""
        return convert_to_tensor(np.array(self.partition.rows, self._integer(out_type)))

    def _integer(self, out_type: Any) -> Any:
        return self.partition.dtype if out_type is None else checked_splits_dtype(out_type)

    def numpy(self) -> Any:
        """Returns the rows as an array; as an array of objects, each a row, unless all rows are equally long."""
        if self.flat_values.session.tracing:
            raise ValueError("RaggedTensor.numpy() is only supported in eager mode.")
        values, splits = self.values.numpy(), self.partition.numbers()
        rows = [values[start:end] for start, end in itertools.pairwise(splits)]
        if not rows:
            return np.zeros((0, 0, *values.shape[1:]), values.dtype)
        several = any(len(row) != len(rows[0]) for row in rows)
        if not several:
            return np.array(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def to_list(self) -> list[Any]:
        """Returns the rows as nested lists of Python values.

        Raises:
            ValueError: In a function that is traced.
        """
        if self.flat_values.session.tracing:
            raise ValueError("to_list can only be used in eager mode.")
        values = self.values.to_list() if isinstance(self.values, RaggedTensor) else self.values.numpy().tolist()
        splits = self.partition.numbers().tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.partition.rows))

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __hash__(self) -> int:
        raise TypeError("RaggedTensor is unhashable.")

    def __repr__(self) -> str:
        if isinstance(self.flat_values, Spec) or self.flat_values.session.tracing:
            return f"tf.RaggedTensor(values={self.values}, row_splits={self.row_splits})"
        with np.printoptions(formatter={"all": _text}):
            return f"<tf.RaggedTensor {_text(self.numpy())}>"


RaggedTensorSpec.ragged_type = RaggedTensor

_INSTEAD: Final = (
    "Use its flat_values (tf.ragged.map_flat_values keeps the rows), make it dense with x.to_tensor(), whose rows are "
    "padded, or map over the rows with tf.map_fn"
)


def _text(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    return np.array2string(value, separator=", ") if value.size else repr(value.tolist())


@dataclass(frozen=True)
class _Ragged:
    """The structure of a ragged tensor: for each division the length of its rows, or None."""

    uniform: tuple[int | None, ...]

    def of(self, parts: Sequence[Any]) -> RaggedTensor:
        partitions = [RowPartition(splits, length) for splits, length in zip(parts[1:], self.uniform, strict=True)]
        return RaggedTensor.of(parts[0], *partitions)

    def spec(self, specs: Sequence[Spec]) -> RaggedTensorSpec:
        shape = [specs[1].shape[0] - 1, *self.uniform, *specs[0].shape[1:]]
        return RaggedTensorSpec(shape, specs[0].dtype, len(self.uniform), specs[1].dtype)


def checked_splits_dtype(dtype: Any) -> Any:
    """The NumPy dtype of row splits; ValueError for another than int32 and int64."""
    wanted = dtypes.as_dtype(dtype).np
    if wanted not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise ValueError(f"Argument `row_splits` dtype must be int32 or int64. Received {dtype}.")
    return wanted


def common_splits(*values: Any) -> list[Any]:
    """Returns the values, after a check that the ragged ones have row splits of the same dtype.

    Raises:
        ValueError: The dtypes differ.
    """
    ragged = [value for value in values if isinstance(value, RaggedTensor)]
    if len({partition.dtype for value in ragged for partition in value.partitions}) > 1:
        raise ValueError(
            "Input RaggedTensors have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to "
            "convert them to compatible dtypes."
        )
    return list(values)
