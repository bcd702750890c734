"""Tables of texts, for terminals and for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Returns rows as lines with aligned columns.

    Args:
        rows: The head, then the rows.
        right: The columns that are aligned at their right ends: numbers.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows, the first of which is the head, as an HTML table."""
    lines = [
        "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in row) + "</tr>"
        for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False)
    ]
    return f"<table>{''.join(lines)}</table>"
