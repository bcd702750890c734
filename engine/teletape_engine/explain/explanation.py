"""An explanation: the record that every question of why answers with, as text, as JSON, and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from teletape_engine.explain.reasons import MEANINGS, Outcome, Reason

_HEADS: Final = {
    Outcome.GRADIENT: "The gradient is there",
    Outcome.NONE: "The gradient is None",
    Outcome.ZERO: "The gradient is zero",
    Outcome.NOT_FINITE: "The gradient is not finite",
    Outcome.ERROR: "gradient() raises",
}


class Step(NamedTuple):
    """One step of a path, the target's side first.

    Attributes:
        op: The op, or what happened instead of one.
        where: The caller's line, if it is known.
        cut: Whether no gradient passes.
    """

    op: str
    where: Any
    cut: bool = False


@dataclass(frozen=True)
class Explanation:
    """Why a gradient is what it is.

    Attributes:
        code: The reason.
        outcome: What the tape gives: gradient, none, zero, not_finite, error.
        message: What was found, in a sentence.
        advice: What to do; empty where there is nothing to do.
        op: The op to blame, if one is.
        where: The caller's line of it, if it is known.
        path: The way from the target to the source; of a long one the two ends.
        length: Steps of the way in all.
        node: The position on the tape of the node to blame.
        certain: False where it is the likeliest reason, and not proven.
        notes: Further facts.
        into: The uid of the value at which the gradient ends, where an op cuts it; it stays in the process.
    """

    code: Reason
    message: str
    op: str | None = None
    where: Any = None
    path: tuple[Step, ...] = ()
    length: int = 0
    node: int | None = None
    certain: bool = True
    notes: tuple[str, ...] = ()
    into: int | None = None

    @property
    def outcome(self) -> Outcome:
        """What the tape gives."""
        return MEANINGS[self.code].outcome

    @property
    def advice(self) -> str:
        """What to do."""
        return MEANINGS[self.code].advice

    def __str__(self) -> str:
        head = f"{_HEADS[self.outcome]}: {self.message} [{self.code.value}]"
        lines = [head]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.path:
            lines.append("  from the target back: " + self._way())
        lines += [f"  note: {one}" for one in self.notes]
        if not self.certain:
            lines.append("  (the likeliest reason; it is not proven)")
        if self.advice:
            lines.append(f"  what to do: {self.advice}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation {self.code.value}: {self.message}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _way(self) -> str:
        told = [f"{'✂ ' if one.cut else ''}{one.op}{f' ({one.where})' if one.where else ''}" for one in self.path]
        if self.length > len(told):
            half = len(told) // 2
            told.insert(half, f"… {self.length - len(told)} more …")
        return " ← ".join(told)

    def placed(self, place: Callable[[Any], str | None]) -> Explanation:
        """The same, its lines as text."""
        path = tuple([one._replace(where=place(one.where)) for one in self.path])
        return replace(self, where=place(self.where), path=path)

    def facts(self) -> dict[str, Any]:
        """The explanation as JSON-able facts; its lines must be texts."""
        return {
            "code": self.code.value,
            "outcome": self.outcome.value,
            "message": self.message,
            "advice": self.advice,
            "op": self.op,
            "where": self.where,
            "path": [{"op": one.op, "where": one.where, "cut": one.cut} for one in self.path],
            "length": self.length,
            "node": self.node,
            "certain": self.certain,
            "notes": list(self.notes),
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Explanation:
        """The explanation that gave these facts."""
        given = {name: facts[name] for name in ("message", "op", "where", "length", "node", "certain")}
        path = tuple([Step(one["op"], one["where"], one["cut"]) for one in facts["path"]])
        return cls(Reason(facts["code"]), path=path, notes=tuple(facts["notes"]), **given)
