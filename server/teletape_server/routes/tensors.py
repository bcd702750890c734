"""Tensors: put, list, read, end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.admission import Found
from teletape_server.http.dispatch import Dtype, Full, NameQuery, Once, Shape, exchange, named
from teletape_server.http.openapi import BODY, NAMED, SESSION, TENSOR, answers, refusals, takes
from teletape_server.worker.models import models

router = APIRouter(prefix="/sessions/{session}/tensors", tags=["tensors"])

TensorId = Annotated[str, named("tensor", "x")]


@router.post(
    "",
    status_code=201,
    summary="Put a tensor into the session",
    response_class=Response,
    openapi_extra=takes(models.NewTensor, others=TENSOR),
    responses=answers(models.TensorFacts, *SESSION, *BODY, "id_in_use", "resource_exhausted", status=201),
)
async def put(
    request: Request,
    found: Found,
    id: NameQuery = None,  # the field's name on the wire
    dtype: Dtype = None,
    shape: Shape = None,
    key: Once = None,
) -> Response:
    """As JSON, or as raw bytes with dtype and shape in headers: a large one is streamed, and held once."""
    return await exchange(request, found, "tensor.put", status=201, query={"id": id})


@router.get("", summary="List the tensors", response_class=Response, responses=answers(models.Tensors, *SESSION))
async def listing(request: Request, found: Found) -> Response:
    """Facts alone; the numbers of one are at its own address."""
    return await exchange(request, found, "tensor.list")


@router.get(
    "/{tensor}",
    summary="Read a tensor",
    response_class=Response,
    responses=answers(models.TensorFacts, *SESSION, *NAMED, "not_acceptable", others=TENSOR),
)
async def get(request: Request, found: Found, tensor: TensorId, full: Full = False) -> Response:
    """Facts and numbers; or, with Accept: application/octet-stream, the raw bytes."""
    return await exchange(request, found, "tensor.get", name=tensor, full=full, raw_answer=True)


@router.delete(
    "/{tensor}",
    status_code=204,
    summary="End a tensor",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def end(request: Request, found: Found, tensor: TensorId) -> Response:
    """Tapes keep what they need of it. Its id is not used again in the session."""
    return await exchange(request, found, "tensor.release", name=tensor, status=204)
