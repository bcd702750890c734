"""/requests: those that have an address, since they take long or were sent to be answered later."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.handlers.idempotency import not_found
from teletape_server.hosts.protocols import Running
from teletape_server.http.access import (
    Authenticated,
    live_session,
    long_requests_of,
    note_look,
    registry_of,
    retries_of,
    settings_of,
    waits_of,
)
from teletape_server.http.answers import answer_of_front, still_running
from teletape_server.http.declarations import STILL_RUNNING, refusals
from teletape_server.http.dispatch import respond
from teletape_server.http.parameters import Prefer, preference
from teletape_server.http.progress import wait_of
from teletape_server.identity.principals import Principal
from teletape_server.long_requests import LongRequest
from teletape_server.problems import refusal_of
from teletape_server.sessions.registry import SessionEntry

router = APIRouter(prefix="/requests", tags=["requests"])

RequestId = Annotated[str, Path(description="The request's id, from Location")]


@router.get(
    "/{id}",
    summary="Wait for the answer to a request",
    response_class=Response,
    responses=refusals("unauthenticated", "request_not_found", "answer_dropped", "session_ended", "busy")
    | STILL_RUNNING
    | {
        200: {
            "description": "The request's answer, with the status, the headers and the type that it has",
            "content": {wire.JSON_TYPE: {"schema": {}, "example": {"values": {"y": 1.5}}}},
        }
    },
)
async def get(request: Request, principal: Authenticated, id: RequestId, prefer: Prefer = None) -> Response:
    """Returns the very answer of the request, or its problem; while it runs, 202 with its progress after a while.

    With `Accept: text/event-stream` it is answered by events, as the request itself would be. The answer stays
    here until it is forgotten: after the time that `GET /v1/info` names as `idempotency_window`, or when its session
    ends.
    """
    long = _find(request, principal, id)
    prefers = preference(request.headers)._replace(is_async=False)  # this is where the answer comes later
    patience = prefers.patience(settings_of(request).patience)
    if long.session is not None:
        session = await _session_of(request, long)
        return await respond(
            request, session, _running(request, session, long, id), patience=patience, status=long.status
        )
    if long.refusal is not None:
        raise refusal_of(long.refusal, id)  # a new one: each time it is raised it grows
    attempt = await retries_of(request).earlier(long.owner, long.key)
    if attempt is None:
        raise not_found()
    return await answer_of_front(request, long.owner, long.key, attempt, None, prefers, patience=patience)


@router.delete(
    "/{id}",
    status_code=202,
    summary="Cancel a request",
    response_class=Response,
    responses=refusals("unauthenticated", "request_not_found", "session_ended")
    | STILL_RUNNING
    | {204: {"description": "It has ended already: nothing changes"}},
)
async def delete(request: Request, principal: Authenticated, id: RequestId) -> Response:
    """Stops the request, and no other one, before its next step, also while it waits; its answer is then `cancelled`.

    A request that has ended stays as it is, and so does its answer. The creation of a session goes on.
    """
    long = _find(request, principal, id)
    if long.ended:
        return Response(status_code=204)
    running = retries_of(request).works.get((long.owner, long.key)) if long.session is None else long.running
    if running is not None:
        running.cancel()
    return still_running(running, id, wait=wait_of(waits_of(request), long.owner, running))


def _find(request: Request, principal: Principal, id: str) -> LongRequest:
    """Returns the caller's request with that id, or for an admin that of another owner.

    Raises:
        RequestNotFoundError: There is none, or it is forgotten.
    """
    long = long_requests_of(request).find(id)
    if long.owner != principal.owner:
        if not principal.is_admin:
            raise not_found()
        note_look(request, principal, f"{long.owner}:{long.session or ''}")
    return long


async def _session_of(request: Request, long: LongRequest) -> SessionEntry:
    """Returns the session that has run a request, with a host.

    Raises:
        RequestNotFoundError: Another session has its id.
        Problem: unknown_session, session_ended, overloaded.
    """
    session = registry_of(request).find(long.owner, long.session or "")
    if session.record.uid != long.uid:
        raise not_found()
    request.state.session = session
    return await live_session(request, session)


def _running(request: Request, session: SessionEntry, long: LongRequest, id: str) -> Running:
    """Returns the request if it runs; after that the question for its answer, one for all who ask."""
    if long.running is None:
        assert long.question is not None
        question = long.question()
        registry = registry_of(request)
        body = registry.body_buffer(session, len(question.body)) if question.body else None
        if body is not None:
            body.view[:] = question.body
        running = registry.submit(
            session, question.method, question.params, content_type=question.content_type, body=body
        )
        long.running, running.id, running.has_ended = running, id, True

        def on_reply(_: object) -> None:
            long.running = None

        running.reply.add_done_callback(on_reply)
    return long.running
