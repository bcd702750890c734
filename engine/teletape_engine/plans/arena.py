"""Arenas: where in one block of memory each buffer of a program lies. A buffer's place is free after its last use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from teletape_engine.plans.instructions import FILL, PYTHON, UFUNC, Buffer, Instruction, View, span, unbacked

ALIGNMENT: Final = 64


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
    """The instructions that a result needs. A forward function stays: it may refuse the values."""
    needed, used = set(results), []
    for instruction in reversed(instructions):
        if instruction.kind is PYTHON or instruction.output.buffer in needed:
            needed.update([view.buffer for view in instruction.inputs])
            used.append(instruction)
    return used[::-1]


def placed(
    instructions: Sequence[Instruction],
    elsewhere: Collection[Buffer],
    first: Collection[Buffer],
    last: Collection[Buffer],
) -> Places:
    """Where each buffer lies.

    Args:
        instructions: Which use them.
        elsewhere: Buffers that have memory of their own.
        first: Buffers that are written before the first instruction.
        last: Buffers that are read after the last instruction.

    Raises:
        Unplaceable: See `span`.
    """
    ends: dict[Buffer, int] = {}
    for number, instruction in enumerate(instructions):
        for view in (*instruction.inputs, instruction.output):
            ends[view.buffer] = number
    for buffer in last:
        ends[buffer] = len(instructions)
    offsets: dict[Buffer, int] = {}
    free: dict[int, list[int]] = defaultdict(list)
    total = 0
    freed: list[list[Buffer]] = []

    def place(buffer: Buffer) -> None:
        nonlocal total
        size = _size(buffer)
        if free[size]:
            offsets[buffer] = free[size].pop()
        else:
            offsets[buffer] = total
            total += size

    for buffer in first:
        place(buffer)
    for number, instruction in enumerate(instructions):
        views = {view.buffer: view for view in instruction.inputs}
        dying = {buffer: view for buffer, view in views.items() if ends[buffer] == number and buffer in offsets}
        target = instruction.output.buffer
        if target not in offsets and target not in elsewhere and target.constant is None:
            replaced = _replaceable(instruction, dying)
            if replaced is not None:
                offsets[target] = offsets[replaced]
                del dying[replaced]
            else:
                place(target)
        if ends[target] == number and target in offsets:
            dying[target] = instruction.output
        for buffer in dying:
            free[_size(buffer)].append(offsets[buffer])
        freed.append(list(dying))
    return Places(offsets, total, freed)


def poisoned(instructions: Sequence[Instruction], freed: Sequence[Sequence[Buffer]]) -> list[Instruction]:
    """The instructions, and after each of them a fill of what it has freed, so that a later read gives no numbers."""
    filled: list[Instruction] = []
    for instruction, buffers in zip(instructions, freed, strict=True):
        filled.append(instruction)
        for buffer in buffers:
            layout = unbacked(np.empty(span(buffer.layout), np.uint8))
            filled.append(Instruction(FILL, None, (), View(buffer, layout)))
    return filled


def _replaceable(instruction: Instruction, dying: dict[Buffer, View]) -> Buffer | None:
    """A dying input whose memory an elementwise result may take: each element is read before it is written.

    None of complex numbers: in place NumPy multiplies them by another loop, which rounds differently.
    """
    output = instruction.output.layout
    if instruction.kind is not UFUNC or not instruction.output.whole or output.dtype.kind == "c":
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
