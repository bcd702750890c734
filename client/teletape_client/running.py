"""Requests that are watched while they run, and changes of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from teletape_client.models import Progress, Session
from teletape_client.network.drivers import AsyncDriver, Driver
from teletape_client.network.events import Event

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")


class Running(Generic[T]):
    """A running request: an iterator of its progress, and then its answer.

    As a context it cancels the request on the server if it is left before the answer.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Progress:
        while (event := self._driver.next_event()) is not None:
            if isinstance(event, Event):
                return Progress.read(event.data, {})
        raise StopIteration

    def result(self) -> T:
        """Waits for the answer and returns it."""
        for _ in self:
            continue
        answer: T = self._driver.value.read()
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._driver.leave()


class AsyncRunning(Generic[T]):
    """A running request: an asynchronous iterator of its progress, and then its answer.

    As a context it cancels the request on the server if it is left before the answer.
    """

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        while (event := await self._driver.next_event()) is not None:
            if isinstance(event, Event):
                return Progress.read(event.data, {})
        raise StopAsyncIteration

    async def result(self) -> T:
        """Waits for the answer and returns it."""
        async for _ in self:
            continue
        answer: T = self._driver.value.read()
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._driver.leave()


class SessionEvent(NamedTuple):
    """A change of your sessions.

    Attributes:
        name: `sessions`: all of them, first; `session`: one is new or has changed; `ended`: one has ended.
        sessions: All of them, or the one; empty: it has ended.
        ended: The `id`, `reason`, `text` and `ended_at` of the one that has ended.
    """

    name: str
    sessions: Sequence[Session] = ()
    ended: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, event: Event) -> SessionEvent:
        """Returns the change in an event of the server."""
        if event.name == "ended":
            return cls(event.name, ended=event.data)
        facts = event.data["sessions"] if event.name == "sessions" else [event.data]
        return cls(event.name, [Session.read(session, {}) for session in facts])
