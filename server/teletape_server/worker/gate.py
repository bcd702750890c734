"""Withholds answers until all that they tell of would survive a power cut; the requests after them run meanwhile.

A thread syncs the log as often as answers wait: a sync covers all that were withheld before it began, so the more
requests come, the more of them share one. Answers leave in their order.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

_SWITCH_SECONDS: Final = 0.0005  # after which the thread that computes lets an answer out, if it runs Python alone


class Gate:
    """The way out of a session's process.

    One thread passes answers on; the gate's own releases those that wait.

    Args:
        sync: Brings the log to the disk, and returns the number of the last record that is there then.
        failed: Called in the gate's thread if it could not: what waits then never leaves.
        durable: The number of the last record that is on the disk.
    """

    def __init__(self, sync: Callable[[], int], failed: Callable[[OSError], None], durable: int) -> None:
        self._sync, self._failed = sync, failed
        self._durable = durable
        self._withheld: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_asked = self._is_closed = False
        self._signal = threading.Lock()  # released by the one thread, acquired by the other: both never wait for long
        self._signal.acquire()
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)
        self._thread.start()

    def pass_on(self, record: int, send: Callable[[], None]) -> None:
        """Sends an answer as soon as a record is on the disk, and all answers before this one are sent.

        Args:
            record: The last one of which the answer may tell.
            send: Sends it; called in this thread or in the gate's.
        """
        if self._withheld or record > self._durable:
            self._withheld.append((record, send))
            self._wake()
        else:
            send()

    def is_open(self, record: int) -> bool:
        """Returns whether an answer that may tell of a record would leave at once."""
        return not self._withheld and record <= self._durable

    def ask(self) -> None:
        """Has the log synced, although nothing may wait for it."""
        self._is_asked = True
        self._wake()

    def note_durable(self, record: int) -> None:
        """Notes that a record is on the disk, with all before it."""
        self._durable = max(record, self._durable)
        self._wake()

    def close(self) -> None:
        """Returns when the thread has ended; what waits never leaves."""
        self._is_closed = True
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        if self._signal.locked():
            self._signal.release()

    def _run(self) -> None:
        while self._signal.acquire() and not self._is_closed:
            while (self._withheld or self._is_asked) and not self._is_closed:
                self._is_asked = False
                if not self._withheld or self._withheld[0][0] > self._durable:
                    try:
                        self._durable = max(self._sync(), self._durable)
                    except OSError as error:
                        self._failed(error)
                        return
                self._release()

    def _release(self) -> None:
        while self._withheld and self._withheld[0][0] <= self._durable and not self._is_closed:
            self._withheld[0][1]()
            self._withheld.popleft()  # not before it has left: what comes after it waits
