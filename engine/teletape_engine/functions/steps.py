"""Steps of functions in words and numbers: names in messages, the facts that listings give, and their times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.commands import Command
from teletape_engine.errors import TeletapeError
from teletape_engine.recording.values import Literal


def step_word(command: Command) -> str:
    """The name of a step in messages: its op, or its verb."""
    return command.op if isinstance(command, commands.Call) else command.verb


def failed_step(number: int, command: Command) -> dict[str, Any]:
    """What an error's details say of the step that raised it: `step`, `inputs`, and `op` and `where` if it has them.

    Args:
        number: Of the step in its function, from 0.
        command: The step.
    """
    operands = command.inputs if isinstance(command, commands.Call) else getattr(command, "inputs", ())
    if isinstance(command, commands.Assign):
        operands = (command.variable, command.value)
    facts: dict[str, Any] = {"step": number, "inputs": [_input_facts(operand) for operand in operands]}
    if isinstance(command, commands.Call):
        facts["op"] = command.op
        if command.where is not None:
            facts["where"] = command.where
    return facts


class StepTimes:
    """How often, and for how many seconds, steps of functions run, whoever calls the functions.

    Args:
        clock: Returns seconds.
        name_of: Returns what a row calls a function.

    Attributes:
        rows: For each step that has run: `function`, `step` (its number in the function), `op` or the command's name,
            `calls`, and the `seconds` that were its own and not those of steps in functions that it calls.
        inside: Seconds of the steps so far, those of functions within them included once; to be set to zero by whoever
            asks how long the steps of one command take.
    """

    def __init__(self, clock: Callable[[], float], name_of: Callable[[Any], Any]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.inside = 0.0
        self._clock, self._name_of = clock, name_of
        self._names: dict[Any, Any] = {}  # of functions, which are kept so, and their steps
        self._rows_by_step: dict[int, dict[str, Any]] = {}  # by `id`

    def timed(self, function: Any, steps: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yields steps of a function, each a tuple that begins with it, and notes the time until the next is wanted."""
        for step in steps:
            outside, self.inside = self.inside, 0.0
            began = self._clock()
            yield step
            seconds = self._clock() - began
            row = self._rows_by_step.get(id(step[0])) or self._new_row(function, step[0])
            row["calls"] += 1
            row["seconds"] += seconds - self.inside
            self.inside = outside + seconds

    def _new_row(self, function: Any, step: Any) -> dict[str, Any]:
        if function not in self._names:
            self._names[function] = self._name_of(function)
        number = next(i for i, other in enumerate(function.steps) if other is step)
        row = {
            "function": self._names[function],
            "step": number,
            "op": step_word(step.command),
            "calls": 0,
            "seconds": 0.0,
        }
        self.rows.append(row)
        self._rows_by_step[id(step)] = row
        return row


def note_function(error: TeletapeError, command: Command, function_of: Callable[[Any], Any]) -> None:
    """Adds to the details of an error inside a function by which id a command runs that function.

    Args:
        error: With `function`, if a step of that function raised it.
        command: The command that runs functions.
        function_of: Returns the function that an id of the command names; None: there is none.
    """
    function, error.function = error.function, None
    if function is None:
        return
    names = [name for name in commands.functions_of(command) if isinstance(name, int | str)]
    if len(names) > 1:  # a loop has a condition and a body
        names = [name for name in names if function_of(name) is function][:1]
    if names:
        error.details["function"] = names[0]


def step_facts(command: Command) -> dict[str, Any]:
    """JSON-able facts about a step."""
    if isinstance(command, commands.Call):
        inputs = [_input_facts(operand) for operand in command.inputs]
        return {
            "op": command.op,
            "inputs": inputs,
            "attrs": _attr_facts(command.attrs),
            "outputs": list(command.outputs),
        }
    if isinstance(command, commands.Assign):
        value = _input_facts(command.value)
        return {"do": "assign", "variable": command.variable, "value": value, "mode": command.mode}
    functions = [name for name in commands.functions_of(command) if isinstance(name, int | str)]
    inputs = [_input_facts(operand) for operand in command.inputs]  # type: ignore[attr-defined]  # each has them
    return {"do": command.verb, "functions": functions, "inputs": inputs, "outputs": list(command.outputs)}  # type: ignore[attr-defined]


def _input_facts(operand: Any) -> Any:
    """A name, a number, or of a constant the dtype and shape; an untyped one has no dtype."""
    if isinstance(operand, np.ndarray):
        return {"dtype": operand.dtype.name, "shape": list(operand.shape)}
    if not isinstance(operand, Literal):
        return operand
    return {"shape": list(operand.spec.shape)} if operand.spec.shape else _attr_facts(operand.array)


def _attr_facts(attr: Any) -> Any:
    """JSON-able: a number that JSON has no form for, and a dtype, by its name."""
    if isinstance(attr, Mapping):
        return {name: _attr_facts(value) for name, value in attr.items()}
    if isinstance(attr, list | tuple):
        return [_attr_facts(value) for value in attr]
    if isinstance(attr, np.dtype):
        return attr.name
    plain = attr is None or isinstance(attr, str | int) or (isinstance(attr, float) and math.isfinite(attr))
    return attr if plain else str(attr)
