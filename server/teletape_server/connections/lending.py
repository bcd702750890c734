"""Lends a connection to a process while small requests come quickly one after the other.

They are frames, or plain requests, all with the same head: so their key is the one that was checked here, and the
session, or the published function, is one that it may use. The process then reads, runs and answers them
(`worker.lent`), and this process sleeps. Whatever else the caller sends, such as another key, and whatever takes long,
comes back here (`hosts.loans`), and goes on as on any connection. A connection that has brought the requests of several
callers is not lent again: its process could read their keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from typing import Any, Final, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.connections.exchanges.frame import FrameExchange
from teletape_server.connections.exchanges.without_session import PublishedExchange
from teletape_server.connections.frames import Frames
from teletape_server.connections.heads import FrameHead
from teletape_server.connections.reader import Head
from teletape_server.connections.streams import answer_head
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.loans import LentRequest, Loan
from teletape_server.http.answers import LargeResponse
from teletape_server.identity.key_texts import presented_key
from teletape_server.identity.principals import Principal
from teletape_server.ipc.heads import FRAME, MOST, Approval, answer_pattern
from teletape_server.models.published.contract import Name, Published
from teletape_server.published.calls import most_together
from teletape_server.sessions.entry import SessionEntry

#: Seconds that a request may take, with its wait for others, before its connection is lent. Where many wait, it is
#: better that one process reads while the other one computes.
_QUICK: Final = 0.02
#: Likewise, of a call of a published function, what it takes of its batch: what waits is computed together.
_QUICK_CALL: Final = 0.008
_FIRST: Final = 2  # such requests before it is lent
_LAST: Final = 4096  # the same at most, after it has often been returned
_MAX_HEAD: Final = 8 << 10
#: A proxy's header: a connection of it may carry the requests of several callers.
_PROXIED: Final = re.compile(rb"\r\n(x-forwarded-[a-z]+|forwarded|via|x-real-ip):", re.IGNORECASE)
_KEYS: Final = (b"authorization", b"x-api-key")  # headers


class Lent(Protocol):
    """What is needed of the connection."""

    transport: asyncio.Transport

    @property
    def is_between_requests(self) -> bool:
        """Whether nothing of a request has come that is not answered."""

    def stop_receiving(self) -> None:
        """Leaves what comes in the socket."""

    def receive_again(self) -> None:
        """Waits for the next request, as after an answer."""

    def receive_exchange(self, exchange: FrameExchange) -> None:
        """Goes on with an exchange whose request was received elsewhere."""


class Lending:
    """Decides when a connection is lent, and goes on with it afterwards.

    Args:
        connection: The connection; not over TLS, which the process does not speak.
        frames: Its frames and plain requests.

    Attributes:
        loan: The present one.
    """

    def __init__(self, connection: Lent, frames: Frames) -> None:
        self._connection, self._frames = connection, frames
        frames.on_end = self._count
        self.loan: Loan | None = None
        self._session: SessionEntry | None = None  # of the last loan
        self._named: tuple[Name, Published] | None = None  # the published function of the last loan
        self._quick = 0  # such requests, one after the other
        self._needed = _FIRST
        self.may_count = False  # whether the present request does: its head was known, and nothing came after it
        self._sent: list[tuple[bytes, bytes]] | None = None  # the headers with the key of the last head
        self._principal: Principal | None = None  # of the last key that is known
        self._is_shared = False  # whether it was another one's before, as at a proxy

    # --------------------------------------------------------------------------------------------------------- lending
    def note_head(self, head: Head) -> None:
        """Notes whose request has come, if its key is another one than before; one with a known head has the same."""
        sent = [(name, value) for name, value in head.headers if name in _KEYS]
        if sent == self._sent:
            return
        self._sent, named = sent, Headers(raw=sent)
        presented = presented_key(named.get("authorization"), named.get("x-api-key"))
        principal = self._frames.heads.keys.principal(presented)
        if principal is not None:
            self._is_shared = self._is_shared or self._principal not in (None, principal)
            self._principal = principal

    def _count(self, exchange: FrameExchange, response: Response) -> None:
        """Counts a request that is answered."""
        head = exchange.head
        is_small = response.status_code == 200 and len(response.body) <= min(MOST, head.uncompressed)
        may_be_lent = self.may_count and is_small and bool(head.session or head.is_run or head.published)
        if isinstance(exchange, PublishedExchange):
            is_quick = may_be_lent and exchange.compute_seconds < _QUICK_CALL
        else:
            is_quick = may_be_lent and exchange.seconds < _QUICK
        self.may_count = False
        self._quick = self._quick + 1 if is_quick else 0
        if self._quick >= self._needed:
            entry = None if head.published else exchange.session
            asyncio.get_running_loop().call_soon(self._lend, head, entry)  # after the answer is written

    def _can_be_lent(self, head: FrameHead) -> bool:
        """Returns whether nothing has come after the request with a head, and its caller may be the only one here."""
        transport, known, keys = self._connection.transport, self._frames.known, self._frames.heads.keys
        if self.loan is not None or self._is_shared or not self._connection.is_between_requests:
            return False
        if transport.is_closing() or transport.get_write_buffer_size() or self._frames.heads.guard.is_stopping():
            return False
        if known is None or known.head is not head or not head.keep_alive or known.generation != keys.generation:
            return False
        if head.parent is not None:  # the spans of its requests are made here
            return False
        data = known.data.before + known.data.after
        return len(data) <= _MAX_HEAD and not _PROXIED.search(data)

    def _lend(self, head: FrameHead, entry: SessionEntry | None) -> None:
        if not self._can_be_lent(head):
            return
        self._quick = 0
        transport, heads = self._connection.transport, self._frames.heads
        if entry is None:
            named = heads.published(head)
            if named is None:
                return
            self._named = named
            self.loan = heads.pool.lent.lend(self, transport, self._approval_of_calls(*named), named[1])
        elif not entry.record.is_run or heads.registry.lend_run(entry):
            self._session = entry
            self.loan = entry.lend(self, transport, self._approval(entry))
            if self.loan is None:
                self._end_run()
        if self.loan is not None:
            self._connection.stop_receiving()

    def _end_run(self) -> None:
        """Ends the use of a session that has nothing but the requests of this connection."""
        if self._session is not None and self._session.record.is_run:
            self._frames.heads.registry.end_run_soon(self._session)

    def _approval(self, entry: SessionEntry) -> Approval:
        """Returns what the process of a session has to know of this connection's requests."""
        head = self._head
        if head.plain is None:
            return self._approved(
                entry, "batch", wire.FRAME_TYPE, wire.FRAME_TYPE, head.params | {"alone": entry.dtype}
            )
        params = {**head.plain.params, "alone": entry.dtype}
        return self._approved(entry, head.plain.operation, wire.JSON_TYPE, wire.JSON_TYPE, params)

    def _approval_of_calls(self, name: Name, published: Published) -> Approval:
        """Returns what a process of published functions has to know of this connection's calls."""
        plain, content_type = self._head.plain, self._head.params["content_type"]
        assert plain is not None
        limit = {TIME_LIMIT: plain.params[TIME_LIMIT]} if TIME_LIMIT in plain.params else {}
        params = {"version": published.version, "question": plain.operation, "call": plain.params, **limit}
        approval = self._approved(None, "published-ask", content_type, plain.params["accept"], params)
        together = most_together(published, plain.operation)
        return approval._replace(function=name.name, owner=self._head.owner, together=together)

    @property
    def _head(self) -> FrameHead:
        known = self._frames.known
        assert known is not None, "it is lent for a known head"
        return known.head

    def _approved(
        self, entry: SessionEntry | None, method: str, content_type: str, answer_type: str, params: dict[str, Any]
    ) -> Approval:
        known, heads, settings, head = self._frames.known, self._frames.heads, self._frames.heads.settings, self._head
        assert known is not None
        response = LargeResponse(b"", media_type=answer_type)
        heads.complete(response, head, entry, head.request_id or "-", is_alone=True)  # its process has one at a time
        return Approval(
            *known.data,
            method=method,
            content_type=content_type,
            params=params,
            pattern=answer_pattern(answer_head(response.status_code, response.raw_headers)),
            request_id=None if head.request_id is None else head.request_id.encode(),
            most=min(MOST, settings.max_body, settings.bodies_per_key, settings.bodies),
            most_of_answer=int(min(MOST, head.uncompressed)),
            max_header=settings.max_header,
            label=FRAME if head.plain is None else (head.plain.verb, head.plain.route, 200),
            answer_type=answer_type,
        )

    # ------------------------------------------------------------------------------------------------------ coming back
    def recall(self) -> None:
        """Lets the connection come back, if it is lent."""
        if self.loan is not None:
            self.loan.recall()

    def reclaimed(self, request: LentRequest | None) -> None:
        """Goes on here; see `Lender`."""
        self.loan, known, transport = None, self._frames.known, self._connection.transport
        if request is None or transport.is_closing():
            self._end_run()
        if transport.is_closing():
            return
        if request is None:
            self._needed = _FIRST
        else:
            assert known is not None
            try:
                length = 0 if known.head.plain is not None else self._length(request)
            except wire.WireError:  # the process does not do what it should
                transport.abort()
                return
            if known.head.published:
                assert self._named is not None
                exchange: FrameExchange = self._frames.call_exchange(known.head, *self._named, length)
            else:
                assert self._session is not None
                exchange = self._frames.exchange(known.head, self._session, length)
            self._connection.receive_exchange(exchange)
            exchange.go_on(request)
        self._connection.receive_again()

    def _length(self, request: LentRequest) -> int:
        """Returns the bytes of a frame that the process has read."""
        return wire.decode_prefix(request.prefix, max_header=self._frames.heads.settings.max_header).total_length

    def returned(self, unsent: bytes) -> None:
        """Goes on here; see `Lender`."""
        loan, self.loan = self.loan, None
        self._end_run()
        if loan is not None:
            self._needed = _FIRST if loan.count > self._needed else min(4 * self._needed, _LAST)
        transport = self._connection.transport
        if not transport.is_closing():
            if unsent:
                transport.write(unsent)
            self._connection.receive_again()

    def lost(self) -> None:
        """Closes; see `Lender`."""
        self.loan = None
        self._end_run()
        self._connection.transport.abort()

    # ----------------------------------------------------------------------------------------------------------- closed
    def end(self) -> None:
        """Ends the loan of the connection, which is closed, if there is one."""
        loan, self.loan = self.loan, None
        if loan is not None:
            loan.close()
            self._end_run()
        if self._session is not None or self._named is not None:
            self._shut_down()

    def _shut_down(self) -> None:
        """Ends the connection for all processes: one that computes may still have it open for some time."""
        file = self._connection.transport.get_extra_info("socket").fileno()
        if file >= 0:
            sock = socket.socket(fileno=file)
            with contextlib.suppress(OSError):  # the caller has left
                sock.shutdown(socket.SHUT_RDWR)
            sock.detach()
