"""The kinds of cotangent that the backward driver computes with, and the sum of two of each kind.

Arrays      bare arrays, when nothing is recorded: computes
Operands    recorded values, when an outer tape is active: computes, or follows specs only, and is itself recorded
Presence    dense, or slices of specs: predicts
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.slices import GradientKind, SparseGradient, densify
from teletape_engine.ops.shapes.cast import cast
from teletape_engine.ops.shapes.shape import concat
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DTYPES, Spec

Ct: TypeAlias = Any  # an array, an Operand, SparseGradient of either, or a GradientKind


class Algebra(Protocol):
    """What the driver needs to know of one kind of cotangent."""

    structural: bool  #: Whether it takes the plans' structural rules, which compute nothing.
    nodes_between_checks: int  #: Nodes that a pass computes between two checks for a cancel.

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """A node's residuals, as its rules take them."""

    def add(self, a: Ct, b: Ct) -> Ct:
        """The sum of two cotangents of one value; slices are concatenated, dense and slices give dense."""

    def dense(self, ct: Ct) -> Ct:
        """The cotangent with slices summed into an array."""


def _add(a: Ct, b: Ct) -> Ct:
    if isinstance(a, SparseGradient) and isinstance(b, SparseGradient):
        indices = [a.indices, b.indices]
        if a.indices.dtype != b.indices.dtype:
            indices = [cast(index, dtype="int64") for index in indices]
        return SparseGradient(concat(a.values, b.values, axis=0), concat(*indices, axis=0), a.dense)
    return densify(a) + densify(b)


class Arrays:
    """Bare arrays: nothing is recorded."""

    structural = False
    nodes_between_checks = CANCEL_STEPS

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arrays (numbers of literals)."""
        if len(residuals) == 1:
            return (residuals[0].array,)
        return tuple([value.array for value in residuals])

    def add(self, a: Ct, b: Ct) -> Ct:
        """Sums."""
        return _add(a, b) if isinstance(a, SparseGradient) or isinstance(b, SparseGradient) else a + b

    def dense(self, ct: Ct) -> Ct:
        """Sums slices."""
        return densify(ct)


class Operands:
    """Values of a recorder: every step of the pass is recorded on the tapes active there."""

    structural = False
    nodes_between_checks = CANCEL_STEPS

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands; a literal is its number."""
        runtime = self.runtime
        return tuple([v.array if isinstance(v, Literal) else Operand(runtime, v) for v in residuals])

    def add(self, a: Ct, b: Ct) -> Ct:
        """Sums, recorded."""
        return _add(a, b)

    def dense(self, ct: Ct) -> Ct:
        """Sums slices, recorded."""
        return densify(ct)


class Presence:
    """Kinds alone: which gradients there will be."""

    structural = True
    nodes_between_checks = CANCEL_STEPS

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """Nothing is needed."""
        return ()

    def add(self, a: Ct, b: Ct) -> Ct:
        """Dense as soon as one is; the rows of two slices count together."""
        if not (isinstance(a, SparseGradient) and isinstance(b, SparseGradient)):
            return GradientKind.DENSE
        rows = a.values.shape[0] + b.values.shape[0]
        index = a.indices.dtype if a.indices.dtype is b.indices.dtype else DTYPES["int64"]
        values: Spec = a.values
        return SparseGradient(values.with_shape((rows, *values.shape[1:])), Spec.of((rows,), index), a.dense)

    def dense(self, ct: Ct) -> Ct:
        """Dense."""
        return GradientKind.DENSE
