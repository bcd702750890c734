"""Memory of a caller on this machine: tensors of its frames lie there, and answers are put there, instead of in bodies.

The caller names files in memory (memfd) that its own process has open. Only a process of the server's user, at the Unix
socket, can do so: the system tells the server which process has connected, and such a process could end the server
anyway. Its file must be one that cannot shrink, so that no access can fail. What it writes later changes nothing: its
bytes are copied before they are read. Whatever is missing or wrong is no error of the server's: the request is then
refused, and the caller sends its bytes in the body.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import mmap
import os
import re
import socket
import stat
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import teletape_wire as wire

FRAME_HEADER: Final = b"teletape-frame-memory"  #: Which parts of the frame are not in the body.
ANSWER_HEADER: Final = b"teletape-answer-memory"  #: Of a request: where the answer may be put; of an answer: its bytes.

_FORWARDED: Final = frozenset((b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"))
_PARTS: Final = 64  # of one frame
_FILES: Final = 16  # of one connection that stay mapped
_NUMBER: Final = rb"(0|[1-9][0-9]{0,17})"
_PART: Final = re.compile(rb":".join([_NUMBER] * 5))
_ROOM: Final = re.compile(rb":".join([_NUMBER] * 3))
_CREDENTIALS: Final = struct.Struct("@3i")  # pid, uid, gid


class MemoryRefusedError(Exception):
    """The memory that a request names cannot be used."""


class Part(NamedTuple):
    """A part of a frame: its position there, and its bytes in the caller's memory."""

    position: int
    memory: memoryview


class FrameMemory(NamedTuple):
    """The memory that a request names.

    Attributes:
        parts: Of the frame, in the order of their positions; none overlap.
        room: For the answer; empty: it is not to be put anywhere.
    """

    parts: Sequence[Part]
    room: memoryview

    @property
    def nbytes(self) -> int:
        """The bytes of the parts."""
        return sum(part.memory.nbytes for part in self.parts)


class CallerMemory:
    """The memory of the process at the other end of a connection.

    Args:
        pid: The process.
        most: Bytes of the largest file.
    """

    def __init__(self, pid: int, most: int) -> None:
        self._pid, self._most = pid, most
        self._maps: dict[tuple[int, int, bool], mmap.mmap] = {}  # by descriptor, inode, whether it is for answers

    @classmethod
    def of(cls, transport: asyncio.Transport, most: int) -> CallerMemory | None:
        """Returns that of a transport's other end; None: it is not on this machine, or another user's."""
        sock = transport.get_extra_info("socket")
        if sock is None or sock.family != getattr(socket, "AF_UNIX", None) or not hasattr(fcntl, "F_GET_SEALS"):
            return None
        data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(data)
        return cls(pid, most) if pid > 0 and uid == os.geteuid() else None

    def named(self, headers: Sequence[tuple[bytes, bytes]], length: int) -> FrameMemory:
        """Returns the memory that a request's headers name.

        Args:
            headers: The headers.
            length: Bytes of the body.

        Raises:
            MemoryRefusedError: A part of the frame cannot be used. Room for the answer that cannot be used is no room.
        """
        if any(name in _FORWARDED for name, _ in headers):
            raise MemoryRefusedError("a proxy sends the request: its memory is not the caller's")
        parts = [value for name, value in headers if name == FRAME_HEADER]
        rooms = [value for name, value in headers if name == ANSWER_HEADER]
        room = memoryview(b"")
        if len(rooms) == 1 and (match := _ROOM.fullmatch(rooms[0])) is not None:
            file, inode, nbytes = map(int, match.groups())
            with contextlib.suppress(MemoryRefusedError):
                room = self._memory(file, inode, 0, nbytes, for_answers=True)
        return FrameMemory(self._parts(b",".join(parts), length) if parts else (), room)

    def _parts(self, text: bytes, length: int) -> list[Part]:
        items = text.split(b",")
        if len(items) > _PARTS:
            raise MemoryRefusedError(f"{len(items)} parts, the limit is {_PARTS}")
        if length < wire.PREFIX_LENGTH:
            raise MemoryRefusedError("the beginning of a frame must be in the body")
        parts, end, total = [], wire.PREFIX_LENGTH, length
        for item in items:
            match = _PART.fullmatch(item.strip())
            if match is None:
                raise MemoryRefusedError(f"not a part: {item!r}")
            file, inode, offset, position, nbytes = map(int, match.groups())
            total += nbytes
            if position < end or not nbytes:
                raise MemoryRefusedError("parts overlap, are empty, or begin before the end of the frame's prefix")
            end = position + nbytes
            parts.append(Part(position, self._memory(file, inode, offset, nbytes, for_answers=False)))
        if end > total:
            raise MemoryRefusedError(f"a part ends at byte {end} of a frame of {total}")
        return parts

    def _memory(self, file: int, inode: int, offset: int, nbytes: int, *, for_answers: bool) -> memoryview:
        key = file, inode, for_answers
        mapped = self._maps.pop(key, None)
        if mapped is None or offset + nbytes > len(mapped):
            mapped = _mapped(self._pid, file, inode, self._most, writable=for_answers)
        self._maps[key] = mapped  # the last one; the first is that used longest ago
        if len(self._maps) > _FILES:
            del self._maps[next(iter(self._maps))]
        if offset + nbytes > len(mapped):
            raise MemoryRefusedError(f"the file has {len(mapped)} bytes, named are {offset + nbytes}")
        view = memoryview(mapped)[offset : offset + nbytes]
        return view if for_answers else view.toreadonly()


def _mapped(pid: int, file: int, inode: int, most: int, *, writable: bool) -> mmap.mmap:
    """Maps a file in memory that a process has open.

    Raises:
        MemoryRefusedError: It has none of that kind, with that number.
    """
    path = f"/proc/{pid}/fd/{file}"
    try:
        # Nothing that opening could block on, or that the file system of a stranger would have to answer.
        if not os.readlink(path).startswith("/memfd:"):
            raise MemoryRefusedError("the file is not in memory")
        named = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            _check(os.fstat(named), inode, most)
            flags = os.O_RDWR if writable else os.O_RDONLY
            opened = os.open(f"/proc/self/fd/{named}", flags | os.O_CLOEXEC | os.O_NONBLOCK)
        finally:
            os.close(named)
        try:
            if not fcntl.fcntl(opened, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                raise MemoryRefusedError("the file may shrink")
            size = _check(os.fstat(opened), inode, most)  # from here on at least this
            return mmap.mmap(opened, size, prot=mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
        finally:
            os.close(opened)
    except (OSError, ValueError) as error:
        raise MemoryRefusedError(str(error)) from None


def _check(facts: os.stat_result, inode: int, most: int) -> int:
    if not stat.S_ISREG(facts.st_mode) or facts.st_dev != _device() or facts.st_ino != inode:
        raise MemoryRefusedError("this is another file")
    if not 0 < facts.st_size <= most:
        raise MemoryRefusedError(f"the file has {facts.st_size} bytes, the limit is {most}")
    return facts.st_size


_devices: Final[list[int]] = []


def _device() -> int:
    """Returns the device that all files in memory are on, but for those of huge pages, whose accesses may fail."""
    if not _devices:
        file = os.memfd_create("teletape", os.MFD_CLOEXEC)
        try:
            _devices.append(os.fstat(file).st_dev)
        finally:
            os.close(file)
    return _devices[0]
