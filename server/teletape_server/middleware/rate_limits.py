"""RateLimit headers (draft-ietf-httpapi-ratelimit-headers): the limits that a request counts against, and what is left.

They tell of the sessions of a key, and of a session's unanswered requests. And a warning, if most of a limit is used.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import MutableHeaders

from teletape_server.budgets.budgets import Budgets
from teletape_server.identity.principals import Principal
from teletape_server.sessions.registry import Registry, SessionEntry

_BATCHES: Final = "/batch"  # without these headers: connections answer most of them past the framework
#: The header with a sentence about a limit of which most is used.
WARNING: Final = "Teletape-Warning"
_OF_SESSIONS: Final = "/v1/sessions"


def add_rate_limits(
    headers: MutableHeaders, registry: Registry, path: str, state: dict[str, Any], *, is_alone: bool = False
) -> None:
    """Adds to an answer's headers the limits that hold for its request, if its caller is known.

    Args:
        headers: Of the answer.
        registry: The sessions.
        path: Of the request.
        state: Of the request: who sends it and its session, as far as they are known.
        is_alone: Whether its session has no other request when it is answered.
    """
    entry: SessionEntry | None = state.get("session")
    principal: Principal | None = state.get("principal")
    if entry is not None and not path.endswith(_BATCHES):
        limit, left = registry.requests_left(entry)
        headers["RateLimit-Policy"] = f'"requests";q={limit};qu="concurrent-requests"'
        headers["RateLimit"] = f'"requests";r={limit if is_alone else left}'
    elif principal is not None and path == _OF_SESSIONS:
        limit, left = registry.sessions_left(principal.owner, principal.account)
        headers["RateLimit-Policy"] = f'"sessions";q={limit};qu="sessions"'
        headers["RateLimit"] = f'"sessions";r={left}'


def add_warning(headers: MutableHeaders, budgets: Budgets, account: str) -> None:
    """Adds to an answer's headers what an account should know of its limits, if there is something."""
    if (warning := budgets.warnings.get(account)) is not None:
        headers[WARNING] = warning
