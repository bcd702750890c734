"""Gradients against differences, over REST: of a function, and of a replayable tape."""

from __future__ import annotations

from typing import Any

from teletape_engine.commands import Command, Id
from teletape_engine.commands.results import Told
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import command_of, described, execute, path_id, read
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.checks import CheckSettings, FunctionCheck, TapeCheck


@method("function.check_gradients")
def function(session: Session, request: Request) -> Result:
    """The report on a function."""
    given = read(request, FunctionCheck)
    name = path_id(request.params["id"])
    described(session, name, ("function",), "functions")
    command = command_of("check_gradients", function=_id(name), inputs=given.inputs, settings=_settings(given.settings))
    return _told(session, request, command)


@method("tape.check_gradients")
def tape(session: Session, request: Request) -> Result:
    """The report on a tape."""
    given = read(request, TapeCheck)
    name = path_id(request.params["id"])
    described(session, name, ("tape",), "tapes")
    command = command_of(
        "tape.check_gradients",
        tape=_id(name),
        targets=given.targets,
        sources=given.sources,
        settings=_settings(given.settings),
    )
    return _told(session, request, command)


def _id(name: Id) -> Any:
    return {"id": name} if isinstance(name, int) else name


def _settings(given: CheckSettings) -> dict[str, Any]:
    return given.model_dump(exclude_none=True)


def _told(session: Session, request: Request, command: Command) -> Result:
    [told] = execute(session, request, [command]).results
    assert isinstance(told, Told)
    return json_result(told.facts)
