"""POST /expressions: text in, a function as data out."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from teletape_server.expressions.parser import parse
from teletape_server.http.access import Owner
from teletape_server.http.bodies import SmallBodyRoute
from teletape_server.http.declarations import BODY, refusals
from teletape_server.http.parameters import IdempotencyKey
from teletape_server.http.schemas import Expression, ExpressionText

router = APIRouter(prefix="/expressions", tags=["expressions"], route_class=SmallBodyRoute)


@router.post(
    "",
    summary="Parse an expression",
    response_model=Expression,
    responses=refusals("unauthenticated", *BODY, "invalid_expression"),
)
async def parse_expression(_: Owner, body: ExpressionText, key: IdempotencyKey = None) -> Expression:
    """Returns the function that a text such as `y = sin(x) * x` means, as `POST /functions` takes it.

    Nothing is computed and nothing is stored. docs/expressions.md describes the language.
    """
    # In a thread: a text of the longest length takes about 0.1 s.
    compiled = await asyncio.to_thread(parse, body.text, body.dtype)
    return Expression.model_validate(compiled._asdict())
