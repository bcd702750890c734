"""`tf.edit_distance`: how many edits lead from one sequence to another; computed here, from the values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape.ops.dispatch import constant
from teletape.sparse_tensors.tensor import SparseTensor
from teletape.tensors.tensor import Tensor
from teletape_engine.errors import InvalidArgumentError

__all__ = ["edit_distance"]


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The Levenshtein distances float32 [*batch] of sequences: the least number of elements to add, drop or change.

    Args:
        hypothesis: Sequences [*batch, longest], of any dtype.
        truth: The sequences that they should be, of the same dtype and number of axes.
        normalize: Divide by the length of the truth: infinite if that is empty and the hypothesis is not.
        name: Accepted, without effect.

    Raises:
        TypeError: No sparse tensors.
        InvalidArgumentError: Two dtypes, or numbers of axes.

    Example:
        tf.edit_distance(tf.sparse.from_dense([[1, 2]]), tf.sparse.from_dense([[1, 3, 2]]))
    """
    for label, sequences in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not isinstance(sequences, SparseTensor):
            raise TypeError(f"{label} must be a SparseTensor.")
    if hypothesis.dtype is not truth.dtype:
        raise InvalidArgumentError(
            f"cannot compute EditDistance as input #4(zero-based) was expected to be a {hypothesis.dtype.name} tensor "
            f"but is a {truth.dtype.name} tensor [Op:EditDistance]"
        )
    shapes = [sequences.shape.as_list() for sequences in (hypothesis, truth)]
    if len(shapes[0]) != len(shapes[1]):
        raise InvalidArgumentError(
            f"truth_shape must have the same rank as hypothesis_shape: {shapes[1]} vs. {shapes[0]}"
        )
    batch = [max(lengths) for lengths in zip(shapes[0][:-1], shapes[1][:-1], strict=True)]
    distances = np.zeros(batch, np.float32)
    guesses, truths = _sequences(hypothesis), _sequences(truth)
    for place in {*guesses, *truths}:
        guess, right = guesses.get(place, []), truths.get(place, [])
        edits = _edits(guess, right)
        distances[place] = edits if not normalize else edits / len(right) if right else math.inf
    return constant(distances)


def _sequences(sequences: SparseTensor) -> dict[tuple[int, ...], list[Any]]:
    """The sequences that are not empty, by their place in the batch."""
    rows: dict[tuple[int, ...], list[Any]] = {}
    places, values = (np.asarray(part.numpy()).tolist() for part in (sequences.indices, sequences.values))
    for place, value in zip(places, values, strict=True):
        rows.setdefault((*place[:-1],), []).append(value)
    return rows


def _edits(guess: Sequence[Any], right: Sequence[Any]) -> int:
    """The Levenshtein distance, by one row of its table after the other."""
    row = list(range(len(right) + 1))
    for count, element in enumerate(guess, 1):
        before, row = row, [count]
        for column, other in enumerate(right, 1):
            row.append(min(before[column] + 1, row[-1] + 1, before[column - 1] + (element != other)))
    return row[-1]
