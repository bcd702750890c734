"""Replies stored under an Idempotency-Key, so that a retry of a request gets the first reply again."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from teletape_engine.errors import AnswerDroppedError, ResourceExhaustedError, TeletapeError, tree
from teletape_server.handlers.methods import TIME_LIMIT, TRACED, WAITED, Request, Result

MAX_KEYS: Final = 100_000  # within the window; each takes 300 to 550 bytes without its reply
MAX_REPLY_BYTES: Final = 64 << 20
#: The header of a stored answer.
REPLAYED: Final = {"Idempotent-Replayed": "true"}
#: The parameter with a request's hash.
DIGEST: Final = "digest"
#: The parameter that asks for an answer that is stored: nothing is executed.
STORED: Final = "stored"
_NOT_COMPARED: Final = (
    "now",
    "terms",
    TIME_LIMIT,
    TRACED,
    WAITED,
)  # parameters that differ between a request and its retry
#: How the error of a dropped answer says where its results are.
_READ_THEM: Final = "read its results by their ids"


class IdempotencyConflictError(TeletapeError):
    """Raised for a key that was used for another request."""

    code = "idempotency_conflict"


class RequestNotFoundError(TeletapeError):
    """Raised for an answer that is not known: it never was, or it is forgotten."""

    code = "request_not_found"


class Refusal(NamedTuple):
    """A stored error: without its traceback, which would keep the request's memory."""

    cls: type[TeletapeError]
    message: str
    details: Mapping[str, object]


Reply = TypeVar("Reply")


class Entry(NamedTuple, Generic[Reply]):
    """What is known under a key: a hash of its request, when it is forgotten, and its reply with the bytes of that."""

    digest: bytes
    until: float
    reply: Reply | None
    length: int


class ReplyStore(Generic[Reply]):
    """Replies by key, each for a time that begins with the reply.

    Within that time no key is forgotten: a new key is refused if there are too many. Replies are dropped before that if
    they take too many bytes, the oldest first; the retry of such a request is refused.

    Args:
        window: Seconds for which a key is known.
        max_keys: Number of keys.
        max_bytes: Bytes of replies.
        keeps_last: Whether the last reply stays, however large it is.
        remedy: What the error of a dropped reply says to do.

    Attributes:
        nbytes: What the replies take.
    """

    def __init__(
        self,
        window: float,
        *,
        max_keys: int = MAX_KEYS,
        max_bytes: int = MAX_REPLY_BYTES,
        keeps_last: bool = True,
        remedy: str = _READ_THEM,
    ) -> None:
        self._window, self._max_keys, self._max_bytes = window, max_keys, max_bytes
        self._keeps_last, self._remedy = keeps_last, remedy
        self._entries: OrderedDict[str, Entry[Reply]] = OrderedDict()
        self._with_reply: deque[str] = deque()  # in the order of the entries
        self.nbytes = 0

    def find(self, key: str, digest: bytes, now: float) -> Reply | None:
        """Returns the reply to the request with that key; None if the key is new, and the request has to run.

        Args:
            key: The key.
            digest: A hash of the request.
            now: Unix seconds.

        Raises:
            IdempotencyConflictError, AnswerDroppedError: See `reply`.
            ResourceExhaustedError: See `entry`.
        """
        entry = self.entry(key, now)
        return None if entry is None else self.reply(key, entry, digest)

    def entry(self, key: str, now: float) -> Entry[Reply] | None:
        """Returns what is known under a key, or None.

        Raises:
            ResourceExhaustedError: There are too many keys for a new one.
        """
        self._forget(now)
        entry = self._entries.get(key)
        if entry is None and len(self._entries) >= self._max_keys:
            wait = next(iter(self._entries.values())).until - now
            raise ResourceExhaustedError(
                f"{self._max_keys} requests with an Idempotency-Key in {self._window:g} s are the limit: send the "
                f"request without a key, or again in {wait:.0f} s; it was not executed",
                limit=self._max_keys,
            )
        return entry

    def stored(self, key: str, now: float) -> Reply:
        """Returns the reply that is known under a key, whatever its request was.

        Raises:
            RequestNotFoundError: There is none.
            AnswerDroppedError: See `reply`.
        """
        self._forget(now)
        entry = self._entries.get(key)
        if entry is None:
            raise not_found()
        return self.reply(key, entry, entry.digest)

    def reply(self, key: str, entry: Entry[Reply], digest: bytes) -> Reply:
        """Returns the reply that is known under a key to the request with that hash.

        Raises:
            IdempotencyConflictError: The key belongs to another request.
            AnswerDroppedError: The reply is no longer stored.
        """
        if entry.digest != digest:
            raise conflict(key)
        if entry.reply is None:
            raise AnswerDroppedError(
                f"the request with the Idempotency-Key {key!r} was executed, and its answer is no longer stored (the "
                f"limit is {self._max_bytes} bytes of answers): nothing was executed again; {self._remedy}",
                limit=self._max_bytes,
            )
        return entry.reply

    def store(self, key: str, digest: bytes, reply: Reply, length: int, now: float) -> None:
        """Stores a new key's reply, which takes `length` bytes; one that is too large alone is dropped."""
        if length > self._max_bytes and not self._keeps_last:
            self._entries[key] = Entry(digest, now + self._window, None, 0)
            return
        self._entries[key] = Entry(digest, now + self._window, reply, length)
        self._with_reply.append(key)
        self.nbytes += length
        while self.nbytes > self._max_bytes and len(self._with_reply) > 1:
            self.drop_oldest()

    @property
    def oldest(self) -> float:
        """When the oldest reply would be forgotten; infinite without any."""
        return self._entries[self._with_reply[0]].until if self._with_reply else float("inf")

    def drop_oldest(self) -> None:
        """Drops the oldest reply; its key stays known."""
        key = self._with_reply.popleft()
        entry = self._entries[key]
        self.nbytes -= entry.length
        self._entries[key] = entry._replace(reply=None, length=0)

    def all(self) -> list[tuple[str, Entry[Reply]]]:
        """Returns what is known under each key, the oldest first."""
        return [*self._entries.items()]

    def add(self, key: str, entry: Entry[Reply]) -> None:
        """Takes what is known under a key; the entries come in the order in which they are forgotten."""
        self._entries[key] = entry
        if entry.reply is not None:
            self._with_reply.append(key)
            self.nbytes += entry.length

    def _forget(self, now: float) -> None:
        while self._entries:
            key, entry = next(iter(self._entries.items()))
            if entry.until > now:
                return
            del self._entries[key]
            if entry.reply is not None:
                self._with_reply.popleft()
                self.nbytes -= entry.length


def conflict(key: str) -> IdempotencyConflictError:
    """Returns the error of a key that was used for another request."""
    return IdempotencyConflictError(
        f"the Idempotency-Key {key!r} was used for another request: use a new key for a new request"
    )


def not_found() -> RequestNotFoundError:
    """Returns the error of an answer that is not known."""
    return RequestNotFoundError(
        "there is no such request of yours: its answer is kept for the time that GET /v1/info names as "
        "idempotency_window, until its session or the server ends. Send the request again; with its Idempotency-Key, "
        "or a frame with its number and nonce, it is not executed twice"
    )


class Once:
    """Runs the requests of a session's process, those with a key once in a time window.

    Args:
        window: Seconds for which a key is known, after the reply.

    Attributes:
        stored: The row of the reply that was stored last, for `read`; whoever has written it down sets it to None.
    """

    def __init__(self, window: float) -> None:
        self._window = window
        self._replies: ReplyStore[Result | Refusal] = ReplyStore(window)
        self.stored: list[Any] | None = None

    def run(
        self, key: str | None, method: str, request: Request, run: Callable[[str, Request], Result]
    ) -> Result | Refusal:
        """Runs the request, or returns the stored result or refusal if its key is known.

        Raises:
            TeletapeError: The run, which was the first, raised it; or see `ReplyStore.find`.
        """
        if key is None:
            return run(method, request)
        now = request.params["now"]
        if STORED in request.params:
            return self._replies.stored(key, now)
        digest = _digest(method, request)
        reply = self._replies.find(key, digest, now)
        if isinstance(reply, Result):
            headers = {**reply.facts.get("headers", {}), **REPLAYED}
            return dataclasses.replace(reply, facts={**reply.facts, "headers": headers})
        if reply is not None:
            return reply
        try:
            result = run(method, request)
        except TeletapeError as error:
            refusal = Refusal(type(error), error.message, error.details)
            self._store(key, digest, refusal, len(repr(refusal)), _time_now(request))
            raise
        # As bytes: the result's buffers are views of arrays, which would be kept alive.
        result = Result(result.content_type, [b"".join(result.buffers)], result.length, result.facts)
        self._store(key, digest, result, result.length, _time_now(request))
        return result

    def _store(self, key: str, digest: bytes, reply: Result | Refusal, length: int, now: float) -> None:
        self._replies.store(key, digest, reply, length, now)
        self.stored = _row(key, Entry(digest, now + self._window, reply, length))

    # --------------------------------------------------------------------------------------------------- written down
    def written(self) -> list[list[Any]]:
        """Returns the rows of all that is known, for `read`: JSON-able data, in which bytes may be."""
        return [_row(key, entry) for key, entry in self._replies.all()]

    def read(self, rows: Iterable[Sequence[Any]]) -> None:
        """Takes rows of `written`, and of `stored`, in their order."""
        for key, digest, until, length, reply in rows:
            self._replies.add(key, Entry(digest, until, None if reply is None else _reply(*reply), length))


def _row(key: str, entry: Entry[Result | Refusal]) -> list[Any]:
    reply: list[Any] | None = None
    if isinstance(entry.reply, Result):
        reply = ["", entry.reply.content_type, b"".join(entry.reply.buffers), dict(entry.reply.facts)]
    elif entry.reply is not None:
        reply = [entry.reply.cls.code, entry.reply.message, b"", dict(entry.reply.details)]
    return [key, entry.digest, entry.until, entry.length, reply]


def _reply(code: str, text: str, body: bytes, facts: Mapping[str, Any]) -> Result | Refusal:
    if code:
        return Refusal(tree().get(code, TeletapeError), text, facts)
    return Result(text, [body], len(body), facts)


def _time_now(request: Request) -> float:
    """Returns the time of day by the front's clock: when it has submitted the request, and how long that was ago."""
    now: float = request.params["now"]
    return now + time.monotonic() - request.received


def _digest(method: str, request: Request) -> bytes:
    """Returns a hash of all that makes two requests the same: the front's, which hashes bodies as they arrive."""
    digest: bytes | None = request.params.get(DIGEST)
    if digest is not None:
        return digest
    params = {name: value for name, value in request.params.items() if name not in _NOT_COMPARED}
    hasher = request_hash(method, request.content_type, *sorted(params.items()))
    hasher.update(request.body)
    return hasher.digest()


def request_hash(*parts: object) -> hashlib.blake2b:
    """Returns a hash of all that makes two requests the same, to be updated with the body."""
    return hashlib.blake2b(key=hashlib.sha256(repr(parts).encode()).digest(), digest_size=16)
