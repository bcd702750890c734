"""Questions to a tape over REST: one or many to a request, each with the numbers of its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError

from teletape_engine import commands
from teletape_engine.commands import Command, Id
from teletape_engine.commands.results import Kinds
from teletape_engine.commands.schema import MAX_ITEMS
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import (
    InvalidRequestError,
    command_of,
    execute,
    invalid,
    new_id,
    path_id,
    read,
    shown,
)
from teletape_server.worker.handlers.tapes import around, check_paused, facts_of, outer
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import models
from teletape_server.worker.models import questions as question_models

Derivative = dict[str, Any]


class _Asked(NamedTuple):
    """One question on its way.

    Attributes:
        command: What the session is asked.
        sources: Whose derivative each answer is.
        kept: The caller's id for each answer, None where there is none.
        names: The id that each answer has meanwhile.
        arranged: The body of the answer, from the answers in order.
    """

    command: Command
    sources: Sequence[Id]
    kept: Sequence[str | None]
    names: Sequence[str]
    arranged: Callable[[list[Derivative]], dict[str, Any]]


def _gradient(given: models.Question, tape: Any) -> _Asked:
    return _several(
        given, given.outputs, tape, "gradient", targets=given.targets, output_gradients=given.output_gradients
    )


def _jacobian(given: question_models.JacobianQuestion, tape: Any) -> _Asked:
    return _several(given, given.outputs, tape, "jacobian", targets=given.targets, max_bytes=given.max_bytes)


def _vjps(given: question_models.VjpsQuestion, tape: Any) -> _Asked:
    return _several(
        given,
        given.outputs,
        tape,
        "vjps",
        targets=given.targets,
        output_gradients=given.output_gradients,
        max_bytes=given.max_bytes,
    )


def _hvp(given: question_models.HvpQuestion, tape: Any) -> _Asked:
    return _several(given, given.outputs, tape, "hvp", targets=given.targets, vectors=given.vectors)


def _batch_jacobian(given: question_models.BatchJacobianQuestion, tape: Any) -> _Asked:
    [kept] = given.outputs or [None]
    name = kept or new_id()
    command = command_of(
        "batch_jacobian",
        tape=tape,
        targets=given.targets,
        sources=given.sources,
        outputs=[name],
        max_bytes=given.max_bytes,
    )
    assert isinstance(command, commands.BatchJacobian)
    return _Asked(command, command.sources, [kept], [name], lambda found: {"derivatives": found})


def _hessian(given: question_models.HessianQuestion, tape: Any) -> _Asked:
    n = len(given.sources)
    if n * n > MAX_ITEMS:
        raise InvalidRequestError(
            f"sources: a Hessian has a block for each pair of sources, and {n:,} make {n * n:,}; at most {MAX_ITEMS:,} "
            "go into one question: ask for fewer sources, or for hvp"
        )
    outputs = given.outputs
    if outputs is not None and [len(row) for row in outputs] != [n] * n:
        raise InvalidRequestError(
            f"outputs: for each of the {n} sources a list with an id for each source, null for none; found lists of "
            f"{[len(row) for row in outputs]}"
        )
    kept = [None] * (n * n) if outputs is None else [one for row in outputs for one in row]
    names = [one or new_id() for one in kept]
    command = command_of(
        "hessian",
        tape=tape,
        targets=given.targets,
        sources=given.sources,
        outputs=names,
        unconnected=given.unconnected,
        max_bytes=given.max_bytes,
    )
    assert isinstance(command, commands.Hessian)
    sources = command.sources

    def arranged(found: list[Derivative]) -> dict[str, Any]:
        rows = [found[i * n : (i + 1) * n] for i in range(n)]
        return {"derivatives": [[one | {"by": by} for one, by in zip(row, sources, strict=True)] for row in rows]}

    return _Asked(command, [one for one in sources for _ in sources], kept, names, arranged)


def _several(given: Any, outputs: list[str | None] | None, tape: Any, verb: str, **fields: Any) -> _Asked:
    """A question with an answer for each source."""
    kept = outputs if outputs is not None else [None] * len(given.sources)
    if len(kept) != len(given.sources):
        raise InvalidRequestError(
            f"outputs: one for each of the {len(given.sources)} sources, null for none; found {len(kept)}"
        )
    names = [one or new_id() for one in kept]
    command = command_of(verb, tape=tape, sources=given.sources, outputs=names, unconnected=given.unconnected, **fields)
    return _Asked(command, command.sources, kept, names, lambda found: {"derivatives": found})  # type: ignore[attr-defined]  # each has them


#: What can be asked: the body, and what it becomes.
ASKED: Final[Mapping[str, tuple[type[BaseModel], Callable[[Any, Any], _Asked]]]] = {
    "gradient": (models.Question, _gradient),
    "jacobian": (question_models.JacobianQuestion, _jacobian),
    "batch_jacobian": (question_models.BatchJacobianQuestion, _batch_jacobian),
    "vjps": (question_models.VjpsQuestion, _vjps),
    "hessian": (question_models.HessianQuestion, _hessian),
    "hvp": (question_models.HvpQuestion, _hvp),
}


def _ask(session: Session, request: Request, *, name: str) -> Result:
    """One question."""
    model, understand = ASKED[name]
    [body] = _answers(session, request, [understand(read(request, model), _tape(request))], several=False)
    return _result(session, body)


for _name in ASKED:
    method(f"tape.{_name}")(partial(_ask, name=_name))


@method("tape.questions")
def questions(session: Session, request: Request) -> Result:
    """Many questions."""
    given = read(request, question_models.Questions)
    asked = [_understood(at, one, _tape(request)) for at, one in enumerate(given.questions)]
    return _result(session, {"results": _answers(session, request, asked, several=True)})


def _tape(request: Request) -> Any:
    name = request.params["id"]
    found = path_id(name)
    return name if isinstance(found, str) else {"id": found}


def _understood(at: int, given: Mapping[str, Any], tape: Any) -> _Asked:
    name = given.get("ask", "gradient")
    if not isinstance(name, str) or name not in ASKED:
        raise InvalidRequestError(f"questions.{at}.ask: must be {', '.join(ASKED)}; found {name!r}")
    model, understand = ASKED[name]
    try:
        return understand(model.model_validate({k: v for k, v in given.items() if k != "ask"}), tape)
    except ValidationError as error:
        raise invalid(error, "questions", at) from None
    except TeletapeError as error:
        raise type(error)(f"question {at}: {error.message}", **error.details) from None


def _answers(session: Session, request: Request, asked: Sequence[_Asked], *, several: bool) -> list[dict[str, Any]]:
    """Asks, and gives the body of each answer.

    Raises:
        TeletapeError: A question that fails; nothing of the others stays, and their ids are free.
    """
    tape = path_id(request.params["id"])
    check_paused(facts_of(session, tape))
    before, after = around(outer(session, tape))
    todo = [dataclasses.replace(one.command, retain_tape=one is not asked[-1]) for one in asked]  # type: ignore[type-var]
    passing = [name for one in asked for name, kept in zip(one.names, one.kept, strict=True) if kept is None]
    fresh = [name for one in asked for name in one.kept if name is not None and not session.knows(name)]
    try:
        answer = execute(session, request, [*before, *todo, *after], ahead=len(before), several=several)
        kinds = iter([one.kinds for one in answer.results if isinstance(one, Kinds)])
        return list(_bodies(session, request, asked, [next(kinds) for _ in asked]))
    except TeletapeError as error:
        session.take_back(fresh)
        at = error.details.pop("command", None)
        if at is None:
            raise
        text = error.message.removeprefix(f"command {at}: ")
        raise type(error)(f"question {at}: {text}", question=at, **error.details) from None
    finally:
        session.take_back(passing)


def _bodies(
    session: Session,
    request: Request,
    asked: Sequence[_Asked],
    kinds: Sequence[tuple[str, ...]],
) -> Iterator[dict[str, Any]]:
    made = [
        name
        for one, found in zip(asked, kinds, strict=True)
        for name, what in zip(one.names, found, strict=True)
        if what != "none"
    ]
    values = dict(zip(made, shown(session, request, made), strict=True))
    for one, found in zip(asked, kinds, strict=True):
        yield one.arranged(
            [
                {"source": source, "kind": what, "id": kept if name in values else None, "value": values.get(name)}
                for source, what, kept, name in zip(one.sources, found, one.kept, one.names, strict=True)
            ]
        )


def _result(session: Session, body: dict[str, Any]) -> Result:
    used = session.bytes_in_use()
    return json_result(body | {"bytes_in_use": used}, bytes_in_use=used)
