"""Writes an answer as fast as the caller takes it: a large one in pieces, none of which is copied or held for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from uvicorn.protocols.http.flow_control import FlowControl

from teletape_server.http.events import PIECE

_JOINED: Final = 64 << 10  # bytes up to which a body is written together with its head
_NOTHING: Final = memoryview(b"")  # an empty part of a body would hold its memory


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
        flow: FlowControl,
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
