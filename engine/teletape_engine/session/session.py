"""A session: the interface through which callers change and read the tensors, variables and tapes of one owner.

All changes are batches given to `execute`, so that a record of the batches is a record of the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from teletape_engine import commands, object_bytes
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Batch, Command, Id, OnFailure, Repetition
from teletape_engine.commands.results import Answer, Failure
from teletape_engine.errors import CancelledError, InternalError, ResourceExhaustedError, TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.recording.progress import Progress, TimeBudget, no_progress
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import Entry, Poison, facts
from teletape_engine.session.handlers import HANDLERS
from teletape_engine.session.state import MAIN, State

_REPORTED: Final = 16  #: Commands between two reports of progress.


class Session:
    """Executes batches on one device, and reports what it has.

    Args:
        device: cpu, gpu or gpu:N.
        memory_limit: Bytes that the arrays may take; None for no limit.
        max_iterations: Iterations that the loops of one command may run; None for no limit.

    Raises:
        UnimplementedError: There is no such device here.
    """

    def __init__(
        self, device: str = "cpu", *, memory_limit: int | None = None, max_iterations: int | None = None
    ) -> None:
        self._state = State(device, memory_limit=memory_limit, max_iterations=max_iterations)

    def __repr__(self) -> str:
        return f"<Session on {self._state.backend.device}, {len(self._state.entries)} ids>"

    # -------------------------------------------------------------------------------------------------------- changes
    def execute(
        self,
        batch: Batch | Repetition,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Progress = no_progress,
        budget: TimeBudget | None = None,
    ) -> Answer:
        """Runs a batch. A batch that repeats its client's last one is not run again: the kept answer is returned.

        Args:
            batch: Commands, releases, and what happens to ids after a failure; or the structure of an earlier batch
                with other contents, which were checked.
            cancelled: Called between the steps of the batch: commands, iterations, some ops of a function or gradient.
                Once it returns true, the rest of the batch fails with CancelledError. What it raises is a failure of
                the batch too.
            progress: Called from time to time; see `progress.Progress`.
            budget: The batch's time: an op that would take longer than what is left fails before it begins. None: there
                is no limit.

        Raises:
            UnknownIdError: The batch's client is not attached.
            SequenceConflictError: The client's last batch had this seq, and was another batch.
            AnswerDroppedError: It repeats the client's last batch, whose answer is not kept any more.
            OutOfTurnError: The seq is not the client's next.
        """
        state = self._state
        if batch.client:
            earlier = state.clients.answer_to_retry(batch)
            if earlier is not None:
                return earlier
        if isinstance(batch, Repetition):
            batch = batch.batch()
        with state.backend.quiet():
            state.monitor.begin(cancelled, progress, len(batch.commands), budget)
            answer = _run(state, batch, cancelled)
        if batch.client:
            state.clients.keep_answer(batch, answer)
        return answer

    # ---------------------------------------------------------------------------------------------------------- reads
    def last_answer(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer to a client's last batch if it had this number and nonce: a retry needs no decoding."""
        return self._state.clients.last_answer(client, seq, nonce)

    def forget_old_answers(self) -> None:
        """Ends the keeping of clients' answers that were kept at the last call already: call it from time to time."""
        self._state.clients.forget_old_answers()

    def describe(self, name: Id) -> dict[str, Any]:
        """What an id names, as JSON-able facts with `id` and `kind`.

        Raises:
            UnknownIdError, ReleasedIdError: It names nothing.
            PoisonedError: It names a value that was never made.
        """
        return facts(name, self._state.find(name, (Value, Variable, SlicesValue, Entry, Function)))

    def listing(self, kind: str) -> list[dict[str, Any]]:
        """The facts of everything of one kind: tensor, slices, variable, function, tape."""
        entries = self._state.entries.items()
        described = [facts(name, entry) for name, entry in entries if not isinstance(entry, Poison)]
        return [each for each in described if each["kind"] == kind]

    def bytes_in_use(self) -> int:
        """Bytes of all arrays that ids, tapes and kept answers keep alive, each buffer once."""
        return self._state.bytes_in_use()


# -------------------------------------------------------------------------------------------------------------- batches
def _run(state: State, batch: Batch, cancelled: Callable[[], bool]) -> Answer:
    due = _last_mentions(batch)
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


def _last_mentions(batch: Batch) -> dict[int, list[Id]]:
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
