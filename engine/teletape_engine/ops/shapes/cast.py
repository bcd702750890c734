"""Changing the dtype, and ops that return their input and differ in what a tape does with it."""

from __future__ import annotations

from typing import Any

from teletape_engine.catalogue.binding import by_name
from teletape_engine.catalogue.define import op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.families import batch_all
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, always
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.spec import COMPLEX, DTYPES, DType

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
)
def cast(xp: Any, x: Any, *, dtype: DType) -> Any:
    """x as another dtype.

    To integers: toward zero; to bool: whether it is not 0; complex to real: the real part. The gradient passes between
    floating and complex dtypes, and is None through integers and bool.
    """
    if x.dtype in COMPLEX and dtype not in COMPLEX and dtype.kind != "b":
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
)
def identity(xp: Any, x: Any) -> Any:
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
def stop_gradient(xp: Any, x: Any) -> Any:
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
def no_gradient(xp: Any, x: Any) -> Any:
    """x itself, declared non-differentiable: the gradient through it is None."""
    return x


def _batch_first(record: Any, args: Any, batched: Any, attrs: Any) -> Any:
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
)
def zeros_edge(xp: Any, *xs: Any) -> Any:
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
)
def dependency(xp: Any, *xs: Any) -> Any:
    """The first array itself; its gradient is connected to the others."""
    return xs[0]
