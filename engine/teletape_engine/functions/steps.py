"""Steps of functions in words: their names in messages, and the facts that listings give."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


def note_function(error: TeletapeError, command: Command) -> None:
    """Adds to the details of an error inside a function by which id a command runs that function.

    Args:
        error: With `step` in its details, if a step of a function raised it.
        command: The command that runs functions.
    """
    names = [name for name in commands.functions_of(command) if isinstance(name, int | str)]
    if "step" in error.details and "function" not in error.details and len(names) == 1:
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
