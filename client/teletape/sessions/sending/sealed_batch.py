"""A batch that was taken from the buffer, the replies that threads wait for, and the sequence of batches."""

from __future__ import annotations

import math
import operator
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from teletape.errors import TeletapeError
from teletape.program.call_site import Where, call_site_text
from teletape.sessions.sending.strands import Place, context_of, strand_of
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.commands import Batch, Call, Command, ContextSwitch, Id, Input, OnFailure
from teletape_engine.commands.results import Answer, Facts, Result

if TYPE_CHECKING:  # with it comes HTTP, which a program without a server does not load
    from teletape.network.http import FirstAnswer
    from teletape.profiling.profile import Profile
    from teletape_wire import Frame

_USUAL: Final = 0.9  #: Of a timeout: with as much left the server gets all of it.
_SHORTEST: Final = 0.01  #: Seconds that a batch gets whose readers wait no longer.

#: What it is of (None: of no context), a command, and where the program recorded it. If it is
#: of a context, also name, attributes, inputs and result of an op, whose command is None until it is needed.
Recording: TypeAlias = (
    tuple[Place | None, Command, Where]
    | tuple[Place, Command | None, Where, str | None, Attrs | None, tuple[Input, ...], int | None]
)

#: Of each strand that has failed in a batch: the index of the first command of it that did, and why.
Causes: TypeAlias = Mapping[int, tuple[int, TeletapeError]]


def recording_of(place: Place, command: Command, where: Where) -> Recording:
    """Returns a command as it is recorded: an op by its fields, as `Channel.emit_call` records it."""
    if command.__class__ is Call:
        assert isinstance(command, Call)
        if len(command.outputs) == 1 and command.where is None:
            (output,) = command.outputs
            return place, None, where, command.op, cast("Attrs", command.attrs), command.inputs, cast("int", output)
    return place, command, where, None, None, (), None


def command_of(recording: Recording) -> Command:
    """Returns the command that was recorded."""
    command = recording[1]
    if command is not None:
        return command
    op, attrs, inputs, output = cast("tuple[str, Attrs, tuple[Input, ...], int]", recording[3:])
    return Call(op, inputs, (output,), attrs)


def name_of(command: Command) -> str:
    """Returns the op that a command runs, or the command's own name."""
    return command.op if isinstance(command, Call) else command.verb


class Reply:
    """What a thread waits for: the results of its questions, or that everything before was executed or sealed.

    It stands in the buffer after the questions, so that it says where the batch ends.

    Args:
        questions: The number of questions directly before it.
        empty: Whether a batch is sent even if there is nothing in it.
        early: Whether the batch's sealing is enough; otherwise its answer is awaited.
        expected: Bytes of the tensors that the questions ask for.
        strand: The strand that waits; None: what fails in any strand concerns it.

    Attributes:
        questions, empty, early, expected, strand: As passed.
        releases: The number of ids released before it, counted from the beginning of the session.
        timeout: Seconds that its reader waits, at most; None: for any time.
        until: When that is over, on the monotonic clock.
        on_settled: Called when it is settled, perhaps more than once; None: its thread waits with `wait`.
        results: One for each question.
        error: Why there are none.
    """

    __slots__ = (
        "_latch",
        "_settled",
        "early",
        "empty",
        "error",
        "expected",
        "on_settled",
        "questions",
        "releases",
        "results",
        "strand",
        "timeout",
        "until",
    )

    def __init__(
        self,
        questions: int = 0,
        *,
        empty: bool = False,
        early: bool = False,
        expected: int = 0,
        strand: int | None = None,
    ) -> None:
        self.questions, self.empty, self.early, self.expected, self.strand = questions, empty, early, expected, strand
        self.releases = 0
        self.timeout: float | None = None
        self.until = math.inf
        self.on_settled: Callable[[], None] | None = None
        self.results: Sequence[Result] = ()
        self.error: BaseException | None = None
        self._settled = False
        self._latch = Lock()  # no Condition: an interrupt can leave one locked
        self._latch.acquire()

    @property
    def settled(self) -> bool:
        """Whether results or an error are here."""
        return self._settled

    def concerns(self, strand: int, *, ended: bool) -> bool:
        """Whether what has failed in a strand is its error: of one that has ended only if it has no questions."""
        return self.strand in (None, strand) or (ended and not self.questions)

    def wait(self, seconds: float = -1) -> bool:
        """Waits until it is settled, and returns whether it is. Called by the thread that made it, until it is True."""
        return self._latch.acquire(timeout=seconds)

    def settle(self, results: Sequence[Result] = (), error: BaseException | None = None) -> None:
        """Wakes the thread that waits. Only the first call has an effect.

        Several threads may call it at once; then the latch is released twice.
        """
        if not self._settled:
            self.results, self.error, self._settled = results, error, True
            with suppress(RuntimeError):
                self._latch.release()
            if self.on_settled is not None:
                self.on_settled()


class SealedBatch:
    """A batch that was taken from the buffer.

    Attributes:
        head: The batch without its commands.
        recordings: What of the buffer is in it.
        call_sites: Where the program recorded each of its commands.
        replies: What waits for its answer, each with the index of the first command after it.
        columns: Its commands, and name, attributes, inputs and result of each op; empty: it has several contexts.
        frame: The batch as bytes, after it was encoded.
        whole: Whether it is sent in full, since the server did not know its structure.
        first: What the reader that has sent it leaves to the sender's thread: an answer, or the wait for it.
        profile: What gets its times, and when it was sealed; None: nothing does.
        timeout: Of the reader that waits longest; None: one waits for any time, or the work of others is in it.
        time_limit: What is left of that, in seconds, for the server.
    """

    __slots__ = (
        "_batch",
        "call_sites",
        "columns",
        "first",
        "frame",
        "head",
        "profile",
        "recordings",
        "replies",
        "time_limit",
        "timeout",
        "whole",
    )

    def __init__(
        self, head: Batch, recordings: list[Recording], call_sites: list[Where], replies: list[tuple[int, Reply]]
    ) -> None:
        self.head, self.recordings, self.call_sites, self.replies = head, recordings, call_sites, replies
        self._batch: Batch | None = None
        self.first: FirstAnswer | None = None
        self.frame: Frame | None = None
        self.whole = False
        self.profile: tuple[Profile, float] | None = None
        self.columns: Sequence[tuple[Any, ...]] = ()
        self.timeout, self.time_limit = _time_limit([reply for _, reply in replies])
        if self.timeout is not None and not self.is_readers_own:
            self.timeout = self.time_limit = None

    @property
    def batch(self) -> Batch:
        """The batch; if it is sent again, its bytes are the same."""
        if self._batch is None:
            in_order: list[Command] = []
            current: Place | None = None
            by_strand = self.head.on_failure is OnFailure.STRAND
            for recording in self.recordings:
                place = recording[0]
                if place != current and place is not None:
                    current = place
                    strand = None if place.__class__ is int or not by_strand else strand_of(place)
                    in_order.append(ContextSwitch(context_of(place), strand))
                in_order.append(command_of(recording))
            self._batch = replace(self.head, commands=tuple(in_order))
        return self._batch

    @property
    def awaited(self) -> bool:
        """Whether a thread may wait for its answer."""
        return not all(reply.settled for _, reply in self.replies)

    @property
    def left(self) -> set[int | None]:
        """The strands that have waited for it, and wait no longer."""
        return {reply.strand for _, reply in self.replies if reply.settled and not reply.early}

    @property
    def is_readers_own(self) -> bool:
        """Whether each of its commands is of a strand that reads by it: no other one misses them."""
        strands = {strand_of(recording[0]) for recording in self.recordings if recording[0] is not None}
        readers = {reply.strand for _, reply in self.replies}
        return None in readers or strands <= readers

    @property
    def expected(self) -> int:
        """Bytes of the tensors in the answer, about."""
        return sum([reply.expected for _, reply in self.replies])

    def strands(self) -> Iterator[int]:
        """Yields the strand of each of its commands; 0: it is before all others."""
        current: Place = 0
        for recording in self.recordings:
            place = recording[0]
            if place != current and place is not None:
                current = place
                yield strand_of(place)  # of the switch to it
            yield strand_of(current)

    def answered(self, answer: Answer, causes: Causes, ended: Callable[[int], bool]) -> None:
        """Settles the replies: with their results, or with the cause of what has failed before them.

        Args:
            answer: The answer.
            causes: Why commands have failed.
            ended: Whether a strand has ended.
        """
        for end, reply in self.replies:
            cause = next(
                (
                    cause
                    for strand, (index, cause) in causes.items()
                    if index < end and reply.concerns(strand, ended=ended(strand))
                ),
                None,
            )
            if cause is not None:
                reply.settle(error=cause)
            else:
                first = end - reply.questions
                reply.settle([result for result in answer.results if first <= result.index < end])

    def note_profile(self, answer: Answer, served: Any, received: int) -> None:
        """Notes its times in its profile, if it has one. Its first command is `profile` then."""
        if self.profile is None or self.frame is None:
            return
        profile, began = self.profile
        under_way = time.perf_counter() - began
        first = answer.results[0] if answer.results else None
        times = first.facts if isinstance(first, Facts) and first.index == 0 else {}
        seconds, in_steps = times.get("seconds", []), times.get("in_steps", [])
        executed = zip(self.batch.commands[1:], self.call_sites[1:], seconds, in_steps, strict=False)
        rows = [
            (name_of(command), call_site_text(where), whole - inside)
            for command, where, whole, inside in executed
            if command.__class__ is not ContextSwitch
        ]
        profile.note_steps(times.get("steps", ()))
        profile.note_batch(rows, self.frame.length, received, under_way=under_way, served=served)

    def failed(self, error: BaseException) -> None:
        """Settles the replies with an error."""
        for _, reply in self.replies:
            reply.settle(error=error)


def _time_limit(readers: Sequence[Reply]) -> tuple[float | None, float | None]:
    """Returns the timeout of the last reader, and what is left of it: usually all, in the same digits each time."""
    if not readers or None in [reader.timeout for reader in readers]:
        return None, None
    last = max(readers, key=operator.attrgetter("until"))
    timeout, left = cast("float", last.timeout), last.until - time.monotonic()
    return timeout, timeout if left > _USUAL * timeout else max(round(left, 2), _SHORTEST)


class Position:
    """How far the sequence of batches has come: all that changes when one is sealed, refused or has failed.

    The first append to `next` decides what follows, whoever else tries. `enter` removes from the buffer's lists what
    is now here, once, whoever calls it and how often.

    Args:
        seq: The number of the next batch.
        batches: The number of batches sealed.
        releases: The number of ids that have left `released`.
        returned: Releases of refused batches.
        sealed: The batch in flight.
        removals: What `enter` calls: functions in C, so that no interrupt comes in the middle of one.

    Attributes:
        seq, batches, releases, returned, sealed: As passed; `sealed` is None after its answer was applied.
        next: The positions that were to follow.
    """

    __slots__ = ("_removals", "batches", "next", "releases", "returned", "sealed", "seq")

    def __init__(
        self,
        seq: int,
        batches: int = 0,
        releases: int = 0,
        returned: tuple[Id, ...] = (),
        sealed: SealedBatch | None = None,
        removals: Sequence[Callable[[], object]] = (),
    ) -> None:
        self.seq, self.batches, self.releases, self.returned, self.sealed = seq, batches, releases, returned, sealed
        self._removals = [None, *removals]
        self.next: list[Position] = []

    def enter(self) -> None:
        """Calls each of the removals that has not been called. Taking one from the list and calling it is one step."""
        with suppress(IndexError):
            deque(map(operator.call, iter(self._removals.pop, None)), maxlen=0)
