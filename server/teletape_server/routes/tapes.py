"""Tapes: open, watch, record, ask, reset, end."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Full, Once, exchange
from teletape_server.http.openapi import BODY, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.routes import checks, pictures, questions
from teletape_server.routes.questions import STATE, TapeId
from teletape_server.worker.models import models

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
    summary="Open a tape",
    response_class=Response,
    openapi_extra=takes(models.NewTape),
    responses=answers(models.Tape, *SESSION, *BODY, *NAMED, "id_in_use", status=201),
)
async def make(request: Request, found: Found, key: Once = None) -> Response:
    """It records what is posted to its /ops, and nothing else. With parents, they record that too."""
    return await exchange(request, found, "tape.open", status=201)


@router.get("", summary="List the tapes", response_class=Response, responses=answers(models.Tapes, *SESSION))
async def listing(request: Request, found: Found) -> Response:
    """With what each holds."""
    return await exchange(request, found, "tape.list")


@router.get(
    "/{tape}", summary="Look at a tape", response_class=Response, responses=answers(models.Tape, *SESSION, *NAMED)
)
async def get(request: Request, found: Found, tape: TapeId) -> Response:
    """How much it holds, and which variables it watches."""
    return await exchange(request, found, "tape.get", name=tape)


@router.post(
    "/{tape}/watch",
    summary="Have a tape watch tensors",
    response_class=Response,
    openapi_extra=takes(models.Watch),
    responses=answers(models.Tape, *SESSION, *BODY, *NAMED),
)
async def watch(request: Request, found: Found, tape: TapeId, key: Once = None) -> Response:
    """Before the ops that use them. Trainable variables are watched as they are read."""
    return await exchange(request, found, "tape.watch", name=tape)


@router.post(
    "/{tape}/ops",
    summary="Run ops, recorded on a tape",
    response_class=Response,
    openapi_extra=takes(models.Ops, example=_EXAMPLE),
    responses=answers(models.Results, *SESSION, *BODY, *NAMED, "id_in_use", *STATE, *WORK),
)
async def record(request: Request, found: Found, tape: TapeId, full: Full = False, key: Once = None) -> Response:
    """On this tape and its parents. If one fails, those before it stand, and the ids of the rest stay free."""
    return await exchange(request, found, "ops", name=tape, full=full)


for _module in (questions, pictures, checks):
    router.include_router(_module.router)


@router.post(
    "/{tape}/reset",
    summary="Have a tape forget everything",
    response_class=Response,
    responses=answers(models.Tape, *SESSION, *NAMED, *STATE),
)
async def reset(request: Request, found: Found, tape: TapeId, key: Once = None) -> Response:
    """What it recorded and what it watched; it can record anew."""
    return await exchange(request, found, "tape.reset", name=tape)


@router.delete(
    "/{tape}",
    status_code=204,
    summary="End a tape",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def end(request: Request, found: Found, tape: TapeId) -> Response:
    """With all that it kept. Its id is not used again in the session."""
    return await exchange(request, found, "tape.release", name=tape, status=204)
