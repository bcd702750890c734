"""Suggestions for a name that is unknown: which known ones the caller may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Returns up to three of the known names that are spelled almost like `name`, the nearest first.

    If there are none, capitals and small letters are alike.
    """
    names = sorted(set(known))
    by_folded = {other.casefold(): other for other in names}
    folded = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    return difflib.get_close_matches(name, names, n=3) or [by_folded[match] for match in folded]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a question with the nearest known names; "" if none is near."""
    names = nearest(name, known)
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def with_nearest(message: str, word: object, allowed: Iterable[str]) -> str:
    """Returns a message about a word that is not allowed, with a question about the nearest allowed ones at its end."""
    question = did_you_mean(word, allowed) if isinstance(word, str) else ""
    return f"{message.removesuffix('.')}: {question}" if question else message
