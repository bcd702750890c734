"""Types of the public functions' arguments, and their conversions: one function for each Conversion of the catalogue.

The functions in teletape._generated call these as `to.axes(axis)`; functions written by hand use them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from teletape.core.calls.dispatch import call, convert_to_tensor, holds_nothing
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import Composite, RaggedValue
from teletape.core.tensors.convert import host_array
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.indexed_slices import IndexedSlices
from teletape.core.tensors.tensor import EagerTensor, Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.core.tensors.variable_wrapper import unwrapped
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError

TensorInput: TypeAlias = TensorLike | IndexedSlices | npt.ArrayLike
#: `tf.types.experimental.TensorLike`: unlike the others it also serves `isinstance`.
ConvertibleToTensor: TypeAlias = (
    TensorLike | bool | int | float | complex | str | bytes | tuple | list | np.ndarray | np.generic  # type: ignore[type-arg]
)
IntInput: TypeAlias = int | np.integer[Any] | TensorLike
IntsInput: TypeAlias = Sequence[Any] | TensorShape | TensorLike | npt.NDArray[Any] | IntInput
NumberInput: TypeAlias = complex | np.number[Any] | TensorLike
DTypeInput: TypeAlias = DType | str | type[Any] | np.dtype[Any]
PaddingInput: TypeAlias = str | Sequence[Any] | TensorLike | npt.NDArray[Any]


# ------------------------------------------------------------------------------------------------------------- inputs
# A ragged tensor stays what it is, as if it were a tensor: `call` runs the op on its values.


def tensor(x: Any) -> Tensor:
    """A tensor."""
    if x.__class__ is EagerTensor or isinstance(x, RaggedValue):
        return x  # type: ignore[return-value]  # as if it were a tensor
    return convert_to_tensor(x)


def slices_or_tensor(x: Any) -> Any:
    """A composite unchanged, anything else as a tensor."""
    return x if isinstance(x, Composite) else convert_to_tensor(x)


def value(x: Any) -> TensorLike:
    """A tensor or variable unchanged, anything else as a tensor."""
    return unwrapped(x) if isinstance(x, TensorLike | RaggedValue) else convert_to_tensor(x)


def hinted(x: Any, other: Any) -> TensorLike:
    """A tensor or variable unchanged; anything else as a tensor with the dtype of `other`, if it fits."""
    return unwrapped(x) if isinstance(x, TensorLike | RaggedValue) else convert_to_tensor(x, dtype_hint=other.dtype)


def like(x: Any, other: Any) -> TensorLike:
    """A tensor or variable unchanged; anything else as a tensor with the dtype of `other`, if that is a tensor."""
    if isinstance(x, TensorLike | RaggedValue):
        return unwrapped(x)  # type: ignore[no-any-return]  # a tensor or variable
    return convert_to_tensor(x, other.dtype if isinstance(other, TensorLike | RaggedValue) else None)


def cast(x: Any, other: Any) -> Tensor:
    """A tensor with the dtype of `other`, cast to it if it has another."""
    converted = tensor(like(x, other))
    if converted.dtype is other.dtype:
        return converted
    return call(ops.cast, (converted,), dtype=other.dtype.np)


def bool_tensor(x: Any) -> Tensor:
    """A bool tensor; ValueError for a tensor of another dtype, TypeError for another value.

    Raises:
        InvalidArgumentError: A ragged tensor of another dtype.
    """
    if isinstance(x, RaggedValue):
        if x.dtype is not dtypes.bool:
            raise InvalidArgumentError(f"an input was expected to be a bool tensor but is a {x.dtype.name} tensor")
        return x  # type: ignore[return-value]  # as if it were a tensor
    return convert_to_tensor(x, dtypes.bool)


def whole_tensor(x: Any) -> Tensor:
    """A tensor; int32 for an empty list, because lists of numbers are integers here."""
    if holds_nothing(x):
        return convert_to_tensor(x, dtypes.int32)
    return convert_to_tensor(x)


def int32_tensor(x: Any) -> Tensor:
    """A tensor; lists and arrays, also of int64, become int32."""
    return convert_to_tensor(x, dtype_hint=dtypes.int32)


def float_tensor(x: Any) -> Tensor:
    """A tensor; integers become float32."""
    converted = tensor(x)
    if converted.dtype.is_integer:
        return call(ops.cast, (converted,), dtype=dtypes.float32.np)
    return converted


def single_tensor(x: Any) -> TensorLike:
    """A tensor or variable unchanged; numbers, lists and arrays by `by_default` as float32."""
    return by_default(x, dtypes.float32, "f")


def complex_tensor(x: Any) -> TensorLike:
    """A tensor or variable unchanged; numbers, lists and arrays by `by_default` as complex64."""
    return by_default(x, dtypes.complex64, "c")


def by_default(x: Any, dtype: DType, kinds: str) -> TensorLike:
    """An input of an op for which TensorFlow has a default dtype, from numbers, lists and arrays.

    An array is converted to that `dtype`. Numbers and lists, and arrays in a function, keep their own dtype if its
    kind, one of NumPy's letters, is among the `kinds` that the op takes.
    """
    if isinstance(x, TensorLike):
        return value(x)
    converted = convert_to_tensor(x)
    array = isinstance(x, np.ndarray) and not current().tracing
    if converted.dtype.np.kind in kinds and not array:
        return converted
    return convert_to_tensor(x, dtype_hint=dtype)


def scalar(x: Any) -> Tensor:
    """A tensor of one element as rank 0; InvalidArgumentError for more."""
    converted = convert_to_tensor(x)
    if converted.shape.rank == 0:
        return converted
    if converted.shape.num_elements() != 1:
        raise InvalidArgumentError(f"value must be a scalar, found shape {converted.shape}")
    return call(ops.reshape, (converted,), shape=())


def tensors(values: Any) -> list[Any]:
    """A list of tensors, variables and IndexedSlices; ValueError if it is empty."""
    entries = [entry if isinstance(entry, TensorLike | Composite) else convert_to_tensor(entry) for entry in values]
    if not entries:
        raise ValueError(
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    return entries


def each(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values; if there is one, a list, the values in it."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], list | tuple) else values


# --------------------------------------------------------------------------------------------------------- attributes
flag = bool


def whole(x: Any) -> int:
    """One number, from a number or a tensor; TypeError for a fraction."""
    if type(x) is int:
        return x
    if isinstance(x, float | list | tuple):
        raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype int32")
    return int(x)


def ints(x: Any, what: str = "shape") -> tuple[int, ...]:
    """Numbers from a list, an array, a TensorShape or an integer tensor (whose values are read).

    Raises:
        InvalidArgumentError: The values are no integers.
        TypeError: Fractions for an axis.
    """
    if isinstance(x, TensorShape):
        return tuple(x.as_list())
    if isinstance(x, int) and not isinstance(x, bool):
        return (x,)
    if isinstance(x, list | tuple):
        if all(type(entry) is int for entry in x):
            return tuple(x)
        x = [int(entry) if isinstance(entry, TensorLike) and _is_number(entry) else entry for entry in x]
    array = np.asarray(x.numpy() if isinstance(x, TensorLike) else host_array(x))
    if array.size and array.dtype.kind not in "iu":
        if what == "axis" and array.dtype.kind == "f":
            raise TypeError(f"Cannot convert {x!r} to EagerTensor of dtype int32")
        raise InvalidArgumentError(f"{what} must be whole numbers (int32 or int64), found {x!r}")
    return tuple(int(entry) for entry in array.reshape(-1))


def _is_number(x: TensorLike) -> bool:
    """Whether a value is a number or a tensor of numbers; TensorFlow cuts off the fraction of floats in a list."""
    return x.dtype.is_integer or (x.dtype.is_floating and x.shape.rank == 0)


def lengths(x: Any, op_type: str) -> tuple[int, ...]:
    """A shape, none of whose lengths is negative."""
    shape = ints(x)
    for length in shape:
        if length < 0:
            raise InvalidArgumentError(f"Dimension {length} must be >= 0 [Op:{op_type}]")
    return shape


def one_int(x: Any, what: str, op_type: str) -> int:
    """One number, also from a list of one."""
    numbers = ints(x, what)
    if len(numbers) != 1:
        raise InvalidArgumentError(f"'dim' must be a tensor with a single value [Op:{op_type}]")
    return numbers[0]


def axes(x: Any) -> Any:
    """An axis, several, or None, from numbers, lists or tensors."""
    if x is None or type(x) is int:
        return x
    if isinstance(x, TensorLike | np.ndarray | np.generic):
        array = np.asarray(x)
        return int(array) if array.ndim == 0 else tuple(int(entry) for entry in array)
    return ints(x, "axis")


def axis(x: Any, default: Any) -> int:
    """One axis; None: `default`."""
    return whole(default if x is None else x)


def axis_within(axis: Any, rank: int, name: str = "axis") -> int:
    """One axis of `rank`, counted from the front; ValueError if it is out of range."""
    number = whole(axis)
    if not -rank <= number < rank:
        raise ValueError(f"{name}={number} out of bounds: expected -{rank}<={name}<{rank}")
    return number % rank


def pairs(x: Any) -> tuple[tuple[int, int], ...]:
    """Pairs [before, after] from lists, an array or a tensor (whose values are read).

    Raises:
        InvalidArgumentError: They are no pairs of whole numbers.
    """
    array = np.asarray(x.numpy() if isinstance(x, TensorLike) else x)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"pairs [before, after] of whole numbers are expected, found {x!r}")
    return tuple((int(before), int(after)) for before, after in array)


def channels_first(data_format: Any) -> bool:
    """Whether channels come before rows and columns; ValueError for an unknown data format."""
    if data_format not in (None, "NHWC", "NCHW"):
        raise ValueError(f"`data_format` must be NHWC or NCHW, found {data_format!r}")
    return bool(data_format == "NCHW")


def number(x: Any) -> Any:
    """A Python number, also from a tensor of one."""
    return x.numpy().item() if hasattr(x, "numpy") else x


def real_number(x: Any) -> float:
    """A float, also from a tensor of one."""
    return float(x)


def dtype(x: Any) -> np.dtype[Any]:
    """The NumPy dtype for a DType, a name or a type."""
    return x.np if isinstance(x, DType) else dtypes.as_dtype(x).np


# ----------------------------------------------------------------------------------------------- neither of the two
def factors_of(dtype: Any, a: Any, b: Any, function: str, argument: str) -> tuple[Any, Any]:
    """The inputs of a product whose result has this dtype: 8-bit integers become int32 first, so that sums fit.

    Raises:
        ValueError: The product of such inputs has no such dtype.
    """
    result = dtypes.as_dtype(dtype)
    if result is a.dtype:
        return a, b
    if result is dtypes.int32 and a.dtype in (dtypes.int8, dtypes.uint8):
        wide = {"dtype": result.np}
        return call(ops.cast, (a,), **wide), call(ops.cast, (b,), **wide)
    raise ValueError(f"{function}: {argument} {dtype!r} is not offered for inputs of {a.dtype!r}; cast the result")


def not_offered(x: Any, function: str, argument: str) -> None:
    """Raises InvalidArgumentError unless the argument is None."""
    if x is not None:
        raise InvalidArgumentError(f"{function}: {argument} is not offered")


def conjugate(result: Tensor) -> Tensor:
    """The complex conjugate of a complex result; a real one unchanged."""
    return call(ops.conj, (result,)) if result.dtype.is_complex else result
