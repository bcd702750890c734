"""A session's process serves connections itself: it reads a frame, runs it and answers it, and the server sleeps.

A frame is served if all of it is there, with the head that the server has approved. Everything else is the server's:
nothing of it is read, and the connection goes back. While a frame runs, its token is free, so that the server can take
over the answer; whoever takes it then answers. Nothing here waits for a caller.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import teletape_wire as wire
from teletape_server.ipc.heads import MOST, AnswerHeads, Approval, HeadBytes
from teletape_server.ipc.page import Page
from teletape_server.ipc.token import Token
from teletape_wire.tensors import Buffer

_PEEKED: Final = MOST + (16 << 10)  # bytes that are looked at: a head and a body
_AGAIN: Final = 0.001  # seconds until the rest of a frame is looked for
_INCOMPLETE: Final = 0.02  # seconds that the rest of a frame may take
_FEW: Final = 64  # parts of an answer, more of which are joined before they are sent
_NOW: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class FrameResult(Protocol):
    """What the methods of a session's process return."""

    @property
    def content_type(self) -> str:
        """Of the body."""

    @property
    def buffers(self) -> Sequence[Buffer]:
        """The body, in parts."""

    @property
    def length(self) -> int:
        """Bytes in all."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """For the server."""


class Runner(Protocol):
    """What this module needs of the process."""

    def run_frame(self, number: int, params: dict[str, Any], body: memoryview, received: float) -> Any:
        """Runs a frame, and returns its result; returns None if it is refused, and the server answers."""

    def pass_on(self, number: int, result: Any) -> None:
        """Gives the result of a frame to the server, which answers."""

    def give_back(self, id: int, unsent: bytes) -> None:
        """Gives a connection back to the server, with the rest of an answer that the caller has not taken yet."""


class _Connection:
    """A connection that is handed over."""

    __slots__ = ("answers", "approval", "head", "id", "page", "slot", "sock", "token", "until")

    def __init__(self, id: int, slot: int, approval: Approval, sock: socket.socket, token: Token, page: Page) -> None:
        self.id, self.slot, self.approval, self.sock, self.token, self.page = id, slot, approval, sock, token, page
        self.head = HeadBytes(approval.before, approval.after)
        self.answers = AnswerHeads(approval.pattern, approval.request_id)
        self.until: float | None = None  # when the rest of a frame has to be there


class DirectConnections:
    """The connections that a session's process serves.

    Args:
        requests: The socket of the server's messages.
        runner: Runs the frames.

    Attributes:
        page: The words that it shares with the server; None before the first connection.
    """

    def __init__(self, requests: socket.socket, runner: Runner) -> None:
        self.page: Page | None = None
        self._runner = runner
        self._requests = requests.fileno()
        self._poll = select.poll()
        self._poll.register(self._requests, select.POLLIN)
        self._by_file: dict[int, _Connection] = {}
        self._incomplete: set[_Connection] = set()
        self._number = 0
        self._scratch = bytearray(_PEEKED)

    def __len__(self) -> int:
        return len(self._by_file)

    def add(self, id: int, slot: int, approval: Approval, files: Sequence[int]) -> None:
        """Takes a connection over.

        Args:
            id: Its number.
            slot: Its words in the page.
            approval: What the server has approved.
            files: The file descriptors of the connection, its token, and the page; with fewer it goes back.
        """
        if len(files) < 3:  # this process has no more free descriptors, and the system has closed the others
            for file in files:
                os.close(file)
            self._runner.give_back(id, b"")
            return
        connection, token, page = files
        sock = socket.socket(fileno=connection)
        sock.setblocking(False)
        if self.page is None:
            self.page = Page(page)
        socket.close(page)
        self._by_file[connection] = _Connection(id, slot, approval, sock, Token(token), self.page)
        self._poll.register(connection, select.POLLIN)

    def drop(self, id: int) -> None:
        """Lets go of a connection that the server has taken back."""
        for connection in [*self._by_file.values()]:
            if connection.id == id:
                self._drop(connection)

    def serve(self, seconds: float) -> bool:
        """Serves frames until the server sends a message; returns False if there was none for some `seconds`."""
        until = time.monotonic() + seconds
        has_message = False
        while not has_message and time.monotonic() < until:
            events = self._poll.poll(1000 * (_AGAIN if self._incomplete else seconds))
            for file, _ in events:
                if file == self._requests:
                    has_message = True
                elif file in self._by_file:
                    self._serve(self._by_file[file])
            for connection in [*self._incomplete]:
                self._serve(connection)
        return has_message

    def _serve(self, connection: _Connection) -> None:
        """Serves a frame of a connection from which something can be read."""
        if not connection.token.take():  # the server has taken it back
            self._drop(connection)
            return
        try:
            data = connection.sock.recv(_PEEKED, socket.MSG_PEEK)
        except BlockingIOError:
            connection.token.put()
            return
        except OSError:
            data = b""
        match = connection.head.match(data)
        if match is None or len(data) < sum(match):
            if self._may_wait(connection, data, match):
                connection.token.put()
            else:
                self._give_back(connection)
            return
        length, position = match
        body = memoryview(data)[position : position + length]
        if length > connection.approval.most or not _is_plain(body, connection.approval):
            self._give_back(connection)
            return
        if connection.until is not None:
            self._complete(connection)
        if self._read(connection, position + length):
            self._run(connection, body)
        else:
            self._give_back(connection)

    def _read(self, connection: _Connection, count: int) -> bool:
        """Reads what was looked at; if that is not what is there any more, ends the connection and returns False."""
        with contextlib.suppress(OSError):
            if connection.sock.recv_into(self._scratch, count) == count:
                return True
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
        return False

    def _may_wait(self, connection: _Connection, data: bytes, match: tuple[int, int] | None) -> bool:
        """Returns whether the rest of a frame may still come."""
        if not data or not (
            connection.head.may_follow(data) if match is None else match[0] <= connection.approval.most
        ):
            return False
        now = time.monotonic()
        if connection.until is None:
            connection.until = now + _INCOMPLETE
            self._incomplete.add(connection)
            self._poll.unregister(connection.sock)  # it can be read all the time
        return now < connection.until

    def _complete(self, connection: _Connection) -> None:
        connection.until = None
        self._incomplete.discard(connection)
        self._poll.register(connection.sock, select.POLLIN)

    def _run(self, connection: _Connection, body: memoryview) -> None:
        approval, page, slot = connection.approval, connection.page, connection.slot
        received = time.monotonic()
        now = page.worked = approval.ahead + received
        self._number = number = self._number + 1
        page.begin(slot, number, received, body[: wire.PREFIX_LENGTH])
        connection.token.put()
        params = {**approval.params, "now": now, "terms": (approval.idle, approval.ends, page.until)}
        result = self._runner.run_frame(number, params, body, received)
        page.worked = approval.ahead + time.monotonic()
        if result is None:
            self._drop(connection)
        elif not _is_small(result) or not connection.token.take():
            self._runner.pass_on(number, result)
            self._drop(connection)
        else:
            self._answer(connection, result)

    def _answer(self, connection: _Connection, result: FrameResult) -> None:
        parts = [connection.answers.head(result.length), *result.buffers]
        length = len(parts[0]) + result.length
        if len(parts) > _FEW:
            parts = [b"".join(parts)]
        connection.page.answer(connection.slot)
        try:
            sent = connection.sock.sendmsg(parts, (), _NOW)
        except BlockingIOError:
            sent = 0
        except OSError:  # the caller has left, which the server will see
            parts, sent = [], -1
        connection.page.end(connection.slot)
        if sent == length:
            connection.token.put()
        else:
            self._give_back(connection, b"".join(parts)[sent:])

    def _give_back(self, connection: _Connection, unsent: bytes = b"") -> None:
        """Gives a connection back; its token, which this side has, stays taken."""
        self._runner.give_back(connection.id, unsent)
        self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        del self._by_file[connection.sock.fileno()]
        if connection.until is None:
            self._poll.unregister(connection.sock)
        self._incomplete.discard(connection)
        connection.sock.close()
        connection.token.close()


def _is_plain(body: memoryview, approval: Approval) -> bool:
    """Returns whether a body is a frame of a client: such a frame is known again, and runs once."""
    try:
        prefix = wire.decode_prefix(body[: wire.PREFIX_LENGTH], max_header=approval.max_header)
    except wire.WireError:
        return False
    return bool(prefix.client) and prefix.total_length == len(body)


def _is_small(result: FrameResult) -> bool:
    """Returns whether an answer is sent from here: a frame without headers of its own."""
    return result.length <= MOST and result.content_type == wire.FRAME_TYPE and not result.facts.get("headers")
