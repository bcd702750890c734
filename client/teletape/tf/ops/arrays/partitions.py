"""`tf.dynamic_partition`, `tf.dynamic_stitch` and `tf.strided_slice`: elements arranged by the values of indices.

By hand: the indices are read, since the shapes of the results depend on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape._generated.shapes.shape import expand_dims, reshape, squeeze
from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.tf.ops.arrays.paddings import pad
from teletape.tf.ops.arrays.rearrange import concat, split
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError


def dynamic_partition(
    data: to.TensorInput, partitions: to.TensorInput, num_partitions: to.IntInput, name: str | None = None
) -> list[Tensor]:
    """The rows of `data` as one tensor for each of the partitions, in their order.

    Args:
        data: [*partitions.shape, *rest].
        partitions: int32, the number of the partition of each row; its values are read.
        num_partitions: The number of partitions.
        name: Accepted, without effect.

    Raises:
        InvalidArgumentError: A partition that does not exist, or shapes that do not fit.

    Example:
        tf.dynamic_partition([1.0, 2.0, 3.0], [0, 1, 0], num_partitions=2)
    """
    rows, labels, count = convert_to_tensor(data), to.whole_tensor(partitions), to.whole(num_partitions)
    if count < 1:
        raise InvalidArgumentError(f"num_partitions must be at least 1, found {count}")
    shape, outer = rows.shape.as_list(), labels.shape.as_list()
    if shape[: len(outer)] != outer:
        raise InvalidArgumentError(
            f"data.shape must start with partitions.shape, got data.shape = {rows.shape}, "
            f"partitions.shape = {labels.shape}"
        )
    numbers = np.asarray(labels.numpy())
    outside = np.argwhere((numbers < 0) | (numbers >= count))
    if len(outside):
        place = tuple(outside[0].tolist())
        where = f"[{','.join(map(str, place))}]" if place else ""
        raise InvalidArgumentError(f"partitions{where} = {numbers[place]} is not in [0, {count})")
    flat = numbers.reshape(-1)
    order = np.argsort(flat, kind="stable")
    ordered = _rows_at(reshape(rows, [flat.size, *shape[len(outer) :]]), order)
    return split(ordered, np.bincount(flat, minlength=count).tolist())


def _rows_at(rows: Tensor, places: Any) -> Tensor:
    """Rows along the first axis. The op gets one more axis, because otherwise the gradient would be IndexedSlices."""
    return squeeze(call(ops.gather, (expand_dims(rows, 0), constant(places)), axis=1), 0)


def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Merges the rows of several tensors into one: row j of `data[i]` becomes row `indices[i][j]`.

    Args:
        indices: A list of int32 tensors; their values are read. If an index occurs several times, the last row is
            taken, and the others have no gradient. (In TensorFlow they have one.)
        data: As many tensors [*indices[i].shape, *rest].
        name: Accepted, without effect.

    Returns:
        [largest index + 1, *rest]; zeros for a row without an index.

    Raises:
        InvalidArgumentError: A negative index, or shapes that do not fit.

    Example:
        tf.dynamic_stitch([[0, 2], [1]], [tf.constant([1.0, 3.0]), tf.constant([2.0])])
    """
    places = [np.asarray(_array(entry)) for entry in indices]
    parts = [convert_to_tensor(entry) for entry in data]
    if not parts or len(places) != len(parts):
        raise InvalidArgumentError(f"{len(places)} indices and {len(parts)} data: there must be as many, at least one")
    rest = parts[0].shape.as_list()[places[0].ndim :]
    for i, (place, part) in enumerate(zip(places, parts, strict=True)):
        if part.shape.as_list() != [*place.shape, *rest]:
            raise InvalidArgumentError(
                f"data[{i}].shape = {part.shape} does not start with indices[{i}].shape = {list(place.shape)} and end "
                f"with {rest}"
            )
    flat = np.concatenate([place.reshape(-1) for place in places]).astype(np.int64)
    if (flat < 0).any():
        i = next(i for i, place in enumerate(places) if (place < 0).any())
        raise InvalidArgumentError(f"indices[{i}] is out of range")
    rows = concat([reshape(part, [place.size, *rest]) for place, part in zip(places, parts, strict=True)], 0)
    count = int(flat.max()) + 1 if flat.size else 0
    sources = np.full(count, flat.size)
    sources[flat] = np.arange(flat.size)
    if flat.size in sources:  # rows without an index
        rows = pad(rows, ((0, 1), *((0, 0),) * len(rest)))
    return _rows_at(rows, sources)


def _array(x: Any) -> Any:
    """The values of a tensor, or of a value that becomes one."""
    return (x if isinstance(x, TensorLike) else convert_to_tensor(x)).numpy()


def strided_slice(
    input_: to.TensorInput,
    begin: to.IntsInput,
    end: to.IntsInput,
    strides: to.IntsInput | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """The part of a tensor that an index names: `input_[begin[0]:end[0]:strides[0], …]`.

    Args:
        input_: The tensor.
        begin: The begin of each part of the index.
        end: The end of each part.
        strides: The step of each part; None: 1.
        begin_mask: A bit for each part that begins at the beginning of its axis.
        end_mask: A bit for each part that ends at the end of its axis.
        ellipsis_mask: The bit of the part that stands for all axes without a part of their own.
        new_axis_mask: A bit for each part that is a new axis of length 1.
        shrink_axis_mask: A bit for each part that is one position, without an axis in the result.
        var: None.
        name: Accepted, without effect.

    Raises:
        ValueError: Several ellipses.
        InvalidArgumentError: Lists of different lengths, a position out of range, or a step of 0.

    Example:
        tf.strided_slice([1.0, 2.0, 3.0, 4.0], [0], [4], [2])
    """
    to.not_offered(var, "strided_slice", "var")
    starts, stops = to.ints(begin, "begin"), to.ints(end, "end")
    steps = (1,) * len(starts) if strides is None else to.ints(strides, "strides")
    if not len(starts) == len(stops) == len(steps):
        raise InvalidArgumentError("Expected begin, end, and strides to be 1D equal size tensors")
    if ellipsis_mask & (ellipsis_mask - 1):
        raise ValueError("Multiple ellipses not allowed")
    index: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append("...")
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(start)
        else:
            index.append((None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return call(ops.strided_slice, (convert_to_tensor(input_),), index=tuple(index))
