"""The path of a request to a session's process and back: `dispatch` calls a method, `respond` makes the response.

Nothing here reads what a body says: the method (`handlers.methods`) does, in the session's process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

import teletape_wire as wire
from teletape_server.handlers.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER
from teletape_server.handlers.idempotency import DIGEST, REPLAYED, conflict, request_hash
from teletape_server.hosts.protocols import HostGone, Running
from teletape_server.http.access import registry_of, settings_of
from teletape_server.http.bodies import declared_length, hash_body, read_body
from teletape_server.http.events import PIECE, event_stream
from teletape_server.http.negotiation import answer_type, body_type, wants_events
from teletape_server.http.parameters import idempotency_key
from teletape_server.http.schemas import Progress
from teletape_server.problems import Problem
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.tensor_files.metadata import REQUEST
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE


async def dispatch(
    request: Request,
    session: SessionEntry,
    method: str,
    params: dict[str, Any],
    *,
    takes: Sequence[str],
    offers: Sequence[str],
    status: int,
) -> Response:
    """Calls a method of the session's process with the request's body, and returns its result as a response.

    Args:
        request: The request; its body goes to the process unread.
        session: The session.
        method: The method's name; see `handlers.methods`.
        params: Of the method, from path, query and headers; `accept` replaces the negotiated type of the answer.
        takes: The types that the body may have; none: there is no body.
        offers: The types that the answer may have; none: it has no body.
        status: Of a successful response.

    Raises:
        Problem: The request was refused by the front or by the method.
    """
    headers = request.headers
    key = idempotency_key(headers)
    if params.get("accept") is None:
        # An answer without a body has no type; browsers then ask for that of the problems.
        params["accept"] = answer_type(headers, offers, wire.JSON_TYPE) if offers else wire.JSON_TYPE
    params |= {"collection": request.scope["path"], "idempotency_key": key}
    content_type = body_type(headers, takes) if takes else ""
    running = await submitted(request, session, method, params, content_type=content_type)
    patience = None if key is None else settings_of(request).patience
    return await respond(request, session, running, patience=patience, status=status)


async def submitted(
    request: Request, session: SessionEntry, method: str, params: Mapping[str, Any], *, content_type: str
) -> Running:
    """Submits a request with its body; the retry of one that runs gets that one, and its own body is not kept.

    Args:
        request: The request.
        session: The session whose process runs it.
        method: The method's name.
        params: Its parameters; `idempotency_key` may be None.
        content_type: Of the body.

    Raises:
        Problem: incomplete_body, busy, resource_exhausted, overloaded, session_ended, shutting_down.
        IdempotencyConflictError: The key belongs to another request, which runs.
    """
    registry, key = registry_of(request), params["idempotency_key"]
    length = declared_length(request.headers, settings_of(request).max_body, content_type)
    if key is None:
        body = await read_body(request, session, length)
        return registry.submit(session, method, params, content_type=content_type, body=body)
    hasher = request_hash(method, content_type, *sorted(params.items()))
    if key in session.running_keys:
        digest, running = session.running_keys[key]
        await hash_body(request, length, hasher)
    else:
        body = await read_body(request, session, length, hasher=hasher)
        if key not in session.running_keys:
            digest = hasher.digest()
            running = registry.submit(session, method, {**params, DIGEST: digest}, content_type=content_type, body=body)
            session.note_key(key, digest, running)
            return running
        digest, running = session.running_keys[key]  # it came meanwhile
        if body is not None:
            body.discard()
    if digest != hasher.digest():
        raise conflict(key)
    request.state.joins = True
    return running


def fields_outside(request: Request, takes: Sequence[str]) -> dict[str, Any]:
    """Returns the parameters of a method with what the query and the headers say about a body that is not JSON.

    Args:
        request: The request.
        takes: The types that its body may have.
    """
    params: dict[str, Any] = {}
    if SAFETENSORS_TYPE in takes:
        params[REQUEST] = request.query_params.get(REQUEST) if request.scope["query_string"] else None
    if RAW_TYPE in takes:
        headers = request.headers
        params |= {"dtype": headers.get(DTYPE_HEADER), "shape": headers.get(SHAPE_HEADER)}
    return params


async def respond(
    request: Request, session: SessionEntry, running: Running, *, patience: float | None, status: int = 200
) -> Response:
    """Returns the response to a submitted request: its events, its reply, or 202 if it takes too long.

    Args:
        request: The request; its Accept header decides whether it gets events.
        session: The session whose process runs it.
        running: The submitted request.
        patience: Seconds after which the response is 202; None: no limit.
        status: Of a successful response.

    Raises:
        Problem: The method refused the request, or the session ended.
    """
    registry, replayed = registry_of(request), REPLAYED if getattr(request.state, "joins", False) else {}
    if wants_events(request.headers):
        events = event_stream(request, running, status=status, session_ended=lambda: registry.ended(session))
        events.headers.update(replayed)
        return events
    done, _ = await asyncio.wait([running.reply], timeout=patience)
    if not done:
        return still_running(running)
    try:
        response = answer(registry, session, running, status=status)
    except Problem as problem:
        problem.headers = {**problem.headers, **replayed}
        raise
    response.headers.update(replayed)
    return response


def still_running(running: Running) -> Response:
    """Returns the response to a request that takes longer than the server's patience."""
    return JSONResponse(Progress.of(running).model_dump(), 202, {"Retry-After": "1"})


def answer(registry: Registry, session: SessionEntry, running: Running, *, status: int = 200) -> Response:
    """Returns the response to a request that has its reply.

    Args:
        registry: Knows why the session ended, if it did.
        session: The session whose process ran it.
        running: The submitted request.
        status: Of a successful response.

    Raises:
        Problem: The method refused the request, or the session ended.
    """
    try:
        reply = running.reply.result()
    except HostGone:
        raise registry.ended(session) from None
    if reply.code is not None:
        facts = reply.facts
        raise Problem(reply.code, facts["message"], headers=facts.get("headers"), **facts["details"])
    status = reply.facts.get("status", status)
    return LargeResponse(reply.body, status, reply.facts.get("headers"), reply.content_type or None)


class LargeResponse(Response):
    """A response whose body may be large: it is sent in pieces, as the caller takes them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for position in range(0, len(self.body) or 1, PIECE):
            end = position + PIECE
            part = self.body[position:end]
            await send({"type": "http.response.body", "body": part, "more_body": end < len(self.body)})
