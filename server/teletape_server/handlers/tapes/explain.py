"""Explanations: why a gradient is None, zero or not finite. The tape stays unchanged; a consumed tape works too."""

from __future__ import annotations

from teletape_engine.commands import ContextSwitch, Explain
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id, read
from teletape_server.handlers.execution import execute
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.recording import CONTEXT, tape_facts
from teletape_server.models.explanations import ExplainQuestion


@method("tape.explain")
def explain(session: Session, request: Request) -> Result:
    """Returns an explanation for each source."""
    body = read(request, ExplainQuestion)
    tape = path_id(request.params["id"])
    tape_facts(session, tape)
    question = Explain(tape, tuple(body.targets), tuple(body.sources))
    answer = execute(session, request, [ContextSwitch(CONTEXT), question]).results[-1]
    assert isinstance(answer, Facts)
    explanations = zip(body.sources, answer.facts["explanations"], strict=True)
    return json_result({"explanations": [{"source": source} | facts for source, facts in explanations]})
