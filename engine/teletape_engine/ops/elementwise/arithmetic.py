"""Arithmetic of two or more arrays, elementwise. Shapes broadcast; the formulas are the partial derivatives.

Long because sums, products, quotients and bounds share their rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.checks import condition_of, holds
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import elementwise, elementwise_spec, linear_map
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.elementwise.math import log
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.spec import (
    COMPLEX,
    DTYPES,
    FLOATING,
    INTEGER,
    NUMERIC,
    REAL,
    REAL_OF,
    SIGNED,
    STRING,
    DType,
    Spec,
    finfo,
    shape_text,
)

QUOTIENTS: dict[DType, DType] = {dtype: DTYPES["float32" if dtype.itemsize < 4 else "float64"] for dtype in INTEGER}


@elementwise(1, 1, op_type="AddV2", dtypes=NUMERIC | {STRING}, tf="add math.add", traits=[Trait.CONVERTS_APART])
def add(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a + b, elementwise."""
    return xp.add(a, b)


@elementwise(1, -1, tf="subtract math.subtract")
def sub(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a - b, elementwise."""
    return xp.subtract(a, b)


@elementwise("b", "a", tf="multiply math.multiply", traits=[Trait.MULTIPLIES])
def mul(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a * b, elementwise."""
    return xp.multiply(a, b)


def _div_spec(a: Spec, b: Spec) -> Spec:
    spec = elementwise_spec("RealDiv", a, b)
    return spec.with_dtype(QUOTIENTS.get(spec.dtype, spec.dtype))


@elementwise(
    linear_map(lambda ct, b: ct / b),
    linear_map(lambda ct, b, y: -ct * y / b),
    op_type="RealDiv",
    tf=(
        function(
            "truediv math.truediv realdiv",
            Conversion.VALUE("x"),
            Conversion.HINTED("y", of="x"),
            check="same_numeric_dtype",
        ),
        function(
            "divide math.divide",
            Conversion.LIKE("x", of="y"),
            Conversion.HINTED("y", of="x"),
            check="same_numeric_dtype",
        ),
    ),
    infer=_div_spec,
    domain=(0.3, 2.0),
    traits=[Trait.MULTIPLIES],
)
def div(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a / b, elementwise. Integers are divided as float64, those of 8 and 16 bits as float32; x / 0 is inf or nan."""
    integers = _dtype(a, b) in INTEGER
    return xp.true_divide(a, b, dtype=QUOTIENTS[_dtype(a, b)]) if integers else xp.true_divide(a, b)


def _dtype(a: Array, b: Array) -> DType:
    return a.dtype if hasattr(a, "dtype") else b.dtype  # one is a number at most


@elementwise(
    linear_map(lambda ct, b: ops.div_no_nan(ct, b)),
    linear_map(lambda ct, b, y: -ct * ops.div_no_nan(y, b)),
    op_type="DivNoNan",
    args="x y",
    tf=(
        function(
            "math.divide_no_nan",
            Conversion.LIKE("x", of="y"),
            Conversion.HINTED("y", of="x"),
            shortcut="fractions_no_nan",
        ),
    ),
    dtypes=FLOATING | COMPLEX,
    domain=(0.3, 2.0),
    temporaries=2,
    traits=[Trait.MULTIPLIES],
)
def div_no_nan(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a / b, elementwise, and 0 where b is 0: so are the gradients there."""
    zero = b == 0
    divisor = xp.where(zero, b.dtype.type(1), b) if hasattr(b, "dtype") else 1 if zero else b
    return xp.where(condition_of(xp, zero), _dtype(a, b).type(0), a / divisor)


def _check_divisor(xp: ArrayModule, b: Array) -> None:
    if not holds(xp, b != 0) if hasattr(b, "dtype") else b == 0:
        raise InvalidArgumentError("Integer division by zero")


@elementwise(
    NON_DIFFERENTIABLE,
    op_type="FloorDiv",
    refuses=("b",),
    temporaries=1,
    tf="math.floordiv",
    dtypes=REAL,
    domain=(0.3, 2.0),
)
def floordiv(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The largest whole number not above a / b, elementwise; the gradient is None.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    if _dtype(a, b) in INTEGER:
        _check_divisor(xp, b)
        return xp.floor_divide(a, b)
    # NumPy's own floor_divide corrects for the rounding of the quotient, TensorFlow's does not: 1.0 // 0.1 is 10.
    return xp.floor(xp.true_divide(a, b))


@elementwise(
    1,
    lambda a, b: -floordiv(a, b),
    op_type="FloorMod",
    refuses=("b",),
    tf="math.floormod math.mod",
    dtypes=REAL,
    domain=(0.3, 2.0),
    traits=[Trait.SATURATES],
)
def floormod(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The remainder of a // b, with the sign of b, elementwise.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    if _dtype(a, b) in INTEGER:
        _check_divisor(xp, b)
    return xp.remainder(a, b)


@elementwise(
    NON_DIFFERENTIABLE,
    op_type="TruncateDiv",
    refuses=("b",),
    temporaries=2,
    args="x y",
    tf="truncatediv",
    dtypes=REAL,
    domain=(0.3, 2.0),
)
def truncatediv(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a / b without its fraction, elementwise: rounded toward zero; the gradient is None.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    if _dtype(a, b) not in INTEGER:
        return xp.trunc(xp.true_divide(a, b))
    _check_divisor(xp, b)
    quotient = xp.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(quotient.dtype)


@elementwise(
    NOT_REGISTERED,
    op_type="TruncateMod",
    refuses=("b",),
    args="x y",
    tf="truncatemod",
    dtypes=REAL,
    domain=(0.3, 2.0),
)
def truncatemod(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The remainder of truncatediv, with the sign of a, elementwise.

    Raises:
        InvalidArgumentError: An integer divided by zero.
    """
    if _dtype(a, b) in INTEGER:
        _check_divisor(xp, b)
    return xp.fmod(a, b)


@elementwise(
    1,
    0,
    op_type="NextAfter",
    args="x1 x2",
    tf="math.nextafter",
    dtypes=frozenset((DTYPES["float32"], DTYPES["float64"])),
)
def nextafter(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The next number of the dtype after a in the direction of b, elementwise."""
    return xp.nextafter(a, b)


def _log_of_base(a: Operand, y: Operand, a_spec: Spec) -> Operand:
    # log(a) if that exists, else 0; the 1 keeps infinities out of the second derivative.
    exists = a != 0 if a_spec.dtype in COMPLEX else a > 0
    return where(exists, log(where(exists, a, ones_like(y))), zeros_like(y))


@elementwise(
    lambda a, b: b * ops.pow(a, b - 1),
    lambda a, y, a_spec: y * _log_of_base(a, y, a_spec),
    refuses=("b",),
    tf="pow math.pow",
    dtypes=NUMERIC,
    domain=(0.3, 2.0),
    name="pow",
)
def pow_(xp: ArrayModule, a: Array, b: Array) -> Array:
    """a ** b, elementwise. At a = 0 with b = 0 the gradient is nan in a and 0 in b, as in TensorFlow.

    Raises:
        InvalidArgumentError: An integer to a negative power.
    """
    if _dtype(a, b) in INTEGER and (not holds(xp, b >= 0) if hasattr(b, "dtype") else b < 0):
        raise InvalidArgumentError("Integers to negative integer powers are not allowed")
    return xp.power(a, b)


@elementwise(
    linear_map(lambda ct, a, b: where(a >= b, ct, 0.0)),
    linear_map(lambda ct, a, b: where(a >= b, 0.0, ct)),
    tf="maximum math.maximum",
    dtypes=REAL,
    traits=[Trait.COMPARES, Trait.SELECTS],
)
def maximum(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The larger of a and b, elementwise; nan if either is. On a tie the gradient goes to `a` alone."""
    return xp.maximum(a, b)


@elementwise(
    linear_map(lambda ct, a, b: where(a <= b, ct, 0.0)),
    linear_map(lambda ct, a, b: where(a <= b, 0.0, ct)),
    tf="minimum math.minimum",
    dtypes=REAL,
    traits=[Trait.COMPARES, Trait.SELECTS],
)
def minimum(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The smaller of a and b, elementwise; nan if either is. On a tie the gradient goes to `a` alone."""
    return xp.minimum(a, b)


def _distance_vjp(ct: Operand, a: Operand, b: Operand, sign: int) -> Operand:
    if ct.dtype in COMPLEX:  # the result is real, whatever its dtype; the rule is passed the conjugates of a and b
        return ops.cast(ops.real(ct), dtype=ct.dtype) * ops.conj(a - b) * (2 * sign)
    return ct * ((2 * sign) * (a - b))


def _distance_jvp(t: Operand, a: Operand, b: Operand, sign: int) -> Operand:
    if t.dtype in COMPLEX:
        return ops.cast(ops.real(t * ops.conj(a - b)), dtype=t.dtype) * (2 * sign)
    return t * ((2 * sign) * (a - b))


@elementwise(
    linear_map(lambda ct, a, b: _distance_vjp(ct, a, b, 1)),
    linear_map(lambda ct, a, b: _distance_vjp(ct, a, b, -1)),
    jvp=[
        linear_map(lambda t, a, b: _distance_jvp(t, a, b, 1)),
        linear_map(lambda t, a, b: _distance_jvp(t, a, b, -1)),
    ],
    temporaries=2,
    tf="math.squared_difference",
    dtypes=FLOATING | COMPLEX | (INTEGER & SIGNED),
)
def squared_difference(xp: ArrayModule, a: Array, b: Array) -> Array:
    """(a - b)², elementwise; |a - b|² of complex numbers, in their dtype."""
    difference = xp.subtract(a, b)
    return difference * xp.conj(difference) if difference.dtype in COMPLEX else xp.square(difference)


@elementwise(
    lambda a, b: b / (a * a + b * b),
    lambda a, b: -a / (a * a + b * b),
    args="y x",
    tf="atan2 math.atan2",
    dtypes=FLOATING,
    domain=(0.3, 2.0),
)
def atan2(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The angle of the point (x=b, y=a) in (-π, π], elementwise, in radians."""
    return xp.arctan2(a, b)


def _add_n_spec(*specs: Spec) -> Spec:
    check_dtypes("AddN", specs, NUMERIC)
    for i, spec in enumerate(specs):
        if spec.shape != specs[0].shape:
            raise InvalidArgumentError(
                "Inputs to operation AddN of type AddN must have the same size and shape.  "
                f"Input 0: {shape_text(specs[0].shape)} != input {i}: {shape_text(spec.shape)}"
            )
    return specs[0]


def _batch_add_n(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    total = args[0]
    for arg in args[1:]:
        total = total + arg
    return total


@op(
    infer=_add_n_spec,
    vjp=lambda ct: ct,
    jvp=lambda t: t,
    batch=_batch_add_n,
    samples=[sample((2, 3), (2, 3), (2, 3)), sample((4,)), sample((), (), seed=1)],
    tf=(function("add_n math.add_n", Conversion.TENSORS("inputs")),),
    views=True,
    reach=Reach.ELEMENTS,
)
def add_n(xp: ArrayModule, *xs: Array) -> Array:
    """The sum of arrays of one shape and dtype."""
    total = xs[0]
    for x in xs[1:]:
        total = xp.add(total, x)
    return total


@composite(
    tf=(
        function(
            "clip_by_value",
            Conversion.OPERAND("t"),
            Conversion.OPERAND("clip_value_min"),
            Conversion.OPERAND("clip_value_max"),
            Conversion.IGNORED("name", None),
            check="bounds_fit",
            shortcut="clipped_slices",
        ),
    ),
    samples=[sample((2, 3), -0.5, 0.7), sample((3,), (), (), low=0.1), sample((2, 2), (2, 2), 1, seed=2)],
)
def clip_by_value(x: Operand, clip_value_min: Operand, clip_value_max: Operand) -> Operand:
    """x, limited to the range between two bounds, which may be arrays. The gradient passes at both bounds."""
    return maximum(minimum(x, clip_value_max), clip_value_min)


def _bounds(dtype: DType) -> tuple[float, float]:
    if dtype in INTEGER:
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    limits = finfo(dtype)
    return float(limits.min), float(limits.max)


@composite(
    samples=[sample((2, 3), dtype=DTYPES["float32"]), sample((3,), dtype=DTYPES["float16"])],
    tf=(
        function(
            "saturate_cast dtypes.saturate_cast",
            Conversion.TENSOR("value"),
            Conversion.DTYPE("dtype"),
            check="has_bounds",
            shortcut="itself_if_dtype",
        ),
    ),
)
def saturate_cast(x: Operand, *, dtype: DType) -> Operand:
    """x as another dtype; an element outside its range becomes its smallest or largest finite value.

    Real numbers have the real part of complex ones; of complex numbers both parts are bounded.
    """
    if x.dtype in COMPLEX and dtype in COMPLEX:
        parts = (saturate_cast(part(x), dtype=REAL_OF[dtype]) for part in (ops.real, ops.imag))
        return ops.complex(*parts)
    if x.dtype in COMPLEX:
        x = ops.real(x)
    if {x.dtype, dtype} <= REAL:
        (low, high), (lowest, highest) = _bounds(x.dtype), _bounds(dtype)
        smaller = min(high, highest)
        largest = x.dtype.type(float(smaller) if x.dtype in FLOATING else smaller)  # bfloat16 takes no int of 64 bits
        if x.dtype in FLOATING and float(largest) > highest:  # 2^31 - 1 is 2^31 in float32
            largest = np.nextafter(largest, x.dtype.type(0))
        x = clip_by_value(x, max(low, lowest), largest.item())
    return ops.cast(x, dtype=dtype)
