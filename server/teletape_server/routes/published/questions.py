"""Questions to published functions: a POST for each kind."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request, Response

import teletape_wire as wire
from teletape_server.handlers.endpoints import WORK
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.hosts.protocols import HostGone
from teletape_server.http.access import Authenticated, registry_of, settings_of
from teletape_server.http.answers import LargeResponse
from teletape_server.http.bodies import declared_length, fill, whole_body
from teletape_server.http.declarations import BODY, answers, takes
from teletape_server.http.dispatch import fields_outside
from teletape_server.http.negotiation import answer_type, answer_types, body_type, body_types
from teletape_server.http.parameters import Full, TimeLimit, time_limit
from teletape_server.identity.principals import Principal
from teletape_server.models.published.questions import QUESTIONS
from teletape_server.problems import overloaded
from teletape_server.published.calls import Call, Part
from teletape_server.routes.published.access import Reference, find, pool_of
from teletape_server.sessions.counted_bodies import MOST_EARLY

router = APIRouter(prefix="/published", tags=["published"])
_PROBLEMS: Final = ("unauthenticated", *BODY, "unknown_id", "no_gradient_registered", "busy", "overloaded", *WORK)


def _add(question: str) -> None:
    """Adds the route of a question."""
    entry = QUESTIONS[question]
    body, responses = takes(entry.body), answers(entry.answer, *_PROBLEMS)
    types, offers = body_types(body), answer_types(responses, 200)

    async def ask(
        request: Request, principal: Authenticated, name: Reference, full: Full = False, time_limit_: TimeLimit = None
    ) -> Response:
        return await _answer(request, principal, name, question, types, offers, is_full=full)

    router.add_api_route(
        f"/{{name}}/{question}",
        ask,
        methods=["POST"],
        name=question,
        summary=entry.summary,
        description=f"{entry.description} Calls of several callers may be computed together: `batch` says how it was.",
        response_class=Response,
        openapi_extra=body,
        responses=responses,
    )


async def _answer(
    request: Request,
    principal: Principal,
    reference: str,
    question: str,
    types: tuple[str, ...],
    offers: tuple[str, ...],
    *,
    is_full: bool,
) -> Response:
    """Answers a question; a caller that leaves ends it, if no other call is computed with it.

    Raises:
        Problem: It is refused.
    """
    name, published = find(request, principal, reference)
    headers = request.headers
    content_type, accept = body_type(headers, types), answer_type(headers, offers, wire.JSON_TYPE)
    length = declared_length(headers, settings_of(request).max_body, content_type)
    params = {"full": is_full, "accept": accept, **fields_outside(request, types)}
    limit = time_limit(headers).get(TIME_LIMIT)
    reply: asyncio.Future[Part] = asyncio.get_running_loop().create_future()
    call = Call(principal.owner, name.name, published, question, params, content_type, b"", limit, reply)
    call.account = principal.account
    if length > MOST_EARLY:
        return await _large(request, call, length)
    with registry_of(request).bodies.admit(principal.owner, length):
        call.body = await whole_body(request, length)
        return _response(await answer_to(request, call))


async def answer_to(request: Request, call: Call) -> Part | None:
    """Returns the answer to a call, which may be computed together with others; None: the client has gone.

    Args:
        request: Its request, whose body has been read.
        call: The call.

    Raises:
        Problem: It is refused.
    """
    registry_of(request).budgets.check_work(call.account)
    leave = pool_of(request.app.state).submit(call)
    try:
        return await _unless_disconnected(request, call.reply)
    finally:
        leave()


async def _large(request: Request, call: Call, length: int) -> Response:
    """Answers a question whose body is received into the memory of the process that computes it.

    Raises:
        Problem: It is refused.
    """
    registry_of(request).budgets.check_work(call.account)
    pool, bodies = pool_of(request.app.state), registry_of(request).bodies
    process, receiver = await pool.receiver(call.owner)
    process.receiving += 1
    try:
        body = bodies.buffer(receiver, length)
        try:
            await fill(request, body, 0, length)
        except BaseException:
            body.discard()
            raise
    except HostGone as error:
        raise overloaded(f"the process that had the request has ended ({error})") from None
    finally:
        process.receiving -= 1
    pool.submit_pinned(process, call, body)
    return _response(await _unless_disconnected(request, call.reply))


def _response(part: Part | None) -> Response:
    if part is None:
        return Response(status_code=204)  # the client has gone
    return LargeResponse(part.body, 200, media_type=part.content_type)


async def _unless_disconnected(request: Request, reply: asyncio.Future[Part]) -> Part | None:
    """Returns the reply; None: the client has disconnected before."""
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        waited: list[asyncio.Future[Any]] = [reply, gone]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        reply.cancel()
        return None
    finally:
        gone.cancel()


async def _disconnected(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


for _question in QUESTIONS:
    _add(_question)
