"""Requests under an Idempotency-Key that the front answers: a retry gets the first answer again, also while it runs.

Other requests with a key are a session's: its process knows their answers (`worker.idempotency`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from teletape_server.hosts.protocols import Running
from teletape_server.problems import Problem
from teletape_server.worker.idempotency import ReplyStore, conflict

_MAX_KEYS: Final = 10_000  # of one owner
_MAX_BYTES: Final = 4 << 20  # of one owner's answers


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
    body: bytes
    refusal: Problem | None = None

    @property
    def is_provisional(self) -> bool:
        """Whether it only says when to ask again; it is no answer to the request."""
        return "retry-after" in map(str.lower, self.headers)


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
        self._running: dict[tuple[str, str], tuple[bytes, asyncio.Task[Stored]]] = {}

    async def once(
        self, owner: str, key: str, digest: bytes, answer: Callable[[], Coroutine[Any, Any, Stored]]
    ) -> tuple[Stored, bool]:
        """Returns the answer of `answer`, or of the earlier request with that key; and whether it is the earlier one.

        Args:
            owner: Whose request it is.
            key: The Idempotency-Key.
            digest: A hash of all that makes two requests the same; see `digest_of`.
            answer: Executes the request; it goes on if its caller does not wait.

        Raises:
            IdempotencyConflictError: The key belongs to another request.
            AnswerDroppedError, ResourceExhaustedError: See `ReplyStore.find`.
        """
        answers = self._answers.get(owner)
        if answers is None:
            answers = self._answers[owner] = ReplyStore(self._window, max_keys=_MAX_KEYS, max_bytes=_MAX_BYTES)
        stored = answers.find(key, digest, self._clock())
        if stored is not None:
            return stored, True
        running_digest, task = self._running.get((owner, key), (digest, None))
        if running_digest != digest:
            raise conflict(key)
        earlier = task is not None
        if task is None:
            task = asyncio.get_running_loop().create_task(answer())
            self._running[owner, key] = digest, task

            def on_end(task: asyncio.Task[Stored]) -> None:
                del self._running[owner, key]
                if not task.cancelled() and task.exception() is None:
                    result = task.result()
                    if result.is_provisional:
                        return
                    answers.store(key, digest, result, len(result.body), self._clock())

            task.add_done_callback(on_end)
        return await asyncio.shield(task), earlier


def digest_of(*parts: str | bytes) -> bytes:
    """Returns a hash of all that makes two requests the same."""
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        text = part.encode() if isinstance(part, str) else part
        hasher.update(len(text).to_bytes(8, "little"))
        hasher.update(text)
    return hasher.digest()
