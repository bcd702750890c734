"""`tf.io.serialize_tensor` and `parse_tensor`: a tensor as the bytes of TensorFlow's TensorProto.

Source: tensorflow/core/framework/tensor.proto: dtype (field 1), tensor_shape (2), tensor_content (4), string_val (8).
The four fields are read and written here, so that no library of protocol buffers is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from teletape.errors import InvalidArgumentError, UnimplementedError
from teletape.files.host import array_of, bytes_of
from teletape.ops import arguments as to
from teletape.ops.dispatch import convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import Tensor
from teletape_engine.spec import KERNEL_NAMES

__all__ = ["parse_tensor", "serialize_tensor"]

_NUMBERS: Final = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
_NAMES: Final = {number: name for name, number in _NUMBERS.items()}
_DTYPE, _SHAPE, _CONTENT, _STRING = 1, 2, 4, 8
_VALUES: Final = frozenset((3, *range(5, 8), *range(9, 18)))  #: Fields with numbers one by one.


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Returns dtype, shape and values of a tensor as one string, which TensorFlow can parse."""
    value = convert_to_tensor(tensor)
    array = array_of(value)
    lengths = b"".join(_field(2, _number(1, length) if length else b"") for length in array.shape)
    message = _number(_DTYPE, _NUMBERS[value.dtype.name]) + _field(_SHAPE, lengths)
    if value.dtype is dtypes.string:
        message += b"".join(_field(_STRING, text) for text in array.reshape(-1))
    elif array.size:
        message += _field(_CONTENT, np.ascontiguousarray(array).tobytes())
    return convert_to_tensor(message)


def parse_tensor(serialized: Any, out_type: to.DTypeInput, name: str | None = None) -> Tensor:
    """Returns the tensor of a string that serialize_tensor made, here or in TensorFlow.

    Raises:
        InvalidArgumentError: The string is no tensor, or one of another dtype.
        UnimplementedError: It holds the values one by one, as tf.make_tensor_proto can write them.
    """
    wanted, message = dtypes.as_dtype(out_type), bytes_of(serialized, "serialized")
    try:
        fields = list(_fields(message))
        number = next((value for field, value in fields if field == _DTYPE), 0)
        shape = [
            next((length for part, length in _fields(dimension) if part == 1), 0)
            for field, value in fields
            if field == _SHAPE
            for _, dimension in _fields(value)
        ]
    except (IndexError, TypeError, ValueError):
        raise InvalidArgumentError("Cannot parse tensor from proto: the string is no serialized tensor") from None
    if number not in _NAMES:
        raise InvalidArgumentError(f"Cannot parse tensor from proto: it has no dtype that is here (number {number})")
    dtype = dtypes.as_dtype(_NAMES[number])
    if dtype is not wanted:
        names = [KERNEL_NAMES[each.np] for each in (dtype, wanted)]
        raise InvalidArgumentError(f"Type mismatch between parsed tensor ({names[0]}) and dtype ({names[1]})")
    return _values_of(fields, wanted, shape)


def _values_of(fields: list[tuple[int, Any]], dtype: DType, shape: list[int]) -> Tensor:
    size = math.prod(shape)
    if dtype is dtypes.string:
        texts = np.empty(size, object)
        entries = [value for field, value in fields if field == _STRING]
        if len(entries) != size:
            raise InvalidArgumentError(f"Cannot parse tensor from proto: {len(entries)} strings for the shape {shape}")
        texts[:] = entries
        return convert_to_tensor(texts.reshape(shape))
    if any(field in _VALUES for field, _ in fields):
        raise UnimplementedError("the tensor has its values one by one: serialize it with tf.io.serialize_tensor")
    content = b"".join(value for field, value in fields if field == _CONTENT)
    if len(content) != size * dtype.np.itemsize:
        raise InvalidArgumentError(f"Cannot parse tensor from proto: {len(content)} bytes for the shape {shape}")
    return convert_to_tensor(np.frombuffer(content, dtype.np).reshape(shape))


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


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        part = message[place]
        number |= (part & 127) << shift
        shift, place = shift + 7, place + 1
        if part < 128:
            return number, place
