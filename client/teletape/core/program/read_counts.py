"""Counts of reads by the line of the program that makes them: each may be a round trip."""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from teletape.core.program.call_site import CallSite, call_site_text, line_of

#: How often a line's reads brought their first, second, … candidate in vain, since the program has last read that one;
#: without those that it has never brought, and that the program has never read.
InVain: TypeAlias = dict[int, int]

_SITES: Final = 1024  #: Call sites whose reads are counted without their text.


class ReadSite:
    """A call site that reads.

    Attributes:
        where: The call site.
        line: Its code's identity and the number of its line. Not the call site, which moves while CPython specializes
            the code.
        count: The number of its reads.
        in_vain: How often they brought each candidate in vain.
        rows: How many rows of a tensor it has taken when it last went through one.
    """

    __slots__ = ("count", "in_vain", "line", "rows", "where")

    def __init__(self, where: CallSite) -> None:
        self.where, self.line = where, (id(where[0]), line_of(where))
        self.count = self.rows = 0
        self.in_vain: InVain = {}


class ReadCounts:
    """Counts reads by the line of the program. Its text is only made to show it: that takes longer than a read."""

    def __init__(self) -> None:
        self._by_site: dict[tuple[int, int], ReadSite] = {}  # by the identity of its code, which it keeps
        self._by_line: Counter[str] = Counter()  # of sites that are no longer in the first table

    def note(self, where: CallSite) -> ReadSite:
        """Counts a read, and returns its call site's entry."""
        site = self._by_site.get((id(where[0]), where[1])) or self.site(where)
        site.count += 1
        return site

    def site(self, where: CallSite) -> ReadSite:
        """Returns the entry of a call site."""
        key = (id(where[0]), where[1])
        site = self._by_site.get(key)
        if site is None:
            if len(self._by_site) >= _SITES:  # code that is compiled again and again is not kept
                self._by_line, self._by_site = Counter(dict(self.by_line())), {}
            site = self._by_site.setdefault(key, ReadSite(where))
        return site

    def by_line(self) -> list[tuple[str, int]]:
        """Returns the counts, the largest first."""
        counts = Counter(self._by_line)
        for site in list(self._by_site.values()):
            counts[call_site_text(site.where)] += site.count
        return counts.most_common()
