"""Suggestions for a name that is unknown: which known ones the caller may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three of the known names that are spelled almost like `name`, the nearest first."""
    return difflib.get_close_matches(name, sorted(set(known)), n=3)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the nearest known names; "" if none is near."""
    names = nearest(name, known)
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""
