"""A machine: one arena, and the calls of a plan on views of it. A plan has as many as run at the same time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.plans.ir.buffers import CHARS, Buffer, View, address, view_of
from teletape_engine.plans.ir.fitting import ALIGNMENT
from teletape_engine.plans.ir.instructions import Instruction
from teletape_engine.plans.ir.rows import LoopRow, Uncompiled
from teletape_engine.plans.run.c.native import Library
from teletape_engine.plans.run.c.records import HEAD, PATCH, PROGRAM, ROW, STAGE, table_of, words
from teletape_engine.plans.run.tiles import threads
from teletape_engine.plans.run.tiles.groups import Group
from teletape_engine.plans.run.tiles.workers import TileRows

BLOCK: Final = 64  #: Calls between two checks for a cancel; of rows, as many as work on `_ELEMENTS`.
_ELEMENTS: Final = 1 << 20
ROW_COST: Final = 64  #: Elements that a row costs at least.
_BRIEF: Final = 1 << 15  #: Elements up to which rows keep the GIL.
_DATA: Final = ROW.fields["data"][1]  # type: ignore[index]  # it has fields


#: A function, and its arguments.
Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


class Misaligned(Exception):
    """An array whose elements do not lie where loops in C expect them."""


class LoopFailed(Exception):
    """A loop in C has failed."""


class Staged(NamedTuple):
    """An argument that is copied into the arena before a run.

    Attributes:
        view: Where to.
        argument: Its number.
        is_scalar: Whether it is a NumPy scalar.
    """

    view: View
    argument: int
    is_scalar: bool


class Machine:
    """Runs instructions.

    Args:
        instructions: In order.
        offsets: Of buffers in the arena.
        nbytes: Of the arena.
        slots: For each buffer that has memory of its own in each run, its number among `memory`.
        staged: The arguments that a run copies into the arena.
        count: The number of slots and arguments.
        library: What runs rows; None: each instruction is a call from Python.
        most_threads: The most threads that tiles run on.

    Attributes:
        arena: The memory.
        blocks: The calls.
        bare: Whether no call is Python's: it gives no warnings.
        results: Views in which results are after a run; None: they have memory of their own.
    """

    _may_be_scalars = True  #: Whether a slot without axes may be a NumPy scalar.

    def __init__(
        self,
        instructions: Sequence[Instruction | Group],
        offsets: dict[Buffer, int],
        nbytes: int,
        slots: dict[Buffer, int],
        staged: Sequence[Staged] = (),
        count: int = 0,
        library: Library | None = None,
        most_threads: int = 1,
    ) -> None:
        self.arena = np.empty(nbytes + ALIGNMENT, np.uint8)
        self._start = -address(self.arena) % ALIGNMENT
        self._base = address(self.arena) + self._start
        self._offsets, self._slots, self._library = offsets, slots, library
        self._holes: list[tuple[list[Call], int, Call, list[tuple[int, int, View]]]] = []
        self._patches: list[tuple[int, int, int, int]] = []  # `records.PATCH`
        self._owned: list[Any] = []  # tables, and what rows refer to
        self.blocks: list[list[Call]] = []
        self.results: list[Any] = []
        self.bare = True
        self._most_threads = most_threads
        self._tiles: list[TileRows] = []
        self._staged: list[tuple[Any, int]] = []
        self._whole: Callable[[int, int], int] | None = None
        self._compile(instructions)
        if library is not None:
            self._program_of(staged, count, library)
        else:
            self._staged = [(self.view(view), argument) for view, argument, _ in staged]

    # ----------------------------------------------------------------------------------------------------- compilation
    def _compile(self, instructions: Sequence[Instruction | Group]) -> None:
        block: list[Call] = []
        rows: list[LoopRow] = []
        cost, keeps_gil = 0, True
        for instruction in instructions:
            if isinstance(instruction, Group):
                self._close_rows(rows, block, keeps_gil)
                if block:
                    self.blocks.append(block)
                assert self._library is not None
                rows_of = TileRows(
                    instruction, self._library, self._slots, self._offsets, self._address, self._most_threads
                )
                self._patches += rows_of.patches
                self._tiles.append(rows_of)
                for row in rows_of.rows:
                    block = []
                    self._close_rows([row], block, False)
                    self.blocks.append(block)
                block, cost, keeps_gil = [], 0, True
                continue
            compiled = self._rows(instruction)
            if compiled is None:
                self._close_rows(rows, block, keeps_gil)
                block.append(self._call(instruction, block))
                self.bare = False
                cost += _ELEMENTS // BLOCK
            else:
                rows += compiled
                cost += max(ROW_COST, instruction.cost)
                keeps_gil = keeps_gil and cost <= _BRIEF
            if cost >= _ELEMENTS:
                self._close_rows(rows, block, keeps_gil)
                self.blocks.append(block)
                block, cost, keeps_gil = [], 0, True
        self._close_rows(rows, block, keeps_gil)
        if block:
            self.blocks.append(block)

    def _rows(self, instruction: Instruction) -> list[LoopRow] | None:
        if self._library is None:
            return None
        for view in instruction.views:
            if view.buffer in self._slots and not view.buffer.layout.ndim and self._may_be_scalars:
                return None  # may be a NumPy scalar, which has no address
        try:
            return self._library.rows(instruction)
        except Uncompiled:
            return None

    def _close_rows(self, rows: list[LoopRow], block: list[Call], keeps_gil: bool) -> None:
        """Turns the rows so far into one call; a short one keeps the GIL."""
        if not rows:
            return
        assert self._library is not None
        run = self._library.run_with_gil if keeps_gil else self._library.run
        block.append((_checked, (run, *self._table(rows))))
        rows.clear()

    def _table(self, rows: Sequence[LoopRow]) -> tuple[int, int]:
        """A table of rows: its address and length."""
        lines: list[tuple[int, ...]] = []
        patches: list[tuple[int, int, int, int]] = []
        for number, row in enumerate(rows):
            data = []
            for position, (view, start) in enumerate(row.operands):
                slot = self._slots.get(view.buffer)
                if slot is None:
                    data.append(self._address(view) + start)
                else:
                    data.append(0)
                    at = number * ROW.itemsize + _DATA + position * 8
                    patches.append((slot, view.offset + start, view.layout.dtype.alignment, at))
            lines.append(words(row, data))
            self._owned.append(row.owned)
        table = table_of(lines) if lines else np.zeros(0, ROW)
        begin = address(table)
        self._patches += [(slot, offset, alignment, begin + at) for slot, offset, alignment, at in patches]
        self._owned.append(table)
        return begin, len(table)

    def _program_of(self, staged: Sequence[Staged], count: int, library: Library) -> None:
        """Prepares what a run begins with; if the blocks are one call of rows, a run is one call of the library."""
        direct = [each for each in staged if not (each.is_scalar and each.view.layout.dtype.char not in CHARS)]
        self._staged = [(self.view(each.view), each.argument) for each in staged if each not in direct]
        stages, patches = np.zeros(len(direct), STAGE), np.array(self._patches, PATCH)
        for number, (view, argument, is_scalar) in enumerate(direct):
            stages[number] = argument, is_scalar, view.layout.nbytes, self._address(view)
        program = np.zeros(1, PROGRAM)
        rows, rows_count = 0, 0
        if self.bare and len(self.blocks) == 1 and not self._staged:
            (((_, (run, rows, rows_count)),),) = self.blocks
            self._whole = library.call_with_gil if run is library.run_with_gil else library.call
        program[0] = rows, rows_count, len(stages), len(patches), HEAD, address(stages), address(patches)
        self._objects = (ctypes.c_void_p * count)()
        self._owned += [stages, patches, program]
        self._program, self._objects_at = address(program), ctypes.addressof(self._objects)

    def _address(self, view: View) -> int:
        constant = view.buffer.constant
        if constant is not None:
            self._owned.append(constant)
            return address(constant) + view.offset
        return self._base + self._offsets[view.buffer] + view.offset

    def _call(self, instruction: Instruction, block: list[Call]) -> Call:
        function = instruction.call()
        arrays: list[Any] = []
        holes = []
        for position, view in enumerate(instruction.views):
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
    def begin(self, memory: Sequence[Any]) -> None:
        """Copies arguments into the arena, and writes addresses into rows.

        Raises:
            Misaligned: One of the arrays is for the interpreter.
        """
        if self._library is not None:
            self._objects[:] = [*map(id, memory)]
            if self._library.begin(self._program, self._objects_at):
                raise Misaligned
        for array, argument in self._staged:
            np.copyto(array, memory[argument])

    def run(self, memory: Sequence[Any], check_cancelled: Callable[[], None]) -> None:
        """Runs all instructions.

        Args:
            memory: The array of each slot.
            check_cancelled: Called between blocks; what it raises ends the run.

        Raises:
            Misaligned: One of the arrays is for the interpreter.
        """
        if self._tiles:
            allowed = threads.count()
            for group in self._tiles:
                group.limit(allowed)
        if self._whole is not None:
            objects = self._objects
            for at, array in enumerate(memory):
                objects[at] = id(array)
            check_cancelled()
            status = self._whole(self._program, self._objects_at)
            if status:
                raise Misaligned if status > 0 else LoopFailed
            return
        self.begin(memory)
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


def _checked(run: Callable[[int, int], int], table: int, count: int) -> None:
    if run(table, count):
        raise LoopFailed
