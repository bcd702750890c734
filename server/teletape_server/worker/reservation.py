"""What a session's process may use of the machine's memory: it asks the server for more before it uses that."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable

from teletape_engine.errors import CancelledError, ResourceExhaustedError
from teletape_engine.session.session import Session
from teletape_server.ipc.control import Watcher
from teletape_server.ipc.page import IDLE_BYTES, Page


class NotAdmittedError(BaseException):
    """A log cannot be run again now: no error of a request of it, so that nothing takes it for one."""


class Reservation:
    """The memory that is reserved for a session, and for those like it that the process has: each has a part of it.

    Args:
        session: The session.
        page: Says what is reserved.
        watcher: Asks the server.

    Attributes:
        is_over: Whether the request that runs is cancelled; None: the session is brought back.
    """

    def __init__(self, session: Session, page: Page, watcher: Watcher) -> None:
        self._page, self._watcher = page, watcher
        self._parts: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()
        self.is_over: Callable[[], bool] | None = None
        if page.reserved:  # else the limit of the session alone counts
            session.on_like = self._add
            self._add(session)

    def _add(self, session: Session) -> None:
        """Gives a session what no other one has."""
        self._parts[session] = part = max(self._page.reserved - sum(self._parts.values()), 0)
        mine = weakref.ref(session)
        session.reserve(part, lambda needed: self._extend(mine, int(needed)))

    def _extend(self, session: weakref.ref[Session], needed: int) -> int:
        """Returns the bytes that a session has reserved once the server has reserved those that it needs.

        Raises:
            ResourceExhaustedError: The machine has too little memory.
            CancelledError, DeadlineExceededError: The request is over.
            NotAdmittedError: The machine has too little memory to bring the session back.
        """
        mine = session()
        assert mine is not None, "it needs memory"
        others = sum([part for other, part in self._parts.items() if other is not mine])
        if len(self._parts) > 1:  # answers say nothing of what these use
            self._page.bytes_in_use = sum([each.bytes_in_use() for each in self._parts])
        refusal = self._watcher.ask(others + needed, self.is_over or _never)
        if refusal is None:
            raise CancelledError("the batch was cancelled while it waited for memory")
        if refusal:
            facts = json.loads(refusal)
            if self.is_over is None:
                raise NotAdmittedError(facts["message"])
            raise ResourceExhaustedError(facts["message"], **facts["details"])
        self._parts[mine] = self._page.reserved - others
        return self._parts[mine]

    def give_back(self) -> None:
        """Gives back what the sessions do not use; while no request runs."""
        if not self._parts:
            return
        spare = self._page.reserved
        for session in self._parts:
            self._parts[session] = part = session.bytes_in_use()
            session.reserve(part)
            spare -= part
        self._page.bytes_in_use = self._page.reserved - spare
        if spare > IDLE_BYTES:
            self._page.reserved -= spare - IDLE_BYTES
            spare = IDLE_BYTES
        first = next(iter(self._parts))
        self._parts[first] += max(spare, 0)
        first.reserve(self._parts[first])


def _never() -> bool:
    return False
