"""Functions: define, list, look, call, differentiate, end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Full, Once, exchange, named
from teletape_server.http.openapi import BODY, EVENTS, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.worker.models import functions, models
from teletape_server.worker.models.checks import CheckReport, FunctionCheck

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

FunctionId = Annotated[str, named("function", "squared_error")]


@router.post(
    "",
    status_code=201,
    summary="Define a function",
    response_class=Response,
    openapi_extra=takes(functions.NewFunction),
    responses=answers(functions.Function, *SESSION, *BODY, "id_in_use", *WORK, status=201),
)
async def define(request: Request, found: Found, key: Once = None) -> Response:
    """Steps on named inputs, in order: ops, assignments to variables, calls of other functions, loops and conditions.

    Names, ops and attributes are checked now, shapes when it is called.
    """
    return await exchange(request, found, "function.define", status=201)


@router.get("", summary="List the functions", response_class=Response, responses=answers(functions.Functions, *SESSION))
async def listing(request: Request, found: Found) -> Response:
    """With their steps."""
    return await exchange(request, found, "function.list")


@router.get(
    "/{function}",
    summary="Look at a function",
    response_class=Response,
    responses=answers(functions.Function, *SESSION, *NAMED),
)
async def get(request: Request, found: Found, function: FunctionId) -> Response:
    """Its inputs, steps and outputs."""
    return await exchange(request, found, "function.get", name=function)


@router.post(
    "/{function}/call",
    summary="Call a function",
    response_class=Response,
    openapi_extra=takes(functions.FunctionCall),
    responses=answers(
        models.Results, *SESSION, *BODY, *NAMED, "id_in_use", "tape_consumed", "tape_state", *WORK, others=EVENTS
    ),
)
async def call(request: Request, found: Found, function: FunctionId, full: Full = False, key: Once = None) -> Response:
    """On values and variables; a tape, if one is named, records its ops as if they had been posted there."""
    return await exchange(request, found, "function.call", name=function, full=full)


@router.post(
    "/{function}/gradient",
    summary="Differentiate a function",
    response_class=Response,
    openapi_extra=takes(functions.FunctionGradient),
    responses=answers(functions.FunctionGradients, *SESSION, *BODY, *NAMED, "no_gradient_registered", *WORK),
)
async def gradient(
    request: Request, found: Found, function: FunctionId, full: Full = False, key: Once = None
) -> Response:
    """Its results for these inputs, and the gradient of their sum: forward and backward in one request.

    Nothing stays in the session but what its steps assign.
    """
    return await exchange(request, found, "function.gradient", name=function, full=full)


@router.post(
    "/{function}/check_gradients",
    summary="Check a function's gradients",
    response_class=Response,
    openapi_extra=takes(FunctionCheck),
    responses=answers(CheckReport, *SESSION, *BODY, *NAMED, "no_gradient_registered", *WORK),
)
async def check_gradients(request: Request, found: Found, function: FunctionId, key: Once = None) -> Response:
    """Against differences of it. 200 whether they agree or not: `agrees` says so, `worst` names the entry."""
    return await exchange(request, found, "function.check_gradients", name=function)


@router.delete(
    "/{function}",
    status_code=204,
    summary="End a function",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def end(request: Request, found: Found, function: FunctionId) -> Response:
    """What it made stays. Its id is not used again in the session."""
    return await exchange(request, found, "function.release", name=function, status=204)
