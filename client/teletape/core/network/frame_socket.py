"""Frames over a separate socket: HTTP/1.1 without encryption, to a server that needs no proxy.

A request is one write of a head, which is made once for each path, and of the frame's buffers. The answer is received
into memory of its size. A small frame takes a fifth of httpx's time, a large one half of it. An answer of another form
than a status line with a Content-Length (in chunks, without a length, after a 1xx) is parsed by h11.
"""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, NoReturn, TypeAlias

import h11
import httpx

from teletape.core.network import answer_head
from teletape.core.network.address import Endpoint
from teletape.core.network.answer_head import END, AnswerHead
from teletape.core.network.options import CONNECT_TIMEOUT
from teletape.core.program import host_memory

Buffer: TypeAlias = bytes | bytearray | memoryview

_MAX_HEAD: Final = 64 << 10  #: The largest number of bytes of an answer's head.
_JOINED: Final = 64 << 10  #: A request up to this length is joined: the copy is quicker than several buffers.
_PARTS: Final = 64  #: The largest number of buffers in one write.
PART_TIMEOUT: Final = 10.0  #: Seconds in which the peer must take a part of a request.
_GATHERS: Final = hasattr(socket.socket, "sendmsg")


class Response(NamedTuple):
    """The response to a request.

    Attributes:
        status: The HTTP status.
        retry_after: The header of that name, or None.
        body: The content, as received.
        set_cookie: Whether it has a header of that name.
        memory: Bytes of the content in the shared memory of the request; None: there are none.
        location: The header of that name, or None.
        request_id: The id of the request in the server's log, or None.
        warning: What the server warns of, or None.
    """

    status: int
    retry_after: str | None
    body: Buffer
    set_cookie: bool = False
    memory: int | None = None
    location: str | None = None
    request_id: str | None = None
    warning: str | None = None


class NotSentError(httpx.ReadError):
    """Nothing was sent: there is no open connection, since the server has closed it between two requests."""


class FrameSocket:
    """The connection for frames: at most one is kept open between two requests.

    One thread at a time uses it. After an interrupt in any line the connection is not used again.

    Args:
        endpoint: The server's address.
        connect_seconds: The time limit for opening a connection.

    Attributes:
        idle_link: The connection that is not in use and, as far as this side knows, open; or None.
    """

    def __init__(self, endpoint: Endpoint, connect_seconds: float = CONNECT_TIMEOUT) -> None:
        self._endpoint, self._connect_seconds = endpoint, connect_seconds
        self.idle_link: _Link | None = None

    def post(self, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float, more: bytes = b"") -> Response:
        """Sends a request and waits for its answer. If the server has closed the idle connection, a new one is opened.

        Args:
            head: As `request_head` returns it.
            buffers: The body.
            length: Its bytes.
            seconds: How long it waits for a byte of the answer.
            more: Further headers, each after a line end.

        Raises:
            httpx.TransportError: There was no answer.
        """
        link = self._take()
        if link is not None:
            try:
                return self._answer(link, head, buffers, length, seconds, more)
            except httpx.TransportError as error:
                if link.received or isinstance(error, httpx.TimeoutException):
                    raise
        try:
            link = _Link(self._endpoint.connect(self._connect_seconds))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from None
        except OSError as error:
            raise httpx.ConnectError(str(error)) from None
        return self._answer(link, head, buffers, length, seconds, more)

    def _answer(
        self, link: _Link, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float, more: bytes
    ) -> Response:
        try:
            link.send(head, buffers, length, more)
        except BaseException:
            link.close()
            raise
        return self._wait_on(link, seconds)

    def post_at_once(
        self, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float, more: bytes = b""
    ) -> Response | Callable[[float], Response]:
        """Sends a request over the open connection, and waits for its answer for a short time; arguments as of `post`.

        Returns:
            The answer; if there was none in that time, a function that goes on waiting.

        Raises:
            httpx.TransportError: There was no answer.
        """
        link: _Link | None = None
        try:
            link = self._take()
            if link is None:
                raise NotSentError("the server has closed the connection")
            link.send(head, buffers, length, more)
            try:
                response = link.receive(seconds)
            except httpx.ReadTimeout:
                waiting = link
                return lambda seconds: self._wait_on(waiting, seconds)
            self._keep(link)
            return response
        except BaseException:
            if link is not None:
                link.close()
            raise

    def _wait_on(self, link: _Link, seconds: float) -> Response:
        try:
            response = link.receive(seconds)
            self._keep(link)
            return response
        except BaseException:
            link.close()
            raise

    def _keep(self, link: _Link) -> None:
        """Stores a connection after its answer, if it can be reused."""
        if not link.reusable:
            link.close()
            return
        before, self.idle_link = self.idle_link, link
        if before is not None:
            before.close()

    def _take(self) -> _Link | None:
        link, self.idle_link = self.idle_link, None  # after an interrupt nothing uses it
        if link is not None and link.readable(0):  # the server has closed it, or has sent something without a request
            link.close()
            return None
        return link

    def close(self) -> None:
        """Closes the socket."""
        link, self.idle_link = self.idle_link, None
        if link is not None:
            link.close()


class _Link:
    """An open connection, and the received part of the answer on it.

    Its socket never blocks: there is one call of the system to send, one to wait, and one to receive.

    Attributes:
        received: The number of received bytes of the answer.
        reusable: Whether the answer is complete and the server keeps the connection open.
        readable: Waits at most that many milliseconds, and returns a true value if there is something to receive.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self.readable = _waiter(connection)
        self._memory = bytearray(_MAX_HEAD)
        self._view = memoryview(self._memory)
        self._pattern: re.Pattern[bytes] | None = None  # the pattern of the last answer's head
        self._begin()

    def _begin(self) -> None:
        self.received, self.reusable = 0, False
        self._head: AnswerHead | None = None
        self._request_id = b""
        self._body: memoryview | None = None
        self._filled = 0
        self._reader: h11.Connection | None = None
        self._parts: bytearray
        self._status: int
        self._headers: dict[bytes, bytes]

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    __del__ = close  # after an interrupt nothing else closes it

    # --------------------------------------------------------------------------------------------------------- sending
    def send(self, head: bytes, buffers: Sequence[Buffer], length: int, more: bytes = b"") -> None:
        """Sends a request. If the server answers before it has taken all of it, the rest is not sent.

        Raises:
            httpx.WriteTimeout: The server receives nothing.
            httpx.WriteError: The connection is broken, and no answer has come.
        """
        self._begin()
        start = b"%b%d%b%b" % (head, length, more, END)
        try:
            if length <= _JOINED:
                joined = b"".join((start, *buffers))
                try:
                    count = self._socket.send(joined)
                except BlockingIOError:
                    count = 0
                if count < len(joined):
                    _send_parts(self._socket, [memoryview(joined)[count:]])
            else:
                _send_parts(self._socket, [start, *buffers])
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from None
        except OSError as error:
            try:
                came = self._receive_into(self._view, 0)
            except OSError:
                came = 0
            if not came:
                raise httpx.WriteError(str(error)) from None

    # ------------------------------------------------------------------------------------------------------- receiving
    def receive(self, seconds: float) -> Response:
        """Returns the answer. After a timeout it can be called again to go on.

        Raises:
            httpx.ReadTimeout: No byte came in that time.
            httpx.ReadError: The connection broke.
            httpx.RemoteProtocolError: The connection was closed before the end of the answer, or this is no answer.
        """
        try:
            if self._reader is None and self._body is None:
                self._receive_head(seconds)
            if self._reader is not None:
                return self._receive_by_h11(self._reader, seconds)
            body = self._body
            assert body is not None
            while self._filled < body.nbytes:
                count = self._receive_into(body[self._filled :], seconds)
                self._filled += count or self._ended()
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from None
        except OSError as error:
            raise httpx.ReadError(str(error)) from None
        head = self._head
        if head is None:  # it has the usual form
            self.reusable = True
            return Response(200, None, body, request_id=self._request_id.strip(b" \t").decode("latin-1") or None)
        self.reusable = head.keeps_open
        more = head.set_cookie, head.memory, head.location, head.request_id, head.warning
        return Response(head.status, head.retry_after, body, *more)

    def _receive_into(self, view: memoryview, seconds: float) -> int:
        """Returns the number of bytes received; 0: the server has closed the connection."""
        while True:
            if not self.readable(seconds * 1e3):
                raise TimeoutError("timed out")
            try:
                count = self._socket.recv_into(view)
            except BlockingIOError:  # it was reported as readable, but nothing is there any more
                continue
            self.received += count
            return count

    def _ended(self) -> NoReturn:
        raise httpx.RemoteProtocolError(f"the server closed the connection after {self.received} bytes of its answer")

    def _receive_head(self, seconds: float) -> None:
        pattern = self._pattern
        while True:
            if self.received:
                match = None if pattern is None else pattern.match(self._memory, 0, self.received)
                if match is not None:
                    length, self._request_id, body_at = int(match["length"]), match["request_id"], match.end()
                    break
                end = self._memory.find(END, 0, self.received)
                if end >= 0:
                    text, body_at = bytes(self._view[:end]), end + len(END)
                    head = self._head = answer_head.parse(text)
                    self._pattern = None if head is None else answer_head.pattern_of(text, head)
                    length = -1 if head is None else head.length
                    break
                if self.received == _MAX_HEAD:
                    raise httpx.RemoteProtocolError(f"the head of the answer has more than {_MAX_HEAD} bytes")
            if not self._receive_into(self._view[self.received :] if self.received else self._view, seconds):
                self._ended()
        came = self.received - body_at
        if came > length:
            self._reader = _reader()
            self._parts, self._status, self._headers = bytearray(), 0, {}
            self._reader.receive_data(bytes(self._view[: self.received]))
        elif came == length:
            self._body, self._filled = memoryview(bytes(self._view[body_at : self.received])), came
        else:
            body = host_memory.empty(length).data
            body[:came] = self._view[body_at : self.received]
            self._body, self._filled = body, came

    def _receive_by_h11(self, reader: h11.Connection, seconds: float) -> Response:
        try:
            while True:
                event = reader.next_event()
                if event is h11.NEED_DATA:
                    count = self._receive_into(self._view, seconds)
                    reader.receive_data(bytes(self._view[:count]))
                elif isinstance(event, h11.Response):
                    self._status, self._headers = event.status_code, dict(event.headers)
                elif isinstance(event, h11.Data):
                    self._parts += event.data
                elif isinstance(event, h11.EndOfMessage):
                    break
                elif isinstance(event, h11.ConnectionClosed):
                    raise httpx.RemoteProtocolError("the server closed the connection without an answer")
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from None
        self.reusable = reader.our_state is reader.their_state is h11.DONE and reader.trailing_data == (b"", False)
        names = (b"retry-after", b"location", b"x-request-id", answer_head.WARNING)
        retry_after, *more = map(answer_head.text_of, map(self._headers.get, names))
        return Response(self._status, retry_after, self._parts, b"set-cookie" in self._headers, None, *more)


def request_head(request: httpx.Request) -> bytes:
    """Returns the head of a POST up to the value of its Content-Length, with the headers of httpx.

    Raises:
        httpx.LocalProtocolError: A header's value cannot be sent.
    """
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    headers.append((b"Content-Length", b"0"))
    try:
        event = h11.Request(method=request.method, target=request.url.raw_path, headers=headers)
        head = h11.Connection(h11.CLIENT).send(event)
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from None
    assert head is not None
    return head.removesuffix(b"0" + END)


def _reader() -> h11.Connection:
    """Returns a reader of the answer to a POST."""
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
    reader.send(h11.Request(method="POST", target=b"/", headers=[(b"Host", b"_"), (b"Content-Length", b"0")]))
    reader.send(h11.EndOfMessage())
    return reader


def _send_parts(connection: socket.socket, buffers: Sequence[Buffer]) -> None:
    """Sends buffers one after the other, several with one call where the system can (not on Windows).

    Raises:
        TimeoutError: The peer took nothing in the time limit, which is counted anew for each piece.
    """
    parts = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    while parts:
        try:
            count = connection.sendmsg(parts[:_PARTS]) if _GATHERS else connection.send(parts[0])
        except BlockingIOError:
            if not _waiter(connection, for_room=True)(PART_TIMEOUT * 1e3):
                raise TimeoutError("timed out") from None
            continue
        while parts and count >= parts[0].nbytes:
            count -= parts.pop(0).nbytes
        if count:
            parts[0] = parts[0][count:]


def _waiter(connection: socket.socket, *, for_room: bool = False) -> Callable[[float], object]:
    """Returns a function that polls the socket for some milliseconds, and returns whether it is ready."""
    poll = getattr(select, "poll", None)
    if poll is None:  # on Windows
        either = ([], [connection]) if for_room else ([connection], [])
        return lambda milliseconds: any(select.select(*either, [], milliseconds / 1e3))
    waiting = poll()
    waiting.register(connection, select.POLLOUT if for_room else select.POLLIN)
    return waiting.poll  # type: ignore[no-any-return]  # of a module with other names on other systems
