"""/me and /admin/limits: who a caller is, and what accounts may use and have used."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request

import teletape_wire as wire
from teletape_server.http.access import Authenticated, address_of, identity_of
from teletape_server.http.bodies import SmallBodyRoute
from teletape_server.http.declarations import BODY, STILL_RUNNING, refusals
from teletape_server.http.parameters import IdempotencyKey, Prefer
from teletape_server.identity.principals import Principal
from teletape_server.models.budgets import Accounts, AccountState, Me, account_states, me
from teletape_server.models.keys import LimitsBody
from teletape_server.problems import Problem

_ACCOUNT: Final = {
    "account": "ann",
    "group": "@lab",
    "sessions": 2,
    "memory_bytes": 1073741824,
    "disk_bytes": 0,
    "limits": [
        {"account": "ann", "name": "sessions", "used": 2, "limit": 16},
        {"account": "@lab", "name": "compute_seconds_7d", "used": 30600.5, "limit": 36000},
    ],
    "used": {"compute_seconds_1d": 912.4, "compute_seconds_7d": 10200.5},
    "own_limits": {},
}
_USE: Final = {"at": "2026-11-28T12:00:00Z", "compute_seconds": 912.4, "gib_hours": 0.5, "requests": 5120}
_ME: Final = {
    "key": "k3x9p2ab",
    "name": "training",
    "owner": "ann",
    "role": "user",
    "group": "lab",
    "scopes": ["sessions"],
    "expires_at": "2026-11-29T12:00:00Z",
    "use": _ACCOUNT,
    "warning": "85 % of a limit is used: the group lab may use 36,000 compute seconds within 7 d; GET /v1/me shows all",
    "hours": [_USE],
    "days": [_USE | {"at": "2026-11-28T00:00:00Z"}],
}


def _example(example: dict[str, Any], *problems: str) -> dict[int | str, dict[str, Any]]:
    """Returns `responses` of an operation with an answer such as this one."""
    return {200: {"content": {wire.JSON_TYPE: {"example": example}}}} | refusals("unauthenticated", *problems)


router = APIRouter(route_class=SmallBodyRoute)


@router.get("/me", tags=["server"], summary="Get who you are, and what you may use", responses=_example(_ME))
async def me_(request: Request, principal: Authenticated) -> Me:
    """Returns your key's owner, role, group and scopes, its limits, what is used of them, and what was used when.

    Memory, disk and sessions are those of now. What is added up over days counts by hours: an hour counts until all of
    it is older than that.
    """
    identity = identity_of(request)
    return me(identity.budgets, principal, *identity.keys.name_and_end(principal), time.time())


@router.get(
    "/admin/limits",
    tags=["admin"],
    summary="List what all accounts may use, and use",
    responses=_example({"accounts": [_ACCOUNT]}, "forbidden"),
)
async def accounts(request: Request, principal: Authenticated) -> Accounts:
    """Lists the accounts of owners, of keys with limits of their own, and of groups. It needs the key of an admin."""
    _check_admin(principal)
    budgets = identity_of(request).budgets
    return Accounts(accounts=account_states(budgets, budgets.accounts))


@router.put(
    "/admin/limits/{account}",
    tags=["admin"],
    summary="Replace the limits of an account",
    responses=_example(_ACCOUNT, "forbidden", *BODY) | STILL_RUNNING,
)
async def limit(
    request: Request,
    principal: Authenticated,
    account: Annotated[
        str,
        Path(
            pattern=r"^(@?[A-Za-z0-9._-]{1,64}|[A-Za-z0-9._-]{1,64}:[a-z0-9]{1,64})$",
            description="OWNER; OWNER:KEY, of a key with limits of its own; or @GROUP",
            examples=["ann"],
        ),
    ],
    body: LimitsBody,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
) -> AccountState:
    """Replaces all limits that an account has of its own, at once; what is not named is again the server's default.

    The limits of a group have no defaults. It needs the key of an admin.
    """
    _check_admin(principal)
    identity = identity_of(request)
    await identity.set_limits(principal, account, body.limits, address=address_of(request))
    return account_states(identity.budgets, [account])[0]


def _check_admin(principal: Principal) -> None:
    if not principal.is_admin:
        raise Problem("forbidden", "only the key of an admin sees and changes what all accounts may use: GET /v1/me")
