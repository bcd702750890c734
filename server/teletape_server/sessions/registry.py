"""The sessions of this server, for its requests: creates, finds and ends them, and passes requests to their hosts."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from teletape_server.budgets.budgets import Budgets
from teletape_server.hosts.protocols import HostGone, Running
from teletape_server.ipc.confinement import free_memory
from teletape_server.ipc.leases import NEVER, Reason, Terms
from teletape_server.problems import Problem, shutting_down
from teletape_server.sessions.counted_bodies import Bodies, CountedBody
from teletape_server.sessions.ended_sessions import Boot
from teletape_server.sessions.entry import SessionEntry as SessionEntry
from teletape_server.sessions.hosting.backlog import Backlog
from teletape_server.sessions.hosting.ends import Ends
from teletape_server.sessions.hosting.meter import present
from teletape_server.sessions.hosting.parking import Parking
from teletape_server.sessions.hosting.places import Memory, Places
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.hosting.waking import Waking
from teletape_server.sessions.lifecycle import Phase
from teletape_server.sessions.live_sessions import LiveSessions
from teletape_server.sessions.quotas import Quota
from teletape_server.sessions.record import Durability, Key, SessionLimits, SessionRecord, new_uid
from teletape_server.sessions.runs import IDLE_SECONDS, Runs
from teletape_server.sessions.store import MemoryStore, Store
from teletape_server.sessions.usage import Usage

#: First character of ids that the server generates; a caller's own ids cannot begin with it.
GENERATED: Final = "_"
_SWEEP_SECONDS: Final = 1.0
_LOGS_SECONDS: Final = 2.0  # that logs may be run for when the server ends, after the grace
_CANCEL_SECONDS: Final = 1.0  # in which cancelled requests may stop when the server ends


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
        budgets: What accounts may use; None: as much as there is.
        free_memory: Returns the bytes of memory that processes can still take.

    Attributes:
        clock: See above.
        live: The sessions that there are.
        parking: Parks them.
        backlog: Runs the logs that have been left.
        ends: Ends them.
        budgets: See above.
        bodies: The request bodies that are under way.
        runs: The requests without a session.
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
        budgets: Budgets | None = None,
        free_memory: Callable[[], int] = free_memory,
    ) -> None:
        self._quota = quota
        self._idle, self._max_age, self.clock = idle, max_age, clock
        self.budgets = budgets = budgets or Budgets(clock=clock)
        self.live = live = LiveSessions(store or MemoryStore(), quota, boot, clock, budgets)
        budgets.present = lambda: present([*live.by_key.values(), *live.starting.values()])
        budgets.present_of = lambda names: present(live.of_accounts(names))
        self._places = places = Places(quota, live.with_starting, free_memory, budgets)
        budgets.frees = lambda account, parks: places.frees(account, clock(), has_parking=parks)
        self.ends = Ends(live)
        self.backlog = Backlog(live, starts, self._places)
        self.parking = Parking(live, self._places, self.ends, self.backlog)
        self._waking = Waking(live, starts, self.parking, self.ends)
        for record in live.store.all():
            entry = live.by_key[record.key] = SessionEntry(record, self._waking.start, clock)
            entry.log_to_run = live.store.has_log_to_run(record)
        self.runs = Runs(quota, run_wait)
        self.bodies = Bodies(quota, places.admit_body)
        self._has_closed = False

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
        account: str = "",
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
            account: Which a new session counts for; empty: the owner's.

        Raises:
            Problem: id_in_use, unknown_device, too_many_sessions, overloaded, invalid_request, shutting_down,
                over_budget, resource_exhausted.
        """
        self.live.check_running()
        limit = self._quota.memory(memory_limit)
        key = (owner, id if id is not None else GENERATED + secrets.token_hex(8))
        self._end_if_expired(key)
        entry = self.live.by_key.get(key) or self.live.starting.get(key)
        is_new = entry is None
        if entry is None:
            if durability != "none":
                self._places.admit_lasting(owner)
            room = self.parking.make_room(owner, account or owner)
            limits = SessionLimits(limit, dtype, dedicated)
            entry = self._new(key, device, limits, account=account, durability=durability)
            entry.room = room
        if entry.record.state.phase is Phase.STARTING:
            await entry.wake()
        if not is_new:
            entry.record.check_is(device, SessionLimits(limit, dtype))
        return entry, is_new

    async def begin_run(
        self, owner: str, account: str, *, device: str, turn: asyncio.Future[Any] | None = None
    ) -> SessionEntry:
        """Returns a session that has nothing, for one request, as soon as the request's turn has come.

        Args:
            owner: Whose request it is.
            account: Which it counts for.
            device: As in `create`.
            turn: See `Runs.begin`.

        Raises:
            Problem: overloaded, unknown_device, shutting_down, over_budget, resource_exhausted.
        """
        self.live.check_running()
        self.budgets.check_work(account)
        self.budgets.check_memory(account)
        key, limits = (owner, GENERATED + secrets.token_hex(8)), SessionLimits(self._quota.memory(None))
        entry = await self.runs.begin(
            owner,
            account,
            device,
            lambda: self._new(key, device, limits, account=account, is_run=True),
            lambda waiting: self.ends.end_soon(waiting, Reason.ROOM, "a request without a session needs its place"),
            turn,
        )
        entry.lease.begin(self.clock())  # also while the body comes
        return entry

    def lend_run(self, entry: SessionEntry) -> bool:
        """Returns whether a connection may be lent to a session of `begin_run`, which then has its use until `end_run`.

        Its place is needed for that, and given back as soon as another request waits for one.
        """
        if self.live.stopping or not self.runs.lend(entry):
            return False
        entry.lease.begin(self.clock())
        return True

    def note_run(self) -> None:
        """Notes that a request has begun that the process of a session of `lend_run` has read."""
        self.runs.begun += 1

    def end_run_soon(self, entry: SessionEntry) -> None:
        """Ends the use of a session in the background; see `end_run`."""
        self.ends.soon(self.end_run(entry))

    async def end_run(self, entry: SessionEntry) -> None:
        """Ends a request's use of the session of `begin_run`; what it left running ends with the session."""
        entry.lease.end(now := self.clock())
        is_free = self.live.by_key.get(entry.record.key) is entry and not entry.running
        keep = is_free and not self.live.stopping and now < entry.lease.terms.ends - self._max_age / 2
        self.runs.end(entry, keep=keep)
        if not keep:
            await self.ends.end(entry, Reason.DELETED, "it was created for one request")

    def sessions_left(self, owner: str, account: str) -> tuple[int, int]:
        """Returns how many sessions an owner may have with an account, and how many more can be created now."""
        return self._places.left(owner, account)

    def requests_left(self, entry: SessionEntry) -> tuple[int, int]:
        """Returns how many unanswered requests a session may have, and how many more it can take now."""
        return self._quota.waiting, self._quota.requests_left(len(entry.running) + entry.receiving)

    def memory(self) -> Memory:
        """Returns what is left of the machine's memory, and who has it."""
        return self._places.memory()

    @property
    def disk_limit(self) -> int:
        """Bytes that the files of a session may take."""
        return self._quota.disk_limit

    def usage(self) -> Usage:
        """Returns what is in use now, and what was counted."""
        return self.live.usage(runs=self.runs.counts, begun=self.runs.begun, body_bytes=self.bodies.counts[None])

    def _new(
        self,
        key: Key,
        device: str,
        limits: SessionLimits,
        *,
        account: str = "",
        is_run: bool = False,
        durability: Durability = "none",
    ) -> SessionEntry:
        """Returns a new session, which begins to live when it is woken."""
        now = self.clock()
        ends = now + self._max_age if durability == "none" else NEVER
        terms = Terms(min(self._idle, IDLE_SECONDS) if is_run else self._idle, ends)
        own_account = "" if account == key[0] else account
        record = SessionRecord(
            new_uid(), *key, device, limits, now, terms, durability, is_run=is_run, own_account=own_account
        )
        entry = self.live.starting[key] = SessionEntry(record, self._waking.start, self.clock)
        return entry

    # -------------------------------------------------------------------------------------------------------- finding
    def find(self, owner: str, id: str) -> SessionEntry:
        """Returns the owner's live session with that id.

        Raises:
            Problem: unknown_session, or session_ended with the reason and the time.
        """
        entry = self.find_live(owner, id)
        if entry is not None:
            return entry
        raise self.live.ended.problem((owner, id))

    def find_live(self, owner: str, id: str) -> SessionEntry | None:
        """Returns the owner's live session with that id, or None."""
        self._end_if_expired((owner, id))
        entry = self.live.by_key.get((owner, id))
        return None if entry is None or entry.record.is_run else entry

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
            raise self.live.gone(entry) from None
        except Problem:
            self.parking.relieve(length)  # for the next try
            raise

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
            self.live.check_running()
            self._quota.queue(waiting)
            running = entry.submit(method, params, content_type, body)
        except BaseException as error:
            if body is not None:
                body.discard()
            if isinstance(error, HostGone):
                raise self.live.gone(entry) from None
            raise
        if body is not None:
            body.submitted(running)
        return running

    # --------------------------------------------------------------------------------------------------------- ending
    async def extend(self, entry: SessionEntry, seconds: float) -> None:
        """Keeps a session for at least `seconds` from now; see `Lease`."""
        entry.lease.extend(self.clock(), seconds)
        self.live.change(entry, terms=entry.lease.terms)
        await self.live.store.settled(entry.record)
        if entry.host is not None:
            await entry.host.recall()  # what is lent has the terms as they were

    def _end_if_expired(self, key: Key) -> None:
        entry, now = self.live.by_key.get(key), self.clock()
        if entry is None or entry.lease.expired(now) is None:
            return
        entry.note_facts()  # it may have worked since the last look
        if (reason := entry.lease.expired(now)) is Reason.IDLE and entry.lasts:
            self.parking.park_idle(entry)
        elif reason is not None:
            idle, age = (f"{seconds:g} s" for seconds in (entry.lease.terms.idle, self._max_age))
            why = f"no request came for {idle}" if reason is Reason.IDLE else f"it reached the maximum age of {age}"
            self.ends.end_soon(entry, reason, why)

    async def sweep(self) -> None:
        """Looks at all sessions once a second, and ends expired ones, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            self.live.measure(*self.live.by_key.values())
            for key, entry in [*self.live.by_key.items()]:
                facts = entry.note_facts()
                if entry.host is not None:
                    self.live.meter.note(entry, facts)
                self._end_if_expired(key)
                self._waking.recover_soon(entry)
            self._look_at_budgets()
            self.parking.relieve()
            self.ends.soon(self.runs.recall(before=self.clock() + self._max_age / 2))

    def _look_at_budgets(self) -> None:
        """Reclaims connections of accounts of which something is refused or warned of now that was not before."""
        changed = self.budgets.look()
        for entry in self.live.by_key.values() if changed else ():
            if entry.account in changed and entry.host is not None and entry.host.lent:
                self.ends.soon(entry.host.recall())

    async def drain(self, grace: float) -> None:
        """Takes no more work, lets running requests finish for `grace` seconds, and ends all.

        What still runs then is cancelled, but in sessions that outlive the server: there it has not happened.
        """
        self._stop()
        until = time.monotonic() + grace
        await asyncio.gather(*[entry.host.recall() for entry in self.live.by_key.values() if entry.host is not None])
        await self._until_answered(grace)
        for entry in self.live.by_key.values():
            if entry.host is not None and entry.log is None:
                entry.host.cancel(is_stopping=True)
        await self._until_answered(_CANCEL_SECONDS)
        await self.close(max(until - time.monotonic(), 0.0))

    async def _until_answered(self, seconds: float) -> None:
        """Waits until all submitted requests are answered and no session is starting, or time is over."""
        entries = (*self.live.starting.values(), *self.live.by_key.values())
        waited: list[asyncio.Future[Any]] = [entry.waking for entry in entries if entry.waking is not None]
        waited += [request.reply for entry in entries for request in entry.running]
        if waited:
            await asyncio.wait(waited, timeout=seconds)

    def _stop(self) -> None:
        """Takes no more work, also none of the sessions that are starting: their callers get shutting_down."""
        self.live.stopping = True
        for entry in (*self.live.starting.values(), *self.live.by_key.values()):
            entry.stop_waking(shutting_down())
        self.runs.stop()

    async def close(self, seconds: float = 0.0) -> None:
        """Parks the sessions that outlive the server, and ends the others: it shuts down, once.

        Args:
            seconds: That logs may be run for, beyond two.
        """
        if self._has_closed:
            return
        self._has_closed = True
        self._stop()
        lasting = [entry for entry in self.live.by_key.values() if entry.lasts]
        ends = [
            self.ends.end(entry, Reason.SHUTDOWN, "the server shut down")
            for entry in [*self.live.by_key.values()]
            if entry not in lasting
        ]
        parked = [self.parking.park(entry) for entry in lasting if not entry.log_to_run]  # the others are the backlog's
        await asyncio.gather(*parked, *ends, *self.ends.tasks)
        await self.backlog.finish(seconds + _LOGS_SECONDS)
        self.live.store.close()
