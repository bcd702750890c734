"""uvicorn's configuration, with the connections of this package in place of its own."""

from __future__ import annotations

from functools import partial

import uvicorn
from fastapi import FastAPI

from teletape_server.connections.direct_connection import DirectConnection
from teletape_server.connections.frame_connection import FrameConnection
from teletape_server.connections.heads import FrameHeads
from teletape_server.connections.open_connections import Connections
from teletape_server.settings import Settings


def server_config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """Returns uvicorn's configuration for the application, whose `state.connections` are from now on the server's."""
    app.state.connections = connections = Connections(settings, app.state.metrics.refused)
    protocol = DirectConnection if settings.is_direct else FrameConnection
    return uvicorn.Config(
        app,
        http=partial(protocol, connections, FrameHeads(app.state)),  # type: ignore[arg-type]  # it is only called
        ws="none",
        log_config=None,
        log_level=settings.log_level,
        proxy_headers=False,  # what of them is needed, the log of requests reads itself
        access_log=False,  # `access_log` writes the lines of requests
        server_header=False,
        timeout_graceful_shutdown=2,  # `server` has let work and answers finish before
        lifespan="on",
    )
