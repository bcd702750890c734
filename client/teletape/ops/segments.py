"""`tf.math.segment_*`: segments with ascending ids, whose number the last id tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape.ops.dispatch import call, constant, convert_to_tensor
from teletape.tensors.tensor import EagerTensor
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.errors import InvalidArgumentError

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_sum"]


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The sums of the rows of `data` that share an id.

    Args:
        data: [n, *rest].
        segment_ids: [n] int32 or int64, ascending; they are read.
        name: Accepted, without effect.

    Returns:
        [last id + 1, *rest]; zeros for an id that no row has.

    Raises:
        InvalidArgumentError: The ids are not ascending, negative, or not as many as the rows.
    """
    return _segments("unsorted_segment_sum", data, segment_ids)


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The means of the rows that share an id; else as segment_sum."""
    return _segments("unsorted_segment_mean", data, segment_ids)


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The largest elements of the rows that share an id; equal ones share the gradient; else as segment_sum."""
    return _segments("unsorted_segment_max", data, segment_ids)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> EagerTensor:
    """The smallest elements of the rows that share an id; equal ones share the gradient; else as segment_sum."""
    return _segments("unsorted_segment_min", data, segment_ids)


def _segments(op: str, data: Any, segment_ids: Any) -> EagerTensor:
    rows, given = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if rows.ndim == 0:
        raise InvalidArgumentError("input must be at least rank 1")
    if given.ndim != 1:
        raise InvalidArgumentError("segment_ids should be a vector.")
    if not given.dtype.is_integer:
        raise InvalidArgumentError(
            f"Value for attr 'Tindices' of {given.dtype.name} is not in the list of allowed values: int32, int64"
        )
    if given.shape[0] != rows.shape[0]:
        raise InvalidArgumentError("segment_ids should be the same size as dimension 0 of input.")
    ids = given.numpy()
    count = int(ids[-1]) + 1 if len(ids) else 0
    if (np.diff(ids) < 0).any():
        raise InvalidArgumentError("segment ids are not increasing")
    if len(ids) and ids[0] < 0:
        raise InvalidArgumentError(
            f"Segment id {ids[0]} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
        )
    found = call(CATALOGUE[op], (rows, given), num_segments=count)
    missing = np.ones(count, bool)
    missing[ids] = False
    if op in ("unsorted_segment_sum", "unsorted_segment_mean") or not missing.any():
        return found
    column = constant(missing.reshape((count, *(1,) * (rows.ndim - 1))))
    return call(CATALOGUE["where"], (column, call(CATALOGUE["zeros_like"], (found,)), found))
