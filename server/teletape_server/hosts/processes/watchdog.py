"""When a session's process has to be ended from outside: pure functions of times, which the caller passes.

Seconds are counted in ticks of the caller's clock work: a suspended machine, or a server that was stopped itself, finds
no process late when it goes on.
"""

from __future__ import annotations

import signal
from typing import Final

from teletape_server.hosts.protocols import Ending, Reply
from teletape_server.ipc.leases import Reason

_PINGS: Final = 4  # in the time after which a process counts as stuck
_STILL_SECONDS: Final = 30.0  # that a request may wait for another process at least: the layout of a graph does
_COMPUTES: Final = 1e-4  # seconds of CPU time between two signs of life that a thread needs that computes


def died(status: int | None, announced: Ending | None, *, is_shared: bool) -> Ending:
    """Returns how a process ended unexpectedly.

    Args:
        status: Its exit status; None: it is not known.
        announced: How it has said itself that it would end; None: it has said nothing.
        is_shared: Whether other sessions were in it.
    """
    if announced is not None:
        others = ": all sessions on it have ended, and a new one starts a new process" if is_shared else ""
        return announced._replace(text=f"{announced.text}{others}")
    if is_shared:
        text = "the process of its GPU has ended: one of the sessions that shared it did not stop, or crashed it"
        return Ending(Reason.WORKER_DIED, text)
    if status is None:
        return Ending(Reason.WORKER_DIED, "its process has closed the connection, and how it ended is not known")
    if status >= 0:
        return Ending(Reason.WORKER_DIED, f"its process ended with status {status}")
    text = f"its process was ended by signal {-status} ({signal.Signals(-status).name})"
    text += ", as the system does when memory runs out" if -status == signal.SIGKILL else ""
    return Ending(Reason.WORKER_DIED, text)


def late(ending: Ending, limit: float) -> Reply:
    """Returns the reply to a request whose process has ended since it ran too long; `limit`: seconds."""
    message = f"{ending.text}: its session was ended, and its values are lost. Split the work into smaller requests"
    facts = {"message": message, "details": {"limit": limit, "reason": ending.reason.value}}
    return Reply("deadline_exceeded", "", memoryview(b""), facts)


class Watchdog:
    """Watches one process: its running request, and its signs of life.

    Args:
        grace: Seconds past the time limit that a request may take to stop by itself.
        stuck_after: Seconds without a sign of life, or without CPU time while a request runs, that are too many.

    Attributes:
        time_limit: Seconds that a request may compute.
        pinged: Whether a ping waits for its answer.
        needs_cpu: Whether a request that runs uses CPU time; one that waits for a GPU does not.
        began: When the running request began; None: no request runs.
    """

    def __init__(self, *, grace: float, stuck_after: float) -> None:
        self.time_limit = float("inf")
        self.needs_cpu = True
        self._grace, self._stuck_after = grace, stuck_after
        self.began: float | None = None
        self._late = self._silent = self._idle = 0.0
        self.pinged = False
        self._sign: tuple[float | None, float] = (None, 0.0)  # at the last sign of life: `_began`, and CPU seconds

    def begin(self, now: float | None) -> None:
        """Notes that a request begins to run; None: no further one waits."""
        self.began, self._late, self._idle = now, 0.0, 0.0

    def sign_of_life(self, cpu: float) -> None:
        """Notes that the process answered a ping; `cpu`: CPU seconds of the thread that computes."""
        began, before = self._sign
        if self.needs_cpu and self.began is not None and began == self.began and cpu - before < _COMPUTES:
            self._idle += self._silent
        else:
            self._idle = 0.0
        self._sign = self.began, cpu
        self._silent, self.pinged = 0.0, False

    def tick(self, now: float, seconds: float) -> Ending | None:
        """Notes that `seconds` have passed; returns why the process has to be ended now, or None."""
        if self.began is not None and now - self.began > self.time_limit:
            self._late += seconds
            if self._late > self._grace:
                return Ending(
                    Reason.DEADLINE,
                    f"a request computed longer than the limit of {self.time_limit:g} s and did not stop in the "
                    f"{self._grace:g} s after it",
                )
        self._silent += seconds
        if self._silent > self._stuck_after:
            return Ending(Reason.STUCK, f"its process gave no sign of life for {self._stuck_after:g} s")
        still = max(self._stuck_after, _STILL_SECONDS)
        if self._idle > still:
            return Ending(Reason.STUCK, f"its process stood still inside a request for {still:g} s")
        return None

    def wants_ping(self) -> bool:
        """Returns whether a ping has to be sent now."""
        if self.pinged or self._silent < self._stuck_after / _PINGS:
            return False
        self.pinged = True
        return True
