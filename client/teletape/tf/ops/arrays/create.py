"""TensorFlow's functions that make tensors from shapes and numbers, and that are more than one call of an op."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape._generated.shapes.cast import cast
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.dtypes import DType
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError

__all__ = ["fill", "linspace", "meshgrid", "one_hot", "ones", "ones_like", "range", "zeros", "zeros_like"]


# ------------------------------------------------------------------------------------------------- zeros and ones
# By hand: strings are filled here, since no op takes them, and a fill with another dtype is another op.
def zeros(
    shape: to.IntsInput, dtype: to.DTypeInput = dtypes.float32, name: str | None = None, layout: Any = None
) -> Tensor:
    """A tensor of zeros.

    Example:
        tf.zeros([2, 2])
    """
    return _full(shape, 0, dtype)


def ones(
    shape: to.IntsInput, dtype: to.DTypeInput = dtypes.float32, name: str | None = None, layout: Any = None
) -> Tensor:
    """A tensor of ones.

    Example:
        tf.ones([2, 2])
    """
    return _full(shape, 1, dtype)


def zeros_like(
    input: to.TensorInput, dtype: to.DTypeInput | None = None, name: str | None = None, layout: Any = None
) -> Tensor:
    """Zeros with the shape of `input`, and with its dtype unless another is given.

    Example:
        tf.zeros_like([1, 2, 3])
    """
    return _like("zeros_like", 0, input, dtype)


def ones_like(
    input: to.TensorInput, dtype: to.DTypeInput | None = None, name: str | None = None, layout: Any = None
) -> Tensor:
    """Ones with the shape of `input`, and with its dtype unless another is given.

    Example:
        tf.ones_like([1, 2, 3])
    """
    return _like("ones_like", 1, input, dtype)


def fill(dims: to.IntsInput, value: to.TensorInput, name: str | None = None, layout: Any = None) -> Tensor:
    """A tensor of the shape `dims` with `value`, a scalar, everywhere.

    Raises:
        InvalidArgumentError: The value is no scalar, or a length is negative.

    Example:
        tf.fill([2, 3], 9)
    """
    return call(ops.fill, (to.scalar(value),), shape=to.lengths(dims, "Fill"))


def _full(shape: Any, number: int, dtype: Any) -> Tensor:
    wanted = dtypes.as_dtype(dtype)
    dims = to.lengths(shape, "Fill")
    if wanted is dtypes.string:
        if number:
            raise TypeError(f"Cannot convert {number} to EagerTensor of dtype string")
        return constant(np.full(dims, b"", object))
    return call(ops.fill, (number,), shape=dims, dtype=wanted.np)


def _like(op: str, number: int, input: Any, dtype: Any) -> Tensor:
    tensor = convert_to_tensor(input)
    if dtype is None and tensor.dtype is not dtypes.string:
        return call(CATALOGUE[op], (tensor,))
    return _full(tensor.shape, number, tensor.dtype if dtype is None else dtype)


# ------------------------------------------------------------------------------------------------------------- ranges
def range(
    start: to.NumberInput,
    limit: to.NumberInput | None = None,
    delta: to.NumberInput = 1,
    dtype: to.DTypeInput | None = None,
    name: str | None = "range",
) -> Tensor:
    """start, start + delta, … below `limit`; `range(n)` counts from 0. By hand: computed here, from known numbers.

    Raises:
        InvalidArgumentError: A delta of 0, or one that leads away from the limit.

    Example:
        tf.range(1.0, 3.0, 0.5)
    """
    if limit is None:
        start, limit = 0, start
    parts = [convert_to_tensor(part).numpy() for part in (start, limit, delta)]
    if dtype is None:
        order = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        own = [dtypes.as_dtype(np.asarray(part).dtype) for part in parts]
        wanted: DType = max(own, key=lambda entry: order.index(entry) if entry in order else 0)
    else:
        wanted = dtypes.as_dtype(dtype)
    first, last, step = (part.item() for part in parts)
    if step == 0:
        raise InvalidArgumentError("Requires delta != 0: 0 [Op:Range]")
    if (last - first) * step < 0:
        sign = ("<=", ">") if step > 0 else (">=", "<")
        raise InvalidArgumentError(f"Requires start {sign[0]} limit when delta {sign[1]} 0: {first}/{last} [Op:Range]")
    if wanted.is_floating:  # counted in the dtype of the result, as TensorFlow does
        with np.errstate(all="ignore"):
            count = float((wanted.np.type(last) - wanted.np.type(first)) / wanted.np.type(step))
    else:
        count = (last - first) / step
    return constant((first + step * np.arange(max(0, math.ceil(count)))).astype(wanted.np))


def linspace(
    start: to.TensorInput, stop: to.TensorInput, num: to.IntInput, name: str | None = None, axis: to.IntInput = 0
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, both included, along a new axis.

    Integers of 8 and 16 bits give float32, others float64. By hand: `stop` takes the dtype of `start`, and integers
    become floats after that; the shapes are broadcast.

    Example:
        tf.linspace(0.0, 1.0, 5)
    """
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, None if isinstance(stop, TensorLike) else first.dtype)
    if first.dtype.is_integer:
        wanted = dtypes.float32 if first.dtype.size <= 2 else dtypes.float64
        first, last = cast(first, wanted), cast(last, wanted)
    lengths = [part.shape.as_list() for part in (first, last)]
    if lengths[0] != lengths[1]:
        shape = np.broadcast_shapes(*lengths)
        first, last = (call(ops.broadcast_to, (part,), shape=shape) for part in (first, last))
    return call(ops.linspace, (first, last), num=to.whole(num), axis=to.whole(axis))


def meshgrid(*args: to.TensorInput, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """The coordinates of the grid that vectors span, each with one axis per vector. By hand: two ops for each.

    Args:
        *args: Vectors or scalars.
        indexing: "xy": the first two axes swapped, as plots have them; "ij": in the order of the arguments.
        name: Accepted, without effect.

    Raises:
        ValueError: Another `indexing`.

    Example:
        tf.meshgrid(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    tensors = [convert_to_tensor(vector) for vector in args]
    sizes = [tensor.shape.num_elements() or 0 for tensor in tensors]
    order = [i for i, _ in enumerate(sizes)]
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    whole = tuple(sizes[i] for i in order)
    grids = []
    for i, tensor in enumerate(tensors):
        column = call(ops.reshape, (tensor,), shape=tuple(sizes[i] if axis == i else 1 for axis in order))
        grids.append(call(ops.broadcast_to, (column,), shape=whole))
    return grids


def one_hot(
    indices: to.TensorInput,
    depth: to.IntInput,
    on_value: to.TensorInput | None = None,
    off_value: to.TensorInput | None = None,
    axis: to.IntInput | None = None,
    dtype: to.DTypeInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Puts `on_value` at each index along a new axis, `off_value` elsewhere; an index out of range has no `on_value`.

    By hand: the dtypes of `on_value` and `off_value` decide the result's.

    Raises:
        InvalidArgumentError: A negative depth.
        TypeError: A value of another dtype than `dtype`.

    Example:
        tf.one_hot([0, 2], depth=3)
    """
    length = to.ints(depth, "depth")[0]
    if length < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {length} [Op:OneHot]")
    if dtype is not None:  # arrays and numbers take this dtype; a tensor must have it
        on_value, off_value = (
            value if value is None or isinstance(value, TensorLike) else constant(value, dtype)
            for value in (on_value, off_value)
        )
    own = [convert_to_tensor(value).dtype for value in (on_value, off_value) if value is not None]
    wanted = dtypes.as_dtype(dtype) if dtype is not None else own[0] if own else dtypes.float32
    if any(entry is not wanted for entry in own) and dtype is not None:
        raise TypeError(f"dtype {own[0].name} of on_value does not match dtype parameter {wanted.name}")
    at = -1 if axis is None else to.whole(axis)
    if on_value is None and off_value is None:
        return call(ops.one_hot, (to.whole_tensor(indices),), depth=length, axis=at, dtype=wanted.np)
    hot = call(ops.one_hot, (to.whole_tensor(indices),), depth=length, axis=at, dtype=dtypes.bool.np)
    on = constant(1, wanted) if on_value is None else on_value
    off = constant(0, wanted) if off_value is None else off_value
    chosen = call(ops.where, (hot, on, off))
    return chosen if wanted is dtypes.string else call(ops.stop_gradient, (chosen,))  # no gradient, as in TensorFlow


# ---------------------------------------------------------------------------------------------------- of TensorFlow 1
def placeholder_with_default(input: to.TensorInput, shape: Any, name: str | None = None) -> Tensor:
    """Returns the default as a tensor, because nothing feeds a graph. `shape` is not compared, as in eager TensorFlow.

    By hand: two arguments are without effect.

    Example:
        tf.compat.v1.placeholder_with_default([1.0, 2.0], shape=[None])
    """
    return convert_to_tensor(input)
