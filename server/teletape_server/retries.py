"""Requests under an Idempotency-Key that the front answers: a retry gets the first answer again, also while it runs.

Other requests with a key are a session's: its process knows their answers (`handlers.idempotency`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from teletape_server.handlers.idempotency import Entry, ReplyStore, conflict
from teletape_server.hosts.protocols import Running
from teletape_server.problems import Problem

_MAX_KEYS: Final = 10_000  # of one owner
_MAX_BYTES: Final = 32 << 20  # of one owner's answers
_MAX_BYTES_OF_ALL: Final = 128 << 20  # of the answers of all owners


class Stored(NamedTuple):
    """An answer that retries get.

    Attributes:
        status: Of HTTP.
        headers: Those that are not every answer's.
        body: The body.
        refusal: Why the request was refused, in place of all that; None: it was not.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | memoryview
    refusal: Problem | None = None

    @classmethod
    def refused(cls, problem: Problem) -> Stored:
        """Returns the answer of a refused request: not with the exception itself, whose frames have all of it."""
        refusal = Problem(problem.code, problem.detail, headers=problem.headers, **problem.details)
        return cls(refusal.kind.status, {}, b"", refusal)

    @property
    def is_provisional(self) -> bool:
        """Whether it only says when to ask again; it is no answer to the request."""
        return "retry-after" in map(str.lower, self.headers)


#: Executes a request.
Answers: TypeAlias = Callable[[], Coroutine[Any, Any, Stored]]


class Attempt(Protocol):
    """A request with a key that has been received.

    Attributes:
        task: Runs it; None: it was answered.
        id: The one in its address; empty: it has none.
    """

    task: asyncio.Task[Stored] | None
    id: str

    async def answer(self, digest: bytes | None) -> Stored:
        """Returns the answer for a request with that hash, after it is there; None: whatever its hash is.

        Raises:
            IdempotencyConflictError: The key belongs to another request.
            AnswerDroppedError: See `ReplyStore.reply`.
        """


class _Begun:
    """A request with a key that is received, and then runs.

    Args:
        key: The Idempotency-Key.

    Attributes:
        digest: Resolves to a hash of all that makes two requests the same, or to None if it never came in full.
        task: Runs it; it goes on if nobody waits for it.
        id: See `Attempt`.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.digest: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[Stored] | None = None
        self.id = ""

    async def answer(self, digest: bytes | None) -> Stored:
        """Waits for the answer; see `Attempt`."""
        assert self.task is not None, "it has been received"
        if digest not in (None, self.digest.result()):
            raise conflict(self._key)
        return await asyncio.shield(self.task)


class _Answered:
    """A request with a key that was answered."""

    def __init__(self, key: str, answers: ReplyStore[Stored], entry: Entry[Stored]) -> None:
        self._key, self._answers, self._entry = key, answers, entry
        self.task: asyncio.Task[Stored] | None = None
        self.id = ""

    async def answer(self, digest: bytes | None) -> Stored:
        """Returns the stored answer; see `Attempt`."""
        return self._answers.reply(self._key, self._entry, self._entry.digest if digest is None else digest)


class Retries:
    """The answers to requests with a key, by owner and key.

    A request that raises has changed nothing, so a retry of it is tried again.

    Args:
        window: Seconds for which a key is known.
        clock: Returns Unix seconds.

    Attributes:
        works: What runs in sessions' processes for a request with a key, by owner and key, for its progress.
    """

    def __init__(self, window: float, clock: Callable[[], float]) -> None:
        self.works: dict[tuple[str, str], Running] = {}
        self._window, self._clock = window, clock
        self._answers: dict[str, ReplyStore[Stored]] = {}
        self._begun: dict[tuple[str, str], _Begun] = {}

    async def earlier(self, owner: str, key: str) -> Attempt | None:
        """Returns the owner's request with that key, after it is received; None if there is none, so that it can begin.

        Raises:
            ResourceExhaustedError: There are too many keys for a new one.
        """
        while (begun := self._begun.get((owner, key))) is not None:
            if await asyncio.shield(begun.digest) is not None:
                return begun
        answers = self._answers_of(owner)
        entry = answers.entry(key, self._clock())
        return None if entry is None else _Answered(key, answers, entry)

    @contextmanager
    def receiving(self, owner: str, key: str) -> Iterator[Callable[[bytes, Answers], Attempt]]:
        """A block in which the owner's first request with that key is received.

        Yields:
            A function that begins to run it: with a hash of all that makes two requests the same, and what executes it
            and goes on if its caller does not wait. If the block ends without, a retry is the first one.
        """
        begun = self._begun[owner, key] = _Begun(key)

        def begin(digest: bytes, answer: Answers) -> Attempt:
            begun.task = asyncio.get_running_loop().create_task(answer())
            begun.task.add_done_callback(lambda task: self._on_end(owner, key, digest, task))
            begun.digest.set_result(digest)
            return begun

        try:
            yield begin
        finally:
            if begun.task is None:
                del self._begun[owner, key]
                begun.digest.set_result(None)

    async def attempt(self, owner: str, key: str, digest: bytes, answer: Answers) -> tuple[Attempt, bool]:
        """Returns the earlier request with that key, or begins this one; and whether it is the earlier one.

        Args:
            owner: Whose request it is.
            key: The Idempotency-Key.
            digest: A hash of all that makes two requests the same.
            answer: Executes the request; it goes on if its caller does not wait.

        Raises:
            ResourceExhaustedError: There are too many keys for a new one.
        """
        earlier = await self.earlier(owner, key)
        if earlier is not None:
            return earlier, True
        with self.receiving(owner, key) as begin:
            return begin(digest, answer), False

    def _answers_of(self, owner: str) -> ReplyStore[Stored]:
        answers = self._answers.get(owner)
        if answers is None:
            answers = self._answers[owner] = ReplyStore(
                self._window,
                max_keys=_MAX_KEYS,
                max_bytes=_MAX_BYTES,
                keeps_last=False,
                remedy="send it with a new key to execute it again",
            )
        return answers

    def _on_end(self, owner: str, key: str, digest: bytes, task: asyncio.Task[Stored]) -> None:
        """Stores the answer of a request that has ended; of too many bytes the oldest of all owners are dropped."""
        del self._begun[owner, key]
        if task.cancelled() or task.exception() is not None or task.result().is_provisional:
            return
        stored, length = task.result(), len(task.result().body)
        if length <= _MAX_BYTES:
            stored = stored._replace(body=bytes(stored.body))  # it may lie in memory of a session's process
        self._answers_of(owner).store(key, digest, stored, length, self._clock())
        stores = self._answers.values()
        while sum([answers.nbytes for answers in stores]) > _MAX_BYTES_OF_ALL:
            min(stores, key=lambda answers: answers.oldest).drop_oldest()
