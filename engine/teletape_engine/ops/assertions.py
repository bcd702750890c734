"""Ops that check values and raise: the assertions of a program that runs without its caller.

Among them the checks of an index that only the server knows, with the messages of TensorFlow's slices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.arrays import Array, ArrayModule
from teletape_engine.arrays.checks import holds, within
from teletape_engine.catalogue.define import check_dtypes, on_gpu, op, sample
from teletape_engine.catalogue.elementwise import batch_elementwise
from teletape_engine.catalogue.op import Reach, Sample, Trait
from teletape_engine.catalogue.rule import NON_DIFFERENTIABLE
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import BOOL, FLOATING, INTEGER, Shape, Spec, shape_text


def _condition_spec(condition: Spec, *, message: str) -> Spec:
    check_dtypes("Assert", [condition], frozenset({BOOL}))
    return condition


@op(
    infer=_condition_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[Sample((np.array([True, True]),), {"message": "x > 0"})],
    op_type="Assert",
    views=True,
    traits=[Trait.ASSERTS],
)
@on_gpu(waits="whether the condition holds")
def ensure(xp: ArrayModule, condition: Array, *, message: str) -> Array:
    """The condition itself, if it holds everywhere; else an error with the message."""
    if not holds(xp, condition):
        raise InvalidArgumentError(message or "the condition does not hold everywhere")
    return condition


def _floating_spec(x: Spec, *, message: str) -> Spec:
    check_dtypes("CheckNumerics", [x], FLOATING)
    return x


@op(
    infer=_floating_spec,
    vjp=lambda ct: ct,
    jvp=lambda t: t,
    batch=batch_elementwise,
    samples=[sample((2, 3), message="x"), sample((), message="x")],
    views=True,
    traits=[Trait.ASSERTS],
    reach=Reach.ELEMENTS,
)
@on_gpu(waits="whether every number is finite")
def check_numerics(xp: ArrayModule, x: Array, *, message: str) -> Array:
    """x itself, if none of its numbers is NaN or infinite; else an error that begins with the message."""
    if not holds(xp, xp.isfinite(x)):
        kinds = [kind for test, kind in ((xp.isinf, "Inf"), (xp.isnan, "NaN")) if test(x).any()]
        raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(kinds)} values")
    return x


def _index_spec(index: Spec, *, length: int, wraps: bool, message: str) -> Spec:
    check_dtypes("StridedSlice", [index], INTEGER)
    return index


@op(
    infer=_index_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[
        Sample((np.array([2, -3, 0]),), {"length": 3, "wraps": True, "message": "{index}"}),
        Sample((np.array(1, np.int32),), {"length": 2, "wraps": False, "message": "{index}"}),
    ],
    op_type="StridedSlice",
    views=True,
    refuses=("index",),
    integers=("index",),
)
@on_gpu(waits="a check of the index, unless the host knows its bounds")
def element_index(xp: ArrayModule, index: Any, *, length: int, wraps: bool, message: str) -> Array:
    """An index into an axis of this length, counted from the front; if it `wraps`, a negative one counts from the end.

    Raises:
        InvalidArgumentError: The message, with the first index that is outside in the place of `{index}`.
    """
    at = xp.where(index < 0, index + length, index) if wraps else index
    if not within(at, length):
        outside = at[(at < 0) | (at >= length)]
        raise InvalidArgumentError(message.replace("{index}", str(int(outside.reshape(-1)[0]))))
    return at


def _start_spec(begin: Spec, *, shape: Shape, size: Shape) -> Spec:
    check_dtypes("Slice", [begin], INTEGER)
    if begin.shape[-1:] != (len(shape),) or len(size) != len(shape):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {len(shape)}, but got shapes "
            f"{shape_text(begin.shape)} and [{len(size)}] instead."
        )
    for axis, (count, length) in enumerate(zip(size, shape, strict=True)):
        if not 0 <= count <= length:
            raise InvalidArgumentError(f"Expected size[{axis}] in [0, {length}], but got {count}")
    return begin


@op(
    infer=_start_spec,
    vjp=NON_DIFFERENTIABLE,
    batch=batch_elementwise,
    samples=[
        Sample((np.array([1, 0]),), {"shape": (3, 4), "size": (2, 3)}),
        Sample((np.array([3], np.int32),), {"shape": (3,), "size": (0,)}),
    ],
    op_type="Slice",
    views=True,
    refuses=("begin",),
    integers=("begin",),
)
@on_gpu(waits="a check of the positions", up="the last positions that are inside")
def slice_start(xp: ArrayModule, begin: Array, *, shape: Shape, size: Shape) -> Array:
    """`begin` itself, the first position along each axis of a block of `size` elements, if the block is inside.

    Raises:
        InvalidArgumentError: `Expected begin[0] in [0, 4], but got 7`.
    """
    lengths, counts = np.array(shape, begin.dtype), np.array(size, begin.dtype)
    if not holds(xp, (begin >= 0) & (begin <= xp.asarray(lengths - counts))):
        for row in begin.reshape((-1, len(shape))).tolist():
            for axis, (first, length, count) in enumerate(zip(row, shape, size, strict=True)):
                if not 0 <= first <= length:
                    raise InvalidArgumentError(f"Expected begin[{axis}] in [0, {length}], but got {first}")
                if first + count > length:
                    raise InvalidArgumentError(f"Expected size[{axis}] in [0, {length - first}], but got {count}")
    return begin
