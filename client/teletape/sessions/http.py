"""HTTP to a server: one long-lived client, retries as the server asks for them, and problems as exceptions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import httpx

from teletape.errors import ConnectionFailed, error_of

_CHUNK: Final = 1 << 20
_JOINED: Final = 64 << 10
_PATIENCE: Final = 60.0  #: Seconds after which a request that still fails raises.
_RETRIED: Final = frozenset((429, 502, 503, 504))


class Connection:
    """The connection to one server.

    Args:
        url: The server's address, without a path.
        api_key: Sent as a bearer token.
        transport: Replaces the network in tests.

    Attributes:
        requests: The number of answered requests, without retries.
    """

    def __init__(self, url: str, api_key: str | None, *, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        timeout = httpx.Timeout(10.0, read=None)  # a batch may compute for long; a dead peer ends the connection
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, transport=transport)
        self.requests = 0

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """Sends JSON and returns the JSON of the response; None if it is empty."""
        response = self._retried(lambda: self._client.request(method, path, json=body), path)
        return response.json() if response.content else None

    def try_json(self, path: str) -> Any:
        """Returns the JSON of a GET, tried once and not counted; None: there was no answer."""
        try:
            response = self._client.get(path, timeout=1.0)
            return response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None

    def text(self, path: str, query: list[tuple[str, Any]]) -> str:
        """Returns the text of a GET."""
        return self._retried(lambda: self._client.request("GET", path, params=query), path).text

    def frame(self, path: str, buffers: list[Any], length: int, content_type: str) -> bytearray:
        """Sends buffers as one body, without joining them, and receives the answer's bytes.

        Safe to repeat: the server executes a frame once, and answers a repeated one with the same bytes.
        """
        headers = {
            "Content-Type": content_type,
            "Accept": content_type,
            "Accept-Encoding": "identity",  # the bytes are taken as they come; a proxy must not compress them
            "Content-Length": str(length),
        }
        received = bytearray()
        small = b"".join(buffers) if length <= _JOINED else None  # one write is quicker than several

        def send() -> httpx.Response:
            content = _chunks(buffers) if small is None else small
            request = self._client.build_request("POST", path, content=content, headers=headers)
            response = self._client.send(request, stream=True)
            try:
                received.clear()
                for chunk in response.iter_raw(_CHUNK):
                    received.extend(chunk)
            finally:
                response.close()
            return response

        self._retried(send, path, received)
        return received

    def _retried(self, send: Callable[[], httpx.Response], path: str, body: bytearray | None = None) -> httpx.Response:
        deadline = time.monotonic() + _PATIENCE
        attempt = 0
        while True:
            attempt += 1
            wait = min(0.05 * 2**attempt, 5.0) * (0.5 + random.random())
            try:
                response = send()
            except httpx.TransportError as error:
                if time.monotonic() + wait > deadline or isinstance(error, httpx.UnsupportedProtocol):
                    raise ConnectionFailed(
                        f"{self.url}{path}: no answer ({type(error).__name__}: {error}); is the server running there, "
                        "and is the address right?"
                    ) from None
                if attempt == 1 and isinstance(error, httpx.ConnectError) and not self.requests:
                    raise ConnectionFailed(
                        f"{self.url}: nothing answers there ({error}); start a server with `teletape serve`, or leave "
                        "out the address to compute inside this process"
                    ) from None
            else:
                if response.status_code == 202 and "Retry-After" in response.headers:  # asking again joins it
                    wait, deadline = _retry_after(response, wait), time.monotonic() + _PATIENCE
                elif response.status_code not in _RETRIED or time.monotonic() + wait > deadline:
                    self.requests += 1
                    if response.status_code >= 400:
                        raise error_of(response.status_code, bytes(body) if body is not None else response.content)
                    return response
                else:
                    wait = _retry_after(response, wait)
            time.sleep(wait)

    def close(self) -> None:
        """Closes the sockets."""
        self._client.close()


def _chunks(buffers: Iterable[Any]) -> Iterator[bytes]:
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        for start in range(0, len(view), _CHUNK):
            yield view[start : start + _CHUNK]  # type: ignore[misc]  # httpx takes any bytes-like object


def _retry_after(response: httpx.Response, default: float) -> float:
    try:
        return float(response.headers.get("Retry-After", default))
    except ValueError:
        return default
