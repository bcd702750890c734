"""How long a session lives: pure rules over times that the caller gives, in Unix seconds.

Idle time counts work, not heartbeats: only a request to the engine begins it anew. Nothing outlives the maximum age.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Reason(enum.StrEnum):
    """Why a session ended."""

    IDLE = "idle"
    MAX_AGE = "max_age"
    DELETED = "deleted"
    WORKER_DIED = "worker_died"
    SHUTDOWN = "server_shutdown"


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides when a session ends, once its last work is known.

    Attributes:
        idle: Seconds without work after which it ends.
        ends: When it ends whatever happens.
        until: Before this time it does not end for idleness.
    """

    idle: float
    ends: float
    until: float = 0.0

    def expires_at(self, worked: float) -> float:
        """When a session that worked last at `worked` ends."""
        return min(self.ends, max(worked + self.idle, self.until))


class Lease:
    """One session's terms, and the work that it counts.

    Args:
        terms: The terms at the beginning.
        now: When the session began.
    """

    def __init__(self, terms: Terms, now: float) -> None:
        self.terms = terms
        self._worked = now
        self._working = 0

    def begin(self, now: float) -> None:
        """A request goes to the engine: until its end there is no idle time."""
        self._working += 1
        self._worked = now

    def end(self, now: float) -> None:
        """The engine has answered one request."""
        self._working -= 1
        self._worked = now

    def extend(self, now: float, seconds: float) -> None:
        """Keeps the session for at least `seconds` from now, idle or not, within its maximum age."""
        terms = self.terms
        self.terms = Terms(terms.idle, terms.ends, max(terms.until, min(now + seconds, terms.ends)))

    def expires_at(self, now: float) -> float:
        """When the session ends if nothing happens; while it works, as if the work ended now."""
        return self.terms.expires_at(now if self._working else self._worked)

    def expired(self, now: float) -> Reason | None:
        """Why the session has to end now, or None."""
        if now >= self.terms.ends:
            return Reason.MAX_AGE
        return Reason.IDLE if not self._working and now >= self.expires_at(now) else None
