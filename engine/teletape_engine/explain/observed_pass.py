"""A backward pass for diagnosis: it notes what every node contributed to every input, and changes nothing.

It is an observer of the one driver (`derivatives/backward.py`). `numerics` reads the notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.binding import Bound, Select, TapeCall
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.derivatives.backward import Observer, backward_pass
from teletape_engine.derivatives.query import Declarations
from teletape_engine.derivatives.walks import leading_to
from teletape_engine.generators import driven
from teletape_engine.recording.cotangents import Arrays
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid

ALGEBRA: Final = Arrays()


class Contribution(NamedTuple):
    """What one node added to the cotangent of one of its inputs.

    Attributes:
        node: Position of the node on the tape.
        input_index: Number of the input.
        ct_zero: Whether the node's own cotangent was zero.
        ct_finite: Whether it was finite.
        zero: Whether the contribution was zero.
        finite: Whether it was finite.
    """

    node: int
    input_index: int
    ct_zero: bool
    ct_finite: bool
    zero: bool
    finite: bool


class ObservedPass:
    """The notes of one backward pass: an `Observer` of the driver.

    Args:
        tape: One that still has its residuals.
        starts: (uid, array) of each target.
        sources: Uids of the sources.
        declarations: Those of the session; the pass does not call the caller's gradient functions.
        check_cancelled: Called inside the pass; what it raises ends it.

    Attributes:
        cotangents: Of each source, by uid; None if none reached it.
        contributions: To each uid, the nearest to the target first.
        callers: The inputs and the cotangent of each result whose gradient is the caller's function, by its uid.
    """

    def __init__(
        self,
        tape: Tape,
        starts: Sequence[tuple[Uid, Any]],
        sources: Collection[Uid],
        declarations: Declarations,
        check_cancelled: Callable[[], None],
    ) -> None:
        self.tape, self.starts, self.declarations = tape, starts, declarations
        self._check_cancelled = check_cancelled
        self.nodes: list[NodeTuple] = tape.nodes
        self.contributions: dict[Uid, list[Contribution]] = {}
        self.callers: dict[Uid, tuple[tuple[Uid | None, ...], Any]] = {}
        self._needed = leading_to(tape, set(sources), declarations)
        self._ct_facts: tuple[int, bool, bool] | None = None
        self.cotangents: dict[Uid, Any] = dict.fromkeys(sources) | self._run(sources, self)

    def node(self, position: int, ct: Any) -> None:
        """Notes the cotangents that come to the caller's functions."""
        plan, inputs, output, _, _ = self.nodes[position]
        own = _is_of_caller(plan.bound) or self.declarations.stops_at(plan)
        if own and ct.__class__ is not list and (self._needed is None or not self._needed.isdisjoint(inputs)):
            self.callers[output] = inputs, ct

    def share(self, position: int, i: int, ct: Any, share: Any) -> None:
        """Notes a contribution."""
        plan, inputs, _, _, _ = self.nodes[position]
        uid = inputs[i]
        if uid is None or _is_of_caller(plan.bound):
            return
        if self._ct_facts is None or self._ct_facts[0] != position:
            self._ct_facts = position, is_zero(ct), is_finite(ct)
        note = Contribution(position, i, *self._ct_facts[1:], is_zero(share), is_finite(share))
        self.contributions.setdefault(uid, []).append(note)

    def cotangent_at(self, node: int) -> Any:
        """The cotangent of a node's result, as its rules take it; the pass runs again up to there."""
        try:
            self._run(self.cotangents, _Until(node))
        except _Arrived as arrived:
            ct = arrived.ct
            passes = self.nodes[node][0].passes
            return ALGEBRA.dense(ct) if ct.__class__ is SparseGradient and not passes else ct
        raise AssertionError(f"the pass does not come to node {node}")  # pragma: no cover - it did before

    def _run(self, sources: Collection[Uid], observer: Observer) -> dict[Uid, Any]:
        walk = backward_pass(
            self.tape,
            self.starts,
            sources,
            ALGEBRA,
            declarations=self.declarations,
            observer=observer,
            check_cancelled=self._check_cancelled,
        )
        return driven(walk, lambda stop: [None] * len(stop.bound.specs))

    def calls_below(self, source: Uid) -> dict[Uid, Any]:
        """The cotangents that come to the caller's functions on the paths to a source, by uid."""
        needed = leading_to(self.tape, {source}, self.declarations)
        return {
            uid: ct for uid, (inputs, ct) in self.callers.items() if needed is None or not needed.isdisjoint(inputs)
        }

    def chain(self, source: Uid) -> list[Contribution]:
        """Every contribution on the paths to a source, the nearest to the target first."""
        chain: dict[tuple[int, int], Contribution] = {}
        pending, seen = [source], {source}
        while pending:
            for contribution in self.contributions.get(pending.pop(), ()):
                chain.setdefault((contribution.node, contribution.input_index), contribution)
                output = self.nodes[contribution.node][2]
                if output not in seen:
                    seen.add(output)
                    pending.append(output)
        return sorted(chain.values(), key=lambda contribution: (-contribution.node, contribution.input_index))


class _Arrived(Exception):
    """Ends a pass at a node, whose cotangent it holds."""

    def __init__(self, ct: Any) -> None:
        super().__init__()
        self.ct = ct


class _Until:
    """An observer that ends the pass at a node."""

    def __init__(self, position: int) -> None:
        self.position = position

    def node(self, position: int, ct: Any) -> None:
        """Raises _Arrived at the node."""
        if position == self.position:
            raise _Arrived(ct)

    def share(self, position: int, i: int, ct: Any, share: Any) -> None:
        """Does nothing."""


def _is_of_caller(bound: TapeCall) -> bool:
    """Whether it selects a result of a call of the caller's own function."""
    return isinstance(bound, Select) and not isinstance(bound.call, Bound)


# --------------------------------------------------------------------------------------------------------------- arrays
def is_empty(ct: Any) -> bool:
    """Whether a cotangent has no elements."""
    return bool(math.prod(_values(ct).shape) == 0)


def is_zero(ct: Any) -> bool:
    """Whether every element of a cotangent is zero; of a list, of each."""
    if ct.__class__ is list:
        return all(part is None or is_zero(part) for part in ct)
    return not bool(_values(ct).any())


def is_finite(ct: Any) -> bool:
    """Whether no element of a cotangent is NaN or infinite; of a list, of each."""
    if ct.__class__ is list:
        return all(part is None or is_finite(part) for part in ct)
    array = _values(ct)
    if not is_inexact(array):
        return True
    total = float(abs(array).sum())  # NaN or infinite as soon as one element is, without an array of booleans
    return math.isfinite(total) or bool(np.isfinite(on_host(array)).all())


def is_inexact(array: Any) -> bool:
    """Whether the dtype has NaN and infinities."""
    return str(array.dtype.kind) in "fcV"  # V: bfloat16, which NumPy does not know


def on_host(array: Any) -> Any:
    """The array in NumPy; bfloat16 as float32."""
    array = array.get() if hasattr(array, "get") else np.asarray(array)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _values(ct: Any) -> Any:
    return ct.values if isinstance(ct, SparseGradient) else ct
