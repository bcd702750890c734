"""Memory that the server and a session's process share: facts of the session, and the frames that the process runs.

The process writes, and the server reads when it needs to know: neither wakes the other. All of it is counts and
durations, and no time of a clock. A slot belongs to a connection that is lent; the process changes it only while it has
the connection's token.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from typing import Final, NamedTuple

SLOTS: Final = 8  #: Connections that a session's process has at the same time, at most.
_SLOT: Final = 128  # bytes, also of the facts before the first slot
_SIZE: Final = _SLOT * (1 + SLOTS)
_PREFIX: Final = 64  # bytes from the beginning of a slot

# In the system's form and aligned, so that each value is written at once.
_NUMBER, _SECONDS = struct.Struct("@Q"), struct.Struct("@d")
_BYTES_IN_USE, _CPU, _COMPUTE, _BEGUN, _ENDED, _FRAMES = 0, 8, 16, 24, 32, 40  # in the page
_RUNNING, _COUNT, _ANSWERING, _WORKED = 0, 8, 16, 24  # in a slot


class RunningFrame(NamedTuple):
    """A frame that runs, as its slot has it.

    Attributes:
        number: Of the frames that the process has read itself.
        prefix: Its first bytes.
    """

    number: int
    prefix: bytes


class Page:
    """The memory.

    Args:
        fd: The shared memory, which stays open.
    """

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, _SIZE)

    @classmethod
    def new(cls) -> tuple[Page, int]:
        """Returns a new page, and its file descriptor for the process; no side can change its length.

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
    def bytes_in_use(self) -> int:
        """The bytes of the session's arrays as of the last answer."""
        return self._whole(_BYTES_IN_USE)

    @bytes_in_use.setter
    def bytes_in_use(self, count: int) -> None:
        _NUMBER.pack_into(self._map, _BYTES_IN_USE, count)

    @property
    def cpu_seconds(self) -> float:
        """Of the thread that computes, as of the last request that has ended."""
        return self._real(_CPU)

    @property
    def compute_seconds(self) -> float:
        """The seconds that all requests have run, those that have ended."""
        return self._real(_COMPUTE)

    @property
    def frames(self) -> int:
        """How many frames the process has read itself."""
        return self._whole(_FRAMES)

    @property
    def is_running(self) -> bool:
        """Whether a request runs."""
        ended = self._whole(_ENDED)  # read first: what ends in between still counts
        return self._whole(_BEGUN) > ended

    def begin_request(self) -> None:
        """Notes that a request begins to run."""
        _NUMBER.pack_into(self._map, _BEGUN, self._whole(_BEGUN) + 1)

    def end_request(self, seconds: float, cpu_seconds: float) -> None:
        """Notes that the request has ended, which ran for `seconds`; `cpu_seconds` are those of all requests."""
        _SECONDS.pack_into(self._map, _CPU, cpu_seconds)
        _SECONDS.pack_into(self._map, _COMPUTE, self._real(_COMPUTE) + seconds)
        _NUMBER.pack_into(self._map, _ENDED, self._whole(_ENDED) + 1)

    # --------------------------------------------------------------------------------------------------- of one slot
    def clear(self, slot: int) -> None:
        """Prepares a slot for another connection."""
        begin = _SLOT * (1 + slot)
        self._map[begin : begin + _SLOT] = bytes(_SLOT)

    def begin(self, slot: int, number: int, seconds: float, prefix: bytes | memoryview) -> None:
        """Notes a frame that begins to run, `seconds` after the loan began."""
        begin = _SLOT * (1 + slot)
        _SECONDS.pack_into(self._map, begin + _WORKED, seconds)
        _NUMBER.pack_into(self._map, _FRAMES, number)
        _NUMBER.pack_into(self._map, begin + _COUNT, self.count(slot) + 1)
        _NUMBER.pack_into(self._map, begin + _ANSWERING, 0)
        self._map[begin + _PREFIX : begin + _SLOT] = bytes(prefix)
        _NUMBER.pack_into(self._map, begin + _RUNNING, number)

    def note_work(self, slot: int, seconds: float) -> None:
        """Notes that the frame has run, `seconds` after the loan began."""
        _SECONDS.pack_into(self._map, _SLOT * (1 + slot) + _WORKED, seconds)

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

    def worked(self, slot: int) -> float:
        """Returns how long after the beginning of the loan the last work for it was; 0: there was none."""
        return self._real(_SLOT * (1 + slot) + _WORKED)

    def count(self, slot: int) -> int:
        """Returns how many frames the process has read from this connection."""
        return self._whole(_SLOT * (1 + slot) + _COUNT)

    def running(self, slot: int) -> RunningFrame | None:
        """Returns the frame that runs; only who has the connection's token may rely on it."""
        number, begin = self.number(slot), _SLOT * (1 + slot)
        return RunningFrame(number, self._map[begin + _PREFIX : begin + _SLOT]) if number else None

    def _whole(self, position: int) -> int:
        return int(_NUMBER.unpack_from(self._map, position)[0])

    def _real(self, position: int) -> float:
        return float(_SECONDS.unpack_from(self._map, position)[0])

    def close(self) -> None:
        """Unmaps the memory."""
        self._map.close()
