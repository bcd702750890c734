"""Folds a long sequence of calls into few nodes: calls that repeat first, then equal segments of neighbours.

Linear but for a sort: a tape of 100,000 calls is folded in tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

_PIECE_LENGTHS: Final = (16, 4)  #: Pieces whose return shows a period. A long piece finds the outer loop first.
_PERIODS: Final = 6  #: Periods that are tried for each length.
_HASH_FACTOR: Final = 0x9E3779B97F4A7C15  #: 2**64 over the golden ratio.

IntArray = np.ndarray[Any, Any]


class Run(NamedTuple):
    """Items `start` to `stop` (exclusive) that repeat every `period` items; a period of 1 if they do not repeat."""

    start: int
    stop: int
    period: int


class Segment(NamedTuple):
    """Items `start` to `stop` (exclusive), drawn as one: `iterations` times `period` items, 0 if none repeat."""

    start: int
    stop: int
    period: int
    iterations: int


def fold(keys: Sequence[Hashable], max_segments: int) -> list[Segment]:
    """Cuts a sequence into at most `max_segments` segments, in order. If it is that short, every item is a segment.

    Args:
        keys: One for each item; items with equal keys are drawn alike.
        max_segments: At least 1.
    """
    if len(keys) <= max_segments:
        return [Segment(start, start + 1, 1, 0) for start in range(len(keys))]
    parts = runs(keys)
    units = sum(-(-(run.stop - run.start) // run.period) for run in parts)
    if 2 * len(parts) > max_segments:  # there are too many changes to keep them all
        parts, units = [Run(0, len(keys), 1)], len(keys)
    units_per_segment = 1
    if units > max_segments:
        units_per_segment = -(-units // (max_segments - len(parts) if len(parts) < max_segments else 1))
    segments = []
    for run in parts:
        length = run.period * units_per_segment
        for start in range(run.start, run.stop, length):
            stop = min(start + length, run.stop)
            iterations = (stop - start) // run.period if run.period > 1 else 0
            segments.append(Segment(start, stop, run.period, iterations))
    return segments


def runs(keys: Sequence[Hashable]) -> list[Run]:
    """Cuts a sequence into runs, in order: stretches of at least two equal iterations, and what lies between them."""
    numbers: dict[Hashable, int] = {}
    sequence = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    free = np.ones(len(sequence), bool)
    repeats: list[Run] = []
    periods = list(dict.fromkeys(period for length in _PIECE_LENGTHS for period in _periods(sequence, length)))
    while periods:
        free_count = int(free.sum())
        candidates = [(_repeats(sequence, free, period), period) for period in periods]
        # The best period leaves the fewest parts: each of its runs is one part, and so is each item outside of them.
        best, period = min(
            candidates,
            key=lambda candidate: len(candidate[0]) + free_count - sum(run.stop - run.start for run in candidate[0]),
        )
        if not best:
            break
        periods.remove(period)
        repeats += best
        for run in best:
            free[run.start : run.stop] = False
    parts: list[Run] = []
    position = 0
    for run in [*sorted(repeats), Run(len(sequence), len(sequence), 1)]:
        if run.start > position:
            parts.append(Run(position, run.start, 1))
        if run.stop > run.start:
            parts.append(run)
        position = run.stop
    return parts


def _periods(sequence: IntArray, length: int) -> list[int]:
    """The distances at which pieces of that length return, the most frequent first."""
    count = len(sequence) - length + 1
    if count < 2:
        return []
    hashes = np.zeros(count, np.uint64)
    for offset in range(length):
        hashes = hashes * np.uint64(_HASH_FACTOR) + sequence[offset : offset + count].astype(np.uint64) + np.uint64(1)
    order = np.argsort(hashes, kind="stable")
    equal = hashes[order[1:]] == hashes[order[:-1]]
    distances, counts = np.unique((order[1:] - order[:-1])[equal], return_counts=True)
    return [int(distance) for distance in distances[np.argsort(-counts, kind="stable")][:_PERIODS]]


def _repeats(sequence: IntArray, free: np.ndarray[Any, Any], period: int) -> list[Run]:
    """Stretches of two or more iterations of that period among the free items."""
    if 2 * period > len(sequence):
        return []
    equal = (sequence[period:] == sequence[:-period]) & free[period:] & free[:-period]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], equal, [False])).astype(np.int8)))
    taken = np.concatenate(([0], np.cumsum(~free)))
    repeats = []
    position = 0
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(begin, position)
        stop = start + ((end - start) // period + 1) * period
        if stop - start > period and taken[start] == taken[stop]:
            repeats.append(Run(start, stop, period))
            position = stop
    return repeats
