"""Server-Sent Events: the progress of a request while it runs, and its answer or problem as the last event.

Every request that goes to a session's process is answered this way if its Accept header names text/event-stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

from fastapi import Request
from starlette.responses import StreamingResponse

from teletape_server.hosts.protocols import HostGone, Running
from teletape_server.http.negotiation import EVENTS_TYPE
from teletape_server.http.progress import Progress
from teletape_server.models.waiting import Wait
from teletape_server.problems import Problem, error_response, problem_response
from teletape_server.retries import Stored

_POLL_SECONDS: Final = 0.2
PIECE: Final = 1 << 20  #: Bytes of a large answer that are sent at once.
HEARTBEAT_SECONDS: Final = 15.0  # of silence, after which a comment shows that the connection is alive
#: Of every response of events.
HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def event_stream(
    request: Request,
    running: Running,
    *,
    status: int,
    session_ended: Callable[[], Problem],
    wait: Callable[[], Wait],
    after: Callable[[], Awaitable[None]] | None = None,
) -> StreamingResponse:
    """Returns a response of events: `progress` (a `Progress`) after each change, then one `answer` or `problem`.

    If the client disconnects, the events stop and the request goes on; POST /cancel stops it.

    Args:
        request: The request.
        running: What was submitted for it.
        status: HTTP status that the answer would have had.
        session_ended: Returns the problem to report if the session's process ends meanwhile.
        wait: Returns why the request waits.
        after: Called after the last event, or after the client has disconnected.
    """
    return events_response(_events(request, running, status, session_ended, wait, after))


def late_events(
    request: Request,
    waiting: asyncio.Task[Stored],
    running: Callable[[], Running | None],
    wait: Callable[[], Wait],
) -> StreamingResponse:
    """Returns the events of a request with an Idempotency-Key: also of one whose answer is there.

    Args:
        request: The request.
        waiting: Waits for the answer; the work itself goes on if the client disconnects.
        running: Returns what runs now, or None.
        wait: Returns why the request waits.
    """
    return events_response(_late_events(request, waiting, running, wait))


def events_response(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Returns a response of events."""
    return StreamingResponse(events, media_type=EVENTS_TYPE, headers=HEADERS)


async def _progress(
    answer: asyncio.Future[Any], running: Callable[[], Running | None], wait: Callable[[], Wait]
) -> AsyncIterator[bytes]:
    """Yields the events until an answer is there, and comments in between, which show that the connection is alive.

    A wait is news if its place or its reason changes; its seconds change all the time.
    """
    clock = asyncio.get_running_loop().time
    last_news, last_sent = None, clock()
    while not (await asyncio.wait([answer], timeout=_POLL_SECONDS))[0]:
        progress, why = Progress.of(running()), wait()
        if (news := (progress, why.position, why.reason)) != last_news:
            last_news, last_sent = news, clock()
            yield event("progress", progress.model_copy(update={"wait": why}).model_dump_json())
        elif clock() - last_sent >= HEARTBEAT_SECONDS:
            last_sent = clock()
            yield b": still running\n\n"


async def _late_events(
    request: Request,
    waiting: asyncio.Task[Stored],
    running: Callable[[], Running | None],
    wait: Callable[[], Wait],
) -> AsyncIterator[bytes]:
    request_id = str(getattr(request.state, "request_id", "unknown"))
    try:
        async for part in _progress(waiting, running, wait):
            yield part
        error = waiting.exception()
        refusal = error if error is not None else waiting.result().refusal
        if refusal is None:
            stored = waiting.result()
            for part in _answer_event(stored.body, stored.status):
                yield part
        else:
            response = error_response(refusal, request_id)  # type: ignore[arg-type]  # an Exception: no task ends itself
            yield event("problem", bytes(response.body).decode(), id=str(response.status_code))
    finally:
        waiting.cancel()


async def _events(
    request: Request,
    running: Running,
    status: int,
    session_ended: Callable[[], Problem],
    wait: Callable[[], Wait],
    after: Callable[[], Awaitable[None]] | None,
) -> AsyncIterator[bytes]:
    try:
        async for part in _progress(running.reply, lambda: running, wait):
            yield part
        for part in _last_event(request, running, status, session_ended):
            yield part
    finally:
        if after is not None:
            await after()


def _last_event(
    request: Request, running: Running, status: int, session_ended: Callable[[], Problem]
) -> Iterator[bytes]:
    try:
        reply = running.reply.result()
    except HostGone:
        problem = session_ended()
        code, message, details = problem.code, problem.detail, problem.details
    else:
        if reply.code is None:
            yield from _answer_event(reply.body, status)
            return
        code, message, details = reply.code, reply.facts["message"], dict(reply.facts["details"])
    request_id = str(getattr(request.state, "request_id", "unknown"))
    response = problem_response(code, message, request_id=request_id, details=details)
    yield event("problem", bytes(response.body).decode(), id=str(response.status_code))


def _answer_event(body: bytes | memoryview, status: int) -> Iterator[bytes]:
    """Yields the event of an answer in pieces: a large one is never copied as a whole."""
    yield f"event: answer\nid: {status}\ndata: ".encode()
    for position in range(0, len(body), PIECE):
        yield bytes(body[position : position + PIECE]).replace(b"\n", b"\ndata: ")
    yield b"\n\n" if body else b"null\n\n"


def event(name: str, data: str, id: str | None = None) -> bytes:
    """Returns an event as it is sent."""
    lines = [f"event: {name}", *([] if id is None else [f"id: {id}"])]
    lines += [f"data: {line}" for line in data.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()
