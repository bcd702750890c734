"""Sparse gradients: rows of an array and their indices, as TensorFlow's IndexedSlices; and how they become dense."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from teletape_engine.catalogue.namespace import ops
from teletape_engine.spec import Spec


class GradientKind(enum.StrEnum):
    """The structure of one gradient."""

    NONE = "none"
    DENSE = "dense"
    SLICES = "slices"


class SparseGradient(NamedTuple):
    """A sparse cotangent: row `values[k]` belongs at row `indices[k]` of an array of spec `dense`; duplicates add up.

    Shapes: values [n, *dense.shape[1:]], indices [n] int32 or int64. Both are arrays, operands or specs.
    """

    values: Any
    indices: Any
    dense: Spec


class SlicesValue:
    """A sparse gradient as a result: two recorded values and the spec of the array that they represent.

    Attributes:
        name: The id under which a remote session knows it, or None.
    """

    __slots__ = ("dense", "indices", "name", "spec", "values")

    def __init__(self, values: Any, indices: Any, dense: Spec) -> None:
        self.values, self.indices, self.dense = values, indices, dense
        self.spec = dense
        self.name: Any = None

    def __repr__(self) -> str:
        return f"<slices of {self.dense!r}>"


def densify(gradient: Any, recorder: Any = None) -> Any:
    """Returns a sparse gradient as one array, rows of equal index added up; anything else unchanged.

    Args:
        gradient: A `SparseGradient` of arrays or operands, a `SlicesValue`, or anything that is dense (or None).
        recorder: Records the sum for a `SlicesValue`. Without it the values' arrays are summed, unrecorded.
    """
    if isinstance(gradient, SlicesValue):
        if recorder is not None:
            rows = gradient.dense.shape[0]
            return recorder.op(ops.unsorted_segment_sum, gradient.values, gradient.indices, num_segments=rows)
        gradient = SparseGradient(gradient.values.array, gradient.indices.array, gradient.dense)
    if isinstance(gradient, SparseGradient):
        return ops.unsorted_segment_sum(gradient.values, gradient.indices, num_segments=gradient.dense.shape[0])
    return gradient
