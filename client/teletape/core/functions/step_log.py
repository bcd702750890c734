"""The log of a trace: its values, steps and captures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape.core.functions.function_builder import HostStep, Stage, TracedStep
from teletape.core.functions.not_traceable import NotTraceable
from teletape.core.sessions.current import current
from teletape_engine.arrays import HostArray
from teletape_engine.commands import Command
from teletape_engine.recording.values import SpecValue, Variable
from teletape_engine.spec import Spec

STATE: Final = Spec.of((3,), np.dtype(np.int64))  #: The spec of a state of Philox.
MOST_STEPS: Final = 16_384  #: The largest number of members of a list in a frame.


class Symbol(SpecValue):
    """A value of a trace.

    Attributes:
        spec: Its shape and dtype.
        uid: Identifies the value to tapes.
        number: Its number among the trace's values; None for a constant.
        name: Its name when it is printed.
        host: A constant's elements.
    """

    __slots__ = ("host", "name", "number")

    def __init__(self, spec: Spec, number: int | None, name: str, host: HostArray | None = None) -> None:
        super().__init__(spec)
        self.number, self.name, self.host = number, name, host

    def copy(self) -> Symbol:
        """Returns the same value under a new uid."""
        return Symbol(self.spec, self.number, self.name, self.host)


class Capture(NamedTuple):
    """A value from outside that a function uses in addition to its arguments, bound again at each call.

    Attributes:
        kind: tensor, variable, or state (of a draw of random numbers).
        value: An EagerTensor, a recorded variable, or (the draws of a random op, the number of blocks of a draw).
        symbol: Its symbol in the trace.
    """

    kind: str
    value: Any
    symbol: Symbol


def bind_captures(captures: Sequence[Capture]) -> list[Any]:
    """Returns the captures as the current session's values, with a new state for each random op."""
    values: list[Any] = []
    for kind, value, _ in captures:
        if kind == "tensor":
            values.append(value.operand())
        elif kind == "variable":
            values.append(value)
        else:
            values.append(current().draw(*value))
    return values


class StepLog:
    """The values, steps and captures of one trace.

    Attributes:
        steps: The steps, in order.
        captures: The captures, in order.
        variables: The replacement of each variable in the trace, by uid.
        stale: Uids of variables that must be read again before they are used.
        stages: The work of this process, with the number of steps before it.
        values: The symbol of each value, by its number.
    """

    def __init__(self) -> None:
        self.steps: list[TracedStep] = []
        self.captures: list[Capture] = []
        self.variables: dict[int, Variable] = {}
        self.stale: set[int] = set()
        self.stages: list[tuple[int, Stage]] = []
        self.values: list[Symbol] = []
        self._symbols: dict[int, Symbol] = {}

    def new_symbol(self, spec: Spec, name: str) -> Symbol:
        """Returns a new value of the trace."""
        self.values.append(Symbol(spec, len(self.values), name))
        return self.values[-1]

    def add(
        self,
        command: Command | None,
        inputs: Sequence[Any],
        outputs: Sequence[Symbol],
        writes: Sequence[int] = (),
        where: str | None = None,
    ) -> None:
        """Appends a step; see `TracedStep`.

        Raises:
            NotTraceable: There are too many.
        """
        if len(self.steps) >= MOST_STEPS:
            raise NotTraceable(
                f"has more than {MOST_STEPS:,} steps", "a loop of Teletape's (tf.while_loop, tf.scan, tf.map_fn)"
            )
        step_inputs = tuple([_step_input(value) for value in inputs])
        numbers = tuple([output.number for output in outputs])
        self.steps.append(TracedStep(command, step_inputs, numbers, tuple(writes), where))  # type: ignore[arg-type]

    def add_stage(self, action: HostStep, inputs: Sequence[Any], outputs: Sequence[Symbol]) -> None:
        """Appends work of this process after the steps so far."""
        stage_inputs = tuple([_step_input(value) for value in inputs])
        numbers = tuple([output.number for output in outputs])
        self.stages.append((len(self.steps), Stage(action, stage_inputs, numbers)))  # type: ignore[arg-type]

    def in_order(self) -> list[TracedStep | Stage]:
        """Returns the steps, and the work of this process, in order."""
        parts: list[TracedStep | Stage] = list(self.steps)
        for count, stage in reversed(self.stages):
            parts.insert(count, stage)
        return parts

    def capture(self, kind: str, value: Any, spec: Spec, name: str, uid: int | None = None) -> Symbol:
        """Returns the symbol of a capture, which each call binds again; `uid` identifies a tensor or variable."""
        symbol = self.new_symbol(spec, name)
        if uid is not None:
            self._symbols[uid] = symbol
        self.captures.append(Capture(kind, value, symbol))
        return symbol

    def note(self, uid: int, symbol: Symbol) -> None:
        """Sets the symbol of the value or variable with this uid."""
        self._symbols[uid] = symbol

    def symbol_of(self, uid: int) -> Symbol | None:
        """Returns the symbol of a captured tensor or variable, or None."""
        return self._symbols.get(uid)


def _step_input(value: Any) -> Any:
    """Returns an input as a step stores it: a value's number, a Literal, or a constant's elements."""
    if isinstance(value, Symbol):
        return value.host if value.number is None else value.number
    return value
