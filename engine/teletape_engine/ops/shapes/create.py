"""Arrays created from numbers, or from the shape of another array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs, Axis
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Sample, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.spec import (
    COMPLEX,
    DTYPES,
    FLOATING,
    INTEGER,
    REAL,
    STRING,
    DType,
    Number,
    Shape,
    Spec,
    axis_in,
    element,
    shape_text,
)

_F32, _I32, _I64 = DTYPES["float32"], DTYPES["int32"], DTYPES["int64"]


def _fill_spec(value: Spec, *, shape: Shape, dtype: DType | None) -> Spec:
    if value.shape != ():
        raise InvalidArgumentError(f"value must be a scalar, found shape {shape_text(value.shape)}")
    if value.dtype in COMPLEX and dtype is not None and dtype not in COMPLEX:
        raise InvalidArgumentError(f"a complex value does not fit dtype {dtype.name}: cast it first")
    return Spec.of(shape, dtype or value.dtype)


def _batch_fill(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (value,), shape, dtype = args, attrs["shape"], attrs["dtype"]
    n = value.shape[0]
    rows = ops.reshape(value, shape=(n, *(1,) * len(shape)))
    rows = ops.broadcast_to(rows, shape=(n, *shape))
    return rows if dtype is None else cast(rows, dtype=dtype)


@op(
    infer=_fill_spec,
    vjp=lambda ct, value_spec: cast(ops.reduce_sum(ct), dtype=value_spec.dtype),
    jvp=lambda t, shape, dtype: ops.fill(t, shape=shape, dtype=dtype),
    batch=_batch_fill,
    samples=[sample((), shape=(2, 3)), sample((), shape=(), dtype=DTYPES["float64"]), sample((), shape=(0, 2), seed=1)],
    tf=(
        by_hand("fill", "its name comes before an argument without effect"),
        by_hand("zeros", "strings are filled on the caller's side"),
        by_hand("ones", "strings are filled on the caller's side"),
    ),
    reach=Reach.MOVES,
)
def fill(xp: ArrayModule, value: Any, *, shape: Shape, dtype: DType | None = None) -> Array:
    """An array of `shape` with `value`, a scalar, everywhere; of `dtype`, or else of the value's."""
    return xp.broadcast_to(value, shape).astype(dtype or value.dtype, order="C")


@op(
    infer=lambda x: x,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[sample((2, 3)), sample(())],
    tf=(by_hand("zeros_like", "with another dtype it is a fill"),),
    traits=[Trait.SHAPE_ONLY],
)
def zeros_like(xp: ArrayModule, x: Array) -> Array:
    """Zeros of x's shape and dtype."""
    return xp.zeros_like(x) if x.dtype != STRING else xp.full(x.shape, b"", STRING)


@op(
    infer=lambda x: x,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[sample((2, 3)), sample(())],
    tf=(by_hand("ones_like", "with another dtype it is a fill"),),
    traits=[Trait.SHAPE_ONLY],
)
def ones_like(xp: ArrayModule, x: Array) -> Array:
    """Ones of x's shape and dtype."""
    return xp.ones_like(x)


def _range_dtype(start: Number, limit: Number, delta: Number, dtype: DType | None) -> DType:
    whole = all(isinstance(number, int) for number in (start, limit, delta))
    return dtype or (_I32 if whole else _F32)


def _range_spec(*, start: Number, limit: Number, delta: Number, dtype: DType | None) -> Spec:
    result = _range_dtype(start, limit, delta, dtype)
    if result not in REAL or any(isinstance(number, complex) for number in (start, limit, delta)):
        raise InvalidArgumentError(f"range takes real numbers and gives a real dtype, found {result.name}")
    assert not isinstance(start, complex)
    assert not isinstance(limit, complex)
    assert not isinstance(delta, complex)
    for number, name in ((start, "start"), (delta, "delta")):
        element(number, result, name)
    element(limit, DTYPES["float64"], "limit")
    if delta == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {delta}")
    if not all(math.isfinite(number) for number in (start, limit, delta)):
        raise InvalidArgumentError(f"Requires finite numbers: {start}, {limit}, {delta}")
    if (limit - start) * delta < 0:
        sign, order = (">", "<=") if delta > 0 else ("<", ">=")
        raise InvalidArgumentError(f"Requires start {order} limit when delta {sign} 0: {start}/{limit}")
    if all(isinstance(number, int) for number in (start, limit, delta)):
        return Spec.of((int(-((start - limit) // delta)),), result)
    kind = result.type if result in FLOATING else float  # in the dtype of the result, as TensorFlow counts
    with np.errstate(all="ignore"):
        count = float((kind(limit) - kind(start)) / kind(delta))
    if not math.isfinite(count):
        raise InvalidArgumentError(
            f"Requires ((limit - start) / delta) <= 9223372036854775807: {start}/{limit}/{delta}"
        )
    return Spec.of((math.ceil(count),), result)


@op(
    infer=_range_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=None,
    samples=[
        Sample((), {"limit": 3}),
        Sample((), {"start": 1, "limit": 7, "delta": 2, "dtype": _I64}),
        Sample((), {"start": 3, "limit": 0, "delta": -1}),
        Sample((), {"start": 1, "limit": 2, "delta": 0.25}),
        Sample((), {"limit": 0}),
    ],
    workspace=lambda **attrs: 2 * 8 * _range_spec(**attrs).size,
    name="range",
)
def range_(
    xp: ArrayModule, *, start: Number = 0, limit: Number, delta: Number = 1, dtype: DType | None = None
) -> Array:
    """start, start + delta, … below (above, if delta < 0) limit: int32 if all three are integers, else float32.

    The numbers are attributes, since the shape of the result depends on them.
    """
    spec = _range_spec(start=start, limit=limit, delta=delta, dtype=dtype)
    if spec.dtype in INTEGER:
        return xp.arange(spec.shape[0], dtype=spec.dtype) * spec.dtype.type(delta) + spec.dtype.type(start)
    return (xp.arange(spec.shape[0]) * float(np.real(delta)) + float(np.real(start))).astype(spec.dtype)


def _linspace_shape(start: Spec, num: int, axis: int) -> tuple[int, ...]:
    at = axis_in(axis, start.ndim + 1)
    return (*start.shape[:at], num, *start.shape[at:])


def _linspace_spec(start: Spec, stop: Spec, *, num: int, axis: int) -> Spec:
    check_dtypes("LinSpace", (start, stop), FLOATING | COMPLEX)
    if start.shape != stop.shape:
        raise InvalidArgumentError(
            f"start and stop must have one shape, found {shape_text(start.shape)} and {shape_text(stop.shape)}"
        )
    if num < 0:
        raise InvalidArgumentError(f"Requires num >= 0: {num}")
    return start.with_shape(_linspace_shape(start, num, axis))


def _share_of_stop(y: Operand, num: int, axis: int) -> Operand:
    """0 to 1 along `axis`, in the shape of y: the weight of `stop` in each element."""
    return ops.cumsum(ones_like(y), axis=axis, exclusive=True) / max(num - 1, 1)


def _batch_linspace(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    args = batch_all(args, batched)
    return record(*args, num=attrs["num"], axis=axis_in(attrs["axis"], len(args[0].shape)) + 1)


@op(
    infer=_linspace_spec,
    vjp=[
        lambda ct, num, axis: ops.reduce_sum(ct * (1 - _share_of_stop(ct, num, axis)), axis=axis),
        lambda ct, num, axis: ops.reduce_sum(ct * _share_of_stop(ct, num, axis), axis=axis),
    ],
    jvp=[
        lambda t, num, axis: ops.linspace(t, zeros_like(t), num=num, axis=axis),
        lambda t, num, axis: ops.linspace(zeros_like(t), t, num=num, axis=axis),
    ],
    batch=_batch_linspace,
    samples=[
        sample((), (), num=5),
        sample((2, 3), (2, 3), num=4, axis=1),
        sample((2,), (2,), num=3, axis=-1, seed=1),
        sample((), (), num=1),
        sample((), (), num=2, seed=2),
        sample((2,), (2,), num=0),
    ],
    op_type="LinSpace",
    workspace=lambda start, stop, *, num, axis: 3 * 8 * num * start.size,
    tf=(by_hand("linspace", "`stop` takes the dtype of `start`, and integers become float64 after that"),),
    like=(0, 0),
    traits=[Trait.SELECTS],
)
def linspace(xp: ArrayModule, start: Array, stop: Array, *, num: int, axis: Axis = 0) -> Array:
    """`num` numbers from start to stop, both included, along a new `axis`. start, stop: arrays of one shape.

    With num = 1: start.
    """
    ndim = len(start.shape)
    at = axis_in(axis, ndim + 1)
    start, stop = xp.expand_dims(xp.asarray(start), at), xp.expand_dims(xp.asarray(stop), at)
    if not start.size:
        return xp.empty((*start.shape[:at], num, *start.shape[at + 1 :]), start.dtype)
    if num <= 1:
        return xp.repeat(start, num, axis=at)
    steps = xp.arange(1, num - 1).astype(start.dtype).reshape((-1,) + (1,) * (ndim - at))
    return xp.concatenate((start, start + (stop - start) / start.dtype.type(num - 1) * steps, stop), axis=at)


def _eye_spec(*, num_rows: int, num_columns: int | None, batch_shape: Shape, dtype: DType) -> Spec:
    columns = num_rows if num_columns is None else num_columns
    if num_rows < 0 or columns < 0:
        raise InvalidArgumentError(f"eye: {num_rows} rows and {columns} columns: neither can be negative")
    return Spec.of((*batch_shape, num_rows, columns), dtype)


@op(
    infer=_eye_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=None,
    samples=[
        Sample((), {"num_rows": 2}),
        Sample((), {"num_rows": 2, "num_columns": 3, "batch_shape": (2,), "dtype": _I32}),
    ],
    tf=(
        function(
            "eye linalg.eye",
            Conversion.INT("num_rows"),
            Conversion.INT("num_columns", None),
            Conversion.LENGTHS("batch_shape", None, of="Fill"),
            Conversion.DTYPE("dtype", _F32),
        ),
    ),
)
def eye(
    xp: ArrayModule, *, num_rows: int, num_columns: int | None = None, batch_shape: Shape = (), dtype: DType = _F32
) -> Array:
    """Ones on the diagonal, zeros elsewhere: [*batch_shape, num_rows, num_columns or num_rows]."""
    if not batch_shape:
        return xp.eye(num_rows, num_columns, dtype=dtype)
    columns = num_rows if num_columns is None else num_columns
    matrices = xp.zeros((*batch_shape, num_rows, columns), dtype)
    flat = matrices.reshape((*batch_shape, num_rows * columns))
    flat[..., : min(num_rows, columns) * columns : columns + 1] = 1
    return matrices


def _one_hot_spec(indices: Spec, *, depth: int, on_value: Number, off_value: Number, axis: int, dtype: DType) -> Spec:
    check_dtypes("OneHot", (indices,), INTEGER)
    if depth < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {depth}")
    at = axis_in(axis, indices.ndim + 1)
    element(on_value, dtype, "on_value")
    element(off_value, dtype, "off_value")
    return Spec.of((*indices.shape[:at], depth, *indices.shape[at:]), dtype)


def _batch_one_hot(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (indices,) = args
    return record(indices, **{**attrs, "axis": axis_in(attrs["axis"], len(indices.shape)) + 1})


@op(
    infer=_one_hot_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=_batch_one_hot,
    samples=[
        sample(np.array([0, 1, -1, 3]), depth=3),
        sample(np.array([[0, 2]]), depth=3, on_value=5.0, off_value=1.0, axis=0),
        sample(np.array(1), depth=2, on_value=True, off_value=False, dtype=DTYPES["bool"]),
        sample(np.array([[0, 2]]), depth=4, axis=1, dtype=_I32),
    ],
    workspace=lambda indices, *, depth, **_: 2 * indices.size * depth + 2 * 8 * depth,
    integers=("indices",),
    tf=(by_hand("one_hot", "the dtypes of on_value and off_value decide the result's"),),
)
def one_hot(
    xp: ArrayModule,
    indices: Array,
    *,
    depth: int,
    on_value: Number = 1,
    off_value: Number = 0,
    axis: Axis = -1,
    dtype: DType = _F32,
) -> Array:
    """on_value at each index along a new axis of length depth, off_value elsewhere and for an index outside."""
    at = axis_in(axis, len(indices.shape) + 1)
    if not indices.size:
        return xp.empty((*indices.shape[:at], depth, *indices.shape[at:]), dtype)
    rungs = xp.arange(depth).reshape((-1,) + (1,) * (len(indices.shape) - at))
    here = xp.equal(xp.expand_dims(indices, at), rungs)
    return xp.where(here, element(on_value, dtype, "on_value")[()], element(off_value, dtype, "off_value")[()])
