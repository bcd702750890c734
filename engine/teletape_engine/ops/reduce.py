"""Reductions over axes, and the indices of extremes. 16-bit floats are summed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Axes, Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_axes, composite, reduced, reduction, restore
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, PublicFunction, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj, real, sign
from teletape_engine.ops.elementwise.logic import greater, where
from teletape_engine.ops.elementwise.math import exp, sqrt, square
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import broadcast_to, concat, reshape, transpose
from teletape_engine.spec import (
    BOOL,
    COMPLEX,
    DTYPES,
    FLOATING,
    INDEX,
    INTEGER,
    KERNEL_NAMES,
    PLACES,
    REAL,
    DType,
    Number,
    Spec,
    axes_in,
    shape_text,
    wide,
    wide_bytes,
)

_BOOL = frozenset((BOOL,))


def _counted(shape: tuple[int, ...], axis: Axes) -> int:
    """The number of elements that are reduced to one."""
    return math.prod(shape[i] for i in axes_in(axis, len(shape)))


# -------------------------------------------------------------------------------------------------------------- sums
_ROW = 8192  # elements


@lru_cache(maxsize=1024)
def _rows_together(rows: int, length: int) -> int:
    """How many rows of that length are added as one long row: a divisor of their number; 1 if they are long or few."""
    if length > _ROW // 8:
        return 1
    return next((n for n in range(min(_ROW // max(length, 1), rows // 8), 7, -1) if rows % n == 0), 1)


def _total(xp: ArrayModule, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The sum over axes, in the dtype that sums are computed in.

    Many short rows are added up as fewer long ones first: five times faster, and more exact.
    """
    dtype, count = wide(x.dtype), len(axes)
    if 0 < count < x.ndim and axes[-1] == count - 1 and x.flags.c_contiguous:
        rows, length = math.prod(x.shape[:count]), math.prod(x.shape[count:])
        together = _rows_together(rows, length)
        if together > 1:
            long = xp.sum(x.reshape((rows // together, together * length)), axis=(0,), dtype=dtype)
            total = xp.sum(long.reshape((together, length)), axis=(0,), dtype=dtype)
            return total.reshape((*(1,) * (count if keepdims else 0), *x.shape[count:]))
    return xp.sum(x, axis=axes, keepdims=keepdims, dtype=dtype)


@reduction(
    vjp=lambda ct, x_spec, axis: broadcast_to(restore(ct, x_spec, axis), shape=x_spec.shape),
    jvp=lambda t, axis, keepdims: ops.reduce_sum(t, axis=axis, keepdims=keepdims),
    op_type="Sum",
    tf="reduce_sum math.reduce_sum",
    extra=[sample((0, 2), axis=0)],
)
def reduce_sum(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The sum over `axis` (one, several, or by default all); integers wrap around. Without elements it is 0."""
    return _total(xp, x, axes_in(axis, len(x.shape)), keepdims).astype(x.dtype, copy=False)


@reduction(
    vjp=lambda ct, x_spec, axis: broadcast_to(
        restore(ct, x_spec, axis) / max(_counted(x_spec.shape, axis), 1), shape=x_spec.shape
    ),
    jvp=lambda t, axis, keepdims: ops.reduce_mean(t, axis=axis, keepdims=keepdims),
    op_type="Mean",
    tf="reduce_mean math.reduce_mean",
    workspace=lambda x, axis, keepdims: 40 * math.prod(reduced(x.shape, axis, keepdims)) if x.dtype in INTEGER else 0,
)
def reduce_mean(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean over `axis`; of integers an integer, summed in 64 bits and rounded toward zero; nan without elements."""
    axes, count = axes_in(axis, len(x.shape)), _counted(x.shape, axis)
    if x.dtype in INTEGER:
        long = DTYPES["uint64" if x.dtype.kind == "u" else "int64"]
        total, divisor = xp.sum(x, axis=axes, keepdims=keepdims, dtype=long), long.type(max(count, 1))
        return xp.where(total < 0, -(-total // divisor), total // divisor).astype(x.dtype, copy=False)
    total = _total(xp, x, axes, keepdims)
    return (total / total.dtype.type(count)).astype(x.dtype, copy=False)


# ---------------------------------------------------------------------------------------------------------- extremes
def _shares(x: Operand, y: Operand, x_spec: Spec, axis: Axes) -> Operand:
    """The weight of each element in the extreme: equal weights on a tie."""
    here = cast(x == restore(y, x_spec, axis), dtype=x_spec.dtype)
    return here / reduce_sum(here, axis=axis, keepdims=True)


def _extreme_vjp(ct: Operand, x: Operand, y: Operand, x_spec: Spec, axis: Axes) -> Operand:
    return restore(ct, x_spec, axis) * _shares(x, y, x_spec, axis)


def _extreme_jvp(t: Operand, x: Operand, y: Operand, x_spec: Spec, axis: Axes, keepdims: bool) -> Operand:
    return reduce_sum(t * _shares(x, y, x_spec, axis), axis=axis, keepdims=keepdims)


def _lowest(dtype: DType) -> Number:
    return dtype.type(-np.inf) if dtype in FLOATING else np.iinfo(dtype).min


def _highest(dtype: DType) -> Number:
    return dtype.type(np.inf) if dtype in FLOATING else np.iinfo(dtype).max


@reduction(
    vjp=_extreme_vjp,
    jvp=_extreme_jvp,
    op_type="Max",
    tf="reduce_max math.reduce_max",
    dtypes=REAL,
    traits=[Trait.SELECTS],
)
def reduce_max(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest over `axis`; nan if any is, -inf without elements. Equal ones share the gradient equally."""
    if x.size == 0:
        return xp.full(reduced(x.shape, axis, keepdims), _lowest(x.dtype), x.dtype)
    return xp.max(x, axis=axes_in(axis, len(x.shape)), keepdims=keepdims)


@reduction(
    vjp=_extreme_vjp,
    jvp=_extreme_jvp,
    op_type="Min",
    tf="reduce_min math.reduce_min",
    dtypes=REAL,
    traits=[Trait.SELECTS],
)
def reduce_min(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest over `axis`; nan if any is, inf without elements. Equal ones share the gradient equally."""
    if x.size == 0:
        return xp.full(reduced(x.shape, axis, keepdims), _highest(x.dtype), x.dtype)
    return xp.min(x, axis=axes_in(axis, len(x.shape)), keepdims=keepdims)


# ----------------------------------------------------------------------------------------------------------- product
def _others(x: Operand) -> Operand:
    """For each element along the last axis the product of all the others.

    By a tree of halves: only multiplications, so that it is exact if elements are zero, and so are its own derivatives.
    """
    n = x.shape[-1]
    if n <= 1:
        return ones_like(x)
    half = n // 2
    first, second = _last(x, 0, half), _last(x, half, 2 * half)
    products = first * second
    above = _others(products if n % 2 == 0 else concat(products, _last(x, n - 1, n), axis=-1))
    pair = _last(above, 0, half)
    rest = [_last(above, half, half + 1)] if n % 2 else []
    return concat(pair * second, pair * first, *rest, axis=-1)


def _last(x: Operand, start: int, stop: int) -> Operand:
    return strided_slice(x, index=("...", (start, stop, None)))


def _products_of_others(x: Operand, x_spec: Spec, axis: Axes) -> Operand:
    axes = axes_in(axis, x_spec.ndim)
    if _counted(x_spec.shape, axis) <= 1:
        return sign(x) * zeros_like(x) + ones_like(x)  # 1, whose own gradient is zero, not None
    others = tuple(i for i in range(x_spec.ndim) if i not in axes)
    order = (*others, *axes)
    lengths = tuple(x_spec.shape[i] for i in order)
    rows = reshape(transpose(x, perm=order), shape=(*lengths[: len(others)], _counted(x_spec.shape, axis)))
    back = tuple(order.index(i) for i in range(x_spec.ndim))
    return transpose(reshape(_others(rows), shape=lengths), perm=back)


def _conj_if(factor: Operand, spec: Spec) -> Operand:
    return conj(factor) if spec.dtype in COMPLEX else factor


@reduction(
    vjp=lambda ct, x, x_spec, axis: restore(ct, x_spec, axis) * _conj_if(_products_of_others(x, x_spec, axis), x_spec),
    jvp=lambda t, x, x_spec, axis, keepdims: reduce_sum(
        t * _products_of_others(x, x_spec, axis), axis=axis, keepdims=keepdims
    ),
    op_type="Prod",
    tf="reduce_prod math.reduce_prod",
    extra=[
        sample(np.array([0.0, 2.0, 3.0])),
        sample(np.array([0.0, 2.0, 0.0])),
        sample(np.array([[0.0, 2.0, -1.5, 0.5, 1.1], [1.0, 2.0, 0.0, 0.0, 3.0]]), axis=1),
        sample((0, 2), axis=0),
    ],
    traits=[Trait.MULTIPLIES],
)
def reduce_prod(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The product over `axis`; integers wrap around; 1 without elements. The gradient is exact at zeros."""
    axes = axes_in(axis, len(x.shape))
    return xp.prod(x, axis=axes, keepdims=keepdims, dtype=wide(x.dtype)).astype(x.dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------- truth
@reduction(vjp=NOT_REGISTERED, op_type="Any", tf="reduce_any math.reduce_any", dtypes=_BOOL, traits=[Trait.TRUTHS])
def reduce_any(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether any is true over `axis`. Without elements it is false."""
    return xp.any(x, axis=axes_in(axis, len(x.shape)), keepdims=keepdims)


@reduction(vjp=NOT_REGISTERED, op_type="All", tf="reduce_all math.reduce_all", dtypes=_BOOL, traits=[Trait.TRUTHS])
def reduce_all(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all are true over `axis`. Without elements it is true."""
    return xp.all(x, axis=axes_in(axis, len(x.shape)), keepdims=keepdims)


# ------------------------------------------------------------------------------------------------------------- norms
def _weights(x: Operand, y: Operand, x_spec: Spec, axis: Axes) -> Operand:
    """The derivatives of y = log(Σ eˣ): eˣ⁻ʸ, divided by their sum, which is 1 but for the rounding of a large y.

    A weight that is NaN leaves the others as they are.
    """
    weights = exp(x - restore(y, x_spec, axis))
    total = reduce_sum(weights, axis=axis, keepdims=True)
    return weights / where(greater(total, zeros_like(total)), total, ones_like(total))


@reduction(
    vjp=lambda ct, x, y, x_spec, axis: restore(ct, x_spec, axis) * _weights(x, y, x_spec, axis),
    jvp=lambda t, x, y, x_spec, axis, keepdims: reduce_sum(
        t * _weights(x, y, x_spec, axis), axis=axis, keepdims=keepdims
    ),
    op_type="Logsumexp",
    tf="reduce_logsumexp math.reduce_logsumexp",
    dtypes=FLOATING,
    workspace=lambda x, **_: wide_bytes(x, 2),
)
def reduce_logsumexp(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """log(Σ eˣ) over `axis`, without overflow. Without elements it is -inf."""
    if x.size == 0:
        return xp.full(reduced(x.shape, axis, keepdims), -np.inf, x.dtype)
    axes = axes_in(axis, len(x.shape))
    top = xp.max(x, axis=axes, keepdims=True).astype(wide(x.dtype), copy=False)
    top = xp.where(xp.isfinite(top), top, top.dtype.type(0))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total.reshape(reduced(x.shape, axis, keepdims)).astype(x.dtype, copy=False)


def _norm_vjp(ct: Operand, x: Operand, y: Operand, x_spec: Spec, axis: Axes) -> Operand:
    if x_spec.dtype in COMPLEX:  # the result is real, whatever its dtype
        ct = cast(real(ct), dtype=x_spec.dtype)
    return restore(ct, x_spec, axis) * (x / restore(y, x_spec, axis))


def _norm_jvp(t: Operand, x: Operand, y: Operand, x_spec: Spec, axis: Axes, keepdims: bool) -> Operand:
    unit = x / restore(y, x_spec, axis)
    along = cast(real(t * conj(unit)), dtype=x_spec.dtype) if x_spec.dtype in COMPLEX else t * unit
    return reduce_sum(along, axis=axis, keepdims=keepdims)


@reduction(
    vjp=_norm_vjp,
    jvp=_norm_jvp,
    op_type="EuclideanNorm",
    tf="math.reduce_euclidean_norm",
    workspace=lambda x, **_: 3 * 8 * x.size if x.dtype in INTEGER else 2 * x.nbytes + wide_bytes(x, 2),
)
def reduce_euclidean_norm(xp: ArrayModule, x: Array, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """√(Σ |x|²) over `axis`, in the dtype of x, without the fraction of integers. The gradient at zero is nan."""
    numbers = x.astype(np.float64 if x.dtype in INTEGER else wide(x.dtype), copy=False)
    squares = xp.square(numbers) if x.dtype not in COMPLEX else numbers * xp.conj(numbers)
    total = xp.sum(squares, axis=axes_in(axis, len(x.shape)), keepdims=keepdims)
    return xp.sqrt(total).astype(x.dtype, copy=False)


_STATISTICS = [sample((2, 3, 4)), sample((2, 3, 4), axis=(0, 2), keepdims=True), sample((3, 2), axis=-1, seed=1)]


def _statistic(name: str) -> tuple[PublicFunction]:
    arguments = (Conversion.TENSOR("input_tensor"), Conversion.AXES("axis", None), Conversion.FLAG("keepdims", False))
    return (function(name, *arguments, check="real_or_complex"),)


@composite(op_type="Variance", tf=_statistic("math.reduce_variance"), samples=_STATISTICS)
def reduce_variance(x: Operand, *, axis: Axes = None, keepdims: bool = False) -> Operand:
    """The mean squared distance from the mean over `axis` (divided by n); of complex numbers real."""
    distance = x - reduce_mean(x, axis=axis, keepdims=True)
    squares = real(distance * conj(distance)) if x.dtype in COMPLEX else square(distance)
    return reduce_mean(squares, axis=axis, keepdims=keepdims)


@composite(op_type="Std", tf=_statistic("math.reduce_std"), samples=_STATISTICS)
def reduce_std(x: Operand, *, axis: Axes = None, keepdims: bool = False) -> Operand:
    """The square root of the variance over `axis`. The gradient is nan if that is zero, as in TensorFlow."""
    return sqrt(reduce_variance(x, axis=axis, keepdims=keepdims))


# ------------------------------------------------------------------------------------------------ indices of extremes
def _arg_spec(op_type: str, output_types: frozenset[DType]) -> Callable[..., Spec]:
    def infer(x: Spec, *, axis: int, output_type: DType) -> Spec:
        check_dtypes(op_type, (x,), REAL | _BOOL)
        if output_type not in output_types:
            takes = ", ".join(dtype.name for dtype in KERNEL_NAMES if dtype in output_types)
            raise InvalidArgumentError(
                f"Value for attr 'output_type' of {output_type.name} is not in the list of allowed values: {takes}"
            )
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
        if x.shape[axis] == 0:
            raise InvalidArgumentError(f"Reduction axis {axis % x.ndim} is empty in shape {shape_text(x.shape)}")
        return Spec.of(reduced(x.shape, axis, keepdims=False), output_type)

    return infer


_ARG_SAMPLES = [
    sample((2, 3)),
    sample((2, 3), axis=-1, output_type=DTYPES["int32"]),
    Sample((np.array([1.0, 3.0, 3.0, -2.0, -2.0]),), {}),
    Sample((np.array([1.0, np.nan, 3.0, -1.0]),), {}),
]


def _arg(xp: ArrayModule, x: Array, axis: int, output_type: DType, *, largest: bool) -> Array:
    if x.dtype in FLOATING:  # nan counts as the worst
        x = xp.where(xp.isnan(x), _lowest(x.dtype) if largest else _highest(x.dtype), x)
    return (xp.argmax if largest else xp.argmin)(x, axis=axis).astype(output_type, copy=False)


@op(
    infer=_arg_spec("ArgMax", PLACES | {DTYPES["uint16"]}),
    vjp=NON_DIFFERENTIABLE,
    batch=batch_axes,
    samples=_ARG_SAMPLES,
    op_type="ArgMax",
    args="input axis output_type",
    tf=(
        function(
            "argmax math.argmax",
            "input",
            Conversion.INT("axis", None),
            Conversion.DTYPE("output_type", DTYPES["int64"]),
        ),
    ),
    workspace=lambda x, **_: 2 * x.nbytes,
)
def argmax(xp: ArrayModule, x: Array, *, axis: Axis = 0, output_type: DType = DTYPES["int64"]) -> Array:
    """The index of the largest along `axis`, the first one of equal elements; nan is ignored."""
    return _arg(xp, x, axis, output_type, largest=True)


@op(
    infer=_arg_spec("ArgMin", INDEX),
    vjp=NON_DIFFERENTIABLE,
    batch=batch_axes,
    samples=_ARG_SAMPLES,
    op_type="ArgMin",
    args="input axis output_type",
    tf=(
        function(
            "argmin math.argmin",
            "input",
            Conversion.INT("axis", None),
            Conversion.DTYPE("output_type", DTYPES["int64"]),
        ),
    ),
    workspace=lambda x, **_: 2 * x.nbytes,
)
def argmin(xp: ArrayModule, x: Array, *, axis: Axis = 0, output_type: DType = DTYPES["int64"]) -> Array:
    """The index of the smallest along `axis`, the first one of equal elements; nan is ignored."""
    return _arg(xp, x, axis, output_type, largest=False)
