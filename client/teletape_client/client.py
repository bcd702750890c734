"""The clients: `Client` for threads, `AsyncClient` for event loops."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import httpx

from teletape_client.async_resources import AsyncServer
from teletape_client.network.drivers import AsyncConnection, Connection
from teletape_client.network.known import Known
from teletape_client.network.options import RETRIES, TIMEOUT, Options
from teletape_client.resources import Server

if TYPE_CHECKING:
    from typing import Self

    from teletape_client.models import Progress

VERSION: Final = "0.1.0"
_UNIX: Final = "unix://"
_FALSE: Final = frozenset(("", "0", "false", "no"))


class Client(Server):
    """A server, for programs with threads: one client serves all of them.

    As a context it closes its connections after the block.

    Args:
        url: The server's address, such as https://gpu-box:8470, or unix:///path of a Unix socket; default:
            TELETAPE_URL.
        api_key: Sent as a bearer token; default: TELETAPE_API_KEY.
        timeout: Seconds that a call may take in all, with its retries; None: as long as the server computes.
        max_retries: How often a request is sent again that was not answered, or that a busy server has refused. Nothing
            happens twice: each request has an idempotency key.
        headers: Sent with each request.
        on_progress: Called with the progress of requests that compute.
        http_client: Sends the requests, with its own certificates, proxies and limits; it is not closed here.
        allow_insecure: Whether the key may be sent unencrypted to another machine; default: TELETAPE_ALLOW_INSECURE.

    Raises:
        ValueError: The address is none, or the key would be sent unencrypted to another machine.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT,
        max_retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        http_client: httpx.Client | None = None,
        allow_insecure: bool | None = None,
    ) -> None:
        address = _address(url)
        own = _headers(address, api_key, allow_insecure)
        self._own: httpx.Client | None = None
        if http_client is None:
            socket = _socket(address)
            transport = None if socket is None else httpx.HTTPTransport(uds=socket, verify=False)
            http_client = self._own = httpx.Client(transport=transport, **_network(address))
        connection = Connection(http_client, _base(address), own, Known(), self._own is not None)
        options = _options(timeout, max_retries, headers, on_progress)
        super().__init__(connection, options, "/v1")

    def close(self) -> None:
        """Closes the connections, unless they are those of `http_client`."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


class AsyncClient(AsyncServer):
    """A server, for programs with an event loop, asyncio's or trio's; see `Client` for the arguments."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float | None = TIMEOUT,
        max_retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        http_client: httpx.AsyncClient | None = None,
        allow_insecure: bool | None = None,
    ) -> None:
        address = _address(url)
        own = _headers(address, api_key, allow_insecure)
        self._own: httpx.AsyncClient | None = None
        if http_client is None:
            socket = _socket(address)
            transport = None if socket is None else httpx.AsyncHTTPTransport(uds=socket, verify=False)
            http_client = self._own = httpx.AsyncClient(transport=transport, **_network(address))
        connection = AsyncConnection(http_client, _base(address), own, Known(), self._own is not None)
        options = _options(timeout, max_retries, headers, on_progress)
        super().__init__(connection, options, "/v1")

    async def close(self) -> None:
        """Closes the connections, unless they are those of `http_client`."""
        if self._own is not None:
            await self._own.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *details: object) -> None:
        await self.close()


def _options(
    timeout: float | None,
    max_retries: int,
    headers: Mapping[str, str] | None,
    on_progress: Callable[[Progress], object] | None,
) -> Options:
    changes = {"timeout": timeout, "max_retries": max_retries, "headers": headers or {}, "on_progress": on_progress}
    return Options().with_changes(changes)


def _address(url: str | None) -> str:
    address = (url or os.environ.get("TELETAPE_URL", "")).strip().rstrip("/").removesuffix("/v1")
    if not address.startswith(("http://", "https://", _UNIX)) or "@" in address:
        raise ValueError(
            f"{address.rpartition('@')[2]!r} is no address of a server: expected http:// or https:// with a host, as "
            "https://gpu-box:8470, without a name or a password; or unix:///path; or TELETAPE_URL"
        )
    return address


def _socket(address: str) -> str | None:
    return address.removeprefix(_UNIX) if address.startswith(_UNIX) else None


def _base(address: str) -> str:
    return "http://localhost" if address.startswith(_UNIX) else address


def _network(address: str) -> dict[str, Any]:
    """Returns httpx's options for an address: requests to this machine use no proxy."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    return {
        "verify": not address.startswith(("http://", _UNIX)),  # to read the certificates takes 30 ms
        "trust_env": not _is_loopback(address),
        "limits": limits,
    }


def _headers(address: str, api_key: str | None, allow_insecure: bool | None) -> dict[str, str]:
    """Returns the headers of each request.

    Raises:
        ValueError: The key would be sent unencrypted to another machine.
    """
    own = {"User-Agent": f"teletape-client/{VERSION}"}
    key = os.environ.get("TELETAPE_API_KEY") if api_key is None else api_key
    if not key:
        return own
    if allow_insecure is None:
        allow_insecure = os.environ.get("TELETAPE_ALLOW_INSECURE", "").lower() not in _FALSE
    if address.startswith("http://") and not _is_loopback(address) and not allow_insecure:
        raise ValueError(
            f"{address}: an API key would be sent there unencrypted, for anyone on the way to read. Use https://, or a "
            "tunnel to localhost; in a network that you trust, allow_insecure=True or TELETAPE_ALLOW_INSECURE=1"
        )
    return {**own, "Authorization": f"Bearer {key}"}


def _is_loopback(address: str) -> bool:
    if address.startswith(_UNIX):
        return True
    host = httpx.URL(address).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")
