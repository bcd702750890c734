"""Running sums and products along an axis. 16-bit floats are summed in float32 and rounded once."""

from __future__ import annotations

from typing import Any

from teletape_engine.catalogue.attributes import Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import batch_axes, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.elementwise.complex import conj
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.spec import (
    COMPLEX,
    NUMERIC,
    Spec,
    axis_in,
    half_bytes,
    wide,
    wide_bytes,
)


def _running(xp: Any, run: Any, unit: int, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
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
)
def cumsum(xp: Any, x: Any, *, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    """Sums of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`."""
    return _running(xp, xp.cumsum, 0, x, axis, exclusive, reverse)


def _cumprod_spec(x: Spec, *, axis: int, exclusive: bool, reverse: bool) -> Spec:
    check_dtypes("Cumprod", (x,), NUMERIC)
    if not -x.ndim <= axis < x.ndim:
        raise InvalidArgumentError(f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}")
    return x


def _over_no_zero(a: Any, x: Any) -> Any:
    """a / x, and 0 if x is 0, elementwise."""
    zero = ops.equal(x, zeros_like(x))
    return where(zero, zeros_like(a), a / where(zero, ones_like(x), x))


def _cumprod_vjp(ct: Any, x: Any, y: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    x, y = (conj(x), conj(y)) if x.dtype in COMPLEX else (x, y)
    return _over_no_zero(cumsum(y * ct, axis=axis, exclusive=exclusive, reverse=not reverse), x)


@op(
    infer=_cumprod_spec,
    vjp=_cumprod_vjp,
    jvp=lambda t, x, y, axis, exclusive, reverse: (
        y * cumsum(_over_no_zero(t, x), axis=axis, exclusive=exclusive, reverse=reverse)
    ),
    batch=batch_axes,
    samples=[
        sample((3, 4)),
        sample((3, 4), axis=-1, exclusive=True, seed=1),
        sample((3, 2), axis=1, reverse=True, seed=2),
        sample((4,), exclusive=True, reverse=True, seed=3),
        sample((0, 2)),
    ],
    tf="math.cumprod",
    workspace=lambda x, **_: wide_bytes(x) + half_bytes(x),
    traits=[Trait.MULTIPLIES],
)
def cumprod(xp: Any, x: Any, *, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Any:
    """Products of the elements up to each along `axis`: without itself if `exclusive`, from the end if `reverse`.

    The gradient of an element that is 0 is 0, as in TensorFlow.
    """
    return _running(xp, xp.cumprod, 1, x, axis, exclusive, reverse)
