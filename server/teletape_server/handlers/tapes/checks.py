"""Gradient checks of a replayable tape."""

from __future__ import annotations

from teletape_engine.commands import Command, TapeCheckGradients
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import path_id
from teletape_server.handlers.endpoints import STATE, WORK, endpoint
from teletape_server.handlers.execution import described, execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.models.tapes.checks import CheckReport, TapeCheck


@endpoint(
    "POST",
    "/tapes/{tape}/check_gradients",
    CheckReport,
    "Check a tape's gradients",
    problems=(*STATE, "no_gradient_registered", *WORK),
    safe=True,
)
def check_gradients(session: Session, request: Request, body: TapeCheck) -> Result:
    """Compares the gradients with finite differences of the recorded ops, which needs a `replayable` tape."""
    tape = path_id(request.params["id"])
    described(session, tape, "tapes")
    settings = body.settings.model_dump(exclude_none=True)
    return check_report(session, request, TapeCheckGradients(tape, tuple(body.targets), tuple(body.sources), settings))


def check_report(session: Session, request: Request, check: Command) -> Result:
    """Runs a check of derivatives, and returns its report."""
    [checked] = execute(session, request, [check]).results
    assert isinstance(checked, Facts)
    return json_result(checked.facts)
