"""/functions: create, list, get, call, gradient, check_gradients, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Full, IdempotencyKey, path_id_of
from teletape_server.worker.models.checks import CheckReport, FunctionCheck
from teletape_server.worker.models.functions import (
    Function,
    FunctionCall,
    FunctionGradientQuestion,
    FunctionGradients,
    FunctionList,
    NewFunction,
)
from teletape_server.worker.models.ops import OpResults

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

FunctionId = Annotated[str, path_id_of("function", "squared_error")]


@router.post(
    "",
    status_code=201,
    summary="Create a function",
    response_class=Response,
    openapi_extra=takes(NewFunction),
    responses=answers(Function, *SESSION, *BODY, "id_in_use", *WORK, status=201),
)
async def create(request: Request, session: LiveSession, key: IdempotencyKey = None) -> Response:
    """A function is a list of steps on named inputs: ops, assignments, calls of other functions, loops, conditions.

    The server checks names, ops and attributes now, and shapes when the function is called.
    """
    return await dispatch(request, session, "function.create", status=201)


@router.get("", summary="List the functions", response_class=Response, responses=answers(FunctionList, *SESSION))
async def list_(request: Request, session: LiveSession) -> Response:
    """Lists the session's functions with their steps."""
    return await dispatch(request, session, "function.list")


@router.get(
    "/{function}",
    summary="Get a function",
    response_class=Response,
    responses=answers(Function, *SESSION, *NAMED),
)
async def get(request: Request, session: LiveSession, function: FunctionId) -> Response:
    """Returns the function's inputs, steps and outputs."""
    return await dispatch(request, session, "function.get", id=function)


@router.post(
    "/{function}/call",
    summary="Call a function",
    response_class=Response,
    openapi_extra=takes(FunctionCall),
    responses=answers(OpResults, *SESSION, *BODY, *NAMED, "id_in_use", "tape_consumed", "tape_state", *WORK),
)
async def call(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Runs the function on tensors and variables. If `tape` is given, it records the function's ops."""
    return await dispatch(request, session, "function.call", id=function, full=full)


@router.post(
    "/{function}/gradient",
    summary="Compute a function's gradients",
    response_class=Response,
    openapi_extra=takes(FunctionGradientQuestion),
    responses=answers(FunctionGradients, *SESSION, *BODY, *NAMED, "no_gradient_registered", *WORK),
)
async def gradient(
    request: Request, session: LiveSession, function: FunctionId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Computes the function's results for these inputs, and the gradient of their sum with respect to each source.

    The session keeps nothing of it, except what the function's steps assign to variables.
    """
    return await dispatch(request, session, "function.gradient", id=function, full=full)


@router.post(
    "/{function}/check_gradients",
    summary="Check a function's gradients",
    response_class=Response,
    openapi_extra=takes(FunctionCheck),
    responses=answers(CheckReport, *SESSION, *BODY, *NAMED, "no_gradient_registered", *WORK),
)
async def check_gradients(
    request: Request, session: LiveSession, function: FunctionId, key: IdempotencyKey = None
) -> Response:
    """Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`."""
    return await dispatch(request, session, "function.check_gradients", id=function)


@router.delete(
    "/{function}",
    status_code=204,
    summary="Delete a function",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def delete(request: Request, session: LiveSession, function: FunctionId) -> Response:
    """The tensors that it computed stay. Its id cannot be used again in this session."""
    return await dispatch(request, session, "function.delete", id=function, status=204)
