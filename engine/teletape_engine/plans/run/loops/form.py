"""Records of a loop's plan: its arguments, the values that an iteration passes to the next, and how a run has ended."""

from __future__ import annotations

from typing import NamedTuple

from teletape_engine.plans.ir.buffers import Buffer
from teletape_engine.recording.values import Value


class LoopForm(NamedTuple):
    """What the arguments of an iteration are.

    Attributes:
        carried: The first so many are carried from one iteration to the next.
        elements: The next so many are elements of arrays; the others are captured.
        reverse: Whether the elements are taken from the last to the first.
    """

    carried: int
    elements: int = 0
    reverse: bool = False


class LoopState(NamedTuple):
    """What one iteration leaves to the next.

    Attributes:
        buffer: Where it lies, at the beginning and at the end of an iteration.
        argument: Its number.
        is_scalar: Whether it is a NumPy scalar.
        next_uid: The uid of the next value, in the iteration that was lowered.
        times: How often an iteration assigns to the variable; 0: it is no variable.
    """

    buffer: Buffer
    argument: int
    is_scalar: bool
    next_uid: int
    times: int


class LoopOutcome(NamedTuple):
    """How a run of iterations has ended.

    Attributes:
        iterations: Their number.
        values: What they carried.
        ended: Whether the condition is false now.
        failed: Whether the next iteration is for the interpreter, which will say why.
    """

    iterations: int
    values: list[Value]
    ended: bool
    failed: bool
