"""/functions/{function}/train: many training steps in one request."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Full, IdempotencyKey
from teletape_server.models.functions.training import Training, TrainingAnswer
from teletape_server.routes.functions.functions import FunctionId

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])


@router.post(
    "/{function}/train",
    summary="Train variables",
    response_class=Response,
    openapi_extra=takes(Training),
    responses=answers(TrainingAnswer, *SESSION, *BODY, *NAMED, "id_in_use", "no_gradient_registered", *WORK),
)
async def train(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Minimizes one of the function's outputs: each step computes the gradients and changes the variables.

    Send `Accept: text/event-stream` to watch steps and loss. POST /cancel stops it between two steps: the variables
    keep what whole steps have assigned.
    """
    return await dispatch(request, session, "function.train", id=function, full=full)
