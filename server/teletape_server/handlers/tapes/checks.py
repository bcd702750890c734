"""Gradient checks of a replayable tape."""

from __future__ import annotations

from teletape_engine.commands import Command, TapeCheckGradients
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id, read
from teletape_server.handlers.execution import described, execute
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.models.tapes.checks import TapeCheck


@method("tape.check_gradients")
def check_tape(session: Session, request: Request) -> Result:
    """Returns the report on a tape's gradients."""
    body = read(request, TapeCheck)
    tape = path_id(request.params["id"])
    described(session, tape, "tapes")
    settings = body.settings.model_dump(exclude_none=True)
    return check_report(session, request, TapeCheckGradients(tape, tuple(body.targets), tuple(body.sources), settings))


def check_report(session: Session, request: Request, check: Command) -> Result:
    """Runs a check of derivatives, and returns its report."""
    [checked] = execute(session, request, [check]).results
    assert isinstance(checked, Facts)
    return json_result(checked.facts)
