"""The place that knows why requests wait: answers, events, GET /v1/usage and sessions' descriptions all ask here."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from teletape_server.hosts.protocols import Running
from teletape_server.hosts.shares import Shares
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.places import Memory
from teletape_server.sessions.registry import Registry
from teletape_server.waiting import reasons
from teletape_server.waiting.keys import Box, box_of
from teletape_server.waiting.reasons import Ahead, Waiting

_FRESH_SECONDS: Final = 0.5  # for which what the keys have is not looked at again: any number of callers may ask
_MOST_UNANSWERED: Final = 100  # requests that one answer lists


class Waits:
    """Knows why requests wait.

    Args:
        registry: The sessions.
        shares: How keys share the processors.
        clock: Returns seconds that only rise.

    Attributes:
        runs: The requests without a session.
    """

    def __init__(self, registry: Registry, shares: Shares, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry, self._shares, self._clock = registry, shares, clock
        self.runs = registry.runs
        self._box: Box | None = None
        self._memory: Memory | None = None
        self._looked = 0.0

    def box(self) -> Box:
        """Returns what the keys have, as of half a second ago at most."""
        now = self._clock()
        if self._box is None or now - self._looked > _FRESH_SECONDS:
            entries, parts = self._registry.live.by_key.values(), self._shares.parts
            self._box = box_of(entries, self.runs.waiting_owners, parts, self._registry.clock())
            self._memory, self._looked = self._registry.memory(), now
        return self._box

    def memory(self) -> Memory:
        """Returns what is left of the machine's memory, and who has it; as old as `box`."""
        self.box()
        assert self._memory is not None, "it is looked at with the box"
        return self._memory

    def of(self, owner: str, running: Running | None, entry: SessionEntry | None = None) -> Waiting:
        """Returns why a request waits.

        Args:
            owner: Whose it is.
            running: The request; None: its session starts.
            entry: Its session; None: the server itself runs it.
        """
        runs = self.runs
        if running is not None and (ahead := runs.ahead(running.reply)) is not None:
            return reasons.of_run(ahead, self._with_place(), runs.places, runs.typical_seconds)
        if running is not None and entry is None:
            entry = next((item for item in self._registry.live.by_key.values() if running in item.running), None)
        if entry is not None and running is not None:
            return reasons.of_request(entry, running, self.box())
        starting = self._registry.live.starting.values()
        return reasons.of_start(entry or next((item for item in starting if item.owner == owner), None))

    def of_next_run(self, owner: str, device: str) -> Waiting:
        """Returns why a request without a session would wait if it came now, or what it would share.

        Raises:
            Problem: overloaded: it would be refused.
        """
        ahead = self.runs.ahead_of_next(owner)
        if ahead is None:
            return reasons.of_turn(owner, device, self.box())
        return reasons.of_run(ahead, self._with_place(), self.runs.places, self.runs.typical_seconds)

    def unanswered(self, owner: str) -> list[tuple[Running | None, SessionEntry | None]]:
        """Returns the oldest requests of an owner that are not answered, with their sessions; no session: they wait.

        One that starts is among them without a request.
        """
        live = self._registry.live
        mine = [entry for entry in live.by_key.values() if entry.owner == owner]
        oldest: list[tuple[Running, SessionEntry | None]]
        oldest = [(Running(turn, began=came), None) for turn, came in self.runs.waiting(owner)]
        oldest += [(running, entry) for entry in mine for running in entry.running]
        oldest.sort(key=lambda pair: pair[0].began)
        starting = [(None, entry) for entry in live.starting.values() if entry.owner == owner]
        return [*oldest, *starting][:_MOST_UNANSWERED]

    def _with_place(self) -> list[Ahead]:
        """Returns the requests without a session that have a place, those first that have it for longest."""
        ahead = [Ahead(owner, None, round(seconds, 1)) for owner, seconds in self.runs.begun_for()]
        return sorted(ahead, key=lambda item: -(item.running_seconds or 0.0))
