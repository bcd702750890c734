"""Pages of other origins: CORS, for the origins that the setting names exactly.

A browser shows a page an answer of another origin only if the answer allows it, and asks before it sends what a form
could not send (a preflight). No answer allows credentials: keys come in headers, and the server has no cookies.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.guard import foreign_origin
from teletape_server.problems import error_response

METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT")
#: Headers that a page may read without leave, and those that browsers keep to themselves.
_NOT_NAMED: Final = {
    *("cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma"),
    *("connection", "date", "server", "transfer-encoding", "vary"),
}


class OriginsMiddleware(CORSMiddleware):
    """Allows pages of some origins to send any request, and to read the whole answer.

    Args:
        app: The application.
        origins: As browsers send them.
    """

    def __init__(self, app: ASGIApp, *, origins: frozenset[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=("*",),
            allow_private_network=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            headers = Headers(scope=scope)
            origin = headers.get("origin")
            if origin is not None and "access-control-request-method" in headers:
                response = self._preflight(origin, headers, scope["state"]["request_id"])
                await response(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def _preflight(self, origin: str, headers: Headers, request_id: str) -> Response:
        if not self.is_allowed_origin(origin):
            return error_response(foreign_origin(origin), request_id)
        response = self.preflight_response(headers)
        return Response(
            None,
            204 if response.status_code == 200 else response.status_code,
            {name: value for name, value in response.headers.items() if not name.startswith("content-")},
        )

    async def send(self, message: Message, send: Send, request_headers: Headers) -> None:
        """Sends a part of an answer; its beginning says who may read it."""
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            origin = request_headers.get("origin")
            if origin is not None and self.is_allowed_origin(origin):
                names = {name.lower() for name in headers.keys()} | {"x-request-id"}  # noqa: SIM118  # names, each once
                headers["Access-Control-Expose-Headers"] = ", ".join(sorted(names - _NOT_NAMED))
                headers["Access-Control-Allow-Origin"] = origin
            if self.allow_origins:
                headers.add_vary_header("Origin")
        await send(message)
