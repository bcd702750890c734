"""/admin: API keys, and what was done on this server."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

import teletape_wire as wire
from teletape_engine.suggestions import with_nearest
from teletape_server.budgets.limits import NO_LIMITS
from teletape_server.http.access import Authenticated, address_of, identity_of
from teletape_server.http.bodies import SmallBodyRoute
from teletape_server.http.declarations import BODY, STILL_RUNNING, refusals
from teletape_server.http.parameters import IdempotencyKey, Prefer
from teletape_server.identity.keys import Key
from teletape_server.identity.principals import Principal, Role, Scope
from teletape_server.models.keys import (
    ApiKeyList,
    Audit,
    AuditPage,
    NewApiKey,
    NewKey,
    Rotation,
    described,
    described_entry,
    described_new,
)
from teletape_server.models.listings import next_link
from teletape_server.problems import Problem

_REFUSED: Final = ("unauthenticated", "forbidden")
_SECRET: Final = {"Cache-Control": "no-store"}
_KEY: Final = {
    "id": "k3x9p2ab",
    "name": "training",
    "owner": "ann",
    "role": "user",
    "group": "",
    "scopes": ["sessions"],
    "account": "ann",
    "source": "store",
    "state": "valid",
    "created_at": "2026-11-28T12:00:00Z",
    "expires_at": "2026-11-29T12:00:00Z",
}
_NEW: Final = _KEY | {"key": "tt_k3x9p2ab_kG0x7cY4Jm2vTq1bZr8sWn5fLd3hPe6uQa9iXo0yRjE"}
_ENTRY: Final = {
    "number": 7,
    "at": "2026-11-28T12:00:00Z",
    "action": "key.created",
    "owner": "root",
    "key": "r00tr00t",
    "address": "192.0.2.7",
    "subject": "k3x9p2ab",
    "detail": "training of ann, user",
}


def _example(status: int, example: dict[str, Any], *problems: str) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` of an operation with an answer such as this one."""
    return {status: {"content": {wire.JSON_TYPE: {"example": example}}}} | refusals(*_REFUSED, *problems)


router = APIRouter(prefix="/admin", tags=["admin"], route_class=SmallBodyRoute)
KeyId = Annotated[str, Path(description="The key's id", examples=["k3x9p2ab"])]
OwnerName = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9._-]{1,64}$", description="Whose tokens they are", examples=["ann"])
]


@router.get("/keys", summary="List API keys", responses=_example(200, {"keys": [_KEY]}))
async def list_(request: Request, principal: Authenticated) -> ApiKeyList:
    """Lists your keys, also those that have ended; for an admin those of all owners. No secret is shown."""
    now = time.time()
    return ApiKeyList(keys=[described(key, now) for key in _visible(request, principal)])


@router.post(
    "/keys", status_code=201, summary="Create an API key", responses=_example(201, _NEW, *BODY) | STILL_RUNNING
)
async def create(
    request: Request,
    response: Response,
    principal: Authenticated,
    body: NewKey,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> NewApiKey:
    """Creates a key, and shows it: nothing shows it again. It allows at most what the key of the request does.

    An admin creates keys for any owner, and gives them limits. Others create further ones of their own, which count
    with the key of the request.
    """
    owner = principal.owner if body.owner is None else body.owner
    now, own = time.time(), _own(request, principal)
    _check_allows(principal, owner, body.role, frozenset(body.scopes))
    group = identity_of(request).keys.group_of(principal.account)
    if not principal.is_admin and body.group not in (None, group):
        raise Problem("forbidden", f"only an admin chooses a group: that of your keys is {group!r}")
    limits = NO_LIMITS if body.limits is None else body.limits.limits
    if not (principal.is_admin or limits.is_empty):
        raise Problem("forbidden", "only an admin sets limits: a key that you create counts with yours")
    expires = None if body.expires_in is None else now + body.expires_in
    if not principal.is_admin and own is not None and own.expires is not None:
        expires = min(own.expires, expires or own.expires)
    new, text = await identity_of(request).create(
        principal,
        name=body.name,
        owner=owner,
        role=body.role,
        group=body.group,
        scopes=frozenset(body.scopes),
        expires=expires,
        limits=limits,
        address=address_of(request),
    )
    response.headers.update(_SECRET)
    return described_new(new, text)


@router.post(
    "/keys/{id}/rotate",
    status_code=201,
    summary="Replace an API key",
    responses=_example(201, _NEW, "unknown_id", *BODY) | STILL_RUNNING,
)
async def rotate(
    request: Request,
    response: Response,
    principal: Authenticated,
    id: KeyId,
    body: Rotation,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> NewApiKey:
    """Creates a key that allows what this one does, and shows it; this one ends, at once or after `overlap` seconds."""
    former = _find(request, principal, id)
    _check_allows(principal, former.owner, former.role, former.scopes)
    if not former.is_valid(time.time()):
        raise Problem("invalid_request", f"the key {id} has ended already: create a new one")
    new, text = await identity_of(request).rotate(principal, former, overlap=body.overlap, address=address_of(request))
    response.headers.update(_SECRET)
    return described_new(new, text)


@router.delete(
    "/keys/{id}",
    status_code=204,
    summary="Revoke an API key",
    responses=refusals(*_REFUSED, "unknown_id", "invalid_request"),
)
async def revoke(request: Request, principal: Authenticated, id: KeyId) -> None:
    """Ends a key within a second, also on connections that are open. Its owner's sessions stay."""
    await identity_of(request).revoke(principal, _find(request, principal, id), address=address_of(request))


@router.delete(
    "/tokens/{owner}",
    status_code=204,
    summary="End an owner's tokens",
    responses=refusals(*_REFUSED, "invalid_request"),
)
async def revoke_tokens(request: Request, principal: Authenticated, owner: OwnerName) -> None:
    """Ends all tokens of an OpenID issuer that an owner has now, within a second, also on connections that are open.

    Those that the issuer gives more than 5 seconds later are valid. Keys of the owner, and sessions, stay. It needs the
    key of an admin.
    """
    if not principal.is_admin:
        raise Problem("forbidden", "only an admin ends tokens: ask one")
    await identity_of(request).revoke_tokens(principal, owner, address=address_of(request))


@router.get(
    "/audit",
    summary="List what was done",
    responses=_example(200, {"entries": [_ENTRY]}, "invalid_request"),
)
async def audit(
    request: Request, response: Response, principal: Authenticated, query: Annotated[AuditPage, Query()]
) -> Audit:
    """Lists who created and ended sessions, changed keys, published, or looked into another owner's session.

    The newest come first. Nothing is changed in it, and what is removed is old. It needs the key of an admin.
    """
    if not principal.is_admin:
        raise Problem("forbidden", "only the key of an admin sees what all owners did")
    page = await identity_of(request).entries(
        before=query.after, limit=query.limit + 1, subject=query.subject, action=query.action
    )
    entries = page[: query.limit]
    following = str(entries[-1].number) if len(page) > query.limit else None
    if following is not None:
        selection = query.model_dump(exclude={"after"})
        response.headers["Link"] = next_link(request.url.path, selection, following)
    return Audit(entries=[described_entry(entry) for entry in entries], next=following)


def _visible(request: Request, principal: Principal) -> list[Key]:
    """Returns the keys that a caller sees."""
    return [key for key in identity_of(request).keys.all if principal.is_admin or key.owner == principal.owner]


def _own(request: Request, principal: Principal) -> Key | None:
    """Returns the key of the request; None: there is none."""
    return next((key for key in _visible(request, principal) if key.id == principal.key), None)


def _find(request: Request, principal: Principal, id: str) -> Key:
    """Returns a key that a caller sees.

    Raises:
        Problem: unknown_id.
    """
    keys = {key.id: key for key in _visible(request, principal)}
    if id not in keys:
        raise Problem(
            "unknown_id", with_nearest(f"you see no key with the id {id[:64]!r}", id[:64], [*keys]), id=id[:64]
        )
    return keys[id]


def _check_allows(principal: Principal, owner: str, role: Role, scopes: frozenset[Scope]) -> None:
    """Checks that a key would allow no more than that of its creator.

    Raises:
        Problem: forbidden.
    """
    if not principal.is_admin and (owner != principal.owner or role != "user"):
        raise Problem("forbidden", f"only an admin creates keys of others and of admins: yours is of {principal.owner}")
    if more := sorted(scopes - principal.scopes):
        raise Problem("forbidden", f"your key is not for {', '.join(more)}, so none that it creates is")
