"""POST /sessions/{session}/batch: commands as JSON, or as a binary frame, executed exactly once."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.access import LiveSession, settings_of
from teletape_server.http.bodies import declared_length, first_bytes
from teletape_server.http.declarations import BODY, SESSION, STILL_RUNNING, answers, takes
from teletape_server.http.dispatch import respond, submitted
from teletape_server.http.frames import TYPES, FrameBatch, batch_params
from teletape_server.http.negotiation import body_type
from teletape_server.http.parameters import IdempotencyKey, Prefer, TimeLimit, preference, request_key
from teletape_server.models.session.batches import Batch, BatchAnswer
from teletape_server.sessions.registry import SessionEntry

router = APIRouter(prefix="/sessions/{session}", tags=["batches"])


@router.post(
    "/batch",
    summary="Run a batch of commands",
    response_class=Response,
    openapi_extra=takes(Batch, others=(wire.FRAME_TYPE,), safetensors=False),
    responses=answers(
        BatchAnswer,
        *SESSION,
        *BODY,
        "bad_command",
        "malformed_frame",
        "corrupt_frame",
        "frame_too_large",
        "not_acceptable",
        "answer_dropped",
        "out_of_turn",
        "sequence_conflict",
        "unknown_structure",
        others=(wire.FRAME_TYPE,),
        safetensors=False,
    )
    | STILL_RUNNING,
)
async def batch(
    request: Request,
    session: LiveSession,
    full: bool = Query(
        False, description="Return every element of large tensors in a JSON answer, not only the first 1000"
    ),
    encoding: str = Query(
        "", pattern="^(|base64)$", description="base64: return the tensors of a JSON answer as base64 bytes"
    ),
    key: IdempotencyKey = None,
    prefer: Prefer = None,
    time_limit: TimeLimit = None,
) -> Response:
    """Runs commands in order. The body is JSON or a binary frame; the Accept header chooses the form of the answer.

    The first command that fails stops the batch. The answer then has a `failure`, with status 200, since the batch was
    accepted. A retry (a frame with the same client, seq and nonce, or the same Idempotency-Key) gets the first answer
    again. Such a batch that runs long is answered 202, with the address where GET waits for its answer.
    """
    content_type = body_type(request.headers, TYPES)
    params = batch_params(request.headers, content_type, full=full, encoding=encoding)
    if content_type == wire.FRAME_TYPE:
        return await _run_frame(request, session, params)
    params["idempotency_key"] = request_key(request.headers)
    running = await submitted(request, session, "batch", params, content_type=content_type)
    prefers = preference(request.headers)
    patience = prefers.patience(settings_of(request).patience) if params["idempotency_key"] else None
    return await respond(request, session, running, prefers, patience=patience)


async def _run_frame(request: Request, session: SessionEntry, params: dict[str, Any]) -> Response:
    """Runs a frame. Its first bytes identify the batch: a retry of a running batch waits for that one."""
    request.state.is_frame = True
    settings = settings_of(request)
    length = declared_length(request.headers, settings.max_body)
    stream = request.stream()
    beginning = await first_bytes(stream, wire.PREFIX_LENGTH, length)
    batch = FrameBatch.read(beginning, params, length=length, max_header=settings.max_header)
    batch = batch.with_key(request_key(request.headers))
    running = await submitted(
        request,
        session,
        "batch",
        batch.params,
        content_type=wire.FRAME_TYPE,
        frame=batch,
        beginning=beginning,
        rest=stream,
    )
    prefers = preference(request.headers)
    patience = prefers.patience(settings.patience) if batch.is_retriable else None
    return await respond(request, session, running, prefers, patience=patience)
