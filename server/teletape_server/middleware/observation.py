"""What is noted of every request: its id (the caller's own or a new one), its line in the log, and its metrics."""

from __future__ import annotations

import time
from typing import Final

from starlette.datastructures import Headers, MutableHeaders, State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.guard import new_request_id, sent_request_id
from teletape_server.hosts.running import Trace, begin_request
from teletape_server.identity.addresses import caller_address
from teletape_server.logs import log_request

_METHODS: Final = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"}
_LEFT: Final = 499  # the status of a request whose caller left before its answer began, as nginx has it


class ObservationMiddleware:
    """Gives every request an id, as `request.state.request_id`, and notes its answer.

    Args:
        app: The application.
        server: The state of the server.
        is_logged: Whether requests are logged.
    """

    def __init__(self, app: ASGIApp, *, server: State, is_logged: bool) -> None:
        self._app = app
        self._server = server
        self._is_logged = is_logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        answered: float | None = None
        request_id = sent_request_id(Headers(scope=scope)) or new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id
        tracing = self._server.tracing
        parent = None if tracing is None else tracing.parent(Headers(scope=scope))
        trace = None if parent is None else Trace(parent)
        begin_request(request_id, trace)  # of this task, which handles nothing else
        status, length = _LEFT, 0

        async def send_noted(message: Message) -> None:
            nonlocal answered, status, length
            if message["type"] == "http.response.start":
                status, answered = message["status"], time.perf_counter() - began
                MutableHeaders(scope=message).setdefault("x-request-id", request_id)
            else:
                length += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._note(scope, status, length, time.perf_counter() - began, answered, trace)

    def _note(
        self, scope: Scope, status: int, length: int, seconds: float, answered: float | None, trace: Trace | None
    ) -> None:
        """Notes a request that took some seconds, and whose answer began after `answered` of them."""
        method, path, principal = scope["method"], scope["path"], scope["state"].get("principal")
        owner = None if principal is None else principal.owner
        template = self._server.templates.of(path)
        if template is None:  # only paths that exist become labels: their number has to stay small
            template = "/" + path.split("/")[1] if status < 400 else "other"
        if scope["state"].get("is_frame"):
            self._server.metrics.observe_frame(status, seconds if answered is None else answered, str(owner))
        else:
            self._server.metrics.observe(method if method in _METHODS else "other", template, status, seconds, owner)
        if trace is not None:
            ids = {"owner": owner, "session": scope.get("path_params", {}).get("session")}
            self._server.tracing.end(
                trace, method, template, status, seconds, request_id=scope["state"]["request_id"], **ids
            )
        if self._is_logged:
            state = scope["state"]
            sent = scope.get("raw_path", path.encode()).decode("latin-1")
            client = scope.get("client")
            forwarded = Headers(scope=scope).get("x-forwarded-for")
            caller = caller_address(client and client[0], forwarded, self._server.settings.trusted_proxies)
            request_id = state["request_id"]
            log_request(method, sent, status, length, seconds, owner=owner, request_id=request_id, caller=caller)
