"""The process of a session, and whose turn it is in one that sessions share.

Keys share a GPU by the time that their requests have computed, and not by how many of them there are. The next turn
goes to the group that has had least for its part, and in it to the key that has had least for its weight. Who comes
back after a while counts as if it had had what the least of those has that are there: what it did not use is gone. A
long request gives way between two of its steps.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar, Final, NoReturn

from teletape_server.ipc.rights import Right

BROKEN_STATUS: Final = 70  #: Of a process that ends because its device can no longer be used.
_LOOK_SECONDS: Final = 0.05  # between two looks at whether a request that waits is cancelled
_STEP_SECONDS: Final = 0.02  # for which a request computes before it gives way
_GONE_SECONDS: Final = 1.0  # since the last turn, after which a key that comes back was away
_NO_TURN: Final[AbstractContextManager[None]] = nullcontext()


class Process:
    """The process that a session runs in: here its own. `gpu_process` has one that several sessions share."""

    is_shared: ClassVar = False

    def turn(self, right: Right, cancelled: Callable[[], bool]) -> AbstractContextManager[None]:
        """A block in which a request may compute; `cancelled`: whether it need not wait any longer."""
        return _NO_TURN

    def give_way(self) -> float:
        """Lets others compute whose turn it is before the request goes on; returns the seconds that they took."""
        return 0.0

    def leave(self) -> NoReturn:
        """Ends the session, since the server has."""
        os._exit(0)  # at once

    def break_down(self, why: str) -> NoReturn:
        """Ends the process, since its device can no longer be used."""
        os._exit(BROKEN_STATUS)


class _Ticket:
    """A request that computes or waits."""

    def __init__(self, right: Right, cancelled: Callable[[], bool]) -> None:
        self.right, self.cancelled = right, cancelled
        self.accounts = ((right.group,), (right.group, right.owner))
        self.comes_first = False
        self.began = 0.0


class Turns:
    """Lets one request compute at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []  # in the order of asking
        self._running: _Ticket | None = None
        self._had: dict[tuple[str, ...], float] = {}  # seconds of groups and keys, by their parts and weights
        self._last: dict[tuple[str, ...], float] = {}  # when each has last computed

    def __len__(self) -> int:
        return len(self._waiting) + (self._running is not None)

    @contextmanager
    def turn(self, right: Right, cancelled: Callable[[], bool]) -> Iterator[None]:
        """A block that runs while no other one does.

        Args:
            right: Of the key for which it counts.
            cancelled: Whether the request is cancelled: then it is the next, since what is left of it takes no time. It
                may raise an exception, which ends the wait.
        """
        ticket = _Ticket(right, cancelled)
        with self._changed:
            self._note_return(ticket)
            self._waiting.append(ticket)
        try:
            self._wait(ticket)
            yield
        finally:
            with self._changed:
                self._leave(ticket)
                if not len(self):
                    self._had.clear()
                    self._last.clear()

    def give_way(self) -> float:
        """Lets others compute whose turn it is before the request that calls this; returns the seconds they took."""
        ticket = self._running
        if not self._waiting or ticket is None or time.monotonic() - ticket.began < _STEP_SECONDS:
            return 0.0
        with self._changed:
            self._leave(ticket)
            self._waiting.append(ticket)
        began = time.monotonic()
        self._wait(ticket)
        return ticket.began - began

    def _wait(self, ticket: _Ticket) -> None:
        with self._changed:
            while self._running is not None or self._next() is not ticket:
                ticket.comes_first = ticket.cancelled()
                self._changed.wait(_LOOK_SECONDS)
            self._waiting.remove(ticket)
            self._running, ticket.began = ticket, time.monotonic()

    def _next(self) -> _Ticket:
        return min(self._waiting, key=self._order)

    def _order(self, ticket: _Ticket) -> tuple[bool, float, float]:
        group, key = ticket.accounts
        return not ticket.comes_first, self._had[group], self._had[key]

    def _leave(self, ticket: _Ticket) -> None:
        if ticket is self._running:
            now = time.monotonic()
            for account, part in zip(ticket.accounts, (ticket.right.part, ticket.right.weight), strict=True):
                self._had[account] += (now - ticket.began) / part
                self._last[account] = now
            self._running = None
        else:
            self._waiting.remove(ticket)
        self._changed.notify_all()

    def _note_return(self, ticket: _Ticket) -> None:
        """Sees that a key that was away has not had less than all of its group, nor its group than all groups."""
        tickets = [*self._waiting, *([self._running] if self._running is not None else [])]
        there = {account for other in tickets for account in other.accounts}
        now = time.monotonic()
        for account in ticket.accounts:
            if account not in there and now - self._last.get(account, float("-inf")) >= _GONE_SECONDS:
                rivals = [self._had[other] for other in there if other[:-1] == account[:-1]]
                self._had[account] = max(self._had.get(account, 0.0), min(rivals, default=0.0))
