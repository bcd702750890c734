"""HTTP to a server: long-lived clients, retries as the server asks for them, and problems as exceptions."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import random
import secrets
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import httpx

from teletape import logs
from teletape.errors import ConnectionFailed, RequestError, SessionEndedError, TeletapeError, error_of
from teletape.sessions import progress
from teletape_engine.errors import InvalidArgumentError

_CHUNK: Final = 1 << 20
_JOINED: Final = 64 << 10
_PATIENCE: Final = 60.0  #: Seconds without an answer after which a request raises.
_READ_LIMIT: Final = 30.0  #: Seconds without a byte after which a request is sent again; the server answers 202 at 20.
_LONGEST_WAIT: Final = 1.0  #: Seconds between two attempts, about, unless the server names others.
_RETRIED: Final = frozenset((429, 502, 503, 504))
#: (option, seconds or count): a peer that is gone without a word ends the connection after 25 s.
_KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPALIVE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class Connection:
    """The connection to one server.

    Batches, and requests that make something, go through one client, used by one thread at a time. `control` and the
    other requests that the program's threads send meanwhile go through another, so that interrupting them never leaves
    a batch without its connection.

    Args:
        url: The server's address, without a path.
        api_key: Sent as a bearer token.
        allow_insecure: Whether the key may be sent unencrypted to another machine.
        transport: Replaces the network in tests.

    Attributes:
        url: As passed, without a slash at the end.
        requests: The number of answered requests, without retries.
        boot_id: Which run of the server it is, from `info`; None: not known.

    Raises:
        InvalidArgumentError: The key would be sent unencrypted to another machine.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None,
        *,
        allow_insecure: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        if api_key and not allow_insecure:
            _check_encrypted(self.url)
        self.requests = 0
        self.boot_id: str | None = None
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._transport = transport
        self._client = self._new_client()
        self._side: httpx.Client | None = None
        self._silent_since: float | None = None
        self._trouble = ""

    def _new_client(self) -> httpx.Client:
        transport = _transport(self.url) if self._transport is None else self._transport
        timeout = httpx.Timeout(10.0, read=_READ_LIMIT)
        return httpx.Client(base_url=self.url, headers=self._headers, timeout=timeout, transport=transport)

    # -------------------------------------------------------------- by the thread that makes the session, or its sender
    def info(self) -> Any:
        """Returns the server's versions and limits."""
        facts = self.json("GET", "/v1/info")
        self.boot_id = facts.get("boot_id")
        return facts

    def create(self, path: str, body: Any = None) -> Any:
        """Makes something by a POST of JSON, once however often it must be sent, and returns the JSON of the answer."""
        return self.json("POST", path, body, {"Idempotency-Key": secrets.token_hex(16)})

    def json(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        """Sends JSON and returns the JSON of the answer; None if it is empty."""
        response = self._retried(lambda: self._client.request(method, path, json=body, headers=headers), path)
        return response.json() if response.content else None

    def frame(self, path: str, buffers: list[Any], length: int, content_type: str) -> bytearray:
        """Sends buffers as one body, without joining them, and receives the answer's bytes.

        Safe to repeat: the server executes a frame once, and answers a repeated one with the same bytes. The thread
        that waits for the answer reports what `trouble` returns.
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

    def close(self) -> None:
        """Closes the sockets."""
        self._client.close()
        if self._side is not None:
            self._side.close()

    # ---------------------------------------------------------------------------------------------------- by any thread
    def control(self, method: str, path: str) -> None:
        """Sends a request without a body while a batch may be in flight."""
        self._retried(lambda: self._by_side(method, path), path)

    def text(self, path: str, query: list[tuple[str, Any]]) -> str:
        """Returns the text of a GET."""
        return self._retried(lambda: self._by_side("GET", path, params=query), path).text

    def try_json(self, path: str) -> Any:
        """Returns the JSON of a GET, tried once and not counted; None: there was no answer."""
        try:
            response = self._by_side("GET", path, timeout=1.0)
            return response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return None

    def try_delete(self, path: str, seconds: float) -> None:
        """Sends a DELETE once, and waits for the answer no longer than that."""
        with contextlib.suppress(httpx.HTTPError):
            self._by_side("DELETE", path, timeout=seconds)

    def trouble(self) -> str | None:
        """Returns what is wrong while a request is sent again and again, as a line for people; None: nothing is."""
        since = self._silent_since
        if since is None:
            return None
        return f"{self._trouble}, trying again, {time.monotonic() - since:.0f} s of {_PATIENCE:.0f}"

    def _by_side(self, method: str, path: str, **options: Any) -> httpx.Response:
        client, self._side = self._side, None  # after an interrupt it is not used again
        if client is None:
            client = self._new_client()
        try:
            response = client.request(method, path, **options)
        except Exception:
            client.close()
            raise
        if self._side is None:
            self._side = client
        else:  # another thread's, which was made meanwhile
            client.close()
        return response

    # ---------------------------------------------------------------------------------------------------------- retries
    def _retried(self, send: Callable[[], httpx.Response], path: str, body: bytearray | None = None) -> httpx.Response:
        """Sends until there is an answer that asks for no retry.

        Args:
            send: Sends the request once.
            path: Its path, for messages.
            body: Holds the answer's body; the waiting thread then reports trouble. None: the response holds it, and
                trouble is reported here.
        """
        notice = progress.Notice(sys.stderr) if body is None else None
        try:
            for attempt in itertools.count(1):
                wait = min(0.05 * 2**attempt, _LONGEST_WAIT) * (0.5 + random.random())
                began = time.monotonic()
                try:
                    response = send()
                except httpx.TransportError as error:
                    first = attempt == 1 and not self.requests
                    self._note_silence(error, path, began, wait, first=first)
                else:
                    again = self._wait_for_retry(response, wait)
                    if again is None:
                        self.requests += 1
                        if response.status_code >= 400:
                            content = response.content if body is None else bytes(body)
                            raise self._refusal(response.status_code, content)
                        return response
                    wait = again
                trouble = self.trouble()
                if notice is not None and trouble is not None:
                    notice.show(trouble)
                time.sleep(wait)
            raise AssertionError("the loop has no end")  # pragma: no cover
        except KeyboardInterrupt:
            trouble = self.trouble()
            if trouble is not None:
                logs.get_logger().warning("interrupted: %s", trouble.replace(", trying again", ""))
            raise
        finally:
            self._silent_since = None
            if notice is not None:
                notice.end()

    def _note_silence(self, error: httpx.TransportError, path: str, began: float, wait: float, *, first: bool) -> None:
        """Notes that there was no answer.

        Args:
            error: What httpx says.
            path: The request's.
            began: When it was sent.
            wait: Seconds until it would be sent again.
            first: Whether this server has never answered.

        Raises:
            ConnectionFailed: It is not sent again.
        """
        now, since = time.monotonic(), self._silent_since
        if since is None:
            since = began if isinstance(error, httpx.ReadTimeout) else now
        if now + wait > since + _PATIENCE or isinstance(error, httpx.UnsupportedProtocol):
            raise ConnectionFailed(
                f"{self.url}{path}: no answer ({type(error).__name__}: {error}); is the server running there, and is "
                "the address right?"
            ) from None
        if first and isinstance(error, httpx.ConnectError):
            raise ConnectionFailed(
                f"{self.url}: nothing answers there ({error}); start a server with `teletape serve`, or leave out the "
                "address to compute inside this process"
            ) from None
        self._trouble, self._silent_since = f"no answer from {self.url}", since

    def _wait_for_retry(self, response: httpx.Response, wait: float) -> float | None:
        """Returns the seconds after which a response asks for a retry, `wait` if it names none; None: it asks not."""
        status = response.status_code
        if status == 202 and "Retry-After" in response.headers:  # the batch runs, and asking again joins it
            self._silent_since = None
            return _retry_after(response, wait)
        now = time.monotonic()
        since = now if self._silent_since is None else self._silent_since
        if not _is_retried(response) or now + wait > since + _PATIENCE:
            return None
        self._trouble, self._silent_since = f"{self.url} is busy (HTTP {status})", since
        return _retry_after(response, wait)

    def _refusal(self, status: int, body: bytes) -> TeletapeError:
        """Returns a refusal as an exception. A session that a restarted server does not know has ended."""
        error = error_of(status, body)
        if not isinstance(error, RequestError) or error.code != "unknown_session":
            return error
        boot_id, started = error.details.get("boot_id"), error.details.get("started", "an unknown time")
        if boot_id is not None and self.boot_id is not None and boot_id != self.boot_id:
            return SessionEndedError(
                f"the server at {self.url} was restarted ({started}), and the session with its tensors, variables, "
                "functions and tapes is lost"
            )
        return SessionEndedError(f"the server at {self.url} has no such session any more: {error.message}")


def _transport(url: str) -> httpx.HTTPTransport:
    """Returns the transport to a server, as httpx makes it, and with keep-alive: a client cannot pass these options."""
    address = httpx.URL(url)
    proxies = {} if urllib.request.proxy_bypass(address.host) else urllib.request.getproxies()
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEP_ALIVE if hasattr(socket, name)
    ]
    return httpx.HTTPTransport(
        verify=address.scheme != "http",  # making a context of certificates takes longer than a session
        proxy=proxies.get(address.scheme) or proxies.get("all"),
        socket_options=options,
    )


def _check_encrypted(url: str) -> None:
    """Raises InvalidArgumentError if what is sent to this address can be read on the way."""
    address = httpx.URL(url)
    if address.scheme == "http" and not _is_loopback(address.host):
        raise InvalidArgumentError(
            f"{url}: an API key would be sent there unencrypted, for anyone on the way to read. Use https://, or a "
            "tunnel to localhost; in a network that you trust, tf.connect(url, allow_insecure=True) or "
            "TELETAPE_ALLOW_INSECURE=1 allows it"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def _chunks(buffers: Iterable[Any]) -> Iterator[bytes]:
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        for start in range(0, len(view), _CHUNK):
            yield view[start : start + _CHUNK]  # type: ignore[misc]  # httpx takes any bytes-like object


def _is_retried(response: httpx.Response) -> bool:
    """Returns whether to send a request again: its status says so, or the server did."""
    return response.status_code in _RETRIED or (response.status_code >= 400 and "Retry-After" in response.headers)


def _retry_after(response: httpx.Response, default: float) -> float:
    try:
        return float(response.headers.get("Retry-After", default))
    except ValueError:
        return default
