"""Server-Sent Events: how far a request is while it runs, and its answer or problem as the last event.

Any request that goes to a session's process is answered so where Accept names text/event-stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from fastapi import Request
from starlette.responses import StreamingResponse

from teletape_server.hosts import HostGone, Running
from teletape_server.http.schemas import Still
from teletape_server.problems import Problem, problem_response

EVENTS: Final = "text/event-stream"
_STEP: Final = 0.2  # seconds between two looks at how far it is
_HEARTBEAT: Final = 15.0  # seconds of silence after which a comment shows that the connection lives


def wants_events(request: Request) -> bool:
    """Whether the caller wants to be told how far it is."""
    accept = request.headers.get("accept", "")
    return any(entry.partition(";")[0].strip().lower() == EVENTS for entry in accept.split(","))


def stream(
    request: Request,
    running: Running,
    *,
    status: int,
    gone: Callable[[], Problem],
    after: Callable[[], Awaitable[None]] | None = None,
) -> StreamingResponse:
    """The request's events: `progress` (each a `Still`) whenever it has gone on, then one `answer` or `problem`.

    A caller who goes away stops the events, not the work: that goes on, and can be cancelled.

    Args:
        request: Who asks.
        running: What was asked.
        status: What the answer's status would have been.
        gone: The problem to tell where the session's process ends meanwhile.
        after: To be done when the last event is sent, or the caller has gone away.
    """
    return StreamingResponse(
        _events(request, running, status, gone, after),
        media_type=EVENTS,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _events(
    request: Request,
    running: Running,
    status: int,
    gone: Callable[[], Problem],
    after: Callable[[], Awaitable[None]] | None,
) -> AsyncIterator[bytes]:
    try:
        clock = asyncio.get_running_loop().time
        told, spoke = None, clock()
        while True:
            done, _ = await asyncio.wait([running.reply], timeout=_STEP)
            if done:
                break
            now = Still.of(running)
            if now != told:
                told, spoke = now, clock()
                yield _event("progress", now.model_dump_json())
            elif clock() - spoke >= _HEARTBEAT:
                spoke = clock()
                yield b": it runs still\n\n"
        yield _last(request, running, status, gone)
    finally:
        if after is not None:
            await after()


def _last(request: Request, running: Running, status: int, gone: Callable[[], Problem]) -> bytes:
    try:
        reply = running.reply.result()
    except HostGone:
        problem = gone()
        code, message, details = problem.code, problem.detail, problem.details
    else:
        if reply.code is None:
            return _event("answer", bytes(reply.body).decode() or "null", id=str(status))
        code, message, details = reply.code, reply.facts["message"], dict(reply.facts["details"])
    request_id = str(getattr(request.state, "request_id", "unknown"))
    told = problem_response(code, message, request_id=request_id, details=details)
    return _event("problem", bytes(told.body).decode(), id=str(told.status_code))


def _event(kind: str, data: str, id: str | None = None) -> bytes:
    lines = [f"event: {kind}", *([] if id is None else [f"id: {id}"]), *(f"data: {one}" for one in data.split("\n"))]
    return ("\n".join(lines) + "\n\n").encode()
