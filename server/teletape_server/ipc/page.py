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

from teletape_server.ipc.durations import BOUNDS, BUCKETS, SIZES, Batches, Durations, Served
from teletape_server.ipc.heads import MOST
from teletape_wire import PREFIX_LENGTH

SLOTS: Final = 64  #: Connections that a session's process has at the same time, at most.
IDLE_BYTES: Final = 8 << 20  #: Of memory that a session has reserved beyond what it uses, when it begins and when idle.
_WORD: Final = 8  # bytes of a number, in the system's form and aligned: each is written at once
_DURATIONS: Final = 1 + BUCKETS  # words of durations: the sum, and the counts

#: Words of the page; the last begins durations.
_BYTES_IN_USE, _CPU, _COMPUTE, _BEGUN, _ENDED, _FRAMES, _LOG, _WRITTEN, _SYNCED, _FAILED, _REFUSES = range(11)
_DISK_LIMIT, _CHANGES, _REQUEST, _RESERVED, _ALL = range(11, 16)
_FACTS: Final = _ALL + _DURATIONS  # words before the first slot
_RUNNING, _COUNT, _ANSWERING, _WORKED, _PREFIX = range(5)  # words of a slot; the last begins the request's first bytes
_LENT: Final = _PREFIX + PREFIX_LENGTH // _WORD  # likewise, of durations
_BATCHES: Final = _LENT + _DURATIONS  # of what `Batches` has: calls, seconds of both kinds, and its counts
_COUNTS: Final = _BATCHES + 3
_LENGTH: Final = _COUNTS + len(SIZES) + 1  # bytes of the body of the call that runs
_SLOT: Final = _LENGTH + 1  # words
_BODIES: Final = _WORD * (_FACTS + _SLOT * SLOTS)  # bytes before the bodies of the slots' calls
_SIZE: Final = _BODIES + MOST * SLOTS  # memory that is not used is not there


class RunningRequest(NamedTuple):
    """A request that runs, as its slot has it.

    Attributes:
        number: Of the requests that the process has read itself.
        prefix: Its first bytes, if it is a frame.
        body: Its body, if it is a call of a published function.
    """

    number: int
    prefix: bytes
    body: bytes


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
    def log(self) -> int:
        """The number of the session's log, in which the next record will be."""
        return self._numbers[_LOG]

    @log.setter
    def log(self, number: int) -> None:
        self._numbers[_LOG] = number

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
    def failed_log(self) -> int:
        """The number of a log of which the server could not bring all to the disk; 0: there is none."""
        return self._numbers[_FAILED]

    @failed_log.setter
    def failed_log(self, number: int) -> None:
        self._change(_FAILED, number)

    @property
    def changes(self) -> int:
        """How often the server has changed `failed_log` or `disk_limit`."""
        return self._numbers[_CHANGES]

    @property
    def refuses(self) -> bool:
        """Whether the session takes no changes, since they cannot be written down."""
        return bool(self._numbers[_REFUSES])

    @refuses.setter
    def refuses(self, refuses: bool) -> None:
        self._numbers[_REFUSES] = refuses

    @property
    def disk_limit(self) -> int:
        """The bytes that the session's log, base and blobs may have; 0: there is no limit yet. The server writes it."""
        return self._numbers[_DISK_LIMIT]

    @disk_limit.setter
    def disk_limit(self, count: int) -> None:
        self._change(_DISK_LIMIT, count)

    @property
    def reserved(self) -> int:
        """The bytes that the session may use; 0: those of its limit. The server raises it, and the process lowers it.

        The process raises what it uses only after it has seen the number here, and the server takes the lower one of
        this and its own: so it does not matter if both write at the same time.
        """
        return self._numbers[_RESERVED]

    @reserved.setter
    def reserved(self, count: int) -> None:
        self._numbers[_RESERVED] = count

    def _change(self, word: int, number: int) -> None:
        if self._numbers[word] != number:
            self._numbers[word] = number
            self._numbers[_CHANGES] += 1

    @property
    def durations(self) -> Durations:
        """Of all requests that have run: from when they came to the process, with what they waited."""
        return _durations(self._numbers, self._reals, _ALL)

    @property
    def is_running(self) -> bool:
        """Whether a request runs."""
        ended = self._numbers[_ENDED]  # read first: what ends in between still counts
        return self._numbers[_BEGUN] > ended

    @property
    def request(self) -> int:
        """The number of the last request from the server that has begun to run; 0: none has."""
        return self._numbers[_REQUEST]

    @request.setter
    def request(self, number: int) -> None:
        self._numbers[_REQUEST] = number

    @property
    def begun(self) -> int:
        """How many requests have begun to run."""
        return self._numbers[_BEGUN]

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
        _note(self._numbers, self._reals, _ALL, since)
        self._numbers[_ENDED] += 1

    def slot(self, index: int) -> Slot:
        """Returns one of the `SLOTS` slots."""
        return Slot(self._map, self._numbers, self._reals, index)

    def close(self) -> None:
        """Unmaps the memory."""
        self._numbers.release()
        self._reals.release()
        self._map.close()


class Slot:
    """The part of a page that belongs to one connection.

    Args:
        memory, numbers, reals: The page as bytes, and as words of both kinds.
        index: Which one it is.

    Attributes:
        index: Which one it is.
    """

    __slots__ = ("_body", "_first", "_map", "_numbers", "_reals", "index")

    def __init__(self, memory: mmap.mmap, numbers: memoryview, reals: memoryview[float], index: int) -> None:
        self._map, self._numbers, self._reals, self.index = memory, numbers, reals, index
        self._first, self._body = _FACTS + _SLOT * index, _BODIES + MOST * index

    def clear(self) -> None:
        """Prepares the slot for another connection."""
        begin = _WORD * self._first
        self._map[begin : begin + _WORD * _SLOT] = bytes(_WORD * _SLOT)

    def begin(self, number: int, seconds: float, prefix: bytes | memoryview = b"") -> None:
        """Notes a request that begins to run, `seconds` after the loan began; of a frame also its first bytes."""
        first, numbers = self._first, self._numbers
        self._reals[first + _WORKED] = seconds
        numbers[first + _COUNT] += 1
        numbers[first + _ANSWERING] = 0
        begin = _WORD * (first + _PREFIX)
        self._map[begin : begin + len(prefix)] = bytes(prefix)
        numbers[first + _RUNNING] = number

    def begin_call(self, number: int, seconds: float, body: memoryview) -> None:
        """Notes a call that begins to run or to wait, as `begin`, with its body: another process can do it again."""
        self._map[self._body : self._body + len(body)] = body
        self._numbers[self._first + _LENGTH] = len(body)
        self.begin(number, seconds)

    def note_work(self, seconds: float) -> None:
        """Notes that the request has run, `seconds` after the loan began."""
        self._reals[self._first + _WORKED] = seconds

    def note_lent(self, seconds: float) -> None:
        """Notes a request that the process answers itself, `seconds` after it came."""
        _note(self._numbers, self._reals, self._first + _LENT, seconds)

    @property
    def served(self) -> Served:
        """The requests that the process has answered itself."""
        begin, counts = self._first + _BATCHES, self._first + _COUNTS
        queue_seconds, compute_seconds = self._reals[begin + 1 : begin + 3]
        counts_of = self._numbers[counts : counts + len(SIZES) + 1]
        batches = Batches(counts_of, self._numbers[begin], queue_seconds, compute_seconds)
        return Served(_durations(self._numbers, self._reals, self._first + _LENT), batches)

    def note_computed(self, queue_seconds: float, compute_seconds: float, size: int) -> None:
        """Notes a call that the process answers itself.

        Args:
            queue_seconds: That it has waited.
            compute_seconds: That its batch has taken; 0: another call has brought that.
            size: Calls in its batch; 0: likewise.
        """
        begin = self._first + _BATCHES
        self._numbers[begin] += 1
        self._reals[begin + 1] += queue_seconds
        if size:
            self._reals[begin + 2] += compute_seconds
            self._numbers[self._first + _COUNTS + bisect_left(SIZES, size)] += 1

    def answer(self) -> None:
        """Notes that the answer to the request is about to be sent."""
        self._numbers[self._first + _ANSWERING] = 1

    @property
    def is_unanswered(self) -> bool:
        """Whether a request runs, and nothing of its answer is sent."""
        return bool(self.number) and not self._numbers[self._first + _ANSWERING]

    def end(self) -> None:
        """Notes that the request is answered."""
        self._numbers[self._first + _RUNNING] = 0

    @property
    def number(self) -> int:
        """The number of the request that runs; 0: none."""
        return self._numbers[self._first + _RUNNING]

    @property
    def worked(self) -> float:
        """How long after the beginning of the loan the last work for it was; 0: there was none."""
        return self._reals[self._first + _WORKED]

    @property
    def count(self) -> int:
        """How many requests the process has read from this connection."""
        return self._numbers[self._first + _COUNT]

    @property
    def running(self) -> RunningRequest | None:
        """The request that runs; only who has the connection's token may rely on it."""
        number, begin = self.number, _WORD * (self._first + _PREFIX)
        if not number:
            return None
        body = self._map[self._body : self._body + self._numbers[self._first + _LENGTH]]
        return RunningRequest(number, self._map[begin : begin + PREFIX_LENGTH], body)


def _note(numbers: memoryview, reals: memoryview[float], position: int, seconds: float) -> None:
    reals[position] += seconds
    numbers[position + 1 + bisect_left(BOUNDS, seconds)] += 1


def _durations(numbers: memoryview, reals: memoryview[float], position: int) -> Durations:
    begin = position + 1
    return Durations(numbers[begin : begin + BUCKETS], reals[position])
