"""Counts: of elements that are not zero, of numbers that share a bin, of equal elements; masks of lengths."""

from __future__ import annotations

import numpy as np

from teletape_engine.catalogue.attributes import Axes
from teletape_engine.catalogue.define import sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assertions import ensure
from teletape_engine.ops.cumulative import cumsum
from teletape_engine.ops.elementwise.logic import where
from teletape_engine.ops.elementwise.math import floor
from teletape_engine.ops.reduce import reduce_all, reduce_sum
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like, zeros_like
from teletape_engine.ops.shapes.index import strided_slice, unsorted_segment_sum
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, reshape
from teletape_engine.spec import BOOL, DTYPES, FLOATING, INDEX, DType, shape_text

_I64, _F64 = DTYPES["int64"], DTYPES["float64"]
_FLAGS = np.array([[True, False], [True, True]])


@composite(
    samples=[
        sample(np.array([[0.0, 1.0, 2.0], [0.0, 0.0, -1.0]])),
        sample(np.array([[0.0, 1.0], [3.0, 0.0]]), axis=1, keepdims=True, dtype=DTYPES["int32"]),
        Sample((_FLAGS,), {"axis": 0}),
    ],
    tf=(
        function(
            "math.count_nonzero",
            Conversion.TENSOR("input"),
            Conversion.AXES("axis", None),
            Conversion.FLAG("keepdims", False),
            Conversion.DTYPE("dtype", _I64),
        ),
    ),
)
def count_nonzero(x: Operand, *, axis: Axes = None, keepdims: bool = False, dtype: DType = DTYPES["int64"]) -> Operand:
    """The number of elements over `axis` that are not zero, or that are true."""
    return reduce_sum(cast(ops.not_equal(x, zeros_like(x)), dtype=dtype), axis=axis, keepdims=keepdims)


_ORDERS = [sample(np.array([1.0, 2.0, 2.0])), sample((2, 2)), sample(())]


def _neighbours(x: Operand, compare: Op) -> Operand:
    flat = reshape(x, shape=(-1,))
    first, second = (strided_slice(flat, index=(part,)) for part in ((None, -1, None), (1, None, None)))
    return reduce_all(compare(first, second))


@composite(samples=_ORDERS, tf="math.is_non_decreasing")
def is_non_decreasing(x: Operand) -> Operand:
    """Whether no element, in row-major order, is larger than the next one."""
    return _neighbours(x, ops.less_equal)


@composite(samples=_ORDERS, tf="math.is_strictly_increasing")
def is_strictly_increasing(x: Operand) -> Operand:
    """Whether each element, in row-major order, is smaller than the next one."""
    return _neighbours(x, ops.less)


@composite(
    samples=[
        Sample((np.array([1, 3, 1, 0]), np.array([1.0, 0.5, 2.0, -1.0])), {"size": 4}),
        Sample((np.array([[1, 3], [1, 0]], np.int32), np.array([[1.0, 0.5], [2.0, -1.0]])), {"size": 3, "rows": True}),
    ],
    like=(0, 1),
    integers=("x",),
    tf=(by_hand("math.bincount", "the number of bins is by default the largest number and one more"),),
)
def bincount(x: Operand, weights: Operand, *, size: int, rows: bool = False) -> Operand:
    """For each of the numbers 0 to size - 1 the sum of the weights of the elements that are equal to it.

    x: integers; weights: of the same shape. Other numbers are left out. Of the whole array [size], or of each row of a
    matrix [n, size] if `rows`.
    """
    if x.dtype not in INDEX:
        raise InvalidArgumentError(f"the numbers must be int32 or int64, found {x.dtype.name}")
    if x.shape != weights.shape:
        raise InvalidArgumentError(
            f"weights {shape_text(weights.shape)} must have the shape of the numbers, {shape_text(x.shape)}"
        )
    if size < 0:
        raise InvalidArgumentError(f"size must be non-negative, found {size}")
    if rows and len(x.shape) != 2:
        raise InvalidArgumentError(f"rows take a matrix, found shape {shape_text(x.shape)}")
    ids = where(x < size, x, -1)
    if rows:
        return unsorted_segment_sum(weights, ids, num_segments=size, axis=1, batch_dims=1)
    return unsorted_segment_sum(weights, ids, num_segments=size)


@composite(
    samples=[
        Sample((np.array([1, 3, 0]),), {"maxlen": 3}),
        Sample((np.array([[2, 0]], np.int32),), {"maxlen": 2, "dtype": DTYPES["float32"]}),
        sample(np.array([1.5, 0.0]), maxlen=2),
    ],
    tf=(by_hand("sequence_mask", "the width is by default the largest length"),),
)
def sequence_mask(lengths: Operand, *, maxlen: int, dtype: DType = DTYPES["bool"]) -> Operand:
    """For each length [...] a row [..., maxlen] that is true, or 1, in that many places at its beginning."""
    if maxlen < 0:
        raise InvalidArgumentError(f"maxlen must be non-negative, found {maxlen}")
    ends = broadcast_to(expand_dims(lengths, axis=-1), shape=(*lengths.shape, maxlen))
    mask = cumsum(ones_like(ends), axis=-1, exclusive=True) < ends
    return mask if dtype is BOOL else cast(mask, dtype=dtype)


# --------------------------------------------------------------------------------------------------------- histograms
_RANGE = np.array([-1.0, 2.0])
_HISTOGRAMS = [
    sample((2, 3), _RANGE, nbins=5),
    Sample((np.array([-9.0, -1.0, 2.0, 9.0]), _RANGE), {"nbins": 3, "dtype": _I64}),
]


@composite(
    samples=_HISTOGRAMS,
    tf=(
        function(
            "histogram_fixed_width_bins",
            Conversion.TENSOR("values"),
            Conversion.LIKE("value_range", of="values"),
            Conversion.INT("nbins", 100),
            Conversion.DTYPE("dtype", DTYPES["int32"]),
        ),
    ),
)
def histogram_fixed_width_bins(
    values: Operand, value_range: Operand, *, nbins: int = 100, dtype: DType = DTYPES["int32"]
) -> Operand:
    """The number of each value's bin: `nbins` of one width from `value_range[0]` to `value_range[1]`.

    Values outside are in the first or the last bin; nan is in the first.

    Raises:
        InvalidArgumentError: The range is empty.
    """
    if values.dtype not in FLOATING | INDEX:
        raise InvalidArgumentError(f"values must be floating, int32 or int64, found {values.dtype.name}")
    if value_range.shape != (2,):
        raise InvalidArgumentError(f"value_range must be two numbers, found shape {shape_text(value_range.shape)}")
    if nbins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got '{nbins}'")
    if dtype not in INDEX:
        raise InvalidArgumentError(f"dtype must be int32 or int64, found {dtype.name}")
    low, high = (strided_slice(cast(value_range, dtype=_F64), index=(i,)) for i in (0, 1))
    ensure(low < high, message="value_range should satisfy value_range[0] < value_range[1]")
    bins = floor((cast(values, dtype=_F64) - low) / (high - low) * float(nbins))
    bins = where(bins >= 0.0, bins, 0.0)
    return cast(where(bins < float(nbins), bins, float(nbins - 1)), dtype=dtype)


@composite(
    samples=_HISTOGRAMS,
    tf=(
        function(
            "histogram_fixed_width",
            Conversion.TENSOR("values"),
            Conversion.LIKE("value_range", of="values"),
            Conversion.INT("nbins", 100),
            Conversion.DTYPE("dtype", DTYPES["int32"]),
        ),
    ),
)
def histogram_fixed_width(
    values: Operand, value_range: Operand, *, nbins: int = 100, dtype: DType = DTYPES["int32"]
) -> Operand:
    """The number of values in each of `nbins` bins; bins and errors are those of histogram_fixed_width_bins.

    Raises:
        InvalidArgumentError: A value is nan.
    """
    if values.dtype in FLOATING:
        ensure(ops.equal(values, values), message="Histogram values must not contain NaN")
    bins = histogram_fixed_width_bins(values, value_range, nbins=nbins, dtype=dtype)
    return unsorted_segment_sum(ones_like(bins), bins, num_segments=nbins)
