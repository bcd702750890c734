"""A process serves connections itself: it reads a request, runs it and answers it, and the server sleeps.

A connection is lent. A frame or a request in JSON is served if all of it is there, with the head that the server has
approved. Everything else is the server's: nothing of it is read, and the connection is returned. While a request runs,
its token is free, so that the server can reclaim the connection; whoever takes the token then answers. Nothing here
waits for a caller. Calls of published functions wait for each other (`calls`), those of all connections together.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import teletape_wire as wire
from teletape_engine.errors import TeletapeError
from teletape_server.handlers.methods import Result
from teletape_server.ipc.heads import FRAME, MOST, Approval
from teletape_server.ipc.leases import Times
from teletape_server.ipc.page import Page
from teletape_server.ipc.token import Token
from teletape_server.worker.answers import Answers
from teletape_server.worker.lent.calls import LentCall, LentCalls
from teletape_server.worker.lent.connection import LentConnection

_PEEKED: Final = MOST + (16 << 10)  # bytes that are looked at: a head and a body
_INCOMPLETE: Final = 0.02  # seconds that the rest of a request may take, whose head and body may come apart
_FEW: Final = 64  # parts of an answer, more of which are joined before they are sent
_NOW: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class DirectConnections:
    """The connections that a process serves.

    Args:
        requests: The socket of the server's messages.
        run: Runs a request; see `Worker.run_lent`.
        answers: Sends messages to the server.
        has_version: Returns whether the process has loaded a version of a published function.

    Attributes:
        page: What it shows the server; set before the first connection comes.
    """

    def __init__(
        self,
        requests: socket.socket,
        run: Callable[..., Result],
        answers: Answers,
        has_version: Callable[[str], bool],
    ) -> None:
        self.page: Page
        self._run_request, self._answers, self._has_version = run, answers, has_version
        self._calls = LentCalls(run, answers, self._finish_call, self._drop)
        self._requests = requests.fileno()
        self._poll = select.epoll()  # another thread may add to it
        self._poll.register(self._requests, select.EPOLLIN)
        self._withheld = threading.Lock()  # held while a connection whose answer waits is answered or let go of
        self._by_file: dict[int, LentConnection] = {}
        self._incomplete: set[LentConnection] = set()
        self._number = 0
        self._scratch = bytearray(_PEEKED)

    def __len__(self) -> int:
        return len(self._by_file)

    def add(self, id: int, index: int, approval: Approval, times: Times, files: Sequence[int]) -> None:
        """Takes a connection that is lent.

        Args:
            id: Its number.
            index: Its place in the page.
            approval: What the server has approved.
            times: What answers say of the session's end, now.
            files: The file descriptors of the connection and its token; with fewer it is returned.
        """
        if len(files) < 2:  # this process has no more free descriptors, and the system has closed the others
            for file in files:
                os.close(file)
            self._answers.return_loan(id, b"")
            return
        connection, token = files
        sock = socket.socket(fileno=connection)
        sock.setblocking(False)
        self._by_file[connection] = LentConnection(id, self.page.slot(index), approval, times, sock, Token(token))
        self._poll.register(connection, select.EPOLLIN)

    def drop(self, id: int) -> None:
        """Closes a connection that the server has reclaimed."""
        with self._withheld:
            for connection in [*self._by_file.values()]:
                if connection.id == id and (connection.is_withheld or connection.is_waiting):
                    connection.is_gone = True
                elif connection.id == id:
                    self._drop(connection)

    def serve(self, seconds: float) -> bool:
        """Serves requests until the server sends a message; returns False if there was none for some `seconds`."""
        until = time.monotonic() + seconds
        has_message = False
        pause = 0.0 if self._calls else None  # until calls that wait are looked at again
        while not has_message and time.monotonic() < until:
            self.settle()
            wait = seconds if pause is None else pause
            events = self._poll.poll(min(wait, _INCOMPLETE) if self._incomplete else wait)
            for file, _ in events:
                if file == self._requests:
                    has_message = True
                elif (connection := self._by_file.get(file)) is not None:
                    self._serve(connection)
            for connection in [*self._incomplete]:
                if connection.until is not None and connection.until <= time.monotonic():
                    self._serve(connection)
            if not has_message:  # many may come, each with one more connection whose calls go with the others
                pause = self._calls.compute()
        return has_message

    def settle(self) -> None:
        """Lets out the answers that wait for others', if no request has come."""
        gate = self._answers.gate
        if gate is not None and not (gate.withholds and self._poll.poll(0)):
            gate.settle()

    def finish_waiting(self) -> None:
        """Answers the calls that wait: before a request of the server, which may be the end of what they need."""
        self._calls.compute_all()

    def _serve(self, connection: LentConnection) -> None:
        """Serves a request of a connection from which something can be read."""
        if connection.is_waiting or (connection.is_withheld and not self._has_left(connection)):
            return  # one request at a time
        if not connection.token.take():  # the server has reclaimed it
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
                self._return(connection)
            return
        length, position = match
        body = memoryview(data)[position : position + length]
        is_frame = connection.approval.label == FRAME
        prefix = _client_prefix(body, connection.approval) if is_frame else None
        is_known = self._has_version(connection.approval.params["version"]) if connection.approval.function else True
        if not 0 < length <= connection.approval.most or (is_frame and prefix is None) or not is_known:
            self._return(connection)
            return
        if connection.until is not None:
            self._complete(connection)
        if not self._read(connection, position + length):
            self._return(connection)
        elif connection.approval.function:
            received = time.monotonic()
            self._number = number = self._number + 1
            connection.slot.begin_call(number, received - connection.lent, body)
            connection.token.put()
            self._calls.add(LentCall(connection, number, body, received))
        else:
            self._run(connection, body, prefix)

    def _read(self, connection: LentConnection, count: int) -> bool:
        """Reads what was looked at; if that is not what is there any more, ends the connection and returns False."""
        try:
            if connection.sock.recv_into(self._scratch, count) == count:
                return True
        except OSError:
            pass
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
        return False

    def _may_wait(self, connection: LentConnection, data: bytes, match: tuple[int, int] | None) -> bool:
        """Returns whether the rest of a request may still come."""
        if not data or not (
            connection.head.may_follow(data) if match is None else match[0] <= connection.approval.most
        ):
            return False
        now = time.monotonic()
        if connection.until is None:
            connection.until = now + _INCOMPLETE
            self._incomplete.add(connection)
            self._poll.modify(
                connection.sock, select.EPOLLIN | select.EPOLLET
            )  # what is there can be read all the time
        return now < connection.until

    def _complete(self, connection: LentConnection) -> None:
        connection.until = None
        self._incomplete.discard(connection)
        self._poll.modify(connection.sock, select.EPOLLIN)

    def _stop_polling(self, connection: LentConnection) -> None:
        if connection.is_polled:
            self._poll.unregister(connection.sock)
        connection.is_polled = False

    def _go_on_polling(self, connection: LentConnection) -> None:
        connection.is_polled = True
        self._poll.register(connection.sock, select.EPOLLIN)

    def _run(self, connection: LentConnection, body: memoryview, prefix: wire.Prefix | None) -> None:
        received, approval = time.monotonic(), connection.approval
        self._number = number = self._number + 1
        connection.slot.begin(number, received - connection.lent, b"" if prefix is None else body[: wire.PREFIX_LENGTH])
        connection.token.put()
        now, *terms = connection.times
        params = {**approval.params, "now": now + received - connection.lent, "terms": terms}
        try:
            result = self._run_request(number, approval.method, params, approval.content_type, body, received, prefix)
        except TeletapeError as error:
            self._answers.refuse(-number, error)
            self._drop(connection)
            return
        connection.slot.note_work(time.monotonic() - connection.lent)
        if not _is_small(result, approval):
            self._answers.pass_on(-number, result)
            self._drop(connection)
        elif self._answers.may_leave():
            self._finish(connection, number, received, result)
        else:
            connection.is_withheld = True
            self._answers.leave_later(functools.partial(self._release, connection, number, received, result))

    def _finish_call(self, call: LentCall, result: Result) -> None:
        """Answers a call that was computed."""
        connection = call.connection
        connection.slot.note_work(time.monotonic() - connection.lent)
        if _is_small(result, connection.approval):
            self._finish(connection, call.number, call.received, result)
        else:
            self._answers.pass_on(-call.number, result)
            self._drop(connection)

    def _release(self, connection: LentConnection, number: int, received: float, result: Result) -> None:
        """Answers a request whose answer had to wait, in the thread that knows that it may leave."""
        with self._withheld:
            self._finish(connection, number, received, result)
            connection.is_withheld = False
            if not connection.is_polled and connection.sock.fileno() >= 0:
                self._go_on_polling(connection)

    def _has_left(self, connection: LentConnection) -> bool:
        """Returns whether the answer that was withheld has left; if not, `_release` looks at what has come."""
        with self._withheld:  # it may be leaving
            if connection.is_withheld:
                self._stop_polling(connection)
            return not connection.is_withheld and connection.sock.fileno() >= 0

    def _finish(self, connection: LentConnection, number: int, received: float, result: Result) -> None:
        if connection.is_gone or not connection.token.take():
            self._answers.pass_on(-number, result)
            self._drop(connection)
        else:
            connection.slot.note_lent(time.monotonic() - received)
            if connection.approval.function:
                connection.slot.note_computed(*result.facts["computed"])
            self._answer(connection, result)

    def _answer(self, connection: LentConnection, result: Result) -> None:
        parts = [connection.answers.head(result.length), *result.buffers]
        length = len(parts[0]) + result.length
        if len(parts) > _FEW:
            parts = [b"".join(parts)]
        connection.slot.answer()
        try:
            sent = connection.sock.sendmsg(parts, (), _NOW)
        except BlockingIOError:
            sent = 0
        except OSError:  # the caller has left, which the server will see
            parts, sent = [], -1
        connection.slot.end()
        if sent == length:
            connection.token.put()
        else:
            self._return(connection, b"".join(parts)[sent:])

    def _return(self, connection: LentConnection, unsent: bytes = b"") -> None:
        """Returns a connection to the server, with its token taken, so that it is the server's."""
        self._answers.return_loan(connection.id, unsent)
        self._drop(connection)

    def _drop(self, connection: LentConnection) -> None:
        del self._by_file[connection.sock.fileno()]
        self._stop_polling(connection)
        self._incomplete.discard(connection)
        connection.sock.close()
        connection.token.close()


def _client_prefix(frame: memoryview, approval: Approval) -> wire.Prefix | None:
    """Returns the prefix of a frame that is served here: a client's, which is known again, and runs once."""
    try:
        prefix = wire.decode_prefix(frame[: wire.PREFIX_LENGTH], max_header=approval.max_header)
    except wire.WireError:
        return None
    return prefix if prefix.client and prefix.total_length == len(frame) else None


def _is_small(result: Result, approval: Approval) -> bool:
    """Returns whether an answer is sent from here: of the request's type, and with the approved head."""
    facts = result.facts
    has_own_head = result.content_type != approval.answer_type or facts.get("headers") or facts.get("status")
    return result.length <= approval.most_of_answer and not has_own_head
