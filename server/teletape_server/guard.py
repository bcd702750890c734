"""The outermost layer: every answer carries a request id, and a server without keys serves its own machine alone.

Plain ASGI, since it stands before every request. A browser can be made to send requests to loopback by any page, so
names and origins that are not this server's are refused.
"""

from __future__ import annotations

import re
import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.auth import host_name, is_loopback, same_origin
from teletape_server.problems import problem_response

_GIVEN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """Wraps an application.

    Args:
        app: What it guards.
        loopback_only: There are no keys: refuse foreign names and origins.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: bool) -> None:
        self._app = app
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _GIVEN.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        refusal = self._refusal(headers) if self._loopback_only else None
        if refusal is not None:
            await problem_response(*refusal, request_id=request_id)(scope, receive, send)
            return

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("x-request-id", request_id)
            await send(message)

        await self._app(scope, receive, named)

    @staticmethod
    def _refusal(headers: Headers) -> tuple[str, str] | None:
        host = headers.get("host", "")
        if not is_loopback(host_name(host)):
            return "foreign_host", (
                f"this server has no API keys and is asked as {host!r}: it answers to localhost and 127.0.0.1 alone. "
                "Set TELETAPE_API_KEYS to serve other names"
            )
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, host):
            return "foreign_origin", (
                f"this server has no API keys and takes no requests from pages of {origin!r}. "
                "Set TELETAPE_API_KEYS to serve other origins"
            )
        return None
