"""`tf.TensorArray`: tensors under the numbers 0, 1, 2, …, written one by one and read or stacked later.

Outside loops on tensors it is a list. An index that is not known while a function is traced makes it one tensor of all
elements, which a loop carries; a write replaces a row of it. An array of dynamic size has room for what the loop may
write then, and a length (growth.py). Long because each method works on these three forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from teletape.core.calls.dispatch import call, constant, convert_to_tensor, known_elements
from teletape.core.calls.operators import entry
from teletape.core.errors import InvalidArgumentError, OutOfRangeError
from teletape.core.functions.trace import NotTraceable
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import TypeSpec
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.control_flow.elements import element_of, elements_of
from teletape.tf.control_flow.growth import REMEDY, Grown, Unbounded, ask_for, followed, key_of
from teletape.tf.ops.arrays.create import zeros
from teletape.tf.ops.arrays.rearrange import concat
from teletape_engine.catalogue.namespace import ops

__all__ = ["TensorArray"]


class TensorArray:
    """Tensors of one dtype by index. Outside functions a write changes the array; inside it returns a new one.

    Args:
        dtype: The dtype of each element.
        size: The initial number of elements.
        dynamic_size: Whether a write beyond the end makes it longer.
        clear_after_read: Whether an element can be read once only. Inside functions it has no effect.
        tensor_array_name: Accepted, without effect.
        handle: Not supported: a TensorArray has none.
        flow: Accepted, without effect.
        infer_shape: Whether all elements must have the shape of the first one.
        element_shape: The shape of each element, as far as it is known.
        colocate_with_first_write_call: Accepted, without effect.
        name: Accepted, without effect.

    Raises:
        ValueError: A handle.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None:
            raise ValueError("Cannot provide a handle to tf.TensorArray: it has none. Give its size instead.")
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        self._clears = True if clear_after_read is None else bool(clear_after_read)
        self._infers = infer_shape
        self._shape = TensorShape(element_shape)
        self._elements: list[Tensor | None] = [None] * _number(0 if size is None else size, "size")
        self._cleared: set[int] = set()
        self._rows: Tensor | None = None  # all elements as one tensor: then `_elements` is empty
        self._length: Tensor | None = None  # the number of rows that are elements; None: all
        self._writes: list[Tensor] | None = None  # the indices of writes that are only noted, to find the room for them
        self._trace: Any = None  # the array to which the room belongs

    # ------------------------------------------------------------------------------------------------------ properties
    @property
    def dtype(self) -> DType:
        """The dtype of each element."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether a write beyond the end makes it longer."""
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return self._shape

    @property
    def flow(self) -> Tensor:
        """A scalar that stands for the state in TensorFlow's graphs."""
        return constant(0.0)

    @property
    def handle(self) -> None:
        """Always None: a TensorArray has no handle."""
        return None

    def identity(self) -> TensorArray:
        """Returns a TensorArray with the same elements."""
        return self._copy()

    def __len__(self) -> int:
        return len(self._elements) if self._rows is None else int(self._rows.shape.as_list()[0])

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements, an int32 scalar."""
        return constant(len(self)) if self._length is None else self._length

    def close(self, name: str | None = None) -> None:
        """Forgets all elements."""
        self._elements, self._rows, self._length = [], None, None

    def grad(self, source: Any, flow: Any = None, name: str | None = None) -> Any:
        """Not supported: a tape computes the gradients of elements that are read or stacked.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("TensorArray.grad is not supported: use tf.GradientTape")

    # ------------------------------------------------------------------------------------------------ single elements
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Sets an element, and returns the TensorArray to use from now on.

        Raises:
            teletape.errors.OutOfRangeError: The index is beyond the end, and the size is not dynamic.
            teletape.errors.InvalidArgumentError: A value of another dtype.
            ValueError: A value of another shape.
        """
        tensor = self._checked(value)
        written = self._target()
        if written._length is not None:
            return written._with_more(convert_to_tensor(index), tensor)
        number = _known(index) if written._can_be_rows(tensor) else _value(index)
        if number is not None and self._dynamic and written._rows is not None:
            rows = written._rows
            written._elements, written._rows = list(elements_of(rows)) if rows.shape[0] else [], None
        if number is None or written._rows is not None:
            return written._with_row(index, tensor)
        if number < 0:
            raise OutOfRangeError(f"Writing to negative indices (index {number}) is not allowed.")
        if number >= len(written._elements):
            if not self._dynamic:
                raise OutOfRangeError(
                    f"Tried to write to index {number} but array is not resizeable and size is: "
                    f"{len(written._elements)} "
                )
            written._elements += [None] * (number + 1 - len(written._elements))
        written._elements[number] = tensor
        written._cleared.discard(number)
        return written

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Returns an element.

        Raises:
            teletape.errors.OutOfRangeError: There is none at that index.
            teletape.errors.InvalidArgumentError: It was read before, and `clear_after_read` is true; or it was never
                written, and its shape is not known.
        """
        number = _known(index) if self._can_be_rows() else _value(index)
        if number is None or self._rows is not None:
            rows = self._as_rows(None)
            return entry(rows, self._position(convert_to_tensor(index), rows, "access"))
        if number < 0:
            raise OutOfRangeError(f"Reading from negative indices (index {number}) is not allowed.")
        if number >= len(self._elements):
            raise OutOfRangeError(f"Tried to read from index {number} but array size is: {len(self._elements)} ")
        if number in self._cleared:
            raise InvalidArgumentError(
                f"Could not read index {number} twice because it was cleared after a previous read (perhaps try "
                "setting clear_after_read = false?)"
            )
        tensor = self._element(number)
        if self._clears and not current().tracing:
            self._elements[number] = None
            self._cleared.add(number)
        return tensor

    # --------------------------------------------------------------------------------------------------- all elements
    def stack(self, name: str | None = None) -> Tensor:
        """Returns all elements along a new axis 0; those that were never written are zeros."""
        rows = self._as_rows(None)
        if self._length is None:
            return rows
        length = known_elements(self._length)
        if length is None:
            return Grown((rows, self._length))  # type: ignore[return-value]  # a function returns it as a tensor
        return call(ops.strided_slice, (rows,), index=((0, int(length), None),))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Returns the elements at these indices along a new axis 0."""
        numbers = convert_to_tensor(indices)
        if self._rows is None and numbers.shape.rank == 1:
            known = known_elements(numbers) if self._can_be_rows() else numbers.numpy()
            if known is not None:
                return call(ops.stack, [self._element(int(number)) for number in known])
        return call(ops.gather, (self._as_rows(None), numbers), axis=0)

    def concat(self, name: str | None = None) -> Tensor:
        """Returns the elements, which have one axis or more, one after the other along axis 0."""
        if self._length is not None:
            return call(ops.reshape, (self.stack(),), shape=(-1, *self._shape.as_list()[1:]))
        if self._rows is not None:
            rows = self._rows
            return call(ops.reshape, (rows,), shape=(-1, *rows.shape.as_list()[2:]))
        return concat([self._element(number) for number in range(len(self._elements))], 0)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Sets the elements to those of a tensor along axis 0, and returns the TensorArray to use from now on.

        Raises:
            ValueError: More than there are, and the size is not dynamic.
        """
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        return self._filled(elements_of(tensor) if tensor.shape[0] else [], "unstack")

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Sets the elements at these indices to those of a tensor, and returns the TensorArray to use from now on."""
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        written = self
        for number, element in zip(elements_of(convert_to_tensor(indices)), elements_of(tensor), strict=True):
            written = written.write(number, element)
        return written

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Sets the elements to parts of a tensor along axis 0, and returns the TensorArray to use from now on.

        The parts may differ in length; then the shape of the elements is not known.

        Raises:
            InvalidArgumentError: The lengths do not add up to that of the tensor, or there are not as many as elements.
        """
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        sizes = [int(length) for length in convert_to_tensor(lengths).numpy()]
        if sum(sizes) != tensor.shape[0]:
            raise InvalidArgumentError(
                f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(sizes)} and "
                f"value's shape is: {tensor.shape} "
            )
        parts, start = [], 0
        for length in sizes:
            parts.append(call(ops.strided_slice, (tensor,), index=((start, start + length, None),)))
            start += length
        if len(parts) != len(self) and not self._dynamic:
            raise InvalidArgumentError(
                f"TensorArray's size is not equal to the size of lengths ({len(self)} vs. {len(parts)}), and the "
                "TensorArray is not marked as dynamically resizeable."
            )
        if len(set(sizes)) < 2:
            return self._filled(parts, "split")
        unequal = self._target()
        unequal._shape = TensorShape(None)
        elements: list[Tensor | None] = [unequal._checked(part, infers=False) for part in parts]
        unequal._elements, unequal._rows, unequal._cleared = elements, None, set()
        return unequal

    # ------------------------------------------------------------------------------------------------- for a loop
    @property
    def elements_are_known(self) -> bool:
        """Whether the shape of its elements is known, so that all of them can be one tensor."""
        return self._rows is not None or self._shape.is_fully_defined()

    @property
    def part_count(self) -> int:
        """The number of its tensors."""
        return int(self.elements_are_known) + (self._length is not None)

    def parts(self) -> list[Tensor]:
        """Returns its tensors: all elements as one, if their shape is known, and their number if the array may grow."""
        rows = [self._as_rows(None)] if self.elements_are_known else []
        return rows if self._length is None else [*rows, self._length]

    def with_parts(self, parts: Sequence[Tensor]) -> TensorArray:
        """Returns a TensorArray of the same kind with these tensors."""
        array, rows = self._copy(), list(parts)
        if array._length is not None:
            array._length = rows.pop()
        if rows:
            array._rows, array._elements = rows[0], []
        return array

    @property
    def may_grow(self) -> bool:
        """Whether a loop of this trace may need room in it: its size is dynamic, and no outer loop has made room."""
        return self._dynamic and self._writes is None and self._trace in (None, current())

    @property
    def notes_writes(self) -> bool:
        """Whether it only notes which indices are written."""
        return self._writes is not None

    def noting_writes(self) -> TensorArray:
        """Returns a TensorArray with the same elements that only notes which indices are written."""
        array = self._copy()
        array._length = constant(len(self)) if self._length is None else self._length
        array._writes = []
        return array

    def room(self, before: TensorArray, numbers: Mapping[Any, Any], count: int) -> int:
        """Returns the number of elements that it may have after the writes that it has noted.

        Args:
            before: The array at the beginning of the iteration.
            numbers: The known values of scalars in each iteration; see `growth.numbers_of`.
            count: The number of iterations.

        Raises:
            NotTraceable: It is not known what a write's index may be.
        """
        assert before._length is not None
        writes, most = self._writes or (), len(self)
        for at in writes:
            values = followed(at, numbers)
            most = most if values is None else max(most, int(values.max()) + 1)
        lengths = {key_of(before._length): most + len(writes) * np.arange(count + 1)}
        for at in writes:
            values = followed(at, {**numbers, **lengths} if followed(at, numbers) is None else numbers)
            if values is None:
                raise NotTraceable("writes to a TensorArray of dynamic size at an index without a known bound", REMEDY)
            most = max(most, int(values.max()) + 1)
        return most

    def with_room(self, count: int, shape: TensorShape) -> TensorArray:
        """Returns a TensorArray with the same elements, of this shape, that a loop may fill up to `count`."""
        array = self.noting_writes().of_shape(shape)
        array._rows = _padded(array._as_rows(None), count)
        array._elements, array._writes, array._trace = [], None, current()
        return array

    def of_shape(self, shape: TensorShape) -> TensorArray:
        """Returns a TensorArray with the same elements, of which this shape is known."""
        array = self._copy()
        array._shape = shape
        return array

    # ----------------------------------------------------------------------------------------------------- internals
    def _copy(self) -> TensorArray:
        array = TensorArray.__new__(TensorArray)
        array.__dict__.update(self.__dict__)
        array._elements, array._cleared = list(self._elements), set(self._cleared)
        return array

    def _target(self) -> TensorArray:
        """Returns the array to write to: this object outside functions, a new one inside."""
        return self._copy() if current().tracing else self

    def _checked(self, value: Any, infers: bool = True) -> Tensor:
        """Returns a value as an element; raises as `write`. The shape of elements becomes known if `infers`."""
        tensor = element_of(value, self._dtype, self._shape)
        if infers and self._infers:
            self._shape = self._shape.merge_with(tensor.shape)
        return tensor

    def _element(self, number: int) -> Tensor:
        element = self._elements[number]
        if element is not None:
            return element
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(
                f"Could not read from TensorArray index {number}. Furthermore, the element shape is not fully defined: "
                f"{self._shape}. It is possible you are working with a resizeable TensorArray and stop_gradients is "
                "not allowing the gradients to be written. If you set the full element_shape property on the forward "
                "TensorArray, the proper all-zeros tensor will be returned instead of incurring this error."
            )
        return zeros(self._shape.as_list(), self._dtype)

    def _filled(self, elements: Sequence[Tensor], what: str) -> TensorArray:
        array = self._target()
        if len(elements) > len(array) and not self._dynamic:
            raise ValueError(f"Cannot {what} {len(elements)} tensors into a TensorArray of static size {len(array)} ")
        checked: list[Tensor | None] = [array._checked(element) for element in elements]
        array._elements, array._rows, array._cleared = checked, None, set()
        return array

    def _can_be_rows(self, like: Tensor | None = None) -> bool:
        """Whether an index that is not known is allowed here, so that all elements become one tensor.

        Outside functions every element must have been written, and none cleared.

        Args:
            like: An element of their shape, before a write.
        """
        if current().tracing or self._rows is not None:
            return True
        if self._dynamic or self._cleared or not self._infers:
            return False
        shape = self._shape if like is None else like.shape
        return all(shape.is_fully_defined() if each is None else each.shape == shape for each in self._elements)

    def _as_rows(self, like: Tensor | None) -> Tensor:
        """Returns all elements as one tensor; `like` is an element of their shape."""
        if self._rows is not None:
            return self._rows
        if not self._elements:
            shape = self._shape if like is None else like.shape
            sizes = [] if shape.rank is None else [length or 0 for length in shape.as_list()]
            return zeros([0, *sizes], self._dtype)
        if like is not None and not self._shape.is_fully_defined():
            self._shape = like.shape
        if all(element is None for element in self._elements) and self._shape.is_fully_defined():
            return zeros([len(self._elements), *self._shape.as_list()], self._dtype)
        return call(ops.stack, [self._element(number) for number in range(len(self._elements))])

    def _with_more(self, at: Tensor, tensor: Tensor) -> TensorArray:
        """Returns the TensorArray, which may grow, with an element added or replaced."""
        assert self._length is not None
        if self._writes is not None:
            self._writes.append(at)
            return self
        assert self._rows is not None
        number = known_elements(at)
        if self._trace is current():  # no loop has made room for it
            if number is None and key_of(at) != key_of(self._length):
                raise NotTraceable("writes to a TensorArray of dynamic size at an index without a known bound", REMEDY)
            self._rows = _padded(self._rows, max(len(self), (len(self) if number is None else int(number)) + 1))
        position = self._position(at, self._rows, "modify")
        place = call(ops.reshape, (position,), shape=(1, 1))
        self._rows = call(ops.tensor_scatter_nd_update, (self._rows, place, tensor[None]))
        length = call(ops.cast, (position,), dtype=self._length.dtype.np) + 1
        self._length = call(ops.maximum, (self._length, length))
        return self

    def _with_row(self, index: Any, tensor: Tensor) -> TensorArray:
        """Returns the TensorArray as one tensor, with the element at an unknown index replaced."""
        if self._dynamic:
            why = "writes to a TensorArray of dynamic size in a loop without a known number of iterations at most"
            ask_for(convert_to_tensor(index), why)
            raise Unbounded(why)
        rows = self._as_rows(tensor)
        at = call(ops.reshape, (self._position(convert_to_tensor(index), rows, "modify"),), shape=(1, 1))
        self._rows, self._elements = call(ops.tensor_scatter_nd_update, (rows, at, tensor[None])), []
        self._cleared.clear()
        return self

    @staticmethod
    def _position(index: Tensor, rows: Tensor, what: str) -> Tensor:
        """Returns an index that only the server knows, and which it refuses without an element there."""
        length = rows.shape.as_list()[0]
        message = f"Trying to {what} element {{index}} in a list with {length} elements."
        return call(ops.element_index, (index,), length=length, wraps=False, message=message)


def _known(index: Any) -> int | None:
    """Returns an index as a number; None: only the server knows it."""
    if not isinstance(index, TensorLike):
        return int(index)
    host = known_elements(convert_to_tensor(index))
    return None if host is None else int(host)


def _padded(rows: Tensor, count: int) -> Tensor:
    """Returns rows with zeros after them, `count` in all."""
    length, *rest = rows.shape.as_list()
    return rows if count == length else concat([rows, zeros([count - length, *rest], rows.dtype)], 0)


def _value(index: Any) -> int | None:
    """Returns an index as a number, read if it is not known; None if it is not known while a function is traced."""
    return _known(index) if current().tracing else int(index)


def _number(size: Any, what: str) -> int:
    number = _value(size)
    if number is None:
        owner: Any = current()
        number = int(
            owner.elements(convert_to_tensor(size).operand(), f"makes a TensorArray whose {what} is a tensor", REMEDY)
        )
    return number


class TensorArraySpec(TypeSpec):
    """The spec of a TensorArray: the dtype and shape of its elements, and whether it grows.

    Args:
        element_shape: The shape of each element: anything that TensorShape takes.
        dtype: The dtype of each element.
        dynamic_size: Whether a write beyond the end makes it longer.
        infer_shape: Whether all elements must have the shape of the first one.
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape, self._dtype = TensorShape(element_shape), dtypes.as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """The spec of a TensorArray.

        Raises:
            TypeError: Something else.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected TensorArray. Received: {value} of type {type(value).__name__}.")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infers)

    @property
    def fields(self) -> tuple[Any, ...]:
        """The arguments that make an equal spec."""
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def value_type(self) -> type[TensorArray]:
        """The type of the values: TensorArray."""
        return TensorArray
