"""Ends sessions, with their hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from teletape_server.hosts.protocols import Ending
from teletape_server.ipc.leases import Reason
from teletape_server.sessions.entry import SessionEntry
from teletape_server.sessions.live_sessions import LiveSessions


class Ends:
    """Ends sessions.

    Args:
        live: All sessions.

    Attributes:
        tasks: What ends in the background, or else happens there.
    """

    def __init__(self, live: LiveSessions) -> None:
        self._live = live
        self.tasks: set[asyncio.Task[None]] = set()

    async def end(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        """Ends a session; its unanswered requests get session_ended."""
        self._live.remove(entry, reason, text)
        entry.stop_waking(self._live.gone(entry))
        if entry.parking is not None:
            await asyncio.wait([entry.parking])
        if entry.host is not None:
            await entry.host.end(Ending(reason, text))
            if entry.log is not None:
                self._live.store.close_log(entry.log)
                entry.log = None

    def end_soon(self, entry: SessionEntry, reason: Reason, text: str) -> None:
        """Ends a session in the background; nothing finds it from now on."""
        self._live.remove(entry, reason, text)
        self.soon(self.end(entry, reason, text))

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Does something in the background, which the server's end waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
