"""The base classes of resources: they send calls, with options, and watch running ones.

Each exists for threads and for event loops; both use one code to send (`network.exchange`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar

from teletape_client.models import Progress
from teletape_client.network.actions import Call, Exchange
from teletape_client.network.drivers import AsyncConnection, AsyncDriver, Connection, Driver
from teletape_client.network.events import Event
from teletape_client.network.exchange import Answer, exchange
from teletape_client.network.options import Options
from teletape_client.running import AsyncRunning, Running

if TYPE_CHECKING:
    from typing import Self, Unpack

    import httpx

    from teletape_client.tensors.values import Input

T = TypeVar("T")
P = ParamSpec("P")


class Changes(TypedDict, total=False):
    """The options that `with_options` takes; see `Options`."""

    timeout: float | None
    max_retries: int
    headers: Mapping[str, str]
    on_progress: Callable[[Progress], object] | None
    binary: bool


class RawResponse(Generic[T]):
    """An unparsed response, and its answer.

    Attributes:
        http: httpx's response, read to its end.
    """

    def __init__(self, answer: Answer) -> None:
        self.http: httpx.Response = answer.response
        self._read = answer.read

    @property
    def status_code(self) -> int:
        """The HTTP status."""
        return self.http.status_code

    @property
    def headers(self) -> httpx.Headers:
        """The headers."""
        return self.http.headers

    @property
    def request_id(self) -> str | None:
        """Names the request in the server's log."""
        request_id: str | None = self.http.headers.get("X-Request-Id")
        return request_id

    def parse(self) -> T:
        """Returns the answer that the method returns without `with_raw_response`."""
        answer: T = self._read()
        return answer


def raw(method: Callable[P, T]) -> Callable[P, RawResponse[T]]:
    """Returns a method of a resource with the option `raw`, typed by the result that it then has."""
    return method  # type: ignore[return-value]  # the option makes the difference


def async_raw(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, RawResponse[T]]]:
    """Returns a method like `raw`, for event loops."""
    return method  # type: ignore[return-value]  # the option makes the difference


def inputs_of(
    inputs: Sequence[Input] | Mapping[str, Input] | None, named: Mapping[str, Input]
) -> Sequence[Input] | Mapping[str, Input]:
    """Returns the inputs of a function, from a sequence, a mapping, or named arguments.

    Raises:
        TypeError: Some are in a sequence, and others named; one is a list of names.
    """
    for name, value in named.items():
        if isinstance(value, list | tuple) and value and isinstance(value[0], str):
            raise TypeError(f"{name}: an input is an array, a number or an id; found {value!r}: `wrt` names sources")
    if inputs is None:
        return named
    if not named:
        return inputs
    if isinstance(inputs, Mapping):
        return {**inputs, **named}
    raise TypeError(f"pass the inputs in order or by name, not both; found a sequence and {', '.join(named)}")


class Place:
    """The path of a resource, and the options of its calls."""

    _connection: Any

    def __init__(self, connection: Any, options: Options, path: str) -> None:
        self._connection, self._options, self._path = connection, options, path

    def with_options(self, **changes: Unpack[Changes]) -> Self:
        """Returns the resource with other options: `timeout`, `max_retries`, `headers`, `on_progress`, `binary`."""
        return self._with(self._options.with_changes(changes))

    def _with(self, options: Options) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy._options = options
        return copy

    def _exchange(self, call: Call) -> tuple[Exchange, Callable[[Event], object] | None]:
        watcher = self._options.on_progress
        if watcher is None or not call.is_work or call.method == "GET":
            return exchange(call, self._options, self._connection.known), None
        running = exchange(call, self._options, self._connection.known, events=True)
        return running, lambda event: watcher(Progress.read(event.data, {}))


class Resource(Place):
    """A part of a server, for threads."""

    _connection: Connection

    def _send(self, call: Call) -> Any:
        """Makes a call, and returns its answer, or the response if the option `raw` is set."""
        running, on_event = self._exchange(call)
        answer: Answer = Driver(self._connection, running).result(on_event)
        return RawResponse[Any](answer) if self._options.raw else answer.read()

    def _begin(self, call: Call) -> Running[Any]:
        """Makes a call that is watched while it runs."""
        driver = Driver(self._connection, exchange(call, self._options, self._connection.known, events=True))
        driver.next_event()  # the request is sent, and the first event is that it has begun
        return Running(driver)


class AsyncResource(Place):
    """A part of a server, for event loops."""

    _connection: AsyncConnection

    async def _send(self, call: Call) -> Any:
        """Makes a call, and returns its answer, or the response if the option `raw` is set."""
        running, on_event = self._exchange(call)
        answer: Answer = await AsyncDriver(self._connection, running).result(on_event)
        return RawResponse[Any](answer) if self._options.raw else answer.read()

    async def _begin(self, call: Call) -> AsyncRunning[Any]:
        """Makes a call that is watched while it runs."""
        driver = AsyncDriver(self._connection, exchange(call, self._options, self._connection.known, events=True))
        await driver.next_event()  # the request is sent, and the first event is that it has begun
        return AsyncRunning(driver)
