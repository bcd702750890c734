"""When a session ends: pure functions of times in Unix seconds, which the caller passes.

A session ends after some idle time, which only requests to the engine restart, and in any case at a maximum age; one
that outlives its process is parked in place of the first, and has no maximum age.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, NamedTuple

NEVER: Final = 253402300799.0  #: The last second that a timestamp can name.


class Reason(enum.StrEnum):
    """Why a session ended."""

    IDLE = "idle"
    MAX_AGE = "max_age"
    ROOM = "room"
    DELETED = "deleted"
    WORKER_DIED = "worker_died"
    STUCK = "worker_stuck"
    DEADLINE = "deadline"
    SHUTDOWN = "server_shutdown"


@dataclass(frozen=True, slots=True)
class Terms:
    """The times that decide when a session ends, together with the time of its last work.

    Attributes:
        idle: Seconds without work after which it ends.
        ends: Time at which it ends in any case; `NEVER`: at none.
        until: Time before which it does not end for idleness.
    """

    idle: float
    ends: float
    until: float = 0.0

    def expires_at(self, worked: float) -> float:
        """Returns the time at which a session ends that worked last at `worked`."""
        return min(self.ends, max(worked + self.idle, self.until))


class Times(NamedTuple):
    """What an answer says of a session's end, as it travels to a process: values for answers, and for no clock there.

    Attributes:
        now: The time of the server's clock. A process adds to it what its own clock has measured since.
        idle, ends, until: Of the terms.
    """

    now: float
    idle: float
    ends: float
    until: float


class Lease:
    """The end of one session: its terms, the time of its last work, and whether it works now.

    Args:
        terms: The terms at the beginning.
        now: Time at which the session began.
    """

    def __init__(self, terms: Terms, now: float) -> None:
        self.terms = terms
        self._worked = now
        self._working = 0

    def times(self, now: float) -> Times:
        """Returns what an answer says of the end, now."""
        return Times(now, self.terms.idle, self.terms.ends, self.terms.until)

    def begin(self, now: float) -> None:
        """Notes that a request goes to the engine; the session is not idle until `end`."""
        self._working += 1
        self._worked = now

    def end(self, now: float) -> None:
        """Notes that the engine has answered one request."""
        self._working -= 1
        self._worked = now

    def work(self, then: float) -> None:
        """Notes that the engine worked for a request at `then`, which was not noted when it happened."""
        self._worked = max(self._worked, then)

    def extend(self, now: float, seconds: float) -> None:
        """Keeps the session for at least `seconds` from now, idle or not, within its maximum age."""
        terms = self.terms
        self.terms = Terms(terms.idle, terms.ends, max(terms.until, min(now + seconds, terms.ends)))

    def idle(self, now: float) -> float:
        """Returns the seconds since its last work; 0 while it works, and while it is kept idle or not."""
        return 0.0 if self._working or now < self.terms.until else now - self._worked

    def expires_at(self, now: float) -> float:
        """Returns the time at which the session ends without further requests; running work counts as ending now."""
        return self.terms.expires_at(now if self._working else self._worked)

    def expired(self, now: float) -> Reason | None:
        """Returns why the session has to end now, or None."""
        if now >= self.terms.ends:
            return Reason.MAX_AGE
        return Reason.IDLE if not self._working and now >= self.expires_at(now) else None
