"""TensorFlow's functions of teletape_engine.ops.elementwise.arithmetic.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from collections.abc import Iterable

from teletape.core.calls import arguments as to
from teletape.core.calls import checks
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_ADD = ops.add
_SUB = ops.sub
_MUL = ops.mul
_DIV = ops.div
_DIV_NO_NAN = ops.div_no_nan
_FLOORDIV = ops.floordiv
_FLOORMOD = ops.floormod
_TRUNCATEDIV = ops.truncatediv
_TRUNCATEMOD = ops.truncatemod
_NEXTAFTER = ops.nextafter
_POW = ops.pow
_MAXIMUM = ops.maximum
_MINIMUM = ops.minimum
_SQUARED_DIFFERENCE = ops.squared_difference
_ATAN2 = ops.atan2
_ADD_N = ops.add_n
_CLIP_BY_VALUE = ops.clip_by_value
_SATURATE_CAST = ops.saturate_cast


def add(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a + b, elementwise."""
    try:
        return call(_ADD, (x, y))
    except BaseException as error:
        report(error)
        raise


def subtract(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a - b, elementwise."""
    try:
        return call(_SUB, (x, y))
    except BaseException as error:
        report(error)
        raise


def multiply(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a * b, elementwise."""
    try:
        return call(_MUL, (x, y))
    except BaseException as error:
        report(error)
        raise


def truediv(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a / b, elementwise. Integers are divided as float64, those of 8 and 16 bits as float32; x / 0 is inf or nan."""
    try:
        x = to.value(x)
        y = to.hinted(y, x)
        checks.same_numeric_dtype(x, y)
        return call(_DIV, (x, y))
    except BaseException as error:
        report(error)
        raise


def divide(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a / b, elementwise. Integers are divided as float64, those of 8 and 16 bits as float32; x / 0 is inf or nan."""
    try:
        x = to.like(x, y)
        y = to.hinted(y, x)
        checks.same_numeric_dtype(x, y)
        return call(_DIV, (x, y))
    except BaseException as error:
        report(error)
        raise


def divide_no_nan(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a / b, elementwise, and 0 where b is 0: so are the gradients there."""
    try:
        x = to.like(x, y)
        y = to.hinted(y, x)
        result = checks.fractions_no_nan(x, y)
        if result is not None:
            return result
        return call(_DIV_NO_NAN, (x, y))
    except BaseException as error:
        report(error)
        raise


def floordiv(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The largest whole number not above a / b, elementwise; the gradient is None.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    try:
        return call(_FLOORDIV, (x, y))
    except BaseException as error:
        report(error)
        raise


def floormod(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The remainder of a // b, with the sign of b, elementwise.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    try:
        return call(_FLOORMOD, (x, y))
    except BaseException as error:
        report(error)
        raise


def truncatediv(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a / b without its fraction, elementwise: rounded toward zero; the gradient is None.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    try:
        return call(_TRUNCATEDIV, (x, y))
    except BaseException as error:
        report(error)
        raise


def truncatemod(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The remainder of truncatediv, with the sign of a, elementwise.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    try:
        return call(_TRUNCATEMOD, (x, y))
    except BaseException as error:
        report(error)
        raise


def nextafter(x1: to.TensorInput, x2: to.TensorInput, name: str | None = None) -> Tensor:
    """The next number of the dtype after a in the direction of b, elementwise."""
    try:
        return call(_NEXTAFTER, (x1, x2))
    except BaseException as error:
        report(error)
        raise


def pow(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """a ** b, elementwise. At a = 0 with b = 0 the gradient is nan in a and 0 in b, as in TensorFlow.

    Raises:
        InvalidArgumentError: An integer to a negative power.
    """
    try:
        return call(_POW, (x, y))
    except BaseException as error:
        report(error)
        raise


def maximum(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The larger of a and b, elementwise; nan if either is. On a tie the gradient goes to `a` alone."""
    try:
        return call(_MAXIMUM, (x, y))
    except BaseException as error:
        report(error)
        raise


def minimum(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """The smaller of a and b, elementwise; nan if either is. On a tie the gradient goes to `a` alone."""
    try:
        return call(_MINIMUM, (x, y))
    except BaseException as error:
        report(error)
        raise


def squared_difference(x: to.TensorInput, y: to.TensorInput, name: str | None = None) -> Tensor:
    """(a - b)², elementwise; |a - b|² of complex numbers, in their dtype."""
    try:
        return call(_SQUARED_DIFFERENCE, (x, y))
    except BaseException as error:
        report(error)
        raise


def atan2(y: to.TensorInput, x: to.TensorInput, name: str | None = None) -> Tensor:
    """The angle of the point (x=b, y=a) in (-π, π], elementwise, in radians."""
    try:
        return call(_ATAN2, (y, x))
    except BaseException as error:
        report(error)
        raise


def add_n(inputs: Iterable[to.TensorInput], name: str | None = None) -> Tensor:
    """The sum of arrays of one shape and dtype."""
    try:
        inputs = to.tensors(inputs)
        return call(_ADD_N, inputs)
    except BaseException as error:
        report(error)
        raise


def clip_by_value(
    t: to.TensorInput, clip_value_min: to.TensorInput, clip_value_max: to.TensorInput, name: str | None = None
) -> Tensor:
    """x, limited to the range between two bounds, which may be arrays. The gradient passes at both bounds."""
    try:
        checks.bounds_fit(t, clip_value_min, clip_value_max)
        result = checks.clipped_slices(t, clip_value_min, clip_value_max)
        if result is not None:
            return result
        return call(_CLIP_BY_VALUE, (t, clip_value_min, clip_value_max))
    except BaseException as error:
        report(error)
        raise


def saturate_cast(value: to.TensorInput, dtype: to.DTypeInput, name: str | None = None) -> Tensor:
    """x as another dtype; an element outside its range becomes its smallest or largest finite value.

    Real numbers have the real part of complex ones; of complex numbers both parts are bounded.
    """
    try:
        value = to.tensor(value)
        checks.has_bounds(value, dtype)
        result = checks.itself_if_dtype(value, dtype)
        if result is not None:
            return result
        return call(_SATURATE_CAST, (value,), dtype=to.dtype(dtype))
    except BaseException as error:
        report(error)
        raise
