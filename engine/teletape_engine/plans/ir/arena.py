"""Arenas: where in one block of memory each buffer of a program lies. A buffer's place is free after its last use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from teletape_engine.plans.ir.buffers import Buffer, View, span, unbacked
from teletape_engine.plans.ir.fitting import ALIGNMENT, Block, fit
from teletape_engine.plans.ir.instructions import Fill, Instruction


class TiledPart(Protocol):
    """Instructions that run tile by tile, one after the other for each tile."""

    @property
    def start(self) -> int:
        """The number of the first one."""

    @property
    def stop(self) -> int:
        """The number after the last one."""

    @property
    def inner(self) -> Collection[Buffer]:
        """Buffers that are as large as one tile."""


_Tiled = TypeVar("_Tiled", bound=TiledPart)


class Places(NamedTuple):
    """Where buffers lie in an arena.

    Attributes:
        offsets: Of each buffer.
        nbytes: Of the arena.
        freed: For each instruction the buffers that nothing reads after it, and whose places nothing has taken by then.
    """

    offsets: dict[Buffer, int]
    nbytes: int
    freed: list[list[Buffer]]


def live(instructions: Sequence[Instruction], results: Collection[Buffer]) -> list[Instruction]:
    """The instructions that a result needs, and those that may refuse the values: checks, and forward functions."""
    needed, used = set(results), []
    for instruction in reversed(instructions):
        if instruction.refuses or instruction.output.buffer in needed:
            needed.update([view.buffer for view in instruction.inputs])
            used.append(instruction)
    return used[::-1]


def placed(
    instructions: Sequence[Instruction],
    elsewhere: Collection[Buffer],
    first: Collection[Buffer],
    last: Collection[Buffer],
    groups: Sequence[TiledPart] = (),
) -> Places:
    """Where each buffer lies.

    Args:
        instructions: Which use them.
        elsewhere: Buffers that have memory of their own.
        first: Buffers that are written before the first instruction.
        last: Buffers that are read after the last instruction.
        groups: What runs tile by tile.

    Raises:
        Unplaceable: See `span`.
    """
    ends = _last_uses(instructions, groups) | dict.fromkeys(last, len(instructions))
    late = {group.stop - 1: list(_views(instructions[group.start : group.stop])) for group in groups}
    blocks: dict[Buffer, Block] = {}
    freed: list[list[Buffer]] = []

    def begin(buffer: Buffer, number: int) -> None:
        blocks[buffer] = Block(_size(buffer), number)

    for buffer in first:
        begin(buffer, -1)
    starting = {group.start: group for group in groups}
    for number, instruction in enumerate(instructions):
        if number in starting:  # what lasts longer than one tile gets no place that a tile uses
            group = starting[number]
            for member in instructions[group.start : group.stop]:
                buffer = member.output.buffer
                if buffer not in group.inner and buffer not in blocks and buffer not in elsewhere:
                    begin(buffer, number)
        views = {view.buffer: view for view in instruction.inputs}
        views |= {view.buffer: view for view in late.get(number, ())}
        dying = {buffer: view for buffer, view in views.items() if ends[buffer] == number and buffer in blocks}
        target = instruction.output.buffer
        if target not in blocks and target not in elsewhere and target.constant is None:
            replaced = _replaceable(instruction, dying)
            if replaced is not None:
                blocks[target] = blocks[replaced]
                del dying[replaced]
            else:
                begin(target, number)
        if ends[target] == number and target in blocks:
            dying[target] = instruction.output
        for buffer in dying:
            blocks[buffer].end = number
        freed.append(list(dying))
    total = fit(list(dict.fromkeys(blocks.values())), len(instructions))
    return Places({buffer: block.offset for buffer, block in blocks.items()}, total, freed)


def steps_of(
    instructions: Sequence[Instruction],
    groups: Sequence[_Tiled] = (),
    freed: Sequence[Sequence[Buffer]] | None = None,
) -> list[Instruction | _Tiled]:
    """What a machine runs: groups in the place of their instructions.

    Args:
        instructions: In order.
        groups: What runs tile by tile.
        freed: If a later read is to give no numbers: for each instruction the buffers that are filled after it.
    """
    steps: list[Instruction | _Tiled] = []
    ends = {group.stop - 1: group for group in groups}
    inside = {number for group in groups for number in range(group.start, group.stop)}
    waiting: list[Buffer] = []
    for number, instruction in enumerate(instructions):
        if number not in inside:
            steps.append(instruction)
        elif number in ends:
            steps.append(ends[number])
        if freed is not None:
            waiting += freed[number]
            if number not in inside or number in ends:
                for buffer in dict.fromkeys(waiting):
                    layout = unbacked(np.empty(span(buffer.layout), np.uint8))
                    steps.append(Fill((), View(buffer, layout)))
                waiting = []
    return steps


def _views(instructions: Sequence[Instruction]) -> Iterator[View]:
    """Everything that these instructions read or write."""
    for instruction in instructions:
        yield from instruction.inputs
        yield instruction.output


def _last_uses(instructions: Sequence[Instruction], groups: Sequence[TiledPart]) -> dict[Buffer, int]:
    """For each buffer the number of the instruction after which nothing uses it."""
    ends = {view.buffer: number for number, each in enumerate(instructions) for view in (*each.inputs, each.output)}
    for group in groups:  # each tile of whole arrays is read after the last instruction of the tile before
        whole = [view.buffer for view in _views(instructions[group.start : group.stop])]
        ends |= {buffer: max(ends[buffer], group.stop - 1) for buffer in whole if buffer not in group.inner}
    return ends


def _replaceable(instruction: Instruction, dying: dict[Buffer, View]) -> Buffer | None:
    """A dying input whose memory an elementwise result may take: each element is read before it is written.

    None of complex numbers: in place NumPy multiplies them by another loop, which rounds differently.
    """
    output = instruction.output.layout
    if not instruction.in_place or not instruction.output.whole or output.dtype.kind == "c":
        return None
    for buffer in dying:
        views = [view for view in instruction.inputs if view.buffer is buffer]
        if all(
            view.whole
            and view.layout.shape == output.shape
            and view.layout.strides == output.strides
            and view.layout.dtype.itemsize == output.dtype.itemsize
            for view in views
        ) and _size(buffer) == _size(instruction.output.buffer):
            return buffer
    return None


def _size(buffer: Buffer) -> int:
    return -(-max(span(buffer.layout), 1) // ALIGNMENT) * ALIGNMENT
