"""Parks sessions: writes down what they have, and ends their hosts, so that others get their places and memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from teletape_server.hosts.protocols import Ending, Host
from teletape_server.ipc.leases import Reason
from teletape_server.problems import overloaded
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.backlog import Backlog
from teletape_server.sessions.hosting.ends import Ends
from teletape_server.sessions.hosting.growth import Growth, with_room
from teletape_server.sessions.hosting.ledger import Reservation
from teletape_server.sessions.hosting.places import Places
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.live_sessions import LiveSessions

log = logging.getLogger("teletape")


class Parking:
    """Parks sessions.

    Args:
        live: All sessions.
        places: Chooses those that make room for others.
        ends: Ends those that make room and cannot be parked.
        backlog: Runs the logs of those that have no host.
    """

    def __init__(self, live: LiveSessions, places: Places, ends: Ends, backlog: Backlog) -> None:
        self._live, self._places, self._ends, self._backlog = live, places, ends, backlog

    async def park(self, entry: SessionEntry) -> None:
        """Writes down what a session has, and ends its host; the next request wakes it.

        If it has no host and a log to run, a host does that first. A session of which nothing outlives a host is left
        as it is.

        Raises:
            Problem: overloaded: the machine has too little memory for what passes through it.
        """
        if entry.parking is None and entry.host is not None and entry.log is not None:
            if not self._live.stopping and not self._places.can_write_down(entry):
                raise overloaded("the machine has too little memory to write down what the session has on its GPU")
            self._begin(entry, "the server stops" if self._live.stopping else "it was asked for")
        elif entry.log_to_run and not self._live.stopping:
            await self._backlog.run(entry)
        if entry.parking is not None:
            await asyncio.wait([entry.parking])

    def park_idle(self, entry: SessionEntry) -> None:
        """Begins to park a session to which no request has come for its time, if that can be now."""
        if entry.is_quiet() and self._places.can_write_down(entry):
            self._begin(entry, f"no request came for {entry.lease.terms.idle:g} s")

    def relieve(self, needed: int = 0) -> None:
        """Begins to park the session that is idle for longest, if the machine has too little memory for more bytes."""
        if self._places.is_short(needed) and not self._places.reclaim():
            self._park_longest_idle("the machine has little memory left")

    def make_room(self, owner: str, account: str) -> asyncio.Task[None] | None:
        """Gives one more session of an owner a place; returns what it has to wait for, until that is free.

        The session that is idle for longest is parked, if there is no place, or else one that does not outlive its
        host ends for an owner that has fewer.

        Raises:
            Problem: As of `Places.admit`.
        """
        now, room = self._live.clock(), None
        if (idle := self._places.to_park(owner, account, now)) is not None:
            room = self._begin(idle, "another session needs its place")
        elif (ending := self._places.to_end(owner, account, now)) is not None:
            self._ends.end_soon(ending[0], Reason.ROOM, ending[1])
        self._places.admit(owner, account)
        return room

    async def reserve_memory(self, entry: SessionEntry) -> Growth:
        """Reserves what the next host of a session takes; the sessions that are idle for longest are parked for it.

        They are also parked for what it needs later.

        Raises:
            Problem: overloaded; nothing is reserved.
        """
        self._live.measure(entry)
        places, start = self._places, partial(self._places.reserve, entry)
        return await self._growth(start, partial(places.most_reserved, entry), "another session needs its memory")

    async def reserve_process(self, name: str, most: int) -> Growth:
        """Does the same for a process that has no session; `most`: bytes that it may have reserved."""
        start = partial(self._places.reserve_process, name, most)
        return await self._growth(start, lambda _: most, f"the process of {name} needs its memory")

    async def _growth(self, start: Callable[[], Reservation], limit: Callable[[int], int], why: str) -> Growth:
        reserved = await with_room(start, self._places, self._park_longest_idle, why)
        return Growth(self._places, reserved, limit, self._park_longest_idle)

    def _park_longest_idle(self, why: str) -> asyncio.Task[None] | None:
        """Begins to park the session that is idle for longest; None: there is none."""
        idle = self._places.longest_idle(self._live.clock())
        return None if idle is None else self._begin(idle, why)

    def _begin(self, entry: SessionEntry, why: str) -> asyncio.Task[None]:
        """Begins to park a session that has a host and a log: from now on its requests wait for another host."""
        host, entry.host = entry.host, None
        self._live.parked += 1
        assert host is not None, "the caller looks"
        log.info("session %s of %s is parked: %s", entry.id, entry.owner, why, extra=entry.log_facts)
        self._live.change(entry, state=entry.record.state.then(Phase.PARKING))
        entry.parking = asyncio.get_running_loop().create_task(self._parked(entry, host))
        return entry.parking

    async def _parked(self, entry: SessionEntry, host: Host) -> None:
        is_base = False
        try:
            await host.recall()
            if self._live.stopping and host.running:  # what does not end in time has not happened: it is sent again
                await host.end(Ending(Reason.SHUTDOWN, "the server shut down"))
            else:
                is_base = await host.suspend()
        finally:
            self._live.let_go(entry, host)
            entry.log_to_run = not is_base
            entry.parking = None
            if entry.record.state.phase is Phase.PARKING:
                self._live.change(entry, state=entry.record.state.then(Phase.PARKED))
