"""/published: publish, list, get, name versions, delete, move to another server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.responses import JSONResponse, StreamingResponse

import teletape_wire as wire
from teletape_server.handlers.endpoints import WORK
from teletape_server.hosts.protocols import HostGone, Reply
from teletape_server.http.access import Authenticated, find_session, live_session, note, registry_of, settings_of
from teletape_server.http.bodies import SmallBodyRoute, declared_length, read_body
from teletape_server.http.declarations import BODY, SESSION, answers, refusals, takes
from teletape_server.http.dispatch import fields_outside
from teletape_server.http.negotiation import body_type, body_types
from teletape_server.http.parameters import TimeLimit, time_limit
from teletape_server.identity.principals import Principal
from teletape_server.models.base import NAME_PATTERN
from teletape_server.models.listings import next_link, page
from teletape_server.models.parameters import Page
from teletape_server.models.published.contract import LATEST, Name, Published, split_reference
from teletape_server.models.published.publications import (
    AliasTarget,
    Publication,
    PublishedFunction,
    PublishedList,
    PublishedReady,
    PublishedVersion,
    PublishedVersions,
)
from teletape_server.problems import Problem
from teletape_server.published.files import Export, export
from teletape_server.published.openapi import document_of
from teletape_server.published.publishing import Publisher
from teletape_server.routes.published.access import Reference, catalogue_of, check_own, find, find_own, pool_of, visible
from teletape_wire.safetensors.layout import SAFETENSORS_TYPE

router = APIRouter(prefix="/published", tags=["published"])
aliases = APIRouter(prefix="/published", tags=["published"], route_class=SmallBodyRoute)

_TAKES: Final = takes(Publication)
_BODY_TYPES: Final = body_types(_TAKES)
_UNKNOWN: Final = ("unauthenticated", "unknown_id")
_PIECE: Final = 1 << 20  # bytes of an export that are sent at once
NewName = Annotated[str, Path(pattern=NAME_PATTERN, description="A name of your choice", examples=["line"])]
Alias = Annotated[
    str, Path(pattern=NAME_PATTERN, description="A name of a version, such as stable", examples=["stable"])
]


@router.put(
    "/{name}",
    status_code=201,
    summary="Publish a function",
    response_class=Response,
    openapi_extra=_TAKES,
    responses=answers(
        PublishedFunction,
        *SESSION,
        *BODY,
        *("id_in_use", "unknown_id", "released_id", "poisoned", "invalid_expression", "overloaded", *WORK),
        status=201,
        safetensors=False,
    )
    | {200: {"model": PublishedFunction, "description": "The same version was published before"}},
)
async def publish(
    request: Request,
    principal: Authenticated,
    name: NewName,
    session: Annotated[
        str | None, Query(description="The session whose function, variables and tensors the body names")
    ] = None,
    time_limit_: TimeLimit = None,
) -> Response:
    """Publishes a version of a function under a name: whoever may see it can call it, without a session.

    A version is named by a hash of its content: the same function, inputs and weights are the same version again. What
    the body says of visibility and description is from now on that of the name. Examples are computed, compared with
    the outputs that they have, and stored; the gradients at the first one are compared with finite differences. A body
    of the type application/vnd.safetensors has the weights as tensors `weights/NAME`, or is the export of a version.
    """
    catalogue = catalogue_of(request.app.state)
    check_own(principal, catalogue.names.get(name))
    reply = await _prepared(request, principal, session)
    publisher: Publisher = request.app.state.publisher
    is_new = await publisher.publish(name, principal.owner, reply)
    item = catalogue.names[name]
    published = item.version(LATEST)
    result = described(item, published, publisher.is_durable)
    text = "" if published is None else f"version {published.version}, {item.visibility}"
    note(request, principal, "function.published", name, text)
    headers = {"location": f"/v1/published/{name}"}
    return Response(result.model_dump_json().encode(), 201 if is_new else 200, headers, wire.JSON_TYPE)


async def _prepared(request: Request, principal: Principal, session: str | None) -> Reply:
    """Returns the contract and the weights of what a request publishes, and what it says of the name.

    Raises:
        Problem: It is refused.
    """
    content_type = body_type(request.headers, _BODY_TYPES)
    length = declared_length(request.headers, settings_of(request).max_body, content_type)
    params = {**fields_outside(request, _BODY_TYPES), "in_session": session is not None, **time_limit(request.headers)}
    registry = registry_of(request)
    if session is None:
        entry = await registry.begin_run(principal.owner, principal.account, device=settings_of(request).device)
    else:
        entry = await live_session(request, find_session(request, principal, session))
    try:
        body = await read_body(request, entry, length)
        running = registry.submit(entry, "published-prepare", params, content_type=content_type, body=body)
        reply = await asyncio.shield(running.reply)
    except HostGone:
        raise registry.live.gone(entry) from None
    finally:
        if session is None:
            await registry.end_run(entry)
    if reply.code is not None:
        raise Problem(reply.code, reply.facts["message"], **reply.facts["details"])
    return reply


@router.get(
    "",
    summary="List the published functions",
    response_model=PublishedList,
    responses=refusals("unauthenticated", "invalid_request", "unknown_id"),
)
async def list_(request: Request, response: Response, principal: Authenticated, query: Annotated[Page, Query()]) -> Any:
    """Lists those that your key may call, by name, each with its latest version."""
    limit, after, prefix = query.limit, query.after, query.prefix
    names = visible(request, principal)
    if after is not None:
        find(request, principal, after)
    chosen = [name for name in names if name.name == after or name.name.startswith(prefix or "")]
    shown, has_more = page(chosen, lambda name: name.name, after, limit)
    following = shown[-1].name if has_more else None
    if following is not None:
        response.headers["Link"] = next_link(request.url.path, {"limit": limit, "prefix": prefix}, following)
    is_durable = request.app.state.publisher.is_durable
    published = [described(name, name.version(LATEST), is_durable) for name in shown]
    return PublishedList(published=published, next=following)


@router.get("/{name}", summary="Get a published function", responses=refusals(*_UNKNOWN, "internal"))
async def get(request: Request, principal: Authenticated, name: Reference) -> PublishedFunction:
    """Returns whose it is, its versions' aliases, and the inputs, outputs, weights and examples of one version."""
    return described(*find(request, principal, name), request.app.state.publisher.is_durable)


@router.get("/{name}/versions", summary="List the versions of a published function", responses=refusals(*_UNKNOWN))
async def versions(request: Request, principal: Authenticated, name: Reference) -> PublishedVersions:
    """Lists the versions, the oldest first."""
    item, _ = find(request, principal, name)
    return PublishedVersions(versions=[_version(item, version) for version in item.versions.values()])


@router.get(
    "/{name}/ready", summary="Wait until a published function is loaded", responses=refusals(*_UNKNOWN, "overloaded")
)
async def ready(request: Request, principal: Authenticated, name: Reference) -> PublishedReady:
    """Answers as soon as a process has loaded the version: a call then waits for nothing but other calls."""
    _, published = find(request, principal, name)
    processes = await pool_of(request.app.state).ready(published)
    return PublishedReady(status="ready", version=published.version, processes=processes)


@aliases.put("/{name}/aliases/{alias}", summary="Name a version", responses=refusals(*_UNKNOWN, *BODY, "id_in_use"))
async def alias(
    request: Request, principal: Authenticated, name: Reference, alias: Alias, body: AliasTarget
) -> PublishedFunction:
    """Makes an alias name a version from now on, so that callers of `name@alias` get it; `latest` is set by itself."""
    if alias == LATEST:
        raise Problem("invalid_request", f"alias: {LATEST} names the newest version by itself: choose another alias")
    item = find_own(request, principal, split_reference(name)[0])
    published = item.version(body.version)
    if published is None:
        find(request, principal, f"{item.name}@{body.version}")
    assert published is not None
    publisher: Publisher = request.app.state.publisher
    changed = await publisher.set_alias(item.name, alias, published.version)
    note(request, principal, "function.aliased", item.name, f"{alias} is version {published.version}")
    return described(changed, published, publisher.is_durable)


@router.delete(
    "/{name}", status_code=204, summary="Delete a published function", responses=refusals(*_UNKNOWN, "id_in_use")
)
async def delete(request: Request, principal: Authenticated, name: Reference) -> None:
    """Deletes it with its versions; of `name@version` that version alone. Calls that run are answered."""
    item = find_own(request, principal, split_reference(name)[0])
    single = find(request, principal, name)[1].version if "@" in name else None
    publisher: Publisher = request.app.state.publisher
    await publisher.delete(item.name, single)
    note(request, principal, "function.deleted", item.name, "all versions" if single is None else f"version {single}")


@router.get(
    "/{name}/export",
    summary="Export a version",
    response_class=Response,
    responses={
        200: {
            "description": "The version as one file, which PUT /v1/published/{name} takes, here or on another server",
            "content": {SAFETENSORS_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **refusals(*_UNKNOWN),
    },
)
async def export_(request: Request, principal: Authenticated, name: Reference) -> Response:
    """Returns the version as a file in the safetensors format: its weights as tensors, its contract as metadata."""
    item, published = find(request, principal, name)
    file = await asyncio.to_thread(export, catalogue_of(request.app.state), published)
    headers = {
        "content-length": str(len(file.head) + file.length),
        "content-disposition": f'attachment; filename="{item.name}-{published.version}.safetensors"',
    }
    return StreamingResponse(_pieces(file), headers=headers, media_type=SAFETENSORS_TYPE)


async def _pieces(export: Export) -> AsyncIterator[bytes]:
    """Yields the file of a version."""
    try:
        yield export.head
        for position in range(0, export.length, _PIECE):
            count = min(_PIECE, export.length - position)
            assert export.file is not None
            yield await asyncio.to_thread(os.pread, export.file, count, export.offset + position)
    finally:
        if export.file is not None:
            os.close(export.file)


@router.get("/{name}/openapi.json", include_in_schema=False)
async def openapi(request: Request, principal: Authenticated, name: Reference) -> Response:
    """Returns an OpenAPI document of this function alone, with the names, dtypes and shapes of its inputs."""
    return JSONResponse(document_of(*find(request, principal, name)))


def described(name: Name, published: Published | None, is_durable: bool) -> PublishedFunction:
    """Returns what is known of a published function."""
    return PublishedFunction(
        name=name.name,
        owner=name.owner,
        visibility=name.visibility,
        group=list(name.group),
        description=name.description,
        aliases=dict(name.aliases),
        durable=is_durable,
        damage=name.damage,
        version=None if published is None else _version(name, published),
    )


def _version(name: Name, published: Published) -> PublishedVersion:
    facts = published.to_json()
    return PublishedVersion.model_validate(
        {
            **{
                field: facts[field]
                for field in ("version", "inputs", "outputs", "weights", "weights_bytes", "examples", "check")
            },
            "created_at": wire.timestamp(published.created),
            "aliases": sorted(alias for alias, version in name.aliases.items() if version == published.version),
            "batched": not published.rows,
            "why_not_batched": published.rows,
        }
    )
