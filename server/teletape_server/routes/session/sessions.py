"""/sessions: create, list, get, extend, join, cancel, park, delete."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse

import teletape_wire as wire
from teletape_engine.session.clients import place
from teletape_server.http.access import (
    Authenticated,
    KnownSession,
    LiveSession,
    find_session,
    note,
    registry_of,
    settings_of,
    waits_of,
)
from teletape_server.http.answers import answer
from teletape_server.http.bodies import SmallBodyRoute
from teletape_server.http.declarations import BODY, SESSION, STILL_RUNNING, refusals
from teletape_server.http.events import HEADERS
from teletape_server.http.negotiation import EVENTS_TYPE, wants_events
from teletape_server.http.parameters import IdempotencyKey, Prefer
from teletape_server.http.progress import place_of
from teletape_server.http.schemas import Client, Extension, NewSession, Session, SessionList
from teletape_server.identity.principals import Principal
from teletape_server.ipc.leases import Reason
from teletape_server.middleware.head_requests import HEAD_ONLY
from teletape_server.models.listings import DeletedSessions, next_link, page
from teletape_server.models.parameters import Page, Several
from teletape_server.problems import Problem
from teletape_server.routes.session.session_events import SessionEvents, described
from teletape_server.sessions.record import Durability
from teletape_server.sessions.registry import SessionEntry

_ATTACH_SECONDS: Final = 0.25  # for the session's process to refuse a client; one that computes answers later

router = APIRouter(prefix="/sessions", tags=["sessions"], route_class=SmallBodyRoute)


def _described(request: Request, entry: SessionEntry, *, is_one: bool = True, client: int | None = None) -> Session:
    """Returns a session's description; of one session with why its newest request waits, or a client's newest batch."""
    registry, newest = registry_of(request), None
    if is_one:
        registry.live.measure(entry)
    if client is not None:
        newest = entry.under_way.of_client(client)
    elif is_one:
        newest = max(entry.running, key=lambda running: running.began, default=None)
    wait = None if newest is None else place_of(waits_of(request), entry.owner, newest, entry)
    return described(entry, registry.clock(), registry.disk_limit, wait)


@router.post(
    "",
    status_code=201,
    summary="Create a session",
    response_model=Session,
    responses=refusals(
        "unauthenticated",
        *BODY,
        "id_in_use",
        "unknown_device",
        "too_many_sessions",
        "overloaded",
        "idempotency_conflict",
    )
    | STILL_RUNNING
    | {200: {"model": Session, "description": "The session exists already"}},
)
async def create(
    request: Request, principal: Authenticated, body: NewSession, key: IdempotencyKey = None, prefer: Prefer = None
) -> Response:
    """Creates a session (201), or returns the existing one with the same id, device, memory limit and dtype (200).

    With `replace`, an existing session with this id is ended first. With an Idempotency-Key, a retry of this request
    creates nothing and ends nothing.
    """
    registry = registry_of(request)
    if body.replace and body.id is not None and (existing := registry.find_live(principal.owner, body.id)) is not None:
        await _end(request, principal, existing, "a new session with its id replaced it")
    device = body.device or settings_of(request).device
    entry, is_new = await registry.create(
        principal.owner,
        body.id,
        device=device,
        memory_limit=body.memory_limit,
        dtype=body.dtype,
        dedicated=body.dedicated,
        durability=_durability(request, body),
        account=principal.account,
    )
    if is_new:
        note(request, principal, "session.created", f"{entry.owner}:{entry.id}", device)
    content = _described(request, entry).model_dump_json().encode()
    location = {"location": f"/v1/sessions/{entry.id}"}
    return Response(content, 201 if is_new else 200, location, wire.JSON_TYPE)


def _durability(request: Request, body: NewSession) -> Durability:
    settings = settings_of(request)
    if body.durability not in (None, "none") and settings.data_dir is None:
        raise Problem(
            "invalid_request",
            f"durability {body.durability}: this server has no folder for the logs of sessions (--data-dir)",
        )
    return body.durability or settings.default_durability


@router.get(
    "",
    summary="List your sessions",
    response_model=SessionList,
    responses=refusals("unauthenticated", "invalid_request", "unknown_session", "session_ended", "busy"),
)
async def list_(request: Request, response: Response, principal: Authenticated, query: Annotated[Page, Query()]) -> Any:
    """Lists live sessions; for an admin those of all keys. GET an ended session's URL to learn why it ended.

    With `Accept: text/event-stream` the answer is events: `sessions` with all of them, then `session` for each that is
    new or has changed (memory, progress of the running request, end) and `ended`, until you close it. The number of
    such streams is limited: `busy`.
    """
    limit, after, prefix = query.limit, query.after, query.prefix
    registry, sees_all = registry_of(request), principal.is_admin

    def visible() -> list[SessionEntry]:
        return registry.live.all() if sees_all else registry.live.owned_by(principal.owner)

    if wants_events(request.headers):
        if HEAD_ONLY in request.scope:
            return Response(b"", headers=HEADERS, media_type=EVENTS_TYPE)
        return SessionEvents(request.app.state.session_feed, principal.owner, sees_all=sees_all)

    def name(entry: SessionEntry) -> str:
        return entry.id if entry.owner == principal.owner else f"{entry.owner}:{entry.id}"

    if after is not None:
        find_session(request, principal, after)
    entries, has_more = page(
        [entry for entry in visible() if name(entry) == after or entry.id.startswith(prefix or "")],
        name,
        after,
        limit,
    )
    for entry in entries:
        if entry.host is not None:
            entry.host.reclaim()
    following = name(entries[-1]) if has_more else None
    if following is not None:
        selection = {"limit": limit, "prefix": prefix}
        response.headers["Link"] = next_link(request.url.path, selection, following)
    registry_of(request).live.measure(*entries)
    return SessionList(
        sessions=[_described(request, entry, is_one=False) for entry in entries], owner=principal.owner, next=following
    )


@router.delete(
    "",
    summary="End several sessions",
    responses=refusals("unauthenticated", "invalid_request"),
)
async def delete_several(
    request: Request, principal: Authenticated, query: Annotated[Several, Query()]
) -> DeletedSessions:
    """Ends those named by `id`, those whose id begins with `prefix`, or all. Unanswered requests are cancelled."""
    id, prefix, all = query.id, query.prefix, query.all
    if sum((id is not None, prefix is not None, all)) != 1:
        raise Problem("invalid_request", "say which sessions to end: id (it may repeat), or prefix, or all=true")
    registry = registry_of(request)
    entries = [
        entry
        for entry in registry.live.owned_by(principal.owner)
        if all or (entry.id in id if id is not None else entry.id.startswith(prefix or ""))
    ]
    for entry in entries:
        await _end(request, principal, entry, "its owner deleted it with others")
    return DeletedSessions(deleted=[entry.id for entry in entries])


@router.get("/{session}", summary="Get a session", responses=refusals(*SESSION[:-1]))
async def get(
    request: Request,
    session: KnownSession,
    client: Annotated[int | None, Query(description="Whose newest batch `running.wait` is about")] = None,
) -> Session:
    """Returns the session's device, memory, end and running work. This request does not keep an idle session alive."""
    return _described(request, session, client=client)


@router.post("/{session}/extend", summary="Extend a session", responses=refusals(*SESSION[:-1], *BODY) | STILL_RUNNING)
async def extend(
    request: Request, session: KnownSession, body: Extension, key: IdempotencyKey = None, prefer: Prefer = None
) -> Session:
    """Keeps the session for at least `seconds` from now, idle or not, up to the server's maximum age."""
    await registry_of(request).extend(session, body.seconds)
    return _described(request, session)


@router.post(
    "/{session}/attach",
    summary="Join a session as a client",
    response_model=Client,
    responses=refusals(*SESSION) | STILL_RUNNING,
)
async def attach(request: Request, session: LiveSession, key: IdempotencyKey = None, prefer: Prefer = None) -> Response:
    """Gives the client a number, a sequence of batches, and integer ids (client << 40 | n) of its own.

    A session that computes does so too: the client's batches wait, and GET of the session says what it is doing.
    """
    registry, client = registry_of(request), session.next_client()
    running = registry.submit(session, "attach", {"client": client})
    done, _ = await asyncio.wait([running.reply], timeout=_ATTACH_SECONDS)
    if done:
        return answer(registry, session, running)
    return JSONResponse(place(client))  # it is attached before its first batch runs: requests keep their order


@router.post("/{session}/cancel", status_code=202, summary="Cancel running work", responses=refusals(*SESSION[:-1]))
async def cancel(
    request: Request,
    session: KnownSession,
    client: Annotated[int | None, Query(description="Of a client's batch, which is stopped alone: its number")] = None,
    seq: Annotated[int | None, Query(description="The batch's number in the client's sequence")] = None,
    key: IdempotencyKey = None,
) -> Session:
    """Stops running and waiting requests before their next step; they fail with `cancelled`.

    A step is a command, an iteration of a loop, or some ops of a function, a gradient or a check. With `client` and
    `seq` one batch is stopped, a frame, and no other request; one that does not run is not looked for.
    """
    if (client is None) != (seq is None):
        raise Problem("invalid_request", "client and seq name a batch together: give both, or none of them")
    if session.host is not None:
        await session.host.recall()
    if client is None or seq is None:
        session.cancel()
    elif batch := session.under_way.batch(client, seq):
        batch.cancel()
    return _described(request, session)


@router.post("/{session}/park", summary="Park a session", responses=refusals(*SESSION[:-1], "busy"))
async def park(request: Request, session: KnownSession, key: IdempotencyKey = None) -> Session:
    """Writes down what the session has, and ends its process; the next request starts another one. Nothing is lost.

    What runs or waits is finished before; if that takes longer than the server's patience, nothing is done: `busy`. A
    session without a process that has a log to run gets one for that. A session of which nothing outlives its process
    (durability `none`) stays as it is.
    """
    before = [request.reply for request in session.running]
    if before and (await asyncio.wait(before, timeout=settings_of(request).patience))[1]:
        raise Problem(
            "busy",
            f"the session {session.id!r} still computes: send the request again later, or POST …/cancel",
            headers={"Retry-After": "1"},
        )
    await registry_of(request).parking.park(session)
    return _described(request, session)


@router.delete("/{session}", status_code=204, summary="Delete a session", responses=refusals(*SESSION[:-1]))
async def delete(request: Request, session: KnownSession, principal: Authenticated) -> None:
    """Ends the session and frees its memory; its unanswered requests fail with `session_ended`."""
    by = "it was deleted" if session.owner == principal.owner else f"the admin {principal.owner} deleted it"
    await _end(request, principal, session, by)


async def _end(request: Request, principal: Principal, session: SessionEntry, why: str) -> None:
    """Ends a session, and notes who did it."""
    note(request, principal, "session.ended", f"{session.owner}:{session.id}", why)
    await registry_of(request).ends.end(session, Reason.DELETED, why)
