"""What the server takes of uvicorn is its loop, signals and lifespan: a connection knows little of it."""

import asyncio
import inspect
import socket
import threading
from pathlib import Path
from typing import Any

import uvicorn

import teletape_server
from serving import Server, until
from teletape_server.connections.connection import Connection
from teletape_server.connections.open_connections import ServerState
from teletape_server.settings import Settings

ARGUMENTS = {"config", "server_state", "app_state", "_loop"}
CALLED = {"connection_made", "data_received", "eof_received", "connection_lost", "shutdown"}


class Smallest:
    """A protocol that has what uvicorn's server, or asyncio, asks of it, and notes it."""

    def __init__(self, used: set[str], state: Any) -> None:
        self._used, self._state = used, state

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in (
            "get_buffer",
            "buffer_updated",
        ):  # by which asyncio knows protocols with buffers
            raise AttributeError(name)
        self._used.add(name)
        return {"connection_made": self._connection_made, "shutdown": self._shutdown}.get(name, lambda *_: None)

    def _connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._state.connections.add(self)

    def _shutdown(self) -> None:
        self._state.connections.discard(self)
        self._transport.close()


def test_uvicorn_asks_nothing_else_of_a_connection() -> None:
    used: set[str] = set()
    arguments: set[str] = set()

    def protocol(**named: Any) -> Any:
        arguments.update(named)
        return Smallest(used, named["server_state"])

    async def application(scope: Any, receive: Any, send: Any) -> None:
        """Answers nothing."""

    config = uvicorn.Config(application, http=protocol, ws="none", lifespan="off", log_config=None)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        until(lambda: server.started)
        with socket.create_connection(listener.getsockname()) as sock:
            sock.sendall(b"x")
            until(lambda: "data_received" in used)
            server.should_exit = True
            thread.join(60)
    assert arguments == ARGUMENTS
    assert used <= CALLED
    assert "shutdown" in used
    assert all(callable(getattr(Connection, name)) for name in CALLED)


def test_the_server_s_connections_take_these_arguments_and_know_two_names_of_its_state() -> None:
    server = Server(Settings())
    server.listener.close()
    assert set(inspect.signature(server._uvicorn.config.http).parameters) == ARGUMENTS  # type: ignore[arg-type]
    assert set(ServerState.__annotations__) == {"connections", "tasks"}


def test_one_module_knows_uvicorn() -> None:
    folder = Path(teletape_server.__file__).parent
    modules = [path.relative_to(folder) for path in folder.rglob("*.py") if "import uvicorn" in path.read_text()]
    assert modules == [Path("server.py")]
    assert "uvicorn." not in (folder / "server.py").read_text().replace("uvicorn.Server", "").replace(
        "uvicorn.Config", ""
    )
