"""A server in this process at a Unix socket."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx

from serving import Server
from teletape_server.settings import Settings


class UnixServer(Server):
    """A server at a Unix socket.

    Args:
        path: The socket's.
        **settings: Of the server.
    """

    def __init__(self, path: Path, **settings: int) -> None:
        super().__init__(Settings(unix=str(path), shutdown_grace=0.1, **settings))  # type: ignore[arg-type]
        self.listener.close()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.url = f"unix://{path}"
        self._path = str(path)

    def client(self, owner: str | None = None, **headers: str) -> httpx.Client:
        """A plain HTTP client."""
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=self._path, verify=False),
            base_url="http://localhost",
            headers=headers,
            timeout=60,
        )
