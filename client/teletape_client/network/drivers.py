"""The drivers: they perform the actions of an exchange, one in the caller's thread, the other in its event loop.

Both have the same methods: one waits, the other awaits.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from teletape_client.network.actions import Action, Begun, Close, Exchange, Pause, ReadMore, ReadRest, Send
from teletape_client.network.events import Event
from teletape_client.network.exchange import FAREWELL
from teletape_client.network.known import Known


class Connection(NamedTuple):
    """The connection to a server from threads.

    Attributes:
        http: The HTTP client.
        url: The server's address.
        headers: The headers of each request.
        known: The known facts about questions.
        is_own: Whether the HTTP client is the client's own, so that its headers stay as they are.
    """

    http: httpx.Client
    url: str
    headers: Mapping[str, str]
    known: Known
    is_own: bool


class AsyncConnection(NamedTuple):
    """The connection to a server from event loops; its members as in `Connection`."""

    http: httpx.AsyncClient
    url: str
    headers: Mapping[str, str]
    known: Known
    is_own: bool


def _request(connection: Connection | AsyncConnection, action: Send) -> httpx.Request:
    """Returns a request as httpx builds it; of a plain one whose head was there before only the body is new."""
    http, url, headers, known, is_own = connection
    if not (action.is_plain and is_own) or http.cookies:
        own = {**headers, **action.headers}
        place = url + action.path
        return http.build_request(action.method, place, headers=own, content=action.content, timeout=action.timeout)
    head = known.heads.get(action.path)
    if head is None or head[0] != action.headers:
        built = http.build_request(action.method, url + action.path, headers={**headers, **action.headers})
        del built.headers["Content-Length"]  # of no body
        head = known.note_head(action.path, action.headers, built)
    extensions = {"timeout": action.timeout.as_dict()}
    return httpx.Request(
        action.method, head[1].url, headers=head[1].headers, content=action.content, extensions=extensions
    )


class Left(BaseException):
    """Thrown into an exchange when nothing waits for its answer any more."""


class Driver:
    """Performs one exchange in the caller's thread."""

    def __init__(self, connection: Connection, exchange: Exchange) -> None:
        self._connection, self._exchange = connection, exchange
        self._pieces: Iterator[bytes] | None = None
        self.has_ended = False
        self.value: Any = None  #: The exchange's result.

    def result(self, on_event: Callable[[Event], object] | None = None) -> Any:
        """Performs the exchange to its end, and returns its result."""
        event = self.next_event()
        while event is not None:
            error = None
            if on_event is not None and isinstance(event, Event):
                try:
                    on_event(event)
                except BaseException as raised:
                    error = raised
            event = self.next_event(error)
        return self.value

    def next_event(self, error: BaseException | None = None) -> Event | Begun | None:
        """Performs the exchange to its next event; None: it has ended. An error is first thrown into it."""
        if self.has_ended:
            return None
        result: Any = None
        try:
            while True:
                action = self._exchange.send(result) if error is None else self._exchange.throw(error)
                if isinstance(action, Event | Begun):
                    return action
                result = error = None
                try:
                    result = self._perform(action)
                except BaseException as raised:
                    error = raised
        except StopIteration as end:
            self.has_ended, self.value = True, end.value
            return None
        except BaseException:
            self.has_ended = True
            raise

    def leave(self) -> None:
        """Ends the exchange before its end: the request is cancelled on the server."""
        try:
            while self.next_event(Left()) is not None:
                continue
        except Left:
            return

    def _perform(self, action: Action) -> Any:
        if isinstance(action, Send):
            request = _request(self._connection, action)
            return self._connection.http.send(request, stream=action.is_streamed, follow_redirects=False)
        if isinstance(action, Pause):
            time.sleep(action.seconds)
        elif isinstance(action, ReadMore):
            if self._pieces is None:
                self._pieces = action.response.iter_bytes()
            return next(self._pieces, None)
        elif isinstance(action, ReadRest):
            action.response.read()
        elif isinstance(action, Close):
            self._pieces = None
            action.response.close()
        return None


class AsyncDriver:
    """Performs one exchange in the caller's event loop, asyncio's or trio's."""

    def __init__(self, connection: AsyncConnection, exchange: Exchange) -> None:
        self._connection, self._exchange = connection, exchange
        self._pieces: AsyncIterator[bytes] | None = None
        self.has_ended = False
        self.value: Any = None  #: The exchange's result.

    async def result(self, on_event: Callable[[Event], object] | None = None) -> Any:
        """Performs the exchange to its end, and returns its result."""
        event = await self.next_event()
        while event is not None:
            error = None
            if on_event is not None and isinstance(event, Event):
                try:
                    on_event(event)
                except BaseException as raised:
                    error = raised
            event = await self.next_event(error)
        return self.value

    async def next_event(self, error: BaseException | None = None) -> Event | Begun | None:
        """Performs the exchange to its next event; None: it has ended. An error is first thrown into it."""
        if self.has_ended:
            return None
        result: Any = None
        try:
            while True:
                action = self._exchange.send(result) if error is None else self._exchange.throw(error)
                if isinstance(action, Event | Begun):
                    return action
                result = error = None
                try:
                    result = await self._perform(action)
                except BaseException as raised:
                    error = raised
        except StopIteration as end:
            self.has_ended, self.value = True, end.value
            return None
        except BaseException:
            self.has_ended = True
            raise

    async def leave(self) -> None:
        """Ends the exchange before its end: the request is cancelled on the server."""
        try:
            while await self.next_event(Left()) is not None:
                continue
        except Left:
            return

    async def _perform(self, action: Action) -> Any:
        if isinstance(action, Send):
            request, http = _request(self._connection, action), self._connection.http
            if not action.is_farewell:
                return await http.send(request, stream=action.is_streamed, follow_redirects=False)
            import anyio  # httpx is built on it

            with anyio.move_on_after(2 * FAREWELL, shield=True):  # also if this task is being cancelled
                return await http.send(request, follow_redirects=False)
            raise httpx.ReadTimeout("the server did not answer the cancellation in time")
        if isinstance(action, Pause):
            import anyio

            await anyio.sleep(action.seconds)
        elif isinstance(action, ReadMore):
            if self._pieces is None:
                self._pieces = action.response.aiter_bytes()
            return await anext(self._pieces, None)
        elif isinstance(action, ReadRest):
            await action.response.aread()
        elif isinstance(action, Close):
            self._pieces = None
            await action.response.aclose()
        return None
