"""How long requests took, and how many were computed together: in buckets, as histograms of Prometheus have it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

#: Seconds: the upper ends of the buckets, the same for all durations. A further bucket has what took longer.
BOUNDS: Final = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
BUCKETS: Final = len(BOUNDS) + 1
#: Calls in a batch: the upper ends of the buckets. A further bucket has larger ones.
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)


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


class Batches:
    """Calls of a published function that were computed, several together.

    Args:
        counts: Batches by their number of calls, in the buckets of `SIZES`; empty: there was none yet.
        calls: In all of them.
        queue_seconds: That the calls have waited.
        compute_seconds: That the batches have taken.

    Attributes:
        counts, calls, queue_seconds, compute_seconds: The same.
    """

    __slots__ = ("calls", "compute_seconds", "counts", "queue_seconds")

    def __init__(
        self,
        counts: Iterable[int] = (),
        calls: int = 0,
        queue_seconds: float = 0.0,
        compute_seconds: float = 0.0,
    ) -> None:
        self.counts = [*counts] or [0] * (len(SIZES) + 1)
        self.calls, self.queue_seconds, self.compute_seconds = calls, queue_seconds, compute_seconds

    def note(self, calls: int, queue_seconds: float, compute_seconds: float, size: int) -> None:
        """Counts some calls, and a batch of a size; 0: other calls have brought that."""
        if size:
            self.counts[bisect_left(SIZES, size)] += 1
        self.calls += calls
        self.queue_seconds += queue_seconds
        self.compute_seconds += compute_seconds

    def __add__(self, other: Batches) -> Batches:
        """Returns those of both objects."""
        counts = [mine + others for mine, others in zip(self.counts, other.counts, strict=True)]
        queue_seconds = self.queue_seconds + other.queue_seconds
        return Batches(counts, self.calls + other.calls, queue_seconds, self.compute_seconds + other.compute_seconds)


@dataclass(frozen=True)
class Served:
    """Requests that a process has read and answered itself.

    Attributes:
        durations: How long they took.
        batches: Of those that ask published functions.
    """

    durations: Durations = field(default_factory=Durations)
    batches: Batches = field(default_factory=Batches)

    def __add__(self, other: Served) -> Served:
        """Returns those of both objects."""
        return Served(self.durations + other.durations, self.batches + other.batches)
