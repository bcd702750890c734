"""Withholds answers until all that they tell of would survive a power cut; the requests after them run meanwhile.

A sync covers all that has run before it, so that answers share one. When no request is there to run, the thread that
computes syncs itself: a lone caller does not wait for another thread. A thread of the gate's own does so if the disk
is slow, since requests that come meanwhile would wait, and once in some milliseconds while one request follows the
other or a long one runs. Answers leave in their order.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from teletape_server.ipc.page import Page

_SWITCH_SECONDS: Final = 0.0005  # after which the thread that computes lets the other one run, if it runs Python alone
_PATIENCE: Final = 0.005  # seconds that answers wait for others, while one request follows the other
_SHORT: Final = 0.001  # seconds of a sync for which requests may wait, and answers for the thread that computes


class Gate:
    """The way out of a session's process.

    The thread that computes says when a request begins and ends (`begin`, `end`), and when there is none (`settle`).

    Args:
        sync: Brings the log to the disk, and returns the number of the last record that is there then.
        failed: Called if it could not, by the thread that tried: what waits then never leaves.
        page: Has the numbers of the last records that are written, and that are on the disk.
    """

    def __init__(self, sync: Callable[[], int], failed: Callable[[OSError], None], page: Page) -> None:
        self._sync, self._failed, self._page = sync, failed, page
        self._durable = page.synced
        self._withheld: deque[tuple[int, Callable[[], None]]] = deque()
        self._seconds = float("inf")  # that the last sync took
        self._runs = self._is_idle = False  # whether a request runs; whether none is there to run
        self._is_awake = self._is_hurried = self._is_asked = self._is_closed = False  # the thread
        self._signal = threading.Lock()  # released by the one thread, acquired by the other: both never wait for long
        self._signal.acquire()
        self._leaving = threading.Lock()  # held while answers leave
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)
        self._thread.start()

    def pass_on(self, send: Callable[[], None]) -> None:
        """Sends an answer as soon as all of which it may tell is on the disk, and all answers before it are sent.

        Args:
            send: Sends it; called in this thread or in the gate's.
        """
        record = self._page.written
        if self._withheld or record > self._durable:
            self._withheld.append((record, send))
            if self._runs:  # the request goes on: this is its progress
                self._wake()
        else:
            send()

    @property
    def is_open(self) -> bool:
        """Whether an answer would leave at once."""
        return not self._withheld and self._page.written <= self._durable

    @property
    def withholds(self) -> bool:
        """Whether answers wait."""
        return bool(self._withheld)

    def begin(self) -> None:
        """Notes that a request begins, which may run for long: what waits leaves meanwhile."""
        self._runs, self._is_idle = True, False
        if self._withheld:
            if self._withheld[0][0] <= self._durable:
                self._release()
            if self._withheld:
                self._wake()

    def end(self) -> None:
        """Notes that it has ended: `begin` or `settle` follows."""
        self._runs = False

    def settle(self) -> None:
        """Lets out what waits, since no request is there to run."""
        self._runs, self._is_idle = False, True
        if not self._withheld:
            return
        if self._is_awake or self._seconds > _SHORT:
            self._hurry()
        else:
            self._bring()
            self._release()

    def ask(self) -> None:
        """Has the log synced, although nothing may wait for it."""
        self._is_asked = True
        self._hurry()

    def note_durable(self, record: int) -> None:
        """Notes that a record is on the disk, with all before it."""
        self._durable = max(record, self._durable)
        self._wake()

    def close(self) -> None:
        """Returns when the thread has ended; what waits never leaves."""
        self._is_closed = True
        self._wake(now=True)
        self._thread.join()

    def _hurry(self) -> None:
        self._is_hurried = True
        self._wake(now=True)

    def _wake(self, *, now: bool = False) -> None:
        if now or not self._is_awake:
            with contextlib.suppress(RuntimeError):  # it is released: both threads do so
                self._signal.release()

    def _run(self) -> None:
        while self._signal.acquire() and not self._is_closed:
            self._is_awake = True
            while (self._withheld or self._is_asked) and not self._is_closed:
                if not self._is_hurried:
                    self._signal.acquire(timeout=_PATIENCE)
                self._is_hurried = False
                self._bring()
                if self._withheld and not self._is_idle:  # each answer from here would wait for the other thread
                    self._signal.acquire(timeout=_SHORT)
                self._release()
            self._is_awake = False
            if self._withheld:  # something came just now, and did not wake it
                self._wake()

    def _bring(self) -> None:
        """Brings the log to the disk, if what waits next is not there."""
        if not self._is_asked and (not self._withheld or self._withheld[0][0] <= self._durable):
            return
        self._is_asked = False
        began = time.monotonic()
        try:
            self._durable = max(self._sync(), self._durable)
        except OSError as error:
            self._is_closed = True
            self._failed(error)
        self._seconds = time.monotonic() - began

    def _release(self) -> None:
        """Lets out what may leave, unless the other thread does."""
        if not self._leaving.acquire(blocking=False):
            return
        try:
            while self._withheld and self._withheld[0][0] <= self._durable and not self._is_closed:
                self._withheld[0][1]()
                self._withheld.popleft()  # not before it has left: what comes after it waits
        finally:
            self._leaving.release()
