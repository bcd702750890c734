"""The commands of a remote session that wait for the next batch, and the ids that failed commands did not make.

Any thread records by one `append` to a list, without a lock, and any finalizer releases an id by one `append` to
another list. The thread that has the right to send (sender.py), a reader's or the sender's, seals a batch: it makes a
new `Position`, which takes effect with one `append`; then calls in C remove the sealed entries from the lists, each
once. So an interrupt, which Python raises in the main thread, comes before or after the recording of a command or the
sealing of a batch, but never in between; and so does a signal handler or a finalizer that reads.

Long because the effects of a failure on batches and waiting commands belong to the sealing of batches.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from teletape.core.errors import CancelledError, DeadlineExceededError, TeletapeError
from teletape.core.program.call_site import Where, call_site_text
from teletape.core.sessions.sending.sealed_batch import (
    Causes,
    Position,
    Recording,
    Reply,
    SealedBatch,
    command_of,
    name_of,
)
from teletape.core.sessions.sending.strands import Place, context_of, strand_of
from teletape_engine import commands
from teletape_engine.commands import Batch, Command, Id, OnFailure
from teletape_engine.functions.function import Function

if TYPE_CHECKING:  # it is imported when it is used
    from teletape.core.profiling.profile import Profile


class ContextName:
    """A context's id on the server. When its recorder's thread or task ends, the context ends there too."""

    __slots__ = ("_recordings", "id")

    def __init__(self, id: int, recordings: list[Recording | Reply]) -> None:
        self.id, self._recordings = id, recordings

    def __del__(self) -> None:
        try:  # noqa: SIM105  # at the end of the program `suppress` may be gone
            self._recordings.append((None, commands.ContextEnd(self.id), None))
        except (AttributeError, TypeError):  # an interrupt came before it had its id; or the program ends
            pass


class Name:
    """An id on the server. When the last reference to the name is gone, the next batch releases the id."""

    __slots__ = ("_released", "id")

    def __init__(self, id: int, released: list[int]) -> None:
        self.id, self._released = id, released

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` would take longer than the rest
            self._released.append(self.id)
        except AttributeError:  # an interrupt came before it had its id
            pass


class BatchBuffer:
    """Commands recorded since the last batch.

    Threads that record call `recordings.append`, and `request` for questions; finalizers append ids to `released`, and
    ends of contexts to `recordings`. The thread that has the right to send calls `advance`; only the sender's thread
    calls the other methods.

    Args:
        client: The number of this client in the session.
        seq: The sequence number of the first batch.
        ended: Whether a strand's thread or task has ended.
        by_strand: Whether the server can go on with other strands after a failure.

    Attributes:
        recordings: The recorded commands, in order, and the replies that threads wait for. The list is never replaced.
        nbytes: The approximate bytes of the tensors among the commands; threads add to it without a lock.
        released: Ids without a reference in the program. The list is never replaced.
        poisoned: The ids that failed commands did not make, with the cause.
        doubtful: The ids that may not exist, because the reader that waited for them has left.
        failures: By strand: the cause of its last failure, if no read of the strand has raised it.
        ended: As passed.
        profile: The profile that gets the times of the batches sealed from now on, or None.
        functions: The functions that the client has defined, by id, while the program has them.
    """

    def __init__(
        self, client: int, seq: int, ended: Callable[[int], bool] = lambda _: False, *, by_strand: bool = False
    ) -> None:
        self.recordings: list[Recording | Reply] = []
        self.nbytes = 0
        self.released: list[int] = []
        self.poisoned: dict[Id, TeletapeError] = {}
        self.doubtful: set[Id] = set()
        self.failures: dict[int, TeletapeError] = {}
        self.ended = ended
        self._by_strand = by_strand
        self._concerned: WeakKeyDictionary[TeletapeError, set[int]] = WeakKeyDictionary()  # the strands of each cause
        self._shown: WeakSet[TeletapeError] = WeakSet()
        self.profile: Profile | None = None
        self.functions: WeakValueDictionary[Any, Function] = WeakValueDictionary()
        self._some_left = False
        self._most: int | None = None  # the largest number of entries in a batch, after one was too large
        self._released_before = 0  # the number of ids that have left `released`, or less
        self._client = client
        self._position = Position(seq)

    # ------------------------------------------------------------------------------------------------------ any thread
    def request(self, questions: Iterable[Recording], reply: Reply) -> None:
        """Records questions and their reply, in any thread."""
        # In this order, because an id that is released between the two is not counted, and stays for a later batch.
        reply.releases = self._released_before
        reply.releases += len(self.released)
        self.recordings.extend([*questions, reply])

    def withdraw(self, questions: Iterable[Recording]) -> None:
        """Notes that no reader waits for questions any more: if they are not on their way, they are not sent.

        What they ask for may not be made. Until that is known, no other read brings it along.
        """
        self._some_left = True
        self.doubtful.update(*(commands.mentions(command_of(question)) for question in questions))

    @property
    def commands(self) -> list[Command]:
        """The waiting commands."""
        return [command_of(entry) for entry in self.recordings[:] if not isinstance(entry, Reply)]

    def waiting(self) -> Iterator[tuple[str, str, int]]:
        """Yields of each command that waits its name, its line of the program, and the bytes of its tensor."""
        for entry in self.recordings[:]:
            if not isinstance(entry, Reply):
                command = command_of(entry)
                tensor = command.value if isinstance(command, commands.Constant) else None
                yield name_of(command), call_site_text(entry[2]), getattr(tensor, "nbytes", 0)

    @property
    def position(self) -> Position:
        """The present position in the sequence of batches."""
        here = self._position
        while here.next:
            here = here.next[0]
            here.enter()
            self._released_before = here.releases  # after they have left: a thread that counts now counts too few
        self._position = here
        return here

    # ------------------------------------------------------------------------------------ who has the right to send
    def advance(self, here: Position) -> Position | None:
        """Takes everything up to the last reply as the next batch.

        Commands that use a poisoned id are dropped; a reply whose questions use one is settled.

        Args:
            here: The position.

        Returns:
            The position after it, with the batch if there is something to send. None: nothing waits for an answer, or
            another thread has taken it.
        """
        some_left, self._some_left = self._some_left, False
        entries = self.recordings[:]
        while entries and not isinstance(entries[-1], Reply):
            entries.pop()
        if not entries:
            return None
        count, final = len(entries), entries[-1]
        assert isinstance(final, Reply)
        is_part = False
        if self._most is not None:
            count = _part_of(entries, self._most)
            is_part = count < len(entries)
            if is_part:
                final = Reply(early=True)
                final.releases = here.releases  # the rest may use what is released
                entries = [*entries[:count], final]
            else:
                self._most = None
        if self.poisoned or self.failures or some_left:
            entries = self._without_poisoned(entries)
            if not entries or entries[-1] is not final:
                # The last questions cannot be answered: the commands before them wait for the next reply.
                return self._follow(here, self._after(here, count, entries))
        released = final.releases - here.releases
        return self._follow(here, self._after_sealing(here, count, entries, released, is_part=is_part))

    def _after_sealing(
        self, here: Position, count: int, entries: list[Recording | Reply], released: int, *, is_part: bool
    ) -> Position:
        releases = self.released[: max(0, released)]
        for name in releases:
            self.poisoned.pop(name, None)
        profile, returned = self.profile, () if is_part else here.returned
        if profile is None or len(entries) == 1:  # only a reply
            sealed = self._sealed(here, entries, (*returned, *releases))
        else:
            timed: Recording = (None, commands.Profile(), None)
            sealed = self._of_several(here, [timed, *entries], (*returned, *releases))
            sealed.profile = profile, time.perf_counter()
        sealed.entries = entries
        if not (sealed.recordings or sealed.head.releases or any(reply.empty for _, reply in sealed.replies)):
            for _, reply in sealed.replies:
                reply.settle()
            return self._after(here, count, [])
        removals = (
            partial(self.released.__delitem__, slice(0, len(releases))),
            partial(self.recordings.__delitem__, slice(0, count)),
        )
        waiting = here.returned if is_part else ()
        return Position(here.seq + 1, here.batches + 1, here.releases + len(releases), waiting, sealed, removals)

    def _after(self, here: Position, count: int, entries: Sequence[Recording | Reply]) -> Position:
        """Returns the position after the replacement of the first recordings by others."""
        removal = partial(self.recordings.__setitem__, slice(0, count), entries)
        return Position(here.seq, here.batches, here.releases, here.returned, here.sealed, (removal,))

    def _follow(self, here: Position, there: Position) -> Position | None:
        """Makes a position the present one; None: another thread has made another one."""
        sealed = there.sealed  # another thread may have landed it after the next line
        here.next.append(there)
        if here.next[0] is not there:
            return None
        _ = self.position  # it enters the position
        if sealed is not None and sealed is not here.sealed:
            self.nbytes = 0
            for _, reply in sealed.replies:
                if reply.early:
                    reply.settle()
        return there

    # ------------------------------------------------------------------------------------------------------ the sender
    def replies(self) -> list[Reply]:
        """Returns the replies that threads wait for."""
        return [entry for entry in self.recordings[:] if isinstance(entry, Reply)]

    def seal(self) -> SealedBatch | None:
        """Takes everything up to the last reply as the next batch; None: there is nothing to send."""
        while any(isinstance(entry, Reply) for entry in self.recordings[:]):
            there = self.advance(self.position)
            if there is not None and there.sealed is not None:
                return there.sealed
        return None

    def _sealed(self, here: Position, entries: list[Recording | Reply], releases: tuple[Id, ...]) -> SealedBatch:
        return _of_one_context(entries, releases, self._client, here.seq) or self._of_several(here, entries, releases)

    def _of_several(self, here: Position, entries: list[Recording | Reply], releases: tuple[Id, ...]) -> SealedBatch:
        recordings: list[Recording] = []
        call_sites: list[Where] = []
        replies: list[tuple[int, Reply]] = []
        strands: set[int] = set()
        current: Place | None = None
        for entry in entries:
            if isinstance(entry, Reply):
                replies.append((len(call_sites), entry))
                continue
            place, where = entry[0], entry[2]
            if place != current and place is not None:
                current = place
                strands.add(strand_of(place))
                call_sites.append(None)  # the commands that switch to the context
            recordings.append(entry)
            call_sites.append(where)
        on_failure = OnFailure.STRAND if self._by_strand and len(strands) > 1 else OnFailure.POISON
        head = Batch((), releases, self._client, here.seq, secrets.token_bytes(16), (), on_failure)
        return SealedBatch(head, recordings, call_sites, replies)

    def fail(
        self, sealed: SealedBatch, failures: Sequence[tuple[int, TeletapeError]], *, refused: bool = False
    ) -> Causes:
        """Applies failures: poisons the outputs of later commands of the failed strands, in the batch and waiting.

        Waiting structural commands stay: they open and close tapes and contexts that later commands need. A thread that
        waits for later commands of a failed strand gets the failure's cause. What a strand has recorded after its
        wait was cancelled, or its time was over, is not of that failure.

        Args:
            sealed: The batch.
            failures: The index of the first failed command and the cause, for each strand that has failed.
            refused: Whether the server has executed nothing of the batch.

        Returns:
            The cause for each strand; a strand that only used values that another strand did not make gets the other's.
        """
        strands = list(sealed.strands())
        if sealed.head.on_failure is OnFailure.STRAND and not refused:
            known = {strands[index]: (index, cause) for index, cause in failures}
        else:
            known = dict.fromkeys(strands, failures[0])
        for index, (command, strand) in enumerate(zip(sealed.batch.commands, strands, strict=True)):
            if strand not in known or index < known[strand][0]:
                continue
            first, cause = known[strand]
            if index == first:
                cause = self._cause_in(command) or cause
                known[strand] = first, cause
            if not command.structural:
                self.poison(command, cause)
        for name in sealed.head.releases:  # the program can no longer read these
            self.poisoned.pop(name, None)
        left = {
            strand
            for strand, (_, cause) in known.items()
            if strand in sealed.left and isinstance(cause, CancelledError | DeadlineExceededError)
        }
        for strand, (_, cause) in known.items():
            if strand in left:  # it knows why, and goes on
                self._concerned.setdefault(cause, set()).add(strand)
            else:
                self._note_failure(strand, cause)

        def staying(entries: list[Recording | Reply]) -> Iterator[Recording | Reply]:
            strand = 0
            for entry in entries:
                if isinstance(entry, Reply):
                    cause = self._failure_of(entry)
                    if cause is None:
                        yield entry
                    else:
                        entry.settle(error=cause)
                    continue
                strand = strand if entry[0] is None else strand_of(entry[0])
                if strand not in known or strand in left or command_of(entry).structural:
                    yield entry
                else:
                    self.poison(command_of(entry), known[strand][1])

        self._edit(staying)
        return known

    def _note_failure(self, strand: int, cause: TeletapeError) -> None:
        """Notes that the next read of a strand must raise a cause, unless the strand has raised it."""
        strands = self._concerned.setdefault(cause, set())
        if strand not in strands:
            strands.add(strand)
            self.failures.setdefault(strand, cause)
        for strand in [strand for strand in self.failures if self.ended(strand)][:-1]:  # they may never be raised
            self.failures.pop(strand, None)

    def _failure_of(self, reply: Reply) -> TeletapeError | None:
        """Returns the failure that a reply raises, or None; one of another strand only if nothing has raised it."""
        if reply.early:
            return None
        for strand, cause in self.failures.copy().items():
            is_new = strand == reply.strand or cause not in self._shown
            if is_new and reply.concerns(strand, ended=self.ended(strand)):
                return cause
        return None

    def raised(self, cause: BaseException, reply: Reply) -> None:
        """Notes that a reply has raised an error in the program."""
        if isinstance(cause, TeletapeError):
            self._shown.add(cause)
        for strand, failure in self.failures.copy().items():
            if failure is cause and reply.concerns(strand, ended=self.ended(strand)):
                self.failures.pop(strand, None)

    def refuse_questions(self, error: BaseException, *, early: bool) -> None:
        """Settles the waiting replies with an error, and drops their questions; the other commands go on waiting.

        Args:
            error: The reason.
            early: Whether replies that wait only for the sealing are settled too.
        """

        def staying(entries: list[Recording | Reply]) -> list[Recording | Reply]:
            others: list[Recording | Reply] = []
            for entry in entries:
                if isinstance(entry, Reply) and (early or not entry.early):
                    del others[len(others) - entry.questions :]
                    entry.settle(error=error)
                else:
                    others.append(entry)
            return others

        self._edit(staying)

    def _edit(self, staying: Callable[[list[Recording | Reply]], Iterable[Recording | Reply]]) -> None:
        """Replaces the recorded entries by a function's result for them."""
        while True:
            here, entries = self.position, self.recordings[:]
            if self._follow(here, self._after(here, len(entries), list(staying(entries)))) is not None:
                return

    def landed(self, sealed: SealedBatch) -> None:
        """Notes that the answer to a batch was applied."""
        self.doubtful.clear()
        here = self.position
        if here.sealed is sealed:
            here.sealed = None

    def take_back(self, sealed: SealedBatch) -> None:
        """Takes back a batch that the server did not execute: its number, structural commands and releases."""
        self._return(sealed, [recording for recording in sealed.recordings if command_of(recording).structural])

    def split(self, sealed: SealedBatch) -> bool:
        """Takes back a batch that is too large for the server, to send it in parts; returns whether it has parts."""
        most = len(sealed.entries) // 2
        rest = sealed.entries[_part_of(sealed.entries, most) :]
        if all(isinstance(entry, Reply) for entry in rest):
            return False
        self._return(sealed, sealed.entries)
        self._most = most
        return True

    def _return(self, sealed: SealedBatch, entries: Sequence[Recording | Reply]) -> None:
        """Returns to the position before a batch, with these of its entries."""
        removal = partial(self.recordings.__setitem__, slice(0, 0), entries)
        while True:
            here = self.position
            returned = (*here.returned, *sealed.head.releases)
            there = Position(sealed.head.seq, here.batches, here.releases, returned, None, (removal,))
            if self._follow(here, there) is not None:
                return

    def poison(self, command: Command, cause: TeletapeError) -> None:
        """Poisons the command's outputs, because of `cause`."""
        for name in commands.outputs(command):
            self.poisoned[name] = cause

    def _cause_in(self, command: Command) -> TeletapeError | None:
        """Returns the cause of a poisoned id that a command uses; None: it uses none, and can be sent."""
        if command.structural:
            return None
        poisoned = self.poisoned
        return next((poisoned[name] for name in commands.mentions(command) if name in poisoned), None)

    def _without_poisoned(self, entries: list[Recording | Reply]) -> list[Recording | Reply]:
        """Returns the entries that can be sent, without questions whose reader has left.

        Of a command that cannot, the outputs are poisoned; a reply of its is settled.
        """
        staying: list[Recording | Reply] = []
        causes: list[TeletapeError | None] = []  # the outputs of all commands so far
        for entry in entries:
            if isinstance(entry, Reply):
                of_questions = causes[len(causes) - entry.questions :]
                cause = next((each for each in of_questions if each is not None), None) or self._failure_of(entry)
                if cause is None and not entry.settled:
                    staying.append(entry)
                else:
                    del staying[len(staying) - of_questions.count(None) :]
                    entry.settle(error=cause)
                continue
            command = command_of(entry)
            cause = self._cause_in(command)
            causes.append(cause)
            if cause is None:
                staying.append(entry)
            else:
                self.poison(command, cause)
                if entry[0] is not None:
                    self._note_failure(strand_of(entry[0]), cause)
        return staying


def _part_of(entries: Sequence[Recording | Reply], most: int) -> int:
    """Returns the length of the first part of entries: about as many as `most`. Questions stay with their reply."""
    end = max(1, most)
    for place in range(end, len(entries)):
        entry = entries[place]
        if isinstance(entry, Reply):
            first = place - entry.questions
            return end if first >= end else first or place + 1
    return len(entries)


def _of_one_context(
    entries: list[Recording | Reply], releases: tuple[Id, ...], client: int, seq: int
) -> SealedBatch | None:
    """Returns the batch of entries, transposed in C; None unless all are of one context, before one reply."""
    *before, final = entries
    recordings = cast("list[Recording]", before)  # fails if a reply is among them, which `zip` cannot take
    try:
        places, in_order, wheres, *fields = zip(*recordings, strict=True)
    except (TypeError, ValueError):
        return None
    place = places[0]
    if not fields or not isinstance(final, Reply) or place is None or places.count(place) != len(places):
        return None
    head = Batch((), releases, client, seq, secrets.token_bytes(16))
    sealed = SealedBatch(head, recordings, [None, *wheres], [(len(wheres) + 1, final)])
    ops, attrs, inputs, results = fields
    switch = commands.ContextSwitch(place if place.__class__ is int else context_of(place))
    sealed.columns = ((switch, *in_order), (None, *ops), (None, *attrs), ((), *inputs), (None, *results))
    return sealed
