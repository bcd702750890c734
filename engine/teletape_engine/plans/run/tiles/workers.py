"""The rows of a group, for each thread that takes a part of its elements.

The elements are cut into stretches, which threads take in turn. Sums stay the same whatever the number of threads is: a
stretch begins and ends with a leaf of the tree of halves, and its leaves are summed by the thread that takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.plans.ir.buffers import Buffer, View, address, span
from teletape_engine.plans.ir.fitting import ALIGNMENT
from teletape_engine.plans.ir.rows import LoopRow
from teletape_engine.plans.ir.splitting import MULTIPLE
from teletape_engine.plans.run.c.native import Library
from teletape_engine.plans.run.c.records import FEED, GROUP, PART, ROW, STRETCH, WORKER, fill
from teletape_engine.plans.run.tiles.groups import Group

ELEMENTS: Final = 1 << 20  #: On which the rows of a stretch work together, about.
_STRETCHES: Final = 32  #: For each thread between two checks for a cancel, of about a quarter of a millisecond each.
_LONGEST: Final = 4  #: Times the usual length: if a stretch would be longer, one thread takes all elements.
_LENGTH: Final = 4  #: As an operand: the length of a row, in `rows.c`.


class TileRows:
    """What runs a group.

    Args:
        group: The group.
        library: What runs rows.
        slots: Buffers that have memory of their own in each run, by their number.
        offsets: Of buffers in the arena.
        address_of: Where a view is, of the arena or of a constant.
        threads: The most threads.

    Attributes:
        rows: In order; between two of them there is time to look for a cancel.
        patches: Of addresses, as `records.PATCH`.
    """

    def __init__(
        self,
        group: Group,
        library: Library,
        slots: dict[Buffer, int],
        offsets: dict[Buffer, int],
        address_of: Callable[[View], int],
        threads: int,
    ) -> None:
        self._group, self._library, self._slots, self._address_of = group, library, slots, address_of
        self._own: list[Any] = [row for _, row in group.whole]  # what addresses belong to
        wanted = max(1, ELEMENTS // (group.most * len(group.members))) * group.most
        stretches = stretches_of(group, wanted, shared=threads > 1)
        if stretches is None:
            threads, stretches = 1, stretches_of(group, wanted, shared=False)
        self._threads = threads
        self._bases: list[int] = []
        self.patches: list[tuple[int, int, int, int]] = []
        slots_of_bases: list[tuple[int, int, int, int]] = []
        parts: list[tuple[int, int, int, int]] = []
        data: list[list[View | int]] = []
        for number, ((_, row), member) in enumerate(zip(group.whole, group.members, strict=True)):
            steps = (member.inputs[0].layout.itemsize, 0) if member.gathers else row.strides
            data.append([])
            parts.append((number, _LENGTH, 0, 0))
            for position, (view, step) in enumerate(zip((*member.inputs, member.output), steps, strict=False)):
                slot = slots.get(view.buffer)
                if view.buffer in group.inner:
                    data[-1].append(view)
                    continue
                data[-1].append(0 if slot is not None else address_of(view))
                if slot is not None:
                    slots_of_bases.append((slot, view.offset, view.layout.dtype.alignment, len(self._bases)))
                elif not step:
                    continue
                parts.append((number, position, len(self._bases), step))
                self._bases.append(data[-1][-1])  # type: ignore[arg-type]  # a number
        bases, part_table = np.array(self._bases, np.uint64), np.array(parts, PART)
        self.patches = [(slot, start, size, address(bases) + 8 * at) for slot, start, size, at in slots_of_bases]
        moved = _Moved(group, offsets)
        workers = np.array([self._worker(number, data, moved) for number in range(threads)], WORKER)
        table = np.array(stretches, STRETCH)
        feeds = sum(member.gathers for member in group.members)
        self._context = np.zeros(1, GROUP)
        self._context[0] = (
            *(len(group.members), len(parts), group.most, feeds, threads),
            *map(address, (part_table, bases, workers, table)),
        )
        self._own += [bases, part_table, workers, table]
        function, most = library.symbol("tiles"), 1 if threads == 1 else _STRETCHES * threads
        self.rows = [
            LoopRow(function, address(self._context), 0, (), min(most, len(table) - first), (first,), None)
            for first in range(0, len(table), most)
        ]

    def limit(self, threads: int) -> None:
        """Sets the most threads that the next runs take."""
        self._context["worker_count"] = min(threads, self._threads)

    def _worker(self, number: int, data: Sequence[Sequence[View | int]], moved: _Moved) -> tuple[int, int]:
        """The addresses of one thread's rows and sums."""
        group = self._group
        memory = moved.memory() if number else None
        table, feeds = np.zeros(len(group.members), ROW), []
        for at, ((_, row), member) in enumerate(zip(group.whole, group.members, strict=True)):
            if member.gathers:
                row, feed = self._feed(row, member.output)
                feeds.append(feed)
            addresses = [
                view
                if not isinstance(view, View)
                else self._address_of(view)
                if memory is None
                else address(memory) + moved.places[view.buffer] + view.offset
                for view in data[at]
            ]
            fill(table, at, row, addresses)
        feed_table = np.array(feeds, np.uint64)
        self._own += [memory, table, feed_table]
        return address(table), address(feed_table)

    def _feed(self, row: LoopRow, sums: View) -> tuple[LoopRow, int]:
        """The row that sums tiles, and the address of what it remembers from one tile to the next."""
        group, size = self._group, sums.layout.itemsize
        leaves, buffer = np.array([*group.leaves, 0], np.int64), np.empty(2 * group.most * size, np.uint8)
        feed = np.zeros(1, FEED)
        feed[0] = row.function, row.context, row.auxiliary, address(buffer), size, 0, 0, address(leaves)
        self._own += [leaves, buffer, feed]
        return LoopRow(self._library.symbol("fed"), address(feed), 0, (), group.most, (size, 0), None), address(feed)


class _Moved:
    """Memory of a thread for what lies between instructions: as in the arena, without what is not of the group.

    Attributes:
        places: Of each buffer in it.
        nbytes: Of all.
    """

    def __init__(self, group: Group, offsets: dict[Buffer, int]) -> None:
        self.places: dict[Buffer, int] = {}
        self.nbytes, stop = 0, 0
        for buffer in sorted(group.inner, key=offsets.__getitem__):
            start = offsets[buffer]
            after = start + -(-span(buffer.layout) // ALIGNMENT) * ALIGNMENT
            if start >= stop:  # nothing before it reaches into it
                self._shift = self.nbytes - start
            self.places[buffer] = start + self._shift
            stop = max(stop, after)
            self.nbytes = stop + self._shift

    def memory(self) -> Any:
        """New memory, aligned."""
        memory = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        return memory[-address(memory) % ALIGNMENT :]


def stretches_of(group: Group, wanted: int, *, shared: bool) -> list[tuple[int, int, int]] | None:
    """Cuts the elements of a group: (start, stop, number of the first leaf, or -1 if sums go on from the one before).

    Args:
        group: The group.
        wanted: Elements of a stretch, a multiple of those of a tile.
        shared: Whether several threads take them; None is returned if that is not possible.
    """
    if not shared:
        starts = range(0, group.length, wanted)
        return [(start, min(start + wanted, group.length), -1 if start else 0) for start in starts]
    stretches: list[tuple[int, int, int]] = []
    start = at = leaf = 0
    for number, length in enumerate(group.leaves):
        at += length
        if at == group.length or (at - start >= wanted and not at % MULTIPLE):
            if at - start > _LONGEST * wanted + 2 * group.most:
                return None
            stretches.append((start, at, leaf))
            start, leaf = at, number + 1
    return stretches


def inner_bytes(groups: Sequence[Group]) -> int:
    """Bytes that one more thread takes, at the most."""
    return sum([span(buffer.layout) + ALIGNMENT for group in groups for buffer in group.inner])
