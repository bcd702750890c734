"""`tf.edit_distance`: the edit distance of the sequences in the rows of sparse tensors."""

from __future__ import annotations

import numpy as np

from teletape.core.calls.dispatch import constant
from teletape.core.tensors.tensor import Tensor
from teletape.extras.sparse_tensors.tensor import SparseTensor
from teletape_engine.errors import InvalidArgumentError


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The Levenshtein distance of each sequence of `hypothesis` from that of `truth`. Their values are read.

    By hand: its arguments are sparse, and sequences have a length each.

    Args:
        hypothesis: [..., length]: the values of a row, in the order of their indices, are a sequence.
        truth: Sequences likewise, of the same dtype and rank.
        normalize: Whether distances are divided by the length of the sequence of `truth`.
        name: Accepted, without effect.

    Returns:
        float32 [...]; the larger of both lengths of each axis. Normalised, the distance from an empty sequence is
        infinite, and that of two empty ones 0.

    Raises:
        TypeError: Not two sparse tensors.
        InvalidArgumentError: Other dtypes or ranks.

    Example:
        tf.edit_distance(tf.sparse.from_dense([["a", "b"]]), tf.sparse.from_dense([["a", "c"]]))
    """
    for value, argument in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(value, SparseTensor):
            raise TypeError(f"{argument} must be a SparseTensor.")
    if hypothesis.dtype is not truth.dtype:
        raise InvalidArgumentError(
            f"cannot compute EditDistance as the values are of {hypothesis.dtype.name} and {truth.dtype.name}"
        )
    shapes = hypothesis.shape.as_list(), truth.shape.as_list()
    if len(shapes[0]) != len(shapes[1]):
        raise InvalidArgumentError(f"hypothesis and truth must have one rank, found shapes {shapes[0]} and {shapes[1]}")
    if not shapes[0]:
        raise InvalidArgumentError("hypothesis and truth must have an axis of sequences")
    distances = np.zeros(np.maximum(*shapes)[:-1].tolist(), np.float32)
    sequences, references = _sequences(hypothesis), _sequences(truth)
    for row in sequences.keys() | references.keys():
        sequence, reference = sequences.get(row, []), references.get(row, [])
        distance = float(_distance(sequence, reference))
        if normalize:
            distance = distance / len(reference) if reference else np.inf
        distances[row] = distance
    return constant(distances)


def _sequences(value: SparseTensor) -> dict[tuple[int, ...], list[object]]:
    """Returns the values of each row that has some."""
    sequences: dict[tuple[int, ...], list[object]] = {}
    for place, element in zip(value.places().tolist(), value.values.numpy().tolist(), strict=True):
        sequences.setdefault(tuple(place[:-1]), []).append(element)
    return sequences


def _distance(sequence: list[object], reference: list[object]) -> int:
    """Returns the smallest number of insertions, deletions and replacements between two sequences."""
    distances = list(range(len(reference) + 1))  # distances of the sequence so far from each prefix of the reference
    for read, element in enumerate(sequence, 1):
        diagonal, distances[0] = distances[0], read
        for at, other in enumerate(reference, 1):
            diagonal, distances[at] = (
                distances[at],
                min(distances[at] + 1, distances[at - 1] + 1, diagonal + (element != other)),
            )
    return distances[-1]
