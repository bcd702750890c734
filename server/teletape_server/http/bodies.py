"""Request bodies: their declared length, and their way into the memory of a session's process."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

import teletape_wire as wire
from teletape_server.handlers.idempotency import request_hash
from teletape_server.handlers.methods import SEND_BYTES
from teletape_server.http.access import authenticated, find_session, registry_of, retries_of, settings_of
from teletape_server.http.answers import answer_of_front
from teletape_server.http.negotiation import body_type
from teletape_server.http.parameters import preference, request_key
from teletape_server.identity.principals import Principal
from teletape_server.models.faults import described_faults, text_of
from teletape_server.problems import Problem
from teletape_server.retries import Stored
from teletape_server.sessions.counted_bodies import CountedBody, EarlyBody
from teletape_server.sessions.registry import SessionEntry

_MAX_JSON: Final = 48 << 20  # bytes of JSON: to read more takes two seconds
_SMALL: Final = 1 << 20  # bytes of the largest body that the front parses


def declared_length(headers: Headers, limit: int, content_type: str = "") -> int:
    """Returns the body's declared length in bytes; 0 for a request without a body.

    Args:
        headers: Of the request.
        limit: Bytes of the largest body.
        content_type: Of the body; one in JSON has a limit of its own.

    Raises:
        Problem: length_required, body_too_large.
    """
    header = headers.get("content-length")
    if header is None:
        if "transfer-encoding" in headers:
            raise Problem("length_required", "send a Content-Length: memory for the body is reserved before it is read")
        return 0
    length = int(header)  # the HTTP parser has refused anything but digits
    check_length(length, limit, content_type)
    return length


def check_length(length: int, limit: int, content_type: str) -> None:
    """Checks that a body of a type may have that many bytes; see `declared_length`.

    Raises:
        Problem: body_too_large.
    """
    if length > limit:
        raise Problem(
            "body_too_large",
            f"the body has {length} bytes, the limit is {limit}: send large tensors in several batches",
            found=length,
            limit=limit,
        )
    if content_type == wire.JSON_TYPE and length > _MAX_JSON:
        raise Problem(
            "body_too_large",
            f"the body has {length} bytes of JSON, the limit is {_MAX_JSON}: {SEND_BYTES}",
            found=length,
            limit=_MAX_JSON,
        )


class _JsonRequest(Request):
    """A request whose body has been parsed, as strictly as in a session's process.

    Attributes:
        content: The body.
    """

    content: Any

    async def json(self) -> Any:
        """Returns the parsed body."""
        return self.content


class SmallBodyRoute(APIRoute):
    """A route whose body this process parses, after checks of the key, and of the body's length and type.

    Its POST requests may have an Idempotency-Key.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns FastAPI's handler with the checks before it."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            principal = await authenticated(request)
            length = declared_length(request.headers, _SMALL)
            if not length:
                return await _once(request, principal, b"", handle)
            body_type(request.headers, (wire.JSON_TYPE,))
            with registry_of(request).bodies.admit(principal.owner, length):
                request = _JsonRequest(request.scope, request.receive)
                content = await whole_body(request, length)
                request.content = wire.parse_json(content)
                return await _once(request, principal, content, handle)

        return checked


async def whole_body(request: Request, length: int) -> bytes:
    """Returns the body, in this process's memory.

    Raises:
        Problem: incomplete_body.
    """
    try:
        return await request.body()
    except ClientDisconnect:
        raise Problem(
            "incomplete_body", f"the body ended before its {length} bytes: the request changed nothing"
        ) from None


async def _once(
    request: Request, principal: Principal, content: bytes, handle: Callable[[Request], Coroutine[Any, Any, Response]]
) -> Response:
    """Handles the request, or returns the first answer to it if its Idempotency-Key is known.

    The keys of requests to a session are the session's: a new one of the same name knows none.
    """
    key = request_key(request.headers) if request.method == "POST" else None
    if key is None:
        return await handle(request)

    async def answer() -> Stored:
        try:
            response = await handle(request)
        except RequestValidationError as error:
            raise invalid_request(request, error) from None
        if isinstance(response, StreamingResponse):  # of events: a retry gets them all at once
            body = b"".join([bytes(part) async for part in response.body_iterator])  # type: ignore[arg-type]  # bytes
        else:
            body = bytes(response.body)
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        return Stored(response.status_code, headers, body)

    entry = _named_session(request, principal)
    key = key if entry is None else f"{entry.record.uid} {key}"
    hasher = request_hash(request.scope["path"], request.scope["query_string"])
    hasher.update(content)
    digest = hasher.digest()
    attempt, is_replayed = await retries_of(request).attempt(principal.owner, key, digest, answer)
    prefers = preference(request.headers)
    patience = prefers.patience(settings_of(request).patience) if prefers.is_async else None
    return await answer_of_front(
        request,
        principal.owner,
        key,
        attempt,
        digest,
        prefers,
        patience=patience,
        is_replayed=is_replayed,
        has_events=False,
    )


def invalid_request(request: Request, error: RequestValidationError) -> Problem:
    """Returns the problem of a request that does not fit its route's models."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = body.field_info.annotation if body is not None else None
    faults = described_faults(map(_with_field_path, error.errors()), model=model)
    return Problem("invalid_request", text_of(faults), fields=faults)


def _with_field_path(error: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the error without `body` in its place: a body's fields are named as in the requests of other routes."""
    place = error["loc"]
    return {**error, "loc": place[1:] if place[0] == "body" else place}


def _named_session(request: Request, principal: Principal) -> SessionEntry | None:
    """Returns the live session that the path names, or None."""
    name = request.path_params.get("session")
    try:
        return None if name is None else find_session(request, principal, name)
    except Problem:  # the route says so too
        return None


async def read_body(
    request: Request,
    session: SessionEntry,
    length: int,
    *,
    rest: AsyncIterator[bytes] | None = None,
    beginning: bytes = b"",
    hasher: hashlib.blake2b | None = None,
) -> CountedBody | None:
    """Writes the body into memory of the session's host as it arrives; returns None for an empty one.

    Args:
        request: The request with the body.
        session: The session whose host gets the body.
        length: Bytes in all, as declared.
        rest: The rest of the body, if its `beginning` has been read.
        beginning: Bytes that were read before.
        hasher: Is updated with the body, part by part: to hash all of it at once would stall the event loop.

    Raises:
        Problem: incomplete_body, busy, resource_exhausted, overloaded, session_ended.
    """
    if not length:
        return None
    buffer = registry_of(request).body_buffer(session, length)
    position = len(beginning)
    try:
        buffer.view[:position] = beginning
        await fill(request, buffer, position, length, rest=rest, hasher=hasher)
    except BaseException:
        buffer.discard()
        raise
    return buffer


async def read_early_body(request: Request, owner: str, length: int, hasher: hashlib.blake2b) -> EarlyBody:
    """Reads a small body of a request that has no session yet.

    Args:
        request: The request.
        owner: Whose it is.
        length: Bytes in all, as declared.
        hasher: Is updated with the body.

    Raises:
        Problem: incomplete_body, busy, resource_exhausted, overloaded.
    """
    body = EarlyBody(length, registry_of(request).bodies.admit(owner, length))
    try:
        await fill(request, body, 0, length, hasher=hasher)
    except BaseException:
        body.discard()
        raise
    return body


async def fill(
    request: Request,
    body: CountedBody | EarlyBody,
    position: int,
    length: int,
    *,
    rest: AsyncIterator[bytes] | None = None,
    hasher: hashlib.blake2b | None = None,
) -> None:
    """Writes a body from a position on as it arrives.

    Raises:
        Problem: incomplete_body.
    """
    try:
        async for chunk in rest or request.stream():
            body.write(position, chunk)
            position += len(chunk)
            if hasher is not None:
                hasher.update(chunk)
    except ClientDisconnect:
        raise incomplete_body(position, length) from None
    if position != length:
        raise incomplete_body(position, length)


async def hash_body(
    request: Request, length: int, hasher: hashlib.blake2b | None, *, rest: AsyncIterator[bytes] | None = None
) -> None:
    """Reads the body of a retry, which is compared with that of the first request and not kept.

    Args:
        request: The retry.
        length: Bytes in all, as declared.
        hasher: Is updated with the body; None: it is not compared.
        rest: The rest of the body, if its beginning has been read.

    Raises:
        Problem: incomplete_body.
    """
    position = 0
    try:
        async for chunk in rest or request.stream():
            position += len(chunk)
            if hasher is not None:
                hasher.update(chunk)
    except ClientDisconnect:
        raise incomplete_body(position, length) from None


async def first_bytes(stream: AsyncIterator[bytes], count: int, length: int) -> bytes:
    """Returns the body's beginning: at least `count` bytes, or the whole of a shorter body."""
    beginning = b""
    try:
        while len(beginning) < count:
            beginning += await anext(stream)
    except StopAsyncIteration:
        pass
    except ClientDisconnect:
        raise incomplete_body(len(beginning), length) from None
    return beginning


def incomplete_body(received: int, length: int) -> Problem:
    """Returns the problem of a body whose sender left before its end."""
    return Problem("incomplete_body", f"the body ended after {received} of {length} bytes: the request changed nothing")
