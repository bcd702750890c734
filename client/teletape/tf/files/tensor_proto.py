"""`tf.make_tensor_proto` and `tf.make_ndarray`: arrays as TensorFlow's message TensorProto, and back.

Source of the fields: tensorflow/core/framework/tensor.proto, tensor_shape.proto and types.proto.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.tensors import dtypes
from teletape.core.tensors.convert import host_array
from teletape.core.tensors.tensor import TensorLike
from teletape.tf.files.descriptions import Description
from teletape.tf.files.tensor_messages import array_of_message
from teletape_engine.arrays import HostArray
from teletape_engine.spec import KERNEL_NAMES

_HALVES: Final = ("float16", "bfloat16")
#: The fields for single numbers: name, number and kind of the field, and the dtypes in it.
_FIELDS: Final = (
    ("float_val", 5, "TYPE_FLOAT", ("float32",)),
    ("double_val", 6, "TYPE_DOUBLE", ("float64",)),
    ("int_val", 7, "TYPE_INT32", ("int32", "int16", "int8", "uint16", "uint8")),
    ("string_val", 8, "TYPE_BYTES", ("string",)),
    ("scomplex_val", 9, "TYPE_FLOAT", ("complex64",)),
    ("int64_val", 10, "TYPE_INT64", ("int64",)),
    ("bool_val", 11, "TYPE_BOOL", ("bool",)),
    ("dcomplex_val", 12, "TYPE_DOUBLE", ("complex128",)),
    ("half_val", 13, "TYPE_INT32", _HALVES),
    ("uint32_val", 16, "TYPE_UINT32", ("uint32",)),
    ("uint64_val", 17, "TYPE_UINT64", ("uint64",)),
)
#: Dtypes of which also many elements are single numbers.
_ONE_BY_ONE: Final = frozenset(("bool", "complex64", "complex128", "string", "uint16"))


@functools.cache
def _message_class() -> Any:
    file = Description("tensor", "tf.make_tensor_proto and tf.make_ndarray")
    names = {f"DT_{KERNEL_NAMES[dtype.np].upper()}": dtype.as_datatype_enum for dtype in dtypes.ALL}
    file.enum("DataType", {"DT_INVALID": 0, **names})
    shape, tensor = file.message("TensorShapeProto"), file.message("TensorProto")
    dimension = shape.nested_type.add(name="Dim")
    file.field(dimension, "size", 1, "TYPE_INT64")
    file.field(dimension, "name", 2, "TYPE_STRING")
    file.field(shape, "dim", 2, "TYPE_MESSAGE", of="TensorShapeProto.Dim", repeated=True)
    file.field(shape, "unknown_rank", 3, "TYPE_BOOL")
    file.field(tensor, "dtype", 1, "TYPE_ENUM", of="DataType")
    file.field(tensor, "tensor_shape", 2, "TYPE_MESSAGE", of="TensorShapeProto")
    file.field(tensor, "version_number", 3, "TYPE_INT32")
    file.field(tensor, "tensor_content", 4, "TYPE_BYTES")
    for name, number, kind, _ in _FIELDS:
        file.field(tensor, name, number, kind, repeated=True)
    return file.classes(["TensorProto"])["TensorProto"]


def make_tensor_proto(
    values: Any,
    dtype: to.DTypeInput | None = None,
    shape: to.IntsInput | None = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """Returns a TensorProto of `values`; its `SerializeToString` returns the bytes.

    Args:
        values: Numbers, strings, lists of them, an array or a tensor.
        dtype: Its dtype; None: that of `tf.constant(values)`.
        shape: Its shape; None: that of `values`. If the shape has more elements, the last one is repeated.
        verify_shape: Whether another shape than that of `values` is refused.
        allow_broadcast: Whether only a single element may be repeated.

    Raises:
        TypeError: `values` of another dtype or shape.
        ValueError: More elements than the shape has; no tensor can be made of `values`.
        ModuleNotFoundError: protobuf is not installed.

    Example:
        tf.make_tensor_proto([1, 2, 3], shape=[3])
    """
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    message_class = _message_class()
    if isinstance(values, message_class):
        return values
    if values is None:
        raise ValueError("None values not supported.")
    array = host_array(
        np.asarray(values) if isinstance(values, TensorLike) else values,
        None if dtype is None else dtypes.as_dtype(dtype),
    )
    sizes = [*array.shape] if shape is None else to.ints(shape, "shape")
    count = math.prod(sizes)
    unlike = array.size != count and array.size != 1 if allow_broadcast else verify_shape and array.shape != (*sizes,)
    if unlike:
        raise TypeError(f"Expected Tensor's shape: {(*sizes,)}, but got {array.shape}.")
    if array.size > count and not allow_broadcast:
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {array.size}.")
    own = dtypes.as_dtype(array.dtype)
    fields: dict[str, Any]
    if array.size == count > 1 and own.name not in _ONE_BY_ONE:
        fields = {"tensor_content": array.tobytes()}
    else:
        name = next(name for name, _, _, listed in _FIELDS if own.name in listed)
        fields = {name: _plain(array.reshape(-1), own)}
    dimensions = {"dim": [{"size": size} for size in sizes]}
    return message_class(dtype=own.as_datatype_enum, tensor_shape=dimensions, **fields)


def _plain(flat: HostArray, dtype: dtypes.DType) -> list[Any]:
    """Returns the elements as Python values of a field."""
    if dtype.name in _HALVES:
        flat = flat.view(np.uint16)
    elif dtype.is_complex:
        flat = flat.view(dtype.real_dtype.np)
    return list(flat.tolist())


def make_ndarray(tensor: Any) -> HostArray:
    """Returns the array of a TensorProto, made here or by TensorFlow; the last of too few elements fills the rest.

    Raises:
        InvalidArgumentError: Its dtype is not one of those here, or the elements do not fit its shape.

    Example:
        tf.make_ndarray(tf.make_tensor_proto([[1, 2], [3, 4]]))
    """
    return array_of_message(tensor.SerializeToString())
