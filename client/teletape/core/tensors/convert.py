"""Python values, lists and arrays as host arrays, with the dtype that TensorFlow would give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np

from teletape.core.network import shared_memory
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.arrays import HostArray
from teletape_engine.spec import INTEGER, KERNEL_NAMES

_TEXT: Final = (str, bytes, np.str_, np.bytes_)
_INT32: Final = np.iinfo(np.int32)
_INT64: Final = np.iinfo(np.int64)
_TOO_LARGE: Final = "Attempt to convert a value with an integer that does not fit 64 bits to a Tensor."
_WRAPPED: Final = frozenset(dtype for dtype in INTEGER if dtype.itemsize < 8)
_BOUNDS: Final = {dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype in INTEGER}

#: The kinds of the elements of sequences, by their class or by a base class of it.
_KINDS: Final[Mapping[type, str]] = {
    int: "int",
    float: "float",
    bool: "bool",
    complex: "complex",
    str: "text",
    bytes: "text",
    np.float64: "double",
    np.float16: "half",
    np.bool_: "numpy bool",
}
_ABSTRACT_KINDS: Final = (
    (_TEXT, "text"),
    (int | np.integer, "int"),
    (float | np.floating | ml_dtypes.bfloat16, "float"),
    (complex | np.complexfloating, "complex"),
)
_NOTHING: Final = frozenset[str]()
_BOOLS: Final = frozenset(("bool", "numpy bool"))
_WHOLE: Final = frozenset(("bool", "int"))
_REAL: Final = _WHOLE | {"float", "double", "half"}
_COMPLEX: Final = _REAL | {"complex"}
_TEXTS: Final = frozenset(("text",))
#: The kinds that TensorFlow converts to a dtype, whichever element is the first.
_TAKES: Final = {
    **dict.fromkeys((dtypes.int32, dtypes.int64, dtypes.uint64), _WHOLE),
    **dict.fromkeys((dtypes.float16, dtypes.float32, dtypes.float64), _REAL),
    dtypes.complex128: _COMPLEX,
    dtypes.bool: _BOOLS,
    dtypes.string: _TEXTS,
}
#: By the kind of the first element: the dtype, and the kinds that may follow.
_FIRST: Final = {
    "int": (dtypes.float32, _REAL),  # if there are fractions: integers alone stay integers
    "float": (dtypes.float32, _REAL),
    "double": (dtypes.float64, _REAL),
    "half": (dtypes.float16, _REAL),
    "bool": (dtypes.bool, _BOOLS),
    "numpy bool": (dtypes.bool, _BOOLS),
    "complex": (dtypes.complex128, _COMPLEX),
    "text": (dtypes.string, _TEXTS),
}


def host_array(value: Any, dtype: DType | None = None) -> HostArray:
    """A new host array with the values of `value`, in TensorFlow's dtype for them.

    Args:
        value: A number, string, a (nested) list, tuple or other sequence of those, a NumPy array or scalar, or an
            object with `__array__`.
        dtype: The dtype of the result, to which arrays are cast; None: TensorFlow's for the value. Arrays keep theirs.
            In a sequence, also in one of arrays, the first element decides: int32, or int64 for numbers that need it,
            float32, also for integers before fractions, float64 for NumPy's, bool, complex128, string.

    Raises:
        TypeError: A Python value that the dtype cannot hold.
        ValueError: No tensor can be made of it: None, mixed, ragged, another type.
    """
    if isinstance(value, np.ndarray | np.generic):
        return _from_array(np.asarray(value), dtype)
    if isinstance(value, TensorShape):
        return _of_shape(value, dtype)
    if isinstance(value, list | tuple | range | bool | int | float | complex | str | bytes):
        return _from_python(value, dtype)
    if hasattr(value, "__array__"):
        return _from_array(np.asarray(value), dtype)
    if isinstance(value, RaggedValue):
        value.refuse_conversion()
    if _is_sequence(value):
        return _from_python(value, dtype)
    raise _unsupported(value)


def _is_sequence(value: Any) -> bool:
    """Whether a value is a sequence for Python: it has a length and elements by index, as a deque has."""
    return hasattr(type(value), "__len__") and hasattr(type(value), "__getitem__") and not isinstance(value, Mapping)


def _unsupported(value: Any) -> ValueError:
    return ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.")


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


def _from_array(array: HostArray, dtype: DType | None) -> HostArray:
    if dtype is not None and array.dtype != dtype.np and (array.dtype.kind not in "SU" or dtype is not dtypes.string):
        with np.errstate(all="ignore"):
            return _checked(array.astype(dtype.np, order="C"))
    if array.dtype.kind in "SUO":
        return _checked(array)
    try:
        own = dtypes.as_dtype(array.dtype)
    except TypeError:
        raise ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {array.dtype})."
        ) from None
    if array.dtype == own.np and not current().home.local:
        return shared_memory.copy(array)
    return array.astype(own.np, order="C", copy=True)  # in this process the memory of an array that owns it is reused


def _checked(array: HostArray) -> HostArray:
    """Returns an array of texts as bytes, any other unchanged; ValueError for one of other objects."""
    if array.dtype.kind not in "SUO":
        return array
    for leaf in array.reshape(-1).tolist():
        if isinstance(leaf, RaggedValue):
            leaf.refuse_conversion()
        if not isinstance(leaf, _TEXT):
            raise ValueError(
                f"Failed to convert a NumPy array to a Tensor (Unsupported object type {type(leaf).__name__})."
            )
    return as_bytes(array)


def as_bytes(array: HostArray) -> HostArray:
    """Returns an array of str and bytes as one of bytes."""
    flat = [text.encode() if isinstance(text, str) else bytes(text) for text in array.reshape(-1).tolist()]
    out = np.empty(array.shape, dtype=object)
    out.reshape(-1)[:] = flat
    return out


# ------------------------------------------------------------------------------------------------------ Python values
def _from_python(value: Any, dtype: DType | None) -> HostArray:
    shape, leaves = _leaves(value)
    kinds = {_kind_of(leaf) for leaf in leaves}
    wanted = dtype
    if dtype is None or not kinds <= _TAKES.get(dtype, _NOTHING):
        own = _inferred(leaves, kinds)
        if dtype is not None and not _holds(dtype, own, empty=not leaves):
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {KERNEL_NAMES[dtype.np]}")
        wanted = dtype or own
    assert wanted is not None
    if wanted is dtypes.string:
        return as_bytes(np.array(leaves, dtype=object).reshape(shape))
    try:
        with np.errstate(all="ignore"):
            if wanted.np in _WRAPPED and kinds <= _WHOLE:  # modulo the range of the dtype, as in TensorFlow
                if any(not _INT64.min <= number <= _INT64.max for number in leaves):
                    raise ValueError(_TOO_LARGE)
                return np.array(leaves, dtype=np.int64).astype(wanted.np).reshape(shape)
            array = np.array(leaves, dtype=wanted.np).reshape(shape)
    except OverflowError:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {KERNEL_NAMES[wanted.np]}") from None
    if dtype is None and wanted is dtypes.float32 and np.isinf(array).any() and not all(np.isinf(leaves)):
        finite = np.isfinite(np.array(leaves, np.float64)).reshape(shape)
        if (np.isinf(array) & finite).any():
            raise ValueError("Can't convert Python sequence with a value out of range for a double-precision float.")
    return array


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
        if isinstance(value, RaggedValue):
            value.refuse_conversion()
        if not _is_sequence(value):
            raise _unsupported(value)
        value = [value[place] for place in range(len(value))]
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


def _kind_of(leaf: Any) -> str:
    kind = _KINDS.get(leaf.__class__)
    if kind is None:
        kind = next((name for types, name in _ABSTRACT_KINDS if isinstance(leaf, types)), None)
    if kind is None:
        raise _unsupported(leaf)
    return kind


def _inferred(leaves: list[Any], kinds: set[str]) -> DType:
    """The dtype that the first element decides.

    Raises:
        ValueError: The other elements have a kind that may not follow it.
    """
    if not leaves:
        return dtypes.float32
    first = _kind_of(leaves[0])
    if first == "int" and kinds <= _WHOLE:
        if all(_INT32.min <= number <= _INT32.max for number in leaves):
            return dtypes.int32
        if all(_INT64.min <= number <= _INT64.max for number in leaves):
            return dtypes.int64
        raise ValueError(_TOO_LARGE)
    dtype, others = _FIRST[first]
    if not kinds <= others:
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    return dtype


def _holds(dtype: DType, own: DType, *, empty: bool) -> bool:
    """Whether TensorFlow casts from the dtype of the elements to another."""
    if empty:
        return True
    if dtype.is_integer:
        return own.is_integer
    if dtype.is_floating or dtype.is_complex:
        return own.is_integer or own.is_floating or (dtype.is_complex and own.is_complex)
    return dtype is own


def fits(number: int, dtype: np.dtype[Any]) -> bool:
    """Whether `number` is in the range of an integer dtype; False for other dtypes."""
    bounds = _BOUNDS.get(dtype)
    return bounds is not None and bounds[0] <= number <= bounds[1]


def wrapped(number: int, dtype: np.dtype[Any]) -> int:
    """The number modulo the range of an integer dtype, as TensorFlow's arithmetic wraps one that does not fit."""
    low, high = _BOUNDS[dtype]
    return (number - low) % (high - low + 1) + low
