"""Gradient checks: of a function, and of a replayable tape."""

from __future__ import annotations

from teletape_engine.commands import CheckGradients, Command, TapeCheckGradients
from teletape_engine.commands.results import Facts
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import path_id, read
from teletape_server.worker.execution import described, execute
from teletape_server.worker.handlers.bound_calls import in_order
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.checks import FunctionCheck, TapeCheck


@method("function.check_gradients")
def check_function(session: Session, request: Request) -> Result:
    """Returns the report on a function's derivatives."""
    body = read(request, FunctionCheck)
    function = path_id(request.params["id"])
    inputs = in_order(function, described(session, function, "functions"), body.inputs)
    settings = body.settings.model_dump(exclude_none=True)
    return _report(session, request, CheckGradients(function, tuple(inputs), settings))


@method("tape.check_gradients")
def check_tape(session: Session, request: Request) -> Result:
    """Returns the report on a tape's gradients."""
    body = read(request, TapeCheck)
    tape = path_id(request.params["id"])
    described(session, tape, "tapes")
    settings = body.settings.model_dump(exclude_none=True)
    return _report(session, request, TapeCheckGradients(tape, tuple(body.targets), tuple(body.sources), settings))


def _report(session: Session, request: Request, check: Command) -> Result:
    [report] = execute(session, request, [check]).results
    assert isinstance(report, Facts)
    return json_result(report.facts)
