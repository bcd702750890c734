"""A profile as text and as HTML: a sentence, and four tables."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final

from teletape.core.profiling.tables import html_table, text_table
from teletape_engine.diagram.dot import bytes_text

_ROWS: Final = 12  #: The largest number of rows of a table.


def text(profile: Any) -> str:
    """Returns a profile as lines."""
    lines = [head(profile)]
    for rows in tables(profile):
        lines += ["", *text_table(rows, right=(1, 2))]
    return "\n".join(lines)


def html_text(profile: Any) -> str:
    """Returns a profile for a notebook."""
    return f"<p>{html.escape(head(profile))}</p>" + "".join(map(html_table, tables(profile)))


def head(profile: Any) -> str:
    """Returns the sentence about the whole profile."""
    traffic = ""
    if profile.requests:
        traffic = (
            f", {profile.requests:,} {'request' if profile.requests == 1 else 'requests'}, "
            f"{bytes_text(profile.bytes_sent)} sent, {bytes_text(profile.bytes_received)} received"
        )
    return f"profile of {profile.place}: {profile.seconds:.3f} s{traffic}"


def tables(profile: Any) -> list[list[tuple[str, ...]]]:
    """Returns the tables that have rows, each with its head."""
    whole = profile.seconds or 1.0
    split: list[tuple[str, ...]] = [
        ("where the time goes", "seconds", "share"),
        *[(name, f"{seconds:.4f}", f"{seconds / whole:.0%}") for name, seconds in profile.parts.items()],
        ("from beginning to end", f"{profile.seconds:.4f}", ""),
    ]
    listed = [split]
    for title, counted, rows in (
        ("op", "calls", profile.by_op),
        ("line", "commands", profile.by_line),
        ("line that waits", "reads", profile.reads),
    ):
        if rows:
            around = profile.computed - sum(row.seconds for row in rows) if title == "op" else 0.0
            rest = [("(between the commands)", "", f"{around:.4f}")] if around > 0.0 else []
            listed.append([(title, counted, "seconds"), *_shortened(rows), *rest])
    return listed


def _shortened(rows: Sequence[tuple[str, int, float]]) -> list[tuple[str, ...]]:
    shown: list[tuple[str, ...]] = [(name, f"{count:,}", f"{seconds:.4f}") for name, count, seconds in rows[:_ROWS]]
    rest = rows[_ROWS:]
    if rest:
        count, seconds = sum(row[1] for row in rest), sum(row[2] for row in rest)
        shown.append((f"{len(rest)} others", f"{count:,}", f"{seconds:.4f}"))
    return shown
