"""The sessions of this server: who owns them, how they begin, go on and end, and their requests' way to a host.

Long because all that changes the state of a session is here, in the one order that holds for all of it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any, Final

from teletape_engine.errors import TeletapeError
from teletape_server.durable.folders import OpenLog
from teletape_server.durable.records import SessionDamagedError
from teletape_server.hosts.protocols import Host, HostGone, Running
from teletape_server.hosts.running import REQUEST_ID
from teletape_server.hosts.watchdog import Ending
from teletape_server.ipc.confinement import free_memory
from teletape_server.ipc.leases import NEVER, Reason, Terms
from teletape_server.problems import Problem, overloaded, shutting_down
from teletape_server.sessions.counted_bodies import Bodies, CountedBody
from teletape_server.sessions.ended_sessions import Boot, Ended, EndedSessions, damaged, recovering, session_ended
from teletape_server.sessions.entry import SessionEntry as SessionEntry
from teletape_server.sessions.lifecycle import LOST, Phase
from teletape_server.sessions.places import Places
from teletape_server.sessions.quotas import Quota
from teletape_server.sessions.record import Durability, Key, SessionLimits, SessionRecord, new_uid
from teletape_server.sessions.runs import IDLE_SECONDS, Runs
from teletape_server.sessions.starts import Starts
from teletape_server.sessions.store import MemoryStore, Store
from teletape_server.sessions.usage import Spent, Usage

#: First character of ids that the server generates; a caller's own ids cannot begin with it.
GENERATED: Final = "_"
_SWEEP_SECONDS: Final = 1.0
_CANCEL_SECONDS: Final = 1.0  # in which cancelled requests may stop when the server ends

_FAULTS: Final = (Reason.WORKER_DIED, Reason.STUCK, Reason.DEADLINE)
_BROUGHT_BACK: Final = (Phase.WAKING, Phase.RECOVERING)
_MOST_DEATHS: Final = 2  # of hosts at one record, after which a session counts as damaged
_MOST_FAILURES: Final = 3  # of hosts that end while they bring a session back, one after the other

log = logging.getLogger("teletape")


class Registry:
    """All sessions, by owner and id.

    Args:
        starts: Starts their hosts.
        quota: What an owner may have.
        boot: The server's run.
        idle, max_age: Seconds; see `leases`.
        run_wait: Seconds that a request without a session may wait for its turn.
        clock: Returns Unix seconds.
        store: Has the records of sessions that there are already, and keeps those of all.
        free_memory: Returns the bytes of memory that processes can still take.

    Attributes:
        stopping: Whether the server is about to end: no session and no request is taken.
        bodies: The request bodies that are under way.
    """

    def __init__(
        self,
        starts: Starts,
        quota: Quota,
        *,
        boot: Boot,
        idle: float,
        max_age: float,
        run_wait: float,
        clock: Callable[[], float],
        store: Store | None = None,
        free_memory: Callable[[], int] = free_memory,
    ) -> None:
        self._starts, self._quota = starts, quota
        self._idle, self._max_age = idle, max_age
        self.clock = clock
        self._store = store or MemoryStore()
        self._live = {record.key: SessionEntry(record, self._start, clock) for record in self._store.all()}
        self._starting: dict[Key, SessionEntry] = {}
        self._runs = Runs(quota, run_wait)
        self._ended = EndedSessions(boot)
        self._ending: set[asyncio.Task[None]] = set()
        self.stopping = False
        self.bodies = Bodies(quota)
        self._places = Places(quota, self._all_with_starting, free_memory)
        self._created = 0
        self._spent: defaultdict[str, Spent] = defaultdict(Spent)  # by owner, of hosts that have ended

    # ------------------------------------------------------------------------------------------------------- creating
    async def create(
        self,
        owner: str,
        id: str | None,
        *,
        device: str,
        memory_limit: int | None,
        dtype: str = "float32",
        dedicated: bool = False,
        durability: Durability = "none",
    ) -> tuple[SessionEntry, bool]:
        """Returns a new session, or the existing one with that id if it is the same; and whether it is new.

        Args:
            owner: Whose session it is.
            id: Its name; None: a generated one.
            device: cpu, gpu:N, gpu or auto.
            memory_limit: Bytes that its arrays may take; None: the server's limit.
            dtype: Of numbers without one that meet no tensor.
            dedicated: Whether a new session on a GPU gets a process of its own.
            durability: What of a new session outlives its host; see `SessionRecord`.

        Raises:
            Problem: id_in_use, unknown_device, too_many_sessions, overloaded, invalid_request, shutting_down.
        """
        self._check_running()
        limit = self._quota.memory(memory_limit)
        key = (owner, id if id is not None else GENERATED + secrets.token_hex(8))
        self._end_if_expired(key)
        entry = self._live.get(key) or self._starting.get(key)
        is_new = entry is None
        if entry is None:
            if durability != "none":
                self._places.admit_lasting(owner)
            room = self._make_room(owner)
            entry = self._new(key, device, SessionLimits(limit, dtype, dedicated), durability=durability)
            entry.room = room
        if entry.record.state.phase is Phase.STARTING:
            await entry.wake()
        if not is_new:
            entry.record.check_is(device, SessionLimits(limit, dtype))
        return entry, is_new

    async def begin_run(self, owner: str, *, device: str) -> SessionEntry:
        """Returns a session that has nothing, for one request, as soon as the request's turn has come.

        Args:
            owner: Whose request it is.
            device: As in `create`.

        Raises:
            Problem: overloaded, unknown_device, shutting_down.
        """
        self._check_running()
        key, limits = (owner, GENERATED + secrets.token_hex(8)), SessionLimits(self._quota.memory(None))
        entry = await self._runs.begin(
            owner,
            device,
            lambda: self._new(key, device, limits, is_run=True),
            lambda waiting: self._end_soon(waiting, Reason.ROOM, "a request without a session needs its place"),
        )
        entry.lease.begin(self.clock())  # also while the body comes
        return entry

    async def end_run(self, entry: SessionEntry) -> None:
        """Ends a request's use of the session of `begin_run`; what it left running ends with the session."""
        entry.lease.end(now := self.clock())
        is_free = self._live.get(entry.record.key) is entry and not entry.running
        keep = is_free and not self.stopping and now < entry.lease.terms.ends - self._max_age / 2
        self._runs.end(entry, keep=keep)
        if not keep:
            await self.end(entry, Reason.DELETED, "it was created for one request")

    def sessions_left(self, owner: str) -> tuple[int, int]:
        """Returns how many sessions an owner may have, and how many more can be created now."""
        return self._places.left(owner)

    def requests_left(self, entry: SessionEntry) -> tuple[int, int]:
        """Returns how many unanswered requests a session may have, and how many more it can take now."""
        return self._quota.waiting, self._quota.requests_left(len(entry.running) + entry.receiving)

    @property
    def disk_limit(self) -> int:
        """Bytes that the files of a session may take."""
        return self._quota.disk_limit

    def usage(self) -> Usage:
        """Returns what is in use now, and what was counted."""
        return Usage.of(
            self._live.values(),
            runs=self._runs.counts,
            begun=self._runs.begun,
            created=self._created,
            ended=self._ended.reasons,
            body_bytes=self.bodies.counts[None],
            spent=self._spent,
        )

    def _check_running(self) -> None:
        if self.stopping:
            raise shutting_down()

    def _make_room(self, owner: str) -> asyncio.Task[None] | None:
        """Gives one more session of an owner a place; returns what it has to wait for, until that is free.

        The session that is idle for longest is parked, if there is no place, or else one that does not outlive its
        host ends for an owner that has fewer.

        Raises:
            Problem: too_many_sessions, overloaded.
        """
        now, room = self.clock(), None
        if (idle := self._places.to_park(owner, now)) is not None:
            room = self._begin_parking(idle, "another session needs its place")
        elif (ending := self._places.to_end(owner, now)) is not None:
            self._end_soon(ending[0], Reason.ROOM, ending[1])
        self._places.admit(owner)
        return room

    async def _reserve_memory(self, entry: SessionEntry) -> Callable[[], None]:
        """Reserves what the next host of a session takes; the sessions that are idle for longest are parked for it.

        Raises:
            Problem: overloaded; nothing is reserved.
        """
        self.measure(entry)
        while True:
            try:
                return self._places.reserve(entry)
            except Problem:
                if (idle := self._places.longest_idle(self.clock())) is None:
                    raise
                await asyncio.wait([self._begin_parking(idle, "another session needs its memory")])

    # ----------------------------------------------------------------------------------------------- starting a host
    def _new(
        self,
        key: Key,
        device: str,
        limits: SessionLimits,
        *,
        is_run: bool = False,
        durability: Durability = "none",
    ) -> SessionEntry:
        """Returns a new session, which begins to live when it is woken."""
        now = self.clock()
        ends = now + self._max_age if durability == "none" else NEVER
        terms = Terms(min(self._idle, IDLE_SECONDS) if is_run else self._idle, ends)
        record = SessionRecord(new_uid(), *key, device, limits, now, terms, durability, is_run=is_run)
        entry = self._starting[key] = SessionEntry(record, self._start, self.clock)
        return entry

    async def _start(self, entry: SessionEntry) -> Host:
        """Starts a host for a session, which then lives.

        Raises:
            Problem: overloaded, unknown_device, internal, shutting_down, session_damaged.
        """
        if entry.parking is not None:
            await asyncio.wait([entry.parking])
        key, state = entry.record.key, entry.record.state
        is_new = state.phase is Phase.STARTING
        if state.phase in LOST:
            raise damaged(entry.id, state.why)
        if state.phase is Phase.PARKED:
            self._check_running()
            entry.room = self._room_to_wake(entry)
            self._change(entry, state=state.then(Phase.WAKING))
        if (pause := entry.pause(self.clock())) and state.phase is Phase.RECOVERING:
            raise recovering(entry.id, state.why, pause)
        opened: OpenLog | None = None
        give_back: Callable[[], None] = _nothing
        try:
            self._check_running()
            if entry.room is not None:
                await asyncio.wait([entry.room])
            give_back = await self._reserve_memory(entry)
            next_host = replace(entry.record, epoch=entry.record.epoch + 1)
            opened = self._store.open_log(next_host)
            host, device = await self._starts.host(entry.record, self.devices_in_use, opened)
        except BaseException as error:
            if opened is not None:
                self._store.close_log(opened)
            if entry.record.state.phase in _BROUGHT_BACK:
                self._note_failure(entry, error)
            if is_new and opened is not None:
                self._store.put(replace(entry.record, state=entry.record.state.end(Reason.WORKER_DIED)))
            raise
        finally:
            give_back()
            entry.room = None
            self._starting.pop(key, None)
        entry.host, entry.log = host, opened
        entry.begin(host.beginning, host.facts().written)
        if is_new:
            self._live[key] = entry
            self._created += not entry.record.is_run
            self._ended.forget(key)
        self._change(entry, device=device, epoch=entry.record.epoch + 1, state=entry.record.state.then(Phase.LIVE))
        host.name, host.log_facts = f"session {entry.id} of {entry.owner}", entry.log_facts
        how = "created" if is_new else "woken" if state.phase is Phase.PARKED else "recovered"
        log.info("%s %s on %s by request %s", host.name, how, device, REQUEST_ID.get(), extra=entry.log_facts)
        entry.lease.work(self.clock())
        self.measure(entry)
        host.ended.add_done_callback(partial(self._on_host_ended, entry, host), context=Context())  # no request's
        if is_new:
            await self._settle(entry)
        return host

    async def _settle(self, entry: SessionEntry) -> None:
        """Returns when a new session is written down: who learns of it finds it after a restart.

        Raises:
            Problem: overloaded: it could not be, and has ended.
        """
        try:
            await self._store.settled(entry.record)
        except Problem as problem:
            self._end_soon(entry, Reason.WORKER_DIED, problem.detail)
            raise

    def _room_to_wake(self, entry: SessionEntry) -> asyncio.Task[None] | None:
        """Gives a parked session a place; see `_make_room`.

        Raises:
            Problem: overloaded: it stays as it is.
        """
        try:
            return self._make_room(entry.owner)
        except Problem as error:
            if error.code != "too_many_sessions":
                raise
            raise overloaded(
                f"the session {entry.id!r} is parked, and all sessions that its key may have at a time are in use"
            ) from None

    def _note_failure(self, entry: SessionEntry, error: BaseException) -> None:
        """Notes that a session could not be brought back: it is tried again, unless it cannot succeed.

        Raises:
            Problem: session_damaged.
        """
        state, lost, why = entry.record.state, Phase.DAMAGED, ""
        if isinstance(error, SessionDamagedError):
            lost, why = Phase(str(error.details["state"])), str(error)
        if isinstance(error, Problem) and isinstance(error.__cause__, HostGone) and not self.stopping:
            entry.note_failure(self.clock())
            if entry.attempts >= _MOST_FAILURES:
                why = f"its process has ended {entry.attempts} times while it was brought back: {error.detail}"
        elif state.phase is Phase.RECOVERING and not self.stopping:
            entry.note_failure(self.clock())
        if why:
            self._change(entry, state=state.then(lost, why))
            raise damaged(entry.id, why) from error
        if state.phase is Phase.WAKING:
            self._change(entry, state=state.then(Phase.PARKED))
        elif not self.stopping:
            first = state.why.partition("; attempt ")[0]
            detail = error.detail if isinstance(error, Problem) else str(error)
            why = f"{first}; attempt {entry.attempts} has failed: {detail}"
            self._change(entry, state=state.then(Phase.RECOVERING, why))
            log.warning("session %s of %s: %s", entry.id, entry.owner, why, extra=entry.log_facts)

    async def park(self, entry: SessionEntry) -> None:
        """Writes down what a session has, and ends its host; the next request wakes it. Does nothing without a host.

        A session of which nothing outlives a host is left as it is.

        Raises:
            Problem: overloaded: the machine has too little memory for what passes through it.
        """
        if entry.parking is None and entry.host is not None and entry.log is not None:
            if not self.stopping and not self._places.can_write_down(entry):
                raise overloaded("the machine has too little memory to write down what the session has on its GPU")
            self._begin_parking(entry, "it was asked for")
        if entry.parking is not None:
            await asyncio.wait([entry.parking])

    def _begin_parking(self, entry: SessionEntry, why: str) -> asyncio.Task[None]:
        """Begins to park a session that has a host and a log: from now on its requests wait for another host."""
        host, entry.host = entry.host, None
        assert host is not None, "the caller looks"
        log.info("session %s of %s is parked: %s", entry.id, entry.owner, why, extra=entry.log_facts)
        self._change(entry, state=entry.record.state.then(Phase.PARKING))
        entry.parking = asyncio.get_running_loop().create_task(self._parked(entry, host))
        return entry.parking

    async def _parked(self, entry: SessionEntry, host: Host) -> None:
        """Parks a session."""
        try:
            await host.recall()
            if self.stopping and host.running:  # what does not end in time has not happened: it is sent again
                await host.end(Ending(Reason.SHUTDOWN, "the server shut down"))
            else:
                await host.suspend()
        finally:
            self._let_go(entry, host)
            entry.parking = None
            if entry.record.state.phase is Phase.PARKING:
                self._change(entry, state=entry.record.state.then(Phase.PARKED))

    def _let_go(self, entry: SessionEntry, host: Host) -> None:
        """Notes that a host has ended, and what it had."""
        self._spent[entry.owner].add(host.facts())
        if entry.log is not None:
            self._store.close_log(entry.log)
            self.measure(entry)
            entry.log = None

    def _recover(self, entry: SessionEntry, host: Host, ending: Ending) -> None:
        """Begins to start another host for a session whose host has ended unexpectedly."""
        written = host.facts().written
        entry.host = None
        self._let_go(entry, host)
        why = ending.text
        self._change(entry, state=entry.record.state.then(Phase.RECOVERING, why))
        if entry.note_death(written) >= _MOST_DEATHS:
            why = f"its process has died {_MOST_DEATHS} times after record {written} of its log: {why}"
            self._change(entry, state=entry.record.state.then(Phase.DAMAGED, why))
        log.warning("session %s of %s: %s", entry.id, entry.owner, why, extra=entry.log_facts)
        self._recover_soon(entry)

    def _recover_soon(self, entry: SessionEntry) -> None:
        """Has a session recover in the background, unless its last try was a moment ago."""
        is_due = entry.record.state.phase is Phase.RECOVERING and not entry.pause(self.clock())
        if is_due and entry.waking is None and not self.stopping:
            self._soon(_tried(entry))

    def _change(self, entry: SessionEntry, **changes: Any) -> None:
        """Changes what is known of a session, here and in the store."""
        entry.record = replace(entry.record, **changes)
        if not entry.record.is_run:
            self._store.put(entry.record)

    # -------------------------------------------------------------------------------------------------------- finding
    def find(self, owner: str, id: str) -> SessionEntry:
        """Returns the owner's live session with that id.

        Raises:
            Problem: unknown_session, or session_ended with the reason and the time.
        """
        entry = self.find_live(owner, id)
        if entry is not None:
            return entry
        raise self._ended.problem((owner, id))

    def find_live(self, owner: str, id: str) -> SessionEntry | None:
        """Returns the owner's live session with that id, or None."""
        self._end_if_expired((owner, id))
        entry = self._live.get((owner, id))
        return None if entry is None or entry.record.is_run else entry

    def all(self) -> list[SessionEntry]:
        """Returns the live sessions of all owners, oldest first; without those of single requests."""
        return [entry for entry in self._live.values() if not entry.record.is_run]

    def _all_with_starting(self) -> list[SessionEntry]:
        return [*self.all(), *(entry for entry in self._starting.values() if not entry.record.is_run)]

    def devices_in_use(self) -> Counter[str]:
        """Returns how many sessions compute on each device, those of single requests too."""
        return Counter(entry.device for entry in self._live.values() if entry.host is not None)

    def ended_reason(self, owner: str, id: str) -> Ended | None:
        """Returns why and when a session ended; None: it lives, or that is not known any more."""
        return None if (owner, id) in self._live else self._ended.get((owner, id))

    def owned_by(self, owner: str) -> list[SessionEntry]:
        """Returns the owner's live sessions, oldest first."""
        return [entry for entry in self.all() if entry.owner == owner]

    # ----------------------------------------------------------------------------------------------------- submitting
    def body_buffer(self, entry: SessionEntry, length: int) -> CountedBody:
        """Returns memory of the session's host for a body, to be submitted or discarded.

        Raises:
            Problem: busy, resource_exhausted, overloaded, session_ended.
        """
        self._quota.queue(len(entry.running) + entry.receiving)
        try:
            return self.bodies.buffer(entry, length)
        except HostGone:
            raise self.ended(entry) from None

    def submit(
        self,
        entry: SessionEntry,
        method: str,
        params: Mapping[str, Any],
        *,
        content_type: str = "",
        body: CountedBody | None = None,
    ) -> Running:
        """Submits a request to the session's host; until its reply the session is not idle.

        Raises:
            Problem: busy, session_ended, or shutting_down.
        """
        waiting = len(entry.running) + entry.receiving - (body is not None)
        try:
            self._check_running()
            self._quota.queue(waiting)
            running = entry.submit(method, params, content_type, body)
        except BaseException as error:
            if body is not None:
                body.discard()
            if isinstance(error, HostGone):
                raise self.ended(entry) from None
            raise
        if body is not None:
            body.submitted(running)
        return running

    def measure(self, entry: SessionEntry) -> None:
        """Notes the bytes that a session takes on a disk; they change while it has a log."""
        if entry.log is not None or not entry.disk_bytes:
            entry.disk_bytes = self._store.nbytes(entry.record)
        if entry.log is not None:
            mine = sum(other.disk_bytes for other in self._live.values() if other.owner == entry.owner)
            entry.log.limit(self._quota.disk(mine - entry.disk_bytes))

    def ended(self, entry: SessionEntry) -> Problem:
        """Returns the problem of a session whose host has ended; another one may go on with it."""
        if self._live.get(entry.record.key) is entry and entry.record.durability != "none":
            state = entry.record.state
            return damaged(entry.id, state.why) if state.phase in LOST else recovering(entry.id)
        ended = self._ended.get(entry.record.key) or Ended(Reason.WORKER_DIED, "its process is gone", self.clock())
        return session_ended(entry.id, ended, is_run=entry.record.is_run)

    # --------------------------------------------------------------------------------------------------------- ending
    async def end(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        """Ends a session; its unanswered requests get session_ended."""
        self._remove(entry, reason, text)
        entry.stop_waking(self.ended(entry))
        if entry.parking is not None:
            await asyncio.wait([entry.parking])
        if entry.host is not None:
            await entry.host.end(Ending(reason, text))
            if entry.log is not None:
                self._store.close_log(entry.log)
                entry.log = None

    async def extend(self, entry: SessionEntry, seconds: float) -> None:
        """Keeps a session for at least `seconds` from now; see `Lease`."""
        entry.lease.extend(self.clock(), seconds)
        self._change(entry, terms=entry.lease.terms)
        await self._store.settled(entry.record)
        if entry.host is not None:
            await entry.host.recall()  # what is lent has the terms as they were

    def _end_if_expired(self, key: Key) -> None:
        entry, now = self._live.get(key), self.clock()
        if entry is None or entry.lease.expired(now) is None:
            return
        entry.note_facts()  # it may have worked since the last look
        if (reason := entry.lease.expired(now)) is Reason.IDLE and entry.record.durability != "none":
            if entry.is_quiet() and self._places.can_write_down(entry):
                self._begin_parking(entry, f"no request came for {entry.lease.terms.idle:g} s")
            return
        if reason is not None:
            idle, age = (f"{seconds:g} s" for seconds in (entry.lease.terms.idle, self._max_age))
            why = f"no request came for {idle}" if reason is Reason.IDLE else f"it reached the maximum age of {age}"
            self._end_soon(entry, reason, why)

    def _end_soon(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        self._remove(entry, reason, text)  # at once: nothing may find it any more
        self._soon(self.end(entry, reason, text))

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _on_host_ended(self, entry: SessionEntry, host: Host, ended: asyncio.Future[Ending]) -> None:
        if entry.host is not host or self._live.get(entry.record.key) is not entry:
            return
        if entry.log is not None and ended.result().reason in _FAULTS:
            self._recover(entry, host, ended.result())
        else:
            self._remove(entry, *ended.result())
            log.warning("session %s of %s ended: %s", entry.id, entry.owner, ended.result().text, extra=entry.log_facts)

    def _remove(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        key = entry.record.key
        if self._live.get(key) is not entry:
            return
        del self._live[key]
        self._ended.reasons[reason] += not entry.record.is_run or reason in _FAULTS
        if entry.host is not None:
            self._spent[entry.owner].add(entry.host.facts())
        self._change(entry, state=entry.record.state.end(reason))
        if reason not in _FAULTS:  # those are warnings
            log.info("session %s of %s ended: %s", entry.id, entry.owner, text, extra=entry.log_facts)
        if entry.record.is_run and reason not in (*_FAULTS, Reason.SHUTDOWN):  # no question for it can come
            return
        self._ended.add(key, Ended(reason, text, self.clock()))

    async def sweep(self) -> None:
        """Looks at all sessions once a second, and ends expired ones, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for key, entry in [*self._live.items()]:
                entry.note_facts()
                self.measure(entry)
                self._end_if_expired(key)
                self._recover_soon(entry)
            if self._places.is_short() and (idle := self._places.longest_idle(self.clock())) is not None:
                self._begin_parking(idle, "the machine has little memory left")

    async def drain(self, grace: float) -> None:
        """Takes no more work, lets running requests finish for `grace` seconds, and ends all.

        What still runs then is cancelled, but in sessions that outlive the server: there it has not happened.
        """
        self._stop()
        await asyncio.gather(*[host.recall() for host in self._hosts()])
        await self._until_answered(grace)
        for entry in self._live.values():
            if entry.host is not None and entry.log is None:
                entry.host.cancel(is_stopping=True)
        await self._until_answered(_CANCEL_SECONDS)
        await self.close()

    def _hosts(self) -> list[Host]:
        return [entry.host for entry in self._live.values() if entry.host is not None]

    async def _until_answered(self, seconds: float) -> None:
        """Waits until all submitted requests are answered and no session is starting, or time is over."""
        entries = (*self._starting.values(), *self._live.values())
        waited: list[asyncio.Future[Any]] = [entry.waking for entry in entries if entry.waking is not None]
        waited += [request.reply for entry in entries for request in entry.running]
        if waited:
            await asyncio.wait(waited, timeout=seconds)

    def _stop(self) -> None:
        """Takes no more work, also none of the sessions that are starting: their callers get shutting_down."""
        self.stopping = True
        for entry in (*self._starting.values(), *self._live.values()):
            entry.stop_waking(shutting_down())
        self._runs.stop()

    async def close(self) -> None:
        """Parks the sessions that outlive the server, and ends the others: it shuts down."""
        self._stop()
        lasting = [entry for entry in self._live.values() if entry.record.durability != "none"]
        ends = [
            self.end(entry, Reason.SHUTDOWN, "the server shut down")
            for entry in [*self._live.values()]
            if entry not in lasting
        ]
        await asyncio.gather(*map(self.park, lasting), *ends, *self._ending)
        self._store.close()


def _nothing() -> None:
    """Does nothing."""


async def _tried(entry: SessionEntry) -> None:
    """Wakes a session; if that fails, it is tried again later, and whoever waits learns why."""
    with suppress(Problem, TeletapeError):
        await entry.wake()
