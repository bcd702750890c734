"""A machine: one arena, and the calls of a plan on views of it. A plan has as many as run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.plans.arena import ALIGNMENT
from teletape_engine.plans.instructions import Buffer, Instruction, View, address
from teletape_engine.plans.walk import Call, call_of, view_of

BLOCK: Final = 64  #: Calls between two checks for a cancel.


class Machine:
    """Runs instructions.

    Args:
        instructions: In order.
        offsets: Of buffers in the arena.
        nbytes: Of the arena.
        slots: For each buffer that has memory of its own in each run, its number among `memory`.

    Attributes:
        arena: The memory.
        blocks: The calls.
        staged: Views into which arguments are copied before a run.
        results: Views in which results are after a run; None: they have memory of their own.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        offsets: dict[Buffer, int],
        nbytes: int,
        slots: dict[Buffer, int],
    ) -> None:
        self.arena = np.empty(nbytes + ALIGNMENT, np.uint8)
        self._start = -address(self.arena) % ALIGNMENT
        self._offsets, self._slots = offsets, slots
        self._holes: list[tuple[list[Call], int, Call, list[tuple[int, int, View]]]] = []
        self.blocks: list[list[Call]] = []
        self.staged: list[Any] = []
        self.results: list[Any] = []
        for at in range(0, len(instructions), BLOCK):
            block: list[Call] = []
            for instruction in instructions[at : at + BLOCK]:
                block.append(self._call(instruction, block))
            self.blocks.append(block)

    def _call(self, instruction: Instruction, block: list[Call]) -> Call:
        function = call_of(instruction)
        arrays: list[Any] = []
        holes = []
        for position, view in enumerate((*instruction.inputs, instruction.output)):
            slot = self._slots.get(view.buffer)
            if slot is None:
                arrays.append(self.view(view))
            else:
                arrays.append(None)
                holes.append((position, slot, view))
        call = function, tuple(arrays)
        if holes:
            self._holes.append((block, len(block), call, holes))
        return call

    def view(self, view: View) -> Any:
        """The array of a view of a buffer in the arena, or of a constant."""
        constant = view.buffer.constant
        if constant is not None:
            return view_of(constant, view)
        layout = view.layout
        start = self._start + self._offsets[view.buffer] + view.offset
        return np.ndarray(layout.shape, layout.dtype, self.arena, start, layout.strides)

    def run(self, memory: Sequence[Any], check_cancelled: Callable[[], None]) -> None:
        """Runs all instructions.

        Args:
            memory: The array of each slot.
            check_cancelled: Called between blocks; what it raises ends the run.
        """
        try:
            for block, at, (function, arguments), holes in self._holes:
                filled = [*arguments]
                for position, slot, view in holes:
                    filled[position] = view_of(memory[slot], view)
                block[at] = function, tuple(filled)
            for block in self.blocks:
                check_cancelled()
                for function, arguments in block:
                    function(*arguments)
        finally:
            for block, at, call, _ in self._holes:  # the arrays belong to the caller
                block[at] = call

    def poison(self) -> None:
        """Fills the arena with bytes that are not a number, so that a read of what was not written is noticed."""
        self.arena.fill(0xFF)
