"""POST /run: one request, and a session that lives for it alone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.admission import (
    Caller,
    answer,
    declared_length,
    sent_type,
    sessions_of,
    settings_of,
    take_body,
    wanted_type,
)
from teletape_server.http.dispatch import Full
from teletape_server.http.events import stream, wants_events
from teletape_server.http.openapi import BODY, EVENTS, WORK, answers, takes
from teletape_server.http.schemas import Device
from teletape_server.leases import Reason
from teletape_server.worker.models import models

router = APIRouter(tags=["run"])


@router.post(
    "/run",
    summary="Run commands, and forget them",
    response_class=Response,
    openapi_extra=takes(models.Run),
    responses=answers(
        models.RunAnswer,
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
        others=EVENTS,
    ),
)
async def run(
    request: Request,
    owner: Caller,
    full: Full = False,
    device: Annotated[Device | None, Query(description="Where; the server's own choice if left out")] = None,
) -> Response:
    """The commands of a batch, and the values to answer with. Safe to repeat: nothing of it stays."""
    content_type = sent_type(request, (wire.JSON_TYPE,))
    accept = wanted_type(request, (wire.JSON_TYPE,), wire.JSON_TYPE)
    length = declared_length(request)
    sessions = sessions_of(request)
    where = device or settings_of(request).device
    session, _ = await sessions.create(owner, None, device="gpu:0" if where == "gpu" else where, memory_limit=None)

    async def end() -> None:
        await sessions.end(session, Reason.DELETED, "it was for one request")

    response: Response | None = None
    try:
        room = await take_body(request, session, length)
        params = {"full": full, "accept": accept, "idempotency_key": None}
        running = sessions.submit(session, "run", params, content_type=content_type, room=room)
        if wants_events(request):
            response = stream(request, running, status=200, gone=lambda: sessions.ended(session), after=end)
            return response
        return await _unless_left(request, answer(request, session, running, patience=None))
    finally:
        if response is None:
            await end()


async def _unless_left(request: Request, answering: Coroutine[Any, Any, Response]) -> Response:
    """The answer. Where the caller goes away before, nobody waits for it: the session ends, and the work with it."""
    answered, left = asyncio.ensure_future(answering), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([answered, left], return_when=asyncio.FIRST_COMPLETED)
        return await answered if answered.done() else Response(status_code=204)  # which nobody reads
    finally:
        answered.cancel()
        left.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
