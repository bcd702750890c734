"""/functions/{function}/while and /scan: loops over a function."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Full, IdempotencyKey
from teletape_server.models.functions.loops import ScanLoop, WhileLoop
from teletape_server.models.session.ops import OpResults
from teletape_server.routes.functions.functions import FunctionId

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

_PROBLEMS = (*SESSION, *BODY, *NAMED, "id_in_use", "tape_consumed", "tape_state", *WORK)


@router.post(
    "/{function}/while",
    summary="Run a function in a while loop",
    response_class=Response,
    openapi_extra=takes(WhileLoop),
    responses=answers(OpResults, *_PROBLEMS),
)
async def while_(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Calls the function on its own results while a condition holds: a thousand iterations are one request.

    The results have the shapes and dtypes of the inputs. Send `Accept: text/event-stream` to watch the progress; POST
    /cancel stops the loop between two iterations.
    """
    return await dispatch(request, session, "function.while", id=function, full=full)


@router.post(
    "/{function}/scan",
    summary="Run a function over elements",
    response_class=Response,
    openapi_extra=takes(ScanLoop),
    responses=answers(OpResults, *_PROBLEMS),
)
async def scan(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Calls the function once for each element along axis 0: a map, a fold or a scan, depending on what it carries."""
    return await dispatch(request, session, "function.scan", id=function, full=full)
