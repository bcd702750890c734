"""Why a gradient is None, zero or not finite, over REST. The tape stays as it is, also one that has answered."""

from __future__ import annotations

from teletape_engine.commands import ContextSwitch, Explain
from teletape_engine.commands.results import Told
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import command_of, execute, path_id, read
from teletape_server.worker.handlers.tapes import CONTEXT, facts_of
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import explanations


@method("tape.explain")
def explain(session: Session, request: Request) -> Result:
    """The reasons, one for each source."""
    given = read(request, explanations.Why)
    tape = path_id(request.params["id"])
    facts_of(session, tape)
    named = request.params["id"] if isinstance(tape, str) else {"id": tape}
    question = command_of("explain", tape=named, targets=given.targets, sources=given.sources)
    assert isinstance(question, Explain)
    told = execute(session, request, [ContextSwitch(CONTEXT), question]).results[-1]
    assert isinstance(told, Told)
    found = [
        {"source": source} | facts for source, facts in zip(question.sources, told.facts["explanations"], strict=True)
    ]
    return json_result({"explanations": found})
