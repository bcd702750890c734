"""What is known of an array without its values: shape, dtype, bytes; and the rules of dtypes and broadcasting.

Specs are interned: two arrays of the same shape and dtype share one `Spec`, so equality is identity and a spec is a
cheap dictionary key.
"""

from __future__ import annotations

import math
import weakref
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.locks import ReentrantLock
from teletape_engine.suggestions import with_nearest

Shape: TypeAlias = tuple[int, ...]
DType: TypeAlias = np.dtype[Any]
Number: TypeAlias = bool | int | float | complex


def _bfloat16() -> DType | None:
    try:
        import ml_dtypes
    except ImportError:  # the engine runs without it; bfloat16 then does not exist
        return None
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    return dtype


_NAMES: Final = (
    "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
)
DTYPES: Final[dict[str, DType]] = {name: np.dtype(name) for name in _NAMES}
BFLOAT16: Final = _bfloat16()
if BFLOAT16 is not None:
    DTYPES["bfloat16"] = BFLOAT16

FLOATING: Final = frozenset(DTYPES[n] for n in ("float16", "bfloat16", "float32", "float64") if n in DTYPES)
COMPLEX: Final = frozenset((DTYPES["complex64"], DTYPES["complex128"]))
INTEGER: Final = frozenset(d for n, d in DTYPES.items() if "int" in n)
REAL: Final = FLOATING | INTEGER
SIGNED: Final = frozenset(d for n, d in DTYPES.items() if n.startswith("int"))
BOOL: Final = DTYPES["bool"]
DIFFERENTIABLE: Final = FLOATING | COMPLEX
NUMERIC: Final = DIFFERENTIABLE | INTEGER
INDEX: Final = frozenset((DTYPES["int32"], DTYPES["int64"]))
PLACES: Final = INDEX | {DTYPES["int16"]}  #: What elements are picked by; they are added at INDEX alone.

MAX_RANK: Final = 32  #: Axes of an array: with more, some functions of NumPy and CuPy fail.
_MAX_BYTES: Final = 2**63 - 1  # what an array's lengths may multiply to; NumPy leaves out those that are 0

#: What TensorFlow's kernels call a dtype, in the order in which its messages list them.
_LISTED: Final = (
    *("bfloat16", "float16", "float32", "float64", "uint8", "uint16", "uint32", "uint64"),
    *("int8", "int16", "int32", "int64", "complex64", "complex128", "bool"),
)
KERNEL_NAMES: Final = {
    DTYPES[name]: {"float16": "half", "float32": "float", "float64": "double"}.get(name, name)
    for name in _LISTED
    if name in DTYPES
} | {np.dtype(object): "string"}
STRING: Final = np.dtype(object)  #: Of the SDK's programs: strings never reach a server.
HALF: Final = frozenset(DTYPES[n] for n in ("float16", "bfloat16") if n in DTYPES)

REAL_OF: Final = {DTYPES["complex64"]: DTYPES["float32"], DTYPES["complex128"]: DTYPES["float64"]}
COMPLEX_OF: Final = {real: cplx for cplx, real in REAL_OF.items()}


def dtype_of(name: Any) -> DType:
    """The interned dtype of that name or of that NumPy dtype.

    Raises:
        InvalidArgumentError: There is none; the message lists the names.
    """
    dtype = DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None and name is not None and not isinstance(name, str):  # NumPy reads None as float64
        try:
            dtype = DTYPES.get(np.dtype(name).name)
        except (TypeError, ValueError):  # NumPy reads an object as a structured dtype
            dtype = None
    if dtype is None:
        raise InvalidArgumentError(
            with_nearest(f"unknown dtype {name!r}: the dtypes are {', '.join(sorted(DTYPES))}", name, DTYPES)
        )
    return dtype


class Spec:
    """Shape and dtype of an array.

    Attributes:
        shape: Length of each axis.
        dtype: The NumPy dtype, one of `DTYPES`.
        size: Number of elements.
        nbytes: Bytes of the elements, without overhead.
        differentiable: Whether a gradient with respect to such an array exists (floating or complex).
    """

    __slots__ = ("__weakref__", "differentiable", "dtype", "nbytes", "shape", "size")

    shape: Shape
    dtype: DType
    size: int
    nbytes: int
    differentiable: bool

    _interned: ClassVar[weakref.WeakValueDictionary[tuple[Shape, DType], Spec]] = weakref.WeakValueDictionary()
    _lock = ReentrantLock()

    @staticmethod
    def of(shape: Shape, dtype: DType) -> Spec:
        """The interned spec of this shape and dtype.

        Raises:
            InvalidArgumentError: More than `MAX_RANK` axes.
            ResourceExhaustedError: More bytes than can be addressed.
        """
        key = (shape, dtype)
        spec = Spec._interned.get(key)
        if spec is None:
            if not dtype.isnative:
                return Spec.of(shape, dtype.newbyteorder("="))
            _check_addressable(shape, dtype)
            with Spec._lock:
                spec = Spec._interned.get(key)
                if spec is None:
                    spec = Spec()
                    # An array from another process has an equal dtype, which is not the same object.
                    spec.shape, spec.dtype = shape, DTYPES.get(dtype.name, dtype)
                    spec.size = math.prod(shape)
                    spec.nbytes = spec.size * dtype.itemsize
                    spec.differentiable = dtype in DIFFERENTIABLE
                    # Last: other threads read the table without the lock, and a signal handler may have been faster.
                    spec = Spec._interned.setdefault(key, spec)
        return spec

    def __reduce__(self) -> tuple[Any, ...]:
        return Spec.of, (self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def with_shape(self, shape: Shape) -> Spec:
        """The spec of the same dtype with another shape."""
        return Spec.of(shape, self.dtype)

    def with_dtype(self, dtype: DType) -> Spec:
        """The spec of the same shape with another dtype."""
        return Spec.of(self.shape, dtype)

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def _check_addressable(shape: Shape, dtype: DType) -> None:
    if len(shape) > MAX_RANK:
        raise InvalidArgumentError(f"an array has at most {MAX_RANK} axes, found {len(shape)}: reshape it to fewer")
    nbytes = math.prod([length for length in shape if length]) * dtype.itemsize
    if nbytes > _MAX_BYTES:
        raise ResourceExhaustedError(
            f"the lengths of {dtype.name}{list(shape)} multiply to {nbytes:,} bytes, which no machine addresses: ask "
            "for less",
            needed=nbytes,
        )


class Weak:
    """The spec of what a caller wrote without a dtype: it takes the dtype of the arrays that it is combined with.

    That is a Python number, in `WEAK`; or a number or nested list of JSON, of `Weak.of_untyped`.

    Attributes:
        kind: bool, int, float or complex.
        shape: Length of each axis; a number has none.
        alone: The dtype without an array.
        integer: The dtype where only integers fit, as for indices.
        untyped: Whether it is from JSON, where 2 may mean 2.0.
    """

    __slots__ = ("__weakref__", "alone", "integer", "kind", "shape", "untyped")

    kind: type
    shape: Shape
    alone: DType
    integer: DType
    untyped: bool

    _interned: ClassVar[weakref.WeakValueDictionary[Any, Weak]] = weakref.WeakValueDictionary()

    def __init__(self, kind: type) -> None:
        self.kind, self.shape, self.untyped = kind, (), False
        self.alone = _ALONE[kind]
        self.integer = DTYPES["int32"]

    @staticmethod
    def of_untyped(kind: type, shape: Shape, integer: DType, alone: DType) -> Weak:
        """The interned spec of integers or other numbers without a dtype."""
        key = (kind, shape, integer, alone)
        weak = Weak._interned.get(key)
        if weak is None:
            weak = Weak(kind)
            weak.shape, weak.alone, weak.integer, weak.untyped = shape, alone, integer, True
            weak = Weak._interned.setdefault(key, weak)
        return weak

    def __repr__(self) -> str:
        if not self.untyped:
            return self.kind.__name__
        return f"untyped {self.kind.__name__}" + (str(list(self.shape)) if self.shape else "")


_ALONE: Final = {bool: DTYPES["bool"], int: DTYPES["int32"], float: DTYPES["float32"], complex: DTYPES["complex128"]}
_UNTYPED: Final = {int: "an integer", float: "a floating-point number"}
WEAK: Final[dict[type, Weak]] = {kind: Weak(kind) for kind in (bool, int, float, complex)}


def weak_dtype(weak: Weak, array_dtype: DType | None) -> DType:
    """The dtype that a number takes with an array of dtype `array_dtype` (None: without an array).

    Raises:
        InvalidArgumentError: A fraction with integers, a complex number with reals, a number with booleans.
    """
    if array_dtype is None:
        return weak.alone
    kind = weak.kind
    if kind is bool:
        fits = array_dtype is BOOL
    elif kind is int:
        fits = array_dtype in NUMERIC
    elif kind is float:
        fits = array_dtype in DIFFERENTIABLE
    else:
        fits = array_dtype in COMPLEX
    if not fits:
        what = _UNTYPED[kind] if weak.untyped else f"a Python {kind.__name__}"
        raise InvalidArgumentError(
            f"{what} cannot take the dtype {array_dtype.name} of the array in the same call; cast one of the two"
        )
    return array_dtype


def element(number: Number, dtype: DType, what: str) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of that dtype; `what` is its name in messages.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    try:
        with np.errstate(all="ignore"):
            return np.asarray(float(number) if dtype is BFLOAT16 else number, dtype)  # type: ignore[arg-type]  # caught
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what} {number!r} does not fit dtype {dtype.name}: {error}") from None


def elements(numbers: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """The numbers of an untyped list as an array of that dtype.

    Raises:
        InvalidArgumentError: One of them does not fit.
    """
    if numbers.dtype is dtype:
        return numbers
    with np.errstate(all="ignore"):
        array = numbers.astype(dtype)
        if dtype not in INTEGER and np.logical_and.reduce(np.isfinite(array), axis=None):
            return array
        fits = array == numbers if dtype in INTEGER else np.isfinite(array) == np.isfinite(numbers)
    if not fits.all():
        number = numbers[~fits][0].item()
        remedy = "; float64 holds it" if isinstance(number, float) and dtype not in INTEGER else ""
        raise InvalidArgumentError(f"the number {number!r} does not fit dtype {dtype.name}{remedy}")
    return array


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, in which compiled code reads it: a copy if it has another one."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def wide(dtype: DType) -> DType:
    """The dtype that sums and exponentials of `dtype` are computed in: float32 for the 16-bit floats."""
    return DTYPES["float32"] if dtype in HALF else dtype


def finfo(dtype: DType) -> Any:
    """The limits of a floating dtype, bfloat16 too, which NumPy's own finfo does not know."""
    if dtype is not BFLOAT16:
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # its stub has no types here


def wide_bytes(spec: Spec, arrays: int = 1) -> int:
    """Bytes of `arrays` arrays of that shape in the dtype that sums are computed in."""
    return arrays * spec.size * wide(spec.dtype).itemsize


def half_bytes(spec: Spec, arrays: int = 1) -> int:
    """As `wide_bytes` if that dtype is another one, so that they are copies; else 0."""
    return wide_bytes(spec, arrays) if spec.dtype in HALF else 0


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape that `a` and `b` broadcast to (NumPy's rule).

    Raises:
        InvalidArgumentError: Two axes differ and neither is 1.
    """
    if a == b:
        return a
    rank = max(len(a), len(b))
    out = []
    for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if m != n and m != 1 and n != 1:
            raise InvalidArgumentError(f"Incompatible shapes: {shape_text(a)} vs. {shape_text(b)}")
        out.append(n if m == 1 else m)
    return tuple(out)


def shape_text(shape: Shape) -> str:
    """The shape as error messages write it: `[2,3]`."""
    return "[" + ",".join(map(str, shape)) + "]"


def axis_in(axis: int, ndim: int, *, what: str = "axis") -> int:
    """`axis` counted from the front, for an array of `ndim` axes.

    Raises:
        InvalidArgumentError: The axis is outside [-ndim, ndim).
    """
    if not -ndim <= axis < ndim:
        raise InvalidArgumentError(f"{what} {axis} is out of range for {ndim} axes: it must be in [{-ndim}, {ndim})")
    return axis % ndim


def axes_in(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """The axes that a reduction goes over, counted from the front, sorted; None means all.

    Raises:
        InvalidArgumentError: An axis is out of range or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    axes: list[int] = []
    for number in (axis,) if isinstance(axis, int) else axis:
        if not -ndim <= number < ndim:
            raise InvalidArgumentError(f"Invalid reduction dimension ({number} for input with {ndim} dimension(s)")
        if number % ndim in axes:
            raise InvalidArgumentError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {number % ndim}"
            )
        axes.append(number % ndim)
    return tuple(sorted(axes))
