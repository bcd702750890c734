"""Messages between the server and a worker process; both ends run this code.

A message is small and travels over a SOCK_SEQPACKET socket pair. A large body lies in shared memory of its sender.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import socket
import struct
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # ships no types
import numpy as np

from teletape_engine.arrays import HostArray
from teletape_server.ipc.shared_memory import MAX_IDLE, IdleMemory, MessageBody, SegmentPool
from teletape_wire.tensors import Buffer

#: Bodies up to this many bytes travel inside their message: cheaper than mapping memory.
INLINE: Final = 32 << 10
_MAX_MESSAGE: Final = 128 << 10  # a Unix socket's buffer takes 208 KB by default

#: Room around an array for the rest of a body: its header, and what fills it up.
_BEFORE, _AFTER = 16 << 10, 4 << 10

LOG_FILES: Final = 2  #: Of a session's next log: its base, and itself.
_FILES: Final = 6  # file descriptors that come with one message: page, log, next base and log, blobs, this log's base
_FD_SPACE: Final = socket.CMSG_SPACE(_FILES * array("i").itemsize)  # bytes


class Channel:
    """One end of the connection.

    Args:
        sock: This end of a SOCK_SEQPACKET pair; its owner chooses whether it blocks.
        idle_memory: Bounds the memory that this end keeps for further bodies, together with other channels' ends.
        takes_files: Whether messages may bring file descriptors besides that of a body.

    Attributes:
        files: The file descriptors that came with the last message.
        pool: This end's segments.
        maps: The peer's segments that are mapped here, by id.
    """

    def __init__(
        self, sock: socket.socket, idle_memory: IdleMemory | None = None, *, takes_files: bool = False
    ) -> None:
        self.sock = sock
        self.files: list[int] = []
        self._takes_files = takes_files
        self.pool = SegmentPool(idle_memory or IdleMemory(MAX_IDLE))
        self.maps: dict[int, mmap.mmap] = {}
        self._unused: deque[int] = deque()  # ids of the peer's segments that no view here refers to any more
        self._returned: deque[int] = deque()  # ids of our segments with a use less; only the sender uses the pool
        self._arrays: dict[int, tuple[int, int]] = {}  # address and bytes of arrays of `array`, by segment
        self._early: deque[tuple[tuple[Any, memoryview | None], list[int]]] = deque()  # messages, and their files
        self._pack: Callable[[Any], bytes] = msgpack.Packer(default=str).pack
        # One for all messages: to allocate and free that much costs two page faults, four times the reading itself.
        # Mapped: what no message has been long enough for takes no memory.
        self._buffer = memoryview(mmap.mmap(-1, _MAX_MESSAGE))

    def body(self, length: int) -> MessageBody:
        """Returns memory for a body of `length` bytes that this end will send.

        Raises:
            OSError: The machine has too little memory.
        """
        self._take_back()
        if length <= INLINE:
            return MessageBody(length, None, None)
        return MessageBody(length, self.pool.take(length), self.pool)

    def array(self, nbytes: int) -> HostArray:
        """Returns bytes for an array that is to be sent: `written` makes a body around it, and copies nothing.

        They lie in this process's memory if the machine has too little that is shared.
        """
        self._take_back()
        try:
            segment = self.pool.take(_BEFORE + nbytes + _AFTER)
        except OSError:
            return np.empty(nbytes, np.uint8)
        memory = np.frombuffer(segment.map, np.uint8, count=nbytes, offset=_BEFORE)
        self._arrays[segment.id] = _address(memory), nbytes
        weakref.finalize(memory, self._returned.append, segment.id).atexit = False
        return memory

    def written(self, buffers: Sequence[Buffer]) -> MessageBody:
        """Returns a body of these bytes: around the first of them that is an array of `array`, or else a copy.

        Raises:
            OSError: The machine has too little memory.
        """
        self._take_back()
        body, position = self._around(buffers)
        if body is None:
            body = self.body(sum(map(len, buffers)))
        offset = 0
        for i, buffer in enumerate(buffers):
            if i != position:
                body.view[offset : offset + len(buffer)] = buffer
            offset += len(buffer)
        return body

    def _around(self, buffers: Sequence[Buffer]) -> tuple[MessageBody | None, int]:
        """A body in whose memory one of the buffers lies already, and that buffer's position; (None, -1)."""
        places = {place: number for number, place in self._arrays.items() if number in self.pool.segments}
        for position, buffer in enumerate(buffers) if places else ():
            number = places.get((_address(np.frombuffer(buffer, np.uint8)), len(buffer))) if buffer else None
            if number is None:
                continue
            before, after = (sum(map(len, part)) for part in (buffers[:position], buffers[position + 1 :]))
            segment = self.pool.segments[number]
            if before <= _BEFORE and after <= _AFTER and segment.uses == 1:  # no body of it is on its way
                segment.uses += 1
                return MessageBody(before + len(buffer) + after, segment, self.pool, _BEFORE - before), position
        return None, -1

    def _take_back(self) -> None:
        while self._returned:
            number = self._returned.popleft()
            self.pool.put_back(number)
            if number in self._arrays and (number not in self.pool.segments or not self.pool.segments[number].uses):
                del self._arrays[number]

    def trim(self) -> None:
        """Closes this end's idle memory; the other end lets go of it with the next message."""
        self._take_back()
        for segment in [*self.pool.idle]:
            self.pool.drop(segment)

    def encode(self, head: Any, body: MessageBody | None = None) -> tuple[bytes, list[int]]:
        """Returns the message and the file descriptors to pass to `transmit`, or else to `close_files`.

        The body cannot be used afterwards.

        Raises:
            ValueError: The head alone is larger than a message may be.
        """
        content: Any = None
        fds: list[int] = []
        if body is not None:
            segment = body.segment
            if segment is None:
                content = body.view
            else:
                content = (segment.id, segment.size, body.offset, len(body.view))
                if segment.fd is not None:
                    fds.append(segment.fd)
                    segment.fd = None
        unused = [self._unused.popleft() for _ in range(len(self._unused))]
        closed, self.pool.unannounced = self.pool.unannounced, []
        data = self._pack((head, content, unused, closed))
        if body is not None:
            body.view.release()
        if len(data) > _MAX_MESSAGE:
            close_files(fds)
            raise ValueError(f"a message of {len(data)} bytes")
        return data, fds

    @staticmethod
    def encode_small(head: Any, content: bytes | None = None) -> tuple[bytes, list[int]]:
        """Returns a message as `encode` does, with a body of at most `INLINE` bytes; in any thread."""
        return msgpack.packb((head, content, (), ()), default=str), []

    def transmit(self, data: bytes, fds: list[int]) -> None:
        """Sends an encoded message; its file descriptors are closed here, unless it can be sent again.

        Raises:
            OSError: Nothing was sent. With `is_full` the message can be sent again later; otherwise the other end has
                closed.
        """
        try:
            if fds:
                socket.send_fds(self.sock, [data], fds)
            else:
                self.sock.send(data)
        except OSError as error:
            if not is_full(error):
                close_files(fds)
            raise
        close_files(fds)

    def wait_at_most(self, seconds: float) -> None:
        """Lets `receive` raise BlockingIOError when no message has come for so long."""
        # In the system, so that it costs nothing when a message comes: Python would poll the socket before each read.
        wait = struct.pack("@ll", *divmod(int(seconds * 1e6), 1_000_000))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)

    def receive(self) -> tuple[Any, memoryview | None] | None:
        """Returns the next message's head and body (read only), or None after the other end has closed.

        A body's memory is not reused while any view of it exists. The body is None if the message has none, and if
        this process has too little memory to map it.
        """
        if self._early:
            message, self.files = self._early.popleft()
            return message
        return self._read()

    @property
    def has_early(self) -> bool:
        """Whether messages have been read that were not received yet."""
        return bool(self._early)

    def receive_next(self, kind: str) -> tuple[Any, memoryview | None] | None:
        """Returns the next message whose head begins with `kind`, or None after a while without a message.

        Those that come before it are received later.
        """
        with contextlib.suppress(OSError):
            while message := self._read():
                if message[0][0] == kind:
                    return message
                self._early.append((message, self.files))
        return None

    def _read(self) -> tuple[Any, memoryview | None] | None:
        length, ancillary, _, _ = self.sock.recvmsg_into([self._buffer], _FD_SPACE)
        if not length:
            return None
        fds = _descriptors(ancillary) if ancillary else []
        head, content, returned, closed = msgpack.unpackb(self._buffer[:length], use_list=False, strict_map_key=False)
        self._returned.extend(returned)
        for number in closed:
            self.maps.pop(number, None)  # unmapped with its last view; an idle segment has none
        if content is None or isinstance(content, bytes):
            self._receive_files(fds)
            return head, None if content is None else memoryview(content)
        number, size, offset, length = content
        if fds:
            try:
                self.maps[number] = mmap.mmap(fds[0], size)
            except OSError:
                self._unused.append(number)
            finally:
                close_files(fds)
        mapped = self.maps.get(number)
        return head, None if mapped is None else self._tracked_view(mapped, number, offset, length)

    def _receive_files(self, fds: list[int]) -> None:
        if self._takes_files:
            self.files = fds
        else:
            close_files(fds)

    def _tracked_view(self, mapped: mmap.mmap, number: int, offset: int, length: int) -> memoryview:
        """Returns a view of the segment; after it and all views made from it are gone, the segment counts as unused."""
        owner = np.frombuffer(mapped, np.uint8, count=length, offset=offset)
        weakref.finalize(owner, self._unused.append, number).atexit = False
        return owner.data.toreadonly()

    def close(self) -> None:
        """Closes this end; the other end's `receive` then returns None."""
        self.sock.close()
        self.pool.close()
        self.maps.clear()


def is_full(error: OSError) -> bool:
    """Returns whether a message was not sent because the socket, or the system's count of files under way, is full."""
    return isinstance(error, BlockingIOError) or error.errno == errno.ETOOMANYREFS


def close_files(fds: Iterable[int]) -> None:
    """Closes the file descriptors of a message that has been sent, or never will be."""
    for fd in fds:
        os.close(fd)


def _address(array: HostArray) -> int:
    return int(array.__array_interface__["data"][0])


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """Returns the file descriptors that came with a message."""
    fds = array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return [*fds]
