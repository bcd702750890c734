"""Functions: programs saved under an id, and called with values."""

from __future__ import annotations

from teletape_engine.session import Session
from teletape_server.hosts.kinds import Request, Result, json_result, kind
from teletape_server.resources import models
from teletape_server.resources.bodies import (
    InvalidRequestError,
    command_of,
    described,
    execute,
    facts_result,
    ids_of,
    new_id,
    path_id,
    read,
    release,
)
from teletape_server.resources.ops import call_json, recorded

_HERE = ("program",), "functions"


@kind("function.define")
def define(session: Session, request: Request) -> Result:
    """A new function, its names and ops checked."""
    given = read(request, models.NewFunction)
    name = given.id or new_id()
    calls = [{field: value for field, value in call_json(one).items() if field != "do"} for one in given.calls]
    command = command_of("program", id=name, inputs=given.inputs, calls=calls, outputs=given.outputs)
    execute(session, request, [command])
    return facts_result(session, request, session.describe(name), place=request.params["place"])


@kind("function.list")
def listing(session: Session, request: Request) -> Result:
    """All functions."""
    return json_result({"functions": session.listing("program")})


@kind("function.get")
def get(session: Session, request: Request) -> Result:
    """One function."""
    return json_result(described(session, path_id(request.params["id"]), *_HERE))


@kind("function.call")
def call(session: Session, request: Request) -> Result:
    """Runs the function on values; a tape records its ops as if they stood there."""
    given = read(request, models.FunctionCall)
    name = path_id(request.params["id"])
    facts = described(session, name, *_HERE)
    outputs = given.outputs if given.outputs is not None else [new_id() for _ in facts["outputs"]]
    if len(outputs) != len(facts["outputs"]):
        raise InvalidRequestError(f"outputs: function {name!r} has {len(facts['outputs'])}, found {len(outputs)} ids")
    program = {"id": name} if isinstance(name, int) else name
    command = command_of("call", program=program, inputs=given.inputs, outputs=outputs)
    return recorded(
        session,
        request,
        [command],
        outputs,
        tape=None if given.tape is None else ids_of([given.tape])[0],
        fetch=outputs if given.fetch is None else ids_of(given.fetch),
    )


@kind("function.release")
def end(session: Session, request: Request) -> Result:
    """Ends the function."""
    return release(session, request, *_HERE)
