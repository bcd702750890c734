"""TensorFlow's functions that make tensors from shapes and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from teletape.ops.arguments import axis_of, ints, lengths
from teletape.ops.cast import cast
from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.tensors import dtypes
from teletape.tensors.dtypes import DType
from teletape.tensors.tensor import EagerTensor, TensorLike
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError

__all__ = ["eye", "fill", "linspace", "meshgrid", "one_hot", "ones", "ones_like", "range", "zeros", "zeros_like"]


def fill(dims: Any, value: Any, name: str | None = None) -> EagerTensor:
    """A tensor of shape `dims`, every element `value` (a scalar)."""
    return call(CATALOGUE["fill"], (as_scalar(convert_to_tensor(value)),), shape=lengths(dims, "Fill"))


def as_scalar(tensor: EagerTensor) -> EagerTensor:
    """A tensor of one element as rank 0; InvalidArgumentError for more."""
    if tensor.shape.rank == 0:
        return tensor
    if tensor.shape.num_elements() != 1:
        raise InvalidArgumentError(f"value must be a scalar, found shape {tensor.shape}")
    return call(CATALOGUE["reshape"], (tensor,), shape=())


def _full(shape: Any, number: int, dtype: Any) -> EagerTensor:
    wanted = dtypes.as_dtype(dtype)
    dims = lengths(shape, "Fill")
    if wanted is dtypes.string:
        return constant(np.full(dims, b"", object))
    return call(CATALOGUE["fill"], (number,), shape=dims, dtype=wanted.np)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """A tensor of zeros."""
    return _full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None, layout: Any = None) -> EagerTensor:
    """A tensor of ones."""
    return _full(shape, 1, dtype)


def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Zeros of the shape of `input`, and of its dtype unless another is given."""
    return _like("zeros_like", 0, input, dtype)


def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> EagerTensor:
    """Ones of the shape of `input`, and of its dtype unless another is given."""
    return _like("ones_like", 1, input, dtype)


def _like(op: str, number: int, input: Any, dtype: Any) -> EagerTensor:
    tensor = convert_to_tensor(input)
    if dtype is None and tensor.dtype is not dtypes.string:
        return call(CATALOGUE[op], (tensor,))
    return _full(tensor.shape, number, tensor.dtype if dtype is None else dtype)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> EagerTensor:
    """An identity matrix [*batch_shape, rows, columns]."""
    return call(
        CATALOGUE["eye"],
        (),
        num_rows=axis_of(num_rows),
        num_columns=None if num_columns is None else axis_of(num_columns),
        batch_shape=() if batch_shape is None else lengths(batch_shape, "Fill"),
        dtype=dtypes.as_dtype(dtype).np,
    )


def range(  # TensorFlow's name
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> EagerTensor:
    """start, start + delta, … below `limit`; `range(n)` counts from 0."""
    if limit is None:
        start, limit = 0, start
    parts = [convert_to_tensor(one).numpy() for one in (start, limit, delta)]
    if dtype is None:
        order = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        found = [dtypes.as_dtype(np.asarray(one).dtype) for one in parts]
        wanted: DType = max(found, key=lambda one: order.index(one) if one in order else 0)
    else:
        wanted = dtypes.as_dtype(dtype)
    first, last, step = (one.item() for one in parts)
    if step == 0:
        raise InvalidArgumentError("Requires delta != 0: 0 [Op:Range]")
    if (last - first) * step < 0:
        sign = ("<=", ">") if step > 0 else (">=", "<")
        raise InvalidArgumentError(f"Requires start {sign[0]} limit when delta {sign[1]} 0: {first}/{last} [Op:Range]")
    count = max(0, math.ceil((last - first) / step))
    return constant((first + step * np.arange(count)).astype(wanted.np))


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: Any = 0) -> EagerTensor:
    """`num` evenly spaced values from `start` to `stop`, both included, along a new axis; integers give float64."""
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, None if isinstance(stop, TensorLike) else first.dtype)
    if first.dtype.is_integer:
        first, last = cast(first, dtypes.float64), cast(last, dtypes.float64)
    return call(CATALOGUE["linspace"], (first, last), num=axis_of(num), axis=axis_of(axis))


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> EagerTensor:
    """`on_value` where the new axis's position is the index, `off_value` elsewhere, also for indices outside."""
    number = ints(depth, "depth")[0]
    if number < 0:
        raise InvalidArgumentError(f"depth must be non-negative, got: {number} [Op:OneHot]")
    given = [convert_to_tensor(one).dtype for one in (on_value, off_value) if one is not None]
    wanted = dtypes.as_dtype(dtype) if dtype is not None else given[0] if given else dtypes.float32
    if any(one is not wanted for one in given) and dtype is not None:
        raise TypeError(f"dtype {given[0].name} of on_value does not match dtype parameter {wanted.name}")
    at = -1 if axis is None else axis_of(axis)
    made = call(CATALOGUE["one_hot"], (convert_to_tensor(indices),), depth=number, axis=at, dtype=wanted.np)
    if on_value is None and off_value is None:
        return made
    on = constant(1, wanted) if on_value is None else on_value
    off = constant(0, wanted) if off_value is None else off_value
    return call(CATALOGUE["where"], (made if wanted.is_bool else cast(made, dtypes.bool), on, off))


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[EagerTensor]:
    """The coordinates of the grid that vectors span, each with one axis a vector.

    Args:
        *args: Vectors or scalars.
        indexing: "xy": the first two axes swapped, as plots have them; "ij": in the order of the arguments.
        name: Accepted, without effect.

    Raises:
        ValueError: Another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    tensors = [convert_to_tensor(one) for one in args]
    sizes = [one.shape.num_elements() or 0 for one in tensors]
    place = [*([1, 0] if indexing == "xy" and len(sizes) > 1 else []), *([0, 1][: len(sizes)])][:2]
    order = [*place, *(i for i, _ in enumerate(sizes) if i > 1)]
    whole = tuple(sizes[i] for i in order)
    made = []
    for i, tensor in enumerate(tensors):
        column = tuple(sizes[i] if one == i else 1 for one in order)
        flat = call(CATALOGUE["reshape"], (tensor,), shape=column)
        made.append(call(CATALOGUE["broadcast_to"], (flat,), shape=whole))
    return made
