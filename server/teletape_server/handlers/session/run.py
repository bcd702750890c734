"""POST /run, of a session or without one: commands in, the values of `fetch` and the answers of questions out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    AccumulatorResume,
    BackwardEnd,
    Batch,
    Command,
    ContextSwitch,
    Fetch,
    Gradient,
    Hessian,
    Hvp,
    Id,
    Jacobian,
    Jvp,
    SparseHessian,
    SparseJacobian,
    TapeOpen,
    TapePause,
    TapeResume,
    Vjps,
)
from teletape_engine.commands import outputs as created_ids
from teletape_engine.commands.results import Answer, Facts, Fetched, Kinds, Specs
from teletape_engine.errors import TapeStateError, TeletapeError, UnknownIdError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import fetched_values, fetches
from teletape_server.handlers.bodies import InvalidRequestError, lasting_ids
from teletape_server.handlers.endpoints import NAMED, STATE, WORK, endpoint
from teletape_server.handlers.execution import constants, execute
from teletape_server.handlers.forms.forms import known_by_form
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.recording import CONTEXT
from teletape_server.handlers.session.repeated_runs import places, repeated
from teletape_server.models.base import NAME_PATTERN
from teletape_server.models.parameters import Elements
from teletape_server.models.session.batches import Run, SessionRun, SessionRunAnswer
from teletape_server.models.session.prices import PriceRequest

_MAY_BE_NONE: Final = (Gradient, Jacobian, Vjps, Hessian, Hvp, Jvp, BackwardEnd)  # commands with derivatives


def run(session: Session, request: Request, body: Run) -> Result:
    """Runs the commands; returns the values of `fetch` and of fetch commands, why some are null, and other answers."""
    with wire.numbers_alone(body.dtype):
        commands = wire.batch_from_json({"commands": body.commands}).commands
    check_fetched(body, commands)
    before, after = constants(body.tensors), fetches(request, body.fetch, optional=True)
    answer = execute(session, request, commands, before=before, after=after, name_command=True)
    # A reason why there is no gradient names what the caller has made.
    has_values = all(isinstance(each, Fetched) or (isinstance(each, Kinds) and not each.why) for each in answer.results)
    same = repeated([*before, *commands, *after]) if request.noting is not None and has_values else None
    if request.noting is not None and same is not None:
        answering = partial(_values_alone, commands=same.questions(), fetch=body.fetch)
        request.noting.note(session, same.batch, same.inputs, same.typed, answering, renews=True)
    return json_result(_written(*_answers(request, commands, answer, body.fetch, first=len(before))))


def check_fetched(body: Run | PriceRequest, commands: Sequence[Command]) -> None:
    """Checks that a request without a session fetches what its commands make.

    Raises:
        UnknownIdError: It does not.
        InvalidRequestError: A command creates an id that is no name.
    """
    created = dict.fromkeys([*body.tensors, *created_names(commands)])
    known = created.keys() | {command.id for command in commands if isinstance(command, Fetch)}
    for position, id in enumerate(body.fetch):
        if id not in known:
            names = ", ".join(map(str, created)) or "none"
            raise UnknownIdError(f"fetch: no command makes {id!r}; they make {names}", id=id, fetch=position)


def _values_alone(
    _: Session, request: Request, answer: Answer, *, commands: Sequence[Command | None], fetch: Sequence[Id]
) -> Result:
    """Returns the answer to commands that were run as `repeated` has them."""
    return json_result(_written(*_answers(request, commands, answer, fetch)))


method("run")(known_by_form("run", Run, places, run))


@endpoint(
    "POST",
    "/run",
    SessionRunAnswer,
    "Run commands in a session",
    section="batches",
    problems=(*NAMED, "id_in_use", *STATE, "no_gradient_registered", *WORK),
    query=Elements,
)
def run_in_session(session: Session, request: Request, body: SessionRun) -> Result:
    """Runs the commands of a batch, such as a step of a training loop, and returns the values of `fetch`.

    What the commands create stays, or ends with the request (`scratch`, `keep`). Tapes are paused afterwards. If a
    command fails, those before it stay done.
    """
    with wire.numbers_alone(body.dtype):
        commands = wire.batch_from_json({"commands": body.commands}).commands
    created = dict.fromkeys([*body.tensors, *created_names(commands)])
    for id in body.fetch:
        if id not in created:
            session.describe(id)
    lasting = lasting_ids(created, body)
    opened = _opened(commands)
    for id in opened:
        if _records(session, id):
            raise TapeStateError(f"{id!r} records for another client: pause it there first")
    before = [ContextSwitch(CONTEXT), *constants(body.tensors)]
    try:
        answer = execute(
            session,
            request,
            commands,
            before=before,
            after=fetches(request, body.fetch, optional=True),
            temporaries=[id for id in created if id not in lasting],
            replace=body.replace,
            name_command=True,
        )
    finally:
        pauses = [pause for id, pause in opened.items() if _records(session, id)]
        session.execute(Batch((ContextSwitch(CONTEXT), *pauses)))
    written = _written(*_answers(request, commands, answer, body.fetch, first=len(before)))
    bytes_in_use = session.estimated_bytes()
    return json_result(written | {"bytes_in_use": bytes_in_use}, bytes_in_use=bytes_in_use)


def _opened(commands: Sequence[Command]) -> dict[Id, Command]:
    """Returns the ids of the tapes and accumulators that commands open or resume, with the command that pauses each."""
    pauses: dict[Id, Command] = {}
    for command in commands:
        if isinstance(command, TapeOpen):
            pauses[command.id] = TapePause(command.id)
        elif isinstance(command, TapeResume):
            pauses[command.tape] = TapePause(command.tape)
        elif isinstance(command, AccumulatorOpen):
            pauses[command.id] = AccumulatorClose(command.id)
        elif isinstance(command, AccumulatorResume):
            pauses[command.accumulator] = AccumulatorClose(command.accumulator)
    return pauses


def _records(session: Session, id: Id) -> bool:
    """Returns whether a tape or accumulator records; an id that names nothing does not."""
    try:
        return bool(session.describe(id).get("recording"))
    except TeletapeError:
        return False


def _answers(
    request: Request, commands: Sequence[Command | None], answer: Answer, fetch: Sequence[Id], *, first: int = 0
) -> tuple[dict[Id, Any], dict[Id, Any], dict[Id, Any]]:
    """Returns what a batch answered: values by id, reasons of nulls by id, and other answers by the command's position.

    Args:
        request: The request.
        commands: The caller's commands; None: one that asks nothing.
        answer: Of the batch.
        fetch: Ids of the values to return.
        first: The number of the server's own commands before them.
    """
    values: dict[Id, Any] = {}
    why: dict[Id, Any] = {}
    questions: dict[Id, Any] = {}
    fetched_ids = set(fetch)
    fetched = fetched_values(request, answer)
    for result in answer.results:
        if isinstance(result, Fetched):
            values[result.id] = fetched[result.id]
        elif isinstance(result, Kinds):
            command = commands[result.index - first]
            ids = command.outputs if isinstance(command, _MAY_BE_NONE) else ()
            reasons = result.why or (None,) * len(ids)
            for id, kind, reason in zip(ids, result.kinds, reasons, strict=False):
                if kind == "none" and id is not None and id in fetched_ids:
                    values[id] = None
                    why[id] = reason
        elif isinstance(result, Facts):
            questions[result.index - first] = result.facts
            command = commands[result.index - first]
            if isinstance(command, SparseJacobian | SparseHessian) and result.facts["kind"] == "none":
                for id in command.outputs:
                    if id is not None and id in fetched_ids:
                        values[id], why[id] = None, result.facts.get("why")
        elif isinstance(result, Specs):
            specs = [{"dtype": spec.dtype.name, "shape": list(spec.shape)} for spec in result.specs]
            questions[result.index - first] = {"specs": specs}
    return values, why, questions


def _written(values: dict[Id, Any], why: dict[Id, Any], questions: dict[Id, Any]) -> dict[str, Any]:
    """Returns the members of the answer; without nulls there is no `why`, without questions no `results`."""
    answers = {"values": values} | ({"why": why} if why else {}) | ({"results": questions} if questions else {})
    return {name: {str(id): value for id, value in by_id.items()} for name, by_id in answers.items()}


def created_names(commands: Sequence[Command]) -> list[Id]:
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
