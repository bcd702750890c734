"""Running sums, products and logarithms of sums along an axis. 16-bit floats are summed in float32 and rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.kernels import Lines, applied, kernel
from teletape_engine.catalogue.attributes import Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_all, batch_axes, composite, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.elementwise.math import exp
from teletape_engine.spec import (
    COMPLEX,
    FLOATING,
    NUMERIC,
    DType,
    Spec,
    axis_in,
    half_bytes,
    shape_text,
    wide,
    wide_bytes,
)


def _running(
    xp: ArrayModule, run: Callable[..., Array], unit: int, x: Array, axis: int, exclusive: bool, reverse: bool
) -> Array:
    if reverse:
        x = xp.flip(x, axis)
    total = run(x, axis=axis, dtype=wide(x.dtype))
    if exclusive:
        shifted = xp.full_like(total, unit)
        end, start = [slice(None)] * x.ndim, [slice(None)] * x.ndim
        start[axis], end[axis] = slice(1, None), slice(None, -1)
        shifted[tuple(start)] = total[tuple(end)]
        total = shifted
    total = total.astype(x.dtype, copy=False)
    return xp.flip(total, axis) if reverse else total


def _cumsum_spec(x: Spec, *, axis: int, exclusive: bool, reverse: bool) -> Spec:
    check_dtypes("Cumsum", (x,), NUMERIC)
    axis_in(axis, x.ndim)
    return x


@linear(
    infer=_cumsum_spec,
    vjp=lambda ct, axis, exclusive, reverse: ops.cumsum(ct, axis=axis, exclusive=exclusive, reverse=not reverse),
    batch=batch_axes,
    samples=[
        sample((3, 4)),
        sample((3, 4), axis=-1, exclusive=True),
        sample((3, 4), axis=1, reverse=True),
        sample((3,), exclusive=True, reverse=True),
        sample((0, 2)),
    ],
    tf="cumsum math.cumsum",
    workspace=lambda x, **_: wide_bytes(x) + half_bytes(x),
    traits=[Trait.SELECTS],
    reach=Reach.LINES,
)
def cumsum(xp: ArrayModule, x: Array, *, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Array:
    """Sums of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    return _running(xp, xp.cumsum, 0, x, axis, exclusive, reverse)


def _cumprod_spec(x: Spec, *, axis: int, exclusive: bool, reverse: bool) -> Spec:
    check_dtypes("Cumprod", (x,), NUMERIC)
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}")
    return x


def _previous(x: Operand, axis: int, reverse: bool) -> Operand:
    """For each element the one before it in the direction of the run, and 0 for the first."""
    n = len(x.shape)
    at = axis_in(axis, n)
    if not x.shape[at]:
        return x
    rest = (1, None, None) if reverse else (None, -1, None)
    paddings = tuple(((0, 1) if reverse else (1, 0)) if i == at else (0, 0) for i in range(n))
    return ops.pad(ops.strided_slice(x, index=(*((None, None, None),) * at, rest)), paddings=paddings)


def _conj_if(x: Operand) -> Operand:
    return conj(x) if x.dtype in COMPLEX else x


def _cumprod_vjp(ct: Operand, x: Operand, axis: int, exclusive: bool, reverse: bool) -> Operand:
    x = _conj_if(x)
    after = ops.recurrence(ct, x, axis=axis, reverse=not reverse, own=exclusive)
    if exclusive:
        after = _previous(after, axis, not reverse)
    return after * cumprod(x, axis=axis, exclusive=True, reverse=reverse)


def _cumprod_jvp(t: Operand, x: Operand, axis: int, exclusive: bool, reverse: bool) -> Operand:
    before = cumprod(x, axis=axis, exclusive=True, reverse=reverse)
    tangent = ops.recurrence(t * before, x, axis=axis, reverse=reverse)
    return _previous(tangent, axis, reverse) if exclusive else tangent


@op(
    infer=_cumprod_spec,
    vjp=_cumprod_vjp,
    jvp=_cumprod_jvp,
    batch=batch_axes,
    samples=[
        sample((3, 4)),
        sample((3, 4), axis=-1, exclusive=True, seed=1),
        sample((3, 2), axis=1, reverse=True, seed=2),
        sample((4,), exclusive=True, reverse=True, seed=3),
        sample(np.array([2.0, 0.0, 3.0, 0.0, 1.5])),
        sample(np.array([[0.0, 2.0, 3.0], [2.0, 0.0, -1.5]]), axis=1, exclusive=True, reverse=True),
        sample((0, 2)),
    ],
    tf="math.cumprod",
    workspace=lambda x, **_: wide_bytes(x) + half_bytes(x),
    traits=[Trait.MULTIPLIES],
    reach=Reach.LINES,
)
def cumprod(xp: ArrayModule, x: Array, *, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Array:
    """Products of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    return _running(xp, xp.cumprod, 1, x, axis, exclusive, reverse)


def _recurrence_spec(x: Spec, factors: Spec, *, axis: int, reverse: bool, own: bool) -> Spec:
    return _one_shape("Recurrence", (x, factors), FLOATING | COMPLEX, axis)


def _recurrence_vjp_factors(ct: Operand, factors: Operand, y: Operand, axis: int, reverse: bool, own: bool) -> Operand:
    back = ops.recurrence(ct, _conj_if(factors), axis=axis, reverse=not reverse, own=not own)
    if own:
        return back * _conj_if(_previous(y, axis, reverse))
    return _previous(back, axis, not reverse) * _conj_if(y)


def _recurrence_jvp_factors(t: Operand, factors: Operand, y: Operand, axis: int, reverse: bool, own: bool) -> Operand:
    terms = t * _previous(y, axis, reverse) if own else _previous(t * y, axis, reverse)
    return ops.recurrence(terms, factors, axis=axis, reverse=reverse, own=own)


@op(
    infer=_recurrence_spec,
    vjp=[
        lambda ct, factors, axis, reverse, own: ops.recurrence(
            ct, _conj_if(factors), axis=axis, reverse=not reverse, own=not own
        ),
        _recurrence_vjp_factors,
    ],
    jvp=[
        lambda t, factors, axis, reverse, own: ops.recurrence(t, factors, axis=axis, reverse=reverse, own=own),
        _recurrence_jvp_factors,
    ],
    batch=lambda record, args, batched, attrs: record(
        *batch_all(args, batched),
        axis=axis_in(attrs["axis"], len(args[0].shape) - batched[0]) + 1,
        reverse=attrs["reverse"],
        own=attrs["own"],
    ),
    samples=[
        sample((3, 4), (3, 4)),
        sample((3, 2), (3, 2), axis=-1, reverse=True, seed=1),
        sample((4,), (4,), own=False, seed=2),
        sample((4,), np.array([0.0, 2.0, 0.0, 3.0]), reverse=True, own=False, seed=3),
        sample((0, 2), (0, 2)),
    ],
    like=(0, 0),
    workspace=lambda x, factors, **_: 2 * (wide_bytes(x) + half_bytes(x)) + x.nbytes,
    traits=[Trait.MULTIPLIES],
    reach=Reach.LINES,
)
def recurrence(
    xp: ArrayModule, x: Array, factors: Array, *, axis: Axis = 0, reverse: bool = False, own: bool = True
) -> Array:
    """y_i = x_i + f_i y_(i-1) along `axis`, with y = 0 before the first; from the end if `reverse`.

    The factor is that of the element before, f_(i-1), if not `own`.
    """
    dtype = wide(x.dtype)
    terms, factors = x.astype(dtype, copy=False), factors.astype(dtype, copy=False)
    return _recurrence(xp, terms, factors, axis, reverse, own).astype(x.dtype, copy=False)


def _recurrence(xp: ArrayModule, terms: Array, factors: Array, axis: int, reverse: bool, own: bool) -> Array:
    at = axis_in(axis, terms.ndim)
    shape = terms.shape
    lines = Lines(math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :]), int(reverse), int(own))
    if (loops := kernel(xp, "recurrence", terms.dtype, lines)) is not None:
        return applied(xp, loops, (terms, factors), shape)
    terms, factors = xp.moveaxis(terms, at, 0), xp.moveaxis(factors, at, 0)
    out = xp.empty_like(terms)
    last = None
    for i in _steps(len(terms), reverse):
        row = slice(i, i + 1)  # arrays of one row: NumPy rounds products of complex scalars otherwise
        out[row] = terms[row] if last is None else terms[row] + factors[row if own else last] * out[last]
        last = row
    return xp.ascontiguousarray(xp.moveaxis(out, 0, at))


# ------------------------------------------------------------------------------------------------ logarithms of sums
def _one_shape(op_type: str, specs: tuple[Spec, ...], dtypes: frozenset[DType], axis: int) -> Spec:
    check_dtypes(op_type, specs, dtypes)
    if specs[0].shape != specs[-1].shape:
        raise InvalidArgumentError(
            f"the inputs must have one shape, found {shape_text(specs[0].shape)} and {shape_text(specs[-1].shape)}"
        )
    axis_in(axis, specs[0].ndim)
    return specs[0]


def _scan_spec(op_type: str) -> Callable[..., Spec]:
    return lambda *specs, axis, reverse: _one_shape(op_type, specs, FLOATING, axis)


def _steps(length: int, reverse: bool) -> range:
    return range(length - 1, -1, -1) if reverse else range(length)


def _decayed_vjp_exponents(
    ct: Operand, x: Operand, exponents: Operand, y: Operand, axis: int, reverse: bool
) -> Operand:
    return x * ops.decayed_cumsum(ct, -exponents, axis=axis, reverse=not reverse) - ct * y


@op(
    infer=_scan_spec("DecayedCumsum"),
    vjp=[
        lambda ct, exponents, axis, reverse: ops.decayed_cumsum(ct, -exponents, axis=axis, reverse=not reverse),
        _decayed_vjp_exponents,
    ],
    jvp=[
        lambda t, exponents, axis, reverse: ops.decayed_cumsum(t, exponents, axis=axis, reverse=reverse),
        lambda t, x, exponents, y, axis, reverse: (
            ops.decayed_cumsum(x * t, exponents, axis=axis, reverse=reverse) - t * y
        ),
    ],
    batch=lambda record, args, batched, attrs: record(
        *batch_all(args, batched),
        axis=axis_in(attrs["axis"], len(args[0].shape) - batched[0]) + 1,
        reverse=attrs["reverse"],
    ),
    samples=[
        sample((3, 4), (3, 4)),
        sample((3, 2), (3, 2), axis=-1, reverse=True, seed=1),
        sample((4,), (4,), seed=2),
        sample((0, 2), (0, 2)),
    ],
    like=(0, 0),
    workspace=lambda x, exponents, **_: 2 * (wide_bytes(x) + half_bytes(x)) + x.nbytes,
    reach=Reach.LINES,
)
def decayed_cumsum(xp: ArrayModule, x: Array, exponents: Array, *, axis: Axis = 0, reverse: bool = False) -> Array:
    """Sums along `axis` of the elements x_j up to each i, times exp(e_j - e_i): the gradient of cumulative_logsumexp.

    Neither overflows if the exponents ascend in the direction of the sum. From the end if `reverse`.
    """
    dtype = wide(x.dtype)
    heights = xp.moveaxis(exponents.astype(dtype, copy=False), axis, 0)
    factors = xp.zeros_like(heights)
    before, after = (slice(1, None), slice(None, -1)) if reverse else (slice(None, -1), slice(1, None))
    factors[after] = xp.exp(heights[before] - heights[after])
    factors = xp.moveaxis(factors, 0, axis)
    return _recurrence(xp, x.astype(dtype, copy=False), factors, axis, reverse, True).astype(x.dtype, copy=False)


@op(
    infer=_scan_spec("CumulativeLogsumexp"),
    vjp=lambda ct, x, y, axis, reverse: exp(x - y) * decayed_cumsum(ct, -y, axis=axis, reverse=not reverse),
    jvp=lambda t, x, y, axis, reverse: decayed_cumsum(t * exp(x - y), y, axis=axis, reverse=reverse),
    batch=batch_axes,
    samples=[
        sample((3, 4)),
        sample((3, 2), axis=-1, reverse=True, seed=1),
        sample((0, 2)),
    ],
    workspace=lambda x, **_: 3 * wide_bytes(x) + half_bytes(x),
    reach=Reach.LINES,
)
def running_logsumexp(xp: ArrayModule, x: Array, *, axis: Axis = 0, reverse: bool = False) -> Array:
    """log(Σ eˣ) of the elements up to each along `axis`, without overflow; from the end if `reverse`."""
    if xp is np:
        x = np.flip(x, axis) if reverse else x
        sums = np.logaddexp.accumulate(x.astype(wide(x.dtype), copy=False), axis).astype(x.dtype, copy=False)
        return np.ascontiguousarray(np.flip(sums, axis) if reverse else sums)
    out = xp.moveaxis(x.astype(wide(x.dtype)), axis, 0)
    last = None
    for i in _steps(len(out), reverse):
        if last is not None:
            out[i] = xp.logaddexp(out[last], out[i])
        last = i
    return xp.ascontiguousarray(xp.moveaxis(out, 0, axis)).astype(x.dtype, copy=False)


@composite(
    samples=[
        sample((3, 4)),
        sample((3, 2), axis=-1, reverse=True, seed=1),
        sample((0, 2), exclusive=True),  # others begin with -inf, which has no numeric derivative
    ],
    tf="math.cumulative_logsumexp",
)
def cumulative_logsumexp(x: Operand, *, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Operand:
    """log(Σ eˣ) of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    total = running_logsumexp(x, axis=axis, reverse=reverse)
    n = len(x.shape)
    at = axis_in(axis, n)
    if not exclusive or not x.shape[at]:
        return total
    rest = (1, None, None) if reverse else (None, -1, None)
    inner = ops.strided_slice(total, index=(*((None, None, None),) * at, rest))
    paddings = tuple(((0, 1) if reverse else (1, 0)) if i == at else (0, 0) for i in range(n))
    return ops.pad(inner, paddings=paddings, constant_value=-math.inf)
