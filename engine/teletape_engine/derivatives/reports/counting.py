"""Counts what ops would take, by their specs: values that have bytes for as long as something refers to them.

Nothing is computed. Rules of gradients run on the operands of a `Counter` as they do on arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.binding import Bound, bind, work_of
from teletape_engine.catalogue.op import Op, Reach, WorkKind
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.recording.tape import Tape, record
from teletape_engine.recording.values import Literal, new_uid
from teletape_engine.spec import WEAK, Spec, Weak

_FLATTENS: Final = frozenset(("reshape", "bitcast"))  # they copy what does not lie row by row in memory
_REARRANGES: Final = frozenset(
    ("transpose", "broadcast_to", "strided_slice", "real", "imag", "diag_part", "element_index", "slice_start")
)


class Counted:
    """A value of which the spec is known: its bytes are taken until nothing refers to it.

    Args:
        counter: Counts it.
        spec: Its shape and dtype.
        owner: What has the memory that it shares, so that it takes none of its own; None: it has its own.
        rows: Whether its elements lie row by row in memory, for certain.

    Attributes:
        nbytes: Of its own memory.
        uid: Which value it is.
    """

    __slots__ = ("counter", "nbytes", "owner", "rows", "spec", "uid")

    def __init__(self, counter: Counter, spec: Spec, owner: Any = None, *, rows: bool = True) -> None:
        self.counter, self.spec, self.owner, self.rows, self.uid = counter, spec, owner, rows, new_uid()
        self.nbytes = 0 if owner is not None else spec.nbytes
        counter.live += self.nbytes

    def __del__(self) -> None:
        self.counter.live -= self.nbytes

    @property
    def buffer(self) -> Any:
        """What has its memory."""
        return self if self.owner is None else self.owner


class Counter(Runtime):
    """Follows ops by their specs, and counts what they would take.

    Args:
        tape: Records the ops; None: nothing does.

    Attributes:
        ops: Ops.
        work: What they compute, by kernel.
        written: Elements of their results that are no views.
        live: Bytes of the values that there are.
        peak: The most of them at a time, with what ops need while they run.
    """

    def __init__(self, tape: Tape | None = None) -> None:
        self._tapes = () if tape is None else (tape,)
        self.ops = self.written = self.live = self.peak = 0
        self.work = dict.fromkeys(WorkKind, 0)

    def operand(self, counted: Counted) -> Operand:
        """A value as ops and rules take it."""
        return Operand(self, counted)

    def value(self, spec: Spec) -> Operand:
        """A new value."""
        counted = Counted(self, spec)
        self.peak = max(self.peak, self.live)
        return self.operand(counted)

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Counts an op, or the ops that a composite consists of."""
        bound = bind(op, tuple(map(_spec, args)), op.attrs(attrs))
        if op.expand is not None:
            arrays = [
                arg if isinstance(arg, Operand) else self.value(spec)
                for arg, spec in zip(args, bound.specs, strict=True)
            ]
            return op.expand(*arrays, **bound.attrs)
        results = self.count(bound, [arg.value if isinstance(arg, Operand) else None for arg in args])
        result = results if bound.selects else results[0]
        if self._tapes:
            record(
                self._tapes, bound, [arg.value if isinstance(arg, Operand) else Literal(arg) for arg in args], result
            )
        return tuple(map(self.operand, results)) if bound.selects else self.operand(results[0])

    def count(self, bound: Bound, inputs: Sequence[Any]) -> tuple[Counted, ...]:
        """Counts a call, and returns its results.

        Args:
            bound: The call, of no composite.
            inputs: Its inputs: counted values; others that a tape keeps, whose bytes are counted with the tape; None: a
                number, or an array that is not counted.
        """
        op = bound.op
        self.ops += 1
        work = bound.work or work_of(op, bound.specs, bound.spec, bound.attrs)
        self.work[work.kernel] += work.amount
        if self.live + bound.price > self.peak:
            self.peak = self.live + bound.price
        by_rows = True
        for value in inputs:
            if value.__class__ is Counted and not value.rows:
                by_rows = False
        first = inputs[0] if inputs else None
        if op.views and first is not None and _is_view(bound, by_rows):
            owner = first.buffer if isinstance(first, Counted) else first
            return (Counted(self, bound.spec, owner, rows=by_rows and op.name not in _REARRANGES),)
        self.written += sum([spec.size for spec in bound.outputs])
        by_rows = by_rows or op.reach not in (Reach.ELEMENTS, Reach.MOVES)
        return tuple([Counted(self, spec, rows=by_rows) for spec in bound.outputs])


def _is_view(bound: Bound, by_rows: bool) -> bool:
    """Whether the result of an op that may give a view is one, if its inputs lie row by row or not."""
    if bound.spec.dtype is not bound.specs[0].dtype and bound.name == "cast":
        return False
    if bound.name == "add_n" and len(bound.specs) > 1:
        return False
    return by_rows or bound.name not in _FLATTENS


def _spec(arg: Any) -> Spec | Weak:
    if isinstance(arg, Operand):
        return arg.value.spec  # type: ignore[no-any-return]  # a Counted
    if isinstance(arg, np.ndarray | np.generic):
        return Spec.of(arg.shape, arg.dtype)
    return WEAK[type(arg)]
