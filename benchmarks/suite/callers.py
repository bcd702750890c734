"""Many callers of a server in one thread: each has a connection, and sends its next request when it has an answer.

With a thread for each the threads would cost more than what is measured.
"""

import select
import socket
from collections.abc import Callable, Sequence

_READ = 1 << 18


class Caller:
    """A caller with a connection, on which the answer to one request has been read before.

    Args:
        connection: The connection.
        request: What it sends each time: head and body.
    """

    def __init__(self, connection: socket.socket, request: bytes) -> None:
        self._connection, self._request = connection, request
        self._received, self._end = bytearray(), 0

    def fileno(self) -> int:
        """The connection's descriptor."""
        return self._connection.fileno()

    def send(self) -> None:
        """Sends the request."""
        self._received, self._end = bytearray(), 0
        self._connection.sendall(self._request)

    def receive(self) -> bool:
        """Reads what is there; whether the answer is complete.

        Raises:
            ConnectionError: The server has closed the connection, or refused the request.
        """
        part = self._connection.recv(_READ)
        if not part:
            raise ConnectionError("the server closed the connection")
        self._received += part
        if not self._end:
            self._end = _end_of_answer(self._received)
        return bool(self._end) and len(self._received) >= self._end


def _end_of_answer(received: bytearray) -> int:
    """How long an answer is, head and body; 0: its head is not complete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return 0
    status, _, fields = bytes(received[:end]).lower().partition(b"\r\n")
    if not status.split(b" ")[1].startswith(b"2"):
        raise ConnectionError(status.decode())
    length = next(field for field in fields.split(b"\r\n") if field.startswith(b"content-length:"))
    return end + 4 + int(length.partition(b":")[2])


def seconds(connections: Sequence[socket.socket], request: bytes, repeats: int, clock: Callable[[], float]) -> float:
    """The seconds until each caller has had `repeats` answers.

    Args:
        connections: One for each caller.
        request: What all of them send.
        repeats: Answers for each.
        clock: The clock.
    """
    callers = {connection.fileno(): Caller(connection, request) for connection in connections}
    left = dict.fromkeys(callers, repeats)
    with select.epoll() as poll:
        for number in callers:
            poll.register(number, select.EPOLLIN)
        begin = clock()
        for caller in callers.values():
            caller.send()
        while left:
            for number, _ in poll.poll():
                if not callers[number].receive():
                    continue
                left[number] -= 1
                if left[number]:
                    callers[number].send()
                else:
                    del left[number]
        return clock() - begin
