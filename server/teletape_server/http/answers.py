"""Responses to requests that run, or have run: the answer, or 202 with the address where it is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from fastapi import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from teletape_server.handlers.idempotency import REPLAYED, IdempotencyConflictError
from teletape_server.hosts.protocols import HostGone, Running
from teletape_server.http.access import long_requests_of, retries_of, waits_of
from teletape_server.http.events import PIECE, late_events
from teletape_server.http.negotiation import wants_events
from teletape_server.http.parameters import Preference
from teletape_server.http.progress import Progress, wait_of
from teletape_server.models.waiting import Wait
from teletape_server.problems import Problem
from teletape_server.retries import Attempt, Stored
from teletape_server.sessions.registry import Registry, SessionEntry

#: The address of a long request.
ADDRESS: Final = "/v1/requests/{id}"


def still_running(
    running: Running | None, id: str, headers: Mapping[str, str] | None = None, wait: Wait | None = None
) -> Response:
    """Returns the response to a request that takes longer than a response waits.

    Args:
        running: The request; None: its session starts.
        id: The one in its address.
        headers: Further ones.
        wait: Why it waits.
    """
    where = {"Retry-After": "1", "Location": ADDRESS.format(id=id), **(headers or {})}
    return JSONResponse(Progress.of(running, wait).model_dump(), 202, where)


def answer(
    registry: Registry, session: SessionEntry, running: Running, *, status: int = 200, is_replayed: bool = False
) -> Response:
    """Returns the response to a request that has its reply.

    Args:
        registry: Knows why the session ended, if it did.
        session: The session whose process ran it.
        running: The submitted request.
        status: Of a successful response.
        is_replayed: Whether the request is a retry of the one that ran.

    Raises:
        Problem: The method refused the request, or the session ended.
    """
    replayed = REPLAYED if is_replayed else {}
    try:
        reply = running.reply.result()
    except HostGone:
        problem = registry.live.gone(session)
        problem.headers |= replayed
        raise problem from None
    facts = reply.facts
    headers = {**(facts.get("headers") or {}), **replayed}
    if reply.code is not None:
        raise Problem(reply.code, facts["message"], headers=headers, **facts["details"])
    return LargeResponse(reply.body, facts.get("status", status), headers, reply.content_type or None)


async def answer_of_front(
    request: Request,
    owner: str,
    key: str,
    attempt: Attempt,
    digest: bytes | None,
    prefers: Preference,
    *,
    patience: float | None,
    is_replayed: bool = False,
    has_events: bool = True,
) -> Response:
    """Returns the response to a request with a key that the front answers: its events, its answer, or 202.

    Args:
        request: The request.
        owner: Whose it is.
        key: Under which its answer is stored.
        attempt: The first request with that key.
        digest: A hash of this one; None: whatever the first one was.
        prefers: What this one prefers.
        patience: Seconds after which the response is 202; None: no limit.
        is_replayed: Whether this one is a retry.
        has_events: Whether it is answered by events if its Accept header asks for them.

    Raises:
        Problem: The request was refused.
        IdempotencyConflictError, AnswerDroppedError: See `Attempt.answer`.
    """
    works = retries_of(request).works
    waiting: asyncio.Task[Stored] = asyncio.ensure_future(attempt.answer(digest))
    if has_events and wants_events(request.headers) and not prefers.is_async:
        return late_events(request, waiting, lambda: works.get((owner, key)), lambda: _wait(request, owner, key))
    try:
        await asyncio.wait([waiting], timeout=patience)
        is_other = waiting.done() and isinstance(waiting.exception(), IdempotencyConflictError)
        if attempt.task is not None and (not waiting.done() or (prefers.at_once and not is_other)):
            if not attempt.id:
                attempt.id = long_requests_of(request).of_front(owner, key, attempt.task)
            return still_running(works.get((owner, key)), attempt.id, prefers.applied, _wait(request, owner, key))
        stored = waiting.result()
    finally:
        waiting.cancel()
    replayed = REPLAYED if is_replayed else {}
    if stored.refusal is not None:
        refusal = stored.refusal
        raise Problem(refusal.code, refusal.detail, headers={**refusal.headers, **replayed}, **refusal.details)
    return LargeResponse(stored.body, stored.status, {**stored.headers, **replayed})


def _wait(request: Request, owner: str, key: str) -> Wait:
    """Returns why a request that the front answers waits."""
    return wait_of(waits_of(request), owner, retries_of(request).works.get((owner, key)))


class LargeResponse(Response):
    """A response whose body may be large: it is sent in pieces, as the caller takes them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for position in range(0, len(self.body) or 1, PIECE):
            end = position + PIECE
            part = self.body[position:end]
            await send({"type": "http.response.body", "body": part, "more_body": end < len(self.body)})
