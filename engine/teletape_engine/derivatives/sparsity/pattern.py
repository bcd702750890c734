"""Patterns: for each element of a value the elements of a source that it may depend on, as sorted rows of numbers.

Everything is done for all rows at once with NumPy, in parts that bound the memory: a pattern of 3,000,000 entries takes
16 MB, and no operation takes much more than its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Self, TypeAlias

import numpy as np

from teletape_engine.errors import ResourceExhaustedError

Ints: TypeAlias = np.ndarray[Any, Any]

MOST_ENTRIES: Final = 1 << 26  #: Of one pattern: 256 MiB of numbers.
_PART: Final = 1 << 16  # entries that are worked on at a time


class Pattern:
    """Rows of numbers below `width`, each row sorted and without repetitions.

    Attributes:
        width: How many elements the source has.
        columns: The numbers, row after row.
        starts: [rows + 1]: where each row begins in `columns`, and their end. None: each row has one number, or -1 for
            none.
    """

    __slots__ = ("columns", "starts", "width")

    def __init__(self, width: int, columns: Ints, starts: Ints | None) -> None:
        self.width, self.columns, self.starts = width, columns, starts

    @classmethod
    def identity(cls, width: int) -> Self:
        """That of the source itself."""
        return cls(width, np.arange(width, dtype=index_dtype(width)), None)

    @classmethod
    def empty(cls, width: int, rows: int) -> Self:
        """That of a value that depends on no element."""
        return cls(width, np.full(rows, -1, index_dtype(width)), None)

    @property
    def rows(self) -> int:
        """How many elements the value has."""
        return len(self.columns) if self.starts is None else len(self.starts) - 1

    @property
    def entries(self) -> int:
        """How many numbers there are in all rows together; an upper bound if each row has one at most."""
        return len(self.columns)

    def in_rows(self) -> tuple[Ints, Ints]:
        """(starts, columns): as in the format CSR."""
        if self.starts is not None:
            return self.starts, self.columns
        present = self.columns >= 0
        starts = _ends(present, self.rows)
        return starts, self.columns if present.all() else self.columns[present]

    def take(self, index: Ints) -> Pattern:
        """The rows at `index`, in its order; an empty row for -1."""
        if len(index) == self.rows and np.array_equal(index, np.arange(self.rows, dtype=index.dtype)):
            return self
        if not self.rows:
            return Pattern(self.width, np.full(len(index), -1, self.columns.dtype), None)
        missing = index < 0
        if self.starts is None:
            columns = self.columns[index]
            columns[missing] = -1
            return Pattern(self.width, columns, None)
        counts = np.diff(self.starts)[index]
        counts[missing] = 0
        _check_entries(int(counts.sum(dtype=np.int64)), len(index), self.width)
        starts = _ends(counts, len(index))
        columns = np.empty(starts[-1], self.columns.dtype)
        for first, last in _parts(starts):
            begin, end = int(starts[first]), int(starts[last])
            shift = self.starts[index[first:last]] - starts[first:last]
            columns[begin:end] = self.columns[np.repeat(shift, counts[first:last]) + np.arange(begin, end)]
        return Pattern(self.width, columns, starts)

    def gather(self, groups: Ints, count: int) -> Pattern:
        """`count` rows: row k is the union of the rows whose number in `groups` is k; -1 is left out."""
        starts, columns = self.in_rows()
        rows = np.repeat(groups, np.diff(starts))
        if (groups < 0).any():
            grouped = rows >= 0
            rows, columns = rows[grouped], columns[grouped]
        _check_entries(len(columns), count, self.width)
        keys = _sorted(rows.astype(np.int64) * self.width + columns)
        if len(keys) == count and self.width and np.array_equal(keys // self.width, np.arange(count)):
            return Pattern(self.width, (keys % self.width).astype(self.columns.dtype), None)
        return _of_keys(keys, count, self.width)


def union(patterns: Sequence[Pattern]) -> Pattern:
    """Row by row the union of patterns with as many rows."""
    different = list({id(pattern.columns): pattern for pattern in patterns}.values())
    first = different[0]
    if len(different) == 1:
        return first
    if all(pattern.starts is None and np.array_equal(pattern.columns, first.columns) for pattern in different[1:]):
        return first
    rows, width = first.rows, first.width
    by_rows = [pattern.in_rows() for pattern in different]
    most = sum([len(columns) for _, columns in by_rows])
    if not most:
        return first
    together = by_rows[0][0].astype(index_dtype(most))
    for starts, _ in by_rows[1:]:
        together += starts
    ends = np.zeros(rows + 1, np.int32)
    merged = np.empty(min(most, MOST_ENTRIES), first.columns.dtype)
    entries = 0
    for begin, end in _parts(together):
        keys = []
        for starts, numbers in by_rows:
            lengths = np.diff(starts[begin : end + 1])
            local = np.repeat(np.arange(end - begin, dtype=np.int64), lengths)
            keys.append(local * width + numbers[starts[begin] : starts[end]])
        places = _sorted(np.concatenate(keys))
        _check_entries(entries + len(places), rows, width)
        ends[begin + 1 : end + 1] = np.bincount(places // width, minlength=end - begin)
        merged[entries : entries + len(places)] = places % width
        entries += len(places)
    np.cumsum(ends, out=ends)
    merged.resize(entries, refcheck=False)  # in place: no second copy
    return Pattern(width, merged, ends)


def joined(patterns: Sequence[Pattern]) -> Pattern:
    """The rows of one pattern after those of the other."""
    if len(patterns) == 1:
        return patterns[0]
    width = patterns[0].width
    if all(pattern.starts is None for pattern in patterns):
        return Pattern(width, np.concatenate([pattern.columns for pattern in patterns]), None)
    by_rows = [pattern.in_rows() for pattern in patterns]
    counts = np.concatenate([np.diff(starts) for starts, _ in by_rows])
    return Pattern(width, np.concatenate([columns for _, columns in by_rows]), _ends(counts, len(counts)))


def transposed(starts: Ints, columns: Ints, width: int) -> tuple[Ints, Ints, Ints]:
    """(starts, rows) of a pattern by columns, and the order in which they take its entries."""
    order = np.argsort(columns, kind="stable")
    counts = np.bincount(columns, minlength=width) if len(columns) else np.zeros(width, np.int64)
    rows = np.repeat(np.arange(len(starts) - 1, dtype=index_dtype(len(starts))), np.diff(starts))
    return _ends(counts, width), rows[order], order


def index_dtype(*counts: int) -> np.dtype[Any]:
    """int32 if it can number as many elements, else int64."""
    return np.dtype(np.int32 if max(counts, default=0) < 1 << 31 else np.int64)


def _ends(counts: Ints, rows: int) -> Ints:
    starts = np.zeros(rows + 1, index_dtype(int(counts.sum(dtype=np.int64))))
    np.cumsum(counts, out=starts[1:])
    return starts


def _sorted(keys: Ints) -> Ints:
    """The keys sorted, each once. `np.unique` hashes, which takes ten times as long."""
    keys.sort()
    if not len(keys):
        return keys
    first = np.empty(len(keys), bool)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def _of_keys(keys: Ints, count: int, width: int) -> Pattern:
    """The pattern of sorted keys row * width + column."""
    rows, columns = np.divmod(keys, max(width, 1))
    counts = np.bincount(rows, minlength=count) if len(keys) else np.zeros(count, np.int64)
    return Pattern(width, columns.astype(index_dtype(width)), _ends(counts, count))


def _parts(starts: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of rows of about `_PART` entries, one row at least."""
    rows = len(starts) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + _PART, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


def _check_entries(entries: int, rows: int, width: int) -> None:
    if entries > MOST_ENTRIES:
        raise ResourceExhaustedError(
            f"a structure of {rows:,} rows for a source of {width:,} elements comes to {entries:,} entries, more than "
            f"{MOST_ENTRIES:,}: it is not sparse; ask for products with vectors (hvp, vjps), or for the dense "
            "derivative of fewer elements",
            entries=entries,
            bound=MOST_ENTRIES,
        )
