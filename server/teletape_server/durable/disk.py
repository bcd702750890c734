"""The files of a session: what a log needs of one, and a folder whose names change as a whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Final, Protocol

from teletape_wire.tensors import Buffer

_NOT_ALLOCATED: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)  # a file system that reserves no space
NEWER: Final = ".new"  #: The end of the name of a file that is being written.
_MOST_PARTS: Final = 512  # of one call of the system


class File(Protocol):
    """A file that is written and read."""

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """Returns the bytes at an offset, as many as there are; without a length all of them.

        Raises:
            OSError: It cannot be read.
        """

    def read_into(self, offset: int, to: memoryview) -> int:
        """Reads bytes at an offset into memory, as many as there are and fit; returns their number.

        Raises:
            OSError: It cannot be read.
        """

    def write(self, offset: int, data: Buffer) -> None:
        """Writes bytes at an offset.

        Raises:
            OSError: Not all was written.
        """

    def write_parts(self, offset: int, parts: Sequence[Buffer]) -> None:
        """Writes bytes, one part after the other, at an offset.

        Raises:
            OSError: Not all was written.
        """

    def allocate(self, end: int) -> None:
        """Reserves space up to `end`, where it then ends if it was shorter; what is new reads as zeros.

        Raises:
            OSError: There is too little.
        """

    def truncate(self, end: int) -> None:
        """Ends the file there.

        Raises:
            OSError: It could not be done.
        """

    def sync(self) -> None:
        """Returns when all that was written would survive a power cut.

        Raises:
            OSError: That is not certain.
        """


class RealFile:
    """Implements `File` with a descriptor, which stays its owner's.

    Args:
        fd: The descriptor.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """See `File`."""
        end = os.fstat(self.fd).st_size if length is None else offset + length
        parts = []
        while offset < end:
            part = os.pread(self.fd, end - offset, offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def read_into(self, offset: int, to: memoryview) -> int:
        """See `File`."""
        done = 0
        while done < len(to) and (count := os.preadv(self.fd, [to[done:]], offset + done)):
            done += count
        return done

    def write(self, offset: int, data: Buffer) -> None:
        """See `File`."""
        count = os.pwrite(self.fd, data, offset)
        if count != len(data):
            self.write_parts(offset + count, [memoryview(data)[count:]])

    def write_parts(self, offset: int, parts: Sequence[Buffer]) -> None:
        """See `File`."""
        rest = [memoryview(part).cast("B") for part in parts if len(part)]
        while rest:
            count = os.pwritev(self.fd, rest[:_MOST_PARTS], offset)
            offset += count
            while rest and count >= len(rest[0]):
                count -= len(rest.pop(0))
            if rest and count:
                rest[0] = rest[0][count:]

    def allocate(self, end: int) -> None:
        """See `File`."""
        size = os.fstat(self.fd).st_size
        if size >= end:
            return
        try:
            os.posix_fallocate(self.fd, size, end - size)
        except OSError as error:
            if error.errno not in _NOT_ALLOCATED:
                raise
            os.ftruncate(self.fd, end)

    def truncate(self, end: int) -> None:
        """See `File`."""
        os.ftruncate(self.fd, end)

    def sync(self) -> None:
        """See `File`."""
        os.fdatasync(self.fd)


def replace(path: str, data: bytes) -> None:
    """Puts bytes under a name, in place of what was there: after a power cut it is the one or the other.

    Raises:
        OSError: It could not be done; what was there is there.
    """
    newer = f"{path}{NEWER}"
    fd = os.open(newer, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        file = RealFile(fd)
        file.write(0, data)
        file.sync()
    finally:
        os.close(fd)
    os.rename(newer, path)
    sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Returns when the names in a folder would survive a power cut.

    Raises:
        OSError: That is not certain.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
