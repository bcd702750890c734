"""Suggestions for a name that is unknown: which known ones the caller may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the nearest known names, up to three; "" if none is near."""
    nearest = difflib.get_close_matches(name, sorted(set(known)), n=3)
    return f"did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
