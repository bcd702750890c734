"""Who sent a request, and which session it names; the server's state as a request sees it."""

from __future__ import annotations

import math
from typing import Annotated, Final

from fastapi import Depends, Path, Request
from starlette.datastructures import Headers

from teletape_server.identity.addresses import caller_address
from teletape_server.identity.entries import Action
from teletape_server.identity.identity import Identity
from teletape_server.identity.key_texts import presented_key
from teletape_server.identity.keys import Keys
from teletape_server.identity.principals import ALL, Principal, scope_of
from teletape_server.long_requests import LongRequests
from teletape_server.problems import Problem
from teletape_server.retries import Retries
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.settings import Settings
from teletape_server.waiting.pricer import Pricer
from teletape_server.waiting.waits import Waits

#: The operations that need no key, by path.
KEYLESS: Final = ("/v1", "/v1/health", "/v1/ready")
_WITHOUT_WORK: Final = ("GET", "HEAD", "DELETE")  # what an account may send that has computed too much


def principal_of(headers: Headers, keys: Keys, method: str, path: str) -> Principal:
    """Returns who sends a request: what its key stands for.

    Raises:
        Problem: unauthenticated; forbidden: the key is not for such requests.
    """
    presented = presented_key(headers.get("authorization"), headers.get("x-api-key"))
    principal = keys.principal(presented)
    if principal is None:
        reason = "the request has none" if presented is None else "the key of the request is unknown, or has ended"
        raise Problem(
            "unauthenticated",
            f"this server requires an API key, and {reason}: send Authorization: Bearer KEY, or X-API-Key: KEY",
            headers={"WWW-Authenticate": 'Bearer realm="teletape"'},
        )
    if principal.scopes is not ALL and (scope := scope_of(method, path)) not in (None, *principal.scopes):
        raise Problem(
            "forbidden",
            f"the key {principal.key} is for {', '.join(sorted(principal.scopes)) or 'no requests'}, and {method} "
            f"{path} needs one for {scope}",
            scope=scope,
        )
    return principal


async def authenticated(request: Request) -> Principal:
    """Returns who sends the request; see `principal_of`."""
    state = request.scope["state"]
    principal: Principal | None = state.get("principal")
    if principal is None:
        principal = state["principal"] = await _checked(request)
    return principal


async def _checked(request: Request) -> Principal:
    """Returns who sends the request, unless its address has sent too many wrong keys and this one is new there."""
    identity, address = identity_of(request), address_of(request)
    wrong_keys, seconds = identity.wrong_keys, identity.wrong_keys.seconds(address)
    headers = request.headers
    try:
        if not seconds:
            await identity.take_token(presented_key(headers.get("authorization"), headers.get("x-api-key")))
        principal = principal_of(headers, identity.keys, request.method, request.scope["path"])
    except Problem as problem:
        if problem.code == "unauthenticated" and {"authorization", "x-api-key"} & {*headers}:
            if seconds:
                raise _too_many(address, seconds) from None
            wrong_keys.note_wrong(address)
        raise
    identity.budgets.take_request(principal.account)
    if principal.key:
        if seconds and not wrong_keys.is_known(address, principal.key):
            raise _too_many(address, seconds)
        wrong_keys.note_right(address, principal.key)
    return principal


def _too_many(address: str, seconds: float) -> Problem:
    retry = {"Retry-After": str(math.ceil(seconds))}
    return Problem("busy", f"too many wrong keys came from {address}: wait {seconds:.0f} s", headers=retry)


Authenticated = Annotated[Principal, Depends(authenticated)]
SessionId = Annotated[
    str,
    Path(
        description="The session's id. An admin names a session of another key OWNER:ID",
        examples=["demo"],
    ),
]


def find_session(request: Request, principal: Principal, name: str) -> SessionEntry:
    """Returns the caller's live session of that name, or for an admin the one of another owner, which is noted.

    Raises:
        Problem: unknown_session, session_ended.
    """
    other, colon, id = name.partition(":")  # no id and no name of a key has a colon
    if colon and other != principal.owner and principal.is_admin:
        entry = registry_of(request).find(other, id)
        note_look(request, principal, f"{entry.owner}:{entry.id}")
        return entry
    if colon and other == principal.owner:
        name = id
    return registry_of(request).find(principal.owner, name)


def note_look(request: Request, principal: Principal, subject: str) -> None:
    """Notes that an admin looks into what another owner has."""
    note(request, principal, "session.seen", subject, f"{request.method} {request.scope['path']}")


def note(request: Request, principal: Principal, action: Action, subject: str, detail: str) -> None:
    """Notes in the audit what a request has done; see `Entry`."""
    identity_of(request).note(action, subject, by=principal, address=address_of(request), detail=detail)


def address_of(request: Request) -> str:
    """Returns the address of the request's caller; empty: it came over a Unix socket."""
    peer = None if request.client is None else request.client.host
    proxies = settings_of(request).trusted_proxies
    if peer is not None and not proxies:
        return peer
    return caller_address(peer, request.headers.get("x-forwarded-for"), proxies) or ""


async def known_session(request: Request, session: SessionId, principal: Authenticated) -> SessionEntry:
    """Returns the session that the path names, which may be without a host; see `find_session`.

    Raises:
        Problem: unauthenticated, forbidden, unknown_session, session_ended.
    """
    entry = find_session(request, principal, session)
    request.state.session = entry
    if entry.host is not None:
        entry.host.reclaim()
    return entry


KnownSession = Annotated[SessionEntry, Depends(known_session)]


async def live_session(request: Request, session: KnownSession) -> SessionEntry:
    """Returns the session that the path names, with a host: one without waits until its host has started.

    Raises:
        Problem: As `known_session`, and overloaded; over_budget: its account has computed too much for more.
    """
    if request.method not in _WITHOUT_WORK:
        registry_of(request).budgets.check_work(session.account)
    if session.host is None:
        await session.wake()
    return session


LiveSession = Annotated[SessionEntry, Depends(live_session)]


def settings_of(request: Request) -> Settings:
    """Returns the server's settings."""
    settings: Settings = request.app.state.settings
    return settings


def identity_of(request: Request) -> Identity:
    """Returns the server's keys and its audit."""
    identity: Identity = request.app.state.identity
    return identity


def registry_of(request: Request) -> Registry:
    """Returns the registry of the server's sessions."""
    registry: Registry = request.app.state.registry
    return registry


def starts_of(request: Request) -> Starts:
    """Returns what starts the hosts of sessions."""
    starts: Starts = request.app.state.starts
    return starts


def waits_of(request: Request) -> Waits:
    """Returns what knows why requests wait."""
    waits: Waits = request.app.state.waits
    return waits


def pricer_of(request: Request) -> Pricer:
    """Returns what prices commands that would run without a session."""
    pricer: Pricer = request.app.state.pricer
    return pricer


def retries_of(request: Request) -> Retries:
    """Returns the answers that retries get from the front."""
    retries: Retries = request.app.state.retries
    return retries


def long_requests_of(request: Request) -> LongRequests:
    """Returns the requests that have an address."""
    long_requests: LongRequests = request.app.state.long_requests
    return long_requests
