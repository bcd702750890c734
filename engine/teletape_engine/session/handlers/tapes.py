"""The life of tapes, contexts, and what is declared for all of them."""

from __future__ import annotations

from teletape_engine import commands
from teletape_engine.errors import InvalidArgumentError, TapeStateError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.handlers.registry import does
from teletape_engine.session.state import HeldTape, Poison, State


@does(commands.TapeOpen)
def tape_open(state: State, command: commands.TapeOpen) -> None:
    """A tape, active in the current context."""
    tape = Tape(persistent=command.persistent, watch_accessed=command.watch_accessed, replayable=command.replayable)
    state.name(command.id, HeldTape(tape, state.current))
    state.current.open(tape)


@does(commands.TapeWatch)
def tape_watch(state: State, command: commands.TapeWatch) -> None:
    """The tape follows those that were made; ids of failed ones are passed over."""
    held = state.find(command.tape, HeldTape)
    for name in command.values:
        if not isinstance(state.names.get(name), Poison):
            held.context.watch(held.tape, [state.find(name, (Value, Variable))])


@does(commands.TapePause)
def tape_pause(state: State, command: commands.TapePause) -> None:
    """It stops recording."""
    held = state.find(command.tape, HeldTape)
    held.context.pause(held.tape)


@does(commands.TapeResume)
def tape_resume(state: State, command: commands.TapeResume) -> None:
    """It records again, in the current context."""
    held = state.find(command.tape, HeldTape)
    if held.tape in held.context.tapes and held.context is not state.current:
        raise TapeStateError(f"tape {command.tape!r} is recording in another context: pause it there first")
    held.context = state.current
    state.current.open(held.tape)


@does(commands.TapeReset)
def tape_reset(state: State, command: commands.TapeReset) -> None:
    """It forgets, and goes on."""
    held = state.find(command.tape, HeldTape)
    held.context.reset(held.tape)


@does(commands.ContextSwitch)
def switch(state: State, command: commands.ContextSwitch) -> None:
    """The commands that follow belong to that context."""
    state.current = state.context(command.context)


@does(commands.Declare)
def declare(state: State, command: commands.Declare) -> None:
    """For every tape asked from now on."""
    if (command.no_gradient is None) == (command.registered is None):
        raise InvalidArgumentError("declare: one op type, as no_gradient or as registered")
    if command.no_gradient is not None:
        state.declarations.declare_no_gradient(command.no_gradient)
    elif command.registered is not None:
        state.declarations.register(command.registered)
