"""/tensors: create, list, get, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, TENSOR, answers, refusals, takes
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import (
    After,
    All,
    Bins,
    Dtype,
    DtypeFilter,
    Full,
    IdempotencyKey,
    Kind,
    Limit,
    NameQuery,
    Prefix,
    ReplaceQuery,
    Several,
    Shape,
    path_id_of,
)
from teletape_server.models.listings import Deleted
from teletape_server.models.session.tensors import NewTensor, NewTensors, Tensor, TensorHistogram, TensorList

router = APIRouter(prefix="/sessions/{session}/tensors", tags=["tensors"])

TensorId = Annotated[str, path_id_of("tensor", "x")]


@router.post(
    "",
    status_code=201,
    summary="Create a tensor",
    response_class=Response,
    openapi_extra=takes(NewTensor, others=TENSOR),
    responses=answers(Tensor, *SESSION, *BODY, "id_in_use", "resource_exhausted", status=201),
)
async def create(
    request: Request,
    session: LiveSession,
    id: NameQuery = None,
    replace: ReplaceQuery = None,
    dtype: Dtype = None,
    shape: Shape = None,
    key: IdempotencyKey = None,
) -> Response:
    """The body is JSON, or the tensor's bytes (application/octet-stream) with dtype and shape in headers.

    Bytes are little-endian and row-major; the server reads them as they arrive and holds them once.
    """
    return await dispatch(request, session, "tensor.create", status=201, query={"id": id, "replace": replace})


@router.put(
    "",
    summary="Create many tensors",
    response_class=Response,
    openapi_extra=takes(NewTensors),
    responses=answers(TensorList, *SESSION, *BODY, "id_in_use", "resource_exhausted"),
)
async def create_all(request: Request, session: LiveSession, key: IdempotencyKey = None) -> Response:
    """Creates a tensor under each id, all or none. A safetensors file needs nothing else: its names are the ids."""
    return await dispatch(request, session, "tensor.create_all")


@router.get(
    "",
    summary="List the tensors",
    response_class=Response,
    responses=answers(TensorList, *SESSION, "invalid_request", *NAMED),
)
async def list_(
    request: Request,
    session: LiveSession,
    limit: Limit = None,
    after: After = None,
    prefix: Prefix = None,
    kind: Kind = None,
    dtype: DtypeFilter = None,
) -> Response:
    """Lists ids, dtypes, shapes and bytes. As safetensors the answer has the elements too, each tensor under its id."""
    selection = {"limit": limit, "after": after, "prefix": prefix, "kind": kind, "dtype": dtype}
    return await dispatch(request, session, "tensor.list", selection=selection)


@router.delete(
    "",
    summary="Delete several tensors",
    response_class=Response,
    responses=answers(Deleted, *SESSION, "invalid_request", *NAMED),
)
async def delete_several(
    request: Request,
    session: LiveSession,
    id: Several = None,
    prefix: Prefix = None,
    kind: Kind = None,
    dtype: DtypeFilter = None,
    all: All = False,
) -> Response:
    """Deletes those named by `id`, or those that the filters select, or all."""
    selection = {"id": id, "prefix": prefix, "kind": kind, "dtype": dtype, "all": all}
    return await dispatch(request, session, "tensor.delete_several", selection=selection)


@router.get(
    "/{tensor}",
    summary="Get a tensor",
    response_class=Response,
    responses=answers(Tensor, *SESSION, *NAMED, "not_acceptable", others=TENSOR),
)
async def get(request: Request, session: LiveSession, tensor: TensorId, full: Full = False) -> Response:
    """Returns the tensor as JSON, or its bytes for `Accept: application/octet-stream`."""
    return await dispatch(request, session, "tensor.get", id=tensor, full=full)


@router.get(
    "/{tensor}/histogram",
    summary="Get a tensor's histogram",
    response_class=Response,
    responses=answers(TensorHistogram, *SESSION, *NAMED, "invalid_request", "cancelled", "deadline_exceeded"),
)
async def histogram(request: Request, session: LiveSession, tensor: TensorId, bins: Bins = 20) -> Response:
    """Counts the elements: finite, zero, NaN, infinite; their extremes, mean and histogram. Only these are sent."""
    return await dispatch(request, session, "tensor.histogram", id=tensor, bins=bins)


@router.delete(
    "/{tensor}",
    status_code=204,
    summary="Delete a tensor",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED),
)
async def delete(request: Request, session: LiveSession, tensor: TensorId) -> Response:
    """Tapes keep what they need of the tensor. A new one can have its id with `replace`."""
    return await dispatch(request, session, "tensor.delete", id=tensor, status=204)
