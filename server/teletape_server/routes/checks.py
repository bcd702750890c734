"""Checks of a tape's gradients against differences."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Once, exchange
from teletape_server.http.openapi import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.routes.questions import STATE, TapeId
from teletape_server.worker.models.checks import CheckReport, TapeCheck

router = APIRouter()


@router.post(
    "/{tape}/check_gradients",
    summary="Check a tape's gradients",
    response_class=Response,
    openapi_extra=takes(TapeCheck),
    responses=answers(CheckReport, *SESSION, *BODY, *NAMED, *STATE, "no_gradient_registered", *WORK),
)
async def check_gradients(request: Request, found: Found, tape: TapeId, key: Once = None) -> Response:
    """Against differences of its calls, run again: for that it has to be opened as replayable."""
    return await exchange(request, found, "tape.check_gradients", name=tape)
