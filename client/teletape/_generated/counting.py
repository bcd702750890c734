"""TensorFlow's functions of teletape_engine.ops.counting.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_COUNT_NONZERO = ops.count_nonzero
_IS_NON_DECREASING = ops.is_non_decreasing
_IS_STRICTLY_INCREASING = ops.is_strictly_increasing
_HISTOGRAM_FIXED_WIDTH_BINS = ops.histogram_fixed_width_bins
_HISTOGRAM_FIXED_WIDTH = ops.histogram_fixed_width


def count_nonzero(
    input: to.TensorInput,
    axis: to.IntsInput | None = None,
    keepdims: bool = False,
    dtype: to.DTypeInput = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """The number of elements over `axis` that are not zero, or that are true."""
    try:
        input = to.tensor(input)
        attrs: dict[str, Any] = {"dtype": to.dtype(dtype)}
        if axis is not None:
            attrs["axis"] = to.axes(axis)
        if keepdims is not False:
            attrs["keepdims"] = to.flag(keepdims)
        return call(_COUNT_NONZERO, (input,), **attrs)
    except BaseException as error:
        report(error)
        raise


def is_non_decreasing(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether no element, in row-major order, is larger than the next one."""
    try:
        return call(_IS_NON_DECREASING, (x,))
    except BaseException as error:
        report(error)
        raise


def is_strictly_increasing(x: to.TensorInput, name: str | None = None) -> Tensor:
    """Whether each element, in row-major order, is smaller than the next one."""
    try:
        return call(_IS_STRICTLY_INCREASING, (x,))
    except BaseException as error:
        report(error)
        raise


def histogram_fixed_width_bins(
    values: to.TensorInput,
    value_range: to.TensorInput,
    nbins: to.IntInput = 100,
    dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The number of each value's bin: `nbins` of one width from `value_range[0]` to `value_range[1]`.

    Values outside are in the first or the last bin; nan is in the first.

    Raises:
        InvalidArgumentError: The range is empty.
    """
    try:
        values = to.tensor(values)
        value_range = to.like(value_range, values)
        return call(_HISTOGRAM_FIXED_WIDTH_BINS, (values, value_range), nbins=to.whole(nbins), dtype=to.dtype(dtype))
    except BaseException as error:
        report(error)
        raise


def histogram_fixed_width(
    values: to.TensorInput,
    value_range: to.TensorInput,
    nbins: to.IntInput = 100,
    dtype: to.DTypeInput = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """The number of values in each of `nbins` bins; bins and errors are those of histogram_fixed_width_bins.

    Raises:
        InvalidArgumentError: A value is nan.
    """
    try:
        values = to.tensor(values)
        value_range = to.like(value_range, values)
        return call(_HISTOGRAM_FIXED_WIDTH, (values, value_range), nbins=to.whole(nbins), dtype=to.dtype(dtype))
    except BaseException as error:
        report(error)
        raise
