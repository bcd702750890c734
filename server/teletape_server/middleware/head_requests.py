"""HEAD wherever there is GET: the answer has the status and the headers of GET's, and no body (RFC 9110, 9.3.2)."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: In the scope of a HEAD request: an endless answer has to end after its head.
HEAD_ONLY: Final = "teletape.head_only"


class HeadMiddleware:
    """Has the application answer HEAD as GET, and leaves out the body.

    Args:
        app: The application, whose routes need no HEAD of their own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET", HEAD_ONLY: True}, receive, send_head)
