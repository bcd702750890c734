"""What a session's process may use of the machine's memory: it asks the server for more before it uses that."""

from __future__ import annotations

import json
from collections.abc import Callable

from teletape_engine.errors import CancelledError, ResourceExhaustedError
from teletape_engine.session.session import Session
from teletape_server.ipc.control import Watcher
from teletape_server.ipc.page import IDLE_BYTES, Page


class NotAdmittedError(BaseException):
    """A log cannot be run again now: no error of a request of it, so that nothing takes it for one."""


class Reservation:
    """The memory that is reserved for a session.

    Args:
        session: The session.
        page: Says what is reserved.
        watcher: Asks the server.

    Attributes:
        is_over: Whether the request that runs is cancelled; None: the session is brought back.
    """

    def __init__(self, session: Session, page: Page, watcher: Watcher) -> None:
        self._session, self._page, self._watcher = session, page, watcher
        self.is_over: Callable[[], bool] | None = None
        if page.reserved:  # else the limit of the session alone counts
            session.reserve(page.reserved, self._extend)

    def _extend(self, needed: float) -> int:
        """Returns the bytes that are reserved once the server has reserved those that are needed.

        Raises:
            ResourceExhaustedError: The machine has too little memory.
            CancelledError, DeadlineExceededError: The request is over.
            NotAdmittedError: The machine has too little memory to bring the session back.
        """
        refusal = self._watcher.ask(int(needed), self.is_over or _never)
        if refusal is None:
            raise CancelledError("the batch was cancelled while it waited for memory")
        if refusal:
            facts = json.loads(refusal)
            if self.is_over is None:
                raise NotAdmittedError(facts["message"])
            raise ResourceExhaustedError(facts["message"], **facts["details"])
        return self._page.reserved

    def give_back(self) -> None:
        """Gives back what the session does not use; while no request runs."""
        if self._page.reserved:
            self._page.bytes_in_use = used = self._session.bytes_in_use()
            if used + IDLE_BYTES < self._page.reserved:
                self._page.reserved = used + IDLE_BYTES
            self._session.reserve(self._page.reserved)


def _never() -> bool:
    return False
