"""Memory that the server and a session's process share: facts of the session, and the requests that it reads itself.

The process writes, and the server reads when it needs to know: neither wakes the other. All of it is counts and
durations, and no time of a clock. A slot belongs to a connection that is lent; the process changes it only while it has
the connection's token, but for the time of its last work.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from bisect import bisect_left
from typing import Final, NamedTuple

from teletape_server.ipc.durations import BOUNDS, BUCKETS, Durations
from teletape_wire import PREFIX_LENGTH

SLOTS: Final = 64  #: Connections that a session's process has at the same time, at most.
_WORD: Final = 8  # bytes of a number, in the system's form and aligned: each is written at once
_DURATIONS: Final = 1 + BUCKETS  # words of durations: the sum, and the counts

#: Words of the page; the last begins durations.
_BYTES_IN_USE, _CPU, _COMPUTE, _BEGUN, _ENDED, _FRAMES, _WRITTEN, _SYNCED, _ALL = range(9)
_FACTS: Final = _ALL + _DURATIONS  # words before the first slot
_RUNNING, _COUNT, _ANSWERING, _WORKED, _PREFIX = range(5)  # words of a slot; the last begins the request's first bytes
_LENT: Final = _PREFIX + PREFIX_LENGTH // _WORD  # likewise, of durations
_SLOT: Final = _LENT + _DURATIONS  # words
_SIZE: Final = _WORD * (_FACTS + _SLOT * SLOTS)


class RunningRequest(NamedTuple):
    """A request that runs, as its slot has it.

    Attributes:
        number: Of the requests that the process has read itself.
        prefix: Its first bytes, if it is a frame.
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
        self._numbers = memoryview(self._map).cast("Q")
        self._reals = memoryview(self._map).cast("d")

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
        return self._numbers[_BYTES_IN_USE]

    @bytes_in_use.setter
    def bytes_in_use(self, count: int) -> None:
        self._numbers[_BYTES_IN_USE] = count

    @property
    def cpu_seconds(self) -> float:
        """Of the thread that computes, as of the last request that has ended."""
        return self._reals[_CPU]

    @property
    def compute_seconds(self) -> float:
        """The seconds that all requests have run, those that have ended."""
        return self._reals[_COMPUTE]

    @property
    def frames(self) -> int:
        """How many frames have run."""
        return self._numbers[_FRAMES]

    @property
    def written(self) -> int:
        """The number of the last record of the session's log."""
        return self._numbers[_WRITTEN]

    @written.setter
    def written(self, number: int) -> None:
        self._numbers[_WRITTEN] = number

    @property
    def synced(self) -> int:
        """The number of the last record that would survive a power cut; both sides write it."""
        return self._numbers[_SYNCED]

    @synced.setter
    def synced(self, number: int) -> None:
        self._numbers[_SYNCED] = max(number, self._numbers[_SYNCED])

    @property
    def durations(self) -> Durations:
        """Of all requests that have run: from when they came to the process, with what they waited."""
        return self._durations(_ALL)

    @property
    def is_running(self) -> bool:
        """Whether a request runs."""
        ended = self._numbers[_ENDED]  # read first: what ends in between still counts
        return self._numbers[_BEGUN] > ended

    def begin_request(self) -> None:
        """Notes that a request begins to run."""
        self._numbers[_BEGUN] += 1

    def end_request(self, seconds: float, cpu_seconds: float, since: float, *, is_frame: bool) -> None:
        """Notes that the request has ended.

        Args:
            seconds: That it has run.
            cpu_seconds: Of all requests.
            since: Seconds since it came.
            is_frame: Whether it is a frame.
        """
        self._reals[_CPU] = cpu_seconds
        self._reals[_COMPUTE] += seconds
        self._numbers[_FRAMES] += is_frame
        self._note(_ALL, since)
        self._numbers[_ENDED] += 1

    def _note(self, position: int, seconds: float) -> None:
        self._reals[position] += seconds
        self._numbers[position + 1 + bisect_left(BOUNDS, seconds)] += 1

    def _durations(self, position: int) -> Durations:
        begin = position + 1
        return Durations(self._numbers[begin : begin + BUCKETS], self._reals[position])

    # --------------------------------------------------------------------------------------------------- of one slot
    def clear(self, slot: int) -> None:
        """Prepares a slot for another connection."""
        begin = _WORD * _first(slot)
        self._map[begin : begin + _WORD * _SLOT] = bytes(_WORD * _SLOT)

    def begin(self, slot: int, number: int, seconds: float, prefix: bytes | memoryview = b"") -> None:
        """Notes a request that begins to run, `seconds` after the loan began; of a frame also its first bytes."""
        first = _first(slot)
        self._reals[first + _WORKED] = seconds
        self._numbers[first + _COUNT] += 1
        self._numbers[first + _ANSWERING] = 0
        begin = _WORD * (first + _PREFIX)
        self._map[begin : begin + len(prefix)] = bytes(prefix)
        self._numbers[first + _RUNNING] = number

    def note_work(self, slot: int, seconds: float) -> None:
        """Notes that the request has run, `seconds` after the loan began."""
        self._reals[_first(slot) + _WORKED] = seconds

    def note_lent(self, slot: int, seconds: float) -> None:
        """Notes a request that the process answers itself, `seconds` after it came."""
        self._note(_first(slot) + _LENT, seconds)

    def lent(self, slot: int) -> Durations:
        """Returns how long the requests took that the process has answered itself."""
        return self._durations(_first(slot) + _LENT)

    def answer(self, slot: int) -> None:
        """Notes that the answer to the request of this slot is about to be sent."""
        self._numbers[_first(slot) + _ANSWERING] = 1

    def is_unanswered(self, slot: int) -> bool:
        """Returns whether a request runs, and nothing of its answer is sent."""
        return bool(self.number(slot)) and not self._numbers[_first(slot) + _ANSWERING]

    def end(self, slot: int) -> None:
        """Notes that the request of this slot is answered."""
        self._numbers[_first(slot) + _RUNNING] = 0

    def number(self, slot: int) -> int:
        """Returns the number of the request that runs; 0: none."""
        return self._numbers[_first(slot) + _RUNNING]

    def worked(self, slot: int) -> float:
        """Returns how long after the beginning of the loan the last work for it was; 0: there was none."""
        return self._reals[_first(slot) + _WORKED]

    def count(self, slot: int) -> int:
        """Returns how many requests the process has read from this connection."""
        return self._numbers[_first(slot) + _COUNT]

    def running(self, slot: int) -> RunningRequest | None:
        """Returns the request that runs; only who has the connection's token may rely on it."""
        number, begin = self.number(slot), _WORD * (_first(slot) + _PREFIX)
        return RunningRequest(number, self._map[begin : begin + PREFIX_LENGTH]) if number else None

    def close(self) -> None:
        """Unmaps the memory."""
        self._numbers.release()
        self._reals.release()
        self._map.close()


def _first(slot: int) -> int:
    """Returns the first word of a slot."""
    return _FACTS + _SLOT * slot
