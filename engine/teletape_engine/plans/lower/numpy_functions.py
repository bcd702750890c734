"""NumPy's functions and namespace as forward functions meet them while they are traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays.kernels import LibraryKernel
from teletape_engine.plans.ir.buffers import CHARS
from teletape_engine.plans.ir.instructions import Choice, Instruction, KernelCall
from teletape_engine.plans.lower.layouts import allocated
from teletape_engine.plans.lower.tracer import (
    ARRAYS,
    FUNCTIONS,
    Tracer,
    Tracing,
    Untraceable,
    cast,
    new,
    operand_of,
    reduced,
)


def _trace_of(args: Sequence[Any]) -> list[Instruction]:
    return next(arg.trace for arg in args if isinstance(arg, Tracer))


def _where(condition: Any, a: Any = None, b: Any = None) -> Tracer:
    if a is None or b is None:
        raise Untraceable("where with one argument")
    trace = _trace_of((condition, a, b))
    dtype = np.result_type(*[x.dtype if isinstance(x, (Tracer, *ARRAYS)) else x for x in (a, b)])
    if dtype.char not in CHARS:
        raise Untraceable(f"where of {dtype}")
    chosen = cast(trace, operand_of(trace, condition), np.dtype(bool))
    operands = [chosen, *[cast(trace, operand_of(trace, x, dtype), dtype) for x in (a, b)]]
    result = new(trace, allocated([operand.layout for operand in operands], dtype))
    trace.append(Choice(tuple([operand.view for operand in operands]), result.view))
    return result


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Tracer:
    trace = _trace_of(arrays)
    operands = [operand_of(trace, x) for x in arrays]
    if not operands[0].ndim:
        raise Untraceable("scalars side by side")
    if any(not np.empty_like(x.layout).flags.c_contiguous for x in operands):
        raise Untraceable("the result has another order of axes")
    axis %= operands[0].ndim
    shape = list(operands[0].shape)
    shape[axis] = sum(x.shape[axis] for x in operands)
    result = new(trace, np.empty(shape, np.result_type(*[x.dtype for x in operands])))
    at = 0
    for x in operands:
        result[(*(slice(None),) * axis, slice(at, at + x.shape[axis]))] = x
        at += x.shape[axis]
    return result


def _stack(arrays: Sequence[Any], axis: int = 0) -> Tracer:
    trace = _trace_of(arrays)
    operands = [operand_of(trace, x) for x in arrays]
    return _concatenate([x.part(np.expand_dims(x.layout, axis)) for x in operands], axis)


def _filled(number: int) -> Callable[..., Tracer]:
    def filled(x: Tracer, dtype: Any = None, **kwargs: Any) -> Tracer:
        result = new(x.trace, np.empty_like(x.layout, dtype=dtype, **kwargs))
        result[...] = np.asarray(number, result.dtype)
        return result

    return filled


def _full_like(x: Tracer, number: Any, dtype: Any = None) -> Tracer:
    if isinstance(number, Tracer):
        raise Untraceable("full of a value")
    return _filled(number)(x, dtype)


def _viewing(function: Callable[..., Any]) -> Callable[..., Tracer]:
    def view(x: Any, *args: Any, **kwargs: Any) -> Tracer:
        if not isinstance(x, Tracer):
            raise Untraceable("a view of a constant")
        return x.part(function(x.layout, *args, **kwargs))

    return view


def _reduction(ufunc: Any) -> Callable[..., Tracer]:
    def reduction(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tracer:
        return reduced(ufunc, x, axis, keepdims, dtype)

    return reduction


def _extreme(ufunc: Any) -> Callable[..., Tracer]:
    def extreme(x: Any, axis: Any = None, keepdims: bool = False) -> Tracer:
        return reduced(ufunc, x, axis, keepdims)

    return extreme


_TABLE: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.max: _extreme(np.maximum),
    np.min: _extreme(np.minimum),
    np.any: _extreme(np.logical_or),
    np.all: _extreme(np.logical_and),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.full_like: _full_like,
    np.empty_like: lambda x, dtype=None: new(x.trace, np.empty_like(x.layout, dtype=dtype)),
    np.reshape: lambda x, shape: x.reshape(shape),
    np.copy: lambda x: x.copy("K"),
    np.real: lambda x: x.real,
    np.imag: lambda x: x.imag,
    np.transpose: lambda x, axes=None: x.transpose(axes),
    np.squeeze: lambda x, axis=None: x.squeeze(axis),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    **{
        function: _viewing(function)
        for function in (
            np.swapaxes,
            np.expand_dims,
            np.broadcast_to,
            np.moveaxis,
            np.diagonal,
            np.flip,
        )
    },
}
FUNCTIONS.update(_TABLE)


class Namespace:
    """NumPy for one trace: what it makes from nothing may be written into."""

    def __init__(self, trace: list[Instruction]) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        """`numpy.asarray`: a tracer itself, or converted."""
        if isinstance(x, Tracer):
            return x if dtype is None else x.astype(dtype, copy=False)
        return np.asarray(x, dtype)

    def ascontiguousarray(self, x: Any) -> Any:
        """`numpy.ascontiguousarray`: a tracer in row-major order, or its copy."""
        if isinstance(x, Tracer):
            return x if x.flags.c_contiguous else x.copy()
        return np.ascontiguousarray(x)

    def full(self, shape: Any, number: Any, dtype: Any = None) -> Tracer:
        """`numpy.full`, in memory of the plan."""
        if isinstance(number, Tracer):
            raise Untraceable("full of a value")
        element = np.asarray(number, dtype)
        result = new(self._trace, np.empty(shape, element.dtype))
        result[...] = element
        return result

    def zeros(self, shape: Any, dtype: Any = float) -> Tracer:
        """`numpy.zeros`, in memory of the plan."""
        return self.full(shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = float) -> Tracer:
        """`numpy.ones`, in memory of the plan."""
        return self.full(shape, 1, dtype)

    def empty(self, shape: Any, dtype: Any = float) -> Tracer:
        """`numpy.empty`, in memory of the plan."""
        return new(self._trace, np.empty(shape, dtype))

    def noted(self, kernel: LibraryKernel, inputs: Sequence[Any], shape: Any, dtype: Any) -> Tracer:
        """Notes a kernel as an instruction; see `arrays.kernels.applied`."""
        operands = [self.ascontiguousarray(operand_of(self._trace, x)) for x in inputs]
        result = new(self._trace, np.empty(shape, dtype))
        self._trace.append(KernelCall(tuple([x.view for x in operands]), result.view, kernel))
        return result


Tracing.namespace = Namespace
