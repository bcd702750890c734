"""Saved functions: define, call."""

from __future__ import annotations

from teletape_engine import commands
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.graph import Literal
from teletape_engine.program import Program
from teletape_engine.state import State
from teletape_engine.verbs.registry import does


@does(commands.DefineProgram)
def define(state: State, command: commands.DefineProgram) -> None:
    """A program under its id."""
    state.name(command.id, Program(command.inputs, command.calls, command.outputs))


@does(commands.CallProgram)
def call_program(state: State, command: commands.CallProgram) -> None:
    """Runs it in the current context."""
    program = state.find(command.program, Program)
    if len(command.outputs) != len(program.outputs):
        raise InvalidArgumentError(f"the program has {len(program.outputs)} outputs, found {len(command.outputs)} ids")
    made = program.run(state.current, [state.input(one) for one in command.inputs])
    for name, value in zip(command.outputs, made, strict=True):
        state.name(name, state.value(value) if isinstance(value, Literal) else value)
