"""A request that a host runs, its reply, and the retries that join it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from teletape_server.handlers.idempotency import conflict

#: The id of the request that this task handles, for the log.
REQUEST_ID: Final = ContextVar("REQUEST_ID", default="-")


@dataclass(eq=False)
class Trace:
    """A request whose caller traces it: what its spans are made of at its end.

    Attributes:
        parent: The caller's span, as a context of OpenTelemetry.
        ran: What processes ran for it: `method`, `queue_seconds`, `compute_seconds`, and `ops` of a batch, each with
            the time of its end in Unix nanoseconds.
        note_late: Takes what ran after its answer, as after a 202; None: it is not answered yet.
    """

    parent: Any
    ran: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    note_late: Callable[[int, Mapping[str, Any]], None] | None = None

    def note(self, facts: Mapping[str, Any]) -> None:
        """Notes what a process has just run."""
        if self.note_late is None:
            self.ran.append((time.time_ns(), facts))
        else:
            self.note_late(time.time_ns(), facts)


_TRACE: Final[ContextVar[Trace | None]] = ContextVar("_TRACE", default=None)


def begin_request(id: str, trace: Trace | None) -> None:
    """Notes which request this task handles from now on: for the lines of the log, and for what it submits."""
    REQUEST_ID.set(id)
    _TRACE.set(trace)


class Reply(NamedTuple):
    """The answer to a request.

    Attributes:
        code: None, or a problem's code; then `facts` holds its message and details.
        content_type: Of the body.
        body: The body's bytes; the host reuses their memory after every view of it is gone.
        facts: What the front needs to know without reading the body: bytes_in_use, headers.
    """

    code: str | None
    content_type: str
    body: memoryview
    facts: Mapping[str, Any]


class StoredQuestion(NamedTuple):
    """Asks a session's process for an answer that it has stored; see `handlers.idempotency.STORED`.

    Attributes:
        method, params, content_type: As of the request that was answered.
        body: The beginning of its body, as far as the process needs that to know it again.
    """

    method: str
    params: Mapping[str, Any]
    content_type: str = ""
    body: bytes = b""


class HostGone(Exception):  # a state, which the caller turns into a problem
    """Raised when a host ended before it answered; the message gives the reason."""


def fail(future: asyncio.Future[Any], why: str) -> None:
    """Makes all who wait for a future raise HostGone; one that is done stays as it is."""
    if not future.done():
        future.set_exception(HostGone(why))
        future.exception()  # marks it as seen: a future without a waiter is no reason for a warning


def _do_nothing() -> None:
    """Cancels what cannot be cancelled alone."""


@dataclass(eq=False)
class Running:
    """A submitted request. Any number of callers may wait for its reply.

    Attributes:
        reply: Resolves to the reply, or raises HostGone.
        done, total: Number of commands done, and in all (0: not known yet).
        iteration, iterations: Iterations done by the loop in the next command, and in all (0: not known).
        loss: Of training: that of the last step that is known.
        request_id, trace: Of the HTTP request that was submitted first; no trace: its caller does not trace it.
        cancel: Asks it to stop at its next step.
        question: Returns what asks for its answer after the end; None: that is not stored.
        id: The one in its address; empty: it has none yet.
        has_ended: Whether the request itself has ended: this one asks for its answer, after others of the session.
        began: When it was submitted, on the monotonic clock.
    """

    reply: asyncio.Future[Reply]
    done: int = 0
    total: int = 0
    iteration: int = 0
    iterations: int = 0
    loss: float | None = None
    request_id: str = field(default_factory=REQUEST_ID.get)
    trace: Trace | None = field(default_factory=_TRACE.get, repr=False)
    cancel: Callable[[], None] = field(default=_do_nothing, repr=False)
    question: Callable[[], StoredQuestion] | None = None
    id: str = ""
    has_ended: bool = False
    began: float = field(default_factory=time.monotonic)

    def fail(self, why: str) -> None:
        """Makes all who wait for the reply raise HostGone."""
        fail(self.reply, why)


def left_by(requests: Mapping[int, Running], last: int, *, is_running: bool) -> list[Running]:
    """Returns the requests that another process may do in place of one that has ended.

    They have not begun to run, or they have run, and are known again by their identity. The one in which the process
    has ended is for its caller to send again, since it may be to blame.

    Args:
        requests: Those without an answer, by number; below 0 those that the process has read itself.
        last: The number of the last one above 0 that has begun.
        is_running: Whether one ran when the process ended.
    """
    return [
        running
        for number, running in requests.items()
        if number > last or (0 < number < last + (not is_running) and running.question is not None)
    ]


class _Body(Protocol):
    """Memory for a request's body."""

    def discard(self) -> None:
        """Frees it."""


class Joinable(NamedTuple):
    """A running request that its retries join.

    Attributes:
        digest: A hash of all that makes two requests the same; empty: their identity says all.
        running: The request.
    """

    digest: bytes
    running: Running


class UnderWay:
    """The requests of a session that run and that a retry joins, by identity: what a retry has in common with them.

    The identity of a frame is its client, number and nonce; that of any other request is its Idempotency-Key.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, Joinable] = {}

    def find(self, identity: Hashable) -> Joinable | None:
        """Returns what runs with that identity: a retry does not need its body kept."""
        return self._running.get(identity)

    def batch(self, client: int, seq: int) -> Running | None:
        """Returns the running batch of a client that has this number in its sequence; None: it does not run."""
        for identity, joinable in self._running.items():
            if isinstance(identity, tuple) and identity[:2] == (client, seq):
                return joinable.running
        return None

    def of_client(self, client: int) -> Running | None:
        """Returns the newest unanswered batch of a client; None: there is none."""
        batches = [
            joinable.running
            for identity, joinable in self._running.items()
            if isinstance(identity, tuple) and identity[0] == client
        ]
        return max(batches, key=lambda running: running.began, default=None)

    def join_or_begin(
        self,
        identity: Hashable,
        digest: bytes,
        submit: Callable[[], Running],
        question: Callable[[], StoredQuestion],
        body: _Body | None,
        earlier: Joinable | None = None,
    ) -> tuple[Running, bool]:
        """Returns what runs with that identity, or submits the request; and whether it ran already.

        Args:
            identity: What a retry has in common with the request.
            digest: See `Joinable`.
            submit: Submits the request.
            question: See `Running`.
            body: The request's, which is not needed if it ran already.
            earlier: What `find` has returned, and what may have ended since.

        Raises:
            IdempotencyConflictError: What runs is another request.
        """
        earlier = earlier or self.find(identity)
        if earlier is None:
            running = submit()
            self.note(identity, digest, running, question)
            return running, False
        if body is not None:
            body.discard()
        if earlier.digest != digest:
            raise conflict(str(identity))
        return earlier.running, True

    def note(self, identity: Hashable, digest: bytes, running: Running, question: Callable[[], StoredQuestion]) -> None:
        """Notes that a request runs, for its retries."""
        running.question = question
        self._running[identity] = Joinable(digest, running)

        def on_reply(_: object) -> None:
            joinable = self._running.get(identity)
            if joinable is not None and joinable.running is running:  # a later retry may have replaced it
                del self._running[identity]

        running.reply.add_done_callback(on_reply)
