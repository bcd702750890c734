"""The commands of a remote session that wait for the next batch, and the ids that failed commands never made.

Any thread records by one `append` to a list, without a lock, and any finalizer releases an id by one `append` to a
queue. Everything else happens in the sender's thread (sender.py). So an interrupt, which Python raises in the main
thread, comes before a command is recorded or after it, never in between.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from threading import Lock
from typing import TypeAlias

from teletape.call_site import Where
from teletape.errors import TeletapeError
from teletape_engine import commands
from teletape_engine.commands import Batch, Command, Id
from teletape_engine.commands.results import Answer, Result

#: A command, the id of its recorder's context (None: it is of no context), and where the program recorded it.
Recording: TypeAlias = tuple[int | None, Command, Where]


class ContextName:
    """A context's id on the server. When the thread or task of its recorder has ended, the context ends there too."""

    __slots__ = ("_recordings", "id")

    def __init__(self, id: int, recordings: list[Recording | Reply]) -> None:
        self.id, self._recordings = id, recordings

    def __del__(self) -> None:
        with suppress(AttributeError):  # an interrupt came before it had its id
            self._recordings.append((None, commands.ContextEnd(self.id), None))


class Name:
    """An id on the server. When nothing holds the name any more, the id joins the next batch's releases."""

    __slots__ = ("_released", "id")

    def __init__(self, id: int, released: deque[int]) -> None:
        self.id, self._released = id, released

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` would take longer than the rest
            self._released.append(self.id)
        except AttributeError:  # an interrupt came before it had its id
            pass


class Reply:
    """What a thread waits for: the results of its questions, or that everything before was executed or sealed.

    It stands in the buffer after the questions, so that it says where the batch ends.

    Args:
        questions: The number of questions directly before it.
        empty: Whether a batch is sent even if there is nothing in it.
        early: Whether the batch's sealing is enough; otherwise its answer is awaited.

    Attributes:
        questions, empty, early: As passed.
        releases: The number of ids released before it, counted from the beginning of the session.
        results: One for each question.
        error: Why there are none.
    """

    __slots__ = ("_latch", "_settled", "early", "empty", "error", "questions", "releases", "results")

    def __init__(self, questions: int = 0, *, empty: bool = False, early: bool = False) -> None:
        self.questions, self.empty, self.early = questions, empty, early
        self.releases = 0
        self.results: Sequence[Result] = ()
        self.error: BaseException | None = None
        self._settled = False
        self._latch = Lock()  # no Condition: an interrupt can leave one locked
        self._latch.acquire()

    def wait(self, seconds: float = -1) -> bool:
        """Waits until it is settled, and returns whether it is. Called by the thread that made it, until it is True."""
        return self._latch.acquire(timeout=seconds)

    def settle(self, results: Sequence[Result] = (), error: BaseException | None = None) -> None:
        """Wakes the thread that waits. Only the first call has an effect.

        Called by the sender's thread, and by the waiting one if that has ended: both at once release the latch twice.
        """
        if not self._settled:
            self.results, self.error, self._settled = results, error, True
            with suppress(RuntimeError):
                self._latch.release()


class SealedBatch:
    """A batch that was taken from the buffer.

    Attributes:
        batch: The batch; if it is sent again, its bytes are the same.
        recordings: What of the buffer is in it.
        call_sites: Where the program recorded each of its commands.
        replies: What waits for its answer, each with the index of the first command after it.
    """

    __slots__ = ("batch", "call_sites", "recordings", "replies")

    def __init__(
        self, batch: Batch, recordings: list[Recording], call_sites: list[Where], replies: list[tuple[int, Reply]]
    ) -> None:
        self.batch, self.recordings, self.call_sites, self.replies = batch, recordings, call_sites, replies

    def answered(self, answer: Answer, cause: BaseException | None) -> None:
        """Settles the replies: with their results, or if they are after the answer's failure with its cause."""
        executed = len(self.batch.commands) if answer.failure is None else answer.failure.index
        for end, reply in self.replies:
            if end > executed:
                reply.settle(error=cause)
            else:
                first = end - reply.questions
                reply.settle([result for result in answer.results if first <= result.index < end])

    def failed(self, error: BaseException) -> None:
        """Settles the replies with an error."""
        for _, reply in self.replies:
            reply.settle(error=error)


class BatchBuffer:
    """Commands recorded since the last batch.

    Threads that record call `recordings.append`, and `request` for questions; finalizers append to `released`, and the
    ends of contexts to `recordings`. The other methods are called by the sender's thread alone.

    Args:
        client: The number of this client in the session.
        seq: The sequence number of the first batch.

    Attributes:
        recordings: What was recorded, in order, and the replies that threads wait for. The list is never replaced.
        nbytes: Bytes of the tensors among the commands, about: threads add to it without a lock.
        released: Ids that nothing in the program holds any more.
        poisoned: Ids that were never made, and why.
    """

    def __init__(self, client: int, seq: int) -> None:
        self.recordings: list[Recording | Reply] = []
        self.nbytes = 0
        self.released: deque[int] = deque()
        self.poisoned: dict[Id, TeletapeError] = {}
        self._released_before = 0  # ids that have left `released`
        self._returned: list[Id] = []  # releases of refused batches
        self._client, self._seq = client, seq

    # ------------------------------------------------------------------------------------------------------ any thread
    def request(self, questions: Iterable[Recording], reply: Reply) -> None:
        """Records questions and their reply, in any thread."""
        # In this order: an id that is released between the two is not counted, and stays for a later batch.
        reply.releases = self._released_before
        reply.releases += len(self.released)
        self.recordings.extend([*questions, reply])

    @property
    def commands(self) -> list[Command]:
        """The commands that wait."""
        return [entry[1] for entry in self.recordings[:] if not isinstance(entry, Reply)]

    # ------------------------------------------------------------------------------------------------------ the sender
    def replies(self) -> list[Reply]:
        """Returns the replies that threads wait for."""
        return [entry for entry in self.recordings[:] if isinstance(entry, Reply)]

    def seal(self) -> SealedBatch | None:
        """Takes everything up to the last reply as the next batch; None: there is nothing to send.

        Commands that use an id that was never made are dropped, and a reply whose questions do is settled.
        """
        entries = self.recordings[:]
        while entries and not isinstance(entries[-1], Reply):
            entries.pop()
        if not entries:
            return None
        count, final = len(entries), entries[-1]
        if self.poisoned:
            entries = self._without_poisoned(entries)
            if not entries or entries[-1] is not final:
                # The last questions cannot be answered: what was recorded before them waits for the next ones.
                self.recordings[:count] = entries
                return self.seal()
        assert isinstance(final, Reply)
        releases = (*self._returned, *self._take_releases(final.releases - self._released_before))
        sealed = self._sealed(entries, releases)
        self._returned = []
        self.nbytes = 0
        self.recordings[:count] = ()
        if not (sealed.recordings or releases or any(reply.empty for _, reply in sealed.replies)):
            for _, reply in sealed.replies:
                reply.settle()
            return None
        self._seq += 1
        for _, reply in sealed.replies:
            if reply.early:
                reply.settle()
        return sealed

    def _sealed(self, entries: list[Recording | Reply], releases: tuple[Id, ...]) -> SealedBatch:
        recordings: list[Recording] = []
        in_order: list[Command] = []
        call_sites: list[Where] = []
        replies: list[tuple[int, Reply]] = []
        current: int | None = None
        for entry in entries:
            if isinstance(entry, Reply):
                replies.append((len(in_order), entry))
                continue
            context, command, where = entry
            if context != current and context is not None:
                current = context
                in_order.append(commands.ContextSwitch(context))
                call_sites.append(None)
            recordings.append(entry)
            in_order.append(command)
            call_sites.append(where)
        batch = Batch(tuple(in_order), releases, self._client, self._seq, secrets.token_bytes(16))
        return SealedBatch(batch, recordings, call_sites, replies)

    def fail(self, sealed: SealedBatch, index: int, cause: TeletapeError) -> None:
        """Applies a failure: poisons what the batch's commands from `index` on and the waiting ones were to make.

        Structural commands that wait stay: they open and close what the server needs for later commands. Threads that
        wait for what was recorded after the failure get its cause.
        """
        for command in sealed.batch.commands[index:]:
            if not command.structural:
                self.poison(command, cause)
        for name in sealed.batch.releases:  # the program can no longer ask for these
            self.poisoned.pop(name, None)
        entries = self.recordings[:]
        staying: list[Recording | Reply] = []
        for entry in entries:
            if isinstance(entry, Reply):
                entry.settle(error=None if entry.early else cause)
            elif entry[1].structural:
                staying.append(entry)
            else:
                self.poison(entry[1], cause)
        self.recordings[: len(entries)] = staying

    def refuse_questions(self, error: BaseException, *, early: bool) -> None:
        """Settles the waiting replies with an error, and drops their questions; the other commands wait on.

        Args:
            error: Why they are not answered.
            early: Whether the replies that wait for the sealing are settled too.
        """
        entries = self.recordings[:]
        staying: list[Recording | Reply] = []
        for entry in entries:
            if isinstance(entry, Reply) and (early or not entry.early):
                del staying[len(staying) - entry.questions :]
                entry.settle(error=error)
            else:
                staying.append(entry)
        self.recordings[: len(entries)] = staying

    def take_back(self, sealed: SealedBatch) -> None:
        """Takes back a batch of which the server executed nothing: its number, structural commands and releases."""
        self._seq = sealed.batch.seq
        self.recordings[:0] = [recording for recording in sealed.recordings if recording[1].structural]
        self._returned += sealed.batch.releases

    def poison(self, command: Command, cause: TeletapeError) -> None:
        """Notes that the command's outputs are never made, because of `cause`."""
        for name in commands.outputs(command):
            self.poisoned[name] = cause

    def _cause_in(self, command: Command) -> TeletapeError | None:
        """Returns why a command cannot be sent: it uses an id that was never made. None: it can."""
        if command.structural:
            return None
        poisoned = self.poisoned
        return next((poisoned[name] for name in commands.mentions(command) if name in poisoned), None)

    def _without_poisoned(self, entries: list[Recording | Reply]) -> list[Recording | Reply]:
        """Returns what can be sent. Of a command that cannot, the outputs are poisoned; a reply of its is settled."""
        staying: list[Recording | Reply] = []
        causes: list[TeletapeError | None] = []  # of every command so far
        for entry in entries:
            if isinstance(entry, Reply):
                of_questions = causes[len(causes) - entry.questions :]
                cause = next((each for each in of_questions if each is not None), None)
                if cause is None:
                    staying.append(entry)
                else:
                    del staying[len(staying) - of_questions.count(None) :]
                    entry.settle(error=cause)
                continue
            cause = self._cause_in(entry[1])
            causes.append(cause)
            if cause is None:
                staying.append(entry)
            else:
                self.poison(entry[1], cause)
        return staying

    def _take_releases(self, count: int) -> list[int]:
        """Takes the first ids that were released."""
        releases = []
        for _ in range(count):
            name = self.released.popleft()
            self._released_before += 1  # after it has left: a thread that counts in between counts too few
            self.poisoned.pop(name, None)
            releases.append(name)
        return releases
