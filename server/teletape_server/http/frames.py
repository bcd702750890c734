"""A batch that comes as a frame: what its first bytes mean, and how a retry joins the batch while that runs.

Both ways of a frame use this: the route of batches, and `connections`, which answers plain frames by itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from starlette.datastructures import Headers

import teletape_wire as wire
from teletape_server.hosts.protocols import Running
from teletape_server.http.negotiation import answer_type
from teletape_server.http.parameters import idempotency_key
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
    }


class FrameBatch(NamedTuple):
    """A batch, as far as a frame's first bytes say what it is.

    Attributes:
        params: Its parameters.
        identity: What a retry of it has in common with it.
        is_retriable: Whether a retry can be told from another batch.
    """

    params: dict[str, Any]
    identity: tuple[Any, ...]
    is_retriable: bool

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
        if not prefix.client and prefix.nonce and params["idempotency_key"] is None:
            params = {**params, "idempotency_key": prefix.nonce.hex()}
        identity = (prefix.client, prefix.seq, prefix.nonce, *params.values())
        return cls(params, identity, bool(prefix.client or params["idempotency_key"]))

    def running_in(self, session: SessionEntry) -> Running | None:
        """Returns the same batch if it runs already, so that a retry waits for that one."""
        return session.running_frames.get(self.identity) if self.is_retriable else None

    def submit(self, registry: Registry, session: SessionEntry, body: CountedBody | None) -> Running:
        """Submits the batch.

        Raises:
            Problem: busy, session_ended, shutting_down.
        """
        running = registry.submit(session, "batch", self.params, content_type=wire.FRAME_TYPE, body=body)
        self.note(session, running)
        return running

    def note(self, session: SessionEntry, running: Running) -> None:
        """Notes that the batch runs, for its retries."""
        if self.is_retriable:
            session.running_frames[self.identity] = running

            def on_reply(_: object) -> None:
                if session.running_frames.get(self.identity) is running:  # a later retry may have replaced it
                    del session.running_frames[self.identity]

            running.reply.add_done_callback(on_reply)
