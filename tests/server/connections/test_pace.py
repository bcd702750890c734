"""How slowly a caller may read: what the system still holds for it counts as unread, and what leaves it as read."""

import socket
from typing import Any

from serving import until
from teletape_server.connections.pace import Pace


class Limits:
    stall_limit = 5.0
    min_rate = 1 << 10


class Transport:
    """Of a connection whose caller reads: this process has nothing more to write, or always as much."""

    def __init__(self, sock: socket.socket, unsent: int) -> None:
        self._sock, self._unsent = sock, unsent

    def get_write_buffer_size(self) -> int:
        return self._unsent

    def get_extra_info(self, name: str) -> Any:
        assert name == "socket"
        return self._sock


def filled() -> tuple[socket.socket, socket.socket]:
    """A connection whose system takes no more bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    server.setblocking(False)
    for part in (1 << 16, 1):
        while True:
            try:
                server.send(bytes(part))
            except BlockingIOError:
                break
    return server, caller


def test_what_leaves_the_system_is_read_although_the_transport_waits_for_more_room() -> None:
    server, caller = filled()
    with server, caller:
        pace = Pace(Limits(), Transport(server, 1 << 16))  # type: ignore[arg-type]  # what it needs of one
        assert not pace.reads_too_slowly(4.0)
        received = 0
        while received < 1 << 20:
            received += len(caller.recv(1 << 16))

        def drained() -> int:
            pace.count_drained()
            return pace._drained

        until(lambda: drained() > 1 << 16)
        allowed = Limits.stall_limit + drained() / Limits.min_rate
        assert not pace.reads_too_slowly(allowed - 5.0)
        assert pace.reads_too_slowly(allowed)


def test_a_caller_that_reads_nothing_is_found_although_its_system_has_megabytes() -> None:
    server, caller = filled()
    with server, caller:
        pace = Pace(Limits(), Transport(server, 1 << 16))  # type: ignore[arg-type]  # what it needs of one
        assert not pace.reads_too_slowly(4.0)
        assert pace.reads_too_slowly(2.0)


def test_a_connection_that_is_closed_holds_nothing() -> None:
    server, caller = filled()
    caller.close()
    server.close()
    pace = Pace(Limits(), Transport(server, 0))  # type: ignore[arg-type]  # what it needs of one
    pace.count_drained()
    assert pace._drained == 0
