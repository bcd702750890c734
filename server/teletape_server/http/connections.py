"""The connections of a server: how many there may be, what each may send before its answer, and how slowly.

uvicorn parses HTTP with httptools, which has no limit on a request's head and copies it with every piece that arrives.
Here bytes are counted before they are parsed, at most one head is parsed at a time, and one sweep a second ends what
has stalled. Nothing here depends on a key. Long because a connection's states depend on each other.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import secrets
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from teletape_server.problems import problem_response
from teletape_server.settings import Settings

MAX_HEAD: Final = 64 << 10  #: Bytes of a request's line and headers.
MAX_HEADERS: Final = 100  #: Headers of a request.
_PIECE: Final = 8 << 10  # bytes of a head that are parsed at once
_MAX_UNPARSED: Final = 1 << 20  # bytes of further requests that may wait for the answer to the one before
_SWEEP_SECONDS: Final = 1.0
_LINGER_SECONDS: Final = 2.0  # in which a caller can read an answer that did not need all of its request
_MAX_REFUSED: Final = 256  # connections that may wait for this at the same time
_MAX_DISCARDED: Final = 16 << 20  # bytes that a caller may still send meanwhile, if they are not a body's

log = logging.getLogger("teletape")


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Returns uvicorn's configuration for the application, whose `state.connections` are from now on the server's."""
    app.state.connections = connections = Connections(settings)
    return uvicorn.Config(
        app,
        http=connections.connection,  # type: ignore[arg-type]  # it is only called
        ws="none",
        log_config=None,
        log_level=settings.log_level,
        access_log=settings.log_level == "debug",
        server_header=False,
        timeout_graceful_shutdown=2,  # `server` has let work and answers finish before
        lifespan="on",
    )


def most_connections(settings: Settings) -> int:
    """Returns the number of connections to allow: the setting, and at most half of the process's file descriptors.

    The other half is for the sessions, whose processes take some each. The process's soft limit is raised to its hard
    limit first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY or hard // 2 >= settings.connections:
        return settings.connections
    log.warning("this process may open %d files, so it takes %d connections at most: raise ulimit -n", hard, hard // 2)
    return hard // 2


class Connections:
    """All open connections of a server.

    Attributes:
        most: How many there may be.
        stall_limit: Seconds after which a connection that sends or reads nothing is ended.
        min_rate: Bytes a second at which a body has to arrive.
        max_body: Bytes of a body that are received although its request is answered.
        open: The connections that are served.
        refused: The connections that take no more requests, and wait for their callers to read the last answer.
    """

    def __init__(self, settings: Settings) -> None:
        self.most = most_connections(settings)
        self.stall_limit = settings.stall_limit
        self.min_rate = settings.min_rate
        self.max_body = settings.max_body
        self.open: set[Connection] = set()
        self.refused: set[Connection] = set()
        self._interval = min(_SWEEP_SECONDS, self.stall_limit / 4)
        self._sweep_timer: asyncio.TimerHandle | None = None

    def connection(self, **arguments: Any) -> Connection:
        """Returns the protocol of a new connection; uvicorn calls this in place of its own class."""
        return Connection(self, **arguments)

    def add(self, connection: Connection) -> bool:
        """Adds a connection, and returns True; returns False if there are as many as there may be."""
        if self._sweep_timer is None:
            self._sweep_timer = connection.loop.call_later(self._interval, self._sweep)
        if len(self.open) >= self.most:
            return False
        self.open.add(connection)
        return True

    def refuse(self, connection: Connection) -> bool:
        """Stops serving a connection; returns whether it may stay open until its caller has read the last answer."""
        self.open.discard(connection)
        if len(self.refused) >= _MAX_REFUSED:
            return False
        self.refused.add(connection)
        return True

    def discard(self, connection: Connection) -> None:
        """Removes a closed connection."""
        self.open.discard(connection)
        self.refused.discard(connection)

    def _sweep(self) -> None:
        self._sweep_timer = None
        try:
            for connection in [*self.open, *self.refused]:
                connection.check(self._interval)
        finally:
            if self.open or self.refused:
                self._sweep_timer = asyncio.get_running_loop().call_later(self._interval, self._sweep)


class _Stage(Enum):
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
    """

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._all = connections
        self._stage = _Stage.START
        self._unparsed = bytearray()  # further requests, until the one before is answered
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._refused = False
        self._cycle_transport: Any = None
        self._keep_alive = True  # whether the caller allows another request after the one that is being received
        # Of the request that is being received, in bytes:
        self._head_bytes = 0  # everything except its body
        self._body_bytes = 0
        self._body_left: int | None = None  # None: not known
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
                cycle.disconnected = True
                cycle.message_event.set()
        self._unanswered.clear()
        self.pipeline.clear()
        self._unparsed.clear()

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
        self._received += len(data)
        if self._refused:
            body = self._all.max_body if self._stage is _Stage.BODY else 0
            if self._received > max(body, _MAX_DISCARDED):
                self.transport.abort()
            return
        self._unset_keepalive_if_required()
        if self._unparsed:
            self._keep_unparsed(data)
        else:
            self._parse(data)

    def _keep_unparsed(self, data: bytes | memoryview) -> None:
        """Keeps bytes of further requests, and receives no more; uvicorn resumes receiving after the next answer."""
        self._unparsed += data
        self.flow.pause_reading()
        if len(self._unparsed) > _MAX_UNPARSED:
            self.transport.abort()

    def _parse(self, data: bytes | bytearray) -> None:
        position, length = 0, len(data)
        while position < length and not self.transport.is_closing() and not self._refused:
            if self.pipeline:  # a request waits for the answer to the one before
                self._keep_unparsed(memoryview(data)[position:])
                return
            end = self._end_of_piece(data, position)
            whole = position == 0 and end == length
            self._parse_piece(data if whole else memoryview(data)[position:end], end - position)
            position = end

    def _end_of_piece(self, data: bytes | bytearray, position: int) -> int:
        """Returns where to stop parsing: after the body, or after a head or the part of it that is parsed at once."""
        if self._stage is _Stage.BODY and self._left_of_body() > 0:
            return min(len(data), position + self._left_of_body())
        if len(data) - position <= _PIECE and data.count(b"\r\n\r\n", position) <= 1:  # one head, and perhaps its body
            return len(data)
        end = data.find(b"\r\n\r\n", position, position + _PIECE)
        return min(len(data), position + _PIECE) if end < 0 else end + 4

    def _left_of_body(self) -> int:
        """Returns the bytes of the body that are missing; 0 if the request does not declare them."""
        if self._body_left is None:
            lengths = [value for name, value in self.headers if name == b"content-length"]
            self._body_left = (int(lengths[0]) if lengths else 0) - self._body_bytes
        return self._body_left

    def _parse_piece(self, piece: bytes | bytearray | memoryview, length: int) -> None:
        self._head_ended = self._message_ended = False
        body_bytes = self._body_bytes
        self._head_bytes += length
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:  # to another protocol, of which there is none: this is the last request
            self.cycle.keep_alive = False
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
        if self._head_bytes > MAX_HEAD or (self._stage is not _Stage.START and len(self.headers) > MAX_HEADERS):
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begins a request."""
        super().on_message_begin()
        self._stage = _Stage.HEAD
        self._waited = 0.0

    def on_headers_complete(self) -> None:
        """Gives the request to the application, if its head is small enough."""
        count = len(self.headers)
        if count > MAX_HEADERS or (self._head_bytes > MAX_HEAD and self._size_of_head() > MAX_HEAD):
            self._refuse_head()
            raise ValueError("the head is too large")  # ends the parser's work on this piece
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)
        self.cycle.transport = self._cycle_transport
        # An answer that begins before the body is here says that the connection ends with it.
        self._keep_alive, self.cycle.keep_alive = self.cycle.keep_alive, False
        self._stage, self._head_ended = _Stage.BODY, True
        self._body_bytes, self._body_left = 0, None
        self._waited = self._stalled = 0.0

    def _size_of_head(self) -> int:
        line = len(self.parser.get_method()) + len(b" ") + len(self.url) + len(b" HTTP/1.1\r\n\r\n")
        return line + sum(len(name) + len(b": ") + len(value) + len(b"\r\n") for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        """Gives a part of the body to the application."""
        super().on_body(body)
        self._body_bytes += len(body)
        if self._body_left is not None:
            self._body_left -= len(body)

    def on_message_complete(self) -> None:
        """Ends a request."""
        super().on_message_complete()
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keep_alive
        self._stage, self._message_ended = _Stage.START, True
        self._waited = 0.0

    def on_response_complete(self) -> None:
        """Goes on with the next request."""
        if self._unparsed:  # what is here of the next request's body is received before its answer begins
            self.loop.call_soon(self._parse_next)
        super().on_response_complete()
        if self._stage is not _Stage.START:  # the connection is not idle: the sweep looks after it
            self._unset_keepalive_if_required()

    def _parse_next(self) -> None:
        if self._unparsed and not self.transport.is_closing() and not self._refused:
            self._unset_keepalive_if_required()
            data, self._unparsed = self._unparsed, bytearray()
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
        elif self._stage is _Stage.BODY:
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
        unsent = self.transport.get_write_buffer_size()
        self._unread += seconds
        self._drained += max(self._unsent_before - unsent, 0)
        self._unsent_before = unsent
        if self._unread > self._all.stall_limit + self._drained / self._all.min_rate:
            self.transport.abort()

    def _end_stalled_head(self) -> None:
        if self._stage is _Stage.START:  # no request has begun: there is nothing to answer
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
        own = self.cycle if self._stage is _Stage.BODY else None
        can_answer = all(cycle.response_complete for cycle in self._unanswered if cycle is not own) and (
            own is None or not own.response_started
        )
        if not can_answer:
            self._end_requests()
            self.transport.close()
            return
        retry = {"Retry-After": "1"} if code in ("overloaded", "request_timeout") else {}
        response = problem_response(code, detail, request_id=secrets.token_hex(8), details=details, headers=retry)
        headers = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        self.transport.write(STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body))
        self._linger()

    def _close_after_answer(self) -> None:
        """Closes the connection; uvicorn calls this after the last answer, or instead of the rest of one."""
        if self._stage is _Stage.BODY and self.cycle.response_complete and not self.transport.is_closing():
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
