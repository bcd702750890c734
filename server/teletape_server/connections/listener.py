"""The socket that a server listens on: an address, or a Unix socket, which only some users of the machine may open."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator

from teletape_server.settings import Settings

_BACKLOG = 2048


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Listens as the settings say, for the time of the block.

    Raises:
        OSError: The address or the path cannot be used.
    """
    if settings.unix is None:
        with _at_address(settings.host, settings.port) as listener:
            yield listener
    else:
        with _at_path(settings.unix, settings.unix_mode) as listener:
            yield listener


def address_of(settings: Settings, listener: socket.socket) -> str:
    """Returns the URL that `tf.connect` takes."""
    if settings.unix is not None:
        return f"unix://{os.path.abspath(settings.unix)}"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _at_address(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    # uvloop sets this by itself; asyncio does not for such a listener, and each answer would take 40 ms more.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@contextlib.contextmanager
def _at_path(path: str, mode: int) -> Iterator[socket.socket]:
    """Listens on a Unix socket; its file is removed at the end, unless another server has put its own there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with _locked(os.path.dirname(path) or "."):  # between bind and listen, another server would take it for stale
            _remove_if_stale(path)
            before = os.umask(0o777 & ~mode)  # there is no moment at which others may connect
            try:
                listener.bind(path)
            finally:
                os.umask(before)
            own = os.stat(path)
            listener.listen(_BACKLOG)
        try:
            yield listener
        finally:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(own, os.stat(path)):
                    os.unlink(path)


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lets one server at a time begin to listen in a folder; without a lock if the folder may not be read."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove_if_stale(path: str) -> None:
    """Removes the socket file of a server that has ended without doing so.

    Raises:
        OSError: A server listens there, or it is no socket.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "there is a file that is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)  # a server that accepts no connections would make it wait
            try:
                with contextlib.suppress(BlockingIOError):
                    probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(errno.EADDRINUSE, "another server listens there")
