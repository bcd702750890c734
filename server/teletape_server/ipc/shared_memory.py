"""Shared memory for large message bodies: segments that their sender owns, and reuses after the receiver is done."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Final

MAX_IDLE: Final = 64 << 20  #: Bytes of idle segments that a session's process keeps for its next answers.
_SMALLEST: Final = 64 << 10


class MessageBody:
    """Memory for one body, to be filled through `view` and then sent, or else discarded.

    Attributes:
        view: The memory, writable.
        segment: The shared memory it lies in; None for a small body, which travels inside its message.
        offset: Where in the segment it begins, in bytes.
    """

    __slots__ = ("_pool", "offset", "segment", "view")

    def __init__(self, length: int, segment: Segment | None, pool: SegmentPool | None, offset: int = 0) -> None:
        self.segment, self.offset = segment, offset
        self._pool = pool
        self.view = memoryview(bytearray(length) if segment is None else segment.map)[offset : offset + length]

    def let_go(self, start: int, end: int) -> None:
        """Unmaps the pages of a part of the body here: they hold what was written, for the receiver."""
        if self.segment is not None:
            first, last = -(-(self.offset + start) // mmap.PAGESIZE), (self.offset + end) // mmap.PAGESIZE
            if last > first:
                self.segment.map.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)

    def discard(self) -> None:
        """Frees the memory of a body that will not be sent."""
        self.view.release()
        if self._pool is not None and self.segment is not None:
            self._pool.put_back(self.segment.id)
            self.segment = None


class Segment:
    """Shared memory of a sender.

    Attributes:
        id, size: Number within its pool; bytes.
        fd: File descriptor to send to the receiver; None after it was sent.
        map: The mapped memory.
        uses: Who uses it: a body on its way to the receiver and back, an array that lies in it.
    """

    __slots__ = ("fd", "id", "map", "size", "uses")

    def __init__(self, number: int, size: int) -> None:
        self.id, self.size, self.uses = number, size, 0
        self.fd: int | None = os.memfd_create("teletape-body", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, size)
            self.map = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise

    def close(self) -> None:
        """Unmaps this side; the system frees the memory when the receiver has unmapped it too."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        with contextlib.suppress(BufferError):  # a view still exists: the map is freed with it
            self.map.close()


class IdleMemory:
    """The idle segments of all pools of a process: together they take at most `most` bytes, or the oldest are closed.

    Attributes:
        nbytes: What they take.
    """

    def __init__(self, most: int) -> None:
        self.nbytes = 0
        self._most = most
        self._pools: dict[Segment, SegmentPool] = {}  # by idle segment, that which is idle for longest first

    def add(self, segment: Segment, pool: SegmentPool) -> None:
        """Notes an idle segment of a pool."""
        self._pools[segment] = pool
        self.nbytes += segment.size
        while self.nbytes > self._most:
            oldest = next(iter(self._pools))
            self._pools[oldest].drop(oldest)

    def remove(self, segment: Segment) -> None:
        """Notes that a segment is in use again, or closed."""
        del self._pools[segment]
        self.nbytes -= segment.size


class SegmentPool:
    """A sender's segments, reused by size: touching the pages of a fresh segment costs 18 times a used one.

    Args:
        idle_memory: Bounds the idle segments of this pool and of others.

    Attributes:
        segments: All segments by id.
        idle: Segments that can be reused, the oldest first.
        unannounced: Ids of closed segments that the receiver does not know about yet.
    """

    def __init__(self, idle_memory: IdleMemory) -> None:
        self.segments: dict[int, Segment] = {}
        self._idle_memory = idle_memory
        self.idle: list[Segment] = []
        self._last_id = 0
        self._closed = False
        self.unannounced: list[int] = []

    def take(self, length: int) -> Segment:
        """Returns a segment of at least `length` bytes, rounded up by at most an eighth.

        Raises:
            OSError: The machine has too little memory, or the pool is closed.
        """
        if self._closed:
            raise OSError("the connection is closed")
        step = max(_SMALLEST, 1 << max(length.bit_length() - 3, 0))
        size = -(-length // step) * step
        for position in range(len(self.idle) - 1, -1, -1):
            if self.idle[position].size == size:
                segment = self.idle.pop(position)
                self._idle_memory.remove(segment)
                segment.uses = 1
                return segment
        self._last_id += 1
        segment = self.segments[self._last_id] = Segment(self._last_id, size)
        segment.uses = 1
        return segment

    def put_back(self, number: int) -> None:
        """Ends a use of a segment; after the last it is idle. Of too much idle memory the oldest is closed."""
        segment = self.segments.get(number)
        if segment is None:
            return
        segment.uses -= 1
        if segment.uses:
            return
        self.idle.append(segment)
        self._idle_memory.add(segment, self)

    def drop(self, segment: Segment) -> None:
        """Closes an idle segment."""
        self.idle.remove(segment)
        self._idle_memory.remove(segment)
        del self.segments[segment.id]
        if segment.fd is None:
            self.unannounced.append(segment.id)
        segment.close()

    def close(self) -> None:
        """Closes every segment."""
        self._closed = True
        for segment in self.idle:
            self._idle_memory.remove(segment)
        for segment in self.segments.values():
            segment.close()
        self.segments.clear()
        self.idle.clear()
