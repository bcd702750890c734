"""Functions of each element, and of the elements of two arrays that broadcast.

Long because NumPy has this many of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape._generated import reduce
from teletape._generated.elementwise import arithmetic, logic, special
from teletape._generated.elementwise import complex as complex_numbers
from teletape._generated.elementwise import math as functions
from teletape._generated.shapes import cast
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.promotion import Preference, array, inexact, promoted
from teletape.tf.ops.arrays import create
from teletape.tf.ops.arrays.rearrange import where as choose

_cast, _abs, _sign = cast.cast, complex_numbers.abs, complex_numbers.sign
_log, _exp, _floor, _less = functions.log, functions.exp, functions.floor, logic.less
_not, _and, _or, _xor = logic.logical_not, logic.logical_and, logic.logical_or, logic.logical_xor
_equal, _finite, _infinite, _nan = logic.equal, logic.is_finite, logic.is_inf, logic.is_nan


def _of_floats(name: str, compute: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Returns a function of floats; integers become floats."""

    def function(x: Any) -> Tensor:
        return compute(inexact(x))

    return _named(function, name, f"Returns `numpy.{name}` of each element; integers become floats.")


def _of_numbers(name: str, compute: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Returns a function of numbers of any dtype."""

    def function(x: Any) -> Tensor:
        return compute(array(x))

    return _named(function, name, f"Returns `numpy.{name}` of each element.")


def _of_two(
    name: str, compute: Callable[[Tensor, Tensor], Tensor], booleans: Callable[[Tensor, Tensor], Tensor] | None = None
) -> Callable[..., Tensor]:
    """Returns a function of two arrays, which get their common dtype."""

    def function(x1: Any, x2: Any) -> Tensor:
        a, b = promoted(x1, x2)
        return booleans(a, b) if booleans is not None and a.dtype is dtypes.bool else compute(a, b)

    return _named(function, name, f"Returns `numpy.{name}` of two arrays that broadcast, in their common dtype.")


def _of_two_floats(name: str, compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Returns a function of two arrays of floats."""

    def function(x1: Any, x2: Any) -> Tensor:
        a, b = promoted(x1, x2)
        return compute(inexact(a), inexact(b))

    return _named(function, name, f"Returns `numpy.{name}` of two arrays that broadcast; integers become floats.")


def _of_truth(name: str, compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns a function of two arrays of booleans; other numbers are true unless they are zero."""

    def function(x1: Any, x2: Any) -> Tensor:
        return compute(array(x1, bool), array(x2, bool))

    return _named(function, name, f"Returns `numpy.{name}` of two arrays: numbers are true unless they are zero.")


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return function


arccos = _of_floats("arccos", functions.acos)
arccosh = _of_floats("arccosh", special.acosh)
arcsin = _of_floats("arcsin", functions.asin)
arcsinh = _of_floats("arcsinh", special.asinh)
arctan = _of_floats("arctan", functions.atan)
arctanh = _of_floats("arctanh", special.atanh)
cos = _of_floats("cos", functions.cos)
cosh = _of_floats("cosh", functions.cosh)
exp = _of_floats("exp", functions.exp)
expm1 = _of_floats("expm1", functions.expm1)
floor = _of_floats("floor", functions.floor)
log = _of_floats("log", functions.log)
log1p = _of_floats("log1p", functions.log1p)
sin = _of_floats("sin", functions.sin)
sinh = _of_floats("sinh", functions.sinh)
sqrt = _of_floats("sqrt", functions.sqrt)
tan = _of_floats("tan", functions.tan)
tanh = _of_floats("tanh", functions.tanh)
abs = absolute = _of_numbers("absolute", _abs)
negative = _of_numbers("negative", functions.negative)
positive = _of_numbers("positive", lambda x: x)
square = _of_numbers("square", functions.square)
reciprocal = _of_numbers("reciprocal", lambda x: 1 / x)
conj = conjugate = _of_numbers("conjugate", lambda x: complex_numbers.conj(x) if x.dtype.is_complex else x)
bitwise_not = _of_numbers("bitwise_not", logic.invert)


def ceil(x: Any) -> Tensor:
    """Returns the smallest whole number that is not less than each element, as a float."""
    return functions.ceil(inexact(x))


def fabs(x: Any) -> Tensor:
    """Returns the absolute value of each element."""
    return _abs(array(x))


def fix(x: Any) -> Tensor:
    """Returns each element without its fraction: rounded toward zero."""
    x = inexact(x)
    return choose(_less(x, array(0, x.dtype)), functions.ceil(x), _floor(x))


def around(a: Any, decimals: int = 0) -> Tensor:
    """Returns each element rounded to `decimals` digits after the point, halves to the even digit."""
    numbers = array(a)
    if numbers.dtype.is_integer or numbers.dtype is dtypes.bool:
        if decimals >= 0:
            return numbers
        return _cast(around(_cast(numbers, Preference.floats), decimals), numbers.dtype)
    factor = array(10.0**decimals, numbers.dtype)
    return arithmetic.divide(functions.round(arithmetic.multiply(numbers, factor)), factor)


round = around


def log2(x: Any) -> Tensor:
    """Returns the logarithm to the base 2 of each element."""
    return log(x) / math.log(2.0)


def log10(x: Any) -> Tensor:
    """Returns the logarithm to the base 10 of each element."""
    return log(x) / math.log(10.0)


def exp2(x: Any) -> Tensor:
    """Returns 2 to the power of each element."""
    return _exp(inexact(x) * math.log(2.0))


def cbrt(x: Any) -> Tensor:
    """Returns the cube root of each element, which has its sign."""
    x = inexact(x)
    return _sign(x) * arithmetic.pow(_abs(x), array(1 / 3, x.dtype))


def deg2rad(x: Any) -> Tensor:
    """Returns angles in degrees as radians."""
    return inexact(x) * (math.pi / 180)


def rad2deg(x: Any) -> Tensor:
    """Returns angles in radians as degrees."""
    return inexact(x) * (180 / math.pi)


def sinc(x: Any) -> Tensor:
    """Returns sin(πx)/(πx) of each element; 1 at zero."""
    x = inexact(x) * math.pi
    zero = _equal(x, array(0, x.dtype))
    safe = choose(zero, array(1, x.dtype), x)
    return choose(zero, array(1, x.dtype), functions.sin(safe) / safe)


def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Tensor:
    """Returns -1, 0 or 1 for each element; a complex number divided by its absolute value.

    Args:
        x: The numbers.
        out: Not supported, as in TensorFlow.
        where: Not supported, as in TensorFlow.
        **kwargs: Not supported, as in TensorFlow.

    Raises:
        ValueError: An argument besides `x`.
    """
    if out is not None or where is not None or kwargs:
        raise ValueError("tf.experimental.numpy.sign takes one array and nothing else")
    return _sign(array(x))


def signbit(x: Any) -> Tensor:
    """Returns whether each element is negative."""
    x = array(x)
    return create.zeros(x.shape, dtypes.bool) if x.dtype is dtypes.bool else _less(x, array(0, x.dtype))


def real(val: Any) -> Tensor:
    """Returns the real parts."""
    val = array(val)
    return complex_numbers.real(val) if val.dtype.is_complex else val


def imag(val: Any) -> Tensor:
    """Returns the imaginary parts; zeros for real numbers."""
    val = array(val)
    return complex_numbers.imag(val) if val.dtype.is_complex else create.zeros_like(val)


def angle(z: Any, deg: bool = False) -> Tensor:
    """Returns the angle of each number in the complex plane, in radians, or in degrees."""
    z = array(z)
    if not z.dtype.is_complex:
        z = inexact(z)
        result = choose(_less(z, array(0, z.dtype)), array(math.pi, z.dtype), array(0, z.dtype))
    else:
        result = complex_numbers.angle(z)
    return rad2deg(result) if deg else result


# -------------------------------------------------------------------------------------------------------- two arrays
add = _of_two("add", arithmetic.add, _or)
subtract = _of_two("subtract", arithmetic.subtract)
multiply = _of_two("multiply", arithmetic.multiply, _and)
divide = true_divide = _of_two("true_divide", arithmetic.truediv, lambda a, b: inexact(a) / inexact(b))
floor_divide = _of_two("floor_divide", arithmetic.floordiv)
mod = remainder = _of_two("remainder", arithmetic.floormod)
float_power = power = _of_two("power", arithmetic.pow)
maximum = _of_two("maximum", arithmetic.maximum, _or)
minimum = _of_two("minimum", arithmetic.minimum, _and)
arctan2 = _of_two_floats("arctan2", arithmetic.atan2)
nextafter = _of_two_floats("nextafter", arithmetic.nextafter)
bitwise_and = _of_two("bitwise_and", logic.bitwise_and, _and)
bitwise_or = _of_two("bitwise_or", logic.bitwise_or, _or)
bitwise_xor = _of_two("bitwise_xor", logic.bitwise_xor, _xor)
equal = _of_two("equal", _equal)
not_equal = _of_two("not_equal", logic.not_equal)
greater = _of_two("greater", logic.greater, lambda a, b: _and(a, _not(b)))
greater_equal = _of_two("greater_equal", logic.greater_equal, lambda a, b: _or(a, _not(b)))
less = _of_two("less", _less, lambda a, b: _and(_not(a), b))
less_equal = _of_two("less_equal", logic.less_equal, lambda a, b: _or(_not(a), b))
logical_and = _of_truth("logical_and", _and)
logical_or = _of_truth("logical_or", _or)
logical_xor = _of_truth("logical_xor", _xor)


def logical_not(x: Any) -> Tensor:
    """Returns whether each element is false, or zero."""
    return _not(array(x, bool))


def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Returns `floor_divide` and `remainder`."""
    return floor_divide(x1, x2), remainder(x1, x2)


def hypot(x1: Any, x2: Any) -> Tensor:
    """Returns the length of the hypotenuse of right triangles."""
    a, b = promoted(x1, x2)
    a, b = inexact(a), inexact(b)
    return functions.sqrt(functions.square(a) + functions.square(b))


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """Returns log(exp(x1) + exp(x2)), without overflow."""
    a, b = (inexact(x) for x in promoted(x1, x2))
    larger = arithmetic.maximum(a, b)
    result = larger + functions.log1p(_exp(-_abs(a - b)))
    return choose(_nan(result), larger, result)


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """Returns log2(2**x1 + 2**x2), without overflow."""
    a, b = (inexact(x) for x in promoted(x1, x2))
    larger = arithmetic.maximum(a, b)
    result = larger + functions.log1p(exp2(-_abs(a - b))) / math.log(2.0)
    return choose(_nan(result), larger, result)


def heaviside(x1: Any, x2: Any) -> Tensor:
    """Returns 0 for negative, `x2` for zero, and 1 for positive elements of `x1`."""
    a, b = (inexact(x) for x in promoted(x1, x2))
    zero = array(0, a.dtype)
    return choose(_less(a, zero), zero, choose(_equal(a, zero), b, array(1, a.dtype)))


def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
    """Returns the elements within bounds, either of which may be None.

    Raises:
        ValueError: Both are None.
    """
    if a_min is None and a_max is None:
        raise ValueError("Not more than one of `a_min` and `a_max` may be `None`.")
    a = array(a)
    if a_min is not None:
        a = maximum(a, a_min)
    return a if a_max is None else minimum(a, a_max)


# ----------------------------------------------------------------------------------------------------------- questions
def isfinite(x: Any) -> Tensor:
    """Returns whether each element is neither infinite nor nan."""
    return _finite(inexact(x))


def isinf(x: Any) -> Tensor:
    """Returns whether each element is infinite."""
    return _infinite(inexact(x))


def isnan(x: Any) -> Tensor:
    """Returns whether each element is nan."""
    return _nan(inexact(x))


def isneginf(x: Any) -> Tensor:
    """Returns whether each element is minus infinity."""
    x = inexact(x)
    return _equal(x, array(-math.inf, x.dtype))


def isposinf(x: Any) -> Tensor:
    """Returns whether each element is plus infinity."""
    x = inexact(x)
    return _equal(x, array(math.inf, x.dtype))


def isreal(x: Any) -> Tensor:
    """Returns whether the imaginary part of each element is zero."""
    return _not(iscomplex(x))


def iscomplex(x: Any) -> Tensor:
    """Returns whether the imaginary part of each element is not zero."""
    part = imag(x)
    return logic.not_equal(part, create.zeros_like(part))


def isrealobj(x: Any) -> bool:
    """Returns whether the dtype is not complex."""
    return not array(x).dtype.is_complex


def iscomplexobj(x: Any) -> bool:
    """Returns whether the dtype is complex."""
    return bool(array(x).dtype.is_complex)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Returns whether elements differ by at most `atol + rtol * |b|`.

    Args:
        a: Numbers.
        b: Numbers to compare with.
        rtol: The relative tolerance.
        atol: The absolute tolerance.
        equal_nan: Whether nan counts as equal to nan.
    """
    a, b = (inexact(x) for x in promoted(a, b))
    near = logic.less_equal(_abs(a - b), _abs(b) * rtol + atol)
    if a.dtype.is_complex:
        return _or(near, _equal(a, b))
    result = _or(_and(near, _and(_finite(a), _finite(b))), _equal(a, b))
    return _or(result, _and(_nan(a), _nan(b))) if equal_nan else result


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Returns whether all elements are close; the arguments are those of `isclose`."""
    return reduce.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Returns whether two arrays have one shape and the same elements."""
    a, b = promoted(a1, a2)
    return reduce.reduce_all(_equal(a, b)) if a.shape == b.shape else array(False)


def isscalar(num: Any) -> bool:
    """Returns whether a value is a number, or a tensor of rank 0."""
    return np.isscalar(num) or (isinstance(num, Tensor) and num.shape.rank == 0)
