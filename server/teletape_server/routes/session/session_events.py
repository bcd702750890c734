"""The sessions of an owner as Server-Sent Events: all of them at first, then what changes.

The registry knows memory and progress from the answers of the sessions' processes: no process is asked for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from starlette.responses import StreamingResponse

from teletape_server.hosts.session_entry import Key, SessionEntry
from teletape_server.http.events import HEARTBEAT_SECONDS, event, events_response
from teletape_server.http.schemas import EndedSession, Session, Sessions
from teletape_server.registry import Registry
from teletape_wire import timestamp

#: Seconds between two looks at the sessions: what changes in between is one event.
INTERVAL: Final = 0.25


def session_events(
    registry: Registry,
    owner: str,
    *,
    is_admin: bool,
    entries: Callable[[], Sequence[SessionEntry]],
    described: Callable[[SessionEntry], Session],
) -> StreamingResponse:
    """Returns a response of events that ends with the server.

    Events: `sessions` (`Sessions`) at the beginning, then `session` (`Session`) for each that is new or has changed,
    and `ended` (`EndedSession`); a comment after 15 seconds without an event.

    Args:
        registry: The sessions.
        owner: Who asks.
        is_admin: Whether the owner sees the sessions of all.
        entries: Returns the sessions that the owner sees.
        described: Returns a session as answers have it.
    """
    return events_response(_events(registry, owner, is_admin, entries, described))


async def _events(
    registry: Registry,
    owner: str,
    is_admin: bool,
    entries: Callable[[], Sequence[SessionEntry]],
    described: Callable[[SessionEntry], Session],
) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    last: dict[Key, Session] = {}
    for entry in entries():
        last[entry.owner, entry.id] = described(entry)
    yield event("sessions", Sessions(owner=owner, admin=is_admin, sessions=[*last.values()]).model_dump_json())
    sent = clock()
    while last or not registry.stopping:
        await asyncio.sleep(INTERVAL)
        current = {(entry.owner, entry.id): described(entry) for entry in entries()}
        changes = [event("ended", _ended(registry, key).model_dump_json()) for key in last if key not in current] + [
            event("session", session.model_dump_json()) for key, session in current.items() if last.get(key) != session
        ]
        last = current
        if changes:
            sent = clock()
            yield b"".join(changes)
        elif clock() - sent >= HEARTBEAT_SECONDS:
            sent = clock()
            yield b": no change\n\n"


def _ended(registry: Registry, key: Key) -> EndedSession:
    owner, id = key
    ended = registry.ended_reason(owner, id)
    if ended is None:  # of very many ended sessions the latest are known
        return EndedSession(id=id, owner=owner, reason=None, text="it ended", ended_at=None)
    return EndedSession(id=id, owner=owner, reason=ended.reason.value, text=ended.text, ended_at=timestamp(ended.time))
