"""A batch that was taken from the buffer, the replies that threads wait for, and the sequence of batches."""

from __future__ import annotations

import math
import operator
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from teletape.core.errors import TeletapeError
from teletape.core.program.call_site import Where, call_site_text
from teletape.core.sessions.sending.strands import Place, context_of, strand_of
from teletape_engine.catalogue.attributes import Attrs
from teletape_engine.commands import Batch, Call, Command, ContextSwitch, Id, Input, OnFailure
from teletape_engine.commands.results import Answer, Facts, Result

if TYPE_CHECKING:  # it imports HTTP, which a program without a server does not load
    from teletape.core.network.http import FirstAnswer
    from teletape.core.network.spans import WaitSpan
    from teletape.core.profiling.profile import Profile
    from teletape_wire import Frame

_USUAL: Final = 0.9  #: The share of a timeout above which the server gets the whole timeout.
_SHORTEST: Final = 0.01  #: The time limit, in seconds, of a batch without waiting readers.

#: The origin of a command (None: no context), the command, and its call site. If it is
#: of a context, also name, attributes, inputs and result of an op, whose command is None until it is needed.
Recording: TypeAlias = (
    tuple[Place | None, Command, Where]
    | tuple[Place, Command | None, Where, str | None, Attrs | None, tuple[Input, ...], int | None]
)

#: By strand: the index of its first failed command in a batch, and the cause.
Causes: TypeAlias = Mapping[int, tuple[int, TeletapeError]]


def recording_of(place: Place, command: Command, where: Where) -> Recording:
    """Returns a command in its recorded form: an op by its fields, as from `Channel.emit_call`."""
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
    """Returns the name of a command's op, or of the command itself."""
    return command.op if isinstance(command, Call) else command.verb


class Reply:
    """A thread waits for it: for the results of its questions, or for the execution or sealing of all earlier commands.

    It follows the questions in the buffer, and so marks the end of the batch.

    Args:
        questions: The number of questions directly before it.
        empty: Whether a batch is sent even if it is empty.
        early: Whether the batch's sealing settles it; otherwise its answer does.
        expected: The bytes of the tensors in the answers.
        strand: The strand that waits; None: it gets failures of any strand.

    Attributes:
        questions, empty, early, expected, strand: As passed.
        releases: The number of ids released before it, counted from the beginning of the session.
        timeout: The longest wait of its reader, in seconds; None: there is no limit.
        until: The end of that wait, on the monotonic clock.
        span: That of its reader's wait; None: the program records no spans.
        on_settled: Called when it is settled, perhaps more than once; None: its thread waits with `wait`.
        results: A result for each question.
        error: The reason if there are none.
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
        "span",
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
        self.span: WaitSpan | None = None
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
        """Whether it gets a strand's failure; that of a strand that has ended only if it has no questions."""
        return self.strand in (None, strand) or (ended and not self.questions)

    def wait(self, seconds: float = -1) -> bool:
        """Waits until it is settled, and returns whether it is. Only the thread that made it calls it, until True."""
        return self._latch.acquire(timeout=seconds)

    def settle(self, results: Sequence[Result] = (), error: BaseException | None = None) -> None:
        """Settles it and wakes the waiting thread. Only the first call has an effect.

        If several threads call it at once, the latch is released twice.
        """
        if not self._settled:
            self.results, self.error, self._settled = results, error, True
            try:  # noqa: SIM105  # `suppress` would take longer than the rest
                self._latch.release()
            except RuntimeError:
                pass
            if self.on_settled is not None:
                self.on_settled()


class SealedBatch:
    """A batch that was taken from the buffer.

    Attributes:
        head: The batch without its commands.
        recordings: The commands in it.
        entries: The commands and replies of the buffer in it, in order.
        call_sites: The call site of each of its commands.
        replies: The replies that wait for its answer, each with the index of the first command after it.
        columns: Its commands, and name, attributes, inputs and result of each op; empty: it has several contexts.
        frame: The batch as bytes, after it was encoded.
        whole: Whether it is sent in full, because the server did not know its structure.
        first: The answer that the reader has received, or a function that waits for it, for the sender's thread.
        profile: The profile that gets its times, and the time of its sealing; None: there is no profile.
        request_id: The id of its request in the server's log; None: not known.
        timeout: The longest timeout of its readers; None: a reader has no limit, or others' work is in the batch.
        time_limit: The rest of that timeout, in seconds, for the server.
    """

    __slots__ = (
        "_batch",
        "call_sites",
        "columns",
        "entries",
        "first",
        "frame",
        "head",
        "profile",
        "recordings",
        "replies",
        "request_id",
        "time_limit",
        "timeout",
        "whole",
    )

    def __init__(
        self, head: Batch, recordings: list[Recording], call_sites: list[Where], replies: list[tuple[int, Reply]]
    ) -> None:
        self.head, self.recordings, self.call_sites, self.replies = head, recordings, call_sites, replies
        self.entries: Sequence[Recording | Reply] = ()
        self._batch: Batch | None = None
        self.first: FirstAnswer | None = None
        self.frame: Frame | None = None
        self.whole = False
        self.profile: tuple[Profile, float] | None = None
        self.columns: Sequence[tuple[Any, ...]] = ()
        self.request_id: str | None = None
        self.timeout: float | None = None
        self.time_limit: float | None = None
        if replies and replies[0][1].timeout is not None and self.is_readers_own:
            self.timeout, self.time_limit = _time_limit([reply for _, reply in replies])

    @property
    def batch(self) -> Batch:
        """The batch; if it is sent again, its bytes are the same."""
        if self._batch is None:
            in_order: list[Command] = []
            current: Place | None = None
            head = self.head
            by_strand = head.on_failure is OnFailure.STRAND
            for recording in self.recordings:
                place = recording[0]
                if place != current and place is not None:
                    current = place
                    if place.__class__ is int:
                        in_order.append(ContextSwitch(place))
                    else:
                        in_order.append(ContextSwitch(context_of(place), strand_of(place) if by_strand else None))
                command = recording[1]
                in_order.append(command_of(recording) if command is None else command)
            fields = head.releases, head.client, head.seq, head.nonce, head.temporaries, head.on_failure
            self._batch = Batch(tuple(in_order), *fields)  # a copy by `replace` would take four times as long
        return self._batch

    @property
    def awaited(self) -> bool:
        """Whether a thread may be waiting for its answer."""
        return not all(reply.settled for _, reply in self.replies)

    def limit(self) -> float | None:
        """Returns the seconds for the server; None if its readers have left: it is then executed all the same."""
        return self.time_limit if self.awaited else None

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
    def trace_headers(self) -> Mapping[str, str]:
        """Headers that name the span of its first reader whose wait has one, for the server."""
        return next((reply.span.headers for _, reply in self.replies if reply.span is not None), {})

    @property
    def expected(self) -> int:
        """The approximate bytes of the tensors in the answer."""
        return sum([reply.expected for _, reply in self.replies])

    def strands(self) -> Iterator[int]:
        """Yields the strand of each of its commands; 0: it precedes all strands."""
        current: Place = 0
        for recording in self.recordings:
            place = recording[0]
            if place != current and place is not None:
                current = place
                yield strand_of(place)  # the commands that switch to the context
            yield strand_of(current)

    def answered(self, answer: Answer, causes: Causes, ended: Callable[[int], bool]) -> None:
        """Settles the replies with their results, or with the cause of a failure before them.

        Args:
            answer: The answer.
            causes: The causes of failures.
            ended: Whether a strand has ended.
        """
        for end, reply in self.replies:
            first = end - reply.questions
            results = [result for result in answer.results if first <= result.index < end]
            cause = _cause_before(end, reply, causes, ended) if causes else None
            reply.settle(results if cause is None else (), cause)

    def note_profile(self, answer: Answer, served: Any, received: int) -> None:
        """Notes its times in its profile, if it has one; then its first command is `profile`."""
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


def _cause_before(end: int, reply: Reply, causes: Causes, ended: Callable[[int], bool]) -> TeletapeError | None:
    """Returns the cause of a failure that a reply gets, among the commands before an index; None: there is none."""
    for strand, (index, cause) in causes.items():
        if index < end and reply.concerns(strand, ended=ended(strand)):
            return cause
    return None


def _time_limit(readers: Sequence[Reply]) -> tuple[float | None, float | None]:
    """Returns the timeout of the last reader, and the rest of it; usually all, so that frames stay equal."""
    if None in [reader.timeout for reader in readers]:
        return None, None
    last = max(readers, key=operator.attrgetter("until"))
    timeout, left = cast("float", last.timeout), last.until - time.monotonic()
    return timeout, timeout if left > _USUAL * timeout else max(round(left, 2), _SHORTEST)


class Position:
    """A position in the sequence of batches: the state that changes when a batch is sealed, refused or has failed.

    If several threads append to `next`, the first one decides the next position. `enter` removes the position's entries
    from the buffer's lists, once, even if several threads call it several times.

    Args:
        seq: The number of the next batch.
        batches: The number of batches sealed.
        releases: The number of ids that have left `released`.
        returned: Releases of refused batches.
        sealed: The batch in flight.
        removals: The functions for `enter`; they are in C, so that no interrupt comes in the middle of one.

    Attributes:
        seq, batches, releases, returned, sealed: As passed; `sealed` is None after its answer was applied.
        next: The proposed next positions; the first one is valid.
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
        """Calls each removal that was not called yet. Taking one from the list and calling it is one step."""
        try:  # noqa: SIM105  # `suppress` would take longer than the rest
            deque(map(operator.call, iter(self._removals.pop, None)), maxlen=0)
        except IndexError:
            pass
