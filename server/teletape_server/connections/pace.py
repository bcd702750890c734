"""How slowly a caller may send and read: a connection's counters, which the sweep looks at once a second.

This runs before authentication.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from typing import Final, Protocol

KEEP_ALIVE_SECONDS: Final = 5.0  #: That a connection stays open after an answer, at least.
_LINGER_SECONDS: Final = 2.0  # in which a caller can read an answer that did not need all of its request


class Limits(Protocol):
    """The limits of all connections.

    Attributes:
        stall_limit: Seconds after which a connection that sends or reads nothing is ended.
        min_rate: Bytes a second at which bodies and answers have to pass.
    """

    stall_limit: float
    min_rate: int


class Pace:
    """The counters of a connection.

    Args:
        limits: Of all connections.
        transport: Knows how many bytes the caller has not read.

    Attributes:
        received: Bytes that have come, of whatever.
        waited: Seconds since the present stage began, as the sweep counts them.
    """

    def __init__(self, limits: Limits, transport: asyncio.Transport) -> None:
        self._limits, self._transport = limits, transport
        self.received = 0
        self.waited = 0.0
        self._stalled = 0.0  # seconds without a byte
        self._received_before = 0  # at the last look
        self._unread = 0.0  # seconds that the caller has had something to read
        self._drained = self._unsent_before = 0  # bytes that it has read meanwhile; that it had not read before

    def restart(self) -> None:
        """Begins a stage: a head, a body, the wait for the next request."""
        self.waited = self._stalled = 0.0

    def begin_lingering(self) -> None:
        """Begins the last stage: only what is received from now on counts."""
        self.restart()
        self.received = self._received_before = 0

    # ------------------------------------------------------------------------------------------------ callers that send
    def has_waited(self, seconds: float, limit: float) -> bool:
        """Adds to the time of the stage; returns whether it is over the limit."""
        self.waited += seconds
        return self.waited > limit

    def sends_too_slowly(self, seconds: float, nbytes: int) -> bool:
        """Returns whether nothing of a body has come for too long, or its bytes took too long."""
        self._count_stall(seconds)
        return self._stalled > self._limits.stall_limit or self.waited > self._allowed(nbytes)

    def lingers_too_long(self, seconds: float) -> bool:
        """Returns whether a caller that has its answer neither closes nor sends the rest of its request."""
        self._count_stall(seconds)
        limit = _LINGER_SECONDS + self.received / self._limits.min_rate
        return self._stalled > _LINGER_SECONDS or self.waited > limit

    def _count_stall(self, seconds: float) -> None:
        self.waited += seconds
        self._stalled = 0.0 if self.received != self._received_before else self._stalled + seconds

    def end_of_look(self, *, is_sending: bool) -> None:
        """Notes what the next look of the sweep compares with."""
        self._received_before = self.received
        if not is_sending:
            self._unread, self._drained, self._unsent_before = 0.0, 0, 0

    # ------------------------------------------------------------------------------------------------ callers that read
    def reads_too_slowly(self, seconds: float) -> bool:
        """Returns whether a caller that has something to read reads nothing, or not enough."""
        self._unread += seconds
        self.count_drained()
        return self._unread > self._allowed(self._drained)

    def count_drained(self) -> None:
        """Counts what the caller has read: a large answer comes in pieces, so it waits often between two looks."""
        unsent = self._transport.get_write_buffer_size() + self._in_kernel()
        self._drained += max(self._unsent_before - unsent, 0)
        self._unsent_before = unsent

    def _in_kernel(self) -> int:
        """Returns the bytes that the system has not brought to the caller: it may take megabytes before it waits."""
        try:
            count = fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):  # the connection is closed
            return 0
        return int.from_bytes(count, sys.byteorder)

    def _allowed(self, nbytes: int) -> float:
        """Returns the seconds that these bytes may take."""
        return self._limits.stall_limit + nbytes / self._limits.min_rate
