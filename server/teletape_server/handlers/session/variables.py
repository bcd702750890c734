"""Variables: create, list, get, assign, delete."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result, facts_result, value_result
from teletape_server.handlers.bodies import new_id, path_id, read
from teletape_server.handlers.execution import command, described, execute
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.session.preconditions import check, is_known, tagged, version_tag
from teletape_server.models.session.variables import Assignment, NewVariable, VariableValues


@method("variable.create")
def create(session: Session, request: Request) -> Result:
    """Creates a variable; its first value is a tensor, a number, or what an id names."""
    body = read(request, NewVariable)
    id = body.id or new_id()
    variable = command("variable", id=id, value=body.value, trainable=body.trainable, name=body.name)
    execute(session, request, [variable], replace=body.replace)
    return tagged(created_result(session, request, session.describe(id)), version_tag(session, id), request)


@method("variable.write_all")
def write_all(session: Session, request: Request) -> Result:
    """Assigns to variables by id; those that do not exist are created."""
    body = read(request, VariableValues)
    present = {facts["id"]: facts for facts in session.listing("variable")}
    for id, value in body.variables.items():
        if id in present and isinstance(value, np.ndarray):
            _check_fits(present[id], value)
    commands = [
        command("assign", variable=id, value=value)
        if id in present
        else command("variable", id=id, value=value, trainable=body.trainable)
        for id, value in sorted(body.variables.items(), key=lambda item: item[0] in present)
    ]
    execute(session, request, commands, rollback=True)
    facts = [session.describe(id) for id in body.variables]
    return json_result({"variables": facts}, bytes_in_use=session.estimated_bytes())


def _check_fits(facts: dict[str, Any], value: np.ndarray[Any, Any]) -> None:
    """Checks that a variable can take a value, before any is assigned.

    Raises:
        InvalidArgumentError: It has another dtype or shape.
    """
    if (facts["dtype"], facts["shape"]) != (value.dtype.name, list(value.shape)):
        raise InvalidArgumentError(
            f"variable {facts['id']!r} is {facts['dtype']}{facts['shape']}, its new value {value.dtype.name}"
            f"{list(value.shape)}: nothing was assigned"
        )


@method("variable.list")
def list_(session: Session, request: Request) -> Result:
    """Lists all variables with their elements only in safetensors."""
    return listing(session, request, "variables")


@method("variable.delete_several")
def delete_several_(session: Session, request: Request) -> Result:
    """Releases variables."""
    return delete_several(session, request, "variables")


@method("variable.get")
def get(session: Session, request: Request) -> Result:
    """Returns a variable with its elements; 304 without them if the caller has this version."""
    id = path_id(request.params["id"])
    facts = described(session, id, "variables")
    version = version_tag(session, id)
    if is_known(request, version):
        return tagged(Result("", [], 0, {"status": 304}), version, request)
    return tagged(value_result(session, request, facts), version, request)


@method("variable.assign")
def assign(session: Session, request: Request) -> Result:
    """Gives a variable its next version."""
    body = read(request, Assignment)
    id = path_id(request.params["id"])
    described(session, id, "variables")
    check(request, id, version_tag(session, id))
    assignment = command("assign", variable=id, value=body.value, mode=body.mode, indices=body.indices)
    execute(session, request, [assignment])
    return tagged(facts_result(session, request, id), version_tag(session, id), request)


@method("variable.delete")
def delete(session: Session, request: Request) -> Result:
    """Releases a variable."""
    id = path_id(request.params["id"])
    described(session, id, "variables")
    check(request, id, version_tag(session, id))
    return deleted_result(session, request, "variables")
