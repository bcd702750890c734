"""GET …/tapes/{tape}/nodes/{node}: one node of a tape's graph, its gradient, and why that is what it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from teletape_engine.session.handlers.nodes import MOST_SOURCES
from teletape_server.http.access import LiveSession
from teletape_server.http.declarations import NAMED, SESSION, WORK, answers
from teletape_server.http.dispatch import dispatch
from teletape_server.http.parameters import Bins
from teletape_server.models.tapes.nodes import Node, NodeExplanations, NodeGradient
from teletape_server.routes.tapes.questions import STATE, TapeId

router = APIRouter()

NodePath = Annotated[str, Path(description="The id of a node in the tape's graph", examples=["n0"])]
Sources = Annotated[
    list[str],
    Query(
        description="Nodes of the graph. Repeatable; without it: the first 64 that the tape watches",
        max_length=MOST_SOURCES,
    ),
]


@router.get(
    "/{tape}/nodes/{node}",
    summary="Get a node",
    response_class=Response,
    responses=answers(Node, *SESSION, *NAMED, "invalid_request"),
)
async def node(request: Request, session: LiveSession, tape: TapeId, node: NodePath, bins: Bins = 20) -> Response:
    """Returns an op or a watched value of the tape's graph, with the histogram of its value."""
    return await dispatch(request, session, "tape.node", id=tape, node=node, bins=bins)


@router.get(
    "/{tape}/nodes/{node}/gradient",
    summary="Get the gradient of a node",
    response_class=Response,
    responses=answers(NodeGradient, *SESSION, *NAMED, *STATE, *WORK, "invalid_request"),
)
async def node_gradient(
    request: Request,
    session: LiveSession,
    tape: TapeId,
    node: NodePath,
    sources: Sources = [],  # noqa: B006  # FastAPI copies it
    bins: Bins = 20,
) -> Response:
    """Computes the gradient of the node's sum by what the tape watches, and returns histograms. Changes nothing.

    A tape that is not persistent can still answer afterwards.
    """
    return await dispatch(request, session, "tape.node_gradient", id=tape, node=node, sources=sources, bins=bins)


@router.get(
    "/{tape}/nodes/{node}/explain",
    summary="Explain the gradient of a node",
    response_class=Response,
    responses=answers(NodeExplanations, *SESSION, *NAMED, *WORK, "invalid_request"),
)
async def node_explain(
    request: Request,
    session: LiveSession,
    tape: TapeId,
    node: NodePath,
    sources: Sources = [],  # noqa: B006
) -> Response:
    """Explains why the gradient of the node is what it is for each source. Works for a consumed tape too."""
    return await dispatch(request, session, "tape.node_explain", id=tape, node=node, sources=sources)
