"""When a request must stop: the server has computed for long enough, its caller's time is over, or it is cancelled.

The caller's time counts from the request's arrival, so that a wait for others is in it; the server's from its turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from teletape_engine.errors import CancelledError, DeadlineExceededError
from teletape_server.handlers.methods import TIME_LIMIT, WAITED
from teletape_server.ipc.control import Watcher


class TimeLimits:
    """The limits of one request.

    Args:
        servers: Seconds that the server computes for a request.
        params: Of the request.
        received: When it has arrived, on the monotonic clock.
    """

    __slots__ = ("_callers", "_callers_end", "_servers", "_servers_end")

    def __init__(self, servers: float, params: Mapping[str, Any], received: float) -> None:
        self._servers, self._servers_end = servers, math.inf
        self._callers: float = params.get(TIME_LIMIT, math.inf)
        self._callers_end: float = received - params.get(WAITED, 0.0) + self._callers

    def begin(self) -> tuple[float, float]:
        """Notes that it is the request's turn.

        Returns:
            The limit that ends first: its seconds, and when that is, on the monotonic clock.
        """
        self._servers_end = end = time.monotonic() + self._servers
        return (self._callers, self._callers_end) if self._callers_end < end else (self._servers, end)

    @property
    def caller_waits_no_longer(self) -> bool:
        """Whether the caller's time is over."""
        return time.monotonic() > self._callers_end

    def check(self) -> None:
        """Raises if the time is over.

        Raises:
            DeadlineExceededError: It is.
        """
        now = time.monotonic()
        if now > self._callers_end:
            raise DeadlineExceededError(
                f"not done within {self._callers:g} s, the time that its caller gives it: allow more, or ask for less",
                limit=self._callers,
            )
        if now > self._servers_end:
            raise DeadlineExceededError(
                f"the request has computed for {self._servers:g} seconds, the limit of this server: split it into "
                "smaller requests",
                limit=self._servers,
            )

    def canceller(
        self, watcher: Watcher, number: int, end: float, others: Callable[[], float] | None = None
    ) -> Callable[[], bool]:
        """Returns what a request calls between its steps: it returns whether the request is cancelled.

        It raises DeadlineExceededError if its time is over, and CancelledError if it is cancelled since the server
        stops.

        Args:
            watcher: Knows what the server has cancelled.
            number: The request's; see `Watcher.is_cancelled`.
            end: When its time is over; see `begin`.
            others: Lets others compute whose turn it is, and returns the seconds that they took; None: there are none.
        """

        def cancelled() -> bool:
            if others is not None:
                self._servers_end += others()
            if time.monotonic() > end:
                self.check()
            is_cancelled = watcher.has_cancelled and watcher.is_cancelled(number)
            if is_cancelled and watcher.is_stopping:
                raise CancelledError(
                    "the batch was cancelled, since the server is stopping: its sessions end. Send it again when a "
                    "server answers",
                    reason="server_shutdown",
                )
            return is_cancelled

        return cancelled
