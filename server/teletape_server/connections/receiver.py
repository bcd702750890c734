"""The way of a large body from the system straight into its memory: without it each 64 KiB would be copied twice."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Receiving(Protocol):
    """What the receiver needs of its connection, besides what a protocol has."""

    def body_received(self, count: int) -> None:
        """Notes that `count` bytes of the body have come."""

    def eof_received(self) -> None:
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

    def eof_received(self) -> None:
        """See the connection."""
        self._connection.eof_received()

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
