"""The id of a request: the caller's own or a new one; every answer has it, and so has every line of a log about it."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.guard import new_request_id, sent_request_id


class RequestIdMiddleware:
    """Gives every request an id, as `request.state.request_id`.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = sent_request_id(Headers(scope=scope)) or new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault("x-request-id", request_id)
            await send(message)

        await self._app(scope, receive, send_named)
