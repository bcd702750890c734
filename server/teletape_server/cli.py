"""The command `teletape`: `teletape serve` starts the server and prints its address."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Sequence

from teletape_server.settings import Settings, SettingsError
from teletape_server.worker.confinement import scrub

_USAGE = "usage: teletape serve [--host ADDRESS] [--port PORT] [--device DEVICE] ...\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (2: wrong arguments or settings)."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE + "teletape serve --help lists every setting.")
        return 0
    if arguments[:1] != ["serve"]:
        print(
            _USAGE + f"teletape: no such command: {' '.join(arguments[:1]) or '(none)'}; the command is serve",
            file=sys.stderr,
        )
        return 2
    try:
        settings = Settings.load(arguments[1:], os.environ)
    except SettingsError as error:
        print(f"teletape: {error}", file=sys.stderr)
        return 2
    scrub(os.environ)  # before the first thread, and before the first process that inherits it
    return serve(settings)


def serve(settings: Settings) -> int:
    """Serves until a signal stops it; returns the exit status."""
    try:
        # Imported here and not at the top: a worker process runs this file again, and needs none of it.
        from teletape_server.app import create_app
        from teletape_server.hosts.forkserver import present_devices
        from teletape_server.server import Server
    except ImportError as error:
        print(f"teletape: the server needs further packages: pip install 'teletape[server]' ({error})", file=sys.stderr)
        return 1
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if settings.worker_user is not None and os.geteuid() != 0:
        print(
            f"teletape: --worker-user {settings.worker_user.uid} needs a server that root has started: it runs as user "
            f"{os.geteuid()}, whose processes cannot change to another. Start it as root, or leave the setting out",
            file=sys.stderr,
        )
        return 2
    if settings.device != "cpu" and settings.device not in (devices := present_devices()):
        print(f"teletape: this machine has no device {settings.device}: it has {', '.join(devices)}", file=sys.stderr)
        return 2
    try:
        listener = _listen(settings.host, settings.port)
    except OSError as error:
        print(f"teletape: cannot listen on {settings.host} port {settings.port}: {error.strerror}", file=sys.stderr)
        return 1
    if not settings.api_keys:
        logging.getLogger("teletape").warning(
            "no API keys (TELETAPE_API_KEYS): every user of this machine can use this server and its sessions"
        )

    class GreetingServer(Server):
        """Prints the address as soon as the server answers."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            gc.collect()
            gc.freeze()  # what lives as long as the server: looking through it took 80 ms at each full collection
            print(_greeting(settings, listener), flush=True)

    try:
        with listener:
            GreetingServer(create_app(settings), settings).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn shuts down first, and then raises it
        return 130
    return 0


def _listen(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.create_server(address[:2], family=family, backlog=2048)
    # uvloop sets this by itself; asyncio does not for such a listener, and each answer would take 40 ms more.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _greeting(settings: Settings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    key = f', api_key="{next(iter(settings.api_keys))}\'s key"' if settings.api_keys else ""
    return f"""\
Teletape serves at {url} (device {settings.device})
API page:          {url}/docs

    import teletape as tf
    tf.connect("{url}"{key})
    print(tf.constant([1.0, 2.0]) * 2.0)
"""


if __name__ == "__main__":
    sys.exit(main())
