"""/variables: create, list, get, assign, delete."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import BODY, NAMED, SESSION, TENSOR, answers, refusals, takes, with_etag
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import (
    After,
    All,
    Dtype,
    DtypeFilter,
    Full,
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    Limit,
    NameQuery,
    Prefix,
    ReplaceQuery,
    Several,
    Shape,
    path_id_of,
)
from teletape_server.models.listings import Deleted
from teletape_server.models.session.variables import (
    Assignment,
    NewVariable,
    Variable,
    VariableList,
    VariableValues,
)

router = APIRouter(prefix="/sessions/{session}/variables", tags=["variables"])

VariableId = Annotated[str, path_id_of("variable", "w")]


@router.post(
    "",
    status_code=201,
    summary="Create a variable",
    response_class=Response,
    openapi_extra=takes(NewVariable, others=TENSOR),
    responses=with_etag(answers(Variable, *SESSION, *BODY, *NAMED, "id_in_use", "resource_exhausted", status=201)),
)
async def create(
    request: Request,
    session: LiveSession,
    id: NameQuery = None,
    replace: ReplaceQuery = None,
    trainable: Annotated[
        bool | None, Query(description="For a binary body: whether tapes watch it by themselves")
    ] = None,
    name: Annotated[str | None, Query(description="For a binary body: a label for people")] = None,
    dtype: Dtype = None,
    shape: Shape = None,
    key: IdempotencyKey = None,
) -> Response:
    """Its first value is a tensor, a number or an id: in JSON, or as bytes with dtype and shape in headers."""
    query = {"id": id, "replace": replace, "trainable": trainable, "name": name}
    return await dispatch(request, session, "variable.create", status=201, query=query)


@router.put(
    "",
    summary="Write many variables",
    response_class=Response,
    openapi_extra=takes(VariableValues),
    responses=answers(VariableList, *SESSION, *BODY, *NAMED, "id_in_use", "invalid_argument", "resource_exhausted"),
)
async def write_all(request: Request, session: LiveSession, key: IdempotencyKey = None) -> Response:
    """Assigns to each variable by its id, and creates those that do not exist. A safetensors file is enough."""
    return await dispatch(request, session, "variable.write_all")


@router.get(
    "",
    summary="List the variables",
    response_class=Response,
    responses=answers(VariableList, *SESSION, "invalid_request", *NAMED),
)
async def list_(
    request: Request,
    session: LiveSession,
    limit: Limit = None,
    after: After = None,
    prefix: Prefix = None,
    dtype: DtypeFilter = None,
) -> Response:
    """Lists ids, dtypes, shapes and versions. As safetensors the answer has the values too, each under its id."""
    selection = {"limit": limit, "after": after, "prefix": prefix, "dtype": dtype}
    return await dispatch(request, session, "variable.list", selection=selection)


@router.delete(
    "",
    summary="Delete several variables",
    response_class=Response,
    responses=answers(Deleted, *SESSION, "invalid_request", *NAMED),
)
async def delete_several(
    request: Request,
    session: LiveSession,
    id: Several = None,
    prefix: Prefix = None,
    dtype: DtypeFilter = None,
    all: All = False,
) -> Response:
    """Deletes those named by `id`, or those that the filters select, or all."""
    selection = {"id": id, "prefix": prefix, "dtype": dtype, "all": all}
    return await dispatch(request, session, "variable.delete_several", selection=selection)


@router.get(
    "/{variable}",
    summary="Get a variable",
    response_class=Response,
    responses=with_etag(answers(Variable, *SESSION, *NAMED, "not_acceptable", others=TENSOR))
    | {304: {"description": "The version is the one of If-None-Match"}},
)
async def get(
    request: Request, session: LiveSession, variable: VariableId, full: Full = False, if_none_match: IfNoneMatch = None
) -> Response:
    """Returns the variable and its value as JSON, or the value's bytes for `Accept: application/octet-stream`."""
    return await dispatch(request, session, "variable.get", id=variable, full=full, if_none_match=if_none_match)


@router.put(
    "/{variable}",
    summary="Assign to a variable",
    response_class=Response,
    openapi_extra=takes(Assignment, others=TENSOR),
    responses=with_etag(
        answers(Variable, *SESSION, *BODY, *NAMED, "precondition_failed", "invalid_argument", "resource_exhausted")
    ),
)
async def assign(
    request: Request,
    session: LiveSession,
    variable: VariableId,
    mode: Annotated[
        Literal["set", "add", "sub"] | None, Query(description="For a binary body: what to do with it")
    ] = None,
    dtype: Dtype = None,
    shape: Shape = None,
    key: IdempotencyKey = None,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Replaces the value, adds to it or subtracts from it. Dtype and shape stay; the version increases by 1.

    With If-Match nothing is changed if somebody else has changed the variable meanwhile (412).
    """
    return await dispatch(
        request,
        session,
        "variable.assign",
        id=variable,
        query={"mode": mode},
        if_match=if_match,
        if_none_match=if_none_match,
    )


@router.delete(
    "/{variable}",
    status_code=204,
    summary="Delete a variable",
    response_class=Response,
    responses=refusals(*SESSION, *NAMED, "precondition_failed"),
)
async def delete(request: Request, session: LiveSession, variable: VariableId, if_match: IfMatch = None) -> Response:
    """Tapes that watch the variable keep what they need. A new one can have its id with `replace`."""
    return await dispatch(request, session, "variable.delete", id=variable, status=204, if_match=if_match)
