"""Variables: named slots whose value changes with each assignment."""

from __future__ import annotations

from teletape_engine.session.session import Session
from teletape_server.worker.bodies import (
    command_of,
    described,
    execute,
    facts_result,
    new_id,
    path_id,
    read,
    release,
    value_result,
)
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import models

_HERE = ("variable",), "variables"


@method("variable.create")
def make(session: Session, request: Request) -> Result:
    """A new variable; its value is a tensor, a number, or what has an id."""
    given = read(request, models.NewVariable)
    name = given.id or new_id()
    command = command_of("variable", id=name, value=given.value, trainable=given.trainable, name=given.name)
    execute(session, request, [command])
    return facts_result(session, request, session.describe(name), collection=request.params["collection"])


@method("variable.list")
def listing(session: Session, request: Request) -> Result:
    """All variables, without their numbers."""
    return json_result({"variables": session.listing("variable")})


@method("variable.get")
def get(session: Session, request: Request) -> Result:
    """One variable with its numbers."""
    return value_result(session, request, described(session, path_id(request.params["id"]), *_HERE))


@method("variable.assign")
def assign(session: Session, request: Request) -> Result:
    """The variable's next version."""
    given = read(request, models.Assignment)
    name = path_id(request.params["id"])
    described(session, name, *_HERE)
    variable = {"id": name} if isinstance(name, int) else name
    where = {} if given.indices is None else {"indices": given.indices}
    execute(session, request, [command_of("assign", variable=variable, value=given.value, mode=given.mode, **where)])
    return facts_result(session, request, session.describe(name))


@method("variable.delete")
def end(session: Session, request: Request) -> Result:
    """Ends the variable."""
    return release(session, request, *_HERE)
