"""Explanations: why a gradient is None, zero or not finite. The tape stays unchanged; a consumed tape works too."""

from __future__ import annotations

from teletape_engine.commands import ContextSwitch, Explain
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id
from teletape_server.handlers.endpoints import endpoint
from teletape_server.handlers.execution import execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT, tape_facts
from teletape_server.models.explanations import ExplainQuestion, Explanations


@endpoint(
    "POST",
    "/tapes/{tape}/explain",
    Explanations,
    "Explain a gradient",
    problems=("bad_command", "invalid_argument"),
    safe=True,
)
def explain(session: Session, request: Request, body: ExplainQuestion) -> Result:
    """Explains why a gradient is null, zero or not finite: the reason, the op, your line of it, and what to do.

    The tape stays unchanged. A consumed tape still explains null gradients, but not zeros and NaN, since it has no
    numbers any more.
    """
    tape = path_id(request.params["id"])
    tape_facts(session, tape)
    question = Explain(tape, tuple(body.targets), tuple(body.sources))
    answer = execute(session, request, [ContextSwitch(CONTEXT), question]).results[-1]
    assert isinstance(answer, Facts)
    explanations = zip(body.sources, answer.facts["explanations"], strict=True)
    return json_result({"explanations": [{"source": source} | facts for source, facts in explanations]})
