"""Words in memory that the server and a session's process share: what the process does with its connections.

The process writes, and the server looks when it needs to know: neither wakes the other. A slot belongs to a connection
that is handed over; its process changes it only while it has the connection's token.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from typing import Final, NamedTuple

SLOTS: Final = 8  #: Connections that a session's process has at the same time, at most.
_SLOT: Final = 128  # bytes, also of the words before the first slot
_SIZE: Final = _SLOT * (1 + SLOTS)
_PREFIX: Final = 64  # bytes from the beginning of a slot

# In the system's form and aligned, so that each word is written at once.
_NUMBER, _SECONDS = struct.Struct("@Q"), struct.Struct("@d")
_UNTIL, _BYTES_IN_USE, _WORKED = 0, 8, 16  # in the page
_RUNNING, _SINCE, _COUNT, _ANSWERING = 0, 8, 16, 24  # in a slot


class RunningFrame(NamedTuple):
    """A frame that runs, as its slot has it.

    Attributes:
        number: Of the frames that the process has read itself.
        since: When it was read, on the monotonic clock.
        prefix: Its first bytes.
    """

    number: int
    since: float
    prefix: bytes


class Page:
    """The words.

    Args:
        fd: The shared memory, which stays open.
    """

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, _SIZE)

    @classmethod
    def new(cls) -> tuple[Page, int]:
        """Returns new words, and their file descriptor for the process; no side can change their length.

        Raises:
            OSError: There are too many open files, or too little memory.
        """
        fd = os.memfd_create("teletape-page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, _SIZE)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            return cls(fd), fd
        except BaseException:
            os.close(fd)
            raise

    # ------------------------------------------------------------------------------------------------- of the session
    @property
    def until(self) -> float:
        """The time before which the session does not end for idleness; the server writes it."""
        return self._real(_UNTIL)

    @until.setter
    def until(self, time: float) -> None:
        _SECONDS.pack_into(self._map, _UNTIL, time)

    @property
    def bytes_in_use(self) -> int:
        """The bytes of the session's arrays as of the last answer."""
        return self._whole(_BYTES_IN_USE)

    @bytes_in_use.setter
    def bytes_in_use(self, count: int) -> None:
        _NUMBER.pack_into(self._map, _BYTES_IN_USE, count)

    @property
    def worked(self) -> float:
        """The time of the last work on a frame that the process has read itself; 0: there was none."""
        return self._real(_WORKED)

    @worked.setter
    def worked(self, time: float) -> None:
        _SECONDS.pack_into(self._map, _WORKED, time)

    # --------------------------------------------------------------------------------------------------- of one slot
    def clear(self, slot: int) -> None:
        """Prepares a slot for another connection."""
        begin = _SLOT * (1 + slot)
        self._map[begin : begin + _SLOT] = bytes(_SLOT)

    def begin(self, slot: int, number: int, since: float, prefix: bytes | memoryview) -> None:
        """Notes a frame that begins to run."""
        begin = _SLOT * (1 + slot)
        _SECONDS.pack_into(self._map, begin + _SINCE, since)
        _NUMBER.pack_into(self._map, begin + _COUNT, self.count(slot) + 1)
        _NUMBER.pack_into(self._map, begin + _ANSWERING, 0)
        self._map[begin + _PREFIX : begin + _SLOT] = bytes(prefix)
        _NUMBER.pack_into(self._map, begin + _RUNNING, number)

    def answer(self, slot: int) -> None:
        """Notes that the answer to the frame of this slot is about to be sent."""
        _NUMBER.pack_into(self._map, _SLOT * (1 + slot) + _ANSWERING, 1)

    def is_unanswered(self, slot: int) -> bool:
        """Returns whether a frame runs, and nothing of its answer is sent."""
        return bool(self.number(slot)) and not self._whole(_SLOT * (1 + slot) + _ANSWERING)

    def end(self, slot: int) -> None:
        """Notes that the frame of this slot is answered."""
        _NUMBER.pack_into(self._map, _SLOT * (1 + slot) + _RUNNING, 0)

    def number(self, slot: int) -> int:
        """Returns the number of the frame that runs; 0: none."""
        return self._whole(_SLOT * (1 + slot) + _RUNNING)

    def since(self, slot: int) -> float:
        """Returns when the frame was read that runs, or the last one, on the monotonic clock."""
        return self._real(_SLOT * (1 + slot) + _SINCE)

    def count(self, slot: int) -> int:
        """Returns how many frames the process has read from this connection."""
        return self._whole(_SLOT * (1 + slot) + _COUNT)

    def running(self, slot: int) -> RunningFrame | None:
        """Returns the frame that runs; only who has the connection's token may rely on it."""
        number, begin = self.number(slot), _SLOT * (1 + slot)
        if not number:
            return None
        return RunningFrame(number, self.since(slot), self._map[begin + _PREFIX : begin + _SLOT])

    def _whole(self, position: int) -> int:
        return int(_NUMBER.unpack_from(self._map, position)[0])

    def _real(self, position: int) -> float:
        return float(_SECONDS.unpack_from(self._map, position)[0])

    def close(self) -> None:
        """Unmaps the words."""
        self._map.close()
