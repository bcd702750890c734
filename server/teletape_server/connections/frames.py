"""The frames of a connection, which are received and answered here, before the framework.

A plain frame (`heads`) becomes an exchange in the place of the application's cycle. Its body goes into its memory and
not through the parser; the head of a further frame is compared, not parsed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from starlette.responses import Response

from teletape_server.connections.caller_memory import (
    ANSWER_HEADER,
    FRAME_HEADER,
    CallerMemory,
    FrameMemory,
    MemoryRefusedError,
)
from teletape_server.connections.exchanges.cycle import Caller
from teletape_server.connections.exchanges.frame import FrameExchange
from teletape_server.connections.exchanges.without_session import HealthExchange, PublishedExchange, RunExchange
from teletape_server.connections.heads import BATCH, FrameHead, FrameHeads, KnownHead
from teletape_server.connections.reader import Head
from teletape_server.connections.streams import AnswerWriter, answer_head
from teletape_server.http.plain_requests import HEALTH
from teletape_server.identity.addresses import caller_address
from teletape_server.ipc.heads import HeadBytes
from teletape_server.logs import log_request
from teletape_server.models.published.contract import Name, Published
from teletape_server.sessions.registry import SessionEntry

CLOSE: Final = (b"connection", b"close")

log = logging.getLogger("teletape")


class FrameCaller(Caller, Protocol):
    """What frames need of their connection.

    Attributes:
        client: The address of its other end; None: a Unix socket's.
    """

    client: tuple[str, int] | None


class Frames:
    """The frames of a connection.

    Args:
        connection: The connection.
        heads: Decides which frames are answered here.

    Attributes:
        heads: The same.
        known: The head that need not be parsed again.
        on_end: Called with an exchange and its status after its response is written, before the next request.
    """

    def __init__(self, connection: FrameCaller, heads: FrameHeads) -> None:
        self._connection = connection
        self.heads = heads
        self._logs_requests = heads.settings.logs_requests
        self.known: KnownHead | None = None
        self._accepted: tuple[Head, FrameHead] | None = None  # of the last head that was parsed, if it may be known
        self._memory: CallerMemory | None = None
        self._writer: AnswerWriter | None = None
        self.on_end: Callable[[FrameExchange, Response], None] | None = None

    # ------------------------------------------------------------------------------------------------------ beginning
    def begin_known(self, data: bytes | bytearray, position: int) -> tuple[FrameExchange, Head, int, int] | None:
        """Begins an exchange if the known head is at `position`.

        Returns:
            The exchange, the head, the length of the body, and where it begins; None: another head, or a frame that the
            framework has to answer.
        """
        known = self.known
        if known is None or known.generation != self.heads.keys.generation:
            return None
        match = known.data.match(data, position)
        if match is None:
            return None
        length, end = match
        exchange = self._begun(known.head, length)
        return None if exchange is None else (exchange, known.request, length, end)

    def begin(self, request: Head) -> FrameExchange | None:
        """Begins an exchange if the head that was read is a plain frame's."""
        self._accepted = None
        accepted = self.heads.accepted(request, self._connection.client)
        if accepted is None:
            return None
        head, length = accepted
        memory = self._named_memory(request, length) if head.plain is None else None
        total = length if memory is None else length + memory.nbytes
        exchange = self._begun(head, total, memory)
        if exchange is not None and memory is None:
            self._accepted = request, head
        return exchange

    def _begun(self, head: FrameHead, length: int, memory: FrameMemory | None = None) -> FrameExchange | None:
        """Returns the exchange of a request; None: the framework has to answer."""
        if not self.heads.can_receive(head, length):
            return None
        if head.plain is HEALTH:
            return HealthExchange(self.heads, head, None, length, self.respond)
        if head.is_run:
            return self.exchange(head, None, length)
        if head.published:
            named = self.heads.published(head)
            return None if named is None else self.call_exchange(head, *named, length)
        session = self.heads.session(head)
        return None if session is None else self.exchange(head, session, length, memory)

    def remember(self, data: bytes) -> None:
        """Keeps the bytes of the head that has begun an exchange, if they say all."""
        if self._accepted is not None:
            head_bytes = HeadBytes.of(data)
            generation = self.heads.keys.generation
            self.known = None if head_bytes is None else KnownHead(head_bytes, *self._accepted, generation)

    def exchange(
        self, head: FrameHead, session: SessionEntry | None, length: int, memory: FrameMemory | None = None
    ) -> FrameExchange:
        """Returns the exchange of a frame, or of a plain request that has a session or will get one."""
        if head.is_run:
            return RunExchange(self.heads, head, session, length, self.respond)
        return FrameExchange(self.heads, head, session, length, self.respond, memory)

    def call_exchange(self, head: FrameHead, name: Name, published: Published, length: int) -> PublishedExchange:
        """Returns the exchange of a call of a published function."""
        return PublishedExchange(self.heads, head, name, published, length, self.respond)

    def _named_memory(self, request: Head, length: int) -> FrameMemory | None:
        """Returns the memory of the caller that the request names; None: none, or none that can be used."""
        if not any(name in (FRAME_HEADER, ANSWER_HEADER) for name, _ in request.headers):
            return None
        if self._memory is None:
            self._memory = CallerMemory.of(self._connection.transport, 2 * self.heads.settings.max_body)
        try:
            return None if self._memory is None else self._memory.named(request.headers, length)
        except MemoryRefusedError as error:
            log.info("a caller's memory is not used: %s", error)
            return None

    # ------------------------------------------------------------------------------------------------------ answering
    def respond(self, exchange: FrameExchange, response: Response) -> None:
        """Writes the response of an exchange."""
        transport = self._connection.transport
        if transport.is_closing():
            return
        exchange.response_started = True
        headers = response.raw_headers
        try:
            head = answer_head(response.status_code, headers if exchange.keep_alive else [*headers, CLOSE])
        except ValueError:
            log.exception("the answer of a session's process cannot be sent")
            transport.abort()
            return
        self._note(exchange, response.status_code)
        on_end = partial(self._on_end, exchange, response)
        self._writer = AnswerWriter(transport, self._connection.flow, head, response.body, on_end)
        self._writer.write()

    def _note(self, exchange: FrameExchange, status: int) -> None:
        """Notes how long the request took until its answer begins."""
        seconds = exchange.seconds = time.monotonic() - exchange.began
        metrics, head = self.heads.metrics, exchange.head
        if head.plain is None:
            metrics.observe_frame(status, seconds, head.owner)
        else:
            metrics.observe(head.plain.verb, head.plain.route, status, seconds, head.owner or None)
        if exchange.trace is not None and self.heads.tracing is not None:
            verb, route = ("POST", BATCH) if head.plain is None else (head.plain.verb, head.plain.route)
            facts = {"owner": head.owner or None, "session": head.session or None, "request_id": exchange.request_id}
            self.heads.tracing.end(exchange.trace, verb, route, status, seconds, **facts)

    def _on_end(self, exchange: FrameExchange, response: Response) -> None:
        self._writer = None
        exchange.response_complete = True
        if self._logs_requests:
            self._log(exchange, response)
        if self.on_end is not None:
            self.on_end(exchange, response)
        self._connection.answer_ended()

    def _log(self, exchange: FrameExchange, response: Response) -> None:
        """Writes the line of a frame that is answered."""
        head, client = exchange.head, self._connection.client
        caller = caller_address(client and client[0], head.forwarded, self.heads.settings.trusted_proxies)
        log_request(
            "POST" if head.plain is None else head.plain.verb,
            head.path,
            response.status_code,
            len(response.body),
            time.monotonic() - exchange.began,
            owner=head.owner or None,
            request_id=exchange.request_id,
            caller=caller,
        )

    def write_more(self) -> None:
        """Writes the next piece of an answer: the transport takes more."""
        if self._writer is not None:
            self._writer.write()

    def stop_writing(self) -> None:
        """Writes no more of an answer."""
        if self._writer is not None:
            self._writer.stop()
            self._writer = None
