"""A tape's picture."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.http.admission import Found, ask, wanted_type
from teletape_server.http.openapi import NAMED, SESSION, answers
from teletape_server.routes.questions import TapeId
from teletape_server.worker.handlers.pictures import DOT_TYPE, SVG_TYPE
from teletape_server.worker.models.pictures import Graph

router = APIRouter()

_FORMATS: Final = {"json": wire.JSON_TYPE, "dot": DOT_TYPE, "svg": SVG_TYPE}
_TEXT: Final[dict[str, Any]] = {DOT_TYPE: {"type": "string"}, SVG_TYPE: {"type": "string"}}

Format = Annotated[
    Literal["json", "dot", "svg"] | None,
    Query(description="In place of Accept: application/json, text/vnd.graphviz, image/svg+xml"),
]
Target = Annotated[list[str], Query(description="With sources: mark the path of its gradient. May come again")]
Source = Annotated[list[str], Query(description="With targets: mark the cut, if its gradient is none. May come again")]
Nodes = Annotated[int, Query(ge=4, le=1_000_000, description="More are folded: what repeats, or neighbours, is one")]


@router.get(
    "/{tape}/graph",
    summary="Draw a tape",
    response_class=Response,
    responses=answers(
        Graph,
        *SESSION,
        *NAMED,
        "not_acceptable",
        "invalid_request",
        "layout_failed",
        "layout_unavailable",
        others=_TEXT,
    ),
)
async def graph(
    request: Request,
    found: Found,
    tape: TapeId,
    format: Format = None,
    target: Target = [],  # noqa: B006  # FastAPI copies it
    source: Source = [],  # noqa: B006
    nodes: Nodes = 2000,
) -> Response:
    """What it watched, the calls it recorded and the bytes that each keeps; also of a tape that has answered."""
    known = tuple(_FORMATS.values())
    accept = wanted_type(request, known, wire.JSON_TYPE) if format is None else _FORMATS[format]
    params = {"id": tape, "accept": accept, "targets": target, "sources": source, "nodes": nodes}
    return await ask(request, found, "tape.graph", params)
