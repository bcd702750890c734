"""The execution of a batch, command by command: what a failure does, and when ids are released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from teletape_engine import commands, object_bytes
from teletape_engine.commands import Batch, Command, Id, OnFailure
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import CancelledError, InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.session.entries import Poison
from teletape_engine.session.handlers import HANDLERS
from teletape_engine.session.state import MAIN, State

_REPORTED: Final = 16  #: Commands between two reports of progress.


def run_batch(state: State, batch: Batch, cancelled: Callable[[], bool]) -> Answer:
    """Executes the commands one after the other, and the releases.

    Args:
        state: Of the session.
        batch: The batch.
        cancelled: As of `Session.execute`.
    """
    due = last_mentions(batch)
    rollback, poison = batch.on_failure is OnFailure.ROLLBACK, batch.on_failure is OnFailure.POISON
    before = set(state.entries) if rollback else set()
    state.results = []
    state.current = state.context(MAIN)
    failure: Failure | None = None
    for name in due.get(-1, ()):  # no command mentions it: its memory is free for the commands
        state.release(name)
    for index, command in enumerate(batch.commands):
        state.index = index
        if failure is None:
            try:
                if not index % _REPORTED:
                    state.monitor.command(index)
                    state.memory.look(len(state.current.context.tapes))
                if cancelled():
                    raise CancelledError("the batch was cancelled")
            except Exception as error:
                failure = _failure(state, index, command, error)
        if failure is None or command.structural:
            try:
                HANDLERS[command.__class__](state, command)
            except Exception as error:
                failure = failure or _failure(state, index, command, error)
        if failure is not None and poison:
            _poison(state, command, failure)
        if due and index in due:
            for name in due[index]:
                state.release(name)
    if batch.temporaries:
        state.forget(batch.temporaries)
    if failure is not None and rollback:
        state.forget(state.entries.keys() - before)
    state.note_highest()
    return Answer(tuple(state.results), failure, state.memory.estimate())


def _failure(state: State, index: int, command: Command, error: Exception) -> Failure:
    if isinstance(error, MemoryError) and not isinstance(error, TeletapeError):
        error = ResourceExhaustedError(f"command {command.verb!r}: the device has no memory left: {error}")
    elif not isinstance(error, TeletapeError):  # a defect of one handler must not end the session
        error = InternalError(f"command {command.verb!r} failed inside the engine: {type(error).__name__}: {error}")
    op = command.op if isinstance(command, commands.Call) else error.details.get("op")
    where = command.where if isinstance(command, commands.Call) else error.details.get("where")
    details = {name: value for name, value in error.details.items() if name not in ("op", "where")}
    return Failure(index, error.code, error.message, op, where, details)


def _poison(state: State, command: Command, failure: Failure) -> None:
    """The ids that the command should have made name the failure; not in a full session, which could not hold them."""
    if state.memory.full:
        return
    for name in commands.outputs(command):
        if name not in state.released:
            state.entries.setdefault(name, Poison(failure.message))
            state.memory.noted += object_bytes.NAMED


def last_mentions(batch: Batch) -> dict[int, list[Id]]:
    """For each command index the released ids that it is the last to mention; -1: no command mentions them."""
    if not batch.releases:
        return {}
    pending = set(batch.releases)
    due: dict[int, list[Id]] = {}
    for index in range(len(batch.commands) - 1, -1, -1):
        for name in commands.mentions(batch.commands[index]):
            if name in pending:
                pending.discard(name)
                due.setdefault(index, []).append(name)
        if not pending:
            break
    if pending:
        due[-1] = [name for name in dict.fromkeys(batch.releases) if name in pending]
    return due
