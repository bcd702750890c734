"""Saved functions: define them, and the commands that run them."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands
from teletape_engine.commands.results import Facts, Specs
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.programs import (
    control_flow,  # noqa: F401  # its flows register themselves
    custom_call,  # noqa: F401  # likewise
)
from teletape_engine.programs.program import FLOWS, Program
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@handles(commands.DefineFunction)
def define(state: State, command: commands.DefineFunction) -> None:
    """A program under its id; those that it takes stay alive with it."""
    made = Program(command.inputs, command.steps, command.outputs, lambda given: state.find(given, Program))
    state.name(command.id, made)


def run(state: State, command: Any) -> None:
    """A command that takes programs: runs it in the current context; where only values tell specs, answers them."""
    programs = [state.find(one, Program) for one in commands.functions_of(command) if one is not None]
    inputs = [state.argument(one) for one in command.inputs]
    state.watch.loops(state.index)
    told = state.current.decided = [] if getattr(command, "report_decisions", False) else None
    try:
        made = FLOWS[type(command)](state.current, command, programs, inputs)
    finally:
        state.current.decided = None
    if told is not None:
        state.results.append(Facts(state.index, {"decisions": told}))
    if len(command.outputs) != len(made):
        raise InvalidArgumentError(f"there are {len(made)} results, found {len(command.outputs)} ids for them")
    made = [state.value(value) if isinstance(value, Literal | Variable) else value for value in made]
    for name, value in zip(command.outputs, made, strict=True):
        state.name(name, value)
    if any(program.dynamic for program in programs):
        state.results.append(Specs(state.index, tuple([value.spec for value in made])))


for kind in FLOWS:
    handles(kind)(run)
