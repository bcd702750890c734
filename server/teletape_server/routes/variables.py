"""Variables: make, list, read, assign, end."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Dtype, Full, NameQuery, Once, Shape, exchange, named
from teletape_server.http.openapi import BODY, NAMED, SESSION, TENSOR, answers, refusals, takes
from teletape_server.worker.models import models

router = APIRouter(prefix="/sessions/{session}/variables", tags=["variables"])

VariableId = Annotated[str, named("variable", "w")]


@router.post(
    "",
    status_code=201,
    summary="Make a variable",
    response_class=Response,
    openapi_extra=takes(models.NewVariable, others=TENSOR),
    responses=answers(models.Variable, *SESSION, *BODY, *NAMED, "id_in_use", "resource_exhausted", status=201),
)
async def make(
    request: Request,
    found: Found,
    id: NameQuery = None,  # the field's name on the wire
    trainable: Annotated[bool | None, Query(description="Of a raw body")] = None,
    name: Annotated[str | None, Query(description="Of a raw body: a label for people")] = None,
    dtype: Dtype = None,
    shape: Shape = None,
    key: Once = None,
) -> Response:
    """Its value is a tensor, a number or what has an id; as JSON, or raw bytes with dtype and shape in headers."""
    query = {"id": id, "trainable": trainable, "name": name}
    return await exchange(request, found, "variable.make", status=201, query=query)


@router.get("", summary="List the variables", response_class=Response, responses=answers(models.Variables, *SESSION))
async def listing(request: Request, found: Found) -> Response:
    """Facts alone; the numbers of one are at its own address."""
    return await exchange(request, found, "variable.list")


@router.get(
    "/{variable}",
    summary="Read a variable",
    response_class=Response,
    responses=answers(models.Variable, *SESSION, *NAMED, "not_acceptable", others=TENSOR),
)
async def get(request: Request, found: Found, variable: VariableId, full: Full = False) -> Response:
    """Facts and numbers; or, with Accept: application/octet-stream, the raw bytes."""
    return await exchange(request, found, "variable.get", name=variable, full=full, raw_answer=True)


@router.put(
    "/{variable}",
    summary="Assign to a variable",
    response_class=Response,
    openapi_extra=takes(models.Assignment, others=TENSOR),
    responses=answers(models.Variable, *SESSION, *BODY, *NAMED, "invalid_argument", "resource_exhausted"),
)
async def assign(
    request: Request,
    found: Found,
    variable: VariableId,
    mode: Annotated[Literal["set", "add", "sub"] | None, Query(description="Of a raw body")] = None,
    dtype: Dtype = None,
    shape: Shape = None,
    key: Once = None,
) -> Response:
    """Its next version, by replacing, adding or subtracting; shape and dtype stay."""
    return await exchange(request, found, "variable.assign", name=variable, query={"mode": mode})


@router.delete(
    "/{variable}",
    status_code=204,
    summary="End a variable",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def end(request: Request, found: Found, variable: VariableId) -> Response:
    """Tapes that watch it keep what they need. Its id is not used again in the session."""
    return await exchange(request, found, "variable.release", name=variable, status=204)
