"""The two sockets between the server and a worker process: one for requests and replies, and one for control.

What must be noticed while the process computes comes over the control socket, on which a thread of its own waits. So
the thread that computes reads its requests itself: no request is handed from one thread to another.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

_ORDER: Final = struct.Struct("<cq")  # from the server: what to do, and the number of the last request that it concerns
_SIGN: Final = struct.Struct("<d")  # from the process: CPU seconds of the thread that computes
_ASK: Final = struct.Struct("<qq")  # from the process: the number of the question, and the bytes that it needs
_CANCEL, _CANCEL_LENT, _CANCEL_ONE, _PING, _STOPPING, _ANSWER = b"c", b"f", b"o", b"p", b"s", b"m"
_LONGEST: Final = 16 << 10  # bytes of a message: of one that refuses memory, with its reason
_LOOK_SECONDS: Final = 0.05  # between two looks at whether a request that waits for memory is over
_MOST_CANCELLED: Final = 256  # requests: more than may wait


class Sockets(NamedTuple):
    """One side's ends of the two SOCK_SEQPACKET pairs.

    Attributes:
        requests: For requests, progress and replies; see `channel`.
        control: For cancels and pings; its end is the end of the other side.
    """

    requests: socket.socket
    control: socket.socket

    def close(self) -> None:
        """Closes both ends; a process whose server has closed one of its ends ends."""
        for sock in self:
            sock.close()


def socket_pairs() -> tuple[Sockets, Sockets]:
    """Returns both sides' ends of new sockets.

    Raises:
        OSError: There are too many open files.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        our_control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except OSError:
        ours.close()
        theirs.close()
        raise
    return Sockets(ours, our_control), Sockets(theirs, their_control)


class MemoryQuestion(NamedTuple):
    """A session's process needs more memory than is reserved for it.

    Attributes:
        number: Of the question.
        needed: Bytes in all.
    """

    number: int
    needed: int


class Control:
    """The server's end of the control socket.

    Args:
        sock: The end; it does not block.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._unsent: dict[bytes, None] = {}  # messages that the socket had no room for, in their order

    def cancel(self, number: int) -> None:
        """Cancels the requests up to this number, those too that the process has not received."""
        self._cancel(_CANCEL, number)

    def cancel_lent(self, number: int) -> None:
        """Cancels the requests up to this number, counted among those that the process has read itself."""
        self._cancel(_CANCEL_LENT, number)

    def cancel_one(self, number: int) -> None:
        """Cancels the request with this number; that of one that the process has read itself is negative."""
        self._cancel(_CANCEL_ONE, number)

    def stopping(self) -> None:
        """Says that the server is stopping, before it cancels what runs."""
        with contextlib.suppress(BlockingIOError):  # then it is cancelled without the reason
            self._send(_ORDER.pack(_STOPPING, 0))

    def answer(self, number: int, refusal: bytes) -> None:
        """Answers a question for memory; `refusal`: why there is none, or empty: the page says what is reserved."""
        self._send_surely(_ORDER.pack(_ANSWER, number) + refusal[: _LONGEST - _ORDER.size])

    def _cancel(self, order: bytes, number: int) -> None:
        self._send_surely(_ORDER.pack(order, number))

    def _send_surely(self, message: bytes) -> None:
        try:
            self._send(message)
        except BlockingIOError:  # the process does not read
            self._unsent[message] = None

    def ping(self) -> None:
        """Asks for a sign of life."""
        with contextlib.suppress(BlockingIOError):  # it has not read the last one either
            self._send(_ORDER.pack(_PING, 0))

    def send_again(self) -> None:
        """Sends the messages for which there was no room; to be called from time to time."""
        unsent, self._unsent = self._unsent, {}
        for message in unsent:
            self._send_surely(message)

    def receive(self) -> float | MemoryQuestion | None:
        """Returns the process's next sign of life, as CPU seconds, or question; None: the process has ended.

        Raises:
            BlockingIOError: There is none.
        """
        try:
            data = self.sock.recv(_ASK.size)
        except BlockingIOError:
            raise
        except OSError:
            return None
        if len(data) == _ASK.size:
            return MemoryQuestion(*_ASK.unpack(data))
        return float(_SIGN.unpack(data)[0]) if data else None

    def _send(self, message: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has ended: its host learns of it
            self.sock.send(message)


def end_process() -> None:
    """Ends this process at once: the server is gone."""
    os._exit(0)


class Watcher:
    """The process's end of the control socket.

    Args:
        sock: The end; it blocks.
        on_end: What happens when the server closes its end.

    Attributes:
        cancelled_up_to: The number of the last request that a cancel concerns.
        cancelled_lent_up_to: The same of those that the process has read itself.
        cancelled: Numbers of single requests that were cancelled, the last ones; those of the latter are negative.
        has_cancelled: Whether there was any cancel.
        has_ended: Whether the server has closed its end.
        is_stopping: Whether the server is about to.
    """

    def __init__(self, sock: socket.socket, on_end: Callable[[], None] = end_process) -> None:
        self.cancelled_up_to: float = 0
        self.cancelled_lent_up_to: float = 0
        self.cancelled: tuple[int, ...] = ()  # another thread looks at it: it is replaced, never changed
        self.has_cancelled = self.has_ended = self.is_stopping = False
        self.on_end = on_end
        self._sock = sock
        self._cpu_clock = time.pthread_getcpuclockid(threading.get_ident())  # of this thread, which computes
        self._changed = threading.Condition()
        self._question, self._answer = 0, (0, b"")  # the last question's number; the last answer, with its number

    def start(self) -> None:
        """Begins to watch, in a thread of its own; `on_end` is called as soon as the server's end is closed."""
        threading.Thread(target=self._watch, name="watcher", daemon=True).start()

    def ask(self, needed: int, is_over: Callable[[], bool]) -> bytes | None:
        """Asks the server to reserve memory, and waits for its answer.

        Args:
            needed: Bytes in all.
            is_over: Whether the request that needs them is cancelled; what it raises ends the wait too.

        Returns:
            Why there is none; empty: the page says what is reserved; None: the request or the server is over.
        """
        with self._changed:
            self._question += 1
            self._sock.send(_ASK.pack(self._question, needed))
            while self._answer[0] != self._question:
                if self.has_ended or is_over():
                    return None
                self._changed.wait(_LOOK_SECONDS)
            return self._answer[1]

    def cancel_all(self) -> None:
        """Cancels what runs and waits, and everything after it."""
        self.has_cancelled, self.cancelled_up_to, self.cancelled_lent_up_to = True, math.inf, math.inf

    def is_cancelled(self, number: int) -> bool:
        """Returns whether a request is cancelled; the number of one that the process has read itself is negative."""
        if number in self.cancelled:
            return True
        return -number <= self.cancelled_lent_up_to if number < 0 else number <= self.cancelled_up_to

    def _watch(self) -> None:
        while True:
            try:
                data = self._sock.recv(_LONGEST)
            except OSError:
                data = b""
            if not data:
                self.has_ended = True
                self.on_end()
                self._notify()
                return
            order, number = _ORDER.unpack_from(data)
            if order == _CANCEL:
                self.cancelled_up_to = max(number, self.cancelled_up_to)
            elif order == _CANCEL_LENT:
                self.cancelled_lent_up_to = max(number, self.cancelled_lent_up_to)
            elif order == _CANCEL_ONE:
                self.cancelled = (*self.cancelled, number)[-_MOST_CANCELLED:]
            elif order == _STOPPING:
                self.is_stopping = True
                continue
            elif order == _ANSWER:
                self._notify((number, data[_ORDER.size :]))
                continue
            else:
                with contextlib.suppress(OSError):  # the server does not read, or has gone, which the next turn sees
                    self._sock.send(_SIGN.pack(time.clock_gettime(self._cpu_clock)), socket.MSG_DONTWAIT)
                continue
            self.has_cancelled = True  # last: who sees it finds the number
            self._notify()

    def _notify(self, answer: tuple[int, bytes] | None = None) -> None:
        """Wakes the thread that waits for memory, perhaps with an answer."""
        with self._changed:
            self._answer = answer or self._answer
            self._changed.notify_all()
