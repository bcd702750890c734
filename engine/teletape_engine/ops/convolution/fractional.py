"""Fractional pooling: windows whose lengths differ by one, at places that are drawn (Graham, 2014, arXiv:1412.6071)."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.arrays import Array, ArrayModule, philox
from teletape_engine.catalogue.attributes import Ints
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import by_hand
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.convolution.morphology import at_places, largest_place
from teletape_engine.ops.random.philox import check_state, unsigned
from teletape_engine.ops.reduce import reduce_sum
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.create import ones_like
from teletape_engine.ops.shapes.index import gather, strided_slice
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, reshape, transpose
from teletape_engine.spec import DTYPES, INTEGER, REAL, Spec, shape_text

_I64, _F64 = DTYPES["int64"], DTYPES["float64"]


# -------------------------------------------------------------------------------------------------------------- borders
def _borders_spec(state: Spec, *, lengths: Ints, counts: Ints, pseudo_random: bool) -> Spec:
    check_state(state)
    if len(lengths) != len(counts) or any(not 0 < n <= length for n, length in zip(counts, lengths, strict=False)):
        raise InvalidArgumentError(
            f"each axis has from one window to as many as elements, found {list(counts)} windows on {list(lengths)}"
        )
    return Spec.of((sum(counts) + len(counts),), _I64)


@op(
    infer=_borders_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_loop,
    samples=[
        sample(np.array([0, 3, 7]), lengths=(7, 9), counts=(5, 4)),
        sample(np.array([0, 3, 7]), lengths=(7, 9), counts=(5, 6), pseudo_random=True),
    ],
    workspace=lambda state, *, lengths, counts, pseudo_random: 80 * sum(counts) + philox.workspace(sum(counts)),
    integers=("state",),
    traits=[Trait.RANDOM],
)
@on_gpu(down="the state", up="the borders, which the host draws")
def philox_borders(xp: ArrayModule, state: Array, *, lengths: Ints, counts: Ints, pseudo_random: bool = False) -> Array:
    """Where windows begin and end on axes of `lengths`, `counts` on each: int64 [sum of counts + 1], one after another.

    From a state of Philox: int64 [3]. The lengths of two windows differ by one at most. Their order is drawn, or with
    `pseudo_random` windows are equally long before their ends are rounded up, and where they begin is drawn.
    """
    low, high, key = unsigned(state)
    borders = []
    for length, count in zip(lengths, counts, strict=True):
        sizes = (_even if pseudo_random else _shuffled)([low, high, key], length, count)
        borders.append(np.cumsum([0, *sizes]))
        counter = (low + high * 2**64 + (1 if pseudo_random else -(-count // philox.WORDS))) % 2**128
        low, high = counter % 2**64, counter // 2**64
    return xp.asarray(np.concatenate(borders).astype(np.int64))


def _shuffled(state: philox.State, length: int, count: int) -> Array:
    sizes = np.full(count, length // count)
    sizes[: length % count] += 1
    return sizes[philox.permutation(state, count)]


def _even(state: philox.State, length: int, count: int) -> Array:
    alpha, least = length / count, length // count
    # So far may the windows move that the first has no more than least + 1 elements and the last no fewer than least.
    furthest = min((least + 2) / alpha - 1, (length + 1 - least) / alpha - (count - 1))
    first, second = (int(word) for word in philox.words(state, 2))
    share = ((first % 2**20) * 2**32 + second) / 2**52 * furthest
    ends = [1, *(math.ceil(alpha * (i + share)) for i in range(1, count)), length + 1]
    return np.diff(ends)


# -------------------------------------------------------------------------------------------------------------- windows
def _check(what: str, x: Operand, rows: Operand, columns: Operand) -> None:
    check_dtypes(what, (Spec.of(x.shape, x.dtype),), REAL)
    if len(x.shape) != 4:
        raise InvalidArgumentError(f"{what}: value must be 4-dimensional, found shape {shape_text(x.shape)}")
    for borders, length in ((rows, x.shape[1]), (columns, x.shape[2])):
        check_dtypes(what, (Spec.of(borders.shape, borders.dtype),), INTEGER)
        if len(borders.shape) != 1 or not 2 <= borders.shape[0] <= length + 1:
            raise InvalidArgumentError(
                f"{what}: borders of windows are a vector of 2 to {length + 1} numbers, found "
                f"{shape_text(borders.shape)}"
            )


def _elements(borders: Operand, length: int, overlapping: bool) -> tuple[Operand, Operand]:
    """The indices [windows, elements] of an axis, the last of a window repeated; and which are its own."""
    count = borders.shape[0] - 1
    start = strided_slice(borders, index=((None, -1, None),))
    end = strided_slice(borders, index=((1, None, None),))
    if overlapping:
        end = ops.minimum(end + 1, ones_like(end) * length)
    size = length // count + 1 + overlapping
    ones = broadcast_to(expand_dims(ones_like(start), axis=1), shape=(count, size))
    at = expand_dims(start, axis=1) + ops.cumsum(ones, axis=1, exclusive=True)
    last = expand_dims(end, axis=1) - 1
    return ops.minimum(at, last + ops.zeros_like(at)), ops.less_equal(at, last)


def _windows_last(x: Operand, rows: Operand, columns: Operand) -> Operand:
    """Images as [n, rows of windows, columns of windows, c, elements of a window]."""
    apart = gather(gather(x, rows, axis=1), columns, axis=3)
    n, depth = x.shape[0], x.shape[3]
    (down, high), (across, wide) = rows.shape, columns.shape
    return reshape(transpose(apart, perm=(0, 1, 3, 5, 2, 4)), shape=(n, down, across, depth, high * wide))


_SAMPLES = [
    sample((2, 5, 4, 2), np.array([0, 2, 3, 5]), np.array([0, 1, 3, 4])),
    sample((1, 7, 5, 1), np.array([0, 2, 4, 7]), np.array([0, 2, 3, 5]), overlapping=True, seed=1),
]


@composite(
    samples=_SAMPLES,
    like=(0, 1, 2),
    integers=("rows", "columns"),
    tf=(by_hand("nn.fractional_max_pool", "the borders are drawn first"),),
)
def fractional_max_pool(x: Operand, rows: Operand, columns: Operand, *, overlapping: bool = False) -> Operand:
    """The largest element of windows on images [n, height, width, c] that begin and end at rows and columns.

    rows, columns: [m + 1], from 0 to the height or width; the lengths of windows differ by one at most. With
    `overlapping` a window also has the first row and column of the next.
    """
    _check("FractionalMaxPool", x, rows, columns)
    (down, _), (across, _) = (
        _elements(borders, length, overlapping) for borders, length in ((rows, x.shape[1]), (columns, x.shape[2]))
    )
    elements = _windows_last(x, down, across)
    return at_places(elements, largest_place(elements))


@composite(
    samples=_SAMPLES,
    like=(0, 1, 2),
    integers=("rows", "columns"),
    tf=(by_hand("nn.fractional_avg_pool", "the borders are drawn first"),),
)
def fractional_avg_pool(x: Operand, rows: Operand, columns: Operand, *, overlapping: bool = False) -> Operand:
    """The mean of windows on images as those of fractional_max_pool; of integers without its fraction."""
    _check("FractionalAvgPool", x, rows, columns)
    if x.dtype in INTEGER:
        return cast(fractional_avg_pool(cast(x, dtype=_F64), rows, columns, overlapping=overlapping), dtype=x.dtype)
    (down, in_rows), (across, in_columns) = (
        _elements(borders, length, overlapping) for borders, length in ((rows, x.shape[1]), (columns, x.shape[2]))
    )
    both = ops.logical_and(
        expand_dims(expand_dims(in_rows, axis=1), axis=3), expand_dims(expand_dims(in_columns, axis=0), axis=2)
    )
    (n_down, high), (n_across, wide) = down.shape, across.shape
    weights = cast(reshape(both, shape=(n_down, n_across, 1, high * wide)), dtype=x.dtype)
    return reduce_sum(_windows_last(x, down, across) * weights, axis=4) / reduce_sum(weights, axis=3)
