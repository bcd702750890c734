"""Variables: create, list, get, assign, delete."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine.errors import InvalidArgumentError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result, facts_result, value_result
from teletape_server.handlers.bodies import RAW_TYPE, new_id, path_id
from teletape_server.handlers.endpoints import NAMED, endpoint
from teletape_server.handlers.execution import command, described, execute
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.session.preconditions import check, is_known, tagged, version_tag
from teletape_server.models.listings import Deleted
from teletape_server.models.parameters import Elements
from teletape_server.models.session.variables import (
    Assignment,
    AssignmentFields,
    NewVariable,
    NewVariableFields,
    PageOfVariables,
    SeveralVariables,
    Variable,
    VariableList,
    VariableValues,
)


@endpoint(
    "POST",
    "/variables",
    Variable,
    "Create a variable",
    status=201,
    problems=(*NAMED, "id_in_use", "resource_exhausted"),
    query=NewVariableFields,
    body_types=(RAW_TYPE,),
    has_tag=True,
)
def create(session: Session, request: Request, body: NewVariable) -> Result:
    """Its first value is a tensor, a number or an id: in JSON, or as bytes with dtype and shape in headers."""
    id = body.id or new_id()
    variable = command("variable", id=id, value=body.value, trainable=body.trainable, name=body.name)
    execute(session, request, [variable], replace=body.replace)
    return tagged(created_result(session, request, session.describe(id)), version_tag(session, id), request)


@endpoint(
    "PUT",
    "/variables",
    VariableList,
    "Write many variables",
    problems=(*NAMED, "id_in_use", "invalid_argument", "resource_exhausted"),
)
def write_all(session: Session, request: Request, body: VariableValues) -> Result:
    """Assigns to each variable by its id, and creates those that do not exist. A safetensors file is enough."""
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


@endpoint("GET", "/variables", VariableList, "List the variables", query=PageOfVariables)
def list_(session: Session, request: Request) -> Result:
    """Lists ids, dtypes, shapes and versions. As safetensors the answer has the values too, each under its id."""
    return listing(session, request, "variables")


@endpoint("DELETE", "/variables", Deleted, "Delete several variables", query=SeveralVariables)
def delete_several_(session: Session, request: Request) -> Result:
    """Deletes those named by `id`, or those that the filters select, or all."""
    return delete_several(session, request, "variables")


@endpoint(
    "GET",
    "/variables/{variable}",
    Variable,
    "Get a variable",
    query=Elements,
    answer_types=(RAW_TYPE,),
    has_tag=True,
    conditions=("If-None-Match",),
)
def get(session: Session, request: Request) -> Result:
    """Returns the variable and its value as JSON, or the value's bytes for `Accept: application/octet-stream`."""
    id = path_id(request.params["id"])
    facts = described(session, id, "variables")
    version = version_tag(session, id)
    if is_known(request, version):
        return tagged(Result("", [], 0, {"status": 304}), version, request)
    return tagged(value_result(session, request, facts), version, request)


@endpoint(
    "PUT",
    "/variables/{variable}",
    Variable,
    "Assign to a variable",
    problems=("precondition_failed", "invalid_argument", "resource_exhausted"),
    query=AssignmentFields,
    body_types=(RAW_TYPE,),
    has_tag=True,
    conditions=("If-Match", "If-None-Match"),
)
def assign(session: Session, request: Request, body: Assignment) -> Result:
    """Replaces the value, adds to it or subtracts from it. Dtype and shape stay; the version increases by 1.

    With If-Match nothing is changed if somebody else has changed the variable meanwhile (412).
    """
    id = path_id(request.params["id"])
    described(session, id, "variables")
    check(request, id, version_tag(session, id))
    assignment = command("assign", variable=id, value=body.value, mode=body.mode, indices=body.indices)
    execute(session, request, [assignment])
    return tagged(facts_result(session, request, id), version_tag(session, id), request)


@endpoint(
    "DELETE",
    "/variables/{variable}",
    None,
    "Delete a variable",
    problems=("precondition_failed",),
    conditions=("If-Match",),
)
def delete(session: Session, request: Request) -> Result:
    """Tapes that watch the variable keep what they need. A new one can have its id with `replace`."""
    id = path_id(request.params["id"])
    described(session, id, "variables")
    check(request, id, version_tag(session, id))
    return deleted_result(session, request, "variables")
