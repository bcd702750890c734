"""GET …/tapes/{tape}/graph: a tape's graph as JSON, DOT or SVG."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

import teletape_wire as wire
from teletape_server.handlers.tapes.graphs import DOT_TYPE, SVG_TYPE
from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import NAMED, SESSION, answers
from teletape_server.http.dispatch import dispatch
from teletape_server.http.negotiation import answer_type
from teletape_server.models.tapes.graphs import Graph
from teletape_server.routes.tapes.questions import TapeId

router = APIRouter()

_FORMATS: Final = {"json": wire.JSON_TYPE, "dot": DOT_TYPE, "svg": SVG_TYPE}
_TEXT: Final[dict[str, Any]] = {DOT_TYPE: {"type": "string"}, SVG_TYPE: {"type": "string"}}

Format = Annotated[
    Literal["json", "dot", "svg"] | None,
    Query(
        description="The answer's format, in place of the Accept header (application/json, text/vnd.graphviz, "
        "image/svg+xml)"
    ),
]
Targets = Annotated[
    list[str], Query(description="With `sources`: mark the path of the gradient of this target. Repeatable")
]
Sources = Annotated[
    list[str],
    Query(description="With `targets`: mark the path to this source, or where it is cut. Repeatable"),
]
Nodes = Annotated[
    int,
    Query(ge=4, le=1_000_000, description="Most nodes to draw: above that, repeated or neighbouring ops share a node"),
]
First = Annotated[
    int | None,
    Query(ge=0, description="Draw only a part: the `ops` ops from this position on. A group's `first` and `ops`"),
]
Ops = Annotated[int, Query(ge=1, description="With `first`: ops to draw")]


@router.get(
    "/{tape}/graph",
    summary="Get a tape's graph",
    response_class=Response,
    responses=answers(
        Graph,
        *SESSION,
        *NAMED,
        "not_acceptable",
        "invalid_request",
        "invalid_argument",
        "layout_failed",
        "layout_unavailable",
        others=_TEXT,
    ),
)
async def graph(
    request: Request,
    session: LiveSession,
    tape: TapeId,
    format: Format = None,
    targets: Targets = [],  # noqa: B006  # FastAPI copies it
    sources: Sources = [],  # noqa: B006
    nodes: Nodes = 2000,
    first: First = None,
    ops: Ops = 100,
) -> Response:
    """Draws what the tape watches, the ops it recorded and the bytes that each keeps. Works for a consumed tape too."""
    supported = tuple(_FORMATS.values())
    accept = answer_type(request.headers, supported, wire.JSON_TYPE) if format is None else _FORMATS[format]
    return await dispatch(
        request,
        session,
        "tape.graph",
        id=tape,
        accept=accept,
        targets=targets,
        sources=sources,
        nodes=nodes,
        first=first,
        ops=ops,
    )
