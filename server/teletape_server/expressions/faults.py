"""Faults of an expression: their place, and what would be right."""

from __future__ import annotations

from typing import Any

from teletape_server.problems import Problem


class Place:
    """Offsets of a part of the text, as lines and columns."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.end = start, max(end, start)
        self.line = text.count("\n", 0, start) + 1
        self.column = start - (text.rfind("\n", 0, start) + 1) + 1

    def __str__(self) -> str:
        last = self.column + max(self.end - self.start - 1, 0)
        columns = f"column {self.column}" if last == self.column else f"columns {self.column}-{last}"
        return f"line {self.line}, {columns}"


def fault(place: Place, message: str, **details: Any) -> Problem:
    """Returns the problem of a part of the text.

    Args:
        place: Where it is.
        message: What is wrong, and what to do.
        **details: Further facts, such as `expected` and `suggestions`.
    """
    where: dict[str, Any] = {"line": place.line, "column": place.column, "start": place.start, "end": place.end}
    return Problem("invalid_expression", f"{place}: {message}", **where, **details)
