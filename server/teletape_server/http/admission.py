"""The one path of a request: authenticate, find the session, admit, take the body, hand it over, answer.

Nothing here reads what a body says; the kind that is asked (`hosts.kinds`) does, in the session's process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

import teletape_wire as wire
from teletape_server.auth import Keys, presented_key
from teletape_server.hosts import HostGone, Reply, Room, Running
from teletape_server.http.events import stream, wants_events
from teletape_server.http.schemas import Still
from teletape_server.problems import Problem
from teletape_server.registry import Session, Sessions
from teletape_server.settings import Settings

_KEY_LENGTH: Final = 255
_SMALL: Final = 1 << 20  # bytes of a body that the front parses


async def caller(request: Request) -> str:
    """The owner whose key the request carries.

    Raises:
        Problem: unauthenticated.
    """
    keys: Keys = request.app.state.keys
    presented = presented_key(request.headers.get("authorization"), request.headers.get("x-api-key"))
    owner = keys.owner(presented)
    if owner is None:
        found = "none was sent" if presented is None else "the one sent is not known"
        raise Problem(
            "unauthenticated",
            f"this server asks for an API key, and {found}: send Authorization: Bearer KEY, or X-API-Key: KEY",
            headers={"WWW-Authenticate": 'Bearer realm="teletape"'},
        )
    return owner


Caller = Annotated[str, Depends(caller)]


SessionId = Annotated[str, Path(description="The session's id", examples=["demo"])]


async def found_session(request: Request, session: SessionId, owner: Caller) -> Session:
    """The caller's live session that the path names.

    Raises:
        Problem: unauthenticated, unknown_session, session_ended.
    """
    return sessions_of(request).find(owner, session)


Found = Annotated[Session, Depends(found_session)]


def sent_type(request: Request, known: Sequence[str]) -> str:
    """The body's content type, one of `known`; the last of them where none is said.

    Raises:
        Problem: unsupported_media_type.
    """
    said = request.headers.get("content-type")
    if said is None:
        return known[-1]
    name = said.partition(";")[0].strip().lower()
    if name not in known:
        raise Problem(
            "unsupported_media_type",
            f"Content-Type {name!r} is not known here: send {' or '.join(known)}",
            headers={"Accept": ", ".join(known)},
            known=list(known),
        )
    return name


def wanted_type(request: Request, known: Sequence[str], default: str) -> str:
    """Which of `known` the Accept header likes best; `default` where it likes all the same.

    Raises:
        Problem: not_acceptable.
    """
    accept = request.headers.get("accept")
    if accept is None or (wants_events(request) and wire.JSON_TYPE in known):
        return default if accept is None else wire.JSON_TYPE
    liking: dict[str, tuple[float, int]] = {}
    for entry in accept.split(","):
        name, *parameters = [part.strip().lower() for part in entry.split(";")]
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            q = float(weight)
        except ValueError:
            q = 0.0
        for one in (default, *known):
            specific = 2 if name == one else 1 if name == one.partition("/")[0] + "/*" else 0 if name == "*/*" else -1
            if specific >= 0 and specific >= liking.get(one, (0.0, -1))[1]:
                liking[one] = (q, specific)
    best = max(liking, key=lambda one: liking[one], default=None)
    if best is None or liking[best][0] <= 0:
        raise Problem(
            "not_acceptable",
            f"Accept {accept!r} names nothing that can be sent: ask for {' or '.join(known)}",
            known=list(known),
        )
    return best


def declared_length(request: Request, limit: int | None = None) -> int:
    """The body's length as declared, within `limit` (None: the server's); 0 for a request without a body.

    Raises:
        Problem: length_required, body_too_large.
    """
    if limit is None:
        limit = settings_of(request).max_body
    said = request.headers.get("content-length")
    if said is None:
        if "transfer-encoding" in request.headers:
            raise Problem("length_required", "send the body with a Content-Length: its room is taken beforehand")
        return 0
    length = int(said)  # the HTTP parser has refused what is no number
    if length > limit:
        raise Problem(
            "body_too_large",
            f"the body has {length} bytes, at most {limit} are taken: send large tensors in several batches",
            found=length,
            limit=limit,
        )
    return length


class SmallBodies(APIRoute):
    """A route whose body this process reads and parses itself: a small one, checked before it is read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler behind the check."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            declared_length(request, _SMALL)
            return await handle(request)

        return checked


async def take_body(
    request: Request, session: Session, length: int, *, stream: AsyncIterator[bytes] | None = None, first: bytes = b""
) -> Room | None:
    """Writes the body into the host's memory as it comes.

    Args:
        request: Whose body it is.
        session: Whose host gets it.
        length: Bytes in all, as declared.
        stream: The body's rest, if its beginning `first` has been read.
        first: That beginning.

    Raises:
        Problem: incomplete_body, resource_exhausted, session_ended.
    """
    if not length:
        return None
    try:
        room = session.host.room(length)
    except HostGone:
        raise sessions_of(request).ended(session) from None
    except OSError as error:
        raise Problem("resource_exhausted", f"no memory for a body of {length} bytes: {error}") from error
    at = len(first)
    try:
        room.view[:at] = first
        async for chunk in stream or request.stream():
            end = at + len(chunk)
            room.view[at:end] = chunk
            at = end
        if at != length:
            raise _cut(at, length)
    except ClientDisconnect:
        room.discard()
        raise _cut(at, length) from None
    except BaseException:
        room.discard()
        raise
    return room


async def first_bytes(stream: AsyncIterator[bytes], count: int, length: int) -> bytes:
    """The body's beginning: at least `count` bytes, or all that there are."""
    first = b""
    try:
        while len(first) < count:
            first += await anext(stream)
    except StopAsyncIteration:
        pass
    except ClientDisconnect:
        raise _cut(len(first), length) from None
    return first


def _cut(at: int, length: int) -> Problem:
    return Problem("incomplete_body", f"the body ended after {at} of {length} bytes: nothing was done")


def idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key, under which a retry gets the first answer again.

    Raises:
        Problem: invalid_request, for one that is too long.
    """
    key = request.headers.get("idempotency-key")
    if key is not None and not 0 < len(key) <= _KEY_LENGTH:
        raise Problem("invalid_request", f"an Idempotency-Key has 1 to {_KEY_LENGTH} characters, found {len(key)}")
    return key


async def ask(
    request: Request,
    session: Session,
    kind: str,
    params: Mapping[str, Any],
    *,
    content_type: str = "",
    status: int = 200,
) -> Response:
    """The whole path behind admission for a plain resource: body in, one request to the host, its answer out."""
    params = {**params, "idempotency_key": idempotency_key(request)}
    room = await take_body(request, session, declared_length(request))
    running = sessions_of(request).submit(session, kind, params, content_type=content_type, room=room)
    patience = None if params["idempotency_key"] is None else request.app.state.settings.patience
    return await answer(request, session, running, patience=patience, status=status)


async def answer(
    request: Request, session: Session, running: Running, *, patience: float | None, status: int = 200
) -> Response:
    """The response for a request that runs: its events, or its reply, or 202 when that takes too long.

    Args:
        request: Who asks; Accept says whether for events.
        session: Whose process runs it.
        running: What runs.
        patience: Seconds until the answer is 202; None: any number.
        status: Of the reply.

    Raises:
        Problem: What the kind refused with; session_ended.
    """
    if wants_events(request):
        return stream(request, running, status=status, gone=lambda: sessions_of(request).ended(session))
    reply = await replied(request, session, running, patience=patience)
    if reply is None:
        return JSONResponse(Still.of(running).model_dump(), 202, {"Retry-After": "1"})
    return Response(reply.body, status, reply.facts.get("headers"), reply.content_type or None)


async def replied(request: Request, session: Session, running: Running, *, patience: float | None) -> Reply | None:
    """The host's reply, or None when it takes longer than `patience` seconds.

    Raises:
        Problem: As `answer`.
    """
    done, _ = await asyncio.wait([running.reply], timeout=patience)
    if not done:
        return None
    try:
        reply = running.reply.result()
    except HostGone:
        raise sessions_of(request).ended(session) from None
    if reply.code is not None:
        raise Problem(reply.code, reply.facts["message"], **reply.facts["details"])
    return reply


def settings_of(request: Request) -> Settings:
    """The server's settings."""
    settings: Settings = request.app.state.settings
    return settings


def sessions_of(request: Request) -> Sessions:
    """The server's sessions."""
    sessions: Sessions = request.app.state.sessions
    return sessions
