"""Frames over a socket of their own: HTTP/1.1 in the clear, to a server that is reached without a proxy.

A request is one write of a head that is made once for each path, and of the frame's buffers. The answer is received
into memory of its size. For a small frame this takes a fifth of httpx's time, for a large one half of it. An answer of
another form than a status line with a Content-Length (in chunks, without a length, after a 1xx) is read by h11.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import h11
import httpx

from teletape import host_memory
from teletape.network.address import Endpoint

Buffer: TypeAlias = bytes | bytearray | memoryview

_CONNECT_LIMIT: Final = 10.0  #: Seconds in which a connection must open, and a part of a request be taken.
_MAX_HEAD: Final = 64 << 10  #: Bytes of an answer's head.
_JOINED: Final = 64 << 10  #: A request up to this length is joined: the copy takes less time than several parts.
_PARTS: Final = 64  #: Buffers of one write.
_GATHERS: Final = hasattr(socket.socket, "sendmsg")
_END: Final = b"\r\n\r\n"
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"


class Response(NamedTuple):
    """What a request is answered by.

    Attributes:
        status: The HTTP status.
        retry_after: The header of that name, or None.
        body: The content, as received.
        set_cookie: Whether it has a header of that name.
    """

    status: int
    retry_after: str | None
    body: Buffer
    set_cookie: bool = False


class FrameSocket:
    """The connection for frames: at most one is kept open between two requests.

    One thread at a time uses it. After an interrupt in any line the connection is not used again.

    Args:
        endpoint: Where the server is.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._kept: _Link | None = None

    def post(self, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float) -> Response:
        """Sends a request and waits for its answer. A connection that the server has closed meanwhile is replaced.

        Args:
            head: As `request_head` returns it.
            buffers: The body.
            length: Its bytes.
            seconds: How long it waits for a byte of the answer.

        Raises:
            httpx.TransportError: There was no answer.
        """
        link = self._take()
        if link is not None:
            try:
                return self._answer(link, head, buffers, length, seconds)
            except httpx.TransportError as error:
                if link.received or isinstance(error, httpx.TimeoutException):
                    raise
        try:
            link = _Link(self._endpoint.connect(_CONNECT_LIMIT))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from None
        except OSError as error:
            raise httpx.ConnectError(str(error)) from None
        return self._answer(link, head, buffers, length, seconds)

    def _answer(self, link: _Link, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float) -> Response:
        try:
            link.send(head, buffers, length)
            return self._received(link, seconds)
        except BaseException:
            link.close()
            raise

    @property
    def open(self) -> bool:
        """Whether a connection is open, as far as this side knows."""
        return self._kept is not None

    def post_at_once(
        self, head: bytes, buffers: Sequence[Buffer], length: int, seconds: float
    ) -> Response | Callable[[float], Response]:
        """Sends a request over the open connection, and waits for its answer for a short time.

        Args:
            head: As `request_head` returns it.
            buffers: The body.
            length: Its bytes.
            seconds: How long it waits for a byte of the answer.

        Returns:
            The answer, or if there was none in that time the function that goes on to wait.

        Raises:
            httpx.TransportError: There was no answer.
        """
        link: _Link | None = None
        try:
            link = self._take()
            if link is None:
                raise httpx.ReadError("the server has closed the connection")
            link.send(head, buffers, length)
            try:
                return self._received(link, seconds)
            except httpx.ReadTimeout:
                waiting = link
            return lambda seconds: self._wait_on(waiting, seconds)
        except BaseException:
            if link is not None:
                link.close()
            raise

    def _wait_on(self, link: _Link, seconds: float) -> Response:
        try:
            return self._received(link, seconds)
        except BaseException:
            link.close()
            raise

    def _received(self, link: _Link, seconds: float) -> Response:
        response = link.receive(seconds)
        if link.reusable:
            before, self._kept = self._kept, link
            if before is not None:
                before.close()
        else:
            link.close()
        return response

    def _take(self) -> _Link | None:
        link, self._kept = self._kept, None  # after an interrupt nothing uses it
        if link is not None and not link.idle():
            link.close()
            return None
        return link

    def close(self) -> None:
        """Closes the socket."""
        link, self._kept = self._kept, None
        if link is not None:
            link.close()


class _Link:
    """An open connection, and the answer on it as far as it has come.

    Attributes:
        received: The number of bytes of the answer that have come.
        reusable: Whether the answer is complete and the server keeps the connection open.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._memory = bytearray(_MAX_HEAD)
        self._view = memoryview(self._memory)
        self._begin()

    def _begin(self) -> None:
        self.received, self.reusable = 0, False
        self._status, self._headers = 0, dict[bytes, bytes]()
        self._body: memoryview | None = None
        self._filled = 0
        self._reader: h11.Connection | None = None
        self._parts = bytearray()

    def idle(self) -> bool:
        """Whether the connection is open, and nothing has come without a request."""
        try:
            self._socket.setblocking(False)
            self._socket.recv(1)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    __del__ = close  # after an interrupt nothing else does

    # --------------------------------------------------------------------------------------------------------- sending
    def send(self, head: bytes, buffers: Sequence[Buffer], length: int) -> None:
        """Sends a request. If the server answers before it has taken all of it, the rest is not sent.

        Raises:
            httpx.WriteTimeout: The server takes nothing.
            httpx.WriteError: The connection is broken, and no answer has come.
        """
        self._begin()
        start = b"%b%d%b" % (head, length, _END)
        self._socket.settimeout(_CONNECT_LIMIT)
        try:
            if length <= _JOINED:
                self._socket.sendall(b"".join((start, *buffers)))
            else:
                _send_parts(self._socket, [start, *buffers])
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from None
        except OSError as error:
            try:
                self._socket.settimeout(0)
                self._receive_into(self._view)
            except (OSError, httpx.TransportError):
                raise httpx.WriteError(str(error)) from None

    # ------------------------------------------------------------------------------------------------------- receiving
    def receive(self, seconds: float) -> Response:
        """Returns the answer. After a timeout it can be called again, and goes on.

        Raises:
            httpx.ReadTimeout: No byte came in that time.
            httpx.ReadError: The connection broke.
            httpx.RemoteProtocolError: The connection was closed before the end of the answer, or this is no answer.
        """
        try:
            self._socket.settimeout(seconds)
            if self._reader is None and self._body is None:
                self._receive_head()
            if self._reader is not None:
                return self._receive_by_h11(self._reader)
            body = self._body
            assert body is not None
            while self._filled < body.nbytes:
                self._filled += self._receive_into(body[self._filled :])
        except (TimeoutError, BlockingIOError) as error:
            raise httpx.ReadTimeout(str(error)) from None
        except OSError as error:
            raise httpx.ReadError(str(error)) from None
        self.reusable = b"close" not in self._headers.get(b"connection", b"").lower()
        return self._response(body)

    def _response(self, body: Buffer) -> Response:
        retry_after = self._headers.get(b"retry-after")
        text = None if retry_after is None else retry_after.decode("latin-1")
        return Response(self._status, text, body, b"set-cookie" in self._headers)

    def _receive_into(self, view: memoryview) -> int:
        count = self._socket.recv_into(view)
        if not count:
            raise httpx.RemoteProtocolError(
                f"the server closed the connection after {self.received} bytes of its answer"
            )
        self.received += count
        return count

    def _receive_head(self) -> None:
        while (end := self._memory.find(_END, 0, self.received)) < 0:
            if self.received == _MAX_HEAD:
                raise httpx.RemoteProtocolError(f"the head of the answer has more than {_MAX_HEAD} bytes")
            self._receive_into(self._view[self.received :])
        body_at = end + len(_END)
        length = self._parse(bytes(self._view[:end]))
        if length is None or self.received - body_at > length:
            self._reader = _reader()
            self._reader.receive_data(bytes(self._view[: self.received]))
            return
        start = self._view[body_at : self.received]
        if len(start) == length:
            body = memoryview(bytes(start))
        else:
            body = host_memory.empty(length).data
            body[: len(start)] = start
        self._body, self._filled = body, len(start)

    def _parse(self, head: bytes) -> int | None:
        """Reads a head in the form that servers send; returns the body's length, or None: h11 is to read it."""
        first, *lines = head.split(b"\r\n")
        status = first[9:12]
        if first[:9] != b"HTTP/1.1 " or first[12:13] not in (b" ", b"") or not status.isdigit() or b"\0" in head:
            return None
        if not head.count(b"\r") == head.count(b"\n") == len(lines):
            return None
        headers: dict[bytes, bytes] = {}
        for line in lines:
            name, colon, value = line.partition(b":")
            name = name.lower()
            if not (name and colon) or name.translate(None, _TOKEN) or name in headers:
                return None
            headers[name] = value.strip(b" \t")
        length = headers.get(b"content-length", b"")
        if status[:1] == b"1" or status in (b"204", b"304") or b"transfer-encoding" in headers:
            return None
        self._status, self._headers = int(status), headers
        return int(length) if length.isdigit() and len(length) <= 15 else None

    def _receive_by_h11(self, reader: h11.Connection) -> Response:
        try:
            while True:
                event = reader.next_event()
                if event is h11.NEED_DATA:
                    data = self._socket.recv(_MAX_HEAD)
                    self.received += len(data)
                    reader.receive_data(data)
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
        return self._response(self._parts)


def request_head(request: httpx.Request) -> bytes:
    """Returns the head of a POST up to the value of its Content-Length, with the headers that httpx would send.

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
    return head.removesuffix(b"0" + _END)


def _reader() -> h11.Connection:
    """Returns a reader of the answer to a POST."""
    reader = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD)
    reader.send(h11.Request(method="POST", target=b"/", headers=[(b"Host", b"_"), (b"Content-Length", b"0")]))
    reader.send(h11.EndOfMessage())
    return reader


def _send_parts(connection: socket.socket, buffers: Sequence[Buffer]) -> None:
    """Sends buffers one after the other, several with one call where the system can (not on Windows)."""
    parts = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    if not _GATHERS:
        for part in parts:
            while part:  # `sendall` would give all of a part the time that each piece of it has
                part = part[connection.send(part) :]
        return
    while parts:
        count = connection.sendmsg(parts[:_PARTS])
        while parts and count >= parts[0].nbytes:
            count -= parts.pop(0).nbytes
        if count:
            parts[0] = parts[0][count:]
