"""The walk in Python: each instruction as a NumPy call with its memory, ready to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.plans.ir.forwards import python_step
from teletape_engine.plans.ir.instructions import (
    CHECK,
    COPY,
    FILL,
    KERNEL,
    MATMUL,
    PYTHON,
    REDUCE,
    SELECT,
    Instruction,
    View,
)


class Refused(Exception):
    """An op does not take the values: the interpreter raises its error."""


#: A function, and its arguments.
Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


def _keyword_out(ufunc: Any) -> Callable[..., Any]:
    def call(a: Any, b: Any, out: Any) -> Any:
        return ufunc(a, b, out=out)

    return call


#: NumPy deprecates the position of `out` for these.
_BY_KEYWORD: Final[dict[Any, Callable[..., Any]]] = {ufunc: _keyword_out(ufunc) for ufunc in (np.maximum, np.minimum)}


def _select(condition: Any, a: Any, b: Any, output: Any) -> None:
    np.copyto(output, b)
    np.copyto(output, a, where=condition)


def _copy(source: Any, output: Any) -> None:
    np.copyto(output, source, "unsafe")


def _fill(output: Any) -> None:
    output.fill(0xFF)


def _check(condition: Any, output: Any) -> None:
    if not condition.all():
        raise Refused


def call_of(instruction: Instruction) -> Callable[..., Any]:
    """The function that does an instruction; it takes the arrays of the inputs, then that of the output."""
    kind, function = instruction.kind, instruction.function
    if kind is PYTHON:
        assert function is not None
        pattern, foreseen = instruction.extra
        return python_step(function, pattern, instruction.output.layout, foreseen=foreseen)
    if kind is COPY:
        return _copy
    if kind is SELECT:
        return _select
    if kind is CHECK:
        return _check
    if kind is FILL:
        return _fill
    if kind is MATMUL:
        return np.matmul
    if kind is KERNEL:
        return function.on_any  # type: ignore[union-attr, no-any-return]  # a kernel
    if kind is REDUCE:
        axes, dtype = instruction.extra
        reduce = function.reduce  # type: ignore[union-attr]  # a ufunc
        return lambda x, output: reduce(x, axes, dtype, output)
    assert function is not None  # a ufunc, or what takes elements
    return _BY_KEYWORD.get(function, function)


def view_of(array: Any, view: View) -> Any:
    """The part of an array that a view of its buffer is."""
    if view.whole:
        return array
    layout = view.layout
    array = np.asarray(array)
    if array.flags.c_contiguous:
        return np.ndarray(layout.shape, layout.dtype, array, view.offset, layout.strides)
    return np.asarray(_Memory(array, view)).view(layout.dtype)


class _Memory:
    """A part of an array without contiguous memory, as NumPy's array interface describes one."""

    def __init__(self, array: Any, view: View) -> None:
        self._array = array  # keeps the memory alive
        start, read_only = array.__array_interface__["data"]
        self.__array_interface__ = {
            "data": (start + view.offset, read_only),
            "shape": view.layout.shape,
            "strides": view.layout.strides,
            "typestr": view.layout.dtype.str,
            "version": 3,
        }
