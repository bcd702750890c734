"""The life of tapes: open, watch, pause, resume, reset."""

from __future__ import annotations

from teletape_engine import commands, object_bytes
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import Poison, TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@handles(commands.TapeOpen)
def tape_open(state: State, command: commands.TapeOpen) -> None:
    """Opens a tape, active in the current context."""
    for parent in command.parents:
        state.find(parent, TapeEntry)
    state.memory.note(object_bytes.TAPE, "a tape")
    tape = Tape(persistent=command.persistent, watch_accessed=command.watch_accessed, replayable=command.replayable)
    state.name(command.id, TapeEntry(tape, state.current.context, command.parents))
    state.current.context.open(tape)


@handles(commands.TapeWatch)
def tape_watch(state: State, command: commands.TapeWatch) -> None:
    """The tape watches tensors and variables; failed ids are skipped."""
    entry = state.find(command.tape, TapeEntry)
    for name in command.tensors:
        if not isinstance(state.entries.get(name), Poison):
            entry.context.watch(entry.tape, [state.find(name, (Value, Variable))])


@handles(commands.TapePause)
def tape_pause(state: State, command: commands.TapePause) -> None:
    """The tape stops recording."""
    entry = state.find(command.tape, TapeEntry)
    entry.context.pause(entry.tape)


@handles(commands.TapeResume)
def tape_resume(state: State, command: commands.TapeResume) -> None:
    """The tape records again, in the current context."""
    entry = state.find(command.tape, TapeEntry)
    if entry.tape in entry.context.tapes and entry.context is not state.current.context:
        raise TapeStateError(f"tape {command.tape!r} is recording in another context: pause it there first")
    entry.context = state.current.context
    state.current.context.open(entry.tape)


@handles(commands.TapeReset)
def tape_reset(state: State, command: commands.TapeReset) -> None:
    """The tape forgets everything and goes on recording."""
    entry = state.find(command.tape, TapeEntry)
    entry.context.reset(entry.tape)
