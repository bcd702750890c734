"""The same elements at other places: reversed, rolled, repeated along an axis, and the inverse of a permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.catalogue.attributes import Axis, Ints
from teletape_engine.catalogue.define import check_dtypes, op, sample
from teletape_engine.catalogue.families import composite, linear
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Sample
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.catalogue.signature import Conversion, by_hand, function
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.shapes.index import strided_slice
from teletape_engine.ops.shapes.shape import broadcast_to, expand_dims, reshape
from teletape_engine.spec import INDEX, Spec, axis_in


@composite(
    op_type="ReverseV2",
    samples=[sample((2, 3), axis=(1,)), sample((2, 3, 2), axis=(0, -1)), sample((2,), axis=()), sample((), axis=())],
    tf=(function("reverse", "tensor", Conversion.INTS("axis")),),
)
def reverse(x: Any, *, axis: Ints) -> Any:
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


def _batch_roll(record: Any, args: Any, batched: Any, attrs: Any) -> Any:
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
)
def roll(xp: Any, x: Any, *, shift: Ints, axis: Ints) -> Any:
    """x with its elements moved by `shift[i]` places along `axis[i]`; what leaves at one end enters at the other."""
    return xp.roll(x, shift, axis)


@composite(
    samples=[sample((2, 3), times=2, axis=1), sample((2, 2), times=3, axis=0), sample((2,), times=0, axis=-1)],
    tf=(by_hand("repeat", "a count for each element gives a shape that depends on the counts"),),
)
def repeat(x: Any, *, times: int, axis: Axis) -> Any:
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
    args="x",
    tf="math.invert_permutation",
    refuses=("x",),
    integers=("x",),
    workspace=lambda x: 8 * x.size,
)
def invert_permutation(xp: Any, x: Any) -> Any:
    """The permutation y with y[x[i]] = i, of the numbers 0 to n - 1.

    Raises:
        InvalidArgumentError: A number is missing.
    """
    places = xp.argsort(x, kind="stable")
    if bool((x[places] != xp.arange(len(x))).any()):
        raise InvalidArgumentError(f"the numbers must be a permutation of 0 to {len(x) - 1}")
    return places.astype(x.dtype)
