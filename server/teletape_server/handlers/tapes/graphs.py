"""A tape's graph as JSON, as DOT, or as SVG by Graphviz."""

from __future__ import annotations

from functools import partial
from typing import Final

import teletape_wire as wire
from teletape_engine.commands import TapeGraph
from teletape_engine.commands.results import Facts
from teletape_engine.diagram import graphviz
from teletape_engine.diagram.dot import dot
from teletape_engine.session.handlers.inspect import graph_part
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import InvalidRequestError, path_id
from teletape_server.handlers.endpoints import endpoint
from teletape_server.handlers.execution import described, execute, inspected
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.models.tapes.graphs import DOT_TYPE, SVG_TYPE, Drawing, Graph

#: Callers choose the names in a graph: a browser that opens it runs no script, loads nothing, and guesses no type.
_SANDBOX: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}


@endpoint(
    "GET",
    "/tapes/{tape}/graph",
    Graph,
    "Get a tape's graph",
    problems=(*("invalid_request", "invalid_argument", "layout_failed", "layout_unavailable"),),
    query=Drawing,
    answer_types=(DOT_TYPE, SVG_TYPE),
)
def graph(session: Session, request: Request) -> Result:
    """Draws what the tape watches, the ops it recorded and the bytes that each keeps. Works for a consumed tape too."""
    params = request.params
    tape = path_id(params["id"])
    described(session, tape, "tapes")
    targets, sources = (tuple([path_id(text) for text in params[name]]) for name in ("targets", "sources"))
    if params["first"] is None:
        [answer] = execute(session, request, [TapeGraph(tape, targets, sources, params["nodes"])]).results
        assert isinstance(answer, Facts)
        facts = answer.facts
    elif targets or sources:
        raise InvalidRequestError("first: a part of a tape is drawn without targets and sources")
    else:
        look = partial(graph_part, tape=tape, first=params["first"], ops=params["ops"], nodes=params["nodes"])
        facts = inspected(session, request, look)
    if params["accept"] == wire.JSON_TYPE:
        return json_result(facts, headers=_SANDBOX)
    text = dot(facts)
    if params["accept"] == SVG_TYPE:
        text = graphviz.svg(text)
    body = text.encode()
    return Result(f"{params['accept']}; charset=utf-8", [body], len(body), {"headers": _SANDBOX})
