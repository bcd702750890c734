"""Counts of reads by the line of the program that makes them: each may be a round trip."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TypeAlias

from teletape.program.call_site import CallSite, call_site_text

#: How often a line's reads brought their first, second, … candidate in vain, since the program has last read that one.
InVain: TypeAlias = dict[int, int]

_SITES: Final = 1024  #: Call sites whose reads are counted without their text.


class ReadCounts:
    """Counts reads by the line of the program. A line is only looked up for the text: that takes longer than a read."""

    def __init__(self) -> None:
        self._by_site: dict[tuple[int, int], list[Any]] = {}  # by the code's identity, which it keeps: see `note`
        self._by_line: Counter[str] = Counter()  # of sites that are no longer in the first table

    def note(self, where: CallSite) -> InVain:
        """Counts a read, and returns how often the line's reads brought each candidate in vain."""
        entry = self._entry(where)
        entry[1] += 1
        in_vain: InVain = entry[2]
        return in_vain

    def last_rows(self, where: CallSite) -> int:
        """Returns how many rows of a tensor the line has taken when it last went through one."""
        rows: int = self._entry(where)[3]
        return rows

    def note_rows(self, where: CallSite, rows: int) -> None:
        """Notes how many rows of a tensor the line has taken."""
        self._entry(where)[3] = rows

    def _entry(self, where: CallSite) -> list[Any]:
        key = (id(where[0]), where[1])
        entry = self._by_site.get(key)
        if entry is None:
            if len(self._by_site) >= _SITES:  # code that is compiled again and again is not kept
                self._by_line, self._by_site = Counter(dict(self.by_line())), {}
            entry = self._by_site.setdefault(key, [where, 0, {}, 0])
        return entry

    def by_line(self) -> list[tuple[str, int]]:
        """Returns the counts, the largest first."""
        counts = Counter(self._by_line)
        for where, count, *_ in list(self._by_site.values()):
            counts[call_site_text(where)] += count
        return counts.most_common()
