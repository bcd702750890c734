"""Sessions created under an Idempotency-Key: a retry gets the first answer again, also while that is on its way."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from teletape_server.worker.idempotency import ReplyStore, conflict

_MAX_KEYS: Final = 10_000  # of one owner
_MAX_BYTES: Final = 4 << 20  # of one owner's answers


class Created(NamedTuple):
    """The answer to a creation.

    Attributes:
        status: Of HTTP.
        location: The session's URL.
        body: The session, as JSON.
    """

    status: int
    location: str
    body: bytes


class Creations:
    """The answers to creations with a key, by owner and key.

    A creation that was refused has created nothing, so a retry of it is tried again.

    Args:
        window: Seconds for which a key is known.
        clock: Returns Unix seconds.
    """

    def __init__(self, window: float, clock: Callable[[], float]) -> None:
        self._window, self._clock = window, clock
        self._answers: dict[str, ReplyStore[Created]] = {}
        self._running: dict[tuple[str, str], tuple[bytes, asyncio.Task[Created]]] = {}

    async def once(
        self, owner: str, key: str, request: bytes, create: Callable[[], Coroutine[Any, Any, Created]]
    ) -> tuple[Created, bool]:
        """Returns the answer of `create`, or of the earlier creation with that key; and whether it is the earlier one.

        Args:
            owner: Whose session it is.
            key: The Idempotency-Key.
            request: All that makes two requests the same.
            create: Creates the session.

        Raises:
            IdempotencyConflictError: The key belongs to another request.
            AnswerDroppedError, ResourceExhaustedError: See `ReplyStore.find`.
        """
        answers = self._answers.get(owner)
        if answers is None:
            answers = self._answers[owner] = ReplyStore(self._window, max_keys=_MAX_KEYS, max_bytes=_MAX_BYTES)
        digest = hashlib.blake2b(request, digest_size=16).digest()
        answer = answers.find(key, digest, self._clock())
        if answer is not None:
            return answer, True
        running_digest, task = self._running.get((owner, key), (digest, None))
        if running_digest != digest:
            raise conflict(key)
        earlier = task is not None
        if task is None:
            task = asyncio.get_running_loop().create_task(create())
            self._running[owner, key] = digest, task

            def on_end(task: asyncio.Task[Created]) -> None:
                del self._running[owner, key]
                if not task.cancelled() and task.exception() is None:
                    created = task.result()
                    answers.store(key, digest, created, len(created.body), self._clock())

            task.add_done_callback(on_end)
        return await asyncio.shield(task), earlier
