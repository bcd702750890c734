"""The states of a session, and which of them may follow which: pure, without a clock and without a process.

A session is one thing from its creation to its end; the process that computes for it may come and go meanwhile.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from teletape_server.ipc.leases import Reason


class Phase(enum.StrEnum):
    """Where a session is in its life."""

    STARTING = "starting"  #: Its first host starts; the session cannot be found before that has succeeded.
    LIVE = "live"  #: It has a host, which takes requests.
    PARKING = "parking"  #: Its host writes down what the session has, and then ends.
    PARKED = "parked"  #: It has no host; what it has is written down, and the next request wakes it.
    WAKING = "waking"  #: Another host starts with what is written down; requests wait.
    RECOVERING = "recovering"  #: Its host has ended unexpectedly, and another one starts; requests wait.
    DAMAGED = "damaged"  #: It cannot be brought back from what is written down, which stays as it is.
    DIVERGED = "diverged"  #: It could be, with other values than it had; both can be saved.
    ENDED = "ended"  #: It is over, for a reason.


LOST: Final = (Phase.DAMAGED, Phase.DIVERGED)  #: The phases of sessions that only their files are left of.

#: The phases that may follow each, besides the end, which may follow all of them but itself.
FOLLOWING: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.STARTING: frozenset({Phase.LIVE}),
    Phase.LIVE: frozenset({Phase.PARKING, Phase.RECOVERING}),
    Phase.PARKING: frozenset({Phase.PARKED}),
    #: Damaged, diverged: its log was run to write a base in its place.
    Phase.PARKED: frozenset({Phase.WAKING, *LOST}),
    #: Parked: no host could be started, and nothing is lost.
    Phase.WAKING: frozenset({Phase.LIVE, Phase.PARKED, *LOST}),
    #: Recovering again: an attempt has failed, and another one comes.
    Phase.RECOVERING: frozenset({Phase.RECOVERING, Phase.LIVE, *LOST}),
    #: Waking: the first request to another server; what was in the way may have been removed. Parked: its log was run.
    Phase.DAMAGED: frozenset({Phase.WAKING, Phase.PARKED}),
    Phase.DIVERGED: frozenset({Phase.WAKING, Phase.PARKED}),
    Phase.ENDED: frozenset(),
}


class State(NamedTuple):
    """The state of a session.

    Attributes:
        phase: Where it is in its life.
        reason: Why it has ended; None: it has not.
        why: Why it recovers, is damaged or has diverged, for people.
    """

    phase: Phase
    reason: Reason | None = None
    why: str = ""

    def then(self, phase: Phase, why: str = "") -> State:
        """Returns the state that follows, for a reason; `end` returns the last one.

        Raises:
            ValueError: That phase does not follow this one.
        """
        if phase not in FOLLOWING[self.phase]:
            allowed = ", ".join(sorted(FOLLOWING[self.phase])) or "nothing"
            raise ValueError(f"a session cannot go from {self.phase} to {phase}: {allowed} may follow, or the end")
        return State(phase, why=why)

    def end(self, reason: Reason) -> State:
        """Returns the last state.

        Raises:
            ValueError: It has ended already.
        """
        if self.phase is Phase.ENDED:
            raise ValueError(f"a session that ended ({self.reason}) cannot end again")
        return State(Phase.ENDED, reason)


BEGINNING: Final = State(Phase.STARTING)  #: Of every session.

#: The phases in which a session has a host, or is about to get one: it takes a place of the server.
WITH_PLACE: Final = frozenset({Phase.STARTING, Phase.LIVE, Phase.WAKING, Phase.RECOVERING})
