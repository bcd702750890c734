"""The commands of a remote session that wait for the next batch, and the ids that failed commands never made.

Nothing here waits or touches the network; `channel.py` seals a buffer and applies the server's answers to it.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from teletape.call_site import Where
from teletape.errors import TeletapeError
from teletape_engine import commands
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.commands.results import Answer


class ContextName:
    """A context's id on the server. When the thread or task of its recorder has ended, the context ends there too."""

    __slots__ = ("_ended", "id")

    def __init__(self, id: int, ended: deque[int]) -> None:
        self.id, self._ended = id, ended

    def __del__(self) -> None:
        self._ended.append(self.id)


class Name:
    """An id on the server. When nothing holds the name any more, the id joins the next batch's releases."""

    __slots__ = ("_released", "id")

    def __init__(self, id: int, released: deque[int]) -> None:
        self.id, self._released = id, released

    def __del__(self) -> None:
        self._released.append(self.id)


@dataclass(slots=True)
class SealedBatch:
    """A batch on its way to the server.

    Attributes:
        batch: The batch; if it is sent again, its bytes are the same.
        call_sites: Where the program recorded each command.
        answer: The server's answer, set by the sender's thread.
        lost: Whether the server could not be reached, so that the batch must be sent again.
    """

    batch: Batch
    call_sites: list[Where]
    answer: Future[Answer] = field(default_factory=Future)
    lost: bool = False


class BatchBuffer:
    """Commands recorded since the last batch. The caller holds a lock.

    Args:
        client: The number of this client in the session.
        seq: The sequence number of the first batch.

    Attributes:
        commands: The commands, in order.
        call_sites: Where the program recorded each command.
        nbytes: Bytes of the tensors among them.
        released: Ids that nothing in the program holds any more; finalizers append to it in any thread.
        ended: Contexts whose recorder is gone; finalizers append to it in any thread.
        poisoned: Ids that were never made, and why.
    """

    def __init__(self, client: int, seq: int) -> None:
        self.commands: list[Command] = []
        self.call_sites: list[Where] = []
        self.nbytes = 0
        self.released: deque[int] = deque()
        self.ended: deque[int] = deque()
        self.poisoned: dict[Id, TeletapeError] = {}
        self._context: int | None = None
        self._client, self._seq = client, seq

    def add(self, context: int, command: Command, where: Where) -> None:
        """Appends a command of a context, after a switch to that context if the last command had another."""
        if context != self._context:
            self._switch(context)
        self.commands.append(command)
        self.call_sites.append(where)

    def _switch(self, context: int) -> None:
        """Ends the contexts that have ended here, after their last command, and goes on in this one."""
        while self.ended:
            self.commands.append(commands.ContextEnd(self.ended.popleft()))
            self.call_sites.append(None)
        self._context = context
        self.commands.append(commands.ContextSwitch(context))
        self.call_sites.append(None)

    def cause_in(self, command: Command) -> TeletapeError | None:
        """Returns why a command cannot be sent: it uses an id that was never made. None: it can."""
        if command.structural:
            return None
        return next((self.poisoned[name] for name in commands.mentions(command) if name in self.poisoned), None)

    def poison(self, command: Command, cause: TeletapeError) -> None:
        """Notes that the command's outputs are never made, because of `cause`."""
        for name in commands.outputs(command):
            self.poisoned[name] = cause

    def seal(self) -> SealedBatch:
        """Returns the buffer's commands and releases as the next batch, and empties the buffer."""
        releases = []
        while self.released:
            releases.append(self.released.popleft())
            self.poisoned.pop(releases[-1], None)
        batch = Batch(tuple(self.commands), tuple(releases), self._client, self._seq, secrets.token_bytes(16))
        sealed = SealedBatch(batch, self.call_sites)
        self.commands, self.call_sites, self.nbytes, self._context = [], [], 0, None
        self._seq += 1
        return sealed

    def fail(self, sealed: SealedBatch, index: int, cause: TeletapeError) -> None:
        """Applies a failure: poisons what the batch's commands from `index` on and the waiting ones were to make.

        Structural commands that wait stay: they open and close what the server needs for later commands.
        """
        for command in sealed.batch.commands[index:]:
            if not command.structural:
                self.poison(command, cause)
        waiting = list(zip(self.commands, self.call_sites, strict=True))
        for command, _ in waiting:
            if not command.structural:
                self.poison(command, cause)
        self.commands, self.call_sites = _structural(waiting)
        for name in sealed.batch.releases:  # the program can no longer ask for these
            self.poisoned.pop(name, None)

    def refuse(self, sealed: SealedBatch) -> None:
        """Takes back a batch of which the server executed nothing: its number, structural commands and releases."""
        self._seq = sealed.batch.seq
        structural, call_sites = _structural(zip(sealed.batch.commands, sealed.call_sites, strict=True))
        self.commands[:0] = structural
        self.call_sites[:0] = call_sites
        self.released.extend(name for name in sealed.batch.releases if isinstance(name, int))


def _structural(recorded: Iterable[tuple[Command, Where]]) -> tuple[list[Command], list[Where]]:
    """Returns the structural commands, and their call sites."""
    pairs = [(command, where) for command, where in recorded if command.structural]
    return [command for command, _ in pairs], [where for _, where in pairs]
