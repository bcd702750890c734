"""POST /run: commands in, the values of `fetch` and the answers of questions out."""

from __future__ import annotations

from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import BackwardEnd, Gradient, Hessian, Hvp, Id, Jacobian, Jvp, Vjps
from teletape_engine.commands.results import Facts, Fetched, Kinds, Specs
from teletape_engine.session.session import Session
from teletape_server.worker.answers import fetched_values, tensor_values
from teletape_server.worker.bodies import read
from teletape_server.worker.execution import constants, execute
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.batches import Run

_MAY_BE_NONE: Final = (Gradient, Jacobian, Vjps, Hessian, Hvp, Jvp, BackwardEnd)  # commands with derivatives


@method("run")
def run(session: Session, request: Request) -> Result:
    """Runs the commands; returns the values of `fetch` and of fetch commands, why some are null, and other answers."""
    body = read(request, Run)
    commands = wire.batch_from_json({"commands": body.commands}).commands
    execute(session, request, constants(body.tensors))
    answer = execute(session, request, commands, name_command=True)
    values: dict[Id, Any] = {}
    why: dict[Id, Any] = {}
    questions: dict[Id, Any] = {}  # by the position of the command
    fetched = fetched_values(request, answer)
    for result in answer.results:
        if isinstance(result, Fetched):
            values[result.id] = fetched[result.id]
        elif isinstance(result, Kinds):
            command = commands[result.index]
            outputs = command.outputs if isinstance(command, _MAY_BE_NONE) else ()
            reasons = result.why or (None,) * len(outputs)
            for output, kind, reason in zip(outputs, result.kinds, reasons, strict=False):
                if kind == "none" and output is not None and output in body.fetch:
                    values[output] = None
                    why[output] = reason
        elif isinstance(result, Facts):
            questions[result.index] = result.facts
        elif isinstance(result, Specs):
            specs = [{"dtype": spec.dtype.name, "shape": list(spec.shape)} for spec in result.specs]
            questions[result.index] = {"specs": specs}
    remaining = [id for id in body.fetch if id not in values]
    values |= zip(remaining, tensor_values(session, request, remaining), strict=True)
    answers = {"values": values} | ({"why": why} if why else {}) | ({"results": questions} if questions else {})
    return json_result({name: {str(id): value for id, value in by_id.items()} for name, by_id in answers.items()})
