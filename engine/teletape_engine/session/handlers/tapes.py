"""The life of tapes: open, watch, pause, resume, own, reset."""

from __future__ import annotations

from teletape_engine import commands, object_bytes
from teletape_engine.commands import Id
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid, Value, Variable
from teletape_engine.session.entries import Poison, TapeEntry, tensor_uid
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
    if command.release_outputs:
        state.forget(_live_outputs(state, entry))
        entry.outputs = {}


@handles(commands.TapeOwn)
def tape_own(state: State, command: commands.TapeOwn) -> None:
    """Notes tensors as outputs; of very many those are forgotten that have ended."""
    entry = state.find(command.tape, TapeEntry)
    before = len(entry.outputs)
    for name in command.tensors:
        uid = tensor_uid(state.entries.get(name))
        if uid is not None:
            entry.outputs[name] = uid
    state.memory.noted += object_bytes.WATCHED * (len(entry.outputs) - before)
    if len(entry.outputs) > 2 * len(state.entries):
        entry.outputs = _live_outputs(state, entry)


def _live_outputs(state: State, entry: TapeEntry) -> dict[Id, Uid]:
    """The tape's outputs whose ids still name what was noted."""
    return {name: uid for name, uid in entry.outputs.items() if tensor_uid(state.entries.get(name)) == uid}
