"""Who sent a request, and which session it names; the server's state as a request sees it."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Request
from starlette.datastructures import Headers

from teletape_server.auth import Keys, presented_key
from teletape_server.long_requests import LongRequests
from teletape_server.problems import Problem
from teletape_server.retries import Retries
from teletape_server.sessions.hosting.starts import Starts
from teletape_server.sessions.registry import Registry, SessionEntry
from teletape_server.settings import Settings

#: The operations that need no key, by path.
KEYLESS: Final = ("/v1", "/v1/health", "/v1/ready")


def owner_of(headers: Headers, keys: Keys) -> str:
    """Returns the owner of the key that a request carries.

    Raises:
        Problem: unauthenticated.
    """
    presented = presented_key(headers.get("authorization"), headers.get("x-api-key"))
    owner = keys.owner(presented)
    if owner is None:
        reason = "the request has none" if presented is None else "the key of the request is unknown"
        raise Problem(
            "unauthenticated",
            f"this server requires an API key, and {reason}: send Authorization: Bearer KEY, or X-API-Key: KEY",
            headers={"WWW-Authenticate": 'Bearer realm="teletape"'},
        )
    return owner


async def authenticated_owner(request: Request) -> str:
    """Returns the owner of the key that the request carries; see `owner_of`."""
    owner = owner_of(request.headers, request.app.state.keys)
    request.state.owner = owner
    return owner


Owner = Annotated[str, Depends(authenticated_owner)]
SessionId = Annotated[
    str,
    Path(
        description="The session's id. An admin names a session of another key OWNER:ID",
        examples=["demo"],
    ),
]


def find_session(request: Request, owner: str, name: str) -> SessionEntry:
    """Returns the owner's live session of that name, or for an admin the one of another owner.

    Raises:
        Problem: unknown_session, session_ended.
    """
    other, colon, id = name.partition(":")  # no id and no name of a key has a colon
    if colon and (other == owner or is_admin(request, owner)):
        return registry_of(request).find(other, id)
    return registry_of(request).find(owner, name)


async def known_session(request: Request, session: SessionId, owner: Owner) -> SessionEntry:
    """Returns the session that the path names, which may be without a host; see `find_session`.

    Raises:
        Problem: unauthenticated, unknown_session, session_ended.
    """
    entry = find_session(request, owner, session)
    request.state.session = entry
    if entry.host is not None:
        entry.host.reclaim()
    return entry


KnownSession = Annotated[SessionEntry, Depends(known_session)]


async def live_session(session: KnownSession) -> SessionEntry:
    """Returns the session that the path names, with a host: one without waits until its host has started.

    Raises:
        Problem: As `known_session`, and overloaded.
    """
    if session.host is None:
        await session.wake()
    return session


LiveSession = Annotated[SessionEntry, Depends(live_session)]


def is_admin(request: Request, owner: str) -> bool:
    """Returns whether an owner sees and ends the sessions of all: an admin's key, or whoever uses a keyless server."""
    settings = settings_of(request)
    return not settings.api_keys or owner in settings.admins


def settings_of(request: Request) -> Settings:
    """Returns the server's settings."""
    settings: Settings = request.app.state.settings
    return settings


def registry_of(request: Request) -> Registry:
    """Returns the registry of the server's sessions."""
    registry: Registry = request.app.state.registry
    return registry


def starts_of(request: Request) -> Starts:
    """Returns what starts the hosts of sessions."""
    starts: Starts = request.app.state.starts
    return starts


def retries_of(request: Request) -> Retries:
    """Returns the answers that retries get from the front."""
    retries: Retries = request.app.state.retries
    return retries


def long_requests_of(request: Request) -> LongRequests:
    """Returns the requests that have an address."""
    long_requests: LongRequests = request.app.state.long_requests
    return long_requests
