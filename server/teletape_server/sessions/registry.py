"""The sessions of this server: who owns them, where they run, when they end, and why ended sessions ended.

Long because creating, finding and ending go by the same counts.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from teletape_engine.arrays.cpu import DeviceFacts
from teletape_server.hosts.placement import is_of, placed
from teletape_server.hosts.protocols import HostGone, Hosts, Running, Start
from teletape_server.hosts.running import REQUEST_ID
from teletape_server.hosts.watchdog import Ending
from teletape_server.ipc.leases import Lease, Reason, Terms
from teletape_server.problems import Problem, overloaded, shutting_down
from teletape_server.sessions.counted_bodies import Admission, CountedBody
from teletape_server.sessions.ended_sessions import Ended, session_ended
from teletape_server.sessions.entry import Key as Key
from teletape_server.sessions.entry import SessionEntry as SessionEntry
from teletape_server.sessions.quotas import Quota, RunQueue
from teletape_server.sessions.usage import Usage
from teletape_wire import timestamp

#: First character of ids that the server generates; a caller's own ids cannot begin with it.
GENERATED: Final = "_"
_MAX_ENDED: Final = 4096  # ended sessions whose reason is still reported
_SWEEP_SECONDS: Final = 1.0
_CANCEL_SECONDS: Final = 1.0  # in which cancelled requests may stop when the server ends

_FAULTS: Final = (Reason.WORKER_DIED, Reason.STUCK, Reason.DEADLINE)

log = logging.getLogger("teletape")


class Boot(NamedTuple):
    """One run of the server, from its start to its end: no session outlives it.

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


class Registry:
    """All sessions, by owner and id.

    Args:
        hosts: Starts their hosts.
        quota: What an owner may have.
        boot: The server's run.
        idle, max_age: Seconds; see `leases`.
        max_body: Bytes of the largest request.
        max_iterations: Iterations that the loops of one command may take.
        time_limit: Seconds that a request may compute.
        run_wait: Seconds that a request without a session may wait for its turn.
        idempotency_window: Seconds for which a session knows an Idempotency-Key.
        clock: Returns Unix seconds.

    Attributes:
        stopping: Whether the server is about to end: no session and no request is taken.
    """

    def __init__(
        self,
        hosts: Hosts,
        quota: Quota,
        *,
        boot: Boot,
        idle: float,
        max_age: float,
        max_body: int,
        max_iterations: int,
        time_limit: float,
        run_wait: float,
        idempotency_window: float,
        clock: Callable[[], float],
    ) -> None:
        self._hosts = hosts
        self._quota = quota
        self._boot = boot
        self._idle, self._max_age, self._max_body = idle, max_age, max_body
        self._max_iterations, self._time_limit = max_iterations, time_limit
        self._run_wait, self._idempotency_window = run_wait, idempotency_window
        self.clock = clock
        self._live: dict[Key, SessionEntry] = {}
        self._starting: dict[Key, asyncio.Task[SessionEntry]] = {}
        self._runs: RunQueue[asyncio.Future[None]] = RunQueue(quota)
        self._of_runs: set[Key] = set()  # sessions that live for one request: no listing shows and no quota counts them
        self._ended: OrderedDict[Key, Ended] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()
        self.stopping = False
        self._body_bytes: Counter[str | None] = Counter()
        self._created = self._handed_frames = 0
        self._reasons: Counter[Reason] = Counter()

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
    ) -> tuple[SessionEntry, bool]:
        """Returns a new session, or the existing one with that id if it is the same; and whether it is new.

        Args:
            owner: Whose session it is.
            id: Its name; None: a generated one.
            device: cpu, gpu:N, gpu or auto.
            memory_limit: Bytes that its arrays may take; None: the server's limit.
            dtype: Of numbers without one that meet no tensor.
            dedicated: Whether a new session on a GPU gets a process of its own.

        Raises:
            Problem: id_in_use, unknown_device, too_many_sessions, overloaded, invalid_request, shutting_down.
        """
        self._check_running()
        limit = self._quota.memory(memory_limit)
        key = (owner, id if id is not None else GENERATED + secrets.token_hex(8))
        self._end_if_expired(key)
        entry, task = self._live.get(key), self._starting.get(key)
        is_new = entry is None and task is None
        if is_new:
            self._make_room(owner)
            self._quota.admit(*self._counts(owner))
            starting = self._start(key, device, limit, dtype, dedicated)
            task = self._starting[key] = asyncio.get_running_loop().create_task(starting)
        if task is not None:
            await asyncio.wait([task])  # a caller that disconnects does not end the start
            if task.cancelled():
                raise shutting_down()
            entry = task.result()
        assert entry is not None
        same = is_of(entry.host.device, device) and (entry.memory_limit, entry.dtype) == (limit, dtype)
        if not is_new and not same:
            raise Problem(
                "id_in_use",
                f"the session {entry.id!r} exists with device {entry.host.device}, memory_limit {entry.memory_limit} "
                f"and dtype {entry.dtype}; the request has {device}, {limit} and {dtype}. End it first, or choose "
                "another id",
            )
        return entry, is_new

    async def create_for_run(self, owner: str, *, device: str) -> SessionEntry:
        """Returns a new session for one request, as soon as the request's turn has come.

        Args:
            owner: Whose request it is.
            device: As in `create`.

        Raises:
            Problem: overloaded, unknown_device, shutting_down.
        """
        await self._turn(owner)
        key = (owner, GENERATED + secrets.token_hex(8))
        self._of_runs.add(key)
        try:
            self._check_running()
            starting = self._start(key, device, self._quota.memory(None), "float32", dedicated=False)
            task = self._starting[key] = asyncio.get_running_loop().create_task(starting)
            await asyncio.wait([task])
            if task.cancelled():
                raise shutting_down()
            return task.result()
        except BaseException:
            if key in self._starting:
                self._starting[key].cancel()
            self._end_run(key)
            raise

    async def _turn(self, owner: str) -> None:
        """Waits until one more request of an owner may run without a session."""
        self._check_running()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._runs.enter(owner, turn):
            return
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._run_wait)
        except TimeoutError:
            if not turn.done():
                raise overloaded(
                    f"the request has waited {self._run_wait:g} s for one of the {self._quota.runs} places of POST "
                    "/v1/run: it changed nothing"
                ) from None
        except BaseException:
            if turn.done() and turn.exception() is None:
                self._begin_runs(self._runs.leave(owner))
            raise
        finally:
            self._runs.give_up(turn)

    def _end_run(self, key: Key) -> None:
        if key in self._of_runs:
            self._of_runs.remove(key)
            self._begin_runs(self._runs.leave(key[0]))

    def _begin_runs(self, turns: Iterable[asyncio.Future[None]]) -> None:
        for turn in turns:
            turn.set_result(None)

    def _make_room(self, owner: str) -> None:
        """Ends the session that is idle for longest if an owner has a better right to its place."""
        mine, all_sessions, owners = self._counts(owner)
        if mine >= self._quota.sessions_per_key or self._quota.sessions_left(mine, all_sessions, owners):
            return
        now, sessions = self.clock(), Counter(entry.owner for entry in self.all())
        idle = {entry: entry.lease.idle(now) for entry in self.all() if entry.owner != owner}
        entries = [entry for entry in idle if self._quota.makes_room(mine, idle[entry], sessions[entry.owner])]
        longest = max(entries, key=lambda entry: idle[entry], default=None)
        if longest is None:
            return
        if self._quota.sessions_left(mine, all_sessions - 1, owners - (sessions[longest.owner] == 1)):
            text = f"it was idle for {idle[longest]:.0f} s, longer than others, and another key's session got its place"
            self._end_soon(longest, Reason.ROOM, text)

    def _counts(self, owner: str) -> tuple[int, int, int]:
        """Returns the sessions of an owner, those of all, and the owners that have one."""
        sessions = Counter(other for other, id in (*self._live, *self._starting) if (other, id) not in self._of_runs)
        return sessions[owner], sessions.total(), len(sessions)

    def sessions_left(self, owner: str) -> tuple[int, int]:
        """Returns how many sessions an owner may have, and how many more can be created now."""
        return self._quota.sessions_per_key, self._quota.sessions_left(*self._counts(owner))

    def requests_left(self, entry: SessionEntry) -> tuple[int, int]:
        """Returns how many unanswered requests a session may have, and how many more it can take now."""
        return self._quota.waiting, self._quota.requests_left(len(entry.host.running) + entry.receiving)

    def usage(self) -> Usage:
        """Returns what is in use now, and what was counted."""
        return Usage.of(
            self._live.values(),
            sessions=len(self.all()),
            runs=(self._runs.running, self._runs.waiting),
            created=self._created,
            ended=self._reasons,
            body_bytes=self._body_bytes[None],
            handed_frames=self._handed_frames,
        )

    def _check_running(self) -> None:
        if self.stopping:
            raise shutting_down()

    def lack(self) -> str:
        """Returns why no session could start now; empty: one could."""
        return self._hosts.lack()

    async def devices(self) -> list[DeviceFacts]:
        """Returns what is known of the machine's devices.

        Raises:
            Problem: overloaded.
        """
        try:
            return await self._hosts.devices()
        except OSError as error:  # too many files or processes
            raise overloaded(f"the devices could not be read ({error})") from error

    async def _start(self, key: Key, device: str, limit: int, dtype: str, dedicated: bool) -> SessionEntry:
        try:
            if device != "cpu":
                device = placed(device, await self.devices(), self.devices_in_use())
            start = Start(
                device,
                limit,
                self._max_body,
                max_iterations=self._max_iterations,
                time_limit=self._time_limit,
                idempotency_window=self._idempotency_window,
                dedicated=dedicated,
            )
            host = await self._hosts.start(start)
        except OSError as error:  # too many files or processes; or the forkserver has died of that, and starts again
            raise overloaded(f"the session's process could not be started ({error})") from error
        except HostGone as error:
            raise Problem("internal", f"the session's process could not be started: {error}") from error
        finally:
            del self._starting[key]
        now = self.clock()
        lease = Lease(Terms(self._idle, now + self._max_age), now)
        entry = SessionEntry(key, host, lease, memory_limit=limit, dtype=dtype, now=now)
        self._live[key] = entry
        self._created += 1
        host.name, host.log_facts = f"session {entry.id} of {entry.owner}", entry.log_facts
        log.info("%s created on %s by request %s", host.name, device, REQUEST_ID.get(), extra=entry.log_facts)
        self._ended.pop(key, None)
        host.handed.attach(lease, self.clock)
        host.ended.add_done_callback(lambda ended: self._on_host_ended(entry, ended.result()))
        host.ended.add_done_callback(lambda _: host.handed.end())  # their callers learn why it ended
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
        ended = self._ended.get((owner, id))
        if ended is None:
            raise Problem(
                "unknown_session",
                f"there is no session {id!r} on this server, which started at {self._boot.started}; sessions of an "
                "earlier run are lost. GET /v1/sessions lists your sessions, POST /v1/sessions creates one",
                boot_id=self._boot.id,
                started=self._boot.started,
            )
        raise session_ended(id, ended)

    def find_live(self, owner: str, id: str) -> SessionEntry | None:
        """Returns the owner's live session with that id, or None."""
        self._end_if_expired((owner, id))
        return self._live.get((owner, id))

    def all(self) -> list[SessionEntry]:
        """Returns the live sessions of all owners, oldest first; without those of single requests."""
        return [entry for key, entry in self._live.items() if key not in self._of_runs]

    def devices_in_use(self) -> Counter[str]:
        """Returns how many sessions compute on each device, those of single requests too."""
        return Counter(entry.host.device for entry in self._live.values())

    def ended_reason(self, owner: str, id: str) -> Ended | None:
        """Returns why and when a session ended; None: it lives, or that is not known any more."""
        return None if (owner, id) in self._live else self._ended.get((owner, id))

    def owned_by(self, owner: str) -> list[SessionEntry]:
        """Returns the owner's live sessions, oldest first."""
        return [entry for entry in self.all() if entry.owner == owner]

    # ----------------------------------------------------------------------------------------------------- submitting
    def admit_body(self, owner: str, length: int) -> Admission:
        """Counts a body of an owner before any of it is received; closing the admission ends that.

        Raises:
            Problem: busy, resource_exhausted.
        """
        self._quota.body(length, self._body_bytes[owner], self._body_bytes[None])
        return Admission(self._body_bytes, owner, length)

    def body_buffer(self, entry: SessionEntry, length: int) -> CountedBody:
        """Returns memory of the session's host for a body, to be submitted or discarded.

        Raises:
            Problem: busy, resource_exhausted, overloaded, session_ended.
        """
        self._quota.queue(len(entry.host.running) + entry.receiving)
        self._quota.body(length, self._body_bytes[entry.owner], self._body_bytes[None])
        try:
            buffer = entry.host.body_buffer(length)
        except HostGone:
            raise self.ended(entry) from None
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise overloaded(f"there is no file descriptor left for the body ({error})") from error
            raise Problem("resource_exhausted", f"too little memory for a body of {length} bytes: {error}") from error
        return CountedBody(entry, buffer, Admission(self._body_bytes, entry.owner, length))

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
        waiting = len(entry.host.running) + entry.receiving - (body is not None)
        try:
            self._check_running()
            self._quota.queue(waiting)
            now = self.clock()
            terms = entry.lease.terms
            lease = {"now": now, "terms": (terms.idle, terms.ends, terms.until), "alone": entry.dtype}
            buffer = None if body is None else body.buffer
            running = entry.host.submit(method, {**params, **lease}, content_type=content_type, body=buffer)
        except BaseException as error:
            if body is not None:
                body.discard()
            if isinstance(error, HostGone):
                raise self.ended(entry) from None
            raise
        if body is not None:
            body.submitted(running)
        entry.lease.begin(now)

        def on_reply(reply: asyncio.Future[Any]) -> None:
            entry.lease.end(self.clock())
            if not reply.cancelled() and reply.exception() is None:
                entry.note_reply(reply.result(), self.clock())

        running.reply.add_done_callback(on_reply)
        return running

    def ended(self, entry: SessionEntry) -> Problem:
        """Returns the problem of a session whose host has ended."""
        key = (entry.owner, entry.id)
        ended = self._ended.get(key) or Ended(Reason.WORKER_DIED, "its process is gone", self.clock())
        return session_ended(entry.id, ended)

    # --------------------------------------------------------------------------------------------------------- ending
    async def end(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        """Ends a session; its unanswered requests get session_ended."""
        self._remove(entry, reason, text)
        await entry.host.end(Ending(reason, text))

    def _end_if_expired(self, key: Key) -> None:
        entry = self._live.get(key)
        if entry is None:
            return
        reason = entry.lease.expired(self.clock())
        if reason is not None:
            text = (
                f"no request came for {entry.lease.terms.idle:g} s"
                if reason is Reason.IDLE
                else f"it reached the maximum age of {self._max_age:g} s"
            )
            self._end_soon(entry, reason, text)

    def _end_soon(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        self._remove(entry, reason, text)
        task = asyncio.get_running_loop().create_task(entry.host.end(Ending(reason, text)))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _on_host_ended(self, entry: SessionEntry, ending: Ending) -> None:
        if self._live.get((entry.owner, entry.id)) is entry:
            self._remove(entry, *ending)
            log.warning("session %s of %s ended: %s", entry.id, entry.owner, ending.text, extra=entry.log_facts)

    def _remove(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        key = (entry.owner, entry.id)
        if self._live.get(key) is not entry:
            return
        del self._live[key]
        is_run = key in self._of_runs
        self._end_run(key)
        self._reasons[reason] += 1
        self._handed_frames += entry.host.handed.frames
        if reason not in _FAULTS:  # those are warnings
            log.info("session %s of %s ended: %s", entry.id, entry.owner, text, extra=entry.log_facts)
        if is_run and reason is Reason.DELETED:  # its caller has the answer
            return
        self._ended[key] = Ended(reason, text, self.clock())
        while len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)

    async def sweep(self) -> None:
        """Ends expired sessions once a second, until it is cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for key in [*self._live]:
                self._end_if_expired(key)

    async def drain(self, grace: float) -> None:
        """Takes no more work, lets running requests finish for `grace` seconds, cancels the others, and ends all."""
        self._stop()
        await asyncio.gather(*[entry.host.handed.recall() for entry in self._live.values()])
        await self._until_answered(grace)
        for entry in self._live.values():
            entry.host.cancel(is_stopping=True)
        await self._until_answered(_CANCEL_SECONDS)
        await self.close()

    async def _until_answered(self, seconds: float) -> None:
        """Waits until all submitted requests are answered and no session is starting, or time is over."""
        waited: list[asyncio.Future[Any]] = [*self._starting.values()]
        waited += [request.reply for entry in self._live.values() for request in entry.host.running]
        if waited:
            await asyncio.wait(waited, timeout=seconds)

    def _stop(self) -> None:
        """Takes no more work, also none of the sessions that are starting: their callers get shutting_down."""
        self.stopping = True
        for task in self._starting.values():
            task.cancel()
        for turn in self._runs.give_up_all():
            turn.set_exception(shutting_down())

    async def close(self) -> None:
        """Ends all sessions: the server shuts down."""
        self._stop()
        ends = [self.end(entry, Reason.SHUTDOWN, "the server shut down") for entry in [*self._live.values()]]
        await asyncio.gather(*ends, *self._ending)
