"""POST /run: commands in a session that has nothing, and of which nothing stays."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.handlers.endpoints import WORK
from teletape_server.handlers.idempotency import request_hash
from teletape_server.hosts.protocols import Running
from teletape_server.http import parameters
from teletape_server.http.access import Authenticated, registry_of, retries_of, settings_of, waits_of
from teletape_server.http.answers import answer, answer_of_front
from teletape_server.http.bodies import declared_length, hash_body, read_body, read_early_body
from teletape_server.http.declarations import BODY, STILL_RUNNING, answers, takes
from teletape_server.http.dispatch import fields_outside, respond
from teletape_server.http.events import event_stream
from teletape_server.http.negotiation import answer_type, answer_types, body_type, body_types, wants_events
from teletape_server.http.parameters import Full, IdempotencyKey, Prefer, TimeLimit, preference, request_key
from teletape_server.http.progress import wait_of
from teletape_server.http.schemas import Device
from teletape_server.models.session.batches import Run, RunAnswer
from teletape_server.problems import Problem
from teletape_server.retries import Stored
from teletape_server.sessions.counted_bodies import MOST_EARLY, CountedBody
from teletape_server.sessions.registry import SessionEntry

#: A session, and the body of the batch that runs in it.
_Begun: TypeAlias = tuple[SessionEntry, CountedBody | None]

router = APIRouter(tags=["run"])

_TAKES: Final = takes(Run)
_ANSWERS: Final = (
    answers(
        RunAnswer,
        "unauthenticated",
        *BODY,
        "unknown_id",
        "id_in_use",
        "tape_consumed",
        "tape_state",
        "no_gradient_registered",
        "overloaded",
        "unknown_device",
        "idempotency_conflict",
        "answer_dropped",
        "session_ended",
        *WORK,
    )
    | STILL_RUNNING
)
_BODY_TYPES: Final = body_types(_TAKES)
_ANSWER_TYPES: Final = answer_types(_ANSWERS, 200)


@router.post(
    "/run",
    summary="Run commands once, keep nothing",
    response_class=Response,
    openapi_extra=_TAKES,
    responses=_ANSWERS,
)
async def run(
    request: Request,
    principal: Authenticated,
    full: Full = False,
    device: Annotated[Device | None, Query(description="Where to compute; default: the server's setting")] = None,
    key: IdempotencyKey = None,
    prefer: Prefer = None,
    time_limit: TimeLimit = None,
) -> Response:
    """Runs the commands of a batch, beginning with nothing, and returns the values of `fetch`. Nothing stays.

    It does not count as a session: it waits for its turn, a key's requests in their order and the keys one after the
    other, and is `overloaded` if that takes too long.

    The request is safe to repeat. If the client disconnects, the computation is cancelled; with an Idempotency-Key it
    goes on, for the retry.
    """
    content_type = body_type(request.headers, _BODY_TYPES)
    accept = answer_type(request.headers, _ANSWER_TYPES, wire.JSON_TYPE)
    length = declared_length(request.headers, settings_of(request).max_body, content_type)
    params = {"full": full, "accept": accept, **fields_outside(request, _BODY_TYPES)}
    params |= parameters.time_limit(request.headers)
    work = _Work(
        request, principal.owner, principal.account, device or settings_of(request).device, content_type, params
    )
    key = request_key(request.headers)
    if key is not None:
        return await _run_once(work, key, length)
    async with work.session() as session:
        body = await read_body(request, session, length)
        running = work.submit(session, body)
        if wants_events(request.headers):
            return work.events(session, running)
        return await _unless_disconnected(request, respond(request, session, running, patience=None))


@dataclass
class _Work:
    """A batch that runs in a session of its own.

    Attributes:
        request: Its request.
        owner: Whose it is.
        account: Which it counts for.
        device: Where it computes.
        content_type: Of its body.
        params: Of the method.
        is_streaming: Whether the response of events ends its session.
    """

    request: Request
    owner: str
    account: str
    device: str
    content_type: str
    params: dict[str, Any]
    is_streaming: bool = False

    @asynccontextmanager
    async def session(self) -> AsyncIterator[SessionEntry]:
        """A block with a session that has nothing; that of events ends after the last one."""
        session = await self.open()
        try:
            yield session
        finally:
            if not self.is_streaming:
                await self.end(session)

    async def open(self, turn: asyncio.Future[Any] | None = None) -> SessionEntry:
        """Returns the session, as soon as there is a place for it; `turn`: see `Runs.begin`."""
        registry = registry_of(self.request)
        return await registry.begin_run(self.owner, self.account, device=self.device, turn=turn)

    async def end(self, session: SessionEntry) -> None:
        """Ends the use of the session."""
        await registry_of(self.request).end_run(session)

    def submit(self, session: SessionEntry, body: CountedBody | None) -> Running:
        """Submits the batch."""
        params = {**self.params, "idempotency_key": None}
        return registry_of(self.request).submit(session, "run", params, content_type=self.content_type, body=body)

    def events(self, session: SessionEntry, running: Running) -> Response:
        """Returns the response of events, which ends the session."""
        self.is_streaming = True
        return event_stream(
            self.request,
            running,
            status=200,
            session_ended=lambda: registry_of(self.request).live.gone(session),
            wait=partial(wait_of, waits_of(self.request), self.owner, running, session),
            after=partial(self.end, session),
        )


async def _run_once(work: _Work, key: str, length: int) -> Response:
    """Runs the batch, or returns the first answer to it; it goes on if its caller leaves."""
    request, retries = work.request, retries_of(work.request)
    path, query = request.scope["path"], request.scope["query_string"]
    hasher = request_hash(path, query, work.content_type, work.params["accept"])
    attempt = await retries.earlier(work.owner, key)
    is_replayed = attempt is not None
    if attempt is not None:
        await hash_body(request, length, hasher)
    else:
        with retries.receiving(work.owner, key) as begin:
            begun = await _received(work, length, hasher)
            attempt = begin(hasher.digest(), partial(_answer_once, work, key, begun))
    prefers = preference(request.headers)
    patience = prefers.patience(settings_of(request).patience) if prefers.is_async else None
    return await answer_of_front(
        request, work.owner, key, attempt, hasher.digest(), prefers, patience=patience, is_replayed=is_replayed
    )


async def _received(
    work: _Work, length: int, hasher: hashlib.blake2b
) -> Callable[[asyncio.Future[Any]], Coroutine[Any, Any, _Begun]]:
    """Receives the body, and returns what gives the batch its session.

    A large body waits for the session, in whose memory it is received; a small one is received at once.
    """
    if 0 < length <= MOST_EARLY:
        early = await read_early_body(work.request, work.owner, length, hasher)

        async def begin(turn: asyncio.Future[Any]) -> _Begun:
            try:
                session = await work.open(turn)
            finally:
                early.discard()
            try:
                body = registry_of(work.request).body_buffer(session, length)
            except BaseException:
                await work.end(session)
                raise
            body.view[:] = early.view
            return session, body

        return begin
    session = await work.open()
    try:
        body = await read_body(work.request, session, length, hasher=hasher)
    except BaseException:
        await work.end(session)
        raise

    async def begun(_: asyncio.Future[Any]) -> _Begun:
        return session, body

    return begun


async def _answer_once(
    work: _Work, key: str, begin: Callable[[asyncio.Future[Any]], Coroutine[Any, Any, _Begun]]
) -> Stored:
    """Runs the batch of a request with a key, and ends its session."""
    works = retries_of(work.request).works
    placeholder = Running(asyncio.get_running_loop().create_future())
    turn = asyncio.ensure_future(begin(placeholder.reply))

    def cancel() -> None:
        turn.cancel()

    placeholder.cancel = cancel
    works[work.owner, key] = placeholder
    try:
        await asyncio.wait([turn])
    finally:
        works.pop((work.owner, key), None)
        turn.cancel()  # if the server ends
    if turn.cancelled():
        problem = Problem("cancelled", "the request was cancelled while it waited for its turn: nothing was executed")
        return Stored.refused(problem)
    session, body = turn.result()
    try:
        running = works[work.owner, key] = work.submit(session, body)
        await asyncio.wait([running.reply])
        response = answer(registry_of(work.request), session, running)
    except Problem as problem:
        if problem.code == "session_ended":  # it has not run to its end, so a retry is the first one
            raise
        return Stored.refused(problem)
    finally:
        works.pop((work.owner, key), None)
        await work.end(session)
    return Stored(response.status_code, {"content-type": work.params["accept"]}, response.body)


async def _unless_disconnected(request: Request, responding: Coroutine[Any, Any, Response]) -> Response:
    """Returns the response, or stops waiting for it when the client disconnects; the session's end cancels the work."""
    response, disconnect = asyncio.ensure_future(responding), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([response, disconnect], return_when=asyncio.FIRST_COMPLETED)
        return await response if response.done() else Response(status_code=204)  # the client has gone
    finally:
        response.cancel()
        disconnect.cancel()


async def _disconnected(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
