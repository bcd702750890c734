"""The process of a session, and whose turn it is in one that sessions share.

Keys share a GPU by the time that their requests have computed, and not by how many of them there are: the next turn
goes to the key that has had least for its weight. A key that comes back counts as if it had had what the least of those
has that are there: what it did not use is gone. A long request gives way between two of its steps.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import ClassVar, Final, NamedTuple, NoReturn

BROKEN_STATUS: Final = 70  #: Of a process that ends because its device can no longer be used.
_LOOK_SECONDS: Final = 0.05  # between two looks at whether a request that waits is cancelled
_STEP_SECONDS: Final = 0.02  # for which a request computes before it gives way
_NO_TURN: Final[AbstractContextManager[None]] = nullcontext()


class Account(NamedTuple):
    """For whom the requests of a session count.

    Attributes:
        owner: The key's name.
        weight: Its part of the GPU, relative to those of others.
    """

    owner: str = ""
    weight: float = 1.0


class Process:
    """The process that a session runs in: here its own. `gpu_process` has one that several sessions share."""

    is_shared: ClassVar = False

    def turn(self, account: Account, cancelled: Callable[[], bool]) -> AbstractContextManager[None]:
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

    def __init__(self, account: Account, cancelled: Callable[[], bool]) -> None:
        self.account, self.cancelled = account, cancelled
        self.comes_first = False
        self.began = 0.0


class Turns:
    """Lets one request compute at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []  # in the order of asking
        self._running: _Ticket | None = None
        self._had: dict[str, float] = {}  # seconds that keys have computed, by their weights

    def __len__(self) -> int:
        return len(self._waiting) + (self._running is not None)

    @contextmanager
    def turn(self, account: Account, cancelled: Callable[[], bool]) -> Iterator[None]:
        """A block that runs while no other one does.

        Args:
            account: For which it counts.
            cancelled: Whether the request is cancelled: then it is the next, since what is left of it takes no time. It
                may raise an exception, which ends the wait.
        """
        ticket = _Ticket(account, cancelled)
        with self._changed:
            self._note_return(account.owner)
            self._waiting.append(ticket)
        try:
            self._wait(ticket)
            yield
        finally:
            with self._changed:
                self._leave(ticket)
                if not len(self):
                    self._had.clear()

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
        return min(self._waiting, key=lambda ticket: (not ticket.comes_first, self._had[ticket.account.owner]))

    def _leave(self, ticket: _Ticket) -> None:
        if ticket is self._running:
            account = ticket.account
            self._had[account.owner] += (time.monotonic() - ticket.began) / account.weight
            self._running = None
        else:
            self._waiting.remove(ticket)
        self._changed.notify_all()

    def _note_return(self, owner: str) -> None:
        """Sees that a key of which no request is there has not had less than all others."""
        tickets = [*self._waiting, *([self._running] if self._running is not None else [])]
        there = {ticket.account.owner for ticket in tickets}
        if owner not in there:
            least = min((self._had[other] for other in there), default=0.0)
            self._had[owner] = max(self._had.get(owner, 0.0), least)
