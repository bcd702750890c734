"""The report of a gradient check: the entries that differ most, and whether all agree."""

from __future__ import annotations

import cmath
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from teletape_engine.derivatives.reports.json_numbers import as_json, from_json


@dataclass(frozen=True)
class CheckedElement:
    """One element of a gradient, both ways.

    Attributes:
        output, input: Numbers of the result and of the argument.
        index: Of the element in the argument.
        automatic: The tape's derivative; None: the tape has no gradient for the argument.
        numerical: The derivative from finite differences.
        tolerance: The largest difference that is allowed.
        sides: The slopes to its two sides, where they are so different that the function has a kink or a jump there.
    """

    output: int
    input: int
    index: tuple[int, ...]
    automatic: complex | None
    numerical: complex
    tolerance: float
    sides: tuple[complex, complex] | None = None

    @property
    def error(self) -> float:
        """The difference of the two; infinite if only one of them is a number."""
        a, b = 0.0 if self.automatic is None else self.automatic, self.numerical
        if a == b or (a != a and b != b):
            return 0.0
        apart = abs(a - b)
        return apart if math.isfinite(apart) else math.inf

    @property
    def agrees(self) -> bool:
        """Whether they are within the tolerance."""
        return self.error <= self.tolerance

    def __str__(self) -> str:
        place = "".join(f"[{position}]" for position in self.index)
        automatic = "none" if self.automatic is None else f"{self.automatic:.8g}"
        text = (
            f"input {self.input}{place}, output {self.output}: automatic {automatic}, numerical {self.numerical:.8g}, "
            f"difference {self.error:.3g}, allowed {self.tolerance:.3g}"
        )
        if self.sides is not None:
            a, b = self.sides
            text += (
                f"; the slopes to its two sides are {a:.6g} and {b:.6g}: a kink or a jump, check at a point next to it"
            )
        return text

    def facts(self) -> dict[str, Any]:
        """As JSON-able facts: what is no finite number as a word, complex numbers as pairs."""
        return {
            "output": self.output,
            "input": self.input,
            "index": list(self.index),
            "automatic": None if self.automatic is None else as_json(self.automatic),
            "numerical": as_json(self.numerical),
            "error": as_json(self.error),
            "tolerance": as_json(self.tolerance),
            "sides": None if self.sides is None else [as_json(side) for side in self.sides],
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> CheckedElement:
        """The entry that gave these facts."""
        automatic, sides = facts["automatic"], facts["sides"]
        return cls(
            facts["output"],
            facts["input"],
            tuple(facts["index"]),
            None if automatic is None else from_json(automatic),
            from_json(facts["numerical"]),
            float(facts["tolerance"]),
            None if sides is None else (from_json(sides[0]), from_json(sides[1])),
        )


@dataclass(frozen=True)
class Report:
    """The outcome of a check.

    Attributes:
        dtype: The dtype of the computation: float64 if the function accepts it.
        checked: Entries that were compared, for each output.
        entries: Of all the inputs that have gradients.
        seed: Of the choice of entries and of the cotangents.
        worst: The entry with the largest difference, relative to its tolerance; None: nothing to compare.
    """

    dtype: str
    checked: int
    entries: int
    seed: int
    worst: CheckedElement | None

    @property
    def agrees(self) -> bool:
        """Whether every entry is within its tolerance."""
        return self.worst is None or self.worst.agrees

    def __str__(self) -> str:
        head = f"{self.checked:,} of {self.entries:,} entries compared in {self.dtype} (seed {self.seed})"
        if self.worst is None:
            return f"{head}: no input has a gradient"
        if self.agrees:
            return f"{head}: all agree; the largest difference is at {self.worst}"
        if not cmath.isfinite(self.worst.numerical):
            return f"{head}: the differences are not finite and cannot be compared: check elsewhere; {self.worst}"
        return f"{head}: the gradient is wrong; {self.worst}"

    def facts(self) -> dict[str, Any]:
        """As JSON-able facts."""
        return {
            "agrees": self.agrees,
            "dtype": self.dtype,
            "checked": self.checked,
            "entries": self.entries,
            "seed": self.seed,
            "message": str(self),
            "worst": None if self.worst is None else self.worst.facts(),
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Report:
        """The report that gave these facts."""
        worst = facts["worst"]
        fields = {name: facts[name] for name in ("dtype", "checked", "entries", "seed")}
        return cls(**fields, worst=None if worst is None else CheckedElement.from_facts(worst))
