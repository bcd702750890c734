"""Validators: an ETag for what a browser may keep, and 304 without a body for what it has already (RFC 9110, 13.1.2).

Answers of sessions have ETags of their own, which the session's process compares: see `handlers.session.preconditions`.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.http.negotiation import EVENTS_TYPE, entity_tag


class ValidatorsMiddleware:
    """Answers requests with If-None-Match.

    An answer that says `Cache-Control: no-cache` (keep it, and ask each time) gets a hash of its bytes as its ETag,
    unless it has one.

    Args:
        app: The application, with compression: each encoding has an ETag of its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        known = [tag.strip().removeprefix("W/") for tag in Headers(scope=scope).get("if-none-match", "").split(",")]
        start: Message | None = None
        is_known = False

        async def send_validated(message: Message) -> None:
            nonlocal start, is_known
            if message["type"] == "http.response.start" and _may_be_kept(message):
                start = message
            elif start is not None:
                head, start = start, None
                tag = _tag(head, message)
                is_known = tag is not None and tag.removeprefix("W/") in known
                if is_known:
                    _leave_out_body(head)
                await send(head)
                await send({"type": "http.response.body", "body": b""} if is_known else message)
            elif not is_known:
                await send(message)

        await self._app(scope, receive, send_validated)


def _may_be_kept(start: Message) -> bool:
    """Returns whether an answer has an ETag, or may get one."""
    headers = MutableHeaders(scope=start)
    if start["status"] != 200 or headers.get("content-type") == EVENTS_TYPE:
        return False
    return "etag" in headers or headers.get("cache-control") == "no-cache"


def _tag(start: Message, message: Message) -> str | None:
    """Returns the answer's ETag; adds one if it has none, and its body is here as a whole."""
    headers = MutableHeaders(scope=start)
    tag = headers.get("etag")
    if tag is None and not message.get("more_body", False):
        tag = entity_tag(message.get("body", b""))
        headers["ETag"] = tag
    return tag


def _leave_out_body(start: Message) -> None:
    start["status"] = 304
    headers = MutableHeaders(scope=start)
    for name in ("content-length", "content-type", "content-encoding"):
        if name in headers:
            del headers[name]
