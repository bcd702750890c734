"""Query parameters: those that an operation of the API does not have are refused, as unknown members of a body are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import Request

from teletape_engine.suggestions import did_you_mean
from teletape_server.http.access import KEYLESS, authenticated
from teletape_server.models.faults import text_of
from teletape_server.problems import Problem

_REPORTED: Final = 8  # parameters of one request


async def check_query(request: Request) -> None:
    """Checks that the operation has each parameter of the query.

    Raises:
        Problem: invalid_request, or unauthenticated.
    """
    if not request.query_params:
        return
    path = request.app.state.templates.of(request.scope["path"])
    operation: dict[str, Any] = request.app.openapi()["paths"][path][request.method.lower()]
    known = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    if path not in KEYLESS and any(name not in known for name in request.query_params):
        await authenticated(request)
    check_names(request, known)


def check_names(request: Request, known: Sequence[str]) -> None:
    """Checks that each parameter of the query is known.

    Raises:
        Problem: invalid_request.
    """
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        return
    faults = [
        {"field": name[:100], "message": _message(name, known), "kind": "unknown_parameter"}
        for name in unknown[:_REPORTED]
    ]
    raise Problem("invalid_request", text_of(faults), fields=faults)


def _message(name: str, known: Sequence[str]) -> str:
    suggestion = did_you_mean(name, known)
    if suggestion:
        return f"is no query parameter of this request: {suggestion}"
    return f"is no query parameter of this request, which has {', '.join(known) or 'none'}"
