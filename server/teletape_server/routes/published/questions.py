"""Questions to published functions: a POST for each kind."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fastapi import APIRouter, Request, Response

import teletape_wire as wire
from teletape_server.handlers.endpoints import WORK
from teletape_server.handlers.methods import TIME_LIMIT
from teletape_server.http.access import Owner, registry_of, settings_of
from teletape_server.http.answers import LargeResponse
from teletape_server.http.bodies import declared_length, whole_body
from teletape_server.http.declarations import BODY, answers, takes
from teletape_server.http.dispatch import fields_outside
from teletape_server.http.negotiation import answer_type, answer_types, body_type, body_types
from teletape_server.http.parameters import Full, TimeLimit, time_limit
from teletape_server.models.published.questions import QUESTIONS
from teletape_server.published.pool import Call
from teletape_server.routes.published.access import Reference, find, pool_of

router = APIRouter(prefix="/published", tags=["published"])
_PROBLEMS: Final = ("unauthenticated", *BODY, "unknown_id", "no_gradient_registered", "busy", "overloaded", *WORK)


def _add(question: str) -> None:
    """Adds the route of a question."""
    entry = QUESTIONS[question]
    body, responses = takes(entry.body), answers(entry.answer, *_PROBLEMS)
    types, offers = body_types(body), answer_types(responses, 200)

    async def ask(
        request: Request, owner: Owner, name: Reference, full: Full = False, time_limit_: TimeLimit = None
    ) -> Response:
        return await _answer(request, owner, name, question, types, offers, is_full=full)

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
    owner: str,
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
    name, published = find(request, owner, reference)
    headers = request.headers
    content_type, accept = body_type(headers, types), answer_type(headers, offers, wire.JSON_TYPE)
    length = declared_length(headers, settings_of(request).max_body, content_type)
    params = {"full": is_full, "accept": accept, **fields_outside(request, types)}
    limit = time_limit(headers).get(TIME_LIMIT)
    with registry_of(request).bodies.admit(owner, length):
        content = await whole_body(request, length)
        reply = asyncio.get_running_loop().create_future()
        call = Call(owner, name.name, published, question, params, content_type, content, limit, reply)
        leave = pool_of(request.app.state).submit(call)
        try:
            part = await _unless_disconnected(request, reply)
        except asyncio.CancelledError:
            leave()
            raise
    if part is None:
        leave()
        return Response(status_code=204)  # the client has gone
    return LargeResponse(part.body, 200, media_type=part.content_type)


async def _unless_disconnected(request: Request, reply: asyncio.Future[Any]) -> Any:
    """Returns the reply; None: the client has disconnected before."""
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([reply, gone], return_when=asyncio.FIRST_COMPLETED)
        return reply.result() if reply.done() else None
    finally:
        gone.cancel()


async def _disconnected(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


for _question in QUESTIONS:
    _add(_question)
