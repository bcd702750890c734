"""Runs the logs that a killed server, or a stop that took too long, has left, and writes bases in their place.

A base is read by every version; a log is run by the one that wrote it. So nothing may be left of them for long.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from teletape_engine.errors import TeletapeError
from teletape_server.durable.records import SessionDamagedError
from teletape_server.hosts.protocols import Host
from teletape_server.problems import Problem
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.growth import Growth
from teletape_server.sessions.hosting.places import Places
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.lifecycle import LOST, Phase
from teletape_server.sessions.live_sessions import LiveSessions

_PAUSE_SECONDS: Final = 0.5  # between two sessions while the server works, and looks at whether others start
_AT_A_TIME: Final = 2  # when it stops

log = logging.getLogger("teletape")


class Backlog:
    """Runs logs.

    Args:
        live: All sessions.
        starts: Starts the hosts that do it.
        places: Says whether the machine has the memory.
    """

    def __init__(self, live: LiveSessions, starts: Starts, places: Places) -> None:
        self._live, self._starts, self._places = live, starts, places
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    def _left(self) -> list[SessionEntry]:
        return [entry for entry in self._live.by_key.values() if entry.log_to_run]

    def _left_to_this_version(self) -> list[SessionEntry]:
        return [entry for entry in self._left() if entry.record.state.phase not in LOST]

    async def work_off(self) -> None:
        """Runs the logs of all sessions, one after the other, while no session starts for a request."""
        left = self._left()
        if left:
            log.info("%d sessions have logs that are to be run: this is done in the background", len(left))
        while left and not self._live.stopping:
            await asyncio.sleep(_PAUSE_SECONDS)
            if all(entry.waking is None for entry in self._live.by_key.values()):
                await self.run(left.pop(0))

    async def finish(self, seconds: float) -> None:
        """Runs the logs that are left when the server stops, as many as the time allows; then says which are left."""
        late: set[asyncio.Task[None]] = set()
        if left := self._left_to_this_version():
            tasks = [asyncio.create_task(self._run_in_turn(entry)) for entry in left]
            _, late = await asyncio.wait(tasks, timeout=seconds)
        # A log of another version may be just tried too.
        late |= {entry.parking for entry in self._left() if entry.parking is not None}
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        if left := self._left_to_this_version():
            names = ", ".join(f"{entry.owner}:{entry.id}" for entry in left)
            log.warning(
                "%d sessions keep logs, which this version of the server alone can run: %s. Start it again, and stop "
                "it when `teletape sessions list` shows none (or with a longer --shutdown-grace)",
                len(left),
                names,
            )

    async def _run_in_turn(self, entry: SessionEntry) -> None:
        async with self._slots:
            await self.run(entry)

    async def run(self, entry: SessionEntry) -> None:
        """Runs the log of a session without a host, and writes its base; the session stays parked.

        It does nothing for a session that has no log to run, and leaves it if the machine has too little memory, or
        the host cannot start. A log that cannot be run leaves the session damaged.
        """
        is_free = entry.host is None and entry.waking is None and entry.parking is None
        if entry.log_to_run and is_free and self._live.by_key.get(entry.record.key) is entry:
            entry.parking = asyncio.get_running_loop().create_task(self._run(entry))
            entry.parking.add_done_callback(partial(_note_done, entry))
        if entry.parking is not None:
            await asyncio.wait([entry.parking])

    async def _run(self, entry: SessionEntry) -> None:
        live, record = self._live, replace(entry.record, epoch=entry.record.epoch + 1)
        try:
            with ExitStack() as at_end:
                places = self._places
                memory = Growth(places, places.reserve(entry), partial(places.most_reserved, entry), lambda _: None)
                at_end.callback(memory.release)
                opened = await live.store.open_log(record)
                try:
                    host, _ = await self._starts.host(entry.record, live.devices_in_use, opened, 0, memory)
                except BaseException:
                    if opened is not None:
                        live.store.close_log(opened)
                    raise
                entry.log = opened
                await self._write_base(entry, host)
        except SessionDamagedError as error:
            state = entry.record.state
            if state.phase is Phase.PARKED:
                live.change(entry, state=state.then(Phase(str(error.details["state"])), str(error)))
            facts = (entry.id, entry.owner, entry.record.state.phase, error)
            log.warning("session %s of %s is %s: %s", *facts, extra=entry.log_facts)
        except (Problem, TeletapeError) as error:  # it is left to a request, or to the next server
            log.warning("session %s of %s keeps its log: %s", entry.id, entry.owner, error, extra=entry.log_facts)

    async def _write_base(self, entry: SessionEntry, host: Host) -> None:
        live = self._live
        live.note_beginning(entry, host)
        try:
            entry.log_to_run = not await host.suspend()
        finally:
            live.let_go(entry, host)
        if (state := entry.record.state).phase is Phase.ENDED:  # it was deleted meanwhile
            return
        state = state.then(Phase.PARKED) if state.phase in LOST else state
        entry.lost = None
        live.change(entry, epoch=entry.record.epoch + 1, state=state)
        how = "was run and stays, since no base could be written" if entry.log_to_run else "has been run"
        log.info("%s: its log %s", host.name, how, extra=entry.log_facts)


def _note_done(entry: SessionEntry, task: asyncio.Task[None]) -> None:
    if entry.parking is task:
        entry.parking = None
