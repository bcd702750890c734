"""Gradients against differences: of saved programs, and of replayable tapes."""

from __future__ import annotations

import numpy as np

from teletape_engine import commands
from teletape_engine.checking.gradient_check import check_program, check_tape, settings_of
from teletape_engine.commands.results import Facts
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.programs.program import Program
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@handles(commands.CheckGradients)
def check_gradients(state: State, command: commands.CheckGradients) -> None:
    """The report on a program, as facts."""
    program = state.find(command.function, Program)
    if len(command.inputs) != len(program.inputs):
        raise InvalidArgumentError(
            f"the program takes {len(program.inputs)} inputs ({', '.join(program.inputs)}), found {len(command.inputs)}"
        )
    settings = settings_of(command.settings)
    aside = Executor(state.backend, state.memory, state.watch)
    arguments = []
    for one in command.inputs:
        held = state.entries.get(one) if isinstance(one, int | str) else None
        value = held.value if isinstance(held, Variable) else state.value(one)  # a variable is read on no tape
        arguments.append(np.asarray(state.host(value)))
    report = check_program(aside, program, arguments, settings, state.declarations)
    state.results.append(Facts(state.index, report.facts()))


@handles(commands.TapeCheckGradients)
def tape_check_gradients(state: State, command: commands.TapeCheckGradients) -> None:
    """The report on a tape, as facts."""
    tape = state.find(command.tape, TapeEntry).tape
    targets = [state.find(one, Value) for one in command.targets]
    sources = [state.find(one, (Value, Variable)) for one in command.sources]
    aside = Executor(state.backend, state.memory, state.watch)
    report = check_tape(
        aside,
        tape,
        targets,
        sources,
        settings_of(command.settings),
        state.declarations,
    )
    state.results.append(Facts(state.index, report.facts()))
