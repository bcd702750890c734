"""Isotonic regression: the sequence that never rises and is nearest to another, by pooling adjacent violators.

Best and Chakravarti, "Active set algorithms for isotonic regression", 1990. Within a segment of equal results the
result is the mean of the inputs, and so is its derivative.
"""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.cpu import on_host
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import composite
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.cumulative import cumsum
from teletape_engine.ops.segment import unsorted_segment_mean
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like
from teletape_engine.ops.shapes.index import gather
from teletape_engine.ops.shapes.shape import reshape
from teletape_engine.spec import DTYPES, FLOATING, Spec, shape_text, wide

_I32, _I64 = DTYPES["int32"], DTYPES["int64"]
_POOLED = np.array([[3.0, 1.0, 2.0, 2.5, 4.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]])


def _segments_spec(x: Spec) -> Spec:
    check_dtypes("IsotonicRegression", (x,), FLOATING)
    if not x.ndim:
        raise InvalidArgumentError("isotonic regression takes sequences [..., n], got shape []")
    return x.with_dtype(_I32)


def _segments(row: list[float]) -> list[int]:
    """The number of each element's segment."""
    sums: list[float] = []
    counts: list[int] = []
    for value in row:
        total, count = value, 1
        while sums and sums[-1] * count < total * counts[-1]:
            total += sums.pop()
            count += counts.pop()
        sums.append(total)
        counts.append(count)
    return [number for number, count in enumerate(counts) for _ in range(count)]


@op(
    infer=_segments_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=lambda record, args, batched, attrs: record(*args, **attrs),
    samples=[sample(_POOLED), sample((5,)), sample((2, 0))],
    op_type="IsotonicRegression",
    workspace=lambda x: 128 * x.size,
    work=lambda x: 100 * x.size,
)
@on_gpu(down="the numbers", up="their segments, which the host finds")
def isotonic_segments(xp: ArrayModule, x: Array) -> Array:
    """The number, int32, of the segment of each element [..., n] in which the regression is constant."""
    host = on_host(x).astype(wide(x.dtype), copy=False)
    rows = [_segments(row) for row in host.reshape(-1, host.shape[-1] or 1).tolist()] if host.size else []
    return xp.asarray(np.array(rows, _I32).reshape(host.shape))


@composite(
    samples=[
        sample(_POOLED, np.array([[0, 1, 1, 1, 1, 2, 2], [0] * 7], np.int32)),
        sample((5,), np.array([0, 0, 1, 2, 2], np.int32), seed=1),
        sample((2, 0), np.zeros((2, 0), np.int32)),
    ],
    op_type="IsotonicRegression",
    like=(0, 1),
    integers=("segments",),
    tf=(by_hand("nn.isotonic_regression", "it returns the segments too, of any axis"),),
)
def isotonic_regression(x: Operand, segments: Operand) -> Operand:
    """The sequences [..., n] with the means of the segments [..., n], int32, that `isotonic_segments` gives."""
    lengths = tuple(x.shape)
    if segments.dtype is not _I32 or tuple(segments.shape) != lengths or not lengths:
        raise InvalidArgumentError(
            f"segments must be int32 of the shape {shape_text(lengths)} of sequences, found {segments.dtype.name} "
            f"{shape_text(segments.shape)}"
        )
    count = math.prod(lengths)
    if not count:
        return x
    n = lengths[-1]
    within = reshape(cast(segments, dtype=_I64), shape=(count // n, n))
    flat = reshape(within + (cumsum(ones_like(within), axis=0) - 1) * n, shape=(count,))
    means = unsorted_segment_mean(reshape(x, shape=(count,)), flat, num_segments=count)
    return reshape(gather(means, flat), shape=lengths)
