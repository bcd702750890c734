"""Colouring: which rows, or which columns, of a pattern may share a product with a vector.

Two rows may, if no column has an entry in both: from the product with their sum each entry can be read. A column with
an entry in nearly all rows would keep all apart: it is a hub, which gets a product of its own and keeps nothing apart
(Coleman and Verma, 1998, combine rows and columns so). The colours are those of Curtis, Powell and Reid (1974): the
first that is free, row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.derivatives.sparsity.pattern import Ints, Pattern, index_dtype, transposed

_PART: Final = 1 << 16  # lines that are coloured at a time
_TABLE: Final = 1 << 26  # elements of the table with which a period is tried
_PERIODS: Final = 3  # that are tried


class Colouring(NamedTuple):
    """Products from which every entry of a pattern can be read.

    Attributes:
        by_rows: Whether rows share products, from the left; otherwise columns do, from the right.
        colours: Of each row (column): the number of its product; -1: it has no entry to be read so.
        groups: How many colours there are.
        hubs: Columns (rows) with a product of their own from the other side, sorted. Of a symmetric matrix the rows
            (columns) of the same numbers are read from these products too.
    """

    by_rows: bool
    colours: Ints
    groups: int
    hubs: Ints

    @property
    def products(self) -> int:
        """How many there are in all."""
        return self.groups + len(self.hubs)


def coloured(
    pattern: Pattern,
    *,
    columns: bool,
    hubs: bool,
    symmetric: bool = False,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Colouring:
    """A colouring with few products.

    Args:
        pattern: The pattern.
        columns: Whether there are products from the right.
        hubs: Whether there are products from both sides.
        symmetric: Whether the matrix is symmetric.
        check_cancelled: Called now and then; what it raises ends the work.
    """
    starts, numbers = pattern.in_rows()
    in_rows = np.diff(starts)
    in_columns = np.bincount(numbers, minlength=pattern.width) if len(numbers) else np.zeros(pattern.width, np.int64)
    plans = [(_most(in_columns), 0, True)]
    if columns:
        plans.append((_most(in_rows), 0, False))
    if hubs:
        plans.append((*_fewest(in_columns), True))
        if columns:
            plans.append((*_fewest(in_rows), False))
    _, hub_count, by_rows = min(plans, key=lambda plan: plan[0])
    crossing = in_columns if by_rows else in_rows
    chosen = np.sort(np.argsort(-crossing, kind="stable")[:hub_count]) if hub_count else np.empty(0, np.int64)
    if not by_rows:
        starts, numbers, _ = transposed(starts, numbers, pattern.width)
    width = len(crossing)
    if hub_count:
        is_hub = np.zeros(width, bool)
        is_hub[chosen] = True
        rest = ~is_hub[numbers]
        lines = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        if symmetric:
            rest &= ~is_hub[lines]
        lines, numbers = lines[rest], numbers[rest]
        counts = np.bincount(lines, minlength=len(starts) - 1)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(starts.dtype)
        most = _most(np.bincount(numbers, minlength=width)) if len(numbers) else 0
    else:
        most = _most(crossing)
    colours = _periodic(starts, numbers, width, most)
    if colours is None:
        colours = _greedy(starts, numbers, width, check_cancelled)
    count = int(colours.max(initial=-1)) + 1
    return Colouring(by_rows, colours, count, chosen)


def _most(counts: Ints) -> int:
    return int(counts.max(initial=0))


def _fewest(counts: Ints) -> tuple[int, int]:
    """(Products at the least, hubs) if the lines with the most entries are hubs."""
    ordered = np.append(-np.sort(-counts), 0)
    totals = ordered + np.arange(len(ordered))
    hubs = int(np.argmin(totals))
    return int(totals[hubs]), hubs


def _periodic(starts: Ints, numbers: Ints, width: int, most: int) -> Ints | None:
    """Colours that repeat, as those of a band do: line i has colour i modulo `most`, or a little more.

    A column with `most` entries needs so many colours: a period of that length is the best there is.
    """
    if not most:
        return np.full(len(starts) - 1, -1, np.int8)
    lengths = np.diff(starts)
    for period in range(most, most + _PERIODS):
        if width * period > _TABLE:
            return None
        taken = np.zeros(width * period, bool)
        entries = 0
        for first in range(0, len(lengths), _PART):
            last = min(first + _PART, len(lengths))
            begin, end = int(starts[first]), int(starts[last])
            residues = np.repeat(np.arange(first, last, dtype=np.int64) % period, lengths[first:last])
            taken[numbers[begin:end] * np.int64(period) + residues] = True
            entries = end
        if int(np.count_nonzero(taken)) == entries:
            colours = (np.arange(len(lengths)) % period).astype(_colour_dtype(period))
            colours[lengths == 0] = -1
            return colours
    return None


def _greedy(starts: Ints, numbers: Ints, width: int, check_cancelled: Callable[[], None]) -> Ints:
    """Each line in turn gets the first colour that no line has with which it shares a number.

    The colours that a number has met are the bits of a Python integer: the time is linear in the entries.
    """
    met = [0] * width
    colours = np.full(len(starts) - 1, -1, np.int32)
    for first in range(0, len(colours), _PART):
        check_cancelled()
        last = min(first + _PART, len(colours))
        begin = int(starts[first])
        part = numbers[begin : starts[last]].tolist()
        ends = (starts[first : last + 1] - begin).tolist()
        out: list[Any] = []
        for k in range(last - first):
            line = part[ends[k] : ends[k + 1]]
            if not line:
                out.append(-1)
                continue
            taken = 0
            for number in line:
                taken |= met[number]
            bit = ~taken & (taken + 1)
            for number in line:
                met[number] |= bit
            out.append(bit.bit_length() - 1)
        colours[first:last] = out
    return colours.astype(_colour_dtype(int(colours.max(initial=-1)) + 1))


def _colour_dtype(count: int) -> np.dtype[Any]:
    return np.dtype(np.int8) if count < 1 << 7 else index_dtype(count)
