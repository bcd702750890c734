"""A connection: what a caller may send before its answer, and how slowly.

uvicorn parses HTTP with httptools, which has no limit on a request's head and copies it with every piece that arrives.
Here bytes are counted before they are parsed, at most one head is parsed at a time, and a sweep ends what has stalled.
Nothing here depends on a key. Long because a connection's states depend on each other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Protocol

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from teletape_server.connections.open_connections import Connections
from teletape_server.guard import new_request_id
from teletape_server.problems import problem_response

MAX_HEAD: Final = 64 << 10  #: Bytes of a request's line and headers.
MAX_HEADERS: Final = 100  #: Headers of a request.
_LINE_END: Final = b"\r\n"
_PIECE: Final = 8 << 10  # bytes of a head that are parsed at once
_MAX_UNPARSED: Final = 1 << 20  # bytes of further requests that may wait for the answer to the one before
_LINGER_SECONDS: Final = 2.0  # in which a caller can read an answer that did not need all of its request
_MAX_DISCARDED: Final = 16 << 20  # bytes that a caller may still send meanwhile, if they are not a body's


class Cycle(Protocol):
    """What this class needs of the cycle of a request, as uvicorn calls it.

    Attributes:
        response_started, response_complete: How much of its response is written.
        disconnected: Whether its caller has left.
        keep_alive: Whether the connection stays open after the response.
    """

    response_started: bool
    response_complete: bool
    disconnected: bool
    keep_alive: bool


class Stage(Enum):
    """What a connection receives next."""

    START = "the first byte of a request"
    HEAD = "the rest of a request's head"
    BODY = "the rest of a body"


class _CycleTransport:
    """What uvicorn's cycle of a request and its answer uses of a transport; `close` is the connection's."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, close


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits.

    Args:
        connections: All connections of the server.
        **arguments: Of uvicorn's protocol.

    Attributes:
        stage: What it receives next.
        body_left: Bytes of the body that are missing; None: not known.
    """

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._all = connections
        self.stage = Stage.START
        self._unparsed = bytearray()  # further requests, until the one before is answered
        self._unanswered: deque[Cycle] = deque()
        self._refused = False
        self._cycle_transport: Any = None
        self._keep_alive = True  # whether the caller allows another request after the one that is being received
        self._is_last = False  # whether no request is read after the present one
        # Of the request that is being received, in bytes:
        self._head_bytes = 0  # everything except its body
        self._body_bytes = 0
        self.body_left: int | None = None  # None: not known
        self._head_ended = self._message_ended = False  # in the piece that is being parsed
        # For the sweep: byte counts at the last one, and seconds.
        self._received = self._received_before = self._unsent_before = self._drained = 0
        self._waited = self._stalled = self._unread = 0.0

    # ------------------------------------------------------------------------------------------------ open and closed
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins to receive; refuses a connection too many."""
        super().connection_made(transport)
        self._cycle_transport = _CycleTransport(transport, self._close_after_answer)
        if not self._all.add(self):
            most = self._all.most
            self._refuse("overloaded", f"this server has {most} connections, the limit: try again later", limit=most)

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets every request that is not answered yet know that its caller has left."""
        self._all.discard(self)
        self._abandon()
        self._cycle_transport.close = self.transport.close  # ends a reference cycle
        super().connection_lost(exc)

    def _abandon(self) -> None:
        for cycle in self._unanswered:
            if not cycle.response_complete:
                self._abandon_cycle(cycle)
        self._unanswered.clear()
        self.pipeline.clear()
        self._unparsed.clear()

    def _abandon_cycle(self, cycle: Cycle) -> None:
        assert isinstance(cycle, RequestResponseCycle)
        cycle.disconnected = True
        cycle.message_event.set()

    @property
    def is_unanswered(self) -> bool:
        """Whether a request has no complete answer yet."""
        return not all(cycle.response_complete for cycle in self._unanswered)

    def shutdown(self) -> None:
        """Ends the connection after its answers; see uvicorn's protocol."""
        if self._refused:
            self.transport.abort()
        else:
            self._keep_alive = False
            super().shutdown()

    # ------------------------------------------------------------------------------------------------------ receiving
    def data_received(self, data: bytes) -> None:
        """Parses what came: at most one head, and the body after it."""
        self.note_received(len(data))
        if self._refused:
            body = self._all.max_body if self.stage is Stage.BODY else 0
            if self._received > max(body, _MAX_DISCARDED):
                self.transport.abort()
            return
        self._unset_keepalive_if_required()
        if self._unparsed:
            self._keep_unparsed(data)
        else:
            self._parse(data)

    def note_received(self, count: int) -> None:
        """Counts bytes that have come, of whatever."""
        self._received += count

    def _keep_unparsed(self, data: bytes | memoryview) -> None:
        """Keeps bytes of further requests, and receives no more until they are parsed, after the next answers."""
        self._unparsed += data
        self.flow.pause_reading()
        if len(self._unparsed) > _MAX_UNPARSED:
            self.transport.abort()

    def _parse(self, data: bytes | bytearray) -> None:
        position, length = 0, len(data)
        while position < length and not (self._is_last or self._refused or self.transport.is_closing()):
            if self._must_wait():
                self._keep_unparsed(memoryview(data)[position:])
                return
            position = self._parse_part(data, position)

    def _must_wait(self) -> bool:
        """Returns whether a request waits for the answer to the one before."""
        return bool(self.pipeline)

    def _parse_part(self, data: bytes | bytearray, position: int) -> int:
        """Parses a head, a body, or a part of one; returns where the next part begins."""
        end = self._end_of_piece(data, position)
        whole = position == 0 and end == len(data)
        self._parse_piece(data if whole else memoryview(data)[position:end], end - position)
        return end

    def _end_of_piece(self, data: bytes | bytearray, position: int) -> int:
        """Returns where to stop parsing: after a body, a head, or the part of it that is parsed at once."""
        if self.stage is Stage.BODY and self.left_of_body() > 0:
            return min(len(data), position + self.left_of_body())
        if self.stage is Stage.START and data[position] in _LINE_END:  # empty lines before a request, all at once
            part = data[position : position + _PIECE]
            return position + len(part) - len(part.lstrip(_LINE_END))
        end = data.find(b"\r\n\r\n", position, position + _PIECE)
        return min(len(data), position + _PIECE) if end < 0 else end + 4

    def left_of_body(self) -> int:
        """Returns the bytes of the body that are missing; 0 if the request does not declare them."""
        if self.body_left is None:
            lengths = [value for name, value in self.headers if name == b"content-length"]
            self.body_left = (int(lengths[0]) if lengths else 0) - self._body_bytes
        return self.body_left

    def _parse_piece(self, piece: bytes | bytearray | memoryview, length: int) -> None:
        self._head_ended = self._message_ended = False
        body_bytes = self._body_bytes
        self._head_bytes += length
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:  # to another protocol, of which there is none: this is the last request
            self.cycle.keep_alive, self._is_last = False, True
            self.flow.pause_reading()
        except httptools.HttpParserError:
            if not self._refused:
                self._refuse("malformed_http", "this is not a request in HTTP/1.1, or not a complete one")
            return
        if self._message_ended:
            self._head_bytes = 0
        elif self._head_ended:
            self._head_bytes -= self._body_bytes
        else:
            self._head_bytes -= self._body_bytes - body_bytes
        if self._head_bytes > MAX_HEAD or (self.stage is not Stage.START and len(self.headers) > MAX_HEADERS):
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begins a request."""
        super().on_message_begin()
        self.stage = Stage.HEAD
        self._waited = 0.0

    def on_headers_complete(self) -> None:
        """Gives the request to the application, if its head is small enough."""
        count = len(self.headers)
        if count > MAX_HEADERS or (self._head_bytes > MAX_HEAD and self._size_of_head() > MAX_HEAD):
            self._refuse_head()
            raise ValueError("the head is too large")  # ends the parser's work on this piece
        self._begin_cycle()
        self.note_cycle()

    def note_cycle(self) -> None:
        """Begins to receive the body of the request that has got its cycle."""
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)
        if isinstance(self.cycle, RequestResponseCycle):
            self.cycle.transport = self._cycle_transport
        # An answer that begins before the body is here says that the connection ends with it.
        self._keep_alive, self.cycle.keep_alive = self.cycle.keep_alive, False
        self.stage, self._head_ended = Stage.BODY, True
        self._body_bytes, self.body_left = 0, None
        self._waited = self._stalled = 0.0

    def _begin_cycle(self) -> None:
        """Gives the request whose head is complete to the application."""
        super().on_headers_complete()

    def _size_of_head(self) -> int:
        line = len(self.parser.get_method()) + len(b" ") + len(self.url) + len(b" HTTP/1.1\r\n\r\n")
        return line + sum(len(name) + len(b": ") + len(value) + len(b"\r\n") for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        """Gives a part of the body to the application."""
        super().on_body(body)
        self.note_body(len(body))

    def note_body(self, count: int) -> None:
        """Counts bytes of the body."""
        self._body_bytes += count
        if self.body_left is not None:
            self.body_left -= count

    def on_message_complete(self) -> None:
        """Ends a request."""
        super().on_message_complete()
        self.note_end_of_message()

    def note_end_of_message(self) -> None:
        """Begins to wait for the next request."""
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keep_alive
        self.stage, self._message_ended = Stage.START, True
        self._head_bytes, self._waited = 0, 0.0

    def on_response_complete(self) -> None:
        """Goes on with the next request."""
        if self._unparsed:  # what is here of the next request's body is received before its answer begins
            self.loop.call_soon(self._parse_next)
        super().on_response_complete()
        if self.stage is not Stage.START:  # the connection is not idle: the sweep looks after it
            self._unset_keepalive_if_required()
        if self._unparsed and not self.transport.is_closing():
            self.flow.pause_reading()  # these come first

    def _parse_next(self) -> None:
        if self._unparsed and not self.transport.is_closing() and not self._refused:
            self._unset_keepalive_if_required()
            data, self._unparsed = self._unparsed, bytearray()
            self.flow.resume_reading()
            self._parse(data)

    # -------------------------------------------------------------------------------------------------------- stalled
    def check(self, seconds: float) -> None:
        """Ends the connection if it has stalled; the sweep calls this with the seconds since the last time."""
        is_sending = self._is_sending()
        if is_sending:
            self._check_reader(seconds)
        elif self._refused:
            self._waited += seconds
            self._stalled = self._stalled + seconds if self._received == self._received_before else 0.0
            if self._stalled > _LINGER_SECONDS or self._waited > _LINGER_SECONDS + self._received / self._all.min_rate:
                self.transport.abort()
        elif self.stage is Stage.BODY:
            self._check_body(seconds)
        elif self.timeout_keep_alive_task is None and not self.is_unanswered:
            self._waited += seconds
            if self._waited > self._all.stall_limit:
                self._end_stalled_head()
        self._received_before = self._received
        if not is_sending:
            self._unread, self._drained, self._unsent_before = 0.0, 0, 0

    def _is_sending(self) -> bool:
        """Returns whether the caller has to read before anything else can happen."""
        if self.flow.write_paused or self.transport.is_closing():
            return True
        return self._refused and self.transport.get_write_buffer_size() > 0

    def _check_reader(self, seconds: float) -> None:
        """Ends a connection whose caller does not read its answer, or reads it too slowly."""
        self._unread += seconds
        self._count_drained()
        if self._unread > self._all.stall_limit + self._drained / self._all.min_rate:
            self.transport.abort()

    def _count_drained(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._drained += max(self._unsent_before - unsent, 0)
        self._unsent_before = unsent

    def pause_writing(self) -> None:
        """Begins to wait for the caller: a large answer comes in pieces, so there are many waits between two sweeps."""
        self._count_drained()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Ends the wait."""
        self._count_drained()
        super().resume_writing()

    def _end_stalled_head(self) -> None:
        if self.stage is Stage.START:  # no request has begun: there is nothing to answer
            self.transport.close()
            return
        limit = self._all.stall_limit
        self._refuse("request_timeout", f"the request's headers took longer than {limit:g} s", limit=limit)

    def _check_body(self, seconds: float) -> None:
        if self.flow.read_paused:  # the server has not taken what came before
            return
        limit, rate = self._all.stall_limit, self._all.min_rate
        self._waited += seconds
        self._stalled = self._stalled + seconds if self._received == self._received_before else 0.0
        if self._stalled > limit or self._waited > limit + self._body_bytes / rate:
            self._refuse(
                "request_timeout",
                f"the body's {self._body_bytes} bytes took {self._waited:.3g} s: none may be missing for {limit:g} s, "
                f"and {rate} a second have to come",
                found=self._body_bytes,
                limit=limit,
                rate=rate,
            )

    # ------------------------------------------------------------------------------------------------------- refusing
    def _refuse_head(self) -> None:
        self._refuse(
            "headers_too_large",
            f"a request's line and headers may take {MAX_HEAD} bytes, and it may have {MAX_HEADERS} headers",
            limit=MAX_HEAD,
            headers=MAX_HEADERS,
        )

    def _refuse(self, code: str, detail: str, **details: Any) -> None:
        """Answers with a problem, and takes no more requests."""
        # An answer cannot come before those to earlier requests, nor inside one.
        own = self.cycle if self.stage is Stage.BODY else None
        can_answer = all(cycle.response_complete for cycle in self._unanswered if cycle is not own) and (
            own is None or not own.response_started
        )
        if not can_answer:
            self._end_requests()
            self.transport.close()
            return
        retry = {"Retry-After": "1"} if code in ("overloaded", "request_timeout") else {}
        self._all.refusals[code] += 1
        response = problem_response(code, detail, request_id=new_request_id(), details=details, headers=retry)
        self.transport.write(self._head_of(response, keep_alive=False) + bytes(response.body))
        self._linger()

    def _close_after_answer(self) -> None:
        """Closes the connection; uvicorn calls this after the last answer, or instead of the rest of one."""
        if self.stage is Stage.BODY and self.cycle.response_complete and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Takes no more requests, and closes when the caller does, or when it has sent nothing for two seconds.

        Many callers read no answer before they have sent their body. What arrives at a closed socket makes the network
        discard what its peer has not read yet.
        """
        if self._end_requests():
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    def _end_requests(self) -> bool:
        """Receives no more requests; returns whether the connection may stay open until its caller has read."""
        self._refused, self._waited, self._stalled = True, 0.0, 0.0
        self._received = self._received_before = 0
        self._abandon()
        self._unset_keepalive_if_required()
        return self._all.refuse(self)

    def _head_of(self, response: Response, *, keep_alive: bool) -> bytes:
        """Returns the head of a response that is not written by uvicorn, and checked as there.

        Raises:
            ValueError: A header is none.
        """
        headers = [*self.server_state.default_headers, *response.raw_headers]
        if not keep_alive:
            headers.append((b"connection", b"close"))
        lines = [STATUS_LINE[response.status_code]]
        for name, value in headers:
            if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
                raise ValueError(f"not a header: {name!r}: {value!r}")
            lines.append(b"%b: %b\r\n" % (name, value))
        return b"".join([*lines, b"\r\n"])
