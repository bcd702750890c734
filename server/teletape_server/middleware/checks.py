"""The guard's checks of every request, and the last place that turns an error into a problem."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers, MutableHeaders, State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teletape_server.guard import Guard
from teletape_server.middleware.rate_limits import add_rate_limits, add_warning
from teletape_server.problems import Problem, error_response, shutting_down

#: What is answered until the end: the server lives, its last numbers are worth reading, and what runs has its grace.
_ALSO_AT_THE_END: Final = re.compile(r"/v1/health|/metrics|/v1/requests/[^/]+")


class ChecksMiddleware:
    """Refuses what the guard refuses, and completes the headers of answers.

    Args:
        app: The application.
        guard: The rules.
        server: The state of the server.
    """

    def __init__(self, app: ASGIApp, *, guard: Guard, server: State) -> None:
        self._app = app
        self._guard = guard
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id: str = scope["state"]["request_id"]
        try:
            self._guard.check(scope["path"], Headers(scope=scope))
            if self._guard.is_stopping() and not _ALSO_AT_THE_END.fullmatch(scope["path"]):
                refusal = shutting_down()
                refusal.headers["Connection"] = "close"
                raise refusal
        except Problem as problem:
            await error_response(problem, request_id)(scope, receive, send)
            return
        is_started = False

        async def send_completed(message: Message) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                headers = MutableHeaders(scope=message)
                self._guard.complete(headers, scope["path"], request_id)
                add_rate_limits(headers, self._server.registry, scope["path"], scope["state"])
                if (principal := scope["state"].get("principal")) is not None:
                    add_warning(headers, self._server.registry.budgets, principal.account)
            await send(message)

        try:
            await self._app(scope, receive, send_completed)
        except Exception as error:
            if is_started:  # the connection ends without the rest of the answer
                raise
            await error_response(error, request_id)(scope, receive, send_completed)
