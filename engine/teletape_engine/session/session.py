"""The engine's front door: clients, and the execution of their batches on what a session holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.commands.results import Answer, Failure, Fetched, SlicesArrays
from teletape_engine.errors import (
    CancelledError,
    InternalError,
    OutOfTurnError,
    ResourceExhaustedError,
    SequenceConflictError,
    TeletapeError,
    UnknownIdError,
)
from teletape_engine.programs.program import Program
from teletape_engine.recording.progress import Progress, no_progress
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.handlers import VERBS
from teletape_engine.session.state import CLIENT_BITS, MAIN, Held, Poison, State
from teletape_engine.spec import Spec

_REPORTED: Final = 16  #: Commands between two reports of progress.


class Attached(NamedTuple):
    """A client's place in a session: its number, its next sequence number, its first free id."""

    client: int
    seq: int
    first_id: int


@dataclass(slots=True)
class _Client:
    seq: int = 1
    nonce: bytes = b""
    answer: Answer | None = None


class Session(State):
    """Executes batches on one device. Arguments and errors as `State`."""

    def __init__(
        self, device: str = "cpu", *, memory_limit: int | None = None, most_iterations: int | None = None
    ) -> None:
        self._clients: dict[int, _Client] = {}
        super().__init__(device, memory_limit=memory_limit, most_iterations=most_iterations)

    # -------------------------------------------------------------------------------------------------------- clients
    def attach(self) -> Attached:
        """A new client of this session."""
        client = len(self._clients) + 1
        self._clients[client] = _Client()
        return Attached(client, 1, client << CLIENT_BITS)

    # ------------------------------------------------------------------------------------------------------ execution
    def execute(
        self,
        batch: Batch,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Progress = no_progress,
        poison: bool = True,
    ) -> Answer:
        """Runs a batch. A batch seen before (same client, seq and nonce) is not run again: its answer is given again.

        Args:
            batch: Commands and releases.
            cancelled: Called between commands and between the iterations of a loop; once true, the rest of the batch
                fails with CancelledError. What it raises is a failure too.
            progress: Told from time to time; see `progress.Progress`.
            poison: After a failure the ids of values that were not made stand for it. Without, they stay free: for
                callers who name nothing before they have seen the answer.

        Raises:
            SequenceConflictError: Another batch had this seq.
            OutOfTurnError: The seq is not the client's next.
        """
        client = self._clients.get(batch.client) if batch.client else None
        if batch.client:
            if client is None:
                raise UnknownIdError(f"client {batch.client} is not attached to this session: attach first")
            known = self._replay(client, batch)
            if known is not None:
                return known
        with self.backend.quiet():
            self.watch.begin(cancelled, progress, len(batch.commands))
            answer = self._run(batch, cancelled, poison)
        if client is not None:
            client.answer, client.nonce = answer, batch.nonce
            client.seq = batch.seq + 1
        return answer

    def kept(self, client: int, seq: int, nonce: bytes) -> Answer | None:
        """The answer of a client's last batch, if that was this one: what a retry gets again."""
        known = self._clients.get(client)
        return known.answer if known is not None and (seq, nonce) == (known.seq - 1, known.nonce) else None

    @staticmethod
    def _replay(client: _Client, batch: Batch) -> Answer | None:
        if batch.seq == client.seq:
            return None
        if batch.seq == client.seq - 1 and client.answer is not None:
            if batch.nonce == client.nonce:
                return client.answer
            raise SequenceConflictError(
                f"client {batch.client} has sent another batch as seq {batch.seq}: two programs share one client id; "
                "attach again for one of its own",
                expected=client.seq,
            )
        raise OutOfTurnError(
            f"client {batch.client}: expected seq {client.seq}, found {batch.seq}", expected=client.seq
        )

    def _run(self, batch: Batch, cancelled: Callable[[], bool], poison: bool) -> Answer:
        todo = batch.commands
        due = _last_mentions(batch)
        self.results = []
        self.current = self.context(MAIN)
        failure: Failure | None = None
        for name in due.get(-1, ()):  # no command needs it: the room is for those that come
            self.release(name)
        for index, command in enumerate(todo):
            self.index = index
            if failure is None:
                try:
                    if not index % _REPORTED:
                        self.watch.command(index)
                    if cancelled():
                        raise CancelledError("the batch was cancelled by its caller")
                except Exception as error:
                    failure = self._failed(index, command, error)
            if failure is None or command.structural:
                try:
                    VERBS[command.__class__](self, command)
                except Exception as error:
                    failure = failure or self._failed(index, command, error)
            if failure is not None and poison:
                self._poison(command, failure)
            if due and index in due:
                for name in due[index]:
                    self.release(name)
        self.note_highest()
        return Answer(tuple(self.results), failure, self.memory.estimate())

    def _failed(self, index: int, command: Command, error: Exception) -> Failure:
        if isinstance(error, MemoryError) and not isinstance(error, TeletapeError):
            error = ResourceExhaustedError(f"command {command.verb!r}: the device has no memory left: {error}")
        elif not isinstance(error, TeletapeError):  # a defect here must not end the session's other work
            error = InternalError(f"command {command.verb!r} failed inside the engine: {type(error).__name__}: {error}")
        op = command.op if isinstance(command, commands.Call) else error.details.get("op")
        where = command.where if isinstance(command, commands.Call) else error.details.get("where")
        details = {k: v for k, v in error.details.items() if k not in ("op", "where")}
        versions = {name: one.version for name, one in self.names.items() if isinstance(one, Variable)}
        return Failure(index, error.code, error.message, op, where, details, versions)

    def _poison(self, command: Command, failure: Failure) -> None:
        for name in commands.outputs(command):
            if name not in self.released:
                self.names.setdefault(name, Poison(failure.message))

    # -------------------------------------------------------------------------------------------------------- looking
    def describe(self, name: Id) -> dict[str, Any]:
        """What is under an id, as JSON-able facts.

        Raises:
            UnknownIdError, ReleasedIdError, PoisonedError: Nothing is.
        """
        thing = self.find(name, (Value, Variable, SlicesValue, Held, Program))
        return self._facts(name, thing)

    def _facts(self, name: Id, thing: Any) -> dict[str, Any]:
        if isinstance(thing, Held):
            return {"id": name, "kind": thing.kind, **thing.facts()}
        if isinstance(thing, Program):
            return {"id": name, "kind": "function", **thing.facts()}
        spec: Spec = thing.spec
        facts: dict[str, Any] = {
            "id": name,
            "kind": "tensor",
            "dtype": spec.dtype.name,
            "shape": list(spec.shape),
            "bytes": spec.nbytes,
        }
        if isinstance(thing, Variable):
            facts |= {"kind": "variable", "trainable": thing.trainable, "version": thing.version, "name": thing.name}
        elif isinstance(thing, SlicesValue):
            held = thing.values.spec.nbytes + thing.indices.spec.nbytes
            facts |= {"kind": "slices", "bytes": held, "rows": thing.indices.spec.shape[0]}
        return facts

    def listing(self, kind: str) -> list[dict[str, Any]]:
        """Everything named, of one kind: value, slices, variable, program, tape."""
        facts = [self._facts(name, one) for name, one in self.names.items() if not isinstance(one, Poison)]
        return [one for one in facts if one["kind"] == kind]

    def kept_arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """Numbers on the host that a client may ask for again."""
        for client in self._clients.values():
            for result in client.answer.results if client.answer is not None else ():
                if isinstance(result, Fetched):
                    yield from result.array[:2] if isinstance(result.array, SlicesArrays) else (result.array,)


def _last_mentions(batch: Batch) -> dict[int, list[Id]]:
    """For each command index the released ids that it is the last to mention; -1: mentioned by none."""
    if not batch.releases:
        return {}
    pending = dict.fromkeys(batch.releases)
    due: dict[int, list[Id]] = {}
    for index in range(len(batch.commands) - 1, -1, -1):
        for name in commands.mentions(batch.commands[index]):
            if name in pending:
                del pending[name]
                due.setdefault(index, []).append(name)
        if not pending:
            break
    if pending:
        due[-1] = list(pending)
    return due
