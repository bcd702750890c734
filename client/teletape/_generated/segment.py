"""TensorFlow's functions of teletape_engine.ops.segment.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_UNSORTED_SEGMENT_MAX = ops.unsorted_segment_max
_UNSORTED_SEGMENT_MIN = ops.unsorted_segment_min
_UNSORTED_SEGMENT_PROD = ops.unsorted_segment_prod
_UNSORTED_SEGMENT_MEAN = ops.unsorted_segment_mean
_UNSORTED_SEGMENT_SQRT_N = ops.unsorted_segment_sqrt_n


def unsorted_segment_max(
    data: to.TensorInput, segment_ids: to.TensorInput, num_segments: to.IntInput, name: str | None = None
) -> Tensor:
    """The largest of the entries that share an id; the dtype's lowest number for an id without entries.

    data: [*segment_ids.shape, *rest]; the result: [num_segments, *rest]. A negative id is left out. Equal entries share
    the gradient.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    try:
        return call(_UNSORTED_SEGMENT_MAX, (data, segment_ids), num_segments=to.whole(num_segments))
    except BaseException as error:
        report(error)
        raise


def unsorted_segment_min(
    data: to.TensorInput, segment_ids: to.TensorInput, num_segments: to.IntInput, name: str | None = None
) -> Tensor:
    """The smallest of the entries that share an id; the dtype's highest number for an id without entries.

    Otherwise as unsorted_segment_max.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    try:
        return call(_UNSORTED_SEGMENT_MIN, (data, segment_ids), num_segments=to.whole(num_segments))
    except BaseException as error:
        report(error)
        raise


def unsorted_segment_prod(
    data: to.TensorInput, segment_ids: to.TensorInput, num_segments: to.IntInput, name: str | None = None
) -> Tensor:
    """The product of the entries that share an id; 1 for an id without entries. Otherwise as unsorted_segment_max.

    The gradient is right where an entry is 0; the second one is not, as in TensorFlow.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    try:
        return call(_UNSORTED_SEGMENT_PROD, (data, segment_ids), num_segments=to.whole(num_segments))
    except BaseException as error:
        report(error)
        raise


def unsorted_segment_mean(
    data: to.TensorInput, segment_ids: to.TensorInput, num_segments: to.IntInput, name: str | None = None
) -> Tensor:
    """The mean of the entries that share an id; 0 for an id without entries."""
    try:
        return call(_UNSORTED_SEGMENT_MEAN, (data, segment_ids), num_segments=to.whole(num_segments))
    except BaseException as error:
        report(error)
        raise


def unsorted_segment_sqrt_n(
    data: to.TensorInput, segment_ids: to.TensorInput, num_segments: to.IntInput, name: str | None = None
) -> Tensor:
    """The sum of the entries that share an id, over the root of their number; 0 for an id without entries."""
    try:
        return call(_UNSORTED_SEGMENT_SQRT_N, (data, segment_ids), num_segments=to.whole(num_segments))
    except BaseException as error:
        report(error)
        raise
