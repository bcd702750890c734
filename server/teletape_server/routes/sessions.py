"""Sessions: make, list, look, extend, attach, cancel, end."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from teletape_server.hosts import Running
from teletape_server.http.admission import Caller, Found, SmallBodies, ask, sessions_of, settings_of
from teletape_server.http.openapi import BODY, SESSION, refusals
from teletape_server.http.schemas import Client, Extension, NewSession, SessionFacts, SessionList, Work
from teletape_server.leases import Reason
from teletape_server.registry import Session
from teletape_wire import timestamp

router = APIRouter(prefix="/sessions", tags=["sessions"], route_class=SmallBodies)


def _far(running: Running) -> dict[str, int]:
    return {
        "done": running.done,
        "total": running.total,
        "iteration": running.iteration,
        "iterations": running.iterations,
    }


def _facts(request: Request, session: Session) -> SessionFacts:
    sessions = sessions_of(request)
    running = session.host.running
    first = min(running, key=lambda one: one.total == 0, default=None)
    return SessionFacts(
        id=session.id,
        device=session.host.device,
        memory_limit=session.memory_limit,
        bytes_in_use=session.bytes_in_use,
        created_at=timestamp(session.created_at),
        expires_at=timestamp(session.lease.expires_at(sessions.clock())),
        ends_at=timestamp(session.lease.terms.ends),
        running=Work(requests=len(running), **({"done": 0, "total": 0} if first is None else _far(first))),
    )


@router.post(
    "",
    status_code=201,
    summary="Make a session",
    responses=refusals("unauthenticated", *BODY, "id_in_use", "unknown_device", "too_many_sessions")
    | {200: {"model": SessionFacts, "description": "The session that is there already"}},
)
async def make(request: Request, response: Response, owner: Caller, body: NewSession) -> SessionFacts:
    """A new session: 201. The same id again, with the same device and limit, gives the session there is: 200.

    With `replace` the session of that id ends first, if there is one.
    """
    sessions = sessions_of(request)
    if body.replace and body.id is not None and (old := sessions.known(owner, body.id)) is not None:
        await sessions.end(old, Reason.DELETED, "another one of its id took its place")
    device = body.device or settings_of(request).device
    session, new = await sessions.create(
        owner, body.id, device="gpu:0" if device == "gpu" else device, memory_limit=body.memory_limit
    )
    response.status_code = 201 if new else 200
    response.headers["location"] = f"/v1/sessions/{session.id}"
    return _facts(request, session)


@router.get("", summary="List your sessions", responses=refusals("unauthenticated"))
async def listing(request: Request, owner: Caller) -> SessionList:
    """Live sessions only; of one that ended its own address tells why."""
    sessions = sessions_of(request)
    return SessionList(sessions=[_facts(request, one) for one in sessions.of(owner)])


@router.get("/{session}", summary="Look at a session", responses=refusals(*SESSION[:-1]))
async def look(request: Request, found: Found) -> SessionFacts:
    """Does not count as work: a session that is only looked at ends all the same."""
    return _facts(request, found)


@router.post("/{session}/extend", summary="Keep a session", responses=refusals(*SESSION[:-1], *BODY))
async def extend(request: Request, found: Found, body: Extension) -> SessionFacts:
    """Keeps it for at least so many seconds from now, idle or not, within the server's greatest age."""
    found.lease.extend(sessions_of(request).clock(), body.seconds)
    return _facts(request, found)


@router.post(
    "/{session}/attach", summary="Join a session as a client", response_model=Client, responses=refusals(*SESSION)
)
async def attach(request: Request, found: Found) -> Response:
    """A client has a number, a sequence of batches, and integer ids (client << 40 | n) of its own."""
    return await ask(request, found, "attach", {})


@router.post("/{session}/cancel", status_code=202, summary="Stop what runs", responses=refusals(*SESSION[:-1]))
async def cancel(request: Request, found: Found) -> SessionFacts:
    """Running and waiting work stops before its next command or loop iteration, and fails with `cancelled`."""
    found.host.cancel()
    return _facts(request, found)


@router.delete("/{session}", status_code=204, summary="End a session", responses=refusals(*SESSION[:-1]))
async def end(request: Request, found: Found) -> None:
    """All that it holds is gone; what runs in it is answered with the problem `session_ended`."""
    sessions = sessions_of(request)
    await sessions.end(found, Reason.DELETED, "it was deleted")
