"""Starts hosts for sessions that have none: new ones, parked ones, and those whose host has ended unexpectedly."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Final

from teletape_engine.errors import TeletapeError
from teletape_server.durable.open_logs import OpenLog
from teletape_server.durable.records import SessionDamagedError
from teletape_server.hosts.protocols import Ending, Host, HostGone
from teletape_server.hosts.running import REQUEST_ID
from teletape_server.ipc.leases import Reason
from teletape_server.problems import Problem, overloaded
from teletape_server.sessions.ended_sessions import damaged, recovering
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.hosting.ends import Ends
from teletape_server.sessions.hosting.growth import Growth
from teletape_server.sessions.hosting.parking import Parking
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.lifecycle import LOST, Phase
from teletape_server.sessions.live_sessions import FAULTS, LiveSessions
from teletape_server.sessions.record import SessionRecord

_BROUGHT_BACK: Final = (Phase.WAKING, Phase.RECOVERING)
_MOST_DEATHS: Final = 2  # of hosts at one record, after which a session counts as damaged
_MOST_FAILURES: Final = 3  # of hosts that end while they bring a session back, one after the other

log = logging.getLogger("teletape")


class Waking:
    """Starts hosts.

    Args:
        live: All sessions.
        starts: Starts the hosts themselves.
        parking: Makes room for them.
        ends: Ends sessions that cannot go on.
    """

    def __init__(self, live: LiveSessions, starts: Starts, parking: Parking, ends: Ends) -> None:
        self._live, self._starts, self._parking, self._ends = live, starts, parking, ends

    async def start(self, entry: SessionEntry) -> Host:
        """Starts a host for a session, which then lives.

        Raises:
            Problem: overloaded, unknown_device, internal, shutting_down, session_damaged.
        """
        live, began = self._live, time.monotonic()
        if entry.parking is not None:
            await asyncio.wait([entry.parking])
        state = entry.record.state
        is_new = state.phase is Phase.STARTING
        if state.phase in LOST and entry.lost is None:
            raise damaged(entry.id, state.why)
        if state.phase in (Phase.PARKED, *LOST):
            live.check_running()
            entry.room = self._room_to_wake(entry)
            live.change(entry, state=state.then(Phase.WAKING))
        if (pause := entry.pause(live.clock())) and state.phase is Phase.RECOVERING:
            raise recovering(entry.id, state.why, pause)
        opened: OpenLog | None = None
        memory: Growth | None = None
        try:
            live.check_running()
            if entry.room is not None:
                await asyncio.wait([entry.room])
            memory = await self._parking.reserve_memory(entry)
            next_host = replace(entry.record, epoch=entry.record.epoch + 1)
            opened = await live.store.open_log(next_host)
            host, device = await self._starts.host(entry.record, live.devices_in_use, opened, entry.last_client, memory)
            if is_new and not entry.record.is_run:
                await self._settle(replace(next_host, device=device, state=state.then(Phase.LIVE)), host)
        except BaseException as error:
            live.failed_starts += 1
            entry.give_up(str(error))
            if memory is not None:
                memory.release()
            if opened is not None:
                live.store.close_log(opened)
            if entry.record.state.phase in _BROUGHT_BACK:
                self._note_failure(entry, error)
            if is_new and opened is not None:
                live.store.put(replace(entry.record, state=entry.record.state.end(Reason.WORKER_DIED)))
            raise
        finally:
            entry.room = None
            live.starting.pop(entry.record.key, None)
        entry.host, entry.log, entry.lost, entry.log_to_run = host, opened, None, False
        live.note_beginning(entry, host)
        if is_new:
            live.add(entry)
        live.change(entry, device=device, epoch=entry.record.epoch + 1, state=entry.record.state.then(Phase.LIVE))
        entry.go_on()
        how = "created" if is_new else "recovered" if state.phase is Phase.RECOVERING else "woken"
        live.starts["run" if entry.record.is_run else how].note(time.monotonic() - began)
        by = f"by request {request_id}" if (request_id := REQUEST_ID.get()) != "-" else "by itself"
        log.info("%s %s on %s %s", host.name, how, device, by, extra=entry.log_facts)
        entry.lease.work(live.clock())
        live.measure(entry)
        host.ended.add_done_callback(partial(self._on_host_ended, entry, host), context=Context())  # no request's
        return host

    async def _settle(self, record: SessionRecord, host: Host) -> None:
        """Returns when a new session is written down: it is found from then on, also after a restart.

        Raises:
            Problem: overloaded: it could not be, and its host has ended.
        """
        self._live.store.put(record)
        try:
            await self._live.store.settled(record)
        except BaseException:
            await host.end(Ending(Reason.WORKER_DIED, "its session could not be written down"))
            raise

    def _room_to_wake(self, entry: SessionEntry) -> asyncio.Task[None] | None:
        """Gives a parked session a place; see `Parking.make_room`.

        Raises:
            Problem: overloaded: it stays as it is.
        """
        try:
            return self._parking.make_room(entry.owner, entry.account)
        except Problem as error:
            if error.code != "too_many_sessions":
                raise
            raise overloaded(
                f"the session {entry.id!r} is parked, and all sessions that its key may have at a time are in use"
            ) from None

    def _note_failure(self, entry: SessionEntry, error: BaseException) -> None:
        """Notes that a session could not be brought back: it is tried again, unless it cannot succeed.

        Raises:
            Problem: session_damaged; recovering: its process has ended meanwhile, and another one may succeed.
        """
        live, state, lost, why = self._live, entry.record.state, Phase.DAMAGED, ""
        has_died = isinstance(error, Problem) and isinstance(error.__cause__, HostGone) and not live.stopping
        if isinstance(error, SessionDamagedError):
            lost, why = Phase(str(error.details["state"])), str(error)
        if has_died or (state.phase is Phase.RECOVERING and not live.stopping):
            entry.note_failure(live.clock())
        detail = error.detail if isinstance(error, Problem) else str(error)
        if has_died and entry.attempts >= _MOST_FAILURES:
            why = f"its process has ended {entry.attempts} times while it was brought back: {detail}"
        if why:
            entry.lost = None
            live.change(entry, state=state.then(lost, why))
            log.warning("session %s of %s is %s: %s", entry.id, entry.owner, lost, why, extra=entry.log_facts)
            raise damaged(entry.id, why) from error
        if state.phase is Phase.WAKING:
            live.change(entry, state=entry.lost or state.then(Phase.PARKED))
        elif not live.stopping:
            first = state.why.partition("; attempt ")[0]
            why = f"{first}; attempt {entry.attempts} has failed: {detail}"
            live.change(entry, state=state.then(Phase.RECOVERING, why))
            log.warning("session %s of %s: %s", entry.id, entry.owner, why, extra=entry.log_facts)
        if has_died:
            raise recovering(entry.id, detail, entry.pause(live.clock())) from error

    # ----------------------------------------------------------------------------------------------------- recovering
    def _on_host_ended(self, entry: SessionEntry, host: Host, ended: asyncio.Future[Ending]) -> None:
        reason, why, _ = ended.result()
        is_last = entry.host is host and self._live.by_key.get(entry.record.key) is entry
        if is_last and entry.log is not None and reason in FAULTS:
            entry.leave(host.left)
            self._recover(entry, host, ended.result())
            return
        for running in host.left:
            running.fail(why)
        if is_last:
            self._live.remove(entry, reason, why)
            log.warning("session %s of %s ended: %s", entry.id, entry.owner, why, extra=entry.log_facts)

    def _recover(self, entry: SessionEntry, host: Host, ending: Ending) -> None:
        """Begins to start another host for a session whose host has ended unexpectedly."""
        facts = host.facts()
        entry.host, entry.log_to_run = None, True
        self._live.let_go(entry, host)
        why = ending.text
        self._live.change(entry, state=entry.record.state.then(Phase.RECOVERING, why))
        is_by_request = facts.running and ending.may_be_by_request
        if is_by_request and entry.note_death(facts.written) >= _MOST_DEATHS:
            why = f"its process has died {_MOST_DEATHS} times after record {facts.written} of its log: {why}"
            self._live.change(entry, state=entry.record.state.then(Phase.DAMAGED, why))
            entry.give_up(why)
        log.warning("session %s of %s: %s", entry.id, entry.owner, why, extra=entry.log_facts)
        self.recover_soon(entry)

    def recover_soon(self, entry: SessionEntry) -> None:
        """Has a session recover in the background, unless its last try was a moment ago."""
        is_due = entry.record.state.phase is Phase.RECOVERING and not entry.pause(self._live.clock())
        if is_due and entry.waking is None and not self._live.stopping:
            self._ends.soon(_tried(entry))


async def _tried(entry: SessionEntry) -> None:
    """Wakes a session; if that fails, it is tried again later, and whoever waits learns why."""
    with suppress(Problem, TeletapeError):
        await entry.wake()
