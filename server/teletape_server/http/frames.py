"""A batch that comes as a frame: what its first bytes mean, and what a retry of it has in common with it.

Both ways of a frame use this: the route of batches, and `connections`, which answers plain frames by itself.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from starlette.datastructures import Headers

import teletape_wire as wire
from teletape_server.handlers.idempotency import STORED
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.protocols import Running
from teletape_server.hosts.running import Joinable, StoredQuestion
from teletape_server.http.negotiation import answer_type
from teletape_server.http.parameters import idempotency_key, time_limit
from teletape_server.sessions.counted_bodies import CountedBody
from teletape_server.sessions.registry import Registry, SessionEntry

TYPES: Final = (wire.FRAME_TYPE, wire.JSON_TYPE)  #: What a batch may be sent and answered as.


def batch_params(headers: Headers, content_type: str, *, full: bool = False, encoding: str = "") -> dict[str, Any]:
    """Returns the parameters of a batch.

    Args:
        headers: Of the request.
        content_type: Of its body.
        full: Of its query, as the next one; the defaults are the route's.
        encoding: The same.

    Raises:
        Problem: not_acceptable, invalid_request.
    """
    return {
        "accept": answer_type(headers, TYPES, content_type),
        "full": full,
        "encoding": encoding,
        "idempotency_key": idempotency_key(headers),
        **time_limit(headers),
    }


class FrameBatch(NamedTuple):
    """A batch, as far as a frame's first bytes say what it is.

    Attributes:
        params: Its parameters.
        identity: What a retry of it has in common with it; None: a retry is like any other batch.
        prefix: The frame's first bytes, by which its session's process knows it again.
    """

    params: dict[str, Any]
    identity: Hashable
    prefix: bytes

    @classmethod
    def read(cls, beginning: bytes | memoryview, params: dict[str, Any], *, length: int, max_header: int) -> FrameBatch:
        """Reads a frame's prefix.

        Args:
            beginning: The frame's first bytes.
            params: See `batch_params`.
            length: Bytes of the body, as the request declares it.
            max_header: Bytes of the largest header.

        Raises:
            WireError: These bytes do not begin a frame of that length.
        """
        prefix = wire.decode_prefix(beginning, max_header=max_header)
        if prefix.total_length != length:
            raise wire.WireError(f"the frame declares {prefix.total_length} bytes, Content-Length {length}")
        key = params["idempotency_key"]
        compared = [value for name, value in params.items() if name != TIME_LIMIT]
        identity = key or (prefix.client, prefix.seq, prefix.nonce, *compared)
        if key is None and not prefix.client:
            params = {**params, "idempotency_key": prefix.nonce.hex() or None}
            identity = identity if prefix.nonce else None
        return cls(params, identity, bytes(beginning[: wire.PREFIX_LENGTH]))

    @property
    def is_retriable(self) -> bool:
        """Whether a retry of it is known again."""
        return self.identity is not None

    def with_key(self, key: str | None) -> FrameBatch:
        """Returns the batch under an Idempotency-Key, if it needs one so that its answer is stored."""
        if self.is_retriable or key is None:
            return self
        return self._replace(params={**self.params, "idempotency_key": key}, identity=key)

    def running_in(self, session: SessionEntry) -> Joinable | None:
        """Returns the same batch if it runs already, so that a retry waits for that one."""
        return None if self.identity is None else session.under_way.find(self.identity)

    def submit(
        self, registry: Registry, session: SessionEntry, body: CountedBody | None, earlier: Joinable | None = None
    ) -> tuple[Running, bool]:
        """Submits the batch, or finds that it runs already; see `UnderWay.join_or_begin`.

        Raises:
            Problem: busy, session_ended, shutting_down.
        """

        def submit() -> Running:
            return registry.submit(session, "batch", self.params, content_type=wire.FRAME_TYPE, body=body)

        if self.identity is None:
            return submit(), False
        return session.under_way.join_or_begin(self.identity, b"", submit, self.question, body, earlier)

    def note(self, session: SessionEntry, running: Running) -> None:
        """Notes that the batch runs, for its retries."""
        if self.identity is not None:
            session.under_way.note(self.identity, b"", running, self.question)

    def question(self) -> StoredQuestion:
        """Returns what asks for its answer, after that is stored."""
        if self.params["idempotency_key"] is not None:
            return stored_question("batch", self.params["idempotency_key"])
        return StoredQuestion("batch", {**self.params, STORED: True}, wire.FRAME_TYPE, self.prefix)


def stored_question(method: str, key: str) -> StoredQuestion:
    """Returns what asks for the answer to a request with an Idempotency-Key, after that is stored."""
    return StoredQuestion(method, {"idempotency_key": key, STORED: True})
