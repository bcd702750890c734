"""A tape's picture: JSON, DOT, or SVG laid out by Graphviz in a process of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import TapeGraph
from teletape_engine.commands.results import Told
from teletape_engine.diagram import graphviz
from teletape_engine.diagram.dot import dot
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import described, execute, path_id
from teletape_server.worker.methods import Request, Result, json_result, method

DOT_TYPE: Final = "text/vnd.graphviz"
SVG_TYPE: Final = "image/svg+xml"

#: Names in a picture are strangers': a browser that opens it runs nothing, loads nothing, and guesses nothing.
_CAGED: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
}


@method("tape.graph")
def graph(session: Session, request: Request) -> Result:
    """The picture in the form that was asked for."""
    params = request.params
    tape = path_id(params["id"])
    described(session, tape, ("tape",), "tapes")
    command = TapeGraph(tape, _ids(params["targets"]), _ids(params["sources"]), params["nodes"])
    [told] = execute(session, request, [command]).results
    assert isinstance(told, Told)
    if params["accept"] == wire.JSON_TYPE:
        return json_result(told.facts, headers=_CAGED)
    text = dot(told.facts)
    if params["accept"] == SVG_TYPE:
        text = graphviz.svg(text)
    body = text.encode()
    return Result(f"{params['accept']}; charset=utf-8", [body], len(body), {"headers": _CAGED})


def _ids(texts: Iterable[str]) -> tuple[Any, ...]:
    return tuple([path_id(one) for one in texts])
