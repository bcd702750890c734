"""Sessions that have ended: why and when, and what a request to one is answered."""

from __future__ import annotations

from typing import NamedTuple

from teletape_server.ipc.leases import Reason
from teletape_server.problems import Problem
from teletape_wire import timestamp


class Ended(NamedTuple):
    """Why and when a session ended.

    Attributes:
        reason: For programs.
        text: For people.
        time: Unix seconds.
    """

    reason: Reason
    text: str
    time: float


def session_ended(id: str, ended: Ended) -> Problem:
    """Returns the problem of a session that has ended."""
    time = timestamp(ended.time)
    return Problem(
        "session_ended",
        f"the session {id!r} ended at {time}: {ended.text}. Its values are lost; create a new session",
        reason=ended.reason.value,
        ended_at=time,
    )
