"""The same elements at other places: reversed, rolled, repeated along an axis, and the inverse of a permutation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.checks import within
from teletape_engine.arrays.scatter import check_indices
from teletape_engine.catalogue.attributes import Attrs, Axis, Ints
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.families import batch_loop, composite, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op, Reach, Sample
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE, NOT_REGISTERED
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, reshape
from teletape_engine.spec import INDEX, Shape, Spec, axis_in, shape_text


@composite(
    op_type="ReverseV2",
    samples=[sample((2, 3), axis=(1,)), sample((2, 3, 2), axis=(0, -1)), sample((2,), axis=()), sample((), axis=())],
    tf=(function("reverse", "tensor", Conversion.INTS("axis")),),
)
def reverse(x: Operand, *, axis: Ints) -> Operand:
    """x with the elements along each of the axes in the opposite order."""
    n = len(x.shape)
    axes = [axis_in(number, n) for number in axis]
    if len(set(axes)) < len(axes):
        twice = next(number for number in axes if axes.count(number) > 1)
        raise InvalidArgumentError(f"axis {twice} specified more than once.")
    whole, backwards = (None, None, None), (None, None, -1)
    return strided_slice(x, index=tuple(backwards if i in axes else whole for i in range(n)))


def _roll_spec(x: Spec, *, shift: Ints, axis: Ints) -> Spec:
    if not x.ndim:
        raise InvalidArgumentError("input must be 1-D or higher")
    if len(shift) != len(axis):
        raise InvalidArgumentError("shift and axis must have the same size")
    for number in axis:
        axis_in(number, x.ndim)
    return x


def _batch_roll(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    (x,) = args
    moved = tuple(axis_in(number, len(x.shape) - 1) + 1 for number in attrs["axis"])
    return record(x, shift=attrs["shift"], axis=moved)


@linear(
    infer=_roll_spec,
    vjp=lambda ct, shift, axis: ops.roll(ct, shift=tuple(-by for by in shift), axis=axis),
    batch=_batch_roll,
    samples=[
        sample((4,), shift=(1,), axis=(0,)),
        sample((3, 4), shift=(-1, 6), axis=(0, -1)),
        sample((3, 2), shift=(1, 1), axis=(0, 0)),
        sample((0, 2), shift=(1,), axis=(0,)),
    ],
    tf=(function("roll", "input", Conversion.INTS("shift"), Conversion.INTS("axis")),),
    workspace=lambda x, **_: x.nbytes,
    reach=Reach.MOVES,
)
def roll(xp: ArrayModule, x: Array, *, shift: Ints, axis: Ints) -> Array:
    """x with its elements moved by `shift[i]` places along `axis[i]`; what leaves at one end enters at the other."""
    return xp.roll(x, shift, axis)


@composite(
    samples=[sample((2, 3), times=2, axis=1), sample((2, 2), times=3, axis=0), sample((2,), times=0, axis=-1)],
    tf=(by_hand("repeat", "a count for each element gives a shape that depends on the counts"),),
)
def repeat(x: Operand, *, times: int, axis: Axis) -> Operand:
    """x with each entry along `axis` repeated `times` times, next to each other."""
    if times < 0:
        raise InvalidArgumentError(f"repeats must be non-negative, found {times}")
    at = axis_in(axis, len(x.shape))
    lead, length, rest = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    copies = broadcast_to(expand_dims(x, axis=at + 1), shape=(*lead, length, times, *rest))
    return reshape(copies, shape=(*lead, length * times, *rest))


def _permutation_spec(x: Spec) -> Spec:
    check_dtypes("InvertPermutation", (x,), INDEX)
    if x.ndim != 1:
        raise InvalidArgumentError("invert_permutation expects a 1D vector.")
    return x


@op(
    infer=_permutation_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=lambda record, args, batched, attrs: ops.stack(
        *[record(strided_slice(args[0], index=(k,))) for k in range(args[0].shape[0])]
    ),
    samples=[Sample((np.array([2, 0, 1]),), {}), Sample((np.array([], np.int32),), {})],
    tf=(function("math.invert_permutation", Conversion.INT32("x")),),
    refuses=("x",),
    integers=("x",),
    workspace=lambda x: 8 * x.size,
)
@on_gpu(waits="whether it is a permutation")
def invert_permutation(xp: ArrayModule, x: Array) -> Array:
    """The permutation y with y[x[i]] = i, of the numbers 0 to n - 1.

    Raises:
        InvalidArgumentError: A number is missing.
    """
    places = xp.argsort(x, kind="stable")
    if bool((x[places] != xp.arange(len(x))).any()):
        raise InvalidArgumentError(f"the numbers must be a permutation of 0 to {len(x) - 1}")
    return places.astype(x.dtype)


# ---------------------------------------------------------------------------------------------------------- sequences
def _sequence_spec(x: Spec, seq_lengths: Spec, *, seq_axis: int, batch_axis: int) -> Spec:
    if seq_lengths.dtype not in INDEX:
        raise InvalidArgumentError(f"seq_lengths must be int32 or int64, found {seq_lengths.dtype.name}")
    for what, axis in (("seq_dim", seq_axis), ("batch_dim", batch_axis)):
        if not 0 <= axis < x.ndim:
            raise InvalidArgumentError(f"Invalid {what} {axis}: the input has {x.ndim} axes")
    if seq_axis == batch_axis:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {seq_axis}")
    if seq_lengths.shape != (x.shape[batch_axis],):
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch_axis}), ({shape_text(seq_lengths.shape)} vs. "
            f"{x.shape[batch_axis]})"
        )
    return x


def _batch_sequence(record: Op, args: Sequence[Operand], batched: Sequence[bool], attrs: Attrs) -> Operand:
    if batched[1]:
        return batch_loop(record, args, batched, attrs)
    return record(*args, seq_axis=attrs["seq_axis"] + 1, batch_axis=attrs["batch_axis"] + 1)


@op(
    infer=_sequence_spec,
    vjp=[
        lambda ct, seq_lengths, seq_axis, batch_axis: ops.reverse_sequence(
            ct, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis
        ),
        NON_DIFFERENTIABLE,
    ],
    jvp=[
        lambda t, seq_lengths, seq_axis, batch_axis: ops.reverse_sequence(
            t, seq_lengths, seq_axis=seq_axis, batch_axis=batch_axis
        ),
        NON_DIFFERENTIABLE,
    ],
    batch=_batch_sequence,
    samples=[
        sample((2, 3), np.array([2, 3]), seq_axis=1),
        sample((3, 2, 2), np.array([0, 3], np.int32), seq_axis=0, batch_axis=1),
    ],
    refuses=("seq_lengths",),
    integers=("seq_lengths",),
    tf=(
        function(
            "reverse_sequence",
            Conversion.TENSOR("input"),
            Conversion.TENSOR("seq_lengths"),
            Conversion.INT("seq_axis", None),
            Conversion.INT("batch_axis", None),
        ),
    ),
    workspace=lambda x, seq_lengths, **_: 3 * 8 * x.size,
    reach=Reach.MOVES,
)
@on_gpu(waits="a check of the lengths, unless the host knows their bounds")
def reverse_sequence(xp: ArrayModule, x: Array, seq_lengths: Array, *, seq_axis: int, batch_axis: int = 0) -> Array:
    """x with the first `seq_lengths[i]` elements along `seq_axis` in the opposite order, at each i of `batch_axis`.

    Raises:
        InvalidArgumentError: A length is negative, or more than there are elements along the axis.
    """
    n = x.shape[seq_axis]
    if not within(seq_lengths, n + 1):
        i, length = next((i, length) for i, length in enumerate(seq_lengths.tolist()) if not 0 <= length <= n)
        wrong = "< 0" if length < 0 else f"> input.dims({seq_axis})"
        raise InvalidArgumentError(f"seq_lens({i}) {wrong}")
    rows = xp.moveaxis(x, (batch_axis, seq_axis), (0, 1))
    places, ends = xp.arange(n)[None, :], seq_lengths[:, None]
    places = xp.where(places < ends, ends - 1 - places, places)
    reversed_rows = rows[xp.arange(len(rows))[:, None], places]
    return xp.ascontiguousarray(xp.moveaxis(reversed_rows, (0, 1), (batch_axis, seq_axis)))


def _unravel_spec(x: Spec, *, dims: Shape) -> Spec:
    check_dtypes("UnravelIndex", (x,), INDEX)
    if x.ndim > 1:
        raise InvalidArgumentError(f"the indices must be a number or a vector, found shape {shape_text(x.shape)}")
    if not dims or 0 in dims:
        raise InvalidArgumentError(f"dims must be lengths above zero, at least one; found {shape_text(dims)}")
    if math.prod(dims) >= 2**63:
        raise InvalidArgumentError(f"dims {shape_text(dims)} have more elements than int64 counts")
    return x.with_shape((len(dims), *x.shape))


@op(
    infer=_unravel_spec,
    vjp=NOT_REGISTERED,
    batch=batch_loop,
    samples=[sample(np.array([2, 5, 7]), dims=(3, 3)), sample(np.array(5, np.int32), dims=(2, 2, 2))],
    refuses=("x",),
    integers=("x",),
    args="indices dims",
    tf="unravel_index",
    workspace=lambda x, dims: 3 * 8 * x.size * (1 + len(dims)),
)
@on_gpu(waits="a check of the indices, unless the host knows their bounds")
def unravel_index(xp: ArrayModule, x: Array, *, dims: Shape) -> Array:
    """The coordinates [len(dims), *x.shape] of row-major positions x in an array of shape `dims`.

    Raises:
        InvalidArgumentError: A place outside that array.
    """
    check_indices(xp, x, math.prod(dims))
    return xp.stack([place.astype(x.dtype) for place in xp.unravel_index(x, dims)])
