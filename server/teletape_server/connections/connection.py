"""A connection: its requests are read, answered one at a time, and refused if they are too large or too slow.

Its parts have one job each: `RequestReader` reads heads and bodies, a `Cycle` (by the application) or a `FrameExchange`
(here, of a plain frame) answers, `Pace` measures the caller, and `Lending` gives the connection to a session's process.
While a request is not answered, nothing after it is read.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from teletape_server.connections.exchanges.cycle import Application, Cycle, scope_of
from teletape_server.connections.exchanges.frame import FrameExchange
from teletape_server.connections.frames import CLOSE, Frames
from teletape_server.connections.heads import FrameHeads
from teletape_server.connections.lending import Lending
from teletape_server.connections.open_connections import Connections, ServerState
from teletape_server.connections.pace import KEEP_ALIVE_SECONDS, Pace
from teletape_server.connections.reader import (
    MAX_HEAD,
    MAX_HEADERS,
    Head,
    HeadTooLargeError,
    MalformedRequestError,
    RequestReader,
    Stage,
)
from teletape_server.connections.streams import BodyReceiver, Flow, answer_head
from teletape_server.guard import new_request_id
from teletape_server.identity.keys import Keys
from teletape_server.ipc.heads import MOST
from teletape_server.problems import problem_response

_PARTS: Final = 64  # that are read before other connections get their turn
_MAX_DISCARDED: Final = 16 << 20  # bytes that a caller may still send after an answer, if they are not a body's
_DIRECT: Final = 64 << 10  # bytes from which the rest of a body is received without a copy


class Connection(asyncio.Protocol):
    """A connection of a server.

    Args:
        connections: All of them.
        application: Answers what is not answered here.
        server: What its end looks at.
        heads: Decides which frames are answered here; None: none are.
        may_be_lent: Whether its session's process may serve it.

    Attributes:
        transport, flow: Its bytes.
        client: The address of its other end; None: a Unix socket's.
        cycle: The last request, which may be answered.
        lending: Whether the session's process has it; None: it never gets it.
    """

    transport: asyncio.Transport
    flow: Flow

    def __init__(
        self,
        connections: Connections,
        application: Application,
        server: ServerState,
        heads: FrameHeads | None,
        *,
        may_be_lent: bool,
    ) -> None:
        self._all, self._application, self._server = connections, application, server
        self._heads, self._may_be_lent = heads, may_be_lent
        self._loop, self._reader = asyncio.get_running_loop(), RequestReader()
        self.client: tuple[str, int] | None = None
        self.cycle: Cycle | FrameExchange | None = None
        self._frames: Frames | None = None
        self.lending: Lending | None = None
        self._receiver: BodyReceiver | None = None
        self._unread = bytearray()  # what comes after a request that is not answered
        self._keep_alive = True  # whether the caller allows another request after the one that is being received
        self._refused = False  # whether nothing more is read

    # ------------------------------------------------------------------------------------------------ open and closed
    def connection_made(self, transport: Any) -> None:  # uvloop's are no subclasses
        """Begins to receive; refuses a connection too many."""
        self.transport, self.flow, self._pace = transport, Flow(transport), Pace(self._all, transport)
        peer, own = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        self.client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self._address = (str(own[0]), int(own[1])) if isinstance(own, tuple) else (str(own), None)
        self._is_tls = transport.get_extra_info("sslcontext") is not None
        if self._heads is not None:
            self._frames = Frames(self, self._heads)
            if self._may_be_lent and not self._is_tls:
                self.lending = Lending(self, self._frames)
        self._server.connections.add(self)
        if not self._all.add(self):
            most = self._all.most
            self._refuse("overloaded", f"this server has {most} connections, the limit: try again later", limit=most)

    def connection_lost(self, exc: Exception | None) -> None:
        """Lets the application or the exchange know that the caller has left."""
        self._all.discard(self)
        self._server.connections.discard(self)
        if self.lending is not None:
            self.lending.end()
        self._abandon()
        self.flow.resume_writing()  # ends all waits for the caller
        self._reader.close()
        self._frames = self.lending = None  # each of them has this object

    def _abandon(self) -> None:
        cycle, self.cycle = self.cycle, None
        if cycle is not None and not cycle.response_complete:
            if self._frames is not None:
                self._frames.stop_writing()
            self._receive_here()
            cycle.abandon()
        self._unread.clear()

    @property
    def is_unanswered(self) -> bool:
        """Whether a request has no complete answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def shutdown(self) -> None:
        """Closes after the answer that is due."""
        if self._refused:
            self.transport.abort()
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._keep_alive = self.cycle.keep_alive = False

    # ------------------------------------------------------------------------------------------------------ receiving
    def data_received(self, data: bytes) -> None:
        """Reads what came: at most one request."""
        self._pace.received += len(data)
        if self._refused:
            body = self._all.max_body if self._reader.stage is Stage.BODY else 0
            if self._pace.received > max(body, _MAX_DISCARDED):
                self.transport.abort()
        elif self._unread:
            self._keep_unread(data)
        else:
            self._read(data)

    def _keep_unread(self, data: bytes | memoryview) -> None:
        """Keeps bytes for later, and receives no more until then."""
        self._unread += data
        self.flow.pause_reading()

    def _read_unread(self) -> None:
        if self._unread and not self.transport.is_closing() and not self._refused:
            data, self._unread = self._unread, bytearray()
            self.flow.resume_reading()
            self._read(data)

    def _read(self, data: bytes | bytearray) -> None:
        reader, position, length, parts = self._reader, 0, len(data), 0
        while position < length and not (self._refused or self.transport.is_closing()):
            waits = reader.stage is Stage.START and self.is_unanswered
            if waits or parts == _PARTS:
                self._keep_unread(memoryview(data)[position:])
                if not waits:
                    self._loop.call_soon(self._read_unread)
                break
            position = self._read_part(data, position)
            parts += 1
        if reader.stage is Stage.BODY and isinstance(self.cycle, FrameExchange) and self._receiver is None:
            missing = self.cycle.missing
            if len(missing) >= _DIRECT and not self.transport.is_closing():
                self._receiver = BodyReceiver(self, missing)
                self.transport.set_protocol(self._receiver)

    def _read_part(self, data: bytes | bytearray, position: int) -> int:
        """Reads a head, or a piece of a body; returns where the next part begins."""
        reader, is_start = self._reader, self._reader.stage is Stage.START
        if is_start and self._frames is not None:
            begun = self._frames.begin_known(data, position)
            if begun is not None:
                exchange, head, length, end = begun
                reader.begin_known(head, length)
                self._begin(exchange)
                if self.lending is not None:
                    self.lending.may_count = len(data) - end <= length <= MOST
                return end
        try:
            end = reader.read(data, position)
            if reader.head_ended:
                assert reader.head is not None
                self._begin(self._cycle_of(reader.head))
                if is_start and self._frames is not None and isinstance(self.cycle, FrameExchange):
                    self._frames.remember(bytes(data[position:end]))
            elif is_start and reader.stage is Stage.HEAD:
                self._pace.restart()
        except MalformedRequestError:
            self._refuse("malformed_http", "this is not a request in HTTP/1.1, or not a complete one")
            return len(data)
        except HeadTooLargeError:
            self._refuse(
                "headers_too_large",
                f"a request's line and headers may take {MAX_HEAD} bytes, and it may have {MAX_HEADERS} headers",
                limit=MAX_HEAD,
                headers=MAX_HEADERS,
            )
            return len(data)
        if self.cycle is not None:
            if reader.body:
                self.cycle.receive(reader.body)
            if reader.message_ended:
                self._end_of_message()
        return end

    def _cycle_of(self, head: Head) -> Cycle | FrameExchange:
        """Returns what answers the request with this head."""
        if self.lending is not None:
            self.lending.note_head(head)
        exchange = None if self._frames is None else self._frames.begin(head)
        if exchange is not None:
            self._reader.skip_parser()
            return exchange
        scheme = "https" if self._is_tls else "http"
        cycle = Cycle(self, head, scope_of(head, client=self.client, server=self._address, scheme=scheme))
        task = self._loop.create_task(cycle.run(self._application))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)
        return cycle

    def _begin(self, cycle: Cycle | FrameExchange) -> None:
        """Begins to receive the body of a request."""
        self.cycle = cycle
        # An answer that begins before the body is here says that the connection ends with it.
        self._keep_alive, cycle.keep_alive = cycle.keep_alive, False
        self._pace.restart()

    def _end_of_message(self) -> None:
        """Begins to wait for the answer."""
        cycle = self.cycle
        assert cycle is not None
        if not cycle.response_started:
            cycle.keep_alive = self._keep_alive
        self._pace.restart()
        cycle.end_of_body()

    def body_received(self, count: int) -> None:
        """Notes that `count` bytes of a frame have come into their memory."""
        exchange = self.cycle
        assert isinstance(exchange, FrameExchange)
        self._pace.received += count
        exchange.received(count)
        self._reader.count(count)
        if not self._reader.left:
            self._receive_here()
            self._end_of_message()

    def _receive_here(self) -> None:
        """Receives what comes next as usual, not into the memory of a frame."""
        if self._receiver is not None:
            self._receiver = None
            if not self.transport.is_closing():
                self.transport.set_protocol(self)

    # ------------------------------------------------------------------------------------------------------ answering
    def answer_ended(self) -> None:
        """Goes on with the next request; see `Caller`."""
        if self.cycle is None or not self.cycle.keep_alive:
            self.close_after_answer()
        elif not self.transport.is_closing():
            self._pace.restart()
            self.receive_more()
            if self._unread:
                self._loop.call_soon(self._read_unread)

    def receive_more(self) -> None:
        """Receives again, but not before what has come is read; see `Caller`."""
        if not self._unread:
            self.flow.resume_reading()

    def close_after_answer(self) -> None:
        """Closes after the last answer, or instead of the rest of one."""
        if self._reader.stage is Stage.BODY and not self.is_unanswered and not self.transport.is_closing():
            self._linger()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Begins to wait for the caller."""
        self._pace.count_drained()
        self.flow.pause_writing()

    def resume_writing(self) -> None:
        """Ends the wait."""
        self._pace.count_drained()
        self.flow.resume_writing()
        if self._frames is not None:
            self._frames.write_more()

    # --------------------------------------------------------------------------------------------------------- lending
    @property
    def is_between_requests(self) -> bool:
        """Whether nothing of a request has come that is not answered; see `Lent`."""
        is_between = self._reader.stage is Stage.START and not self._reader.head_bytes and not self._unread
        return is_between and not self._refused and not self.is_unanswered

    def stop_receiving(self) -> None:
        """Leaves what comes in the socket; see `Lent`."""
        self.flow.pause_reading()

    def receive_again(self) -> None:
        """Waits for the next request; see `Lent`."""
        self._pace.restart()
        self.flow.resume_reading()

    def receive_exchange(self, exchange: FrameExchange) -> None:
        """Goes on with an exchange whose frame was received elsewhere; see `Lent`."""
        self.cycle = exchange

    # ------------------------------------------------------------------------------------------------ stalled, refused
    def keys_changed(self, keys: Keys) -> None:
        """Asks for keys anew: takes a lent connection back, and ends a stream of events to a key that has ended."""
        if self.lending is not None:
            self.lending.recall()
        if isinstance(self.cycle, Cycle) and self.is_unanswered and not self.cycle.is_for_valid(keys):
            self.transport.abort()

    def check(self, seconds: float) -> None:
        """Ends the connection if it has stalled; the sweep calls this with the seconds since the last time."""
        if self.lending is not None and self.lending.loan is not None:
            return  # it comes back before that
        pace, limits = self._pace, self._all
        is_sending = self._is_sending()
        if is_sending:
            if pace.reads_too_slowly(seconds):
                self.transport.abort()
        elif self._refused:
            if pace.lingers_too_long(seconds):
                self.transport.abort()
        elif self._reader.stage is Stage.BODY:
            # While reading is paused, the server has not taken what came before.
            if not self.flow.read_paused and pace.sends_too_slowly(seconds, self._reader.body_bytes):
                self._refuse_body()
        elif not self.is_unanswered:
            is_idle = self.cycle is not None and not self._reader.head_bytes  # and has had an answer
            if pace.has_waited(seconds, KEEP_ALIVE_SECONDS if is_idle else limits.stall_limit):
                self._end_stalled_head()
        pace.end_of_look(is_sending=is_sending)

    def _is_sending(self) -> bool:
        """Returns whether the caller has to read before anything else can happen."""
        has_to_read = self._refused and self.transport.get_write_buffer_size() > 0
        return self.flow.write_paused or self.transport.is_closing() or has_to_read

    def _end_stalled_head(self) -> None:
        if self._reader.stage is Stage.START:  # no request has begun: there is nothing to answer
            self.transport.close()
            return
        limit = self._all.stall_limit
        self._refuse("request_timeout", f"the request's headers took longer than {limit:g} s", limit=limit)

    def _refuse_body(self) -> None:
        limit, rate, nbytes = self._all.stall_limit, self._all.min_rate, self._reader.body_bytes
        self._refuse(
            "request_timeout",
            f"the body's {nbytes} bytes took {self._pace.waited:.3g} s: none may be missing for {limit:g} s, "
            f"and {rate} a second have to come",
            found=nbytes,
            limit=limit,
            rate=rate,
        )

    def _refuse(self, code: str, detail: str, **details: Any) -> None:
        """Answers with a problem, and takes no more requests."""
        if self.cycle is not None and self.cycle.response_started and self.is_unanswered:  # no answer within another
            self._end_requests()
            self.transport.close()
            return
        retry = {"Retry-After": "1"} if code in ("overloaded", "request_timeout") else {}
        self._all.refusals[code] += 1
        response = problem_response(code, detail, request_id=new_request_id(), details=details, headers=retry)
        head = answer_head(response.status_code, [*response.raw_headers, CLOSE])
        self.transport.write(head + bytes(response.body))
        self._linger()

    def _linger(self) -> None:
        """Takes no more requests, and closes when the caller does, or when it has sent nothing for two seconds.

        Many callers read no answer before they have sent their body. What arrives at a closed socket makes the network
        discard what its peer has not read yet.
        """
        if self._end_requests():
            self.flow.resume_reading()
            if not self._is_tls:  # which has no such half
                self.transport.write_eof()
        else:
            self.transport.close()

    def _end_requests(self) -> bool:
        """Reads no more requests; returns whether the connection may stay open until its caller has read."""
        self._refused = True
        self._pace.begin_lingering()
        self._abandon()
        return self._all.refuse(self)
