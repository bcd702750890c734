"""Comparisons, truth values and bits, and selection by them. None of them but `where` has a gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.define import check_dtype, on_gpu, op, sample
from teletape_engine.catalogue.elementwise import binary, elementwise, linear_map, unary
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Sample, Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import (
    BOOL,
    DTYPES,
    FLOATING,
    INTEGER,
    NUMERIC,
    REAL,
    STRING,
    DType,
    Spec,
    broadcast,
    shape_text,
)

_BOOL = frozenset((BOOL,))
_T, _F = np.array([[True, False, True], [False, False, True]]), np.array([[True], [False]])
_PAIRS = (Sample((_T, ~_T), {}), Sample((_T, _F), {}), Sample((_T[0, 0], _F[1, 0]), {}))
_BITS = (
    Sample((np.array([[5, 3], [-1, 0]]), np.array([6, 1])), {}),
    Sample((np.int32(12), np.int32(10)), {}),
)
_ORDER = (
    sample(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])),
    sample((2, 1, 3), (4, 1)),
    sample(np.array([1.0, 2.0]), 1.0),
    sample((), ()),
)


_EXTREMES = (sample(np.array([1.0, np.inf, -np.inf, np.nan])), sample(()))
_XOR = function(
    "math.logical_xor",
    Conversion.BOOL("x"),
    Conversion.BOOL("y"),
    Conversion.IGNORED("name", "LogicalXor"),
    synonym=False,
    doc="True where exactly one of two bool tensors is. A value that is no bool is a TypeError, a tensor a ValueError.",
)

# ---------------------------------------------------------------------------------------- comparisons, truths and bits
_compares = partial(binary, formulas=NON_DIFFERENTIABLE, result=BOOL, samples=_ORDER)
_combines = partial(binary, formulas=NON_DIFFERENTIABLE, dtypes=_BOOL, samples=_PAIRS, traits=[Trait.TRUTHS])
_bitwise = partial(binary, formulas=NON_DIFFERENTIABLE, dtypes=INTEGER, samples=_BITS)
_classifies = partial(unary, formula=NOT_REGISTERED, dtypes=FLOATING, result=BOOL, samples=_EXTREMES)

equal = _compares(
    "equal",
    doc="a == b, elementwise, as bool; nan equals nothing.",
    dtypes=NUMERIC | _BOOL | {STRING},
    tf="equal math.equal",
)
not_equal = _compares(
    "not_equal",
    doc="a != b, elementwise, as bool.",
    dtypes=NUMERIC | _BOOL | {STRING},
    tf=("not_equal math.not_equal", _XOR),
)
less = _compares("less", doc="a < b, elementwise, as bool.", dtypes=REAL, tf="less math.less")
less_equal = _compares("less_equal", doc="a <= b, elementwise, as bool.", dtypes=REAL, tf="less_equal math.less_equal")
greater = _compares("greater", doc="a > b, elementwise, as bool.", dtypes=REAL, tf="greater math.greater")
greater_equal = _compares(
    "greater_equal", doc="a >= b, elementwise, as bool.", dtypes=REAL, tf="greater_equal math.greater_equal"
)
logical_and = _combines("logical_and", doc="Whether both are true, elementwise.", tf="logical_and math.logical_and")
logical_or = _combines("logical_or", doc="Whether one or both are true, elementwise.", tf="logical_or math.logical_or")
logical_not = unary(
    "logical_not",
    NON_DIFFERENTIABLE,
    "The opposite truth value, elementwise.",
    dtypes=_BOOL,
    samples=[Sample((_T,), {}), Sample((_T[0, 0],), {})],
    traits=[Trait.TRUTHS],
    tf="logical_not math.logical_not",
)
bitwise_and = _bitwise("bitwise_and", doc="The bits set in both, elementwise, of integers.", tf="bitwise.bitwise_and")
bitwise_or = _bitwise(
    "bitwise_or", doc="The bits set in one or both, elementwise, of integers.", tf="bitwise.bitwise_or"
)
bitwise_xor = _bitwise(
    "bitwise_xor", doc="The bits set in one but not both, elementwise, of integers.", tf="bitwise.bitwise_xor"
)


def _bits(dtype: DType, by: Any) -> Any:
    """How far to shift: TensorFlow keeps it in [0, number of bits)."""
    most = 8 * dtype.itemsize - 1
    return by.clip(0, most) if hasattr(by, "clip") else min(max(by, 0), most)


def _integer(a: Array, b: Array) -> DType:
    return a.dtype if hasattr(a, "dtype") else b.dtype


@elementwise(NON_DIFFERENTIABLE, dtypes=INTEGER, samples=_BITS, args="x y", tf="bitwise.left_shift", temporaries=1)
def left_shift(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The bits of a moved b places to the higher ones, elementwise, of integers."""
    return xp.left_shift(a, _bits(_integer(a, b), b))


@elementwise(NON_DIFFERENTIABLE, dtypes=INTEGER, samples=_BITS, args="x y", tf="bitwise.right_shift", temporaries=1)
def right_shift(xp: ArrayModule, a: Array, b: Array) -> Array:
    """The bits of a moved b places to the lower ones, elementwise, of integers; the sign stays."""
    return xp.right_shift(a, _bits(_integer(a, b), b))


invert = unary(
    "invert",
    NON_DIFFERENTIABLE,
    "Every bit flipped, elementwise, of integers.",
    dtypes=INTEGER,
    samples=[Sample((_BITS[0].inputs[0],), {})],
    tf="bitwise.invert",
)
isnan = _classifies("isnan", doc="Whether x is not a number, elementwise, as bool.", op_type="IsNan", tf="math.is_nan")
isinf = _classifies("isinf", doc="Whether x is inf or -inf, elementwise, as bool.", op_type="IsInf", tf="math.is_inf")
isfinite = _classifies(
    "isfinite",
    doc="Whether x is neither nan nor infinite, elementwise, as bool.",
    op_type="IsFinite",
    tf="math.is_finite",
)


# ------------------------------------------------------------------------------------------------------------ choice
def _where_spec(condition: Spec, a: Spec, b: Spec) -> Spec:
    check_dtype("SelectV2", 0, condition, BOOL)
    check_dtype("SelectV2", 2, b, a.dtype)
    try:
        return a.with_shape(broadcast(condition.shape, broadcast(a.shape, b.shape)))
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"condition {shape_text(condition.shape)}, then {shape_text(a.shape)}, and else {shape_text(b.shape)} must "
            "be broadcastable"
        ) from None


@elementwise(
    NON_DIFFERENTIABLE,
    linear_map(lambda ct, condition: ops.where(condition, ct, 0.0)),
    linear_map(lambda ct, condition: ops.where(condition, 0.0, ct)),
    op_type="SelectV2",
    tf=(by_hand("where", "without x and y it is another op, nonzero"),),
    infer=_where_spec,
    samples=[
        sample(_T, (2, 3), (2, 3)),
        sample(_F, (3,), ()),
        sample(_T, (2, 3), 0.5, seed=1),
        sample(_T[0, 0], (2, 1), (3,), seed=2),
    ],
    like=(0, 1, 1),
    traits=[Trait.SELECTS],
)
def where(xp: ArrayModule, condition: Array, a: Array, b: Array) -> Array:
    """a where the condition is true, b elsewhere, elementwise; all three broadcast.

    The gradient of an element that is not selected is zero. If the derivative of the op that computed it is infinite,
    their product is nan (0 * inf).
    """
    return xp.where(xp.asarray(condition), a, b)  # CuPy takes no Python bool


def _nonzero_spec(x: Spec) -> Spec:
    return Spec.of((x.size, x.ndim), DTYPES["int64"])


@op(
    infer=_nonzero_spec,
    vjp=NOT_REGISTERED,
    batch=None,
    samples=[Sample((_T,), {}), sample(np.array([0.0, 1.5, 0.0, -2.0])), Sample((np.array(True),), {})],
    op_type="Where",
    dynamic=True,
    workspace=lambda x: x.size + 8 * x.size * x.ndim,
)
@on_gpu(waits="the number of elements that are not zero")
def nonzero(xp: ArrayModule, x: Array) -> Array:
    """The indices of elements that are not zero (or true): int64 [n, rank], in row-major order.

    TensorFlow's `where` of one argument. The number of rows depends on the values.
    """
    if x.ndim == 0:
        return xp.zeros((int(x != 0), 0), np.int64)
    return xp.argwhere(x).astype(np.int64, copy=False)
