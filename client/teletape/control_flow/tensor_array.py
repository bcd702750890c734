"""What the functions over the leading axis are made of: elements cut out of arrays, and results put together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from teletape.errors import InvalidArgumentError, OutOfRangeError
from teletape.ops.create import zeros
from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.tensors import dtypes, nest
from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import Tensor
from teletape.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.namespace import ops


class Results:
    """What TensorFlow's TensorArray is to these functions: values of one dtype and shape, written in turn, stacked."""

    def __init__(self, dtype: DType, shape: Any, infer_shape: bool) -> None:
        self._dtype, self._shape, self._infer = dtype, TensorShape(shape), infer_shape
        self._values: list[Tensor] = []

    def write(self, given: Any) -> None:
        """Takes the next value; raises as `check`."""
        self._values.append(self.check(given))

    def check(self, given: Any) -> Tensor:
        """A value as a tensor that may stand here.

        Raises:
            teletape.errors.InvalidArgumentError: Of another dtype.
            ValueError: Of another shape.
        """
        value = convert_to_tensor(given, dtype_hint=self._dtype)
        if value.dtype is not self._dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {value.dtype.name} "
            )
        if not self._shape.is_compatible_with(value.shape):
            raise ValueError(f"Incompatible shape for value ({value.shape}), expected ({self._shape})")
        if self._infer:
            self._shape = self._shape.merge_with(value.shape)
        return value

    def stack(self, *, reverse: bool = False) -> Tensor:
        """All of them along a new leading axis."""
        if not self._values:
            sizes = [] if self._shape.rank is None else [size or 0 for size in self._shape.as_list()]
            return zeros([0, *sizes], self._dtype)
        return call(ops.stack, self._values[::-1] if reverse else self._values)


def rows_of(tensor: Tensor) -> list[Tensor]:
    """The elements along axis 0, by halves: the gradient of all of them takes time n log n, one by one n squared."""
    if tensor.dtype is dtypes.string:
        return [constant(one) for one in tensor.numpy()]
    length = tensor.shape.as_list()[0]
    if length <= _DIRECT:
        return [_cut(tensor, at) for at in range(length)]
    half = length // 2
    return rows_of(_cut(tensor, (None, half, None))) + rows_of(_cut(tensor, (half, None, None)))


_DIRECT: Final = 4
NOTHING_FIRST: Final = "Tried to read from index 0 but array size is: 0 "
NOTHING_LAST: Final = "Reading from negative indices (index -1) is not allowed."


def _cut(tensor: Tensor, at: Any) -> Tensor:
    return call(ops.strided_slice, (tensor,), index=(at,))


def check_callable(fn: Any, text: str = "{} is not callable. Please provide a callable function.") -> None:
    """TypeError unless it can be called; what has no name is TensorFlow's AttributeError."""
    if not callable(fn):
        raise TypeError(text.format(fn.__name__))


def common_length(tensors: Sequence[Tensor]) -> int:
    """The length that all have along axis 0."""
    first = tensors[0].shape.as_list()[0]
    for one in tensors[1:]:
        other = one.shape.with_rank_at_least(1).as_list()[0]
        if other != first:
            raise ValueError(f"Dimensions {first} and {other} are not compatible")
    return int(first)


def tensors_of(elems: Any) -> list[Tensor]:
    """The leaves as tensors; none is longer than the first."""
    tensors = [convert_to_tensor(one) for one in nest.flatten(elems)]
    length = tensors[0].shape[0]
    for one in tensors:
        if one.shape[0] > length:
            raise ValueError(f"Cannot unstack {one.shape[0]} tensors into a TensorArray of static size {length} ")
    return tensors


def first_row(columns: Sequence[Sequence[Tensor]], order: Sequence[int], reverse: bool) -> list[Tensor]:
    """The element that a loop without an initializer begins with; OutOfRangeError where there is none."""
    if not order:
        raise OutOfRangeError(NOTHING_LAST if reverse else NOTHING_FIRST)
    return row_at(columns, order[0])


def row_at(columns: Iterable[Sequence[Tensor]], at: int) -> list[Tensor]:
    """The element `at` of each column; OutOfRangeError where one has none."""
    for column in columns:
        if at >= len(column):
            raise OutOfRangeError(f"Tried to read from index {at} but array size is: {len(column)} ")
    return [column[at] for column in columns]
