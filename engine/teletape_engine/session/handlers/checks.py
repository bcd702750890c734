"""Gradient checks: derivatives compared with finite differences, of functions and of replayable tapes."""

from __future__ import annotations

import numpy as np

from teletape_engine import commands
from teletape_engine.checking.function_check import check_function
from teletape_engine.checking.subject import settings_of
from teletape_engine.commands.results import Facts
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.function import Function
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session import operations
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@handles(commands.CheckGradients)
def check_gradients(state: State, command: commands.CheckGradients) -> None:
    """Answers the report on a function."""
    function = state.find(command.function, Function)
    if len(command.inputs) != len(function.inputs):
        raise InvalidArgumentError(
            f"the function takes {len(function.inputs)} inputs ({', '.join(function.inputs)}), found "
            f"{len(command.inputs)}"
        )
    settings = settings_of(command.settings)
    arguments = []
    for operand in state.typed_inputs(function, command.inputs):
        entry = state.entries.get(operand) if isinstance(operand, int | str) else None
        value = entry.value if isinstance(entry, Variable) else state.value(operand)  # no tape sees the variable's read
        arguments.append(np.asarray(state.host(value)))
    report = check_function(state.current.aside(), function, arguments, settings, state.declarations)
    state.results.append(Facts(state.index, report.facts()))


@handles(commands.TapeCheckGradients)
def tape_check_gradients(state: State, command: commands.TapeCheckGradients) -> None:
    """Answers the report on a tape."""
    tape = state.find(command.tape, TapeEntry).tape
    targets = [state.find(name, Value) for name in command.targets]
    sources = [state.find(name, (Value, Variable)) for name in command.sources]
    settings = settings_of(command.settings)
    report = operations.check_derivatives(state.current, tape, targets, sources, settings, state.declarations)
    state.results.append(Facts(state.index, report.facts()))
