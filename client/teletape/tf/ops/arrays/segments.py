"""`tf.math.segment_*`: segments with ascending ids; the last id says how many segments there are.

By hand: the ids are read first, and segments without a row are filled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError


def segment_sum(data: to.TensorInput, segment_ids: to.TensorInput, name: str | None = None) -> Tensor:
    """The sums of the rows of `data` that share an id.

    Args:
        data: [n, *rest].
        segment_ids: [n] int32 or int64, ascending; their values are read.
        name: Accepted, without effect.

    Returns:
        [last id + 1, *rest]; zeros for an id that no row has.

    Raises:
        InvalidArgumentError: The ids are not ascending, negative, or not one for each row.

    Example:
        tf.math.segment_sum([1.0, 5.0, 2.0], [0, 0, 1])
    """
    return _segments("unsorted_segment_sum", data, segment_ids)


def segment_mean(data: to.TensorInput, segment_ids: to.TensorInput, name: str | None = None) -> Tensor:
    """The means of the rows that share an id, of integers without their fraction; arguments as segment_sum.

    Example:
        tf.math.segment_mean([1.0, 5.0, 2.0], [0, 0, 1])
    """
    rows = convert_to_tensor(data)
    if not rows.dtype.is_integer:
        return _segments("unsorted_segment_mean", rows, segment_ids)
    total = _segments("unsorted_segment_sum", rows, segment_ids)
    labels = convert_to_tensor(segment_ids)
    counts = np.maximum(np.bincount(labels.numpy(), minlength=total.shape.as_list()[0]), 1)
    column = counts.reshape((-1, *(1,) * (rows.ndim - 1))).astype(rows.dtype.np)
    return call(ops.truncatediv, (total, constant(column)))


def segment_prod(data: to.TensorInput, segment_ids: to.TensorInput, name: str | None = None) -> Tensor:
    """The products of the rows that share an id, ones for an id that no row has; arguments as segment_sum.

    Example:
        tf.math.segment_prod([1.0, 5.0, 2.0], [0, 0, 1])
    """
    return _segments("unsorted_segment_prod", data, segment_ids)


def segment_max(data: to.TensorInput, segment_ids: to.TensorInput, name: str | None = None) -> Tensor:
    """The largest elements of the rows that share an id; equal ones share the gradient. Arguments as segment_sum.

    Example:
        tf.math.segment_max([1.0, 5.0, 2.0], [0, 0, 1])
    """
    return _segments("unsorted_segment_max", data, segment_ids)


def segment_min(data: to.TensorInput, segment_ids: to.TensorInput, name: str | None = None) -> Tensor:
    """The smallest elements of the rows that share an id; equal ones share the gradient. Arguments as segment_sum.

    Example:
        tf.math.segment_min([1.0, 5.0, 2.0], [0, 0, 1])
    """
    return _segments("unsorted_segment_min", data, segment_ids)


def _segments(op: str, data: Any, segment_ids: Any) -> Tensor:
    rows, labels = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if rows.ndim == 0:
        raise InvalidArgumentError("input must be at least rank 1")
    if labels.ndim != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if not labels.dtype.is_integer:
        raise InvalidArgumentError(
            f"Value for attr 'Tindices' of {labels.dtype.name} is not in the list of allowed values: int32, int64"
        )
    if labels.shape[0] != rows.shape[0]:
        raise InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.")
    ids = labels.numpy()
    count = int(ids[-1]) + 1 if len(ids) else 0
    if (np.diff(ids) < 0).any():
        raise InvalidArgumentError("segment ids are not increasing")
    if len(ids) and ids[0] < 0:
        raise InvalidArgumentError(
            f"Segment id {ids[0]} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
        )
    result = call(CATALOGUE[op], (rows, labels), num_segments=count)
    missing = np.ones(count, bool)
    missing[ids] = False
    if op not in ("unsorted_segment_max", "unsorted_segment_min") or not missing.any():
        return result
    column = constant(missing.reshape((count, *(1,) * (rows.ndim - 1))))
    return call(ops.where, (column, call(ops.zeros_like, (result,)), result))
