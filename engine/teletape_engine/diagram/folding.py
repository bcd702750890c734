"""Which neighbours of a long sequence are drawn as one: trips of what repeats first, equal segments after that.

Linear but for a sort: a tape of 100,000 calls is folded in tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

_GRAMS: Final = (16, 4)  #: Lengths of the pieces whose return tells a period: a long one sees the outer loop first.
_PERIODS: Final = 6  #: Periods that are looked for with each.
_FACTOR: Final = 0x9E3779B97F4A7C15  #: Of the pieces' hash: 2**64 over the golden ratio.


class Run(NamedTuple):
    """Items `start` to `stop` (exclusive) that repeat every `period`; a period of 1 for what does not repeat."""

    start: int
    stop: int
    period: int


class Segment(NamedTuple):
    """Items `start` to `stop` (exclusive), drawn as one: `trips` repetitions of `period` items, 0 if none repeat."""

    start: int
    stop: int
    period: int
    trips: int


def runs(keys: Sequence[Hashable]) -> list[Run]:
    """The sequence as runs, in order: stretches of at least two equal trips, and what lies between them."""
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    free = np.ones(len(sequence), bool)
    found: list[Run] = []
    periods = list(dict.fromkeys(one for length in _GRAMS for one in _periods(sequence, length)))
    while periods:
        left = int(free.sum())
        # The best period leaves the fewest parts: each of its runs is one, and each item outside of them.
        tried = [(_repeats(sequence, free, period), period) for period in periods]
        best, period = min(tried, key=lambda one: len(one[0]) + left - sum(run.stop - run.start for run in one[0]))
        if not best:
            break
        periods.remove(period)
        found += best
        for run in best:
            free[run.start : run.stop] = False
    out: list[Run] = []
    at = 0
    for run in [*sorted(found), Run(len(sequence), len(sequence), 1)]:
        if run.start > at:
            out.append(Run(at, run.start, 1))
        if run.stop > run.start:
            out.append(run)
        at = run.stop
    return out


def _periods(sequence: np.ndarray[Any, Any], length: int) -> list[int]:
    """The distances at which pieces of that length return, the most frequent first."""
    count = len(sequence) - length + 1
    if count < 2:
        return []
    pieces = np.zeros(count, np.uint64)
    for at in range(length):
        pieces = pieces * np.uint64(_FACTOR) + sequence[at : at + count].astype(np.uint64) + np.uint64(1)
    order = np.argsort(pieces, kind="stable")
    same = pieces[order[1:]] == pieces[order[:-1]]
    distances, often = np.unique((order[1:] - order[:-1])[same], return_counts=True)
    return [int(one) for one in distances[np.argsort(-often, kind="stable")][:_PERIODS]]


def _repeats(sequence: np.ndarray[Any, Any], free: np.ndarray[Any, Any], period: int) -> list[Run]:
    """Stretches of two trips or more of that period among the free items."""
    if 2 * period > len(sequence):
        return []
    equal = (sequence[period:] == sequence[:-period]) & free[period:] & free[:-period]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    taken = np.concatenate(([0], np.cumsum(~free)))
    out = []
    at = 0
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(start, at)
        end = start + ((stop - start) // period + 1) * period
        if end - start > period and taken[start] == taken[end]:
            out.append(Run(start, end, period))
            at = end
    return out


def fold(keys: Sequence[Hashable], most: int) -> list[Segment]:
    """At most `most` segments that cover the sequence in order. Up to `most` items each is one of its own.

    Args:
        keys: What an item is: equal keys are drawn alike.
        most: Segments, at least 1.
    """
    if len(keys) <= most:
        return [Segment(at, at + 1, 1, 0) for at in range(len(keys))]
    parts = runs(keys)
    units = sum(-(-(run.stop - run.start) // run.period) for run in parts)
    if 2 * len(parts) > most:  # too many changes to respect them all
        parts, units = [Run(0, len(keys), 1)], len(keys)
    together = 1 if units <= most else -(-units // (most - len(parts) if len(parts) < most else 1))
    out = []
    for run in parts:
        step = run.period * together
        for start in range(run.start, run.stop, step):
            stop = min(start + step, run.stop)
            trips = (stop - start) // run.period if run.period > 1 else 0
            out.append(Segment(start, stop, run.period, trips))
    return out
