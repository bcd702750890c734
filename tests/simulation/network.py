"""A network that loses, delays, repeats and cuts; at its ends the server's application and clients of httpx."""

from collections.abc import Callable
from typing import Any, Final

import httpx

from simulation.world import World

_FRAME: Final = b"application/vnd.teletape.frame"


class Exchange:
    """A request that has reached the server, and its answer.

    Attributes:
        method, path, query, headers, body: Of the request.
        status: Of the answer; 0: it has not begun.
        answer_headers: The answer's.
        answer: The bytes of its body so far.
        is_whole: Whether that is all.
        is_broken: Whether no more will come.
        has_left: Whether the client has closed the connection.
        on_left: Called then.
    """

    def __init__(self, request: httpx.Request) -> None:
        self.method, self.path = request.method, request.url.path
        self.query = request.url.query
        self.headers = [(name.lower(), value) for name, value in request.headers.raw]
        self.body = request.content
        self.status, self.answer_headers = 0, list[tuple[bytes, bytes]]()
        self.answer = bytearray()
        self.is_whole = self.is_broken = self.has_left = False
        self.on_left: Callable[[], Any] = lambda: None

    def take(self, message: Any) -> None:
        """Takes a part of the answer."""
        if message["type"] == "http.response.start":
            self.status, self.answer_headers = message["status"], [*message.get("headers", [])]
        elif message["type"] == "http.response.body":
            self.answer += message.get("body", b"")
            self.is_whole = not message.get("more_body", False)

    def break_off(self) -> None:
        """Notes that the server has closed the connection."""
        self.is_broken = True

    def leave(self) -> None:
        """Notes that the client has closed the connection."""
        if not self.has_left:
            self.has_left = True
            self.on_left()


class Network:
    """The network.

    Args:
        world: Its world.
        server: Returns the server that listens; None: none does.

    Attributes:
        is_calm: Whether nothing is lost, repeated or delayed any more.
        power_cuts: How many there were.
    """

    def __init__(self, world: World, server: Callable[[], Any]) -> None:
        self.world, self.server = world, server
        self.is_calm = False
        self.power_cuts = 0
        self._cut: dict[str, float] = {}  # until when, by client

    def cut(self, client: str, seconds: float) -> None:
        """Lets nothing of a client through for some time."""
        self._cut[client] = self.world.now + seconds

    def is_cut(self, client: str) -> bool:
        """Whether a client is cut off now."""
        return not self.is_calm and self._cut.get(client, 0.0) > self.world.now

    def happens(self, chance: float) -> bool:
        """Whether something happens that has that chance."""
        return not self.is_calm and self.world.rng.random() < chance

    def delay(self) -> float:
        """Seconds that a message takes."""
        return self.world.rng.choice([2.0, 0.3]) if self.happens(0.03) else self.world.rng.uniform(0.0, 0.004)

    def transport(self, client: str, *, lasts: bool) -> "Transport":
        """Returns the transport of a client's httpx; `lasts`: its session knows after a power cut what it did."""
        return Transport(self, client, lasts=lasts)


class Transport(httpx.BaseTransport):
    """What a client of httpx sends its requests by."""

    def __init__(self, network: Network, client: str, *, lasts: bool) -> None:
        self._network, self._client, self._lasts = network, client, lasts

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request, and waits for its answer.

        Raises:
            httpx.TransportError: There is none.
        """
        network, world = self._network, self._network.world
        limits = request.extensions["timeout"]
        request.read()
        world.wait(network.delay())
        if network.is_cut(self._client) or network.happens(0.02):
            world.wait(limits["connect"])
            raise httpx.ConnectTimeout("nothing came back", request=request)
        server = network.server()
        if server is None:
            raise httpx.ConnectError("no server listens", request=request)
        exchange = Exchange(request)
        server.begin(exchange)
        if _is_safe_to_repeat(exchange) and network.happens(0.08):  # a proxy has sent it twice
            again, cuts = Exchange(request), network.power_cuts
            world.later(world.rng.choice([0.0, 0.01, 1.0, 8.0]), lambda: self._repeat(again, cuts))
        if network.happens(0.03):
            world.wait(world.rng.uniform(0.0, 0.01))
            exchange.leave()
            raise httpx.ReadError("the connection was reset", request=request)
        world.wait(limits["read"], holds=lambda: exchange.is_whole or exchange.is_broken)
        if not exchange.is_whole:
            exchange.leave()
            if exchange.is_broken:
                raise httpx.RemoteProtocolError("the server has closed the connection", request=request)
            raise httpx.ReadTimeout("no answer in time", request=request)
        world.wait(network.delay())
        if network.is_cut(self._client) or network.happens(0.03):
            world.wait(limits["read"])
            raise httpx.ReadTimeout("the answer was lost", request=request)
        return httpx.Response(
            exchange.status, headers=exchange.answer_headers, stream=httpx.ByteStream(bytes(exchange.answer))
        )

    def _repeat(self, exchange: Exchange, cuts: int) -> None:
        """Sends a request once more; a session that has forgotten it in a power cut would do it again, and may."""
        server = self._network.server()
        if server is not None and (self._lasts or cuts == self._network.power_cuts):
            server.begin(exchange)


def _is_safe_to_repeat(exchange: Exchange) -> bool:
    """Whether a request says that it may come twice."""
    headers = dict(exchange.headers)
    return b"idempotency-key" in headers or headers.get(b"content-type") == _FRAME
