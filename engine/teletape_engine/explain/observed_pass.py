"""A backward pass over arrays that changes nothing and keeps notes: what every node contributed to every input.

It runs the tape's own rules on what the tape keeps. `numerics` reads the notes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.derivatives.backward import reaching
from teletape_engine.recording.cotangents import Arrays
from teletape_engine.recording.custom import Custom, Output
from teletape_engine.recording.tape import Node, Tape
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
    """The notes of one backward pass.

    Args:
        tape: One that still has what it kept.
        starts: (uid, array) of each target.
        sources: Uids of the sources.
        registered: Op types whose gradient the caller has registered: the pass does not call the caller's functions.

    Attributes:
        cotangents: Of each source, by uid; None if nothing came there.
        contributions: To each uid, the nearest to the target first.
        callers: The inputs and the cotangent of each result whose gradient is the caller's function, by its uid.
    """

    def __init__(
        self,
        tape: Tape,
        starts: Sequence[tuple[Uid, Any]],
        sources: Collection[Uid],
        *,
        registered: Collection[str] = (),
    ) -> None:
        self.tape, self.starts, self.registered = tape, starts, registered
        self.nodes: list[Node] = tape.nodes
        self.contributions: dict[Uid, list[Contribution]] = {}
        self.callers: dict[Uid, tuple[tuple[Uid | None, ...], Any]] = {}
        self.cotangents: dict[Uid, Any] = dict.fromkeys(sources)
        self._needed = reaching(tape, set(sources), registered)
        self._run(None)

    def cotangent_at(self, node: int) -> Any:
        """The cotangent of a node's result, as its rules take it; the pass runs again up to there."""
        ct = self._run(node)
        return ALGEBRA.dense(ct) if ct.__class__ is SparseGradient and not self.nodes[node][0].passes else ct

    def calls_below(self, source: Uid) -> dict[Uid, Any]:
        """The cotangents that come to the caller's functions on the paths to a source, by uid."""
        needed = reaching(self.tape, {source}, self.registered)
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

    def _run(self, stop: int | None) -> Any:
        """Runs the pass and takes notes; or returns the cotangent of node `stop`, and takes none."""
        cts: dict[Any, Any] = {}
        for uid, ct in self.starts:
            cts[uid] = ALGEBRA.add(cts[uid], ct) if uid in cts else ct
        cotangents = self.cotangents if stop is None else {}
        for uid in cotangents:
            cotangents[uid] = cts.get(uid)
        for node in range(len(self.nodes) - 1, -1, -1):
            plan, inputs, output, kept, _ = self.nodes[node]
            ct = cts.pop(output, None)
            if ct is None:
                continue
            if node == stop:
                return ct
            if output in cotangents:
                cotangents[output] = ct
            bound = plan.bound
            if isinstance(bound, Custom | Output) or (plan.unregistered and bound.op_type in self.registered):
                if self._needed is None or not self._needed.isdisjoint(inputs):
                    self.callers[output] = inputs, ct
                continue
            if ct.__class__ is SparseGradient and not plan.passes:
                ct = ALGEBRA.dense(ct)
            residuals = ALGEBRA.open(kept) if kept else kept
            ct_facts: tuple[bool, bool] | None = None
            for index, rule in plan.rules:
                input_uid = inputs[index]
                if self._needed is not None and input_uid not in self._needed:
                    continue
                addend = rule(ct, residuals)
                if stop is None and input_uid is not None:
                    ct_facts = ct_facts or (is_zero(ct), is_finite(ct))
                    note = Contribution(node, index, *ct_facts, is_zero(addend), is_finite(addend))
                    self.contributions.setdefault(input_uid, []).append(note)
                cts[input_uid] = ALGEBRA.add(cts[input_uid], addend) if input_uid in cts else addend
                if input_uid in cotangents:
                    cotangents[input_uid] = cts[input_uid]
        return None


# --------------------------------------------------------------------------------------------------------------- arrays
def is_empty(ct: Any) -> bool:
    """Whether a cotangent has no elements."""
    return bool(math.prod(_values(ct).shape) == 0)


def is_zero(ct: Any) -> bool:
    """Whether every element of a cotangent is zero."""
    return not bool(_values(ct).any())


def is_finite(ct: Any) -> bool:
    """Whether no element of a cotangent is NaN or infinite."""
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
