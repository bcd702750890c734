"""The HTTP server, and its orderly end: work gets some time, every caller an answer, and the log no traceback.

The first signal ends it in order: new requests are answered 503, running ones may finish, then they are cancelled, then
all sessions end. The second signal ends it at once. A terminal that closes (SIGHUP) is such a first signal, unless the
server was started so that it ignores that; shells and the system send it several times, which then means nothing. A
server with a certificate goes on at SIGHUP, and reads the certificate's files again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from types import FrameType
from typing import Final

import uvicorn
from fastapi import FastAPI

from teletape_server import tls
from teletape_server.connections.connection import Connection
from teletape_server.connections.heads import FrameHeads
from teletape_server.connections.open_connections import Connections, ServerState
from teletape_server.identity.keys import Keys
from teletape_server.sessions.registry import Registry
from teletape_server.settings import Settings

log = logging.getLogger("teletape")

_ANSWER_SECONDS: Final = 1.0  # in which the last answers are sent, and then again for callers that send or read nothing


class Server(uvicorn.Server):
    """Serves an application until a signal comes.

    Args:
        app: The application.
        settings: The server's settings.
    """

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(_config(app, settings))
        self._app = app
        self._settings = settings
        self._renewals: asyncio.Task[None] | None = None
        self._renew = asyncio.Event()  # set when the certificate is to be read again
        self._loop: asyncio.AbstractEventLoop | None = None  # from its start on

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the orderly end; a second signal ends the process at once, and the sessions' processes with it."""
        if self.should_exit and sig != signal.SIGHUP:
            os._exit(128 + sig)
        super().handle_exit(sig, frame)

    def hang_up(self, sig: int, frame: FrameType | None) -> None:
        """Reads the certificate's files again; without a certificate, begins the orderly end."""
        if self._settings.tls_certificate is None:
            self.handle_exit(sig, frame)
        elif self._loop is not None:  # else it will read them
            self._loop.call_soon_threadsafe(self._renew.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins as uvicorn does, and keeps the certificate current."""
        await super().startup(sockets)
        if self.config.ssl is not None:
            self._loop = asyncio.get_running_loop()
            self._renewals = asyncio.create_task(tls.keep_current(self.config.ssl, self._settings, self._renew))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends work and sessions while callers are still answered, and then as uvicorn does."""
        if self._renewals is not None:
            self._renewals.cancel()
        registry: Registry = self._app.state.registry
        connections: Connections = self._app.state.connections
        grace = self._settings.shutdown_grace
        log.info("the server stops: it takes no new requests, and running ones have %g s", grace)
        await asyncio.gather(registry.drain(grace), self._app.state.pool.drain(grace))
        if not await self._answered():
            for connection in [*connections.open, *connections.refused]:
                if connection.is_unanswered:
                    connection.transport.abort()
            await self._answered()
        if self.config.ssl is not None:  # there, closing waits for the caller's agreement, and an idle one sends none
            asyncio.get_running_loop().call_later(_ANSWER_SECONDS, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        connections: Connections = self._app.state.connections
        for connection in [*connections.open]:
            connection.transport.abort()

    async def _answered(self) -> bool:
        """Waits until no request is being answered; returns False if that takes too long."""
        connections: Connections = self._app.state.connections
        end = time.monotonic() + _ANSWER_SECONDS
        while self.server_state.tasks or any(connection.is_unanswered for connection in connections.open):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.01)  # no event comes
        return True


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Returns uvicorn's configuration, with connections of this package, which are the application's from now on.

    uvicorn calls a protocol with four arguments, waits for `ServerState`, and calls `shutdown`. It gives its loop,
    signals and lifespan; nothing else of it is used.
    """
    app.state.connections = connections = Connections(settings, app.state.metrics.refused)
    keys: Keys = app.state.keys
    keys.on_change(lambda: connections.keys_changed(keys))
    heads = FrameHeads(app.state) if settings.frames == "on" else None

    def connection(*, config: object, server_state: ServerState, app_state: object, _loop: object = None) -> Connection:
        return Connection(connections, app, server_state, heads, may_be_lent=settings.is_direct(has_keys=bool(keys)))

    return uvicorn.Config(
        app,
        http=connection,  # type: ignore[arg-type]  # it is only called
        ws="none",
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        log_config=None,
        log_level=settings.log_level,
        proxy_headers=False,  # what of them is needed, the log of requests reads itself
        access_log=False,  # `access_log` writes the lines of requests
        server_header=False,
        date_header=False,  # `streams` writes it
        timeout_graceful_shutdown=2,  # `Server` has let work and answers finish before
        lifespan="on",
    )
