"""A machine: one arena, and the calls of a plan on views of it. A plan has as many as run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.plans.arena import ALIGNMENT
from teletape_engine.plans.instructions import Buffer, Instruction, View, address
from teletape_engine.plans.native import ROW, Library, Row, Uncompiled, fill
from teletape_engine.plans.walk import Call, call_of, view_of

BLOCK: Final = 64  #: Calls between two checks for a cancel; of rows, as many as work on `_ELEMENTS`.
_ELEMENTS: Final = 1 << 20
_ROW_COST: Final = 64  #: Elements that a row costs at least.


class Misaligned(Exception):
    """An array whose elements do not lie where loops in C expect them."""


class Machine:
    """Runs instructions.

    Args:
        instructions: In order.
        offsets: Of buffers in the arena.
        nbytes: Of the arena.
        slots: For each buffer that has memory of its own in each run, its number among `memory`.
        library: What runs rows; None: each instruction is a call from Python.

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
        library: Library | None = None,
    ) -> None:
        self.arena = np.empty(nbytes + ALIGNMENT, np.uint8)
        self._start = -address(self.arena) % ALIGNMENT
        self._offsets, self._slots, self._library = offsets, slots, library
        self._holes: list[tuple[list[Call], int, Call, list[tuple[int, int, View]]]] = []
        self._patches: list[tuple[Any, int, int]] = []  # where an address is written, of which slot, plus bytes
        self._owned: list[Any] = []  # tables, and what rows refer to
        self.blocks: list[list[Call]] = []
        self.staged: list[Any] = []
        self.results: list[Any] = []
        self._compile(instructions)

    # ----------------------------------------------------------------------------------------------------- compilation
    def _compile(self, instructions: Sequence[Instruction]) -> None:
        block: list[Call] = []
        rows: list[Row] = []
        cost = 0
        for instruction in instructions:
            compiled = self._rows(instruction)
            if compiled is None:
                self._close_rows(rows, block)
                block.append(self._call(instruction, block))
                cost += _ELEMENTS // BLOCK
            else:
                rows += compiled
                cost += max(_ROW_COST, sum(view.layout.size for view in (*instruction.inputs, instruction.output)))
            if cost >= _ELEMENTS:
                self._close_rows(rows, block)
                self.blocks.append(block)
                block, cost = [], 0
        self._close_rows(rows, block)
        if block:
            self.blocks.append(block)

    def _rows(self, instruction: Instruction) -> list[Row] | None:
        if self._library is None:
            return None
        for view in (*instruction.inputs, instruction.output):
            if view.buffer in self._slots and not view.buffer.layout.ndim:
                return None  # may be a NumPy scalar, which has no address
        try:
            return self._library.rows(instruction)
        except Uncompiled:
            return None

    def _close_rows(self, rows: list[Row], block: list[Call]) -> None:
        """Turns the rows so far into one call."""
        if not rows:
            return
        assert self._library is not None
        table = np.zeros(len(rows), ROW)
        for number, row in enumerate(rows):
            data = []
            for position, (view, start) in enumerate(row.operands):
                slot = self._slots.get(view.buffer)
                if slot is None:
                    data.append(self._address(view) + start)
                else:
                    data.append(0)
                    self._patches.append((table["data"][number, position : position + 1], slot, view.offset + start))
            fill(table, number, row, data)
            self._owned.append(row.owned)
        self._owned.append(table)
        block.append((_checked, (self._library.run, address(table), len(table))))
        rows.clear()

    def _address(self, view: View) -> int:
        constant = view.buffer.constant
        if constant is not None:
            self._owned.append(constant)
            return address(constant) + view.offset
        return address(self.arena) + self._start + self._offsets[view.buffer] + view.offset

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

    # ------------------------------------------------------------------------------------------------------- execution
    def run(self, memory: Sequence[Any], check_cancelled: Callable[[], None]) -> None:
        """Runs all instructions.

        Args:
            memory: The array of each slot.
            check_cancelled: Called between blocks; what it raises ends the run.

        Raises:
            Misaligned: One of the arrays is for the interpreter.
        """
        if self._patches:
            starts = {slot: _start(memory[slot]) for slot in {slot for _, slot, _ in self._patches}}
            for target, slot, offset in self._patches:
                target[0] = starts[slot] + offset
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


def _start(array: Any) -> int:
    if not array.flags.aligned:
        raise Misaligned
    return address(array)


def _checked(run: Callable[[int, int], int], table: int, count: int) -> None:
    if run(table, count):
        raise RuntimeError("a loop in C has failed")
