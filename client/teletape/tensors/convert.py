"""Python values, lists and arrays as host arrays, with the dtype that TensorFlow would give them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from teletape.network import shared_memory
from teletape.sessions.current import current
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.tensor_shape import TensorShape
from teletape_engine.arrays import HostArray
from teletape_engine.spec import INTEGER

_TEXT: Final = (str, bytes, np.str_, np.bytes_)
_INT32: Final = np.iinfo(np.int32)
_INT64: Final = np.iinfo(np.int64)
_TOO_LARGE: Final = "Attempt to convert a value with an integer that does not fit 64 bits to a Tensor."
_WRAPPED: Final = frozenset(dtype for dtype in INTEGER if dtype.itemsize < 8)
_BOUNDS: Final = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in INTEGER}


def host_array(value: Any, dtype: DType | None = None, *, cast: bool = True) -> HostArray:
    """A new host array with the values of `value`, in TensorFlow's dtype for them.

    Args:
        value: A number, string, range, (nested) list or tuple of those, a NumPy array or scalar, or an object with
            `__array__`.
        dtype: The dtype of the result; None: TensorFlow's for the value (int32, float32, bool, complex128, string;
            arrays keep theirs).
        cast: Whether arrays are cast to `dtype` as `tf.constant` does; Python numbers always must fit.

    Raises:
        TypeError: A Python value that the dtype cannot hold.
        ValueError: No tensor can be made of it: None, mixed, ragged, another type.
    """
    if isinstance(value, np.ndarray | np.generic):
        return _from_array(np.asarray(value), dtype, cast)
    if isinstance(value, TensorShape):
        return _of_shape(value, dtype)
    if isinstance(value, list | tuple | range | bool | int | float | complex | str | bytes):
        return _from_python(value, dtype)
    array = getattr(value, "__array__", None)
    if array is None:
        raise ValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor."
        )
    return _from_array(np.asarray(value), dtype, cast)


def _of_shape(shape: TensorShape, dtype: DType | None) -> HostArray:
    lengths = shape.as_list()
    if None in lengths:
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if dtype not in (None, dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Cannot convert TensorShape {shape} to dtype {dtype!r}. Allowed dtypes are tf.int32 and tf.int64."
        )
    array = _from_python(lengths, dtype)
    return array if lengths else array.astype((dtype or dtypes.int32).np)


def _from_array(array: HostArray, dtype: DType | None, cast: bool) -> HostArray:
    if array.dtype.kind in "SUO":
        return _text(array)
    own = dtypes.as_dtype(array.dtype)
    if dtype is None or dtype is own:
        if array.dtype == own.np and not current().home.local:
            return shared_memory.copy(array)
        return array.astype(own.np, order="C", copy=True)  # in this process an array that owns its memory is used again
    if dtype is dtypes.string or not cast:
        raise TypeError(f"Cannot convert an array of {own.name} to EagerTensor of dtype {dtype.name}")
    with np.errstate(all="ignore"):
        return array.astype(dtype.np, order="C")


def _text(array: HostArray) -> HostArray:
    flat = [text.encode() if isinstance(text, str) else bytes(text) for text in array.reshape(-1).tolist()]
    out = np.empty(array.shape, dtype=object)
    out.reshape(-1)[:] = flat
    return out


def _from_python(value: Any, dtype: DType | None) -> HostArray:
    shape, leaves = _leaves(value)
    kind = _kind(leaves)
    if kind == "text":
        if dtype is not None and dtype is not dtypes.string:
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {c_name(dtype)}")
        return _text(np.array(leaves, dtype=object).reshape(shape))
    wanted = dtype if dtype is not None else _default(kind, leaves)
    holds = {
        "none": True,
        "bool": wanted.is_bool or wanted.is_numeric,
        "int": wanted.is_numeric,
        "float": wanted.is_floating or wanted.is_complex,
        "complex": wanted.is_complex,
        "array": True,
    }[kind]
    if not holds:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {c_name(wanted)}")
    try:
        with np.errstate(all="ignore"):
            if kind == "int" and wanted.np in _WRAPPED:  # modulo the range of the dtype, as TensorFlow's
                if any(not _INT64.min <= number <= _INT64.max for number in leaves):
                    raise ValueError(_TOO_LARGE)
                return np.array(leaves, dtype=np.int64).astype(wanted.np).reshape(shape)
            return np.array(leaves, dtype=wanted.np).reshape(shape)
    except OverflowError:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {c_name(wanted)}") from None


def _leaves(value: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Shape and elements of a nested sequence; a NumPy array inside counts as a sequence."""
    if isinstance(value, np.ndarray):
        return value.shape, list(value.reshape(-1))
    if isinstance(value, range):
        value = list(value)
    if not isinstance(value, list | tuple):
        if isinstance(value, np.generic | bool | int | float | complex | str | bytes):
            return (), [value]
        if hasattr(value, "__array__"):
            return _leaves(np.asarray(value))
        raise ValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor."
        )
    if value and all(type(item) is float or type(item) is int for item in value):
        return (len(value),), list(value)
    shape: tuple[int, ...] | None = None
    leaves: list[Any] = []
    for item in value:
        inner, elements = _leaves(item)
        if shape is not None and inner != shape:
            raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
        shape = inner
        leaves += elements
    return (len(value), *(shape or ())), leaves


def _kind(leaves: list[Any]) -> str:
    kinds = {_kind_of(leaf) for leaf in leaves}
    if len(kinds) <= 1:
        return kinds.pop() if kinds else "none"
    if "text" in kinds or (("bool" in kinds and not isinstance(leaves[0], int | float)) or isinstance(leaves[0], bool)):
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    if "array" in kinds:
        return "array"
    return max(kinds, key=("bool", "int", "float", "complex").index)


def _kind_of(leaf: Any) -> str:
    if isinstance(leaf, _TEXT):
        return "text"
    if isinstance(leaf, np.generic):
        return "array"
    if isinstance(leaf, bool):
        return "bool"
    if isinstance(leaf, int):
        return "int"
    return "float" if isinstance(leaf, float) else "complex"


def _default(kind: str, leaves: list[Any]) -> DType:
    if kind == "array":
        return dtypes.as_dtype(np.array([leaf for leaf in leaves if isinstance(leaf, np.generic)]).dtype)
    if kind == "int":
        if all(_INT32.min <= number <= _INT32.max for number in leaves):
            return dtypes.int32
        if all(_INT64.min <= number <= _INT64.max for number in leaves):
            return dtypes.int64
        raise ValueError(_TOO_LARGE)
    return {"none": dtypes.float32, "float": dtypes.float32, "bool": dtypes.bool, "complex": dtypes.complex128}[kind]


def fits(number: int, dtype: np.dtype[Any]) -> bool:
    """Whether `number` is in the range of an integer dtype; False for other dtypes."""
    bounds = _BOUNDS.get(dtype)
    return bounds is not None and bounds[0] <= number <= bounds[1]


def wrapped(number: int, dtype: np.dtype[Any]) -> int:
    """The number modulo the range of an integer dtype, as TensorFlow's arithmetic wraps one that does not fit."""
    low, high = _BOUNDS[dtype]
    return (number - low) % (high - low + 1) + low


def c_name(dtype: DType) -> str:
    """The name of a dtype in messages of TensorFlow's runtime."""
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)
