"""/tapes/{tape}/check_gradients: compares a tape's gradients with finite differences."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import IdempotencyKey
from teletape_server.models.tapes.checks import CheckReport, TapeCheck
from teletape_server.routes.tapes.questions import STATE, TapeId

router = APIRouter()


@router.post(
    "/{tape}/check_gradients",
    summary="Check a tape's gradients",
    response_class=Response,
    openapi_extra=takes(TapeCheck),
    responses=answers(CheckReport, *SESSION, *BODY, *NAMED, *STATE, "no_gradient_registered", *WORK),
)
async def check_gradients(request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None) -> Response:
    """Compares the gradients with finite differences of the recorded ops, which needs a `replayable` tape."""
    return await dispatch(request, session, "tape.check_gradients", id=tape)
