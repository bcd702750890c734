"""The record that `explain` returns for each source, with its forms as text, as JSON and as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from teletape_engine.explain.reasons import MEANINGS, ZEROS, ZEROS_IN_JSON, Outcome, Reason

_HEADS: Final = {
    Outcome.GRADIENT: "The gradient is there",
    Outcome.NONE: "The gradient is None",
    Outcome.ZERO: "The gradient is zero",
    Outcome.NOT_FINITE: "The gradient is not finite",
    Outcome.ERROR: "gradient() raises",
}


class PathStep(NamedTuple):
    """One step of a path from the target back to the source.

    Attributes:
        op: The op, or what happened instead of an op.
        where: The call site, if it is known.
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
        outcome: What the tape computes: gradient, none, zero, not_finite, error.
        message: The reason in one sentence.
        advice: What to do; empty if there is nothing to do.
        op: The op to blame, if there is one.
        where: The call site of that op, if it is known.
        path: The steps from the target back to the source; of a long path its two ends.
        length: The number of steps of the whole path.
        node: The position of that op on the tape.
        certain: False for the likeliest reason, which is not proven.
        notes: Further facts.
        cut_value: Uid of the value at which an op cuts the gradient. It is not part of `facts`.
    """

    code: Reason
    message: str
    op: str | None = None
    where: Any = None
    path: tuple[PathStep, ...] = ()
    length: int = 0
    node: int | None = None
    certain: bool = True
    notes: tuple[str, ...] = ()
    cut_value: int | None = None

    @property
    def outcome(self) -> Outcome:
        """What the tape computes."""
        return MEANINGS[self.code].outcome

    @property
    def advice(self) -> str:
        """What to do."""
        return MEANINGS[self.code].advice

    # --------------------------------------------------------------------------------------------------------- merging
    def with_numbers(self, numeric: Explanation, where: Any) -> Explanation:
        """This explanation, from structure, completed by one that was made from the tape's numbers elsewhere.

        Args:
            numeric: The explanation of the same gradient by the process that has the arrays.
            where: The call site of the op that `numeric` blames, if it is known here.
        """
        if numeric.outcome is Outcome.GRADIENT:
            return replace(self, notes=tuple(dict.fromkeys((*self.notes, *numeric.notes))))
        return replace(numeric, where=where, path=self.path, length=self.length)

    def without_numbers(self) -> Explanation:
        """This explanation for a tape whose numbers are freed; unchanged unless the gradient exists."""
        if self.outcome is not Outcome.GRADIENT:
            return self
        freed = MEANINGS[Reason.NUMBERS_GONE].says
        if self.code is not Reason.CONNECTED:
            return replace(self, notes=(*self.notes, freed))
        return replace(self, code=Reason.NUMBERS_GONE, message=freed) if self.path else self

    def with_note(self, note: str) -> Explanation:
        """This explanation with one more note."""
        return replace(self, notes=(*self.notes, note))

    def with_call_sites(self, format_where: Callable[[Any], str | None]) -> Explanation:
        """This explanation with its call sites as text."""
        path = tuple([step._replace(where=format_where(step.where)) for step in self.path])
        return replace(self, where=format_where(self.where), path=path)

    # ----------------------------------------------------------------------------------------------------------- forms
    def __str__(self) -> str:
        lines = [f"{_HEADS[self.outcome]}: {self.message} [{self.code.value}]"]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.path:
            lines.append("  from the target back: " + self._path_text())
        lines += [f"  note: {note}" for note in self.notes]
        if not self.certain:
            lines.append("  (the likeliest reason; it is not proven)")
        if self.advice:
            lines.append(f"  what to do: {self.advice}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Explanation {self.code.value}: {self.message}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _path_text(self) -> str:
        steps = [f"{'✂ ' if step.cut else ''}{step.op}{f' ({step.where})' if step.where else ''}" for step in self.path]
        if self.length > len(steps):
            steps.insert(len(steps) // 2, f"… {self.length - len(steps)} more …")
        return " ← ".join(steps)

    def _advice_in_json(self) -> str:
        return self.advice.replace(ZEROS, ZEROS_IN_JSON)

    def facts(self) -> dict[str, Any]:
        """The explanation as JSON-able facts; its call sites must be texts."""
        return {
            "code": self.code.value,
            "outcome": self.outcome.value,
            "message": self.message,
            "advice": self._advice_in_json(),
            "op": self.op,
            "where": self.where,
            "path": [{"op": step.op, "where": step.where, "cut": step.cut} for step in self.path],
            "length": self.length,
            "node": self.node,
            "certain": self.certain,
            "notes": list(self.notes),
        }

    def brief(self) -> dict[str, Any]:
        """The explanation in short, for an answer with a null; its call site must be a text."""
        facts = {"code": self.code.value, "message": self.message, "op": self.op, "advice": self._advice_in_json()}
        return facts if self.where is None else facts | {"where": self.where}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Explanation:
        """The explanation whose `facts` these are."""
        fields = {name: facts[name] for name in ("message", "op", "where", "length", "node", "certain")}
        path = tuple([PathStep(step["op"], step["where"], step["cut"]) for step in facts["path"]])
        return cls(Reason(facts["code"]), path=path, notes=tuple(facts["notes"]), **fields)
