"""Loops over functions: while a condition holds, or over elements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Full, Once, exchange, named
from teletape_server.http.openapi import BODY, EVENTS, NAMED, SESSION, WORK, answers, takes
from teletape_server.worker.models import loops, models

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

FunctionId = Annotated[str, named("function", "squared_error")]
_MET = (*SESSION, *BODY, *NAMED, "id_in_use", "tape_consumed", "tape_state", *WORK)


@router.post(
    "/{function}/while",
    summary="Repeat a function while a condition holds",
    response_class=Response,
    openapi_extra=takes(loops.WhileLoop),
    responses=answers(models.Results, *_MET, others=EVENTS),
)
async def repeat(
    request: Request, found: Found, function: FunctionId, full: Full = False, key: Once = None
) -> Response:
    """From its own results, which have the shapes and dtypes of the inputs: a thousand steps are one request.

    Ask with `Accept: text/event-stream` to be told how far it is; POST /cancel stops it between two iterations.
    """
    return await exchange(request, found, "function.while", name=function, full=full)


@router.post(
    "/{function}/scan",
    summary="Run a function over elements",
    response_class=Response,
    openapi_extra=takes(loops.ScanLoop),
    responses=answers(models.Results, *_MET, others=EVENTS),
)
async def scan(request: Request, found: Found, function: FunctionId, full: Full = False, key: Once = None) -> Response:
    """Once for each element along axis 0: a map, a fold or a scan, by what is carried from one to the next."""
    return await exchange(request, found, "function.scan", name=function, full=full)
