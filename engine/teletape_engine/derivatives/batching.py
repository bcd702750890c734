"""Batching (vmap): runs ops on a stack of rows. Operands may have a leading axis, which each op's batch rule handles.

A rule (vjp, composite) that is written for one cotangent then computes a stack of them at once. The rows are arrays, or
values of a recorder. A recorder records the ops on them, so a vectorised derivative is itself differentiable; the SDK's
recorder, which has no arrays, infers their specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teletape_engine.arrays import namespace
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.slices import densify
from teletape_engine.errors import InternalError
from teletape_engine.recording.cotangents import Ct
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Literal
from teletape_engine.spec import Spec


class Row:
    """One row inside a rule.

    Attributes:
        below: An array, or an operand of a recorder: [rows, *spec.shape], or [*spec.shape] if it is the same for all.
        stacked: Whether each row has its own.
        spec: Of one row.
    """

    __slots__ = ("below", "spec", "stacked")

    def __init__(self, below: Any, stacked: bool) -> None:
        self.below, self.stacked = below, stacked
        self.spec = Spec.of(tuple(below.shape[stacked:]), below.dtype)


class Rows(Runtime):
    """Runs ops on operands with or without rows.

    Args:
        recorder: Whose values lie below; None: bare arrays.
    """

    structural = False  #: As an `Algebra` of cotangents: it has arrays.
    nodes_between_checks = CANCEL_STEPS // 8  #: Each node computes for many rows.

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder

    def stack(self, below: Any) -> Operand:
        """An array, or an operand of the recorder, [rows, …] as an operand that has rows."""
        return Operand(self, Row(below, True))

    def shared(self, below: Any) -> Operand:
        """An array, or an operand of the recorder, that is the same for every row."""
        return Operand(self, Row(below, False))

    def unstack(self, operand: Operand, rows: int) -> Any:
        """The array, or the operand of the recorder, [rows, …] below the operand."""
        row: Row = operand.value
        if row.stacked:
            return row.below
        return ops.broadcast_to(row.below, shape=(rows, *row.spec.shape))

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Runs `op` once on what has no rows, else through its batch rule; several results are a tuple."""
        canonical = op.attrs(attrs)
        if op.expand is not None:
            expanded: Operand = op.expand(*self._whole(op, args), **canonical)
            return expanded
        below = [arg.value.below if isinstance(arg, Operand) else arg for arg in args]
        stacked = [isinstance(arg, Operand) and arg.value.stacked for arg in args]
        if not any(stacked):
            return self._operands(op(*below, **canonical), False)
        if op.batch is None or op.dynamic:
            raise InternalError(f"op {op.name!r} has no form over rows", op=op.name)  # pragma: no cover - in no rule
        return self._operands(op.batch(op, below, stacked, canonical), True)

    def _operands(self, below: Any, stacked: bool) -> Any:
        if below.__class__ is tuple:
            return tuple([Operand(self, Row(each, stacked)) for each in below])
        return Operand(self, Row(below, stacked))

    def _whole(self, op: Op, args: Sequence[Any]) -> list[Operand]:
        """The arguments of a composite, where numbers have to be arrays."""
        specs = [arg.value.spec if isinstance(arg, Operand) else Literal(arg).spec for arg in args]
        xp = namespace([arg.value.below for arg in args if isinstance(arg, Operand)])
        dtypes = op.number_dtypes(specs)
        whole = []
        for i, arg in enumerate(args):
            if isinstance(arg, Operand):
                whole.append(arg)
                continue
            dtype = dtypes[i]
            if self.recorder is None:
                whole.append(self.shared(xp.asarray(arg, dtype)))
            else:
                whole.append(self.shared(Operand(self.recorder, self.recorder.number(Literal(arg), dtype))))
        return whole

    # ------------------------------------------------------------------------------- the algebra of stacked cotangents
    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """A node's residuals: the same for every row; a literal is its number."""
        recorder = self.recorder
        if recorder is None:
            return tuple([v.array if isinstance(v, Literal) else self.shared(v.array) for v in residuals])
        return tuple([v.array if isinstance(v, Literal) else self.shared(Operand(recorder, v)) for v in residuals])

    def add(self, a: Ct, b: Ct) -> Ct:
        """Sums; the rows of slices are made dense, since each row may touch others."""
        return densify(a) + densify(b)

    def dense(self, ct: Ct) -> Ct:
        """Sums slices."""
        return densify(ct)
