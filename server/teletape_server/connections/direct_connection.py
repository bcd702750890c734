"""A connection that goes to its session's process while small frames come quickly one after the other.

The process then reads, runs and answers them (`worker.direct_connections`), and this process sleeps. Whatever else the
caller sends, and whatever takes long, comes back here (`hosts.handed_connections`), and goes on as in the class above.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.connections.connection import Stage
from teletape_server.connections.exchange import FrameExchange
from teletape_server.connections.frame_connection import FrameConnection
from teletape_server.connections.heads import KnownHead
from teletape_server.hosts.handed_connections import Handover
from teletape_server.hosts.running import Running
from teletape_server.http.dispatch import LargeResponse
from teletape_server.ipc.heads import MOST, Approval, answer_pattern
from teletape_server.ipc.leases import Lease
from teletape_server.ipc.page import RunningFrame
from teletape_server.sessions.entry import SessionEntry

_QUICK: Final = 0.02  # seconds that a frame may take before its connection is handed over
_FIRST: Final = 2  # such frames before it is handed over
_LAST: Final = 4096  # the same at most, after it has often come back
_MAX_HEAD: Final = 8 << 10
#: A proxy's header: a connection of it may carry the requests of several callers.
_PROXIED: Final = re.compile(rb"\r\n(x-forwarded-[a-z]+|forwarded|via|x-real-ip):", re.IGNORECASE)


class DirectConnection(FrameConnection):
    """A connection that can be handed over; its arguments are those of `FrameConnection`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._handover: Handover | None = None
        self._session: SessionEntry | None = None  # of the last handover
        self._was_handed = False
        self._began: float | None = None  # when the present frame began, if it may count
        self._quick = 0  # such frames, one after the other
        self._needed = _FIRST

    # ----------------------------------------------------------------------------------------------------- handing over
    def _begin_known(self, known: KnownHead, data: bytes | bytearray, position: int) -> int | None:
        end = super()._begin_known(known, data, position)
        is_small = end is not None and self.body_left is not None and self.body_left <= MOST
        self._began = time.monotonic() if is_small and len(data) - (end or 0) == self.body_left else None
        return end

    def _begin_cycle(self) -> None:
        self._began = None
        super()._begin_cycle()

    def _respond(self, exchange: FrameExchange, response: Response) -> None:
        if response.status_code != 200 or len(response.body) > MOST:
            self._began = None
        super()._respond(exchange, response)

    def _on_response_end(self, exchange: FrameExchange) -> None:
        super()._on_response_end(exchange)
        is_quick = self._began is not None and time.monotonic() - self._began < _QUICK
        self._quick = self._quick + 1 if is_quick else 0
        if self._quick >= self._needed:
            self.loop.call_soon(self._hand_over, exchange.session)  # after the answer is written

    def _can_be_handed_over(self) -> bool:
        """Returns whether nothing is under way here, and the caller may be the only one of this connection."""
        if self._handover is not None or not self._is_free() or self.stage is not Stage.START:
            return False
        if self._unparsed or self._is_last or self._refused or self._logs_requests:
            return False
        if self.transport.is_closing() or self.transport.get_write_buffer_size() or self._heads.guard.is_stopping():
            return False
        known = self._known_head
        if known is None or not known.head.keep_alive:
            return False
        data = known.data.before + known.data.after
        return len(data) <= _MAX_HEAD and not _PROXIED.search(data)

    def _hand_over(self, entry: SessionEntry) -> None:
        if entry.host is None or not self._can_be_handed_over():
            return
        self._quick = 0
        file = self.transport.get_extra_info("socket").fileno()
        self._handover = entry.host.handed.hand_over(self, file, self._approval, entry.bytes_in_use)
        if self._handover is not None:
            self._session, self._was_handed = entry, True
            self._unset_keepalive_if_required()
            self.flow.pause_reading()

    def _approval(self, ahead: float, lease: Lease) -> Approval:
        """Returns what the process has to know of this connection's frames."""
        known = self._known_head
        assert known is not None
        head, settings = known.head, self._heads.settings
        response = LargeResponse(b"", media_type=wire.FRAME_TYPE)
        self._heads.guard.complete(MutableHeaders(raw=response.raw_headers), head.path, head.request_id or "-")
        return Approval(
            *known.data,
            head.params,
            answer_pattern(self._head_of(response, keep_alive=True)),
            None if head.request_id is None else head.request_id.encode(),
            min(MOST, settings.max_body, settings.bodies_per_key, settings.bodies),
            settings.max_header,
            ahead,
            lease.terms.idle,
            lease.terms.ends,
        )

    # ------------------------------------------------------------------------------------------------------ coming back
    def returned(self, unsent: bytes, *, is_idle: bool) -> None:
        """Goes on here; see `HandedConnection`."""
        handover, self._handover = self._handover, None
        if handover is not None:
            self._needed = _FIRST if is_idle or handover.count > self._needed else min(4 * self._needed, _LAST)
        if self.transport.is_closing():
            return
        if unsent:
            self.transport.write(unsent)
        self.flow.resume_reading()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def taken_over(self, frame: RunningFrame, running: Running) -> None:
        """Answers a frame here; see `HandedConnection`."""
        self._handover = None
        known = self._known_head
        if self.transport.is_closing() or known is None or self._session is None:
            return
        try:
            prefix = wire.decode_prefix(frame.prefix, max_header=self._heads.settings.max_header)
        except wire.WireError:  # the process does not do what it should
            self.transport.abort()
            return
        exchange = self._begin_exchange(known.head, self._session, prefix.total_length)
        self.note_cycle()
        self.note_end_of_message()
        self._began = None
        exchange.take_over(frame.prefix, running, time.monotonic() - frame.since)
        self.flow.resume_reading()

    def lost(self) -> None:
        """Closes; see `HandedConnection`."""
        self._handover = None
        self.transport.abort()

    # ------------------------------------------------------------------------------------------------ open and closed
    def check(self, seconds: float) -> None:
        """Ends the connection if it has stalled; a connection that is handed over comes back before that."""
        if self._handover is None:
            super().check(seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Takes the connection from the process, if it has it; see `Connection`."""
        handover, self._handover = self._handover, None
        if handover is not None and self._session is not None and self._session.host is not None:
            self._session.host.handed.abandon(handover)
        if self._was_handed:
            self._shut_down()
        super().connection_lost(exc)

    def _shut_down(self) -> None:
        """Ends the connection for all processes: one that computes may still have it open for some time."""
        file = self.transport.get_extra_info("socket").fileno()
        if file >= 0:
            sock = socket.socket(fileno=file)
            with contextlib.suppress(OSError):  # the caller has left
                sock.shutdown(socket.SHUT_RDWR)
            sock.detach()
