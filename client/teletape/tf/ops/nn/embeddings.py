"""`tf.nn.embedding_lookup`: rows of an embedding, which may consist of parts.

By hand: parts are joined, and rows with a larger norm are scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call
from teletape.core.tensors.composite import RaggedValue
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.tf.ops.linalg.clip import clip_by_norm
from teletape_engine.catalogue.namespace import ops

__all__ = ["embedding_lookup"]


def embedding_lookup(
    params: to.TensorInput | Sequence[to.TensorInput],
    ids: to.TensorInput,
    max_norm: to.NumberInput | None = None,
    name: str | None = None,
) -> Tensor:
    """Rows of `params` at `ids`: [*ids.shape, *embedding].

    The gradient of a variable is IndexedSlices; of one in several parts it is dense.

    Args:
        params: The embeddings [n, *embedding], or a list of parts of them: as equal as possible, the longer ones first.
        ids: Integers in [0, n); a ragged tensor of them gives rows of rows.
        max_norm: Rows with a larger norm are scaled to it; None: none are.
        name: Accepted, without effect.

    Raises:
        ValueError: No params, or parts of other lengths.
        InvalidArgumentError: An id outside [0, n).

    Example:
        tf.nn.embedding_lookup(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [1, 0])
    """
    places = to.tensor(ids)
    if isinstance(places, RaggedValue):
        ragged: Tensor = places.with_flat_values(embedding_lookup(params, places.flat_values, max_norm))
        return ragged  # as if it were a tensor
    rows = call(ops.gather, (joined(params), places))
    if max_norm is None:
        return rows
    clipped: Tensor = clip_by_norm(rows, max_norm, axes=list(range(places.ndim, rows.ndim)))
    return clipped


def joined(params: Any) -> TensorLike:
    """A tensor or variable unchanged, also that of a list of one; several parts joined into one tensor.

    Raises:
        ValueError: No params, or parts of other lengths than `embedding_lookup` takes.
    """
    if params is None:
        raise ValueError("params must be specified")
    if not isinstance(params, list):
        return to.value(params)
    if not params:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    parts = [to.value(part) for part in params]
    if len(parts) == 1:
        return parts[0]
    lengths = [part.shape.as_list()[0] if part.shape.rank else 0 for part in parts]
    length, longer = divmod(sum(lengths), len(lengths))
    expected = [length + 1] * longer + [length] * (len(lengths) - longer)
    if lengths != expected:
        raise ValueError(f"params: parts of the lengths {expected} are needed, found {lengths}")
    return call(ops.concat, parts, axis=0)
