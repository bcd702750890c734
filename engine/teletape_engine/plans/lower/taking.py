"""Elements at indices: `take` and `take_along_axis` as instructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from teletape_engine.plans.ir.instructions import Take, TakeGeometry
from teletape_engine.plans.lower.tracer import FUNCTIONS, Tracer, Untraceable, new, operand_of


def _take(x: Any, indices: Any, axis: Any = None) -> Tracer:
    if axis is None:
        raise Untraceable("take without an axis")
    trace = x.trace if isinstance(x, Tracer) else indices.trace
    x, indices = operand_of(trace, x), operand_of(trace, indices)
    axis %= x.ndim
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    layout = np.empty((*before, *indices.shape, *after), x.dtype)
    geometry = TakeGeometry(math.prod(before), x.shape[axis], indices.size, math.prod(after) * x.itemsize, own=False)

    def take(x: Any, indices: Any, output: Any) -> None:
        np.take(x, indices, axis, output)

    return _noted(take, x, indices, new(trace, layout, computed=True), geometry)


def _take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Tracer:
    trace = x.trace if isinstance(x, Tracer) else indices.trace
    x, indices = operand_of(trace, x), operand_of(trace, indices)
    if axis not in (-1, x.ndim - 1) or x.shape[:-1] != indices.shape[:-1]:
        raise Untraceable("indices along another axis")
    geometry = TakeGeometry(math.prod(x.shape[:-1]), x.shape[-1], indices.shape[-1], x.itemsize, own=True)

    def take(x: Any, indices: Any, output: Any) -> None:
        np.copyto(output, np.take_along_axis(x, indices, axis=-1))

    return _noted(take, x, indices, new(trace, np.empty(indices.shape, x.dtype)), geometry)


def _noted(take: Callable[..., None], x: Tracer, indices: Tracer, result: Tracer, geometry: TakeGeometry) -> Tracer:
    if not x.flags.c_contiguous or not indices.flags.c_contiguous or indices.dtype.char not in "ilq":
        raise Untraceable("elements of an array in another order")
    if not x.size or not result.size:
        raise Untraceable("elements of nothing")
    result.trace.append(Take((x.view, indices.view), result.view, take, geometry))
    return result


FUNCTIONS.update({np.take: _take, np.take_along_axis: _take_along_axis})
