"""Replies stored under an Idempotency-Key, so that a retry of a request gets the first reply again."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from teletape_engine.errors import TeletapeError
from teletape_server.worker.methods import Request, Result

_MAX_REPLIES: Final = 64
_MAX_BYTES: Final = 64 << 20
_NOT_COMPARED: Final = ("now", "terms")  # parameters that differ between a request and its retry


class IdempotencyConflictError(TeletapeError):
    """Raised for a key that was used for another request."""

    code = "idempotency_conflict"


class Refusal(NamedTuple):
    """A stored error: without its traceback, which would keep the request's memory."""

    cls: type[TeletapeError]
    message: str
    details: Mapping[str, object]


class ReplyStore:
    """The newest replies: at most 64, and 64 MiB of bodies, but always the last reply.

    Attributes:
        replies: By key a hash of the request, and its result or error.
    """

    def __init__(self) -> None:
        self.replies: OrderedDict[str, tuple[bytes, Result | Refusal]] = OrderedDict()

    def once(self, key: str | None, method: str, request: Request, run: Callable[[str, Request], Result]) -> Result:
        """Runs the request, or returns the stored reply if its key is known.

        Raises:
            TeletapeError: The first run raised it.
            IdempotencyConflictError: The key belongs to another request.
        """
        if key is None:
            return run(method, request)
        digest = _digest(method, request)
        if key in self.replies:
            stored_digest, reply = self.replies[key]
            if stored_digest != digest:
                raise IdempotencyConflictError(
                    f"the Idempotency-Key {key!r} was used for another request: use a new key for a new request"
                )
            if isinstance(reply, Refusal):
                raise reply.cls(reply.message, **reply.details)
            return reply
        try:
            result = run(method, request)
        except TeletapeError as error:
            self._store(key, digest, Refusal(type(error), error.message, error.details))
            raise
        # As bytes: the result's buffers are views of arrays, which would be kept alive.
        result = Result(result.content_type, [b"".join(result.buffers)], result.length, result.facts)
        self._store(key, digest, result)
        return result

    def _store(self, key: str, digest: bytes, reply: Result | Refusal) -> None:
        self.replies[key] = digest, reply
        while len(self.replies) > _MAX_REPLIES or (len(self.replies) > 1 and self._bytes() > _MAX_BYTES):
            self.replies.popitem(last=False)

    def _bytes(self) -> int:
        return sum(reply.length for _, reply in self.replies.values() if isinstance(reply, Result))


def _digest(method: str, request: Request) -> bytes:
    """Returns a hash of all that makes two requests the same."""
    params = {name: value for name, value in request.params.items() if name not in _NOT_COMPARED}
    text = repr((method, request.content_type, sorted(params.items())))
    return hashlib.blake2b(request.body, key=hashlib.sha256(text.encode()).digest()).digest()
