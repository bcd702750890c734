"""TensorFlow's functions of teletape_engine.ops.shapes.index.

Written by `make reference` from the catalogue: change the ops' records there, not this file.
"""

from __future__ import annotations

from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.program.tracebacks import report
from teletape.core.tensors.tensor import Tensor
from teletape_engine.catalogue.namespace import ops

_GATHER = ops.gather
_UNSORTED_SEGMENT_SUM = ops.unsorted_segment_sum


def gather(
    params: to.TensorInput,
    indices: to.TensorInput,
    validate_indices: Any = None,
    axis: to.IntInput | None = None,
    batch_dims: to.IntInput = 0,
    name: str | None = None,
) -> Tensor:
    """The entries of `params` along `axis` at `indices`: [*params[:axis], *indices[batch_dims:], *params[axis + 1:]].

    The first `batch_dims` axes of both are the same. With axis 0 the gradient of params is sparse, as in TensorFlow.

    Raises:
        InvalidArgumentError: `indices[0] = 5 is not in [0, 3)`; an index counts from the front only.
    """
    try:
        indices = to.tensor(indices)
        return call(_GATHER, (params, indices), axis=to.axis(axis, batch_dims), batch_dims=to.whole(batch_dims))
    except BaseException as error:
        report(error)
        raise


def unsorted_segment_sum(
    data: to.TensorInput,
    segment_ids: to.TensorInput,
    num_segments: to.IntInput,
    axis: to.IntInput = 0,
    batch_dims: to.IntInput = 0,
    name: str | None = None,
) -> Tensor:
    """Sums the entries of `data` that share an id: the transpose of gather. It makes sparse gradients dense.

    data: [*lead, *segment_ids.shape, *rest] with the ids' axes from `axis` on (0 in TensorFlow); the result has
    [num_segments] in their place. A negative id is left out. `axis` is counted from the front.

    Raises:
        InvalidArgumentError: An id of num_segments or more.
    """
    try:
        return call(
            _UNSORTED_SEGMENT_SUM,
            (data, segment_ids),
            num_segments=to.whole(num_segments),
            axis=to.whole(axis),
            batch_dims=to.whole(batch_dims),
        )
    except BaseException as error:
        report(error)
        raise
