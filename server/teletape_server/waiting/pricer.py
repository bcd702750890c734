"""The process that prices commands which would run without a session: it starts with the first of them, and stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import teletape_wire as wire
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.derivatives.reports.speed import Speed
from teletape_server.hosts.protocols import Ending, Host, HostGone, Reply
from teletape_server.ipc.leases import Reason
from teletape_server.problems import overloaded, shutting_down
from teletape_server.sessions.hosting.server_processes import ServerProcesses
from teletape_server.sessions.record import SessionLimits


class Pricer:
    """Prices commands, one request after the other.

    Args:
        starts: Starts its process, which counts as no session.
        memory_limit: Bytes of arrays that a request without a session may have in use.
    """

    def __init__(self, starts: ServerProcesses, memory_limit: int) -> None:
        self._starts, self._limits = starts, SessionLimits(memory_limit)
        self._starting: asyncio.Task[Host] | None = None
        self._is_stopping = False
        self._speed: Speed | None = None

    async def speed(self) -> Speed:
        """Returns how fast this machine's CPU computes; the first call has it measured.

        Raises:
            Problem: overloaded, shutting_down.
        """
        if self._speed is None:
            reply = await self._ask("speed", b"", {"accept": wire.JSON_TYPE})
            facts = json.loads(bytes(reply.body))
            self._speed = Speed({kind: facts[kind.value] for kind in WorkKind}, facts["written"], facts["calls"])
        return self._speed

    async def price(self, body: bytes, params: Mapping[str, Any]) -> Reply:
        """Returns the reply to a request for a price; see `handlers.session.price`.

        Raises:
            Problem: overloaded, shutting_down.
        """
        return await self._ask("price", body, params)

    async def _ask(self, method: str, body: bytes, params: Mapping[str, Any]) -> Reply:
        host = await self._host()
        try:
            buffer = host.body_buffer(len(body)) if body else None
            if buffer is not None:
                buffer.view[:] = body
            running = host.submit(method, params, content_type=wire.JSON_TYPE, body=buffer)
            return await asyncio.shield(running.reply)
        except (HostGone, OSError) as error:
            raise overloaded(f"the process that looks up prices has ended ({error})") from None

    async def _host(self) -> Host:
        """Returns the process, as soon as it has started."""
        if self._is_stopping:
            raise shutting_down()
        starting = self._starting
        if starting is None or (starting.done() and (_failed(starting) or starting.result().ended.done())):
            starting = self._starting = asyncio.get_running_loop().create_task(self._start())
        return await asyncio.shield(starting)

    async def _start(self) -> Host:
        return await self._starts.start("prices of commands", "cpu", self._limits)

    async def close(self) -> None:
        """Ends the process."""
        self._is_stopping = True
        if self._starting is None:
            return
        if not self._starting.done():
            self._starting.cancel()
        with suppress(asyncio.CancelledError, Exception):
            host = await self._starting
            await host.end(Ending(Reason.SHUTDOWN, "the server shut down"))


def _failed(task: asyncio.Task[Host]) -> bool:
    return task.cancelled() or task.exception() is not None
