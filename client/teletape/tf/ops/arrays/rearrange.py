"""TensorFlow's functions that rearrange tensors or pick from them, and that are more than one call of an op.

Long because each has its own checks, with TensorFlow's messages, and all of them only compute (control_flow/purity.py).
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor, holds_tensors, known_elements
from teletape.core.calls.operators import masked
from teletape.core.program.tracebacks import report
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.indexed_slices import IndexedSlices, SparseValue
from teletape.core.tensors.tensor import Tensor, TensorLike, together
from teletape.core.tensors.tensor_shape import TensorShape
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


# ------------------------------------------------------------------------------------------------- joining and taking
def concat(values: Any, axis: to.IntsInput, name: str | None = "concat") -> Tensor:
    """Joins tensors along `axis`. By hand: a list of one tensor is an identity.

    Example:
        tf.concat([tf.constant([1.0, 2.0]), tf.constant([3.0])], axis=0)
    """
    try:
        if not isinstance(values, list | tuple):
            values = [values]
        if len(values) == 1:
            to.ints(axis, "axis")
            return call(ops.identity, (to.tensor(values[0]),))
        return call(ops.concat, values, axis=to.ints(axis, "axis")[0])
    except BaseException as error:
        report(error)
        raise


def stack(values: Any, axis: to.IntInput = 0, name: str = "stack") -> Tensor:
    """Joins tensors of one shape along a new axis. By hand: a tensor is unstacked; an empty list becomes a tensor.

    Raises:
        ValueError: There is no such axis.

    Example:
        tf.stack([tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])], axis=1)
    """
    try:
        if isinstance(values, TensorLike):
            values = unstack(values)
        if not len(values):
            return constant([])
        at = to.whole(axis)
        if not holds_tensors(values):
            values = unstack(constant(values))  # numbers alone agree on one dtype
        first = next((value.shape.rank for value in values if isinstance(value, TensorLike | RaggedValue)), None)
        rank = (np.ndim(values[0]) if first is None else first) + 1
        _check_axis(at, rank)
        return call(ops.stack, values, axis=at)
    except BaseException as error:
        report(error)
        raise


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Joins tensors of one shape along a new first axis, while a function is traced. By hand: like `stack`.

    Raises:
        RuntimeError: Outside a `tf.function`.

    Example:
        tf.function(lambda: tf.parallel_stack([[1, 2], [3, 4]]))()
    """
    if not current().tracing:
        raise RuntimeError("tf.parallel_stack() is not compatible with eager execution.")
    return stack(values)


def unstack(
    value: to.TensorInput, num: int | None = None, axis: to.IntInput = 0, name: str = "unstack"
) -> list[Tensor]:
    """The slices along `axis`, without that axis. By hand: one call of strided_slice for each.

    Raises:
        ValueError: There is no such axis.
        InvalidArgumentError: `num` is not the length of the axis.

    Example:
        tf.unstack([[1.0, 2.0], [3.0, 4.0]])
    """
    tensor, at = convert_to_tensor(value), to.whole(axis)
    _check_axis(at, tensor.ndim)
    before: tuple[Any, ...] = ((None, None, None),) * (at % tensor.ndim)
    count = tensor.shape.as_list()[at]
    if num is not None and num != count:
        raise InvalidArgumentError(f"Input shape axis {at} must equal {num}, got shape {tensor.shape}")
    return together([call(ops.strided_slice, (tensor,), index=(*before, i)) for i in builtins.range(count)])


def _check_axis(axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-rank}, {rank})")


def split(
    value: to.TensorInput,
    num_or_size_splits: to.IntsInput,
    axis: to.IntInput = 0,
    num: int | None = None,
    name: str = "split",
) -> list[Tensor]:
    """Cuts a tensor along `axis` into pieces of equal size, or of listed sizes. By hand: one strided_slice for each.

    Args:
        value: The tensor.
        num_or_size_splits: The number of pieces of equal size; or the size of each, one of which may be -1: the rest.
        axis: The axis.
        num: The number of sizes, if they are listed.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: There is no such axis, the sizes do not add up to its length, or `num` is another number.

    Example:
        tf.split([1.0, 2.0, 3.0, 4.0], 2)
    """
    tensor, at = convert_to_tensor(value), to.whole(axis)
    rank = tensor.ndim
    if not -rank <= at < rank:
        raise InvalidArgumentError(f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {at} [Op:Split]")
    at %= rank
    sizes = _sizes(num_or_size_splits, tensor.shape.as_list()[at], at)
    if num is not None and isinstance(num_or_size_splits, list | tuple | np.ndarray) and num != len(sizes):
        raise InvalidArgumentError(f"num is {num}, but there are {len(sizes)} sizes [Op:SplitV]")
    before: tuple[Any, ...] = ((None, None, None),) * at
    starts = np.cumsum([0, *sizes]).tolist()
    return together(
        [
            call(ops.strided_slice, (tensor,), index=(*before, (start, stop, None)))
            for start, stop in itertools.pairwise(starts)
        ]
    )


def _sizes(pieces: Any, length: int, axis: int) -> list[int]:
    if isinstance(pieces, int) or (isinstance(pieces, TensorLike) and not pieces.shape.rank):
        count = int(pieces)
        if count < 1 or length % count:
            raise InvalidArgumentError(
                "Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{axis} (size = {length}) and num_split {count} [Op:Split]"
            )
        return [length // count] * count
    sizes = list(to.ints(pieces, "num_or_size_splits"))
    rest = length - sum(size for size in sizes if size >= 0)
    sizes = [rest if size == -1 else size for size in sizes]
    if sum(sizes) != length or min(sizes, default=0) < 0:
        raise InvalidArgumentError(
            f"the sizes {sizes} do not add up to {length}, the length of axis {axis} [Op:SplitV]"
        )
    return sizes


def slice(input_: to.TensorInput, begin: to.IntsInput, size: to.IntsInput, name: str | None = None) -> Tensor:
    """The block that starts at `begin` and has `size` elements along each axis; -1: up to the end.

    By hand: the index of strided_slice is computed from both and the shape; a `begin` that only the server knows is not
    read.

    Raises:
        InvalidArgumentError: A block that reaches outside, or `begin` or `size` for another rank.

    Example:
        tf.slice([1.0, 2.0, 3.0], [1], [2])
    """
    tensor = convert_to_tensor(input_)
    index = []
    counts = to.ints(size, "size")
    first = _unknown_start(begin)
    if first is not None and -1 not in counts and first.shape.as_list() == [len(counts)] == [tensor.ndim]:
        return _block(tensor, first, counts)
    starts = to.ints(begin, "begin")
    if not len(starts) == len(counts) == tensor.ndim:
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {tensor.ndim}, but got shapes "
            f"[{len(starts)}] and [{len(counts)}] instead. [Op:Slice]"
        )
    for axis, (start, count, length) in enumerate(zip(starts, counts, tensor.shape.as_list(), strict=True)):
        stop = length if count == -1 else start + count
        if start < 0 or stop > length or stop < start:
            raise InvalidArgumentError(f"Expected size[{axis}] in [0, {length - start}], but got {count} [Op:Slice]")
        index.append((start, stop, None))
    return call(ops.strided_slice, (tensor,), index=tuple(index))


def _unknown_start(begin: Any) -> Tensor | None:
    """Returns positions that only the server knows as a tensor; None: they are known here."""
    parts = begin if isinstance(begin, list | tuple) else [begin]
    if all(not isinstance(part, TensorLike) or known_elements(part) is not None for part in parts):
        return None
    start = convert_to_tensor(begin)
    return start if start.dtype.is_integer else None


def _block(tensor: Tensor, begin: Tensor, size: Sequence[int]) -> Tensor:
    """Returns the block of this size that starts at `begin`, an integer for each axis; its gradient is dense."""
    shape = tuple(tensor.shape.as_list())
    start = call(ops.slice_start, (begin,), shape=shape, size=tuple(size))
    result = call(ops.expand_dims, (tensor,), axis=0)
    for axis, (count, length) in enumerate(zip(size, shape, strict=True)):
        if count < length:
            positions = call(ops.strided_slice, (start,), index=(axis,)) + np.arange(count, dtype=start.dtype.np)
            result = call(ops.gather, (result, positions), axis=axis + 1)
    return call(ops.squeeze, (result,), axis=(0,))


# ------------------------------------------------------------------------------------------------------ choosing an op
def where(
    condition: to.TensorInput, x: to.TensorInput | None = None, y: to.TensorInput | None = None, name: str | None = None
) -> Tensor:
    """`x` where the condition is true, else `y`; with the condition alone its true positions: int64 [n, rank].

    By hand: these are two ops.

    Example:
        tf.where([True, False], [1.0, 2.0], [10.0, 20.0])
    """
    try:
        if (x is None) != (y is None):
            raise ValueError("x and y must both be non-None or both be None.")
        if x is None:
            return call(ops.nonzero, (to.tensor(condition),))
        known = isinstance(condition, TensorLike | RaggedValue)
        truths = condition if known else convert_to_tensor(condition, dtypes.bool)
        return call(ops.where, (truths, x, y))
    except BaseException as error:
        report(error)
        raise


def boolean_mask(
    tensor: to.TensorInput, mask: to.TensorInput, axis: to.IntInput | None = None, name: str = "boolean_mask"
) -> Tensor:
    """The elements of `tensor` where `mask` is true. By hand: it takes several ops.

    Args:
        tensor: The tensor.
        mask: A bool tensor; its shape is equal to that of `tensor` from `axis` on.
        axis: The first axis that the mask covers; None: 0.
        name: Accepted, without effect.

    Raises:
        ValueError: The mask is a scalar, or its shape does not fit.

    Example:
        tf.boolean_mask([1.0, 2.0, 3.0], [True, False, True])
    """
    values, flags = convert_to_tensor(tensor), convert_to_tensor(mask)
    if flags.ndim == 0:
        raise ValueError("mask cannot be scalar.")
    return masked(values, flags, 0 if axis is None else to.whole(axis))


# ------------------------------------------------------------------------------------------------------------- shapes
def shape_n(input: Any, out_type: to.DTypeInput | None = None, name: str | None = None) -> list[Tensor]:
    """The shape of each of several tensors. By hand: like shape.

    Example:
        tf.shape_n([tf.constant([1.0]), tf.constant([[1.0, 2.0]])])
    """
    return [shape(entry, out_type) for entry in input]


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that tensors of two shapes broadcast to. By hand: no op.

    Raises:
        ValueError: They do not broadcast.

    Example:
        tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([1, 3]))
    """
    first, second = (TensorShape(entry) for entry in (shape_x, shape_y))
    if first.rank is None or second.rank is None:
        return TensorShape(None)
    return TensorShape(_broadcast(first.as_list(), second.as_list()))


def broadcast_dynamic_shape(shape_x: to.IntsInput, shape_y: to.IntsInput) -> Tensor:
    """The shape that tensors of two shapes broadcast to, as a tensor. By hand: the shapes are read.

    Raises:
        InvalidArgumentError: They do not broadcast.

    Example:
        tf.broadcast_dynamic_shape(tf.constant([2, 1]), tf.constant([1, 3]))
    """
    dtype = next((entry.dtype for entry in (shape_x, shape_y) if isinstance(entry, TensorLike)), dtypes.int32)
    try:
        return constant(_broadcast(list(to.ints(shape_x)), list(to.ints(shape_y))), dtype)
    except ValueError as error:
        raise InvalidArgumentError(f"{error} [Op:BroadcastArgs]") from None


def _broadcast(first: list[Any], second: list[Any]) -> list[Any]:
    longest = max(len(first), len(second))
    pairs = zip([1] * (longest - len(first)) + first, [1] * (longest - len(second)) + second, strict=True)
    lengths = []
    for a, b in pairs:
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise ValueError(f"Incompatible shapes for broadcasting: {tuple(first)} and {tuple(second)}")
        lengths.append((b if a == 1 else a) if a is not None else (b if b not in (None, 1) else None))
    return lengths


# ------------------------------------------------------------------------------------------------------------- others
def shape(input: to.TensorInput, out_type: to.DTypeInput | None = None, name: str | None = None) -> Tensor:
    """The shape as a tensor, int32 by default. By hand: it is known without an op.

    Example:
        tf.shape([[1.0, 2.0]])
    """
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return constant(np.array(_shape_of(input).as_list(), dtype.np))


def size(input: to.TensorInput, out_type: to.DTypeInput | None = None, name: str | None = None) -> Tensor:
    """The number of elements as a tensor, int32 by default. By hand: it is known without an op.

    Example:
        tf.size([[1.0, 2.0], [3.0, 4.0]])
    """
    dtype = dtypes.int32 if out_type is None else dtypes.as_dtype(out_type)
    return constant(np.array(_shape_of(input).num_elements(), dtype.np))


def rank(input: to.TensorInput, name: str | None = None) -> Tensor:
    """The number of axes as an int32 tensor. By hand: it is known without an op.

    Example:
        tf.rank([[1.0, 2.0]])
    """
    return constant(len(_shape_of(input)))


def _shape_of(value: Any) -> TensorShape:
    return value.shape if isinstance(value, SparseValue) else convert_to_tensor(value).shape


def identity(input: Any, name: str | None = None) -> Any:
    """A tensor with the same values. By hand: IndexedSlices stay IndexedSlices.

    Example:
        tf.identity([1.0, 2.0])
    """
    try:
        if isinstance(input, IndexedSlices):
            return IndexedSlices(identity(input.values), identity(input.indices), input.dense_shape)
        if isinstance(input, SparseValue):
            return input.of_parts(identity(input.values), input.indices, input.shape)
        return call(ops.identity, (to.value(input),))
    except BaseException as error:
        report(error)
        raise


def guarantee_const(input: Any, name: str | None = None) -> Any:
    """The same as `identity`, because nothing is computed ahead for constants here. By hand: like identity.

    Example:
        tf.guarantee_const([1.0, 2.0])
    """
    return identity(input)


def identity_n(input: Any, name: str | None = None) -> list[Any]:
    """Tensors with the same values as those of a list. By hand: like identity.

    Example:
        tf.identity_n([tf.constant(1.0), tf.constant([2.0, 3.0])])
    """
    return [identity(entry) for entry in input]
