"""Shared memory for large message bodies: segments that their sender owns, and reuses after the receiver is done."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Final

_MAX_IDLE: Final = 256 << 20  # bytes of idle segments that a sender keeps for the next body
_SMALLEST: Final = 64 << 10


class MessageBody:
    """Memory for one body, to be filled through `view` and then sent, or else discarded.

    Attributes:
        view: The memory, writable.
        segment: The shared memory it lies in; None for a small body, which travels inside its message.
    """

    __slots__ = ("_pool", "segment", "view")

    def __init__(self, length: int, segment: Segment | None, pool: SegmentPool | None) -> None:
        self.segment = segment
        self._pool = pool
        self.view = memoryview(bytearray(length)) if segment is None else memoryview(segment.map)[:length]

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
    """

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
        """Unmaps this side; the system frees the memory when the receiver has unmapped it too."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        with contextlib.suppress(BufferError):  # a view still exists: the map is freed with it
            self.map.close()


class SegmentPool:
    """A sender's segments, reused by size: touching the pages of a fresh segment costs 18 times a used one.

    Attributes:
        segments: All segments by id.
        idle: Segments that can be reused, the oldest first.
        unannounced: Ids of closed segments that the receiver does not know about yet.
    """

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
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
                return self.idle.pop(position)
        self._last_id += 1
        segment = self.segments[self._last_id] = Segment(self._last_id, size)
        return segment

    def put_back(self, number: int) -> None:
        """Marks the segment as reusable; closes the oldest idle segments if they take too much memory."""
        segment = self.segments.get(number)
        if segment is None:
            return
        self.idle.append(segment)
        while sum(idle.size for idle in self.idle) > _MAX_IDLE:
            oldest = self.idle.pop(0)
            del self.segments[oldest.id]
            if oldest.fd is None:
                self.unannounced.append(oldest.id)
            oldest.close()

    def close(self) -> None:
        """Closes every segment."""
        self._closed = True
        for segment in self.segments.values():
            segment.close()
        self.segments.clear()
        self.idle.clear()
