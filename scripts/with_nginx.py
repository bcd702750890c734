"""Runs nginx with examples/nginx.conf in front of a server on this machine, with files and a port of its own."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CONFIGURATION = Path(__file__).resolve().parents[1] / "examples" / "nginx.conf"
START_SECONDS = 60.0


class Proxy(NamedTuple):
    """A running nginx.

    Attributes:
        url: Its address.
        certificate: The file with its certificate.
        log: The file with what it says from the level warn on.
    """

    url: str
    certificate: Path
    log: Path


def command() -> str | None:
    """Where nginx is, also outside of a user's path; None: it is not installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def configured(folder: Path, port: int, server_port: int) -> str:
    """The configuration with other places: each is in the file exactly once.

    Args:
        folder: For files.
        port: Of nginx.
        server_port: Of the server.
    """
    text = CONFIGURATION.read_text(encoding="utf-8")
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for place, own in (
        ("/run/nginx.pid", str(folder / "nginx.pid")),
        ("/var/log/nginx/error.log", str(folder / "error.log")),
        ("/var/log/nginx/access.log", str(folder / "access.log")),
        ("/etc/nginx/teletape.crt", str(folder / "cert.pem")),
        ("/etc/nginx/teletape.key", str(folder / "key.pem")),
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("server 127.0.0.1:8470", f"server 127.0.0.1:{server_port}"),
        ("worker_processes auto", "worker_processes 1"),
        ("http {\n", "http {\n" + temporary),
    ):
        assert text.count(place) == 1, place
        text = text.replace(place, own)
    return text


@contextlib.contextmanager
def proxy(folder: Path, server_port: int, certificate: Path) -> Iterator[Proxy]:
    """Starts nginx, yields it once it listens, and stops it after the block.

    Args:
        folder: For its files; it has the certificate, `cert.pem`, and its key, `key.pem`.
        server_port: Of the server on this machine.
        certificate: The certificate.
    """
    nginx = command()
    assert nginx is not None, "nginx is not installed"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (folder / "nginx.conf").write_text(configured(folder, port, server_port), encoding="utf-8")
    arguments = [nginx, "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf", "-g", "daemon off;"]
    with subprocess.Popen(arguments) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while process.poll() is None and time.monotonic() < deadline and not _listens(port):
                time.sleep(0.01)
            assert _listens(port), (folder / "error.log").read_text(encoding="utf-8")
            yield Proxy(f"https://localhost:{port}", certificate, folder / "error.log")
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
