"""The execution of a batch, command by command: what a failure does, and when ids are released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from teletape_engine import commands, object_bytes
from teletape_engine.commands import Batch, Command, Id, OnFailure
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import (
    CancelledError,
    IdInUseError,
    InternalError,
    ResourceExhaustedError,
    TeletapeError,
)
from teletape_engine.functions.steps import note_function
from teletape_engine.session.entries import Poison
from teletape_engine.session.handlers import HANDLERS
from teletape_engine.session.names import Replacements
from teletape_engine.session.state import MAIN, State

Handlers: TypeAlias = Mapping[type[Command], Callable[[Any, Any], None]]

#: The failures of a batch that runs for the first time.
NOTHING_FAILED: Final[Mapping[int, Failure]] = MappingProxyType({})
_REPORTED: Final = 16  #: Commands between two reports of progress.


def run_batch(
    state: State,
    batch: Batch,
    cancelled: Callable[[], bool],
    recorded: Mapping[int, Failure] = NOTHING_FAILED,
    handlers: Handlers = HANDLERS,
) -> Answer:
    """Executes the commands one after the other, and the releases.

    Args:
        state: Of the session.
        batch: The batch.
        cancelled: As of `Session.execute`.
        recorded: Failures by the command's position: these commands fail so, and do not run.
        handlers: What each command does, by its class.
    """
    due = last_mentions(batch)
    rollback, by_strand = batch.on_failure is OnFailure.ROLLBACK, batch.on_failure is OnFailure.STRAND
    poison = by_strand or batch.on_failure is OnFailure.POISON
    strand: Id = MAIN
    new = _new_ids(state, batch) if rollback else ()
    state.results = []
    state.replacements = Replacements(undoable=rollback) if batch.replace else None
    state.current = state.context(MAIN)
    state.timing = None
    monitor = state.monitor
    failures = state.failures = {}
    for name in due.get(-1, ()):  # no command mentions it: its memory is free for the commands
        state.release(name)
    for index, command in enumerate(batch.commands):
        state.index = monitor.done = index
        if by_strand:
            strand = strand_after(strand, command)
        failure = failures.get(strand) if failures else None
        if failure is None and not (by_strand and command.structural):
            try:
                if not index % _REPORTED:
                    monitor.command(index)
                    state.memory.look(len(state.current.context.tapes))
                if cancelled():
                    raise CancelledError("the batch was cancelled")
            except Exception as error:
                failure = failures[strand] = _failure(state, index, command, error)
        if recorded and failure is None and index in recorded:
            failure = failures[strand] = recorded[index]
        if failure is None or command.structural:
            try:
                if batch.replace:
                    _check_new_ids(state, command)
                handlers[command.__class__](state, command)
            except Exception as error:
                if failure is None:
                    failure = failures[strand] = _failure(state, index, command, error)
        if failure is not None and poison:
            _poison(state, command, failure)
        for name in due.get(index, ()):
            state.release(name)
        if state.timing is not None:
            state.timing.note()
    if failures and rollback:
        state.undo_replacements(batch.releases)
        state.forget(new)
    elif state.replacements is not None:
        state.replacements.end()
    state.replacements = None
    if batch.temporaries:
        state.forget(batch.temporaries)
    state.note_highest()
    return _answer(state, state.memory.estimate())


def _new_ids(state: State, batch: Batch) -> list[Id]:
    """The ids that the batch creates and that name nothing before it."""
    names = [name for command in batch.commands for name in commands.outputs(command)]
    return [name for name in names if name not in state.entries]


def _answer(state: State, bytes_in_use: int) -> Answer:
    failures = [*state.failures.values()]
    first = failures[0] if failures else None
    return Answer(tuple(state.results), first, bytes_in_use, tuple(failures[1:]))


def strand_after(strand: Id, command: Command) -> Id:
    """Returns the strand that a command, and what follows it, belongs to."""
    if isinstance(command, commands.ContextSwitch):
        return command.context if command.strand is None else command.strand
    return strand


def broken_off(state: State, batch: Batch, error: Exception) -> Answer:
    """The answer to a batch that an error outside its commands has ended, as when there is no memory for the answer.

    Args:
        state: Of the session, whose `index` is that of the command that ran last.
        batch: The batch.
        error: The error.
    """
    if not isinstance(error, TeletapeError):
        cls = ResourceExhaustedError if isinstance(error, MemoryError) else InternalError
        error = cls(f"the batch failed inside the engine after it had begun: {type(error).__name__}: {error}")
    first = Failure(state.index, error.code, error.message, None, None, error.details)
    by_strand = batch.on_failure is OnFailure.STRAND
    strand: Id = MAIN
    for index, command in enumerate(batch.commands):
        if by_strand:
            strand = strand_after(strand, command)
        if index >= state.index and not (command.structural and by_strand):
            failure = state.failures.setdefault(strand, replace(first, index=index))
            if by_strand or batch.on_failure is OnFailure.POISON:
                _poison(state, command, failure)
    if not state.failures:
        state.failures[strand] = first
    if state.replacements is not None:
        state.replacements.end()
        state.replacements = None
    for name in batch.releases:
        state.release(name)
    state.forget(batch.temporaries)
    state.note_highest()
    return _answer(state, state.memory.spent)


def _check_new_ids(state: State, command: Command) -> None:
    """Checks, before a command of a batch that replaces ids runs, that it can have its new ids: all or none.

    Raises:
        IdInUseError: It cannot have one, or names one twice.
    """
    names = commands.outputs(command)
    for name in names:
        state.check_new(name, command.creates)
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise IdInUseError(f"the id {name!r} is given to two results of one command: choose another for one", id=name)


def _failure(state: State, index: int, command: Command, error: Exception) -> Failure:
    if isinstance(error, MemoryError) and not isinstance(error, TeletapeError):
        error = ResourceExhaustedError(f"command {command.verb!r}: the device has no memory left: {error}")
    elif not isinstance(error, TeletapeError):  # a defect of one handler must not end the session
        error = InternalError(f"command {command.verb!r} failed inside the engine: {type(error).__name__}: {error}")
    else:
        note_function(error, command, state.entries.get)
    op = command.op if isinstance(command, commands.Call) else error.details.get("op")
    where = command.where if isinstance(command, commands.Call) else error.details.get("where")
    details = {name: value for name, value in error.details.items() if name not in ("op", "where")}
    return Failure(index, error.code, error.message, op, where, details)


def _poison(state: State, command: Command, failure: Failure) -> None:
    """The ids that the command should have made name the failure; not in a full session, which could not hold them."""
    if state.memory.full:
        return
    if state.replacements is not None and not command.structural:  # what the id names so far is not what it will name
        for name in commands.outputs(command):
            state.poison_replaced(name, command.creates, failure.message)
            state.memory.noted += object_bytes.NAMED
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
