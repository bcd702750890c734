"""Reductions along axes: sums, means, extremes, counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape._generated import counting, cumulative, reduce
from teletape._generated.elementwise import complex as complex_numbers
from teletape._generated.elementwise import logic
from teletape._generated.elementwise import math as functions
from teletape._generated.shapes import cast
from teletape._generated.shapes import shape as shapes
from teletape.core.calls import arguments as to
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.extras.numpy_api.promotion import Preference, array, common_dtype, dtype_of, inexact
from teletape.tf.ops.arrays.rearrange import where as choose

_cast, _not, _nan = cast.cast, logic.logical_not, logic.is_nan


def _summable(a: Any, dtype: Any) -> Tensor:
    """Returns an array in the dtype of its sum: narrow integers become wide ones."""
    if dtype is not None:
        return _cast(array(a), dtype_of(dtype))
    values = array(a)
    if values.dtype is dtypes.bool:
        return _cast(values, Preference.integers)
    if values.dtype.is_integer and values.dtype.size < Preference.integers.size:
        return _cast(values, dtypes.uint64 if values.dtype.is_unsigned else Preference.integers)
    return values


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the sum along axes; booleans and narrow integers are summed as int64."""
    return reduce.reduce_sum(_summable(a, dtype), axis, bool(keepdims))


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the product along axes; booleans and narrow integers are multiplied as int64."""
    return reduce.reduce_prod(_summable(a, dtype), axis, bool(keepdims))


def _extreme(compute: Callable[..., Tensor], truth: Callable[..., Tensor], a: Any, axis: Any, keepdims: Any) -> Tensor:
    a = array(a)
    return (truth if a.dtype is dtypes.bool else compute)(a, axis, bool(keepdims))


def max(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the largest element along axes."""
    return _extreme(reduce.reduce_max, reduce.reduce_any, a, axis, keepdims)


def min(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the smallest element along axes."""
    return _extreme(reduce.reduce_min, reduce.reduce_all, a, axis, keepdims)


def amax(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the largest element along axes. `out` is not supported, as in TensorFlow."""
    return max(a, axis, keepdims)


def amin(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the smallest element along axes. `out` is not supported, as in TensorFlow."""
    return min(a, axis, keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the distance between the largest and the smallest element along axes."""
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the mean along axes; a float for integers. `out` is not supported, as in TensorFlow."""
    values = inexact(a) if dtype is None else _cast(array(a), dtype_of(dtype))
    return reduce.reduce_mean(values, axis, bool(keepdims))


def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool | None = None
) -> Tensor:
    """Returns the variance along axes: the mean of the squared distances from the mean.

    Args:
        a: Numbers; integers become floats.
        axis: The axes; None: all.
        dtype: The dtype to compute with, and of the result.
        out: Not supported, as in TensorFlow.
        ddof: Subtracted from the number of elements before the division.
        keepdims: Whether the axes stay, with one element.
    """
    values = inexact(a) if dtype is None else _cast(array(a), dtype_of(dtype))
    distances = values - reduce.reduce_mean(values, axis, True)
    squares = functions.square(complex_numbers.abs(distances))
    if not ddof:
        return reduce.reduce_mean(squares, axis, bool(keepdims))
    total = reduce.reduce_sum(squares, axis, bool(keepdims))
    return total / array(_count(values, axis) - ddof, total.dtype)


def std(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns the standard deviation along axes: the root of the variance."""
    return functions.sqrt(var(a, axis, keepdims=keepdims))


def all(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns whether all elements along axes are true, or not zero."""
    return reduce.reduce_all(array(a, bool), axis, bool(keepdims))


def any(a: Any, axis: Any = None, keepdims: bool | None = None) -> Tensor:
    """Returns whether an element along axes is true, or not zero."""
    return reduce.reduce_any(array(a, bool), axis, bool(keepdims))


def count_nonzero(a: Any, axis: Any = None) -> Tensor:
    """Returns the number of elements along axes that are not zero, as int64."""
    return counting.count_nonzero(array(a), axis)


def _position(compute: Callable[..., Tensor], a: Any, axis: Any) -> Tensor:
    a = array(a)
    flat = axis is None or not len(a.shape)
    values = shapes.reshape(a, [-1]) if flat else a
    return compute(values, 0 if flat else axis)


def argmax(a: Any, axis: Any = None) -> Tensor:
    """Returns the index of the largest element along an axis; None: in the flat array."""
    return _position(reduce.argmax, a, axis)


def argmin(a: Any, axis: Any = None) -> Tensor:
    """Returns the index of the smallest element along an axis; None: in the flat array."""
    return _position(reduce.argmin, a, axis)


def _running(compute: Callable[..., Tensor], a: Any, axis: Any, dtype: Any) -> Tensor:
    values = _summable(a, dtype)
    return compute(shapes.reshape(values, [-1]) if axis is None else values, 0 if axis is None else axis)


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """Returns running sums along an axis; None: of the flat array."""
    return _running(cumulative.cumsum, a, axis, dtype)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """Returns running products along an axis; None: of the flat array."""
    return _running(cumulative.cumprod, a, axis, dtype)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Returns the weighted mean along an axis.

    Args:
        a: Numbers.
        axis: The axis; None: all of the flat array.
        weights: In the shape of `a`, or of the axis; None: all the same.
        returned: Whether the sum of the weights is returned as well.

    Raises:
        ValueError: Weights of another shape.
    """
    values = inexact(a)
    if weights is None:
        result = mean(values, axis)
        count = array(_count(values, axis), result.dtype)
        return (result, shapes.broadcast_to(count, result.shape)) if returned else result
    scale = inexact(weights)
    kind = common_dtype(values, scale)
    values, scale = _cast(values, kind), _cast(scale, kind)
    if values.shape != scale.shape:
        if axis is None or len(scale.shape) != 1 or scale.shape[0] != values.shape[axis]:
            raise ValueError(f"weights of shape {scale.shape} do not fit an array of shape {values.shape}, axis {axis}")
        at = to.axis_within(axis, len(values.shape))
        scale = shapes.reshape(scale, [-1 if i == at else 1 for i in range(len(values.shape))])
        scale = shapes.broadcast_to(scale, values.shape)
    total = reduce.reduce_sum(scale, axis)
    result = reduce.reduce_sum(values * scale, axis) / total
    return (result, total) if returned else result


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the sum along axes, without the elements that are nan."""
    return sum(_without_nan(a, 0), axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the product along axes, without the elements that are nan."""
    return prod(_without_nan(a, 1), axis, dtype, keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Returns the mean along axes, without the elements that are nan."""
    values = inexact(a)
    if values.dtype.is_complex:
        return mean(values, axis, dtype, keepdims=keepdims)
    count = reduce.reduce_sum(_cast(_not(_nan(values)), values.dtype), axis, keepdims)
    return nansum(values, axis, dtype, keepdims) / count


def _without_nan(a: Any, neutral: int) -> Tensor:
    a = array(a)
    return choose(_nan(a), array(neutral, a.dtype), a) if a.dtype.is_floating else a


def size(x: Any, axis: Any = None) -> Any:
    """Returns the number of elements, or of those along axes, as NumPy's int64."""
    return np.int64(_count(x, axis))


def _count(x: Any, axis: Any) -> int:
    shape = array(x).shape.as_list()
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    count = 1
    for at in axes:
        count *= shape[at]
    return count
