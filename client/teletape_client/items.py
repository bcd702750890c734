"""The base classes of items with ids, of items that end after a block, and of sessions, which can be watched."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from teletape_client.base import AsyncResource, Changes, Place, Resource
from teletape_client.errors import ServiceError, SessionEndedError
from teletape_client.network.actions import Call, quoted
from teletape_client.network.drivers import AsyncDriver, Driver
from teletape_client.network.events import Event
from teletape_client.network.exchange import FAREWELL, watch
from teletape_client.network.options import Options
from teletape_client.running import SessionEvent

if TYPE_CHECKING:
    from typing import Self

    from teletape_client.tensors.answers import Reader

T = TypeVar("T")
Handle = TypeVar("Handle")


class Item(Resource, Generic[T]):
    """An item with an id.

    Attributes:
        id: The id.
        facts: The server's answer to its creation by this program; None: it was looked up by its id, without a request.
    """

    def __init__(self, connection: Any, options: Options, path: str, id: str, facts: T | None = None) -> None:
        super().__init__(connection, options, path)
        self.id, self.facts = id, facts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class AsyncItem(AsyncResource, Generic[T]):
    """An item with an id; `id` and `facts` as in `Item`."""

    def __init__(self, connection: Any, options: Options, path: str, id: str, facts: T | None = None) -> None:
        super().__init__(connection, options, path)
        self.id, self.facts = id, facts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


class _Items(Place, Generic[Handle]):
    """Items with ids: `[id]` returns one of them, without a request."""

    _item: Callable[..., Handle]

    def __getitem__(self, id: str) -> Handle:
        return self._handle(str(id), None)

    def _handle(self, id: str, facts: Any) -> Handle:
        options = self._options._replace(raw=False)
        return type(self)._item(self._connection, options, f"{self._path}/{quoted(id)}", id, facts)

    def _created(self, read: Reader) -> Reader:
        """Returns the reader of the answer to a creation, as a handle."""

        def handle(facts: Any, tensors: Mapping[str, Any]) -> Handle:
            model = read(facts, tensors)
            return self._handle(str(model.id), model)

        return handle


class Collection(_Items[Handle], Resource):
    """Items with ids, for threads."""


class AsyncCollection(_Items[Handle], AsyncResource):
    """Items with ids, for event loops."""


class Context(Item[T]):
    """Something of the server that ends after a block, as a session does."""

    if TYPE_CHECKING:

        def delete(self) -> None:
            """Ends it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        with _ending(is_failure=kind is not None):
            (self.with_options(**_BRIEFLY) if kind is not None else self).delete()


class AsyncContext(AsyncItem[T]):
    """Something of the server that ends after a block, as a session does."""

    if TYPE_CHECKING:

        async def delete(self) -> None:
            """Ends it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        import anyio  # httpx is built on it

        with _ending(is_failure=kind is not None):
            if kind is None:
                await self.delete()
                return
            with anyio.move_on_after(2 * FAREWELL, shield=True):  # also if this task is being cancelled
                await self.with_options(**_BRIEFLY).delete()


#: The options of a request that ends an item after an error.
_BRIEFLY: Final[Changes] = {"timeout": 2 * FAREWELL, "max_retries": 0}


@contextlib.contextmanager
def _ending(*, is_failure: bool) -> Generator[None, None, None]:
    """Ignores the error that it has ended already; after an error of the block all errors, so that this one is seen."""
    try:
        yield
    except ServiceError as error:
        if not is_failure and not isinstance(error, SessionEndedError):
            raise


class Watched(Resource):
    """Sessions that can be watched, for threads."""

    def watch(self) -> Iterator[SessionEvent]:
        """Yields all sessions, and then each change, until the caller ends it; it connects again by itself."""
        driver = Driver(self._connection, watch(Call("GET", self._path, is_work=False), self._options))
        try:
            while (event := driver.next_event()) is not None:
                if isinstance(event, Event):
                    yield SessionEvent.of(event)
        finally:
            driver.leave()


class AsyncWatched(AsyncResource):
    """Sessions that can be watched, for event loops."""

    async def watch(self) -> AsyncIterator[SessionEvent]:
        """Yields all sessions, and then each change, until the caller ends it; it connects again by itself."""
        driver = AsyncDriver(self._connection, watch(Call("GET", self._path, is_work=False), self._options))
        try:
            while (event := await driver.next_event()) is not None:
                if isinstance(event, Event):
                    yield SessionEvent.of(event)
        finally:
            await driver.leave()
