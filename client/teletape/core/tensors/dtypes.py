"""TensorFlow's names for element types, `tf.float32` and the rest, each holding the NumPy dtype that does the work.

The rules of dtypes are the engine's; this module has the public side: names, limits, comparison, conversion.
"""

from __future__ import annotations

import builtins
from typing import Any, Final

import ml_dtypes
import numpy as np

from teletape_engine.suggestions import with_nearest


class DType:
    """The type of a tensor's elements. There is one object for each; compare with `is` or `==`.

    Equal to whatever `as_dtype` takes for it: `tf.float32 == "float32" == np.float32`.

    Attributes:
        name: "float32" and so on.
        np: The NumPy dtype; of `tf.string`, `np.dtype(object)`.
        as_numpy_dtype: The NumPy scalar type, callable; of `tf.string`, `object`.
        as_datatype_enum: Its number in TensorFlow's protocol (types.proto).
        size: Bytes of one element; of `tf.string`, 0.
        is_floating: float16, bfloat16, float32 or float64.
        is_integer: A signed or unsigned integer; not bool.
        is_unsigned: An unsigned integer.
        is_complex: complex64 or complex128.
        is_bool: bool.
        is_numeric: Floating, integer or complex.
        is_quantized: Always False; TensorFlow's quantized types are not offered.
        is_numpy_compatible: Always True.
    """

    __slots__ = (
        "as_datatype_enum",
        "as_numpy_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numeric",
        "is_numpy_compatible",
        "is_quantized",
        "is_unsigned",
        "name",
        "np",
        "size",
    )

    def __init__(self, name: str, scalar: Any, number: int) -> None:
        self.name = name
        self.np: np.dtype[Any] = np.dtype(scalar)
        self.as_numpy_dtype = scalar
        self.as_datatype_enum = number
        self.size = 0 if scalar is object else self.np.itemsize
        self.is_floating = self.np.kind == "f" or scalar is ml_dtypes.bfloat16
        self.is_integer = self.np.kind in "iu"
        self.is_unsigned = self.np.kind == "u"
        self.is_complex = self.np.kind == "c"
        self.is_bool = self.np.kind == "b"
        self.is_numeric = self.is_floating or self.is_integer or self.is_complex
        self.is_quantized = False
        self.is_numpy_compatible = True

    @property
    def base_dtype(self) -> DType:
        """This dtype; only TensorFlow 1 has reference types."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part: float32 for complex64, float64 for complex128, itself otherwise."""
        if self.is_complex:
            return float32 if self is complex64 else float64
        return self

    @property
    def min(self) -> Any:
        """The smallest finite value.

        Raises:
            TypeError: Complex numbers, booleans and strings have none.
        """
        return self._info("minimum").min

    @property
    def max(self) -> Any:
        """The largest finite value.

        Raises:
            TypeError: Complex numbers, booleans and strings have none.
        """
        return self._info("maximum").max

    def _info(self, which: str) -> Any:
        if self.is_floating:
            return ml_dtypes.finfo(self.np)  # type: ignore[no-untyped-call]  # untyped in its stubs
        if self.is_integer:
            return np.iinfo(self.np)
        raise TypeError(f"Cannot find {which} value of {self} with type {self}.")

    @property
    def limits(self) -> tuple[int, int]:
        """The range of intensities in an image of this dtype: (0, 1) for float32 and float64, (0, max) for integers.

        Raises:
            ValueError: float16, bfloat16, complex numbers and strings have none.
        """
        if self.is_integer:
            return 0, self.max
        if self.is_bool or self in (float32, float64):
            return 0, True if self.is_bool else 1
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: object) -> builtins.bool:
        """Whether `other`, anything that `as_dtype` takes, is this dtype.

        Raises:
            TypeError: `other` is no dtype.
        """
        return as_dtype(other) is self

    def __eq__(self, other: object) -> builtins.bool:
        if other is self:
            return True
        if other is None or type(other) is DType:
            return False
        return _dtype_of(other) is self

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"


# The numbers are DataType's in TensorFlow's types.proto.
float16: Final = DType("float16", np.float16, 19)
bfloat16: Final = DType("bfloat16", ml_dtypes.bfloat16, 14)
float32: Final = DType("float32", np.float32, 1)
float64: Final = DType("float64", np.float64, 2)
complex64: Final = DType("complex64", np.complex64, 8)
complex128: Final = DType("complex128", np.complex128, 18)
int8: Final = DType("int8", np.int8, 6)
int16: Final = DType("int16", np.int16, 5)
int32: Final = DType("int32", np.int32, 3)
int64: Final = DType("int64", np.int64, 9)
uint8: Final = DType("uint8", np.uint8, 4)
uint16: Final = DType("uint16", np.uint16, 17)
uint32: Final = DType("uint32", np.uint32, 22)
uint64: Final = DType("uint64", np.uint64, 23)
bool: Final = DType("bool", np.bool_, 10)
string: Final = DType("string", object, 7)

half: Final = float16
double: Final = float64

#: Every dtype that tensors have.
ALL: Final = (
    *(float16, bfloat16, float32, float64, complex64, complex128),
    *(int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool, string),
)

# A table for every kind of key, so that the usual case is one look-up. `int`, `str` and `complex` are not in
# it: TensorFlow refuses them as ambiguous.
_KNOWN: dict[Any, DType] = {key: d for d in ALL for key in (d.np, d.as_numpy_dtype, d.name, d.as_datatype_enum)}
_KNOWN |= {"half": half, "float": float32, "double": double, float: float32, builtins.bool: bool}
_KNOWN |= {np.longlong: int64, np.ulonglong: uint64, np.object_: string, np.bytes_: string, np.str_: string}


def as_dtype(type_value: Any) -> DType:
    """The DType that `type_value` names.

    Args:
        type_value: A DType, its name ("float32", also "half", "float", "double"), a NumPy dtype in any byte order, a
            NumPy scalar type, `float`, `bool`, `object` (strings), a number of TensorFlow's protocol, or an array
            (its dtype).

    Raises:
        TypeError: It is none of these, or names a type that tensors cannot have.
    """
    dtype = _dtype_of(type_value)
    if dtype is None:
        refusal = f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType."
        raise TypeError(with_nearest(refusal, type_value, [name for name in _KNOWN if isinstance(name, str)]))
    return dtype


def _dtype_of(type_value: Any) -> DType | None:
    """Returns the DType like `as_dtype`, or None; looking for the nearest names for an error takes a millisecond."""
    if type(type_value) is DType:
        return type_value
    try:
        dtype = _KNOWN.get(type_value)
    except TypeError:  # not hashable
        dtype = None
    if dtype is None or isinstance(type_value, np.generic):  # it hashes as its value: np.float64(3.0) is no number 3
        array_dtype = type_value if isinstance(type_value, np.dtype) else getattr(type_value, "dtype", None)
        # By scalar type: it is the same in every byte order and width of fixed-width strings.
        dtype = _KNOWN.get(array_dtype.type) if isinstance(array_dtype, np.dtype) else None
    return dtype
