"""Numbers among JSON-able facts: what is no finite number is a word, a complex number a pair."""

from __future__ import annotations

import math
from typing import Any


def as_json(number: complex) -> Any:
    """A float, "NaN", "Infinity" or "-Infinity"; of a complex number two of them."""
    if isinstance(number, complex):
        return [as_json(number.real), as_json(number.imag)]
    if math.isfinite(number):
        return float(number)
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def from_json(fact: Any) -> complex:
    """The number that `as_json` gave."""
    return complex(*map(float, fact)) if isinstance(fact, list) else float(fact)
