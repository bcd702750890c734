"""Requests of admins and of other keys."""

from __future__ import annotations

from typing import Any

import httpx

from serving import ok

ADMIN = "/v1/admin/keys"
AUDIT = "/v1/admin/audit"


def bearer(key: str) -> dict[str, str]:
    """The headers of a request with a key."""
    return {"Authorization": f"Bearer {key}"}


def new_key(http: httpx.Client, **wanted: Any) -> dict[str, Any]:
    """A new key."""
    response = ok(http.post(ADMIN, json=wanted))
    assert response.status_code == 201
    assert response.headers["Cache-Control"] == "no-store"
    facts: dict[str, Any] = response.json()
    return facts


def listed(http: httpx.Client, **headers: str) -> dict[str, dict[str, Any]]:
    """The keys that a caller sees, by id."""
    return {key["id"]: key for key in ok(http.get(ADMIN, headers=headers)).json()["keys"]}


LIMITS = "/v1/admin/limits"


def me(http: httpx.Client, **headers: str) -> dict[str, Any]:
    facts: dict[str, Any] = ok(http.get("/v1/me", headers=headers)).json()
    return facts
