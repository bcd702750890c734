"""How long requests took: how many took at most so long, and the sum, as histograms of Prometheus have it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

#: Seconds: the upper ends of the buckets, the same for all durations. A further bucket has what took longer.
BOUNDS: Final = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
BUCKETS: Final = len(BOUNDS) + 1


class Durations:
    """Counts of durations in buckets.

    Args:
        counts: By bucket; empty: none was counted yet.
        seconds: The sum of all.

    Attributes:
        counts, seconds: The same.
    """

    __slots__ = ("counts", "seconds")

    def __init__(self, counts: Iterable[int] = (), seconds: float = 0.0) -> None:
        self.counts = [*counts] or [0] * BUCKETS
        self.seconds = seconds

    def note(self, seconds: float) -> None:
        """Counts one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def __add__(self, other: Durations) -> Durations:
        """Returns those of both objects."""
        counts = [mine + others for mine, others in zip(self.counts, other.counts, strict=True)]
        return Durations(counts, self.seconds + other.seconds)

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """Returns the seconds that a share of them took at most, as far as the buckets say; None: there are none.

        Args:
            share: More than 0, at most 1: 0.5 is the median.
        """
        total = self.total
        if not total:
            return None
        rank = share * total
        index, below = next((i, n) for i, n in enumerate(accumulate(self.counts)) if n >= rank)
        if index == len(BOUNDS):
            return BOUNDS[-1]
        lower = BOUNDS[index - 1] if index else 0.0
        count = self.counts[index]
        return round(lower + (BOUNDS[index] - lower) * (rank - below + count) / count, 6)
