"""Variables: create, list, get, assign, delete."""

from __future__ import annotations

from teletape_engine.session.session import Session
from teletape_server.worker.answers import created_result, deleted_result, facts_result, value_result
from teletape_server.worker.bodies import new_id, path_id, read
from teletape_server.worker.execution import command, described, execute
from teletape_server.worker.handlers.listings import delete_several, listing
from teletape_server.worker.handlers.preconditions import check, is_known, tagged, version_tag
from teletape_server.worker.methods import Request, Result, method
from teletape_server.worker.models.variables import Assignment, NewVariable


@method("variable.create")
def create(session: Session, request: Request) -> Result:
    """Creates a variable; its first value is a tensor, a number, or what an id names."""
    body = read(request, NewVariable)
    id = body.id or new_id()
    variable = command("variable", id=id, value=body.value, trainable=body.trainable, name=body.name)
    execute(session, request, [variable], replace=body.replace)
    return tagged(created_result(session, request, session.describe(id)), version_tag(session, id), request)


@method("variable.list")
def list_(session: Session, request: Request) -> Result:
    """Lists all variables without their elements."""
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
