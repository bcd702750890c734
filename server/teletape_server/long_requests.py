"""Long requests: those that have an address. Their answer is waited for there, and no body is sent again.

The answers are elsewhere: in a session's process (`handlers.idempotency`), or in the front (`retries`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from teletape_server.handlers.idempotency import not_found
from teletape_server.hosts.protocols import Running
from teletape_server.hosts.running import StoredQuestion
from teletape_server.problems import Problem, refusal_of
from teletape_server.sessions.entry import SessionEntry

_MOST: Final = 10_000  # of one owner, of which none runs


@dataclass(eq=False)
class LongRequest:
    """A request that has an address.

    Attributes:
        owner: Whose it is.
        status: Of its answer if that is a success.
        session: The id of the session that runs it; None: the front does.
        uid: The session's.
        question: Asks the session's process for its answer.
        key: Under which the front stores its answer.
        running: The request while its session's process has it; after its end, the question.
        ended: Whether there is an answer.
        refusal: What it has raised in the front, which stores no such answer.
    """

    owner: str
    status: int = 200
    session: str | None = None
    uid: str = ""
    question: Callable[[], StoredQuestion] | None = None
    key: str = ""
    running: Running | None = None
    ended: bool = False
    refusal: Problem | None = None


class LongRequests:
    """The requests that have an address, by the id in it, until their answers are forgotten.

    Of one owner there are not too many: those whose answers came first are forgotten before their time.

    Args:
        window: Seconds for which an answer is there.
        clock: Returns Unix seconds.
    """

    def __init__(self, window: float, clock: Callable[[], float]) -> None:
        self._window, self._clock = window, clock
        self._running: dict[str, LongRequest] = {}
        self._ended: OrderedDict[str, tuple[float, LongRequest]] = OrderedDict()  # until when, and the request
        self._of_owner: dict[str, deque[str]] = {}  # ids of requests that have ended, in that order

    def of_session(self, session: SessionEntry, running: Running, status: int) -> str:
        """Returns the id of a request to a session that runs, and whose answer will be stored."""
        if not running.id:
            record = session.record
            long = LongRequest(session.owner, status, session.id, record.uid, running.question, running=running)
            running.id = self._add(long, running.reply)
        return running.id

    def of_front(self, owner: str, key: str, task: asyncio.Task[Any]) -> str:
        """Returns the id of a request that the front runs in a task, and whose answer it stores under a key."""
        return self._add(LongRequest(owner, key=key), task)

    def find(self, id: str) -> LongRequest:
        """Returns the request with that id.

        Raises:
            RequestNotFoundError: There is none, or it is forgotten.
        """
        self._forget()
        ended = self._ended.get(id)
        long = self._running.get(id) if ended is None else ended[1]
        if long is None:
            raise not_found()
        return long

    def _add(self, long: LongRequest, answer: asyncio.Future[Any]) -> str:
        self._forget()
        id = secrets.token_urlsafe(18)
        self._running[id] = long
        answer.add_done_callback(lambda done: self._on_end(id, long, done))
        return id

    def _on_end(self, id: str, long: LongRequest, answer: asyncio.Future[Any]) -> None:
        del self._running[id]
        long.ended, long.running = True, None  # the reply may lie in memory of the session's process
        error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        if long.session is None and error is not None:
            long.refusal = refusal_of(error, id)
        self._ended[id] = self._clock() + self._window, long
        ids = self._of_owner.setdefault(long.owner, deque())
        ids.append(id)
        if len(ids) > _MOST:
            del self._ended[ids.popleft()]

    def _forget(self) -> None:
        while self._ended:
            id, (until, long) = next(iter(self._ended.items()))
            if until > self._clock():
                return
            del self._ended[id]
            ids = self._of_owner[long.owner]
            ids.popleft()  # it is the first one, since all are in the order of their ends
            if not ids:
                del self._of_owner[long.owner]
