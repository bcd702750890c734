"""One node of a tape's graph: these methods read the session, and change nothing in it."""

from __future__ import annotations

from functools import partial

from teletape_engine.session.handlers import nodes
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id
from teletape_server.handlers.execution import inspected
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.recording import check_paused, tape_facts


@method("tape.node")
def node(session: Session, request: Request) -> Result:
    """Returns the facts about a node."""
    params = request.params
    tape = path_id(params["id"])
    tape_facts(session, tape)
    look = partial(nodes.describe_node, tape_id=tape, node_id=params["node"], bins=params["bins"])
    return json_result(inspected(session, request, look))


@method("tape.node_gradient")
def gradient(session: Session, request: Request) -> Result:
    """Returns the gradient of a node, as histograms."""
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


@method("tape.node_explain")
def explain(session: Session, request: Request) -> Result:
    """Returns why the gradient of a node is what it is."""
    params = request.params
    tape = path_id(params["id"])
    tape_facts(session, tape)
    look = partial(nodes.explain_node, tape_id=tape, node_id=params["node"], source_ids=params["sources"])
    return json_result({"node": params["node"], "explanations": inspected(session, request, look)})
