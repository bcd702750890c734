"""RateLimit headers (draft-ietf-httpapi-ratelimit-headers): the limits that a request counts against, and what is left.

There is no limit on requests by time. What is limited: the sessions of a key, and a session's unanswered requests.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.datastructures import MutableHeaders

from teletape_server.identity.principals import Principal
from teletape_server.sessions.registry import Registry, SessionEntry

_BATCHES: Final = "/batch"  # without these headers: connections answer most of them past the framework
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
        limit, left = registry.sessions_left(principal.owner)
        headers["RateLimit-Policy"] = f'"sessions";q={limit};qu="sessions"'
        headers["RateLimit"] = f'"sessions";r={left}'
