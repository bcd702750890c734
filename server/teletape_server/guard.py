"""The outermost checks: every answer gets a request id, and a server without keys serves its own machine alone.

Answers about sessions also name the server's run, so that a client notices that a restart has ended its session.
A path that is too long to name anything is refused before it is compared with the routes.

Any web page can make a browser send requests to loopback, so host names and origins other than this server's are
refused.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.auth import host_name, is_loopback, same_origin
from teletape_server.problems import Problem, error_response, shutting_down

BOOT_HEADER: Final = "teletape-boot-id"
_SESSIONS: Final = "/v1/sessions"
_MAX_PATH: Final = 8 << 10  # characters: each is compared with the patterns of all routes
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """The rules for every request, whatever it asks for.

    Args:
        loopback_only: Whether to refuse foreign host names and origins, since there are no keys.
        boot_id: The id of the server's run.
        is_stopping: Returns whether the server is about to end, so that no new request is taken.
    """

    def __init__(self, *, loopback_only: bool, boot_id: str, is_stopping: Callable[[], bool]) -> None:
        self._loopback_only = loopback_only
        self._boot_id = boot_id
        self.is_stopping = is_stopping

    def check(self, path: str, headers: Headers) -> None:
        """Checks where a request comes from, and its path.

        Raises:
            Problem: not_found, foreign_host, foreign_origin.
        """
        if len(path) > _MAX_PATH:
            raise Problem("not_found", f"a path has at most {_MAX_PATH} characters, this one has {len(path)}")
        if not self._loopback_only:
            return
        host = headers.get("host", "")
        if not is_loopback(host_name(host)):
            raise Problem(
                "foreign_host",
                f"this server has no API keys, so it answers as localhost or 127.0.0.1 only, not as {host!r}. Set "
                "TELETAPE_API_KEYS to use other names",
            )
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, host):
            raise Problem(
                "foreign_origin", f"this server has no API keys, so it accepts no requests from pages of {origin!r}"
            )

    def complete(self, headers: MutableHeaders, path: str, request_id: str) -> None:
        """Adds to an answer's headers what every answer has."""
        headers.setdefault("x-request-id", request_id)
        if path.startswith(_SESSIONS):
            headers[BOOT_HEADER] = self._boot_id


def sent_request_id(headers: Headers) -> str | None:
    """Returns the id that the caller has given its request; None if there is none, or none that can be used."""
    request_id = headers.get("x-request-id", "")
    return request_id if _REQUEST_ID.fullmatch(request_id) else None


def new_request_id() -> str:
    """Returns an id for a request that has none."""
    return secrets.token_hex(8)


class GuardMiddleware:
    """Wraps an application.

    Args:
        app: The application.
        guard: The rules.
    """

    def __init__(self, app: ASGIApp, *, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = sent_request_id(headers) or new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        try:
            self._guard.check(scope["path"], headers)
            if self._guard.is_stopping():
                refusal = shutting_down()
                refusal.headers["Connection"] = "close"
                raise refusal
        except Problem as problem:
            await error_response(problem, request_id)(scope, receive, send)
            return

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._guard.complete(MutableHeaders(scope=message), scope["path"], request_id)
            await send(message)

        await self._app(scope, receive, send_completed)
