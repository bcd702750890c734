"""Tiles: long elementwise instructions one after the other become a group that is run tile by tile, within the cache.

What lies between two instructions of a group is as large as one tile. A sum over all elements gets them tile by tile
too: NumPy sums by halves, so the elements are gathered until they are a leaf of this tree, and the sums of leaves are
added as NumPy adds halves. The bytes are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from teletape_engine.plans.ir.buffers import Buffer, View, unbacked
from teletape_engine.plans.ir.instructions import Instruction, TreeSum
from teletape_engine.plans.ir.rows import LoopRow, Uncompiled
from teletape_engine.plans.run.c.native import Library

_LEAST: Final = 1 << 17  #: Elements of arrays that are worth tiles.
TILE: Final = 8192  #: Elements of a tile: the arrays of a few instructions lie in the cache.


class Group(NamedTuple):
    """Instructions that run tile by tile.

    Attributes:
        start, stop: Their numbers, in the list with tiles.
        whole: The instructions on whole arrays, each with its row (of a sum: the last one).
        members: The same with buffers as large as a tile.
        length: Elements of a whole array.
        most: Elements of a tile; the last one may be shorter.
        leaves: Elements of each leaf of a sum.
        inner: The buffers that are as large as one tile.
    """

    start: int
    stop: int
    whole: tuple[tuple[Instruction, LoopRow], ...]
    members: tuple[Instruction, ...]
    length: int
    most: int
    leaves: tuple[int, ...]
    inner: frozenset[Buffer]


def tiled(
    instructions: Sequence[Instruction], results: Collection[Buffer], library: Library
) -> tuple[list[Instruction], list[Group]]:
    """The instructions with inner buffers replaced, in an order in which groups are long; and the groups.

    Args:
        instructions: In order.
        results: Buffers that are read after the last of them.
        library: Gives the rows.
    """
    if all(view.layout.size < _LEAST for each in instructions for view in (*each.inputs, each.output)):
        return list(instructions), []
    uses: dict[Buffer, int] = {}
    writes: dict[Buffer, int] = {}
    for instruction in instructions:
        writes[instruction.output.buffer] = writes.get(instruction.output.buffer, 0) + 1
        for view in instruction.inputs:
            uses[view.buffer] = uses.get(view.buffer, 0) + 1
    done: list[Instruction] = []
    groups: list[Group] = []
    pending = _Pending(uses, writes, results, library)
    for instruction in instructions:
        if not pending.takes(instruction):
            pending.close(done, groups)
            if not pending.takes(instruction):
                done.append(instruction)
    pending.close(done, groups)
    return done, groups


class _Pending:
    """A group that is being collected, and small instructions that come before and after it."""

    def __init__(
        self, uses: dict[Buffer, int], writes: dict[Buffer, int], results: Collection[Buffer], library: Library
    ) -> None:
        self._uses, self._writes, self._results, self._library = uses, writes, results, library
        self._clear()

    def _clear(self) -> None:
        self._members: list[Instruction] = []
        self._rows: list[LoopRow] = []
        self._before: list[Instruction] = []
        self._after: list[Instruction] = []
        self._length = 0
        self._written: set[Buffer] = set()  # by members, elementwise
        self._late: set[Buffer] = set()  # known only after the group
        self._read: set[Buffer] = set()

    def takes(self, instruction: Instruction) -> bool:
        """Whether the instruction belongs to the group, or may come before or after it."""
        output, inputs = instruction.output.buffer, [view.buffer for view in instruction.inputs]
        length = instruction.tiled_length
        length = length if length >= _LEAST else 0
        joins = length and self._length in (0, length) and self._writes[output] == 1
        row = self._row_of(instruction, length) if joins and not self._late.intersection(inputs) else None
        if row is not None:
            if instruction.gathers:
                if instruction.inputs[0].buffer not in self._written:
                    return False
                self._late.add(output)
            elif all(view.is_all for view in instruction.inputs if view.buffer in self._written):
                self._written.add(output)
            else:
                return False
            self._length = length
            self._members.append(instruction)
            self._rows.append(row)
            self._read.update(inputs)
            return True
        if not self._members or length or self._writes[output] != 1 or output in self._read:
            return False
        if self._late.intersection(inputs):
            self._after.append(instruction)
            self._late.add(output)
            return True
        if self._written.intersection(inputs):
            return False
        self._before.append(instruction)
        return True

    def _row_of(self, instruction: Instruction, length: int) -> LoopRow | None:
        """Its row, if one loop runs over all elements; None: it is for no group."""
        if any(view.buffer in self._results and not view.buffer.layout.ndim for view in instruction.inputs):
            return None  # may be a NumPy scalar, which has no address
        try:
            rows = self._library.rows(instruction)
        except Uncompiled:
            return None
        if not instruction.is_same_in_parts():
            return None
        row = rows[-1]
        sizes = [view.layout.itemsize for view, _ in row.operands]
        walks = all(stride in (0, size) for stride, size in zip(row.strides, sizes, strict=True))
        return row if row.n == length and walks and not any(start for _, start in row.operands) else None

    def close(self, done: list[Instruction], groups: list[Group]) -> None:
        """Ends the group: notes it, if it is worth it."""
        members = self._members
        done += self._before
        inner = self._inner()
        if not inner:
            done += members
        else:
            leaves = _leaves(self._length)
            small = {buffer: _tile(buffer) for buffer in inner}
            first = len(done)
            trees: list[Instruction] = []
            for member in members:
                views = tuple([small.get(view.buffer, view) for view in member.inputs])
                output = small.get(member.output.buffer, member.output)
                if member.gathers:
                    layout = np.empty(len(leaves), member.output.layout.dtype)
                    output = View(Buffer(layout), layout)
                    trees.append(TreeSum((output,), member.output, None, (self._length, TILE)))
                done.append(member.on(views, output))
            tiles = frozenset([view.buffer for view in small.values()])
            whole, parts = tuple(zip(members, self._rows, strict=True)), tuple(done[first:])
            groups.append(Group(first, len(done), whole, parts, self._length, TILE, leaves, tiles))
            done += trees
        done += self._after
        self._clear()

    def _inner(self) -> set[Buffer]:
        """Buffers that only members read."""
        counts: dict[Buffer, int] = {}
        for member in self._members:
            for view in member.inputs:
                counts[view.buffer] = counts.get(view.buffer, 0) + 1
        return {
            buffer
            for buffer in self._written
            if counts.get(buffer, 0) == self._uses.get(buffer, 0) and buffer not in self._results
        }


def _leaves(length: int) -> tuple[int, ...]:
    """The leaves of NumPy's tree of halves, cut until they are as short as a tile."""
    if length <= TILE:
        return (length,)
    half = length // 2
    half -= half % 8
    return _leaves(half) + _leaves(length - half)


def _tile(buffer: Buffer) -> View:
    layout = unbacked(np.empty(TILE, buffer.layout.dtype))
    return View(Buffer(layout), layout)
