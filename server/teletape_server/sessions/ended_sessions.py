"""Sessions that have ended: why and when, and what a request to one, or to one that never was, is answered."""

from __future__ import annotations

import math
import secrets
from collections import Counter, OrderedDict
from typing import Final, NamedTuple

from teletape_server.ipc.leases import Reason
from teletape_server.problems import Problem
from teletape_server.sessions.record import Key
from teletape_wire import timestamp

_MAX_ENDED: Final = 4096  # ended sessions whose reason is still reported


class Boot(NamedTuple):
    """One run of the server, from its start to its end.

    Attributes:
        id: Differs from run to run.
        started: When it began, RFC 3339.
    """

    id: str
    started: str

    @classmethod
    def at(cls, now: float) -> Boot:
        """Returns the run that begins now, in Unix seconds."""
        return cls(secrets.token_hex(8), timestamp(now))


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


class EndedSessions:
    """The last sessions that have ended, by owner and id.

    Args:
        boot: The server's run.

    Attributes:
        reasons: How many have ended, by reason.
    """

    def __init__(self, boot: Boot) -> None:
        self.reasons: Counter[Reason] = Counter()
        self._boot = boot
        self._ended: OrderedDict[Key, Ended] = OrderedDict()

    def add(self, key: Key, ended: Ended) -> None:
        """Notes an end; of too many the oldest is forgotten."""
        self._ended[key] = ended
        while len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Notes that there is a session with that owner and id again."""
        self._ended.pop(key, None)

    def get(self, key: Key) -> Ended | None:
        """Returns why and when a session ended; None: it has not, or that is not known any more."""
        return self._ended.get(key)

    def problem(self, key: Key) -> Problem:
        """Returns the answer to a request for a session that there is not: session_ended, or unknown_session."""
        if (ended := self._ended.get(key)) is not None:
            return session_ended(key[1], ended)
        return Problem(
            "unknown_session",
            f"there is no session {key[1]!r} on this server, which started at {self._boot.started}; of earlier runs "
            "there are only sessions that last. GET /v1/sessions lists your sessions, POST /v1/sessions creates one",
            boot_id=self._boot.id,
            started=self._boot.started,
        )


def recovering(id: str, why: str = "", seconds: float = 1.0) -> Problem:
    """Returns the problem of a request whose host has ended: another one goes on with the session.

    Args:
        id: The session's.
        why: Why it recovers, if an attempt has failed.
        seconds: After which the request is best sent again.
    """
    so_far = f" ({why})" if why else ""
    return Problem(
        "recovering",
        f"the process of the session {id!r} has ended, and another one goes on with it{so_far}: what was answered is "
        "there. Send the request again; under its Idempotency-Key, or as a frame with its number and nonce, it is not "
        "executed twice",
        headers={"Retry-After": str(max(math.ceil(seconds), 1))},
    )


def damaged(id: str, why: str) -> Problem:
    """Returns the problem of a session that cannot be brought back."""
    return Problem(
        "session_damaged",
        f"the session {id!r} cannot go on: {why}. Its files are as they were; whoever runs the server can save its "
        "values",
    )


def session_ended(id: str, ended: Ended, *, is_run: bool = False) -> Problem:
    """Returns the problem of a session that has ended; `is_run`: it was a single request's."""
    time = timestamp(ended.time)
    text = f"the session {id!r} ended at {time}: {ended.text}. Its values are lost; create a new session"
    return Problem(
        "session_ended",
        f"the request has no answer: {ended.text}. Nothing of it stays: send it again" if is_run else text,
        reason=ended.reason.value,
        ended_at=time,
    )
