"""Ops: the catalogue, which is the same for every session, and ops run on no tape."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from teletape_engine.catalogue.describe import catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_server.http.admission import Caller, Found
from teletape_server.http.dispatch import Full, Once, exchange
from teletape_server.http.openapi import BODY, EVENTS, NAMED, SESSION, WORK, answers, refusals, takes
from teletape_server.http.schemas import OpFacts, OpList
from teletape_server.worker.models import models

router = APIRouter()


@cache
def _facts() -> dict[str, dict[str, Any]]:
    """Every op's description by name: made once, the catalogue is frozen."""
    return {one["name"]: one for one in catalogue()}


def _differentiable(facts: dict[str, Any]) -> bool:
    return any(one["kind"] in ("dense", "slices") for one in facts["gradients"].values())


@router.get(
    "/ops", tags=["catalogue"], summary="List the ops", responses=refusals("unauthenticated", "invalid_request")
)
async def listing(
    _: Caller,
    name: Annotated[
        str | None,
        Query(description="Those with this in their name, or in the last part of TensorFlow's", examples=["mat"]),
    ] = None,
    differentiable: Annotated[bool | None, Query(description="Those with a gradient, or those without")] = None,
) -> OpList:
    """Each with its inputs, attributes (as JSON Schema), documentation, and for each input what a gradient keeps."""
    found = [
        facts
        for facts in _facts().values()
        if (
            name is None
            or any(name.lower() in one.rpartition(".")[2].lower() for one in (facts["name"], *facts["tensorflow"]))
        )
        and differentiable in (None, _differentiable(facts))
    ]
    return OpList(ops=[OpFacts.model_validate(one) for one in found])


@router.get(
    "/ops/{op}", tags=["catalogue"], summary="Look at an op", responses=refusals("unauthenticated", "unknown_op")
)
async def get(_: Caller, op: Annotated[str, Path(description="Its name", examples=["matmul"])]) -> OpFacts:
    """What it computes, takes, and keeps for its gradient."""
    return OpFacts.model_validate(_facts()[CATALOGUE.named(op).name])


@router.post(
    "/sessions/{session}/ops",
    tags=["ops"],
    summary="Run ops on no tape",
    response_class=Response,
    openapi_extra=takes(models.Ops),
    responses=answers(models.Results, *SESSION, *BODY, *NAMED, "id_in_use", *WORK, others=EVENTS),
)
async def run(request: Request, found: Found, full: Full = False, key: Once = None) -> Response:
    """If one fails, those before it stand, and the ids of the rest stay free."""
    return await exchange(request, found, "ops", full=full)
