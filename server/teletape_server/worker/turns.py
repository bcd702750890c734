"""The process of a session, and whose turn it is in one that sessions share: one at a time, in order of asking."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar, Final, NoReturn

BROKEN_STATUS: Final = 70  #: Of a process that ends because its device can no longer be used.
_LOOK_SECONDS: Final = 0.05  # between two looks at whether a request that waits is cancelled
_NO_TURN: Final[AbstractContextManager[None]] = nullcontext()


class Process:
    """The process that a session runs in: here its own. `gpu_process` has one that several sessions share."""

    is_shared: ClassVar = False

    def turn(self, cancelled: Callable[[], bool]) -> AbstractContextManager[None]:
        """A block in which a request may compute; `cancelled`: whether it need not wait any longer."""
        return _NO_TURN

    def leave(self) -> NoReturn:
        """Ends the session, since the server has."""
        os._exit(0)  # at once

    def break_down(self, why: str) -> NoReturn:
        """Ends the process, since its device can no longer be used."""
        os._exit(BROKEN_STATUS)


class Turns:
    """A queue of requests, of which the first computes; a session that asks again comes after all that wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    @contextmanager
    def turn(self, cancelled: Callable[[], bool]) -> Iterator[None]:
        """A block that runs while no other one does.

        Args:
            cancelled: Whether the request is cancelled: then it is the next, since what is left of it takes no time. It
                may raise an exception, which ends the wait.
        """
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
        try:
            with self._changed:
                while self._queue[0] is not ticket:
                    if cancelled() and self._queue[1] is not ticket:
                        self._queue.remove(ticket)
                        self._queue.insert(1, ticket)
                    self._changed.wait(_LOOK_SECONDS)
            yield
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()
