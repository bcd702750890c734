"""The outermost middleware: gives every answer a request id, and limits a server without keys to its own machine.

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
from teletape_server.problems import problem_response, shutting_down

BOOT_HEADER: Final = "teletape-boot-id"
_SESSIONS: Final = "/v1/sessions"
_MAX_PATH: Final = 8 << 10  # characters: each is compared with the patterns of all routes
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """Wraps an application.

    Args:
        app: The application.
        loopback_only: Whether to refuse foreign host names and origins, since there are no keys.
        boot_id: The id of the server's run.
        is_stopping: Returns whether the server is about to end, so that no new request is taken.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: bool, boot_id: str, is_stopping: Callable[[], bool]) -> None:
        self._app = app
        self._loopback_only = loopback_only
        self._boot_id = boot_id
        self._is_stopping = is_stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = headers.get("x-request-id", "")
        request_id = sent if _REQUEST_ID.fullmatch(sent) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        refusal = _refusal_of_path(scope["path"])
        if refusal is None and self._loopback_only:
            refusal = self._refusal(headers)
        if refusal is None and self._is_stopping():
            problem = shutting_down()
            response = problem_response(
                problem.code, problem.detail, request_id=request_id, headers={**problem.headers, "Connection": "close"}
            )
            await response(scope, receive, send)
            return
        if refusal is not None:
            await problem_response(*refusal, request_id=request_id)(scope, receive, send)
            return

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer_headers = MutableHeaders(scope=message)
                answer_headers.setdefault("x-request-id", request_id)
                if scope["path"].startswith(_SESSIONS):
                    answer_headers[BOOT_HEADER] = self._boot_id
            await send(message)

        await self._app(scope, receive, send_with_id)

    @staticmethod
    def _refusal(headers: Headers) -> tuple[str, str] | None:
        host = headers.get("host", "")
        if not is_loopback(host_name(host)):
            return "foreign_host", (
                f"this server has no API keys, so it answers as localhost or 127.0.0.1 only, not as {host!r}. Set "
                "TELETAPE_API_KEYS to use other names"
            )
        origin = headers.get("origin")
        if origin is not None and not same_origin(origin, host):
            return "foreign_origin", (
                f"this server has no API keys, so it accepts no requests from pages of {origin!r}"
            )
        return None


def _refusal_of_path(path: str) -> tuple[str, str] | None:
    if len(path) <= _MAX_PATH:
        return None
    return "not_found", f"a path has at most {_MAX_PATH} characters, this one has {len(path)}"
