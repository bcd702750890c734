"""/tapes: create, list, get, watch, record ops, reset, delete."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import After, All, Full, IdempotencyKey, Limit, Prefix, Several
from teletape_server.models.listings import Deleted
from teletape_server.models.session.ops import OpCalls, OpResults
from teletape_server.models.tapes.tapes import NewTape, ResetTape, Tape, TapeList, WatchTensors
from teletape_server.routes.tapes import checks, graphs, nodes, questions
from teletape_server.routes.tapes.questions import STATE, TapeId

router = APIRouter(prefix="/sessions/{session}/tapes", tags=["tapes"])

_EXAMPLE = {
    "ops": [
        {"op": "reshape", "inputs": ["w"], "outputs": ["points"], "attrs": {"shape": [3, 1]}},
        {"op": "square", "inputs": ["points"], "outputs": ["squares"]},
        {"op": "mul", "inputs": ["w", "x"], "outputs": ["y"]},
        {"op": "reduce_sum", "inputs": ["y"], "outputs": ["loss"]},
    ]
}


@router.post(
    "",
    status_code=201,
    summary="Create a tape",
    response_class=Response,
    openapi_extra=takes(NewTape),
    responses=answers(Tape, *SESSION, *BODY, *NAMED, "id_in_use", status=201),
)
async def create(request: Request, session: LiveSession, key: IdempotencyKey = None) -> Response:
    """The tape records the ops that are posted to its /ops. Its `parents` record them too, and its gradients."""
    return await dispatch(request, session, "tape.create", status=201)


@router.get(
    "",
    summary="List the tapes",
    response_class=Response,
    responses=answers(TapeList, *SESSION, "invalid_request", *NAMED),
)
async def list_(
    request: Request,
    session: LiveSession,
    limit: Limit = None,
    after: After = None,
    prefix: Prefix = None,
) -> Response:
    """Lists the tapes with their ops and bytes."""
    selection = {"limit": limit, "after": after, "prefix": prefix}
    return await dispatch(request, session, "tape.list", selection=selection)


@router.delete(
    "",
    summary="Delete several tapes",
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
    return await dispatch(request, session, "tape.delete_several", selection=selection)


@router.get("/{tape}", summary="Get a tape", response_class=Response, responses=answers(Tape, *SESSION, *NAMED))
async def get(request: Request, session: LiveSession, tape: TapeId) -> Response:
    """Returns how many ops and bytes the tape holds, and which variables it watches."""
    return await dispatch(request, session, "tape.get", id=tape)


@router.post(
    "/{tape}/watch",
    summary="Watch tensors",
    response_class=Response,
    openapi_extra=takes(WatchTensors),
    responses=answers(Tape, *SESSION, *BODY, *NAMED),
)
async def watch(request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None) -> Response:
    """The tape tracks these tensors in ops posted from now on. It watches trainable variables by itself."""
    return await dispatch(request, session, "tape.watch", id=tape)


@router.post(
    "/{tape}/ops",
    summary="Run ops on a tape",
    response_class=Response,
    openapi_extra=takes(OpCalls, example=_EXAMPLE),
    responses=answers(OpResults, *SESSION, *BODY, *NAMED, "id_in_use", *STATE, *WORK),
)
async def record(
    request: Request, session: LiveSession, tape: TapeId, full: Full = False, key: IdempotencyKey = None
) -> Response:
    """Runs ops in order, recorded by the tape and its parents.

    If an op fails, the results of those before it stay, and the ids of the rest stay free.
    """
    return await dispatch(request, session, "ops", id=tape, full=full)


for _module in (questions, graphs, nodes, checks):
    router.include_router(_module.router)


@router.post(
    "/{tape}/reset",
    summary="Reset a tape",
    response_class=Response,
    openapi_extra=takes(ResetTape, required=False),
    responses=answers(Tape, *SESSION, *BODY, *NAMED, *STATE),
)
async def reset(request: Request, session: LiveSession, tape: TapeId, key: IdempotencyKey = None) -> Response:
    """Removes everything that the tape recorded and watched; it can record again.

    With `release_outputs` the next step of a loop can begin with the same ids.
    """
    return await dispatch(request, session, "tape.reset", id=tape)


@router.delete(
    "/{tape}",
    status_code=204,
    summary="Delete a tape",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def delete(request: Request, session: LiveSession, tape: TapeId) -> Response:
    """Frees everything that the tape keeps. A new one can have its id with `replace`."""
    return await dispatch(request, session, "tape.delete", id=tape, status=204)
