"""Orders: sorting, the places of sorted elements, searching in sorted sequences, and elements that differ."""

from __future__ import annotations

import math

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.catalogue.attributes import Axis
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_all, batch_axes, composite
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Reach, Trait
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.index import gather
from teletape_engine.ops.shapes.shape import reshape, transpose
from teletape_engine.spec import (
    BOOL,
    DTYPES,
    INDEX,
    KERNEL_NAMES,
    REAL,
    DType,
    Spec,
    axis_in,
    shape_text,
    wide,
)

_I32, _F64 = DTYPES["int32"], DTYPES["float64"]
_BUCKETS = frozenset(DTYPES[name] for name in ("int32", "int64", "float32", "float64"))
_TOP_INDEX = INDEX | {DTYPES["int16"]}
_DIRECTIONS = ("ASCENDING", "DESCENDING")
_TIES = np.array([[2.0, 1.0, 2.0, 0.5], [0.0, 3.0, 1.0, 3.0]])


def _order(xp: ArrayModule, x: Array, axis: int, *, descending: bool) -> Array:
    """The places of the elements in order along `axis`, equal ones in the order in which they come; x has an axis."""
    if x.dtype.itemsize < 4:
        x = x.astype(wide(x.dtype), copy=False)
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable").astype(_I32)
    backwards = xp.flip(xp.argsort(xp.flip(x, axis), axis=axis, kind="stable"), axis)
    return (x.shape[axis] - 1 - backwards).astype(_I32)


def taken_along(x: Operand, places: Operand, axis: int) -> Operand:
    """The elements of x at `places` of its shape along `axis`."""
    n = len(x.shape)
    at = axis_in(axis, n)
    order = (*range(at), *range(at + 1, n), at)
    back = tuple(order.index(i) for i in range(n))
    if at == n - 1:
        return gather(x, places, axis=n - 1, batch_dims=n - 1)
    last = gather(transpose(x, perm=order), transpose(places, perm=order), axis=n - 1, batch_dims=n - 1)
    return transpose(last, perm=back)


# ------------------------------------------------------------------------------------------------------------ sorting
def _check_sort(op_type: str, x: Spec, axis: int, direction: str) -> None:
    check_dtypes(op_type, (x,), REAL)
    axis_in(axis, x.ndim)
    if direction not in _DIRECTIONS:
        raise InvalidArgumentError(f"Unknown direction: {direction}, expected one of {', '.join(_DIRECTIONS)}")


def _argsort_spec(x: Spec, *, axis: int, direction: str) -> Spec:
    _check_sort("Argsort", x, axis, direction)
    return x.with_dtype(_I32)


_SORT_SAMPLES = [
    sample((2, 5)),
    sample((3, 4), axis=0, direction="DESCENDING", seed=1),
    sample((2, 3, 2), axis=1, seed=2),
    sample((4,), direction="DESCENDING", seed=3),
    sample((0, 2), axis=0),
]


@op(
    infer=_argsort_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_axes,
    samples=[*_SORT_SAMPLES, sample(_TIES), sample(_TIES, direction="DESCENDING")],
    tf=(
        function(
            "argsort",
            Conversion.TENSOR("values"),
            Conversion.INT("axis", -1),
            Conversion.AS_IS("direction", "ASCENDING"),
            Conversion.IGNORED("stable", False),
            check="known_direction",
        ),
    ),
    workspace=lambda x, **_: 3 * 8 * x.size,
)
def argsort(xp: ArrayModule, x: Array, *, axis: Axis = -1, direction: str = "ASCENDING") -> Array:
    """The indices that sort the elements along `axis`, as int32; equal elements keep their order.

    `direction` is "ASCENDING" or "DESCENDING".
    """
    return _order(xp, x, axis, descending=direction == "DESCENDING")


def _sort_spec(x: Spec, *, axis: int, direction: str) -> Spec:
    _check_sort("Sort", x, axis, direction)
    return x


def _sort_vjp(ct: Operand, x: Operand, axis: int, direction: str) -> Operand:
    places = argsort(x, axis=axis, direction=direction)
    return taken_along(ct, argsort(places, axis=axis), axis)  # the inverse of a permutation is the order of its numbers


@op(
    infer=_sort_spec,
    vjp=_sort_vjp,
    jvp=lambda t, x, axis, direction: taken_along(t, argsort(x, axis=axis, direction=direction), axis),
    batch=batch_axes,
    samples=_SORT_SAMPLES,
    tf=(
        function(
            "sort",
            Conversion.TENSOR("values"),
            Conversion.INT("axis", -1),
            Conversion.AS_IS("direction", "ASCENDING"),
            check="known_direction",
        ),
    ),
    workspace=lambda x, **_: 2 * x.nbytes,
    reach=Reach.LINES,
)
def sort(xp: ArrayModule, x: Array, *, axis: Axis = -1, direction: str = "ASCENDING") -> Array:
    """The elements in order along `axis`; `direction` is "ASCENDING" or "DESCENDING"."""
    ordered = xp.sort(x.astype(wide(x.dtype), copy=False), axis=axis).astype(x.dtype, copy=False)
    return xp.ascontiguousarray(xp.flip(ordered, axis)) if direction == "DESCENDING" else ordered


def _top_spec(x: Spec, *, k: int, index_type: DType) -> tuple[Spec, Spec]:
    check_dtypes("TopKV2", (x,), REAL)
    if index_type not in _TOP_INDEX:
        raise InvalidArgumentError(
            f"Value for attr 'index_type' of {KERNEL_NAMES[index_type]} is not in the list of allowed values: int16, "
            "int32, int64"
        )
    if not x.ndim:
        raise InvalidArgumentError("input must be >= 1-D, got shape []")
    if k < 0:
        raise InvalidArgumentError(f"Need k >= 0, got {k}")
    if x.shape[-1] < k:
        raise InvalidArgumentError(f"input must have at least k columns. Had {x.shape[-1]}, needed {k}")
    values = x.with_shape((*x.shape[:-1], k))
    return values, values.with_dtype(index_type)


def _top_vjp(ct: tuple[Operand, None], x_spec: Spec, indices: Operand) -> Operand:
    values_ct, _ = ct
    last = x_spec.ndim - 1
    places = _gatherable(indices)
    return ops.unsorted_segment_sum(values_ct, places, num_segments=x_spec.shape[-1], axis=last, batch_dims=last)


def _gatherable(indices: Operand) -> Operand:
    return indices if indices.dtype in INDEX else cast(indices, dtype=_I32)


@op(
    infer=_top_spec,
    vjp=_top_vjp,
    jvp=lambda t, indices: (taken_along(t, _gatherable(indices), axis=-1), None),
    batch=lambda record, args, batched, attrs: record(*args, **attrs),
    samples=[
        sample((2, 5), k=2),
        sample(_TIES.astype(np.int64), k=3),
        sample((3,), k=0),
        sample((2, 2, 3), k=3, index_type=DTYPES["int16"], seed=1),
    ],
    op_type="TopKV2",
    results="values indices",
    tf=(
        function(
            "math.top_k nn.top_k",
            Conversion.TENSOR("input"),
            Conversion.INT("k", 1),
            Conversion.IGNORED("sorted", True),
            Conversion.DTYPE("index_type", _I32),
            named="TopKV2",
        ),
    ),
    workspace=lambda x, **_: 3 * 8 * x.size,
    traits=[Trait.SELECTS],
    reach=Reach.LINES,
)
def top_k(xp: ArrayModule, x: Array, *, k: int = 1, index_type: DType = DTYPES["int32"]) -> tuple[Array, Array]:
    """The k largest elements along the last axis, the largest first, and their indices; equal ones by their index."""
    places = _order(xp, x, -1, descending=True)[..., :k]
    rows = xp.arange(math.prod(x.shape[:-1])).reshape((*x.shape[:-1], 1))
    return xp.take(x, places + rows * x.shape[-1]), places.astype(index_type)


# ---------------------------------------------------------------------------------------------------------- searching
def _search_spec(sorted_sequence: Spec, values: Spec, *, side: str, out_type: DType) -> Spec:
    check_dtypes("LowerBound" if side == "left" else "UpperBound", (sorted_sequence, values), REAL)
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    if out_type not in INDEX:
        raise InvalidArgumentError(f"out_type must be int32 or int64, found {out_type.name}")
    rows = [math.prod(x.shape[:-1]) for x in (sorted_sequence, values)]
    if not sorted_sequence.ndim or not values.ndim or rows[0] != rows[1]:
        raise InvalidArgumentError(
            f"Leading dim_size of both tensors must match: sorted_sequence {shape_text(sorted_sequence.shape)} and "
            f"values {shape_text(values.shape)} need as many rows"
        )
    return values.with_dtype(out_type)


@op(
    infer=_search_spec,
    vjp=NOT_REGISTERED,
    batch=lambda record, args, batched, attrs: record(*batch_all(args, batched), **attrs),
    samples=[
        sample(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 0.0, 6.0])),
        sample(np.array([1.0, 2.0, 2.0, 5.0]), np.array([2.0, 0.0, 6.0]), side="right", out_type=DTYPES["int64"]),
        sample(np.array([[1.0, 3.0], [0.0, 9.0]]), np.array([[1.0, 2.0, 3.0], [9.0, 9.5, -1.0]])),
        sample(np.zeros((0,)), (2,)),
        sample(np.array([1.0, 3.0]), np.array([[2.0, 0.0]])),
    ],
    op_type="LowerBound",
    like=(0, 0),
    tf=(
        function(
            "searchsorted",
            Conversion.TENSOR("sorted_sequence"),
            Conversion.LIKE("values", of="sorted_sequence"),
            Conversion.AS_IS("side", "left"),
            Conversion.DTYPE("out_type", _I32),
            check="known_side",
        ),
    ),
    workspace=lambda sorted_sequence, values, **_: 2 * sorted_sequence.nbytes + 2 * values.nbytes + 8 * values.size,
)
def searchsorted(
    xp: ArrayModule, sorted_sequence: Array, values: Array, *, side: str = "left", out_type: DType = DTYPES["int32"]
) -> Array:
    """The index of each of `values` [..., m] in `sorted_sequence` [..., n], before or after equal elements.

    Both have as many rows; their first axes may number them in different ways.

    `side` is "left" (before them) or "right".
    """
    dtype = wide(values.dtype)
    lengths, count = sorted_sequence.shape[-1], math.prod(values.shape[:-1])
    sequences = sorted_sequence.astype(dtype, copy=False).reshape((count, lengths))
    rows = values.astype(dtype, copy=False).reshape((count, values.shape[-1]))
    out = xp.empty(rows.shape, out_type)
    for k in range(count):
        out[k] = xp.searchsorted(sequences[k], rows[k], side=side)
    return out.reshape(values.shape)


@composite(
    samples=[
        sample(np.array([[-1.0, 0.0], [1.5, 2.0]]), np.array([0.0, 2.0])),
        sample((3,), np.zeros((0,))),
        sample(np.array(2.5), np.array([1.0, 1.0, 2.0])),
    ],
    op_type="Bucketize",
    like=(0, 1),
    tf=(function("raw_ops.Bucketize", Conversion.TENSOR("input"), Conversion.TENSOR("boundaries")),),
)
def bucketize(x: Operand, boundaries: Operand) -> Operand:
    """The number of `boundaries`, a sorted vector, that are not greater than each element of x: int32."""
    check_dtypes("Bucketize", (x,), _BUCKETS)
    if len(boundaries.shape) != 1:
        raise InvalidArgumentError(f"boundaries must be a vector, found shape {shape_text(boundaries.shape)}")
    values = reshape(cast(x, dtype=_F64), shape=(-1,))
    places = searchsorted(cast(boundaries, dtype=_F64), values, side="right")
    return reshape(places, shape=tuple(x.shape))


# --------------------------------------------------------------------------------------------------- different elements
def _unique_spec(x: Spec, *, index_type: DType) -> tuple[Spec, Spec, Spec]:
    check_dtypes("Unique", (x,), REAL | {BOOL})
    if x.ndim != 1:
        raise InvalidArgumentError("unique expects a 1D vector.")
    return x, x.with_dtype(index_type), x.with_dtype(index_type)


_STRINGS = "strings are compared on the caller's side"


@op(
    infer=_unique_spec,
    vjp=NOT_REGISTERED,
    batch=None,
    samples=[
        sample(np.array([3.0, 1.0, 3.0, 2.0, 1.0])),
        sample((4,), index_type=DTYPES["int64"]),
        sample(np.zeros((0,))),
    ],
    op_type="Unique",
    results="y idx count",
    dynamic=True,
    tf=(by_hand("unique", _STRINGS), by_hand("unique_with_counts", _STRINGS)),
    workspace=lambda x, **_: 6 * 8 * x.size,
)
@on_gpu(waits="the number of different elements")
def unique(xp: ArrayModule, x: Array, *, index_type: DType = DTYPES["int32"]) -> tuple[Array, Array, Array]:
    """The different elements y of a vector in the order in which they come first, and how often each of them comes.

    Between both: for each element of the vector its place in y. The number of different elements depends on the values;
    each nan is one of its own.
    """
    values = x.astype(wide(x.dtype), copy=False)
    _, first, kinds, count = xp.unique(
        values, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = xp.argsort(first)
    number = xp.empty_like(order)
    number[order] = xp.arange(len(order))
    return x[first[order]], number[kinds.reshape(-1)].astype(index_type), count[order].astype(index_type)
