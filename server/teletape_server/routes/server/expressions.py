"""POST /expressions: text in, a function as data out."""

from __future__ import annotations

from fastapi import APIRouter, Request

from teletape_server.http.access import Authenticated
from teletape_server.http.bodies import SmallBodyRoute
from teletape_server.http.declarations import BODY, STILL_RUNNING, refusals
from teletape_server.http.parameters import IdempotencyKey, Prefer
from teletape_server.http.schemas import Expression, ExpressionText

router = APIRouter(prefix="/expressions", tags=["expressions"], route_class=SmallBodyRoute)


@router.post(
    "",
    summary="Parse an expression",
    response_model=Expression,
    responses=refusals("unauthenticated", *BODY, "invalid_expression", "busy") | STILL_RUNNING,
)
async def parse_expression(
    request: Request, principal: Authenticated, body: ExpressionText, key: IdempotencyKey = None, prefer: Prefer = None
) -> Expression:
    """Returns the function that a text such as `y = sin(x) * x` means, as `POST /functions` takes it.

    Nothing is computed and nothing is stored. docs/expressions.md describes the language. Texts are parsed one at a
    time; more than a few at once are refused: `busy`.
    """
    compiled = await request.app.state.parse_queue.parse(principal.owner, body.text, body.dtype)
    return Expression.model_validate(compiled._asdict())
