"""One request that the application answers, by ASGI: its body is passed on as it arrives, its answer as it is made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol
from urllib.parse import unquote

import httptools

from teletape_server.connections.reader import Head, MalformedRequestError
from teletape_server.connections.streams import Flow, answer_head
from teletape_server.guard import new_request_id
from teletape_server.identity.keys import Keys
from teletape_server.identity.principals import Principal
from teletape_server.problems import problem_response

_MOST_UNREAD: Final = 64 << 10  # bytes of a body that the application has not taken; then no more are received

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

log = logging.getLogger("teletape")


class Caller(Protocol):
    """What a cycle needs of its connection."""

    transport: asyncio.Transport
    flow: Flow

    def receive_more(self) -> None:
        """Receives again, if more of the body may come."""

    def answer_ended(self) -> None:
        """Goes on with the next request: the answer is complete."""

    def close_after_answer(self) -> None:
        """Closes the connection instead of the rest of an answer."""


def scope_of(
    head: Head, *, client: tuple[str, int] | None, server: tuple[str, int | None] | None, scheme: str
) -> Message:
    """Returns the ASGI scope of a request.

    Raises:
        MalformedRequestError: Its URL is none.
    """
    try:
        url = httptools.parse_url(head.url)
        path = url.path.decode("ascii")
    except (httptools.HttpParserError, AttributeError, UnicodeDecodeError):  # it may have no path
        raise MalformedRequestError from None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.version,
        "method": head.method.decode("ascii"),
        "scheme": scheme,
        "path": unquote(path) if "%" in path else path,
        "raw_path": url.path,
        "query_string": url.query or b"",
        "root_path": "",
        "headers": head.headers,
        "client": client,
        "server": server,
        "state": {},
    }


class Cycle:
    """A request and its answer.

    Args:
        connection: Receives the one and sends the other.
        head: The request's head.
        scope: See `scope_of`.

    Attributes:
        response_started, response_complete: How much of its response is written.
        disconnected: Whether its caller has left.
        keep_alive: Whether the connection stays open after the response.
    """

    def __init__(self, connection: Caller, head: Head, scope: Message) -> None:
        self.response_started = self.response_complete = self.disconnected = False
        self.keep_alive = head.keep_alive
        self._connection, self._scope = connection, scope
        # Whether the caller sends no body before a 100 Continue.
        self._asks = any(name == b"expect" and value.lower() == b"100-continue" for name, value in head.headers)
        self._body: list[bytes] = []
        self._unread = 0
        self._is_whole = False
        self._came = asyncio.Event()  # bytes of the body, its end, the answer's end, or the end of the connection
        self._is_chunked = False
        self._left: int | None = None  # bytes that the answer still has to have; None: it does not say how many

    # -------------------------------------------------------------------------------------------------------- receiving
    def receive(self, body: bytes | memoryview) -> None:
        """Takes the next part of the body."""
        if not self.response_complete:
            self._body.append(bytes(body))
            self._unread += len(body)
            if self._unread > _MOST_UNREAD:
                self._connection.flow.pause_reading()
            self._came.set()

    def end_of_body(self) -> None:
        """Notes that the body is whole."""
        self._is_whole = True
        self._came.set()

    def abandon(self) -> None:
        """Lets the application know that the caller has left."""
        self.disconnected = True
        self._came.set()

    # -------------------------------------------------------------------------------------------------------- answering
    def is_for_valid(self, keys: Keys) -> bool:
        """Returns whether its answer, if it has begun, goes to a caller whose key is still valid."""
        principal: Principal | None = self._scope["state"].get("principal")
        return not self.response_started or principal is None or keys.is_valid(principal)

    async def run(self, application: Application) -> None:
        """Lets the application answer."""
        try:
            await application(self._scope, self._receive, self._send)
        except asyncio.CancelledError:
            self._close()
            raise
        except BaseException:
            log.exception("the application failed")
            if self.response_started or self.disconnected:
                self._close()
            else:
                await self._send_failure()
        else:
            if not self.response_complete and not self.disconnected:
                log.error("the application returned without a whole answer to %(method)s %(path)s", self._scope)
                self._close()

    def _close(self) -> None:
        if not self.disconnected:
            self._connection.close_after_answer()

    async def _send_failure(self) -> None:
        self.keep_alive = False
        response = problem_response("internal", "the server failed", request_id=new_request_id())
        await self._send(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )
        await self._send({"type": "http.response.body", "body": response.body})

    async def _receive(self) -> Message:
        if self._asks and not self._connection.transport.is_closing():
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._asks = False
        if not self.disconnected and not self.response_complete:
            self._connection.receive_more()
            await self._came.wait()
            self._came.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self._body, self._unread = b"".join(self._body), [], 0
        return {"type": "http.request", "body": body, "more_body": not self._is_whole}

    async def _send(self, message: Message) -> None:
        if self._connection.flow.write_paused and not self.disconnected:
            await self._connection.flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"the application sent {message['type']}: due was {expected}, once")
        if self.response_started:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))
        else:
            self._send_head(message["status"], message.get("headers", ()))

    def _send_head(self, status: int, headers: Any) -> None:
        named = {name.lower(): value.lower() for name, value in headers}
        more = []
        if b"close" in named.get(b"connection", b""):
            self.keep_alive = False
        elif not self.keep_alive:
            more.append((b"connection", b"close"))
        if self._scope["method"] == "HEAD" or status in (204, 304):
            self._left = 0
        elif b"content-length" in named:
            self._left = int(named[b"content-length"])
        elif self._scope["http_version"] != "1.0":
            self._is_chunked = True
            if b"transfer-encoding" not in named:
                more.append((b"transfer-encoding", b"chunked"))
        head = answer_head(status, [*headers, *more])
        self.response_started, self._asks = True, False
        self._connection.transport.write(head)

    def _send_body(self, body: bytes | memoryview, *, is_last: bool) -> None:
        write = self._connection.transport.write
        if self._scope["method"] == "HEAD":
            body = b""
        if self._is_chunked:
            end = b"0\r\n\r\n" if is_last else b""
            write(b"".join((b"%x\r\n" % len(body), body, b"\r\n", end)) if body else end)
        else:
            if self._left is not None:
                self._left -= len(body)
                if self._left < 0 or (is_last and self._left):
                    raise RuntimeError("an answer has not as many bytes as its Content-Length says")
            write(body)
        if is_last:
            self.response_complete = True
            self._came.set()
            self._connection.answer_ended()
