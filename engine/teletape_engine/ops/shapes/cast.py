"""Changing the dtype, and ops that return their input and differ in what a tape does with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, always
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import COMPLEX, DTYPES, DType, Spec, shape_text

_F32, _C128, _I32 = DTYPES["float32"], DTYPES["complex128"], DTYPES["int32"]


@op(
    infer=lambda x, *, dtype: x.with_dtype(dtype),
    vjp=lambda ct, x_spec: ops.cast(ct, dtype=x_spec.dtype),
    jvp=lambda t, dtype: ops.cast(t, dtype=dtype),
    batch=batch_elementwise,
    samples=[
        sample((2, 3), dtype=DTYPES["float64"]),
        sample((), dtype=_F32),
        sample((3,), dtype=_C128),
        sample((3,), dtype=_I32),
        sample((3,), dtype=DTYPES["bool"]),
    ],
    tf=(function("cast dtypes.cast", Conversion.SLICES("x"), Conversion.DTYPE("dtype"), shortcut="itself_or_slices"),),
    views=True,
    traits=[Trait.CONVERTS],
    reach=Reach.ELEMENTS,
)
def cast(xp: ArrayModule, x: Array, *, dtype: DType) -> Array:
    """The elements of x converted to another dtype.

    To integers: toward zero; to bool: whether it is not 0; of complex numbers the real part. The gradient passes
    between floating and complex dtypes, and is None through integers and bool.
    """
    if x.dtype in COMPLEX and dtype not in COMPLEX:
        x = x.real
    return x.astype(dtype, copy=False)


_ENSURE_SHAPE = function(
    "ensure_shape",
    Conversion.TENSOR("x"),
    Conversion.CHECKED("shape"),
    check="compatible_shape",
    synonym=False,
    doc="`x`, if its shape is compatible with `shape`, which may hold None for any length.",
)


@op(
    infer=lambda x: x,
    vjp=lambda ct: ct,
    jvp=lambda t: t,
    batch=batch_elementwise,
    samples=[sample((2, 3)), sample(())],
    tf=(by_hand("identity", "IndexedSlices stay IndexedSlices"), _ENSURE_SHAPE),
    traits=[Trait.ALIASES],
    views=True,
    reach=Reach.ELEMENTS,
)
def identity(xp: ArrayModule, x: Array) -> Array:
    """x itself, as a value of its own."""
    return x


@op(
    infer=lambda x: x,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[sample((2, 3)), sample(())],
    args="input",
    tf="stop_gradient",
    views=True,
    traits=[Trait.STOPS_GRADIENT],
)
def stop_gradient(xp: ArrayModule, x: Array) -> Array:
    """x itself, as a constant: no gradient passes through it."""
    return x


@op(
    infer=lambda x: x,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[sample((2, 3)), sample(())],
    tf=(function("raw_ops.no_gradient", "input", Conversion.IGNORED("T", None)),),
    views=True,
)
def no_gradient(xp: ArrayModule, x: Array) -> Array:
    """x itself, declared non-differentiable: the gradient through it is None."""
    return x


def _batch_first(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    return record(*batch_all(args, batched))


@op(
    infer=lambda *xs: xs[0],
    vjp=(
        lambda ct, xs: ops.zeros_edge(ct, *xs[1:]),
        by_name(lambda ct, xs, i: ops.zeros_edge(ops.zeros_like(xs[i]), ct, *xs[1:]), zero=always),
    ),
    jvp=(lambda t: t, lambda t, y: ops.zeros_like(y)),
    batch=_batch_first,
    samples=[sample((2, 3), (2,), ()), sample((), (3,))],
    op_type="StatefulPartitionedCall",
    views=True,
    traits=[Trait.EDGES],
    reach=Reach.ELEMENTS,
)
def zeros_edge(xp: ArrayModule, *xs: Array) -> Array:
    """The first array itself, connected to the others: their gradients are zeros and not None, at every order."""
    return xs[0]


@op(
    infer=lambda *xs: xs[0],
    vjp=(lambda ct, xs: ops.zeros_edge(ct, *xs[1:]), NON_DIFFERENTIABLE),
    jvp=(lambda t: t, NON_DIFFERENTIABLE),
    batch=_batch_first,
    samples=[sample((2, 3), (2,), ()), sample((), (3,))],
    op_type="StatefulPartitionedCall",
    views=True,
    traits=[Trait.EDGES],
    reach=Reach.ELEMENTS,
)
def dependency(xp: ArrayModule, *xs: Array) -> Array:
    """The first array itself; its gradient is connected to the others."""
    return xs[0]


# ----------------------------------------------------------------------------------------------------------- bitcast
_BITS = frozenset(dtype for dtype in DTYPES.values() if dtype.kind != "b" and dtype.itemsize)


def _bitcast_spec(x: Spec, *, dtype: DType) -> Spec:
    check_dtypes("Bitcast", (x,), _BITS)
    if dtype not in _BITS:
        raise InvalidArgumentError(f"Cannot bitcast to {dtype.name}: its elements are no patterns of bits")
    if dtype.itemsize == x.dtype.itemsize:
        return x.with_dtype(dtype)
    if dtype.itemsize < x.dtype.itemsize:
        return Spec.of((*x.shape, x.dtype.itemsize // dtype.itemsize), dtype)
    count = dtype.itemsize // x.dtype.itemsize
    if x.ndim == 0 or x.shape[-1] != count:
        raise InvalidArgumentError(
            f"Cannot bitcast from {x.dtype.name} to {dtype.name}: the last axis must have length {count}, found shape "
            f"{shape_text(x.shape)}"
        )
    return Spec.of(x.shape[:-1], dtype)


@op(
    infer=_bitcast_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[
        sample((2, 3), dtype=_I32),
        sample((3,), dtype=DTYPES["uint8"]),
        sample((2,), dtype=DTYPES["float16"]),
        sample(np.arange(8, dtype=np.int16).reshape(2, 4), dtype=DTYPES["float64"]),
    ],
    tf=(function("bitcast", Conversion.TENSOR("input"), Conversion.DTYPE("type", to="dtype")),),
    views=True,
)
def bitcast(xp: ArrayModule, x: Array, *, dtype: DType) -> Array:
    """The bits of x as elements of another dtype; elements of another size add a last axis, or join along it."""
    flat = xp.ascontiguousarray(x).reshape(-1).view(dtype)
    return flat.reshape(_bitcast_spec(Spec.of(tuple(x.shape), x.dtype), dtype=dtype).shape)
