"""A connection that answers plain frames itself: in uvicorn's protocol, before the framework.

A plain frame (`heads`) becomes an exchange in the place of uvicorn's cycle. Its body goes into its memory and not
through the parser, so the next request gets a new parser; the head of a further frame is compared, not parsed. While a
frame is not answered, nothing after it is parsed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import httptools
from starlette.responses import Response

from teletape_server.auth import caller_address
from teletape_server.connections.caller_memory import (
    ANSWER_HEADER,
    FRAME_HEADER,
    CallerMemory,
    FrameMemory,
    MemoryRefusedError,
)
from teletape_server.connections.connection import Connection, Cycle, Stage
from teletape_server.connections.exchange import FrameExchange
from teletape_server.connections.heads import FrameHead, FrameHeads, KnownHead
from teletape_server.connections.open_connections import Connections
from teletape_server.connections.receiver import BodyReceiver
from teletape_server.connections.writer import AnswerWriter
from teletape_server.logs import log_request
from teletape_server.sessions.registry import SessionEntry

_DIRECT: Final = 64 << 10  # bytes from which the rest of a body is received without a copy

log = logging.getLogger("teletape")


class FrameConnection(Connection):
    """A connection with frames.

    Args:
        connections: All connections of the server.
        heads: Decides which frames are answered here.
        **arguments: Of uvicorn's protocol.
    """

    def __init__(self, connections: Connections, heads: FrameHeads, **arguments: Any) -> None:
        super().__init__(connections, **arguments)
        self._heads = heads
        self._frames = heads.metrics.frames
        self._logs_requests = heads.settings.logs_requests
        # Of the present frame: its owner, whom proxies name as its caller, and its beginning.
        self._logged: tuple[str, str | None, float] | None = None
        self._accepted_head: FrameHead | None = None  # of the last exchange whose head was parsed
        self._known_head: KnownHead | None = None
        self._named_memory = False  # whether the request of that head names memory
        self._caller_memory: CallerMemory | None = None
        self._receiver: BodyReceiver | None = None
        self._writer: AnswerWriter | None = None

    @property
    def _exchange(self) -> FrameExchange | None:
        """The exchange of the request that was received last, if it is a frame."""
        cycle: Cycle | None = self.cycle
        return cycle if isinstance(cycle, FrameExchange) else None

    # ------------------------------------------------------------------------------------------------------ receiving
    def _must_wait(self) -> bool:
        exchange = self._exchange
        if exchange is not None and not exchange.response_complete and self.stage is Stage.START:
            return True
        return super()._must_wait()

    def _parse(self, data: bytes | bytearray) -> None:
        super()._parse(data)
        exchange = self._exchange
        if self.stage is Stage.BODY and exchange is not None and len(exchange.missing) >= _DIRECT:
            self._receiver = BodyReceiver(self, exchange.missing)
            self.transport.set_protocol(self._receiver)

    def _parse_part(self, data: bytes | bytearray, position: int) -> int:
        if self.stage is Stage.BODY and self._exchange is not None:
            return self._receive_body(self._exchange, data, position)
        is_start = self.stage is Stage.START
        if is_start and self._known_head is not None and self._is_free():
            body = self._begin_known(self._known_head, data, position)
            if body is not None:
                return body
        self._accepted_head = None
        end = super()._parse_part(data, position)
        if self._accepted_head is not None:
            if is_start and not self._named_memory:  # the whole head was in this part
                self._known_head = KnownHead.of(bytes(data[position:end]), self._accepted_head)
            if self.stage is Stage.BODY:  # the parser waits for a body that it does not get
                self.parser = httptools.HttpRequestParser(self)
                with contextlib.suppress(AttributeError):  # as in uvicorn: older ones have no leniencies
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return end

    def _is_free(self) -> bool:
        """Returns whether no request waits for its answer."""
        cycle: Cycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _begin_known(self, known: KnownHead, data: bytes | bytearray, position: int) -> int | None:
        """Begins an exchange if these bytes are a known head; returns where its body begins."""
        match = known.data.match(data, position)
        if match is None:
            return None
        length, end = match
        session = self._heads.session(known.head, length)
        if session is None:
            return None
        self._begin_exchange(known.head, session, length)
        self.note_cycle()
        self.body_left = length
        return end

    def _begin_cycle(self) -> None:
        if self._is_free():
            accepted = self._heads.accepted(
                self.parser.get_method(),
                self.parser.get_http_version(),
                self.url,
                self.headers,
                keep_alive=self.parser.should_keep_alive(),
            )
            if accepted is not None:
                head, length = accepted
                memory = self._memory(length)
                total = length if memory is None else length + memory.nbytes
                session = self._heads.session(head, total)
                if session is not None:
                    self._accepted_head, self._named_memory = head, memory is not None
                    self._begin_exchange(head, session, total, memory)
                    return
        super()._begin_cycle()

    def _memory(self, length: int) -> FrameMemory | None:
        """Returns the memory of the caller that the request names; None: none, or none that can be used."""
        if not any(name in (FRAME_HEADER, ANSWER_HEADER) for name, _ in self.headers):
            return None
        if self._caller_memory is None:
            self._caller_memory = CallerMemory.of(self.transport, 2 * self._heads.settings.max_body)
        try:
            return None if self._caller_memory is None else self._caller_memory.named(self.headers, length)
        except MemoryRefusedError as error:
            log.info("a caller's memory is not used: %s", error)
            return None

    def _begin_exchange(
        self, head: FrameHead, session: SessionEntry, length: int, memory: FrameMemory | None = None
    ) -> FrameExchange:
        if self._logs_requests:
            self._logged = head.owner, head.forwarded, time.perf_counter()
        exchange = FrameExchange(self._heads, head, session, length, self._respond, memory)
        self.cycle = exchange  # type: ignore[assignment]  # it has the attributes that uvicorn uses
        # uvicorn, and the end of the server, wait for these as for the tasks of the framework's requests.
        self.tasks.add(exchange.answered)  # type: ignore[arg-type]
        exchange.answered.add_done_callback(self.tasks.discard)
        return exchange

    def _receive_body(self, exchange: FrameExchange, data: bytes | bytearray, position: int) -> int:
        end = min(len(data), position + self.left_of_body())
        self.note_body(end - position)
        exchange.receive(memoryview(data)[position:end])
        self._end_body_if_complete(exchange)
        return end

    def body_received(self, count: int) -> None:
        """Notes that `count` bytes of the body have come, past the parser."""
        exchange = self._exchange
        assert exchange is not None
        self.note_received(count)
        self.note_body(count)
        exchange.received(count)
        self._end_body_if_complete(exchange)

    def _end_body_if_complete(self, exchange: FrameExchange) -> None:
        if not self.left_of_body():
            self._receive_normally()
            self.note_end_of_message()
            exchange.end_of_body()

    def _receive_normally(self) -> None:
        if self._receiver is not None:
            self._receiver = None
            if not self.transport.is_closing():
                self.transport.set_protocol(self)

    def on_body(self, body: bytes) -> None:
        """Takes a part of a body that came in one piece with the end of its head; see `Connection`."""
        exchange = self._exchange
        if exchange is None:
            super().on_body(body)
        else:
            self.note_body(len(body))
            exchange.receive(memoryview(body))

    def on_message_complete(self) -> None:
        """Ends a request; see `Connection`."""
        exchange = self._exchange
        if exchange is None:
            super().on_message_complete()
        else:
            self.note_end_of_message()
            exchange.end_of_body()

    # ------------------------------------------------------------------------------------------------------ answering
    def _respond(self, exchange: FrameExchange, response: Response) -> None:
        if self.transport.is_closing():
            return
        exchange.response_started = True
        try:
            head = self._head_of(response, keep_alive=exchange.keep_alive)
        except ValueError:
            log.exception("the answer of a session's process cannot be sent")
            self.transport.abort()
            return
        self._frames[response.status_code] += 1
        on_end = partial(self._on_response_end, exchange)
        if self._logged is not None:
            on_end = partial(self._log, exchange, response.status_code, len(response.body), on_end)
        self._writer = AnswerWriter(self.transport, self.flow, head, response.body, on_end)
        self._writer.write()

    def _log(self, exchange: FrameExchange, status: int, length: int, then: Callable[[], None]) -> None:
        """Writes the line of a frame that is answered."""
        assert self._logged is not None
        owner, forwarded, began = self._logged
        seconds = time.perf_counter() - began
        caller = caller_address(self.client and self.client[0], forwarded, self._heads.settings.trusted_proxies)
        request_id = exchange.request_id
        log_request("POST", exchange.path, status, length, seconds, owner=owner, request_id=request_id, caller=caller)
        then()

    def _on_response_end(self, exchange: FrameExchange) -> None:
        self._writer = None
        exchange.response_complete = True
        exchange.close()
        if not exchange.keep_alive:
            self._close_after_answer()
        self.on_response_complete()

    def resume_writing(self) -> None:
        """Writes the next piece of an answer; see `Connection`."""
        super().resume_writing()
        if self._writer is not None:
            self._writer.write()

    # ------------------------------------------------------------------------------------------------ open and closed
    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the exchange; see `Connection`."""
        exchange = self._exchange
        if exchange is not None:
            if not exchange.response_complete:
                self._abandon_cycle(exchange)
            self.cycle = None  # type: ignore[assignment]  # as before the first request
        super().connection_lost(exc)

    def _abandon_cycle(self, cycle: Cycle) -> None:
        if not isinstance(cycle, FrameExchange):
            super()._abandon_cycle(cycle)
            return
        if self._writer is not None:
            self._writer.stop()
            self._writer = None
        self._receive_normally()
        cycle.abandon()
