"""How bytes pass: when a transport takes more, large bodies without a copy, answers in pieces, and their heads."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol

from teletape_server.http.events import PIECE
from teletape_server.ipc.heads import http_date

_JOINED: Final = 64 << 10  # bytes up to which a body is written together with its head
_NOTHING: Final = memoryview(b"")  # an empty part of a body would hold its memory
_STATUS_LINES: Final = {item.value: b"HTTP/1.1 %d %b\r\n" % (item, item.phrase.encode()) for item in HTTPStatus}
_NOT_IN_NAMES: Final = re.compile(rb'[\x00-\x1f\x7f()<>@,;:\[\]={} \t\\"]')
_NOT_IN_VALUES: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def answer_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Returns the head of an answer, with the date.

    Raises:
        ValueError: A header is none.
    """
    lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status, b"date: %b\r\n" % http_date(int(time.time()))]
    lines += [_line(name, value) for name, value in headers]
    lines.append(b"\r\n")
    return b"".join(lines)


@lru_cache(maxsize=256)
def _line(name: bytes, value: bytes) -> bytes:
    if _NOT_IN_NAMES.search(name) or _NOT_IN_VALUES.search(value):
        raise ValueError(f"not a header: {name!r}: {value!r}")
    return b"%b: %b\r\n" % (name, value)


class Flow:
    """Whether a transport brings bytes, and takes them.

    Args:
        transport: The transport.

    Attributes:
        read_paused: Whether it brings none.
        write_paused: Whether it has as much as it takes.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._writable: asyncio.Event | None = None  # if a task waits

    def pause_reading(self) -> None:
        """Receives no more."""
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receives again."""
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Notes that the transport has as much as it takes."""
        self.write_paused = True

    def resume_writing(self) -> None:
        """Notes that the transport takes more."""
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    async def drain(self) -> None:
        """Waits until the transport takes more."""
        if self.write_paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()


class Receiving(Protocol):
    """What the receiver needs of its connection, besides what a protocol has."""

    def body_received(self, count: int) -> None:
        """Notes that `count` bytes of the body have come."""

    def eof_received(self) -> bool | None:
        """Notes that the caller sends no more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Notes that the connection is closed."""

    def pause_writing(self) -> None:
        """Notes that the transport's buffer is full."""

    def resume_writing(self) -> None:
        """Notes that the transport's buffer has room."""


class BodyReceiver(asyncio.BufferedProtocol):
    """A transport's protocol while it receives the rest of a body; what comes after the body is left in the socket.

    Args:
        connection: The protocol before and afterwards.
        memory: For exactly the rest of the body.
    """

    def __init__(self, connection: Receiving, memory: memoryview) -> None:
        self._connection = connection
        self._missing = memory

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the memory for the next bytes."""
        return self._missing

    def buffer_updated(self, nbytes: int) -> None:
        """Notes that the next bytes are in their memory."""
        self._missing = self._missing[nbytes:]
        self._connection.body_received(nbytes)

    def eof_received(self) -> bool | None:
        """See the connection."""
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """See the connection."""
        self._missing = memoryview(b"")
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """See the connection."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """See the connection."""
        self._connection.resume_writing()


class AnswerWriter:
    """Writes an answer; the connection calls `write` whenever the transport can take more.

    Args:
        transport: Takes the pieces.
        flow: Knows whether the transport can take more.
        head: The status line and the headers.
        body: The body, whose memory is free after the last piece.
        on_end: Called after the transport got the last piece.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        flow: Flow,
        head: bytes,
        body: bytes | memoryview,
        on_end: Callable[[], None],
    ) -> None:
        self._transport, self._flow, self._on_end = transport, flow, on_end
        self._head: bytes | None = head
        self._rest = memoryview(body)

    def write(self) -> None:
        """Writes the next piece, if the transport can take it."""
        if self._flow.write_paused or self._transport.is_closing():
            return
        head, self._head = self._head, None
        if head is not None and len(self._rest) <= _JOINED:
            self._transport.write(b"".join((head, self._rest)))
            self._rest = _NOTHING
            self._on_end()
            return
        if head is not None:
            self._transport.write(head)
        if not self._rest:  # it was stopped
            return
        piece = self._rest[:PIECE]
        self._rest = self._rest[PIECE:] if len(self._rest) > PIECE else _NOTHING
        self._transport.write(piece)
        if not self._rest:
            self._on_end()
        elif not self._flow.write_paused:  # other connections get their turn between two pieces
            asyncio.get_running_loop().call_soon(self.write)

    def stop(self) -> None:
        """Writes no more."""
        self._head, self._rest = None, _NOTHING
