"""One node of a tape's graph: these methods read the session, and change nothing in it."""

from __future__ import annotations

from functools import partial

from teletape_engine.session.handlers import nodes
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id
from teletape_server.handlers.endpoints import STATE, WORK, endpoint
from teletape_server.handlers.execution import inspected
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import check_paused, tape_facts
from teletape_server.models.parameters import HistogramBins
from teletape_server.models.tapes.nodes import (
    Node,
    NodeExplanations,
    NodeGradient,
    NodeSources,
    NodeSourcesAndBins,
)


@endpoint("GET", "/tapes/{tape}/nodes/{node}", Node, "Get a node", problems=("invalid_request",), query=HistogramBins)
def node(session: Session, request: Request) -> Result:
    """Returns an op or a watched value of the tape's graph, with the histogram of its value."""
    params = request.params
    tape = path_id(params["id"])
    tape_facts(session, tape)
    look = partial(nodes.describe_node, tape_id=tape, node_id=params["node"], bins=params["bins"])
    return json_result(inspected(session, request, look))


@endpoint(
    "GET",
    "/tapes/{tape}/nodes/{node}/gradient",
    NodeGradient,
    "Get the gradient of a node",
    problems=(*STATE, *WORK, "invalid_request"),
    query=NodeSourcesAndBins,
)
def node_gradient(session: Session, request: Request) -> Result:
    """Computes the gradient of the node's sum by what the tape watches, and returns histograms. Changes nothing.

    A tape that is not persistent can still answer afterwards.
    """
    params = request.params
    tape = path_id(params["id"])
    check_paused(tape_facts(session, tape))
    look = partial(
        nodes.node_gradient,
        tape_id=tape,
        node_id=params["node"],
        source_ids=params["sources"],
        bins=params["bins"],
    )
    return json_result({"node": params["node"], "derivatives": inspected(session, request, look)})


@endpoint(
    "GET",
    "/tapes/{tape}/nodes/{node}/explain",
    NodeExplanations,
    "Explain the gradient of a node",
    problems=(*WORK, "invalid_request"),
    query=NodeSources,
)
def node_explain(session: Session, request: Request) -> Result:
    """Explains why the gradient of the node is what it is for each source. Works for a consumed tape too."""
    params = request.params
    tape = path_id(params["id"])
    tape_facts(session, tape)
    look = partial(nodes.explain_node, tape_id=tape, node_id=params["node"], source_ids=params["sources"])
    return json_result({"node": params["node"], "explanations": inspected(session, request, look)})
