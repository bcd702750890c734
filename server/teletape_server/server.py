"""The HTTP server, and its orderly end: work gets some time, every caller an answer, and the log no traceback.

The first signal ends it in order: new requests are answered 503, running ones may finish, then they are cancelled, then
all sessions end. The second signal ends it at once. A terminal that closes (SIGHUP) is such a first signal, unless the
server was started so that it ignores that; shells and the system send it several times, which then means nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from teletape_server.connections.config import server_config
from teletape_server.connections.open_connections import Connections
from teletape_server.sessions.registry import Registry
from teletape_server.settings import Settings

_ANSWER_SECONDS: Final = 1.0  # in which the last answers are sent, and then again for callers that send or read nothing


class Server(uvicorn.Server):
    """Serves an application until a signal comes.

    Args:
        app: The application.
        settings: The server's settings.
    """

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(server_config(app, settings))
        self._app = app
        self._grace = settings.shutdown_grace

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the orderly end; a second signal ends the process at once, and the sessions' processes with it."""
        if self.should_exit and sig != signal.SIGHUP:
            os._exit(128 + sig)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends work and sessions while callers are still answered, and then as uvicorn does."""
        registry: Registry = self._app.state.registry
        connections: Connections = self._app.state.connections
        await registry.drain(self._grace)
        if not await self._answered():
            for connection in [*connections.open, *connections.refused]:
                if connection.is_unanswered:
                    connection.transport.abort()
            await self._answered()
        await super().shutdown(sockets)

    async def _answered(self) -> bool:
        """Waits until no request is being answered; returns False if that takes too long."""
        tasks = [*self.server_state.tasks]
        return not tasks or not (await asyncio.wait(tasks, timeout=_ANSWER_SECONDS))[1]
