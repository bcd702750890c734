"""The path of a request to a session's process and back: `dispatch` calls a method, `respond` makes the response.

Nothing here reads what a body says: the method (`handlers.methods`) does, in the session's process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.handlers.bodies import DTYPE_HEADER, RAW_TYPE, SHAPE_HEADER
from teletape_server.handlers.idempotency import DIGEST, REPLAYED, request_hash
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.protocols import Running
from teletape_server.http.access import long_requests_of, registry_of, settings_of, waits_of
from teletape_server.http.answers import answer, still_running
from teletape_server.http.bodies import declared_length, hash_body, read_body
from teletape_server.http.events import event_stream
from teletape_server.http.frames import FrameBatch, stored_question
from teletape_server.http.negotiation import answer_type, body_type, wants_events
from teletape_server.http.parameters import NO_PREFERENCE, Preference, preference, request_key, time_limit
from teletape_server.http.progress import wait_of
from teletape_server.sessions.registry import SessionEntry
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
    key, prefers = request_key(headers), preference(headers)
    if params.get("accept") is None:
        # An answer without a body has no type; browsers then ask for that of the problems.
        params["accept"] = answer_type(headers, offers, wire.JSON_TYPE) if offers else wire.JSON_TYPE
    params |= {"collection": request.scope["path"], "idempotency_key": key, **time_limit(headers)}
    content_type = body_type(headers, takes) if takes else ""
    running = await submitted(request, session, method, params, content_type=content_type)
    patience = None if key is None else prefers.patience(settings_of(request).patience)
    return await respond(request, session, running, prefers, patience=patience, status=status)


async def submitted(
    request: Request,
    session: SessionEntry,
    method: str,
    params: Mapping[str, Any],
    *,
    content_type: str,
    frame: FrameBatch | None = None,
    beginning: bytes = b"",
    rest: AsyncIterator[bytes] | None = None,
) -> Running:
    """Submits a request with its body; the retry of one that runs gets that one, and its own body is not kept.

    Args:
        request: The request.
        session: The session whose process runs it.
        method: The method's name.
        params: Its parameters; `idempotency_key` may be None.
        content_type: Of the body.
        frame: The batch that the request is, if it is a frame.
        beginning: First bytes of its body, which have been read.
        rest: The rest of it.

    Raises:
        Problem: incomplete_body, busy, resource_exhausted, overloaded, session_ended, shutting_down.
        IdempotencyConflictError: The key belongs to another request, which runs.
    """
    registry, key = registry_of(request), params["idempotency_key"]
    length = declared_length(request.headers, settings_of(request).max_body, content_type)
    identity = key if frame is None else frame.identity
    hasher, digest = None, b""
    if key is not None and identity == key:
        compared = [(name, value) for name, value in params.items() if name != TIME_LIMIT]
        hasher = request_hash(method, content_type, *sorted(compared))
        hasher.update(beginning)
    earlier = None if identity is None else session.under_way.find(identity)
    body = None
    if earlier is None:
        body = await read_body(request, session, length, rest=rest, beginning=beginning, hasher=hasher)
    else:
        await hash_body(request, length, hasher, rest=rest)
    if session.host is None:  # it was set aside, or its process died, while the body came
        try:
            await session.wake()
        except BaseException:
            if body is not None:
                body.discard()
            raise
    if hasher is not None:
        digest = hasher.digest()
        params = {**params, DIGEST: digest}

    def submit() -> Running:
        return registry.submit(session, method, params, content_type=content_type, body=body)

    if identity is None:
        return submit()
    question = partial(stored_question, method, key) if frame is None else frame.question
    running, request.state.joins = session.under_way.join_or_begin(identity, digest, submit, question, body, earlier)
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
    request: Request,
    session: SessionEntry,
    running: Running,
    prefers: Preference = NO_PREFERENCE,
    *,
    patience: float | None,
    status: int = 200,
) -> Response:
    """Returns the response to a submitted request: its events, its reply, or 202 if it takes too long.

    Args:
        request: The request; its Accept header decides whether it gets events.
        session: The session whose process runs it.
        running: The submitted request.
        prefers: What the request prefers.
        patience: Seconds after which the response is 202; None: no limit.
        status: Of a successful response.

    Raises:
        Problem: The method refused the request, or the session ended.
    """
    registry, is_replayed = registry_of(request), getattr(request.state, "joins", False)
    wait = partial(wait_of, waits_of(request), session.owner, running, session)
    if wants_events(request.headers) and not prefers.is_async:
        gone = partial(registry.live.gone, session)
        events = event_stream(request, running, status=status, session_ended=gone, wait=wait)
        events.headers.update(REPLAYED if is_replayed else {})
        return events
    done, _ = await asyncio.wait([running.reply], timeout=patience)
    if prefers.at_once or not done:
        id = long_requests_of(request).of_session(session, running, status)
        return still_running(running, id, prefers.applied, wait())
    return answer(registry, session, running, status=status, is_replayed=is_replayed)
