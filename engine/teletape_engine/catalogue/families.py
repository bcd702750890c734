"""Families of ops beyond the elementwise ones: decorators that build an Op record and give its rules together.

    @reduction     over axes, with keepdims
    @linear        a linear map of its one array: the jvp is the op itself
    @composite     written on other ops: recorded as those, so that it needs no rule

Also the batch rules that families share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from teletape_engine.catalogue.binding import trace_spec
from teletape_engine.catalogue.define import (
    Formula,
    Forward,
    Samples,
    array_parameters,
    check_dtypes,
    listed,
    op,
    sample,
)
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Sample, Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Functions
from teletape_engine.spec import BOOL, NUMERIC, DType, Shape, Spec, axes_in, axis_in


# -------------------------------------------------------------------------------------------------------- batch rules
def batch_loop(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """The op row by row, for ops without a batched form. At least one row."""
    row = ops.strided_slice
    n = next(arg.shape[0] for arg, b in zip(args, batched, strict=True) if b)
    results = [
        record(*[row(arg, index=(k,)) if b else arg for arg, b in zip(args, batched, strict=True)], **attrs)
        for k in range(n)
    ]
    if isinstance(results[0], tuple):
        return tuple([ops.stack(*column) for column in zip(*results, strict=True)])
    return ops.stack(*results)


def batch_all(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Every argument with the leading batch axis: those without it are repeated."""
    n = next(arg.shape[0] for arg, b in zip(args, batched, strict=True) if b)
    return [arg if b else ops.broadcast_to(arg, shape=(n, *arg.shape)) for arg, b in zip(args, batched, strict=True)]


# --------------------------------------------------------------------------------------------------------- reductions
def reduced(shape: Shape, axis: int | tuple[int, ...] | None, keepdims: bool) -> Shape:
    """The shape after reducing `shape` over `axis`."""
    axes = axes_in(axis, len(shape))
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def restore(ct: Any, x_spec: Spec, axis: int | tuple[int, ...] | None) -> Any:
    """A reduction's result, or its cotangent, with the reduced axes as axes of length 1, whatever keepdims was."""
    shape = reduced(x_spec.shape, axis, keepdims=True)
    return ct if ct.shape == shape else ops.reshape(ct, shape=shape)


def batch_axes(record: Op, args: Sequence[Any], batched: Sequence[bool], attrs: Mapping[str, Any]) -> Any:
    """Ops of one array with an `axis`: every axis moves one back."""
    (x,) = args
    axis, ndim = attrs["axis"], len(x.shape) - 1
    moved = axis_in(axis, ndim) + 1 if isinstance(axis, int) else tuple(a + 1 for a in axes_in(axis, ndim))
    return record(x, **{**attrs, "axis": moved})


def reduction(
    *,
    vjp: Formula,
    jvp: Formula | None = None,
    op_type: str,
    tf: Functions = "",
    traits: Iterable[Trait] = (),
    dtypes: frozenset[DType] = NUMERIC,
    result: Callable[[DType], DType] = lambda dtype: dtype,
    domain: tuple[float, float] = (-1.5, 1.5),
    extra: Samples = (),
    workspace: Callable[..., int] | None = None,
) -> Callable[[Forward], Op]:
    """An op `(xp, x, *, axis: Axes = None, keepdims: bool = False)` over some or all axes."""

    def infer(x: Spec, *, axis: int | tuple[int, ...] | None, keepdims: bool) -> Spec:
        check_dtypes(op_type, (x,), dtypes)
        return Spec.of(reduced(x.shape, axis, keepdims), result(x.dtype))

    def samples() -> list[Sample]:
        low, high = domain
        out = [
            sample((2, 3, 4), axis=axis, keepdims=keep, seed=i, low=low, high=high)
            for i, (axis, keep) in enumerate([(None, False), (1, False), ((0, 2), True), (-1, True), ((), False)])
        ]
        out.append(sample((), seed=9, low=low, high=high))
        if dtypes == frozenset((BOOL,)):
            return [Sample((numbers.inputs[0] > 0,), numbers.attrs) for numbers in out]
        return [*out, *listed(extra)()]

    return op(
        infer=infer,
        vjp=vjp,
        jvp=jvp,
        batch=batch_axes,
        samples=samples,
        op_type=op_type,
        tf=tf,
        traits=traits,
        workspace=workspace,
        args="input_tensor axis keepdims",
        reach=Reach.LINES,
    )


# ------------------------------------------------------------------------------------------------------------- linear
def linear(
    *,
    infer: Callable[..., Spec],
    vjp: Formula,
    batch: Callable[..., Any],
    samples: Samples,
    op_type: str = "",
    tf: Functions = "",
    views: bool = False,
    traits: Iterable[Trait] = (),
    workspace: Callable[..., int] | None = None,
    args: str = "",
    reach: Reach = Reach.ALL,
) -> Callable[[Forward], Op]:
    """A linear map of its one array: its jvp is the op itself, applied to the tangent."""

    def decorate(forward: Forward) -> Op:
        name = forward.__name__.rstrip("_")

        def tangent(t: Any, **attrs: Any) -> Any:
            return getattr(ops, name)(t, **attrs)

        return op(
            infer=infer,
            vjp=vjp,
            jvp=tangent,
            batch=batch,
            samples=samples,
            op_type=op_type,
            tf=tf,
            views=views,
            traits=traits,
            workspace=workspace,
            args=args,
            reach=reach,
        )(forward)

    return decorate


# ---------------------------------------------------------------------------------------------------------- composite
def composite(
    *,
    op_type: str = "",
    tf: Functions = "",
    results: str = "y",
    samples: Samples,
    args: str = "",
    like: Sequence[int] | None = None,
    symmetric: Sequence[int] = (),
    integers: Sequence[str] = (),
) -> Callable[[Forward], Op]:
    """An op written on other ops: `(x, …, *, attributes)`, without `xp`. It needs no rule of its own.

    Python numbers come to it as arrays: two of them meeting inside would lose the dtype that they are meant to take.
    `like` is `Op.like`; by default all inputs take one dtype.
    """

    def decorate(expand: Forward) -> Op:
        def forward(xp: Any, *args: Any, **attrs: Any) -> Any:
            return expand(*args, **attrs)

        def infer(*specs: Spec, **attrs: Any) -> Any:
            return trace_spec(expand, specs, attrs)

        signature = inspect.signature(expand)
        xp = inspect.Parameter("xp", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        forward.__signature__ = signature.replace(parameters=[xp, *signature.parameters.values()])  # type: ignore[attr-defined]
        forward.__name__, forward.__doc__ = expand.__name__, expand.__doc__
        return op(
            infer=infer,
            vjp=NON_DIFFERENTIABLE,  # never used: the expansion is what is recorded
            batch=None,
            samples=samples,
            op_type=op_type,
            tf=tf,
            results=results,
            expand=expand,
            like=(0,) * len(array_parameters(forward)[0]) if like is None else like,
            args=args,
            symmetric=symmetric,
            integers=integers,
        )(forward)

    return decorate
