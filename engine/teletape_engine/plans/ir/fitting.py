"""Fitting: blocks of memory, each needed from one instruction to another, into as few bytes as possible."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

ALIGNMENT: Final = 64
_SMALL: Final = 4096  #: Bytes below which a place is only used for another block of the same size: found at once.
_FEW: Final = 200  #: Blocks that are fitted a second time, by their size.
_WASTE: Final = 1.02  #: Blocks are fitted again if they take more than this many times what is in use at once.


class Block:
    """Memory that a buffer takes, or several one after the other.

    Attributes:
        size: Bytes, a multiple of `ALIGNMENT`.
        start, end: The first and the last instruction that uses it.
        offset: Where it lies.
    """

    __slots__ = ("end", "offset", "size", "start")

    def __init__(self, size: int, start: int, end: int | None = None) -> None:
        self.size, self.start, self.offset = size, start, 0
        self.end: int | None = end  # None: after the last instruction


def fit(blocks: Sequence[Block], count: int) -> int:
    """Gives each block its offset, apart from all that are needed at the same time; returns the bytes of all.

    Args:
        blocks: By their start.
        count: The number of instructions.
    """
    for block in blocks:
        if block.end is None:
            block.end = count
    small = _fit_small([block for block in blocks if block.size < _SMALL])
    large = [block for block in blocks if block.size >= _SMALL]
    total = _fit_in_order(large)
    if len(large) <= _FEW and total > _WASTE * _most(large):
        offsets = [block.offset for block in large]
        by_size = _fit_by_size(large)
        if by_size < total:
            total = by_size
        else:
            for block, offset in zip(large, offsets, strict=True):
                block.offset = offset
    for block in large:
        block.offset += small
    return small + total


def _fit_small(blocks: Sequence[Block]) -> int:
    """`fit` for small blocks: a place serves blocks of one size, and is found at once."""
    total = 0
    free: dict[int, list[int]] = defaultdict(list)
    for block in _in_order(blocks, lambda block: free[block.size].append(block.offset)):
        places = free[block.size]
        if places:
            block.offset = places.pop()
        else:
            block.offset = total
            total += block.size
    return total


def _fit_in_order(blocks: Sequence[Block]) -> int:
    """`fit` in the order of the program: each block takes the smallest gap that is free when it begins."""
    total = 0
    gaps: list[tuple[int, int]] = []  # offset and size, by offset; no two touch

    def release(block: Block) -> None:
        offset, size = block.offset, block.size
        at = bisect_left(gaps, (offset, 0))
        if at < len(gaps) and gaps[at][0] == offset + size:
            size += gaps.pop(at)[1]
        if at and sum(gaps[at - 1]) == offset:
            offset, before = gaps.pop(at - 1)
            size += before
        insort(gaps, (offset, size))

    for block in _in_order(blocks, release):
        fitting = [(size, offset) for offset, size in gaps if size >= block.size]
        if fitting:
            size, block.offset = min(fitting)
            gaps.remove((block.offset, size))
            if size > block.size:
                insort(gaps, (block.offset + block.size, size - block.size))
        else:
            if gaps and sum(gaps[-1]) == total:
                total = gaps.pop()[0]
            block.offset = total
            total += block.size
    return total


def _fit_by_size(blocks: Sequence[Block]) -> int:
    """`fit` by size: the largest first, each at the lowest place that is free as long as it is needed."""
    total = 0
    fitted: list[Block] = []
    for block in sorted(blocks, key=lambda block: -block.size):
        offset = 0
        for other in fitted:  # by their offset
            if other.start > block.end or block.start > other.end:  # type: ignore[operator]  # all ends are known
                continue
            if other.offset - offset >= block.size:
                break
            offset = max(offset, other.offset + other.size)
        block.offset = offset
        total = max(total, offset + block.size)
        insort(fitted, block, key=lambda block: block.offset)
    return total


def _in_order(blocks: Sequence[Block], release: Callable[[Block], None]) -> Iterator[Block]:
    """The blocks by their start; before each, those that have ended are released."""
    used: list[tuple[int, int, Block]] = []
    for number, block in enumerate(blocks):
        while used and used[0][0] < block.start:
            release(heappop(used)[2])
        yield block
        heappush(used, (block.end, number, block))  # type: ignore[misc]  # all ends are known


def _most(blocks: Sequence[Block]) -> int:
    """The most bytes that are needed at one time."""
    changes: dict[int, int] = defaultdict(int)
    for block in blocks:
        changes[block.start] += block.size
        changes[block.end + 1] -= block.size  # type: ignore[operator]  # all ends are known
    now = most = 0
    for number in sorted(changes):
        now += changes[number]
        most = max(most, now)
    return most
