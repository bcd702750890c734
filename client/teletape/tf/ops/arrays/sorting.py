"""TensorFlow's functions of order whose result is a tuple, or depends on how often an element is repeated.

By hand: strings are compared here, axes are moved, and a result's shape must not depend on the values of an attribute.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from teletape._generated.shapes.shape import reshape, transpose
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor
from teletape.tf.ops.arrays.places import entries_at
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.spec import KERNEL_NAMES, axis_in

_APPROXIMATED: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32)


class ApproxTopK(NamedTuple):
    """The result of approx_max_k and approx_min_k."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """The result of unique: x is y at idx."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The result of unique_with_counts."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name; a tuple has a method of that name


def approx_max_k(
    operand: to.TensorInput,
    k: to.IntInput,
    reduction_dimension: to.IntInput = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """The k largest elements along an axis and their indices, the largest first; exact, as TensorFlow's on a CPU.

    Args:
        operand: float16, bfloat16 or float32.
        k: The number of elements; at most the length of the axis.
        reduction_dimension: The axis.
        recall_target: Accepted, without effect: the share found is 1.
        reduction_input_size_override: Accepted, without effect.
        aggregate_to_topk: Accepted, without effect: there are k elements.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: Another dtype or axis, or k is larger than the axis, or negative.

    Example:
        tf.math.approx_max_k([1.0, 3.0, 2.0], k=2)
    """
    return _of_axis(operand, k, reduction_dimension, largest=True)


def approx_min_k(
    operand: to.TensorInput,
    k: to.IntInput,
    reduction_dimension: to.IntInput = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> ApproxTopK:
    """The k smallest elements along an axis and their indices, the smallest first; see `approx_max_k`.

    Example:
        tf.math.approx_min_k([1.0, 3.0, 2.0], k=2)
    """
    return _of_axis(operand, k, reduction_dimension, largest=False)


def _of_axis(operand: Any, k: Any, reduction_dimension: Any, *, largest: bool) -> ApproxTopK:
    tensor = convert_to_tensor(operand)
    if tensor.dtype not in _APPROXIMATED:
        raise InvalidArgumentError(
            f"Value for attr 'T' of {KERNEL_NAMES[tensor.dtype.np]} is not in the list of allowed values: half, "
            "bfloat16, float"
        )
    axis, last = axis_in(to.whole(reduction_dimension), tensor.ndim), tensor.ndim - 1
    order = [*range(axis), *range(axis + 1, tensor.ndim), axis]
    moved = transpose(tensor, order) if axis != last else tensor
    values, places = call(ops.top_k, (moved if largest else -moved,), k=to.whole(k))
    values = values if largest else -values
    if axis == last:
        return ApproxTopK(values, places)
    back = [order.index(number) for number in range(tensor.ndim)]
    return ApproxTopK(transpose(values, back), transpose(places, back))


def unique(x: to.TensorInput, out_idx: to.DTypeInput = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector, in the order of their first occurrence, and each element's index among them.

    Args:
        x: A vector, also of strings.
        out_idx: The dtype of the indices.
        name: Accepted, without effect.

    Example:
        tf.unique([3, 1, 3])
    """
    kinds = _kinds(x, out_idx)
    return Unique(kinds.y, kinds.idx)


def unique_with_counts(
    x: to.TensorInput, out_idx: to.DTypeInput = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """Like unique, with the count of each of the distinct elements, of the dtype `out_idx`.

    Example:
        tf.unique_with_counts([3, 1, 3])
    """
    return _kinds(x, out_idx)


def _kinds(x: Any, out_idx: Any) -> UniqueWithCounts:
    tensor = convert_to_tensor(x)
    if tensor.dtype is not dtypes.string:
        return UniqueWithCounts(*call(ops.unique, (tensor,), index_type=to.dtype(out_idx)))
    if tensor.ndim != 1:
        raise InvalidArgumentError("unique expects a 1D vector.")
    values = tensor.numpy().tolist()
    order = {value: place for place, value in enumerate(dict.fromkeys(values))}
    places = np.array([order[value] for value in values], to.dtype(out_idx))
    counts = np.bincount(places, minlength=len(order)).astype(places.dtype)
    return UniqueWithCounts(constant(np.array(list(order), object)), constant(places), constant(counts))


def repeat(
    input: to.TensorInput, repeats: to.IntsInput, axis: to.IntInput | None = None, name: str | None = None
) -> Tensor:
    """Repeats each entry along `axis`; its copies follow each other.

    Args:
        input: A tensor.
        repeats: The number of copies: one number, or one for each entry. Their values are read.
        axis: The axis; None: `input` is made a vector first.
        name: Accepted, without effect.

    Raises:
        ValueError: A negative number, another count of numbers than of entries, numbers with several axes, or an axis
            that does not exist.

    Example:
        tf.repeat([1.0, 2.0], repeats=[2, 1])
    """
    tensor = convert_to_tensor(input)
    if axis is None:
        tensor, axis = reshape(tensor, [-1]), 0
    if not tensor.ndim:
        tensor = reshape(tensor, [1])
    times, at, rank = to.ints(repeats, "repeats"), to.whole(axis), tensor.ndim
    if not -rank <= at < rank:
        raise ValueError(f"axis={at} out of bounds: expected {-rank}<=axis<{rank}")
    counts: Any = repeats
    if np.ndim(counts) > 1:
        raise ValueError(f"Shape {np.shape(counts)} must have rank at most 1")
    if len(times) == 1:
        return call(ops.repeat, (tensor,), times=times[0], axis=at)
    at %= rank
    length = tensor.shape.as_list()[at]
    if len(times) != length or min(times, default=0) < 0:
        raise ValueError(f"repeats must be one number, or {length} for axis {at}, none negative; found {list(times)}")
    places = constant(np.repeat(np.arange(length), times))
    return call(ops.gather, (tensor, places), axis=at) if at else entries_at(tensor, places)
