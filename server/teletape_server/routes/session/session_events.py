"""The sessions of an owner as Server-Sent Events: all of them at first, then what changes.

The registry knows memory and progress from the answers of the sessions' processes: no process is asked for them. Each
session is described once for all listeners, however many there are.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from teletape_server.http.events import HEADERS, HEARTBEAT_SECONDS, event
from teletape_server.http.negotiation import EVENTS_TYPE
from teletape_server.http.schemas import (
    Answered,
    EndedRequest,
    EndedSession,
    Recovered,
    Session,
    SessionProblem,
    Sessions,
    Work,
)
from teletape_server.models.waiting import Place
from teletape_server.problems import Problem
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.lifecycle import LOST
from teletape_server.sessions.record import Key
from teletape_server.sessions.registry import Registry
from teletape_wire import timestamp

#: Seconds between two looks at the sessions: what changes in between is one event.
INTERVAL: Final = 0.25
_RESTING_LOOKS: Final = 8  # in one of which a session without a process is described again
MOST_PER_KEY: Final = 32  #: Streams of one key.
MOST: Final = 512  #: Streams of all keys.


def described(entry: SessionEntry, now: float, disk_limit: int, wait: Place | None = None) -> Session:
    """Returns a session as answers have it.

    Args:
        entry: The session.
        now: Unix seconds.
        disk_limit: Bytes that its files may take.
        wait: Why its newest request waits; None: that is not said.
    """
    unanswered, facts = entry.running, entry.note_facts()
    current = min(unanswered, key=lambda running: running.total == 0, default=None)
    return Session(
        id=entry.id,
        owner=entry.owner,
        device=entry.device,
        memory_limit=entry.memory_limit,
        dtype=entry.dtype,
        bytes_in_use=facts.bytes_in_use,
        created_at=timestamp(entry.created_at),
        expires_at=timestamp(entry.lease.expires_at(now)),
        ends_at=timestamp(entry.lease.terms.ends),
        state=entry.record.state.phase.value,
        why=entry.record.state.why or (entry.log and entry.log.trouble) or None,
        durability=entry.record.durability,
        log_to_run=entry.log_to_run and entry.record.state.phase not in LOST,
        disk_bytes=entry.disk_bytes,
        disk_limit=disk_limit,
        recovered=None if entry.recovered is None else Recovered(**entry.recovered),
        running=Work(
            requests=len(unanswered),
            done=current.done if current else 0,
            total=current.total if current else 0,
            iteration=current.iteration if current else 0,
            iterations=current.iterations if current else 0,
            wait=wait,
        ),
        answered=Answered(
            requests=entry.answers(facts),
            frames=facts.frames,
            problems=entry.problems,
            last_problem=_last_problem(entry),
            last_request=_last_request(entry),
            compute_seconds=round(facts.compute_seconds, 6),
            cpu_seconds=round(facts.cpu_seconds, 6),
            p50_seconds=facts.durations.quantile(0.5),
            p99_seconds=facts.durations.quantile(0.99),
        ),
    )


def _last_problem(entry: SessionEntry) -> SessionProblem | None:
    last = entry.last_problem
    return None if last is None else SessionProblem(code=last.code, message=last.message, at=timestamp(last.time))


def _last_request(entry: SessionEntry) -> EndedRequest | None:
    last = entry.last_request
    if last is None:
        return None
    seconds = None if last.seconds is None else round(last.seconds, 3)
    return EndedRequest(at=timestamp(last.time), seconds=seconds, code=last.code)


class SessionFeed:
    """Looks at all sessions from time to time while there are listeners, and wakes those who see what has changed.

    Args:
        registry: The sessions.

    Attributes:
        sessions: All live sessions as of the last look, by owner and id.
        events: The event of each, and its number, which is another one after each change.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.sessions: dict[Key, Session] = {}
        self.events: dict[Key, tuple[int, bytes]] = {}
        self._number = self._looks = 0
        self._listeners: set[_Listener] = set()
        self._streams: Counter[str] = Counter()
        self._looking: asyncio.Task[None] | None = None

    def join(self, listener: _Listener) -> None:
        """Adds a listener, after a look.

        Raises:
            Problem: busy, if there are too many.
        """
        for count, limit, whose in self._counts(listener.owner):
            if count >= limit:
                raise Problem(
                    "busy",
                    f"{whose} {count} open streams of the list of sessions, the limit: close one first. One stream "
                    "tells of all your sessions, and GET /v1/sessions without Accept: text/event-stream lists them",
                    headers={"Retry-After": "1"},
                    found=count,
                    limit=limit,
                )
        self._streams[listener.owner] += 1
        self._listeners.add(listener)
        self.look(all_again=True)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look_on())

    def _counts(self, owner: str) -> tuple[tuple[int, int, str], ...]:
        mine, in_all = self._streams[owner], len(self._listeners)
        return (mine, MOST_PER_KEY, "your key has"), (in_all, MOST, "this server has")

    def is_full(self, owner: str) -> bool:
        """Returns whether an owner can have no further stream now."""
        return any(count >= limit for count, limit, _ in self._counts(owner))

    @property
    def is_looking(self) -> bool:
        """Whether there are listeners."""
        return self._looking is not None

    def leave(self, listener: _Listener) -> None:
        """Removes a listener; after the last one nothing looks any more."""
        self._listeners.remove(listener)
        self._streams[listener.owner] -= 1
        if not self._listeners and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def look(self, *, all_again: bool = False) -> None:
        """Describes the sessions, and wakes the listeners that see one which has changed.

        There may be thousands without a process, of which little changes but the state: each look describes some of
        them again, and those whose state is another one.

        Args:
            all_again: Whether all of these are described again too.
        """
        now, sessions = self.registry.clock(), dict[Key, Session]()
        self._looks += 1
        for place, entry in enumerate(self.registry.live.all()):
            key = entry.owner, entry.id
            known = self.sessions.get(key)
            is_due = all_again or not (self._looks + place) % _RESTING_LOOKS
            if known is None or is_due or not _rests(entry, known):
                known = described(entry, now, self.registry.disk_limit)
            sessions[key] = known
        changed = {key for key, session in sessions.items() if self.sessions.get(key) != session}
        ended = self.sessions.keys() - sessions.keys()
        for key in changed:
            self._number += 1
            self.events[key] = self._number, event("session", sessions[key].model_dump_json())
        for key in ended:
            del self.events[key]
        self.sessions = sessions
        owners = {owner for owner, _ in changed | ended}
        for listener in self._listeners:
            if self.registry.live.stopping or (owners if listener.sees_all else listener.owner in owners):
                listener.woken.set()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self.look()


def _rests(entry: SessionEntry, known: Session) -> bool:
    """Returns whether a session has no process and no request, and the state in which it was described."""
    is_busy = entry.host is not None or entry.running or known.running.requests
    return not is_busy and entry.record.state.phase.value == known.state


class _Listener:
    """One stream.

    Attributes:
        owner: Who listens.
        sees_all: Whether it tells of the sessions of all.
        woken: Set when something has changed.
    """

    def __init__(self, owner: str, *, sees_all: bool) -> None:
        self.owner, self.sees_all = owner, sees_all
        self.woken = asyncio.Event()
        self._seen: dict[Key, int] = {}

    async def events(self, feed: SessionFeed) -> AsyncIterator[bytes]:
        """Yields all sessions that the owner sees, and then changes, until the server ends."""
        sessions = [session for (owner, _), session in feed.sessions.items() if self._sees(owner)]
        self._changes(feed)
        yield event("sessions", Sessions(owner=self.owner, admin=self.sees_all, sessions=sessions).model_dump_json())
        while self._seen or not feed.registry.live.stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.woken.wait(), HEARTBEAT_SECONDS)
            if not self.woken.is_set():
                yield b": no change\n\n"
            self.woken.clear()
            if changes := self._changes(feed):
                yield b"".join(changes)

    def _sees(self, owner: str) -> bool:
        return self.sees_all or owner == self.owner

    def _changes(self, feed: SessionFeed) -> list[bytes]:
        """Returns the events since the last call."""
        current = {key: data for key, data in feed.events.items() if self._sees(key[0])}
        ended = [_ended(feed.registry, key) for key in self._seen if key not in current]
        changed = [data for key, (number, data) in current.items() if self._seen.get(key) != number]
        self._seen = {key: number for key, (number, _) in current.items()}
        return ended + changed


class SessionEvents(StreamingResponse):
    """A response of events that ends with the server.

    Events: `sessions` (`Sessions`) at the beginning, then `session` (`Session`) for each that is new or has changed,
    and `ended` (`EndedSession`); a comment after 15 seconds without an event.

    Args:
        feed: The sessions.
        owner: Who asks.
        sees_all: Whether the owner sees the sessions of all.
    """

    def __init__(self, feed: SessionFeed, owner: str, *, sees_all: bool) -> None:
        self._feed, self._listener = feed, _Listener(owner, sees_all=sees_all)
        super().__init__(self._listener.events(feed), media_type=EVENTS_TYPE, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events; raises the problem busy before the first of them if there are too many streams."""
        self._feed.join(self._listener)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._feed.leave(self._listener)


def _ended(registry: Registry, key: Key) -> bytes:
    owner, id = key
    ended = registry.live.ended_reason(owner, id)
    if ended is None:  # of very many ended sessions the latest are known
        model = EndedSession(id=id, owner=owner, reason=None, text="it ended", ended_at=None)
    else:
        at = timestamp(ended.time)
        model = EndedSession(id=id, owner=owner, reason=ended.reason.value, text=ended.text, ended_at=at)
    return event("ended", model.model_dump_json())
