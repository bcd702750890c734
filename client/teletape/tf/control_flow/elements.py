"""Cuts tensors into elements along axis 0, and stacks results; TensorFlow's loops use TensorArrays for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError, OutOfRangeError
from teletape.core.tensors import dtypes, nest
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.ops.arrays.create import zeros
from teletape_engine.catalogue.namespace import ops
from teletape_engine.functions.control_flow import cut_by_halves

_NO_FIRST: Final = "Tried to read from index 0 but array size is: 0 "
_NO_LAST: Final = "Reading from negative indices (index -1) is not allowed."


def element_of(value: Any, dtype: DType, shape: TensorShape) -> Tensor:
    """Returns a value as an element of an array.

    Raises:
        teletape.errors.InvalidArgumentError: It has another dtype.
        ValueError: It has another shape.
    """
    tensor = convert_to_tensor(value, dtype_hint=dtype)
    if tensor.dtype is not dtype:
        raise InvalidArgumentError(
            f"TensorArray dtype is {dtype.name} but Op is trying to write dtype {tensor.dtype.name} "
        )
    if not shape.is_compatible_with(tensor.shape):
        raise ValueError(f"Incompatible shape for value ({tensor.shape}), expected ({shape})")
    return tensor


class Results:
    """Tensors of one dtype and shape, written one after the other and then stacked.

    Args:
        dtype: The dtype of each.
        shape: The shape of each; None: not known.
        infer_shape: Whether the first tensor's shape is required of the others.
    """

    def __init__(self, dtype: DType, shape: Any, infer_shape: bool) -> None:
        self._dtype, self._shape, self._infer = dtype, TensorShape(shape), infer_shape
        self._tensors: list[Tensor] = []

    def write(self, value: Any) -> None:
        """Appends a value; raises as `check`."""
        self._tensors.append(self.check(value))

    def check(self, value: Any) -> Tensor:
        """Returns a value as a tensor; raises as `element_of`."""
        tensor = element_of(value, self._dtype, self._shape)
        if self._infer:
            self._shape = self._shape.merge_with(tensor.shape)
        return tensor

    def stack(self, *, reverse: bool = False) -> Tensor:
        """Returns all of them along a new leading axis."""
        if not self._tensors:
            sizes = [] if self._shape.rank is None else [size or 0 for size in self._shape.as_list()]
            return zeros([0, *sizes], self._dtype)
        return call(ops.stack, self._tensors[::-1] if reverse else self._tensors)


def elements_of(tensor: Any) -> list[Any]:
    """Returns the elements along axis 0; they are cut in halves, so that their gradient takes time n log n."""
    if isinstance(tensor, RaggedValue):
        return list(tensor)  # type: ignore[call-overload,no-any-return]  # a ragged tensor is iterated over its rows
    if tensor.dtype is dtypes.string:
        return [constant(text) for text in tensor.numpy()]
    return cut_by_halves(tensor, tensor.shape.as_list()[0], _cut)


def _cut(tensor: Tensor, index: Any) -> Tensor:
    return call(ops.strided_slice, (tensor,), index=(index,))


def check_callable(fn: Any, text: str = "{} is not callable. Please provide a callable function.") -> None:
    """Raises TypeError unless `fn` can be called; TensorFlow's AttributeError if it has no name."""
    if not callable(fn):
        raise TypeError(text.format(fn.__name__))


def common_length(tensors: Sequence[Tensor]) -> int:
    """Returns the length along axis 0; ValueError unless it is the same for all tensors."""
    length = tensors[0].shape.as_list()[0]
    for tensor in tensors[1:]:
        other = tensor.shape.with_rank_at_least(1).as_list()[0]
        if other != length:
            raise ValueError(f"Dimensions {length} and {other} are not compatible")
    return int(length)


def tensors_of(elems: Any) -> list[Tensor]:
    """Returns the leaves as tensors; ValueError if one is longer than the first."""
    tensors = [convert_to_tensor(leaf) for leaf in nest.flatten(elems)]
    length = tensors[0].shape[0]
    for tensor in tensors:
        if tensor.shape[0] > length:
            raise ValueError(f"Cannot unstack {tensor.shape[0]} tensors into a TensorArray of static size {length} ")
    return tensors


def no_elements(reverse: bool) -> OutOfRangeError:
    """Returns TensorFlow's error for a loop without an initializer over no elements."""
    return OutOfRangeError(_NO_LAST if reverse else _NO_FIRST)


def row_at(columns: Iterable[Sequence[Tensor]], index: int) -> list[Tensor]:
    """Returns the element at `index` of each column; OutOfRangeError if a column is too short."""
    for column in columns:
        if index >= len(column):
            raise OutOfRangeError(f"Tried to read from index {index} but array size is: {len(column)} ")
    return [column[index] for column in columns]
