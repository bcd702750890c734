"""`tf.io.serialize_tensor` and `parse_tensor`: a tensor as the bytes of TensorFlow's TensorProto.

Source: tensorflow/core/framework/tensor.proto: dtype (field 1), tensor_shape (2), tensor_content (4), and a field for
the values of each kind. They are read and written here, so that no library of protocol buffers is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import convert_to_tensor
from teletape.core.errors import InvalidArgumentError
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor
from teletape.tf.files.host import array_of, bytes_of
from teletape_engine.arrays import HostArray
from teletape_engine.spec import KERNEL_NAMES

__all__ = ["parse_tensor", "serialize_tensor"]

_DTYPES: Final = {dtype.as_datatype_enum: dtype for dtype in dtypes.ALL}
_DTYPE, _SHAPE, _CONTENT, _STRING = 1, 2, 4, 8
#: Fields with single numbers: those of a fixed length, with their dtypes, and varints.
_FIXED: Final = {5: "<f4", 6: "<f8", 9: "<c8", 12: "<c16"}
_VARINTS: Final = frozenset((7, 10, 11, 13, 16, 17))


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Returns dtype, shape and values of a tensor as one string, which TensorFlow can parse."""
    value = convert_to_tensor(tensor)
    array = array_of(value)
    lengths = b"".join(_field(2, _number(1, length) if length else b"") for length in array.shape)
    message = _number(_DTYPE, value.dtype.as_datatype_enum) + _field(_SHAPE, lengths)
    if value.dtype is dtypes.string:
        message += b"".join(_field(_STRING, text) for text in array.reshape(-1))
    elif array.size:
        message += _field(_CONTENT, np.ascontiguousarray(array).tobytes())
    return convert_to_tensor(message)


def parse_tensor(serialized: Any, out_type: to.DTypeInput, name: str | None = None) -> Tensor:
    """Returns the tensor of a string that serialize_tensor or make_tensor_proto made, here or in TensorFlow.

    Raises:
        InvalidArgumentError: The string is no tensor, or one of another dtype.
    """
    wanted, array = dtypes.as_dtype(out_type), array_of_message(bytes_of(serialized, "serialized"))
    own = dtypes.as_dtype(array.dtype)
    if own is not wanted:
        names = [KERNEL_NAMES[each.np] for each in (own, wanted)]
        raise InvalidArgumentError(f"Type mismatch between parsed tensor ({names[0]}) and dtype ({names[1]})")
    return convert_to_tensor(array)


def array_of_message(message: bytes) -> HostArray:
    """Returns the array of a TensorProto's bytes.

    Raises:
        InvalidArgumentError: The bytes are no TensorProto, have an unknown dtype, or are too many for its shape.
    """
    try:
        fields = list(_fields(message))
        number = next((value for field, value in fields if field == _DTYPE), 0)
        shape = [
            next((length for part, length in _fields(dimension) if part == 1), 0)
            for field, value in fields
            if field == _SHAPE
            for _, dimension in _fields(value)
        ]
        if number not in _DTYPES:
            raise InvalidArgumentError(
                f"Cannot parse tensor from proto: it has no dtype that is here (number {number})"
            )
        dtype = _DTYPES[number]
        elements = _elements(fields, dtype, math.prod(shape))
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError("Cannot parse tensor from proto: the string is no serialized tensor") from None
    return elements.reshape(shape)


def _elements(fields: list[tuple[int, Any]], dtype: DType, count: int) -> HostArray:
    content = b"".join(value for field, value in fields if field == _CONTENT)
    if content:
        if len(content) != count * dtype.np.itemsize:
            raise InvalidArgumentError(f"Cannot parse tensor from proto: {len(content)} bytes for {count} elements")
        return np.frombuffer(content, dtype.np).copy()
    if dtype is dtypes.string:
        entries = [value for field, value in fields if field == _STRING]
        elements = np.empty(len(entries), object)
        elements[:] = entries
    else:
        elements = _numbers(fields, dtype)
    if elements.size > count:
        raise InvalidArgumentError(f"Cannot parse tensor from proto: {elements.size} values for {count} elements")
    missing = count - elements.size
    last = elements[-1:] if elements.size else np.array([b"" if dtype is dtypes.string else 0], elements.dtype)
    return np.concatenate([elements, np.repeat(last, missing)]) if missing else elements


def _numbers(fields: list[tuple[int, Any]], dtype: DType) -> HostArray:
    """Returns the numbers in a message's field of single numbers."""
    parts: list[HostArray] = [np.zeros(0, np.uint64)]
    for field, value in fields:
        if field in _FIXED:
            parts.append(np.frombuffer(value, _FIXED[field]))
        elif field in _VARINTS:
            parts.append(np.array([value] if isinstance(value, int) else list(_varints(value)), np.uint64))
    numbers = np.concatenate(parts[1:] or parts)
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return numbers.astype(np.uint16).view(dtype.np)
    return numbers.astype(dtype.np)


# ------------------------------------------------------------------------------------------------------- wire format
def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: numbers as integers, all else as bytes.

    Raises:
        IndexError, ValueError: The bytes are no message.
    """
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        kind = key & 7
        if kind == 0:
            number, place = _read_varint(message, place)
            yield key >> 3, number
            continue
        length = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            length, place = _read_varint(message, place)
        if length is None or place + length > len(message):
            raise ValueError("not a message")
        yield key >> 3, message[place : place + length]
        place += length


def _varints(content: bytes) -> Iterator[int]:
    place = 0
    while place < len(content):
        number, place = _read_varint(content, place)
        yield number


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        part = message[place]
        number |= (part & 127) << shift
        shift, place = shift + 7, place + 1
        if part < 128:
            return number, place
