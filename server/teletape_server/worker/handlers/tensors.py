"""Tensors: the values of a session, whether a caller put them there or an op made them."""

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

_HERE = ("tensor", "slices"), "tensors"


@method("tensor.create")
def put(session: Session, request: Request) -> Result:
    """The caller's tensor becomes a value."""
    given = read(request, models.NewTensor)
    name = given.id or new_id()
    execute(session, request, [command_of("constant", id=name, value=given.value)])
    return facts_result(session, request, session.describe(name), collection=request.params["collection"])


@method("tensor.list")
def listing(session: Session, request: Request) -> Result:
    """All values, sparse ones too, without their numbers."""
    return json_result({"tensors": session.listing("tensor") + session.listing("slices")})


@method("tensor.get")
def get(session: Session, request: Request) -> Result:
    """One value with its numbers."""
    return value_result(session, request, described(session, path_id(request.params["id"]), *_HERE))


@method("tensor.delete")
def end(session: Session, request: Request) -> Result:
    """Ends the value's name; tapes keep what they need of it."""
    return release(session, request, *_HERE)
