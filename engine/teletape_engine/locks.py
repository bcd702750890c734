"""The lock of what several threads share: also for a signal handler, and in a forked child."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType
from typing import Final


class ReentrantLock:
    """A lock for `with`, which the thread that has it may take again, and which no forked child waits for in vain.

    A signal handler runs in the main thread, between any two lines: of a plain lock that this thread has, it would wait
    for itself. A forked child has the locks of the parent's other threads, and not these threads.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def free_from_others(self) -> None:
        """Replaces a lock that another thread has: in a forked child there is no such thread."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_all: Final[weakref.WeakSet[ReentrantLock]] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_all):
        lock.free_from_others()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)
