"""POST /run: commands in a session that exists for one request only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.access import Owner, registry_of, settings_of
from teletape_server.http.bodies import declared_length, read_body
from teletape_server.http.declarations import BODY, WORK, answers, takes
from teletape_server.http.dispatch import respond
from teletape_server.http.events import event_stream
from teletape_server.http.negotiation import answer_type, body_type, wants_events
from teletape_server.http.parameters import Full
from teletape_server.http.schemas import Device
from teletape_server.leases import Reason
from teletape_server.worker.models.batches import Run, RunAnswer

router = APIRouter(tags=["run"])


@router.post(
    "/run",
    summary="Run commands once, keep nothing",
    response_class=Response,
    openapi_extra=takes(Run),
    responses=answers(
        RunAnswer,
        "unauthenticated",
        *BODY,
        "unknown_id",
        "id_in_use",
        "tape_consumed",
        "tape_state",
        "no_gradient_registered",
        "too_many_sessions",
        "unknown_device",
        *WORK,
    ),
)
async def run(
    request: Request,
    owner: Owner,
    full: Full = False,
    device: Annotated[Device | None, Query(description="Where to compute; default: the server's setting")] = None,
) -> Response:
    """Runs the commands of a batch in a new session, returns the values of `fetch`, and ends the session.

    The request is safe to repeat. If the client disconnects, the computation is cancelled.
    """
    content_type = body_type(request.headers, (wire.JSON_TYPE,))
    accept = answer_type(request.headers, (wire.JSON_TYPE,), wire.JSON_TYPE)
    length = declared_length(request.headers, settings_of(request).max_body)
    registry = registry_of(request)
    device = device or settings_of(request).device
    session, _ = await registry.create(owner, None, device="gpu:0" if device == "gpu" else device, memory_limit=None)

    async def end() -> None:
        await registry.end(session, Reason.DELETED, "it was created for one request")

    response: Response | None = None
    try:
        body = await read_body(request, session, length)
        params = {"full": full, "accept": accept, "idempotency_key": None}
        running = registry.submit(session, "run", params, content_type=content_type, body=body)
        if wants_events(request.headers):
            response = event_stream(
                request, running, status=200, session_ended=lambda: registry.ended(session), after=end
            )
            return response
        return await _unless_disconnected(request, respond(request, session, running, patience=None))
    finally:
        if response is None:
            await end()


async def _unless_disconnected(request: Request, responding: Coroutine[Any, Any, Response]) -> Response:
    """Returns the response, or stops waiting for it when the client disconnects; the session's end cancels the work."""
    response, disconnect = asyncio.ensure_future(responding), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([response, disconnect], return_when=asyncio.FIRST_COMPLETED)
        return await response if response.done() else Response(status_code=204)  # the client has gone
    finally:
        response.cancel()
        disconnect.cancel()


async def _disconnected(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
