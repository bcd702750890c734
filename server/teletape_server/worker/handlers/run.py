"""POST /run: commands in, the values of `fetch` and the answers of questions out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import (
    BackwardEnd,
    Command,
    Fetch,
    Gradient,
    Hessian,
    Hvp,
    Id,
    Jacobian,
    Jvp,
    Vjps,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Facts, Fetched, Kinds, Specs
from teletape_engine.errors import UnknownIdError
from teletape_engine.session.session import Session
from teletape_server.worker.answers import tensor_values
from teletape_server.worker.bodies import InvalidRequestError, read
from teletape_server.worker.execution import execute
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.base import NAME_PATTERN
from teletape_server.worker.models.batches import Run

_MAY_BE_NONE: Final = (Gradient, Jacobian, Vjps, Hessian, Hvp, Jvp, BackwardEnd)  # commands with derivatives


@method("run")
def run(session: Session, request: Request) -> Result:
    """Runs the commands; returns the values of `fetch` and of fetch commands, why some are null, and other answers."""
    body = read(request, Run)
    commands = wire.batch_from_json({"commands": body.commands}).commands
    created = _created(commands)
    for position, id in enumerate(body.fetch):
        if id not in created and not any(isinstance(command, Fetch) and command.id == id for command in commands):
            names = ", ".join(map(str, created)) or "none"
            raise UnknownIdError(f"fetch: no command makes {id!r}; they make {names}", id=id, fetch=position)
    answer = execute(session, request, commands, name_command=True)
    values: dict[Id, Any] = {}
    why: dict[Id, Any] = {}
    questions: dict[Id, Any] = {}  # by the position of the command
    results = wire.answer_to_json(answer, full=request.params["full"])["results"]
    for result, result_json in zip(answer.results, results, strict=True):
        if isinstance(result, Fetched):
            values[result.id] = result_json["value"]
        elif isinstance(result, Kinds):
            command = commands[result.index]
            outputs = command.outputs if isinstance(command, _MAY_BE_NONE) else ()
            reasons = result.why or (None,) * len(outputs)
            for output, kind, reason in zip(outputs, result.kinds, reasons, strict=False):
                if kind == "none" and output is not None and output in body.fetch:
                    values[output] = None
                    why[output] = reason
        elif isinstance(result, Facts):
            questions[result.index] = result_json["facts"]
        elif isinstance(result, Specs):
            questions[result.index] = {"specs": result_json["specs"]}
    remaining = [id for id in body.fetch if id not in values]
    values |= zip(remaining, tensor_values(session, request, remaining), strict=True)
    answers = {"values": values} | ({"why": why} if why else {}) | ({"results": questions} if questions else {})
    return json_result({name: {str(id): value for id, value in by_id.items()} for name, by_id in answers.items()})


def _created(commands: Sequence[Command]) -> list[Id]:
    """Returns the ids that the commands create.

    Raises:
        InvalidRequestError: An id is no name; ids that begin with _ are the server's.
    """
    created: list[Id] = []
    for position, command in enumerate(commands):
        for id in created_ids(command):
            if isinstance(id, str) and not re.fullmatch(NAME_PATTERN, id):
                raise InvalidRequestError(
                    f"command {position}: the id {id!r:.60} must begin with a letter, and have at most 128 letters, "
                    "digits, ., _ and -",
                    command=position,
                    id=id[:200],
                )
            created.append(id)
    return created
