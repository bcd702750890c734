"""Messages and bodies between the server and a worker process, the same on both ends.

Messages are small and travel over a SOCK_SEQPACKET pair; a large body lies in shared memory that its sender owns and
uses again once the receiver has let go of every view of it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

#: Bodies up to this many bytes travel inside their message: cheaper than mapping memory.
INLINE: Final = 32 << 10
_MESSAGE: Final = 128 << 10  # a Unix socket's buffer takes 208 KB by default
_KEPT: Final = 256 << 20  # bytes of idle segments that a sender keeps for the next body
_SMALLEST: Final = 64 << 10


class Loan:
    """Room for one body, to be filled through `view` and then sent, or else discarded.

    Attributes:
        view: The room.
    """

    __slots__ = ("_pool", "segment", "view")

    def __init__(self, length: int, segment: Segment | None, pool: Pool | None) -> None:
        self.segment = segment
        self._pool = pool
        self.view = memoryview(bytearray(length)) if segment is None else memoryview(segment.map)[:length]

    def discard(self) -> None:
        """Gives the room back unsent."""
        self.view.release()
        if self._pool is not None and self.segment is not None:
            self._pool.give_back(self.segment.id)
            self.segment = None


class Segment:
    """Shared memory of a sender: `fd` until the receiver has it."""

    __slots__ = ("fd", "id", "map", "size")

    def __init__(self, number: int, size: int) -> None:
        self.id, self.size = number, size
        self.fd: int | None = os.memfd_create("teletape-body", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, size)
            self.map = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise

    def close(self) -> None:
        """Ends this side's hold; the memory goes when the receiver's does."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        with contextlib.suppress(BufferError):  # a view is still around: the map goes with it
            self.map.close()


class Pool:
    """A sender's segments, reused by size so that pages are touched once (a fresh one costs 18 times a used one)."""

    def __init__(self) -> None:
        self._all: dict[int, Segment] = {}
        self._idle: list[Segment] = []
        self._next = 0
        self._closed = False
        self.forgotten: list[int] = []  #: closed segments that the receiver has not been told of

    def take(self, length: int) -> Segment:
        """A segment of at least `length` bytes, to an eighth.

        Raises:
            OSError: The machine has no memory for it, or the pool is closed.
        """
        if self._closed:
            raise OSError("the connection is closed")
        step = max(_SMALLEST, 1 << max(length.bit_length() - 3, 0))
        size = -(-length // step) * step
        for at in range(len(self._idle) - 1, -1, -1):
            if self._idle[at].size == size:
                return self._idle.pop(at)
        self._next += 1
        segment = self._all[self._next] = Segment(self._next, size)
        return segment

    def give_back(self, number: int) -> None:
        """The segment may be used again; the oldest idle ones go when too much is kept."""
        segment = self._all.get(number)
        if segment is None:
            return
        self._idle.append(segment)
        while sum(one.size for one in self._idle) > _KEPT:
            oldest = self._idle.pop(0)
            del self._all[oldest.id]
            if oldest.fd is None:
                self.forgotten.append(oldest.id)
            oldest.close()

    def close(self) -> None:
        """Ends everything."""
        self._closed = True
        for segment in self._all.values():
            segment.close()
        self._all.clear()
        self._idle.clear()


class Channel:
    """One end of the connection.

    Args:
        sock: This end of a SOCK_SEQPACKET pair; blocking or not is the owner's choice.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.pool = Pool()
        self._maps: dict[int, mmap.mmap] = {}
        self._freed: deque[int] = deque()  # the peer's segments that nobody here looks at any more
        self._returned: deque[int] = deque()  # our segments that came back; only the sending thread touches the pool
        self._pack: Callable[[Any], bytes] = msgpack.Packer(default=str).pack

    def loan(self, length: int) -> Loan:
        """Room for a body of `length` bytes that this end will send.

        Raises:
            OSError: The machine has no memory for it.
        """
        while self._returned:
            self.pool.give_back(self._returned.popleft())
        if length <= INLINE:
            return Loan(length, None, None)
        return Loan(length, self.pool.take(length), self.pool)

    def encode(self, head: Any, loan: Loan | None = None) -> tuple[bytes, list[int]]:
        """The message and the file descriptors to send with it, through `transmit`. A loan is spent by this.

        Raises:
            ValueError: The head alone is larger than a message may be.
        """
        body: Any = None
        fds: list[int] = []
        if loan is not None:
            segment = loan.segment
            if segment is None:
                body = loan.view
            else:
                body = (segment.id, segment.size, len(loan.view))
                if segment.fd is not None:
                    fds.append(segment.fd)
                    segment.fd = None
        freed = [self._freed.popleft() for _ in range(len(self._freed))]
        forgotten, self.pool.forgotten = self.pool.forgotten, []
        data = self._pack((head, body, freed, forgotten))
        if loan is not None:
            loan.view.release()
        if len(data) > _MESSAGE:
            raise ValueError(f"a message of {len(data)} bytes")
        return data, fds

    def transmit(self, data: bytes, fds: list[int]) -> None:
        """Sends an encoded message; on BlockingIOError nothing was sent."""
        if fds:
            socket.send_fds(self.sock, [data], fds)
            for fd in fds:
                os.close(fd)
        else:
            self.sock.send(data)

    def receive(self) -> tuple[Any, memoryview | None] | None:
        """The next message's head and body (read only), or None when the other end is gone.

        A body stays as it is while any view of it lives. It is None where there is none, and where this process
        may not map it for want of memory.
        """
        data, fds, _, _ = socket.recv_fds(self.sock, _MESSAGE, 1)
        if not data:
            return None
        head, body, freed, forgotten = msgpack.unpackb(data, use_list=False, strict_map_key=False)
        self._returned.extend(freed)
        for number in forgotten:
            self._maps.pop(number, None)  # unmapped when its last view dies, of which there is none
        if body is None or isinstance(body, bytes):
            return head, None if body is None else memoryview(body)
        number, size, length = body
        if fds:
            try:
                self._maps[number] = mmap.mmap(fds[0], size)
            except OSError:
                self._freed.append(number)
            finally:
                os.close(fds[0])
        mapped = self._maps.get(number)
        return head, None if mapped is None else self._watched(mapped, number, length)

    def _watched(self, mapped: mmap.mmap, number: int, length: int) -> memoryview:
        """A view that, when it and all made from it are gone, marks the segment as free."""
        hold = np.frombuffer(mapped, np.uint8, count=length)
        weakref.finalize(hold, self._freed.append, number).atexit = False
        return hold.data.toreadonly()

    def close(self) -> None:
        """Closes this end, which the other sees as its end."""
        self.sock.close()
        self.pool.close()
        self._maps.clear()
