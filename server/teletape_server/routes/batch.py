"""Batches: commands in either form of the wire, executed exactly once."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.admission import (
    Found,
    answer,
    declared_length,
    first_bytes,
    idempotency_key,
    sent_type,
    sessions_of,
    settings_of,
    take_body,
    wanted_type,
)
from teletape_server.http.openapi import BODY, EVENTS, RAW, SESSION, answers, takes
from teletape_server.http.schemas import Still
from teletape_server.registry import Session
from teletape_server.worker.models import models

router = APIRouter(prefix="/sessions/{session}", tags=["batches"])

TYPES: Final = (wire.FRAME_TYPE, wire.JSON_TYPE)


@router.post(
    "/batch",
    summary="Execute a batch of commands",
    response_class=Response,
    openapi_extra=takes(models.Batch, others={wire.FRAME_TYPE: RAW}),
    responses=answers(
        models.BatchAnswer,
        *SESSION,
        *BODY,
        "bad_command",
        "malformed_frame",
        "corrupt_frame",
        "frame_too_large",
        "not_acceptable",
        "out_of_turn",
        "sequence_conflict",
        others={wire.FRAME_TYPE: RAW, **EVENTS},
    )
    | {202: {"model": Still, "description": "It runs still: send the same request again to wait on"}},
)
async def batch(
    request: Request,
    found: Found,
    full: bool = Query(False, description="Every element of large tensors in a JSON answer, not the first 1000"),
    encoding: str = Query("", pattern="^(|base64)$", description="base64: tensors of a JSON answer as raw bytes"),
) -> Response:
    """Commands in order, as JSON or as a binary frame; the answer in the form that Accept asks for.

    A failing command stops the batch where it happens: the answer then has a `failure`, and status 200 all the same,
    since the batch was taken. A retry (a frame with the same client, seq and nonce, or the same Idempotency-Key)
    gets the first answer again. One that runs for long is answered 202: send the same request again to wait on.
    """
    sent = sent_type(request, TYPES)
    params = {
        "accept": wanted_type(request, TYPES, sent),
        "full": full,
        "encoding": encoding,
        "idempotency_key": idempotency_key(request),
    }
    length = declared_length(request)
    patience = settings_of(request).patience
    if sent == wire.FRAME_TYPE:
        return await _frame(request, found, params, length, patience)
    room = await take_body(request, found, length)
    running = sessions_of(request).submit(found, "batch", params, content_type=sent, room=room)
    return await answer(request, found, running, patience=patience if params["idempotency_key"] else None)


async def _frame(request: Request, session: Session, params: dict[str, Any], length: int, patience: float) -> Response:
    """A frame says in its first bytes which batch it is: a retry of one that runs joins it."""
    settings = settings_of(request)
    stream = request.stream()
    first = await first_bytes(stream, wire.PREFIX_LENGTH, length)
    prefix = wire.decode_prefix(first, max_header=settings.max_header)
    if prefix.total_length != length:
        raise wire.WireError(f"the frame is declared with {prefix.total_length} bytes, Content-Length says {length}")
    if not prefix.client and prefix.nonce and params["idempotency_key"] is None:
        params["idempotency_key"] = prefix.nonce.hex()
    retriable = bool(prefix.client or params["idempotency_key"])
    key = (prefix.client, prefix.seq, prefix.nonce, *params.values())
    running = session.batches.get(key) if retriable else None
    if running is not None:
        async for _ in stream:  # read, or the connection could not be used again
            pass
    else:
        room = await take_body(request, session, length, stream=stream, first=first)
        running = sessions_of(request).submit(session, "batch", params, content_type=wire.FRAME_TYPE, room=room)
        if retriable:
            session.batches[key] = running

            def answered(_: object) -> None:
                if session.batches.get(key) is running:  # a retry may have taken its place
                    del session.batches[key]

            running.reply.add_done_callback(answered)
    return await answer(request, session, running, patience=patience if retriable else None)
