"""A machine that repeats two tables of rows: a condition and a body."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.plans.ir.buffers import Unplaceable, View, address
from teletape_engine.plans.ir.instructions import Instruction
from teletape_engine.plans.ir.rows import LoopRow
from teletape_engine.plans.run.c.records import MOVE, TURN
from teletape_engine.plans.run.loops.form import LoopState
from teletape_engine.plans.run.machine import Machine
from teletape_engine.plans.run.tiles.groups import Group

RUNS: Final = 1  #: What `loop_of` in `rows.c` returns: there were as many iterations as there might be;
ENDED: Final = 0  #: the condition is false;
FAILED: Final = -1  #: a loop of NumPy has failed.


class LoopMachine(Machine):
    """One arena of a loop, its two tables of rows, and what moves on.

    Args:
        split: The number of instructions that compute the condition.
        flag: Where the condition is; None: there is none.
        steps: For each slot that moves on from one iteration to the next by how many bytes.
        states: What one iteration leaves to the next.
        *args: As of `Machine`.

    Raises:
        Unplaceable: An instruction that has no rows.

    Attributes:
        state_views: The arrays of the states.
    """

    _may_be_scalars = False  # elements are rows of arrays

    def __init__(
        self, split: int, flag: View | None, steps: dict[int, int], states: Sequence[LoopState], *args: Any
    ) -> None:
        self._split, self._flag, self._steps = split, flag, steps
        self._count = ctypes.c_ssize_t()
        super().__init__(*args)
        self.state_views = [self.view(View(state.buffer, state.buffer.layout)) for state in states]

    def _compile(self, instructions: Sequence[Instruction | Group]) -> None:
        assert self._library is not None
        tables = []
        for part in (instructions[: self._split], instructions[self._split :]):
            rows: list[LoopRow] = []
            for instruction in part:
                compiled = None if isinstance(instruction, Group) else self._rows(instruction)
                if compiled is None:
                    raise Unplaceable("an instruction without rows")
                rows += compiled
            tables.append(self._table(rows))
        steps = [(at, self._steps[slot]) for slot, _, _, at in self._patches if slot in self._steps]
        moves = np.array(steps, MOVE)
        (condition, condition_count), (body, body_count) = tables
        turn = np.zeros(1, TURN)
        flag, size = (0, 0) if self._flag is None else (self._address(self._flag), self._flag.layout.nbytes)
        turn[0] = condition, body, condition_count, body_count, flag, size, len(moves), address(moves)
        self._owned += [moves, turn]
        self._turn = address(turn)

    def iterate(self, most: int) -> tuple[int, int]:
        """Makes iterations; returns how many, and what stopped them: `RUNS`, `ENDED` or `FAILED`."""
        assert self._library is not None
        state = self._library.loop_of(self._turn, most, ctypes.addressof(self._count))
        return self._count.value, state
