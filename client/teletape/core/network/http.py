"""HTTP to a server: persistent clients, retries, and problems as exceptions.

Long because it has all ways to send a request, and the retries that they share.
"""

from __future__ import annotations

import itertools
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import httpx

from teletape.core.errors import (
    ConnectionFailed,
    DeadlineExceededError,
    InvalidArgumentError,
    RequestError,
    SessionEndedError,
    TeletapeError,
    error_of,
)
from teletape.core.network import address, first_contact, progress, shared_memory
from teletape.core.network.frame_memory import Room, room_for, without_shared
from teletape.core.network.frame_socket import Buffer, FrameSocket, NotSentError, Response, request_head
from teletape.core.network.options import ConnectOptions
from teletape.core.network.retries import Patience, address_of, facts_of, is_answer, is_retried, retry_seconds
from teletape.core.network.spans import lines_of
from teletape.core.program import logs

_CHUNK: Final = 1 << 20
_JOINED: Final = 64 << 10
_PATIENCE: Final = 60.0  #: Seconds without an answer after which a request raises.
_LASTING_PATIENCE: Final = 600.0  #: The same for a session that the next server has too.
_READ_LIMIT: Final = 30.0  #: Seconds without a byte after which a request is sent again; the server answers 202 at 20.
#: Errors that a further attempt cannot mend.
_FINAL: Final = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.DecodingError, httpx.TooManyRedirects)
_LONGEST_WAIT: Final = 1.0  #: Seconds between two attempts, approximately and at most, unless the server names others.
_GONE: Final = frozenset((200, 204, 404, 410))  #: Statuses of a DELETE after which the resource does not exist.
_GATEWAY: Final = frozenset((502, 503, 504))  #: Statuses of a gateway before the server.
_MOST_HEADS: Final = 32  #: The largest number of stored heads of frames, one for each time limit.
_SHORTEST: Final = 0.001  #: The shortest time limit for a server, in seconds.
_SECRETS: Final = frozenset(("authorization", "cookie"))  #: Headers that are not sent unencrypted to another machine.
_WAITS: Final = (
    random.Random()
)  #: Not the program's generator, so that its numbers do not depend on the number of requests.

#: Returns the first answer to a frame that was sent already, or raises the error.
FirstAnswer: TypeAlias = Callable[[], Response]


class Connection:
    """The connection to one server.

    Batches, and requests that make something, go through one client, used by one thread at a time; batches go over a
    socket of their own if the server is reached in the clear and without a proxy. `control` and the other requests
    that the program's threads send meanwhile go through another client, so that interrupting them never leaves a batch
    without its connection.

    A program's own httpx client takes the place of both, and of the socket; it is not closed here.

    Args:
        options: The server's address and the options of the connection.

    Attributes:
        options: As passed.
        url: The server's address, as a URL without a slash at the end.
        requests: The number of answered requests, without retries.
        server_date: The server's time at its last JSON answer, in HTTP's form; None: not known.
        boot_id: The id of the server's run, from `info`; None: not known.
        session_lasts: Whether its session outlives the server: then a request waits for the next one.

    Raises:
        InvalidArgumentError: An option is invalid; the key would be sent unencrypted to another machine.
    """

    def __init__(self, options: ConnectOptions) -> None:
        self.options = options
        self.url = address.normalized(options.url)
        first_contact.check_key(options.api_key)
        if not options.allow_insecure and (options.api_key or any(map(_is_secret, options.headers))):
            address.check_encrypted(self.url)
        self.requests = 0
        self._warned: str | None = None  # what the server has warned of last
        self.session_lasts = False
        self.boot_id: str | None = None
        self.server_date: str | None = None
        self._base = address.base_url(self.url)
        self._headers = {**options.headers}
        if options.api_key:
            self._headers["Authorization"] = f"Bearer {options.api_key}"
        self._client = self._new_client()
        endpoint = None if options.http_client is not None else address.plain_endpoint(self.url, options.proxy)
        self._frames = None if endpoint is None else FrameSocket(endpoint, options.first_patience)
        self._shares = shared_memory.POSSIBLE and endpoint is not None and bool(endpoint.path)
        if self._shares:
            shared_memory.use(self)
        self._heads: dict[tuple[str, str, float | None], bytes] = {}
        self._side: httpx.Client | None = None
        self._is_new = False  # whether the first request to an address that has never answered is under way
        self._of_frames: Patience | None = None  # the patience of the call that sends a frame now

    def another(self, **changes: Any) -> Connection:
        """Returns a new connection to the same server, with changed options."""
        return Connection(self.options.but(**changes))

    def _new_client(self) -> httpx.Client:
        client = self.options.http_client
        if client is None:
            return httpx.Client(transport=address.transport(self.url, self.options))
        if not isinstance(client, httpx.Client):
            raise InvalidArgumentError(
                f"http_client is an httpx.Client, also of an async program; found {client!r:.100}"
            )
        return client

    def _close_client(self, client: httpx.Client) -> None:
        """Closes a client, unless it is the program's."""
        if client is not self.options.http_client:
            client.close()

    def _request(
        self,
        client: httpx.Client,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
        **parts: Any,
    ) -> httpx.Request:
        """Returns a request with all headers; the time limit for its answer is the usual one, or `seconds`."""
        limit = self.options.first_patience
        timeout = (
            httpx.Timeout(limit, read=_READ_LIMIT)
            if seconds is None
            else httpx.Timeout(min(limit, seconds), read=seconds)
        )
        return client.build_request(
            method, self._base + path, headers=self._headers | (headers or {}), timeout=timeout, **parts
        )

    # -------------------------------------------------------------- by the thread that makes the session, or its sender
    def info(self) -> Any:
        """Returns the server's versions and limits.

        Raises:
            ConnectionFailed: No Teletape server answers at the address.
        """
        self._is_new = not self.requests
        try:
            facts = self.json("GET", "/v1/info", seconds=min(_READ_LIMIT, self.options.first_patience))
        except RequestError as error:
            if first_contact.is_page(error):
                raise first_contact.no_teletape(self.url, error) from None
            raise
        finally:
            self._is_new = False
        if facts is None or "catalogue" not in facts:
            raise first_contact.no_teletape(self.url, facts)
        self.boot_id = facts.get("boot_id")
        return facts

    def create(self, path: str, body: Any = None, key: str | None = None) -> Any:
        """Creates a resource by a POST of JSON, once for the key even if it is sent again; returns the JSON answer."""
        return self.json("POST", path, body, {"Idempotency-Key": key or new_key()})

    def json(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Sends JSON and returns the facts of the answer; None: it has status 204, which has none.

        Args:
            method: GET, POST, …
            path: The path.
            body: The body; None: there is none.
            headers: Further headers.
            seconds: How long it waits for a byte of the answer before it sends the request again; None: as usual.
        """

        def send() -> Response:
            request = self._request(self._client, method, path, json=body, headers=headers, seconds=seconds)
            answer = self._client.send(request, follow_redirects=False)
            response, self.server_date = _read(answer), answer.headers.get("Date")
            if self._client.cookies:
                self._leave_frames_to_client()
            return response

        response = self._retried(send, path, polls=True)
        return self._facts(response, path)

    def frame(
        self,
        path: str,
        buffers: Sequence[Buffer],
        length: int,
        content_type: str,
        first: FirstAnswer | None = None,
        expected: int = 0,
        time_limit: Callable[[], float | None] = lambda: None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        """Sends buffers as one body, without joining them, and returns the response.

        Safe to repeat: the server executes a frame once, and answers a repeated one with the same bytes. One that takes
        long is waited for at its address. The thread that waits for the answer reports what `trouble` returns.

        Args:
            path: The path.
            buffers: The body.
            length: The bytes of the body.
            content_type: The type of the body, and of the answer.
            first: The result of `frame_at_once`, if the frame has been sent already.
            expected: Bytes of the tensors in the answer.
            time_limit: Returns, each time that it is sent, the seconds that the server may take; None: as its own
                settings say.
            headers: Further headers, which differ from frame to frame.
        """
        firsts = [] if first is None else [first]

        def send() -> Response:
            if firsts:
                with suppress(NotSentError):  # that was no attempt
                    return firsts.pop()()
            frames, limit = self._frames, time_limit()
            if frames is None:
                return self._frame_by_client(path, buffers, length, {**headers, **_frame_headers(content_type, limit)})
            head = self._head(path, content_type, limit)
            return self._noted(self._posted(frames, head, buffers, length, expected, lines_of(headers)))

        return self._retried(send, path, of_frame=True, polls=True)

    def frame_at_once(
        self,
        path: str,
        buffers: Sequence[Buffer],
        length: int,
        content_type: str,
        seconds: float,
        expected: int = 0,
        time_limit: float | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Response | FirstAnswer:
        """Sends a frame over the open connection, and waits for its answer for a time.

        It runs in the thread that reads: after an interrupt there is only a connection that is not reused. If the
        expected answer does not come, `frame` goes on; if it comes, the caller counts it in `requests`.

        Returns:
            The response, or the argument `first` of `frame`.
        """
        frames = self._frames
        if frames is None:
            return _raiser(NotSentError("there is no socket for frames"))
        room = room_for(expected) if expected and self._shares else None
        more = (b"" if room is None else room.line) + lines_of(headers)
        try:
            response = frames.post_at_once(self._head(path, content_type, time_limit), buffers, length, seconds, more)
            if not isinstance(response, Response):
                waits = response
                return lambda: self._noted(_in_room(room, waits(_READ_LIMIT)))
            response = _in_room(room, response)
        except httpx.TransportError as error:
            return _raiser(error)
        return response if response.status == 200 and not response.set_cookie else lambda: self._noted(response)

    @property
    def open_for_frames(self) -> bool:
        """Whether `frame_at_once` can send."""
        frames = self._frames
        return frames is not None and frames.idle_link is not None

    def _head(self, path: str, content_type: str, time_limit: float | None) -> bytes:
        head = self._heads.get((path, content_type, time_limit))
        if head is None:
            request = self._request(self._client, "POST", path, headers=_frame_headers(content_type, time_limit))
            if len(self._heads) >= _MOST_HEADS:
                self._heads = {}
            head = self._heads[path, content_type, time_limit] = request_head(request)
        return head

    def _posted(
        self, frames: FrameSocket, head: bytes, buffers: Sequence[Buffer], length: int, expected: int, lines: bytes
    ) -> Response:
        """Sends a frame, as a body or with a part of it in shared memory."""
        if self._shares:
            room, short = room_for(expected), without_shared(buffers, length)
            more = lines if room is None else room.line + lines
            if short is not None:
                response = frames.post(head, short.buffers, short.length, _READ_LIMIT, short.line + more)
            else:
                response = frames.post(head, buffers, length, _READ_LIMIT, more)
            response = _in_room(room, response)
            if short is None or response.status < 400 or is_retried(response):
                return response
            refused = response
            response = frames.post(head, buffers, length, _READ_LIMIT, lines)
            if response.status < 400:  # it was refused because of the shared memory
                logs.get_logger().info("%s does not use shared memory: %s", self.url, bytes(refused.body[:300]))
                self._share_no_more()
            return response
        return frames.post(head, buffers, length, _READ_LIMIT, lines)

    def _share_no_more(self) -> None:
        self._shares = False
        shared_memory.end_use(self)

    def _noted(self, response: Response) -> Response:
        if response.set_cookie:
            self._leave_frames_to_client()
        return response

    def _leave_frames_to_client(self) -> None:
        """Makes httpx send the frames from now on, because something before the server sets cookies."""
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def _frame_by_client(self, path: str, buffers: Sequence[Buffer], length: int, headers: dict[str, str]) -> Response:
        small = b"".join(buffers) if length <= _JOINED else None  # one write is quicker than several
        content = _chunks(buffers) if small is None else small
        headers["Content-Length"] = str(length)
        return self._streamed(self._request(self._client, "POST", path, content=content, headers=headers))

    def _waited_at(self, address: str) -> Response:
        """Waits for the answer to a running request, at its address."""
        return self._streamed(self._request(self._client, "GET", address, headers={"Accept-Encoding": "identity"}))

    def _streamed(self, request: httpx.Request) -> Response:
        """Sends a request, and receives the answer in parts."""
        response = self._client.send(request, stream=True, follow_redirects=False)
        received = bytearray()
        try:
            for chunk in response.iter_raw(_CHUNK):
                received.extend(chunk)
        finally:
            response.close()
        return _response(response, received)

    def close(self) -> None:
        """Closes the sockets."""
        self._share_no_more()
        if self._frames is not None:
            self._frames.close()
        self._close_client(self._client)
        if self._side is not None:
            self._close_client(self._side)

    # ---------------------------------------------------------------------------------------------------- by any thread
    def control(self, method: str, path: str) -> None:
        """Sends a request without a body while a batch may be in flight."""
        self._facts(self._aside(method, path), path)

    def text(self, path: str, query: list[tuple[str, Any]]) -> str:
        """Returns the text of a GET."""
        return bytes(self._aside("GET", path, params=query).body).decode(errors="replace")

    def get(self, path: str) -> Any:
        """Returns the facts of a GET, which may wait for the session's work; with a key the server answers 202."""
        return self._facts(self._aside("GET", path, headers={"Idempotency-Key": new_key()}), path)

    def _aside(self, method: str, path: str, *, headers: dict[str, str] | None = None, **parts: Any) -> Response:
        """Sends a request for a thread with a timeout, at which the server stops the work too.

        Raises:
            DeadlineExceededError: There was no answer in time.
        """
        timeout = self.options.current_timeout
        until = None if timeout is None else time.monotonic() + timeout
        headers = (headers or {}) | _limit_header(timeout)

        def send() -> Response:
            left = _READ_LIMIT if until is None else max(_SHORTEST, until - time.monotonic())
            return _read(self._by_side(method, path, headers=headers, seconds=min(left, _READ_LIMIT), **parts))

        return self._retried(send, path, until=until)

    def try_json(self, path: str, seconds: float = 1.0) -> Any:
        """Returns the JSON of a GET, which is sent once and not counted; None: there was no answer in time."""
        return self._tried("GET", path, seconds=seconds)

    def try_create(self, path: str, body: Any, key: str, seconds: float) -> Any:
        """Sends a POST like `create`, but once and with a time limit; None: there was no answer in time."""
        return self._tried("POST", path, json=body, headers={"Idempotency-Key": key}, seconds=seconds)

    def _tried(self, method: str, path: str, **options: Any) -> dict[str, Any] | None:
        response = self._tried_once(method, path, **options)
        return facts_of(response) if response is not None and response.status < 300 else None

    def try_delete(self, path: str, seconds: float) -> bool:
        """Sends a DELETE once, with a time limit; returns whether the resource is gone."""
        response = self._tried_once("DELETE", path, seconds=seconds)
        return response is not None and response.status in _GONE

    def _tried_once(self, method: str, path: str, **options: Any) -> Response | None:
        try:
            return _read(self._by_side(method, path, **options))
        except httpx.RequestError:
            return None

    def trouble(self) -> str | None:
        """Returns the trouble that makes a frame be sent again, as a line for people; None: there is none."""
        patience = self._of_frames
        return None if patience is None else patience.trouble

    def _by_side(self, method: str, path: str, **options: Any) -> httpx.Response:
        client, self._side = self._side, None  # after an interrupt it is not reused
        if client is None:
            client = self._new_client()
        try:
            response = client.send(self._request(client, method, path, **options), follow_redirects=False)
        except BaseException:
            self._close_client(client)
            raise
        before, self._side = self._side, client
        if before is not None:  # another thread's, or a signal handler's, which was made meanwhile
            self._close_client(before)
        return response

    # ---------------------------------------------------------------------------------------------------------- retries
    def _retried(
        self,
        send: Callable[[], Response],
        path: str,
        *,
        of_frame: bool = False,
        polls: bool = False,
        until: float | None = None,
    ) -> Response:
        """Sends a request until its answer asks for no retry.

        A running request is waited for at its address; if the server does not know the address, the request is sent
        again.

        Args:
            send: Sends the request once.
            path: Its path, for messages.
            of_frame: Whether it sends a frame: the thread that waits for its answer reports `trouble`.
            polls: Whether it is the only thread that uses the client, and so can wait at an address.
            until: The end of the caller's wait, on the monotonic clock; None: there is none.
        """
        address: str | None = None  # the address at which the answer is waited for
        usual = _LASTING_PATIENCE if self.session_lasts else _PATIENCE
        seconds = min(_PATIENCE, self.options.first_patience) if self._is_new else usual
        patience = Patience(self.url, seconds, self.options.max_retries)
        notice = None if of_frame else progress.Notice(sys.stderr)
        try:
            if of_frame:
                self._of_frames = patience
            for attempt in itertools.count(1):
                wait = min(0.05 * 2**attempt, _LONGEST_WAIT) * (0.5 + _WAITS.random())
                began = time.monotonic()
                try:
                    response = send() if address is None else self._waited_at(address)
                except httpx.RequestError as error:
                    if attempt == 1 and not self.requests:
                        self._check_first(error)
                    since = began if isinstance(error, httpx.ReadTimeout) else time.monotonic()
                    self._check_in_time(until, path)
                    if isinstance(error, _FINAL) or not patience.unanswered(since, wait):
                        raise self._no_answer(error, path) from None
                else:
                    if response.warning is not None and response.warning != self._warned:
                        self._warned = response.warning
                        logs.get_logger().warning("the server warns: %s", response.warning)
                    before, polled = address, address_of(response) if polls else None
                    if before is not None and response.status == 404:  # it is forgotten, or the server was restarted
                        address = None
                        continue
                    again = patience.wait_after(response, wait)
                    if again is None:
                        return self._answer(response, path)
                    self._check_in_time(until, path)
                    address = polled or before
                    wait = 0.0 if address != before else again
                if notice is not None and patience.trouble is not None:
                    notice.show(patience.trouble)
                time.sleep(wait)
            raise AssertionError("the loop has no end")  # pragma: no cover
        except KeyboardInterrupt:
            if patience.trouble is not None:
                logs.get_logger().warning("interrupted: %s", patience.trouble.replace(", trying again", ""))
            raise
        finally:
            if of_frame:
                self._of_frames = None
            if notice is not None:
                notice.end()

    def _check_in_time(self, until: float | None, path: str) -> None:
        if until is not None and time.monotonic() >= until:
            raise DeadlineExceededError(f"{self.url}{path}: no answer within the timeout of this session; allow more")

    def _check_first(self, error: httpx.RequestError) -> None:
        """Raises ConnectionFailed if the error of the first request shows that there is no server."""
        if isinstance(error, httpx.ConnectError) or (self._is_new and first_contact.is_final(error)):
            raise first_contact.failure(self.url, error, self.options.first_patience) from None
        if (
            self._is_new
            and self.options.http_client is None
            and self.options.proxy is None
            and not isinstance(error, httpx.TimeoutException)
        ):
            encrypted = first_contact.encrypted_there(self.url)
            if encrypted is not None:
                raise encrypted from None

    def _no_answer(self, error: httpx.RequestError, path: str) -> ConnectionFailed:
        advice = (
            "is the server running there, and is the address right?"
            if self._is_new
            else "is the server still running? The next read tries again, and what is recorded waits for it; a server "
            "that was started again has no sessions: then tf.connect makes a new one"
        )
        return ConnectionFailed(f"{self.url}{path}: no answer ({type(error).__name__}: {error}); {advice}")

    def _answer(self, response: Response, path: str) -> Response:
        """Returns the response if it is the server's answer.

        Raises:
            ConnectionFailed: Something before the server has answered.
            TeletapeError: The server refuses.
        """
        if not is_answer(response):
            raise first_contact.elsewhere(self.url, path, response.status, response.location)
        if response.status >= 400:
            error = self._refusal(response)
            if response.status in _GATEWAY and isinstance(error, RequestError) and first_contact.is_page(error):
                raise ConnectionFailed(
                    f"{self.url}{path}: something before the server answers in its place, {error.message}; "
                    "does the server behind it run?"
                )
            self.requests += 1
            raise error
        self.requests += 1
        return response

    def _facts(self, response: Response, path: str) -> dict[str, Any] | None:
        """Returns the JSON object of an answer; None: it has status 204.

        Raises:
            ConnectionFailed: The body is no JSON object: a page of something before the server, or of another server.
        """
        if response.status == 204:
            return None
        facts = facts_of(response)
        if facts is None:
            start = bytes(response.body[:100]).decode(errors="replace")
            if self._is_new:
                raise first_contact.no_teletape(self.url, f"no JSON object: {start!r}")
            raise ConnectionFailed(
                f"{self.url}{path}: the answer, HTTP {response.status}, is no JSON object but {start!r}: a page of "
                "something between this program and the server, as a login or a proxy?"
            )
        return facts

    def _refusal(self, response: Response) -> TeletapeError:
        """Returns a refusal as an exception; SessionEndedError if a restarted server does not know the session."""
        refusal = error_of(response.status, bytes(response.body), retry_seconds(response))
        error = self._explained(refusal)
        error.request_id, error.retry_after = refusal.request_id, refusal.retry_after
        return error

    def _explained(self, refusal: TeletapeError) -> TeletapeError:
        error = first_contact.explained(refusal, self.url, has_key="Authorization" in self._headers)
        if not isinstance(error, RequestError) or error.code != "unknown_session":
            return error
        boot_id, started = error.details.get("boot_id"), error.details.get("started", "an unknown time")
        if boot_id is not None and self.boot_id is not None and boot_id != self.boot_id:
            return SessionEndedError(
                f"the server at {self.url} was restarted ({started}), and the session with its tensors, variables, "
                "functions and tapes is lost"
            )
        return SessionEndedError(f"the server at {self.url} has no such session any more: {error.message}")


def new_key() -> str:
    """Returns a new unique Idempotency-Key."""
    return secrets.token_hex(16)


def _is_secret(header: str) -> bool:
    """Whether a header's value is secret."""
    return header.lower() in _SECRETS


def _frame_headers(content_type: str, time_limit: float | None) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "Accept": content_type,
        "Accept-Encoding": "identity",  # the bytes are not decoded; a proxy must not compress them
    } | _limit_header(time_limit)


def _limit_header(time_limit: float | None) -> dict[str, str]:
    return {} if time_limit is None else {"Teletape-Time-Limit": f"{max(time_limit, _SHORTEST):.6f}"}


def _read(response: httpx.Response) -> Response:
    return _response(response, response.content)


def _response(response: httpx.Response, body: Buffer) -> Response:
    names = ("Retry-After", "Location", "X-Request-Id", "Teletape-Warning")
    retry_after, *more = map(response.headers.get, names)
    return Response(response.status_code, retry_after, body, False, None, *more)


def _in_room(room: Room | None, response: Response) -> Response:
    return response if room is None else room.answered(response)


def _raiser(error: httpx.TransportError) -> FirstAnswer:
    def send() -> Response:
        raise error

    return send


def _chunks(buffers: Iterable[Any]) -> Iterator[bytes]:
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        for start in range(0, len(view), _CHUNK):
            yield view[start : start + _CHUNK]  # type: ignore[misc]  # httpx takes any bytes-like object
