"""/functions: create, list, get, call, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import After, All, Full, IdempotencyKey, Limit, Prefix, Several, path_id_of
from teletape_server.models.functions.functions import (
    Function,
    FunctionCall,
    FunctionList,
    NewFunction,
    NewFunctionAnswer,
)
from teletape_server.models.listings import Deleted
from teletape_server.models.session.ops import OpResults

router = APIRouter(prefix="/sessions/{session}/functions", tags=["functions"])

FunctionId = Annotated[str, path_id_of("function", "squared_error")]


@router.post(
    "",
    status_code=201,
    summary="Create a function",
    response_class=Response,
    openapi_extra=takes(NewFunction),
    responses=answers(NewFunctionAnswer, *SESSION, *BODY, "id_in_use", "invalid_expression", *WORK, status=201),
)
async def create(request: Request, session: LiveSession, key: IdempotencyKey = None) -> Response:
    """A function is a list of steps on named inputs: ops, assignments, calls of other functions, loops, conditions.

    With `text` the steps come from formulas, as those of `POST /v1/expressions`. The server checks names, ops and
    attributes now, and shapes when the function is called.
    """
    return await dispatch(request, session, "function.create", status=201)


@router.get(
    "",
    summary="List the functions",
    response_class=Response,
    responses=answers(FunctionList, *SESSION, "invalid_request", *NAMED),
)
async def list_(
    request: Request,
    session: LiveSession,
    limit: Limit = None,
    after: After = None,
    prefix: Prefix = None,
) -> Response:
    """Lists the session's functions with their steps."""
    selection = {"limit": limit, "after": after, "prefix": prefix}
    return await dispatch(request, session, "function.list", selection=selection)


@router.delete(
    "",
    summary="Delete several functions",
    response_class=Response,
    responses=answers(Deleted, *SESSION, "invalid_request", *NAMED),
)
async def delete_several(
    request: Request,
    session: LiveSession,
    id: Several = None,
    prefix: Prefix = None,
    all: All = False,
) -> Response:
    """Deletes those named by `id`, or those that the filters select, or all."""
    selection = {"id": id, "prefix": prefix, "all": all}
    return await dispatch(request, session, "function.delete_several", selection=selection)


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


@router.delete(
    "/{function}",
    status_code=204,
    summary="Delete a function",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def delete(request: Request, session: LiveSession, function: FunctionId) -> Response:
    """The tensors that it computed stay. A new one can have its id with `replace`."""
    return await dispatch(request, session, "function.delete", id=function, status=204)
