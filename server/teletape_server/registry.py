"""The sessions of this server: who owns which, where they run, how long they live, and why those that ended did."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from teletape_server.hosts import Host, HostGone, Hosts, Room, Running, Start
from teletape_server.leases import Lease, Reason, Terms
from teletape_server.problems import Problem
from teletape_server.quotas import Quota
from teletape_wire import timestamp

#: How ids begin that the server makes; a caller's own cannot.
GENERATED: Final = "_"
_REMEMBERED: Final = 4096  # ended sessions whose reason is still told
_SWEEP_SECONDS: Final = 1.0

log = logging.getLogger("teletape")


class Ended(NamedTuple):
    """A session that is gone.

    Attributes:
        reason: The kind of end.
        how: In words.
        at: Unix seconds.
    """

    reason: Reason
    how: str
    at: float


class Session:
    """One live session, as the front knows it.

    Attributes:
        id, owner: Its name, and whose it is.
        host: Where it runs.
        lease: How long it lives.
        memory_limit, created_at, bytes_in_use: Bytes; Unix seconds; bytes as of the last answer.
        batches: Frames that run, by what identifies them, for retries to join.
    """

    def __init__(self, key: tuple[str, str], host: Host, lease: Lease, *, memory_limit: int, now: float) -> None:
        self.owner, self.id = key
        self.host = host
        self.lease = lease
        self.memory_limit = memory_limit
        self.created_at = now
        self.bytes_in_use = 0
        self.batches: dict[Any, Running] = {}


class Sessions:
    """All sessions, by owner and id.

    Args:
        hosts: Makes their hosts.
        quota: What an owner may have.
        idle, max_age: Seconds; see `leases`.
        max_body: Bytes of the largest request.
        max_iterations: Iterations that the loops of one command may take.
        time_limit: Seconds that a request may compute.
        clock: Unix seconds now.
    """

    def __init__(
        self,
        hosts: Hosts,
        quota: Quota,
        *,
        idle: float,
        max_age: float,
        max_body: int,
        max_iterations: int,
        time_limit: float,
        clock: Callable[[], float],
    ) -> None:
        self._hosts = hosts
        self._quota = quota
        self._idle, self._max_age, self._max_body = idle, max_age, max_body
        self._max_iterations, self._time_limit = max_iterations, time_limit
        self.clock = clock
        self._live: dict[tuple[str, str], Session] = {}
        self._starting: dict[tuple[str, str], asyncio.Task[Session]] = {}
        self._ended: OrderedDict[tuple[str, str], Ended] = OrderedDict()
        self._endings: set[asyncio.Task[None]] = set()

    # ------------------------------------------------------------------------------------------------------- creating
    async def create(
        self, owner: str, name: str | None, *, device: str, memory_limit: int | None
    ) -> tuple[Session, bool]:
        """A new session, or the one of that name if it is the same; and whether it is new.

        Raises:
            Problem: id_in_use (another device or limit), unknown_device, too_many_sessions, invalid_request.
        """
        limit = self._quota.memory(memory_limit)
        key = (owner, name if name is not None else GENERATED + secrets.token_hex(8))
        self._expire(key)
        session, task = self._live.get(key), self._starting.get(key)
        new = session is None and task is None
        if new:
            mine = sum(known[0] == owner for known in (*self._live, *self._starting))
            self._quota.admit(mine, len(self._live) + len(self._starting))
            task = self._starting[key] = asyncio.get_running_loop().create_task(self._start(key, device, limit))
        if task is not None:
            session = await asyncio.shield(task)
        assert session is not None
        if not new and (session.host.device, session.memory_limit) != (device, limit):
            raise Problem(
                "id_in_use",
                f"the session {session.id!r} exists on {session.host.device} with {session.memory_limit} bytes; asked "
                f"was {device} with {limit}. End it first, or choose another id",
            )
        return session, new

    async def _check(self, device: str) -> None:
        if device != "cpu":
            found = await self._hosts.devices()
            if device not in found:
                raise Problem(
                    "unknown_device",
                    f"device {device!r} is not there: this server has {', '.join(found)}",
                    devices=found,
                )

    async def _start(self, key: tuple[str, str], device: str, limit: int) -> Session:
        try:
            await self._check(device)
            host = await self._hosts.start(
                Start(device, limit, self._max_body, max_iterations=self._max_iterations, time_limit=self._time_limit)
            )
        except (HostGone, OSError) as error:
            raise Problem("internal", f"the session's process could not be started: {error}") from error
        finally:
            del self._starting[key]
        now = self.clock()
        session = Session(key, host, Lease(Terms(self._idle, now + self._max_age), now), memory_limit=limit, now=now)
        self._live[key] = session
        self._ended.pop(key, None)
        host.ended.add_done_callback(lambda ended: self._lost(session, ended.result()))
        return session

    # -------------------------------------------------------------------------------------------------------- finding
    def find(self, owner: str, name: str) -> Session:
        """The owner's live session of that name.

        Raises:
            Problem: unknown_session, or session_ended with the reason and the time.
        """
        key = (owner, name)
        self._expire(key)
        session = self._live.get(key)
        if session is not None:
            return session
        ended = self._ended.get(key)
        if ended is None:
            raise Problem(
                "unknown_session", f"there is no session {name!r}: GET /v1/sessions lists yours, POST makes one"
            )
        raise gone(name, ended)

    def known(self, owner: str, name: str) -> Session | None:
        """The owner's live session of that name, if there is one."""
        self._expire((owner, name))
        return self._live.get((owner, name))

    def of(self, owner: str) -> list[Session]:
        """The owner's live sessions, oldest first."""
        return [session for session in self._live.values() if session.owner == owner]

    # --------------------------------------------------------------------------------------------------------- asking
    def submit(
        self,
        session: Session,
        kind: str,
        params: Mapping[str, Any],
        *,
        content_type: str = "",
        room: Room | None = None,
    ) -> Running:
        """Hands a request to the session's host, and counts it as work.

        Raises:
            Problem: busy, or session_ended.
        """
        try:
            self._quota.queue(len(session.host.running))
            now = self.clock()
            lease = {
                "now": now,
                "terms": (session.lease.terms.idle, session.lease.terms.ends, session.lease.terms.until),
            }
            running = session.host.submit(kind, {**params, **lease}, content_type=content_type, room=room)
        except HostGone:
            raise self.ended(session) from None
        except Problem:
            if room is not None:
                room.discard()
            raise
        session.lease.begin(now)

        def answered(reply: asyncio.Future[Any]) -> None:
            session.lease.end(self.clock())
            if not reply.cancelled() and reply.exception() is None:
                session.bytes_in_use = reply.result().facts.get("bytes_in_use", session.bytes_in_use)

        running.reply.add_done_callback(answered)
        return running

    def ended(self, session: Session) -> Problem:
        """The problem of a session whose host has just gone."""
        key = (session.owner, session.id)
        known = self._ended.get(key) or Ended(Reason.WORKER_DIED, "its process is gone", self.clock())
        return gone(session.id, known)

    # --------------------------------------------------------------------------------------------------------- ending
    async def end(self, session: Session, reason: Reason, how: str) -> None:
        """Ends a session; what runs in it gets session_ended."""
        self._forget(session, reason, how)
        await session.host.end(how)

    def _expire(self, key: tuple[str, str]) -> None:
        session = self._live.get(key)
        if session is None:
            return
        reason = session.lease.expired(self.clock())
        if reason is not None:
            terms = session.lease.terms
            how = (
                f"nothing was asked of it for {terms.idle:g} s"
                if reason is Reason.IDLE
                else f"it reached the greatest age, {self._max_age:g} s"
            )
            self._forget(session, reason, how)
            task = asyncio.get_running_loop().create_task(session.host.end(how))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    def _lost(self, session: Session, how: str) -> None:
        if self._live.get((session.owner, session.id)) is session:
            self._forget(session, Reason.WORKER_DIED, how)
            log.warning("session %s of %s ended: %s", session.id, session.owner, how)

    def _forget(self, session: Session, reason: Reason, how: str) -> None:
        key = (session.owner, session.id)
        if self._live.get(key) is not session:
            return
        del self._live[key]
        self._ended[key] = Ended(reason, how, self.clock())
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    async def sweep(self) -> None:
        """Ends what has expired, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for key in list(self._live):
                self._expire(key)

    async def close(self) -> None:
        """Ends all sessions: the server goes down."""
        ends = [self.end(one, Reason.SHUTDOWN, "the server shut down") for one in list(self._live.values())]
        await asyncio.gather(*ends, *self._endings)


def gone(name: str, ended: Ended) -> Problem:
    """The problem of a session that has ended."""
    at = timestamp(ended.at)
    return Problem(
        "session_ended",
        f"the session {name!r} ended at {at}: {ended.how}. Its values are gone; make a new session",
        reason=ended.reason.value,
        ended_at=at,
    )
