"""Functions: create, list, get, call, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import CallFunction, Command, Id
from teletape_engine.commands import outputs as outputs_of
from teletape_engine.errors import TeletapeError
from teletape_engine.session.session import Session
from teletape_server.expressions.compiled import Compiled, with_outputs
from teletape_server.expressions.parser import parse
from teletape_server.handlers.answers import created_result, deleted_result
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.endpoints import STATE, WORK, endpoint
from teletape_server.handlers.execution import command, described, execute
from teletape_server.handlers.functions.bound_calls import FOR_A_VALUE_INSIDE, in_order
from teletape_server.handlers.functions.mapped_calls import mapped_call
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.session.ops import run_recorded
from teletape_server.models.functions.functions import (
    Function,
    FunctionCall,
    FunctionList,
    InlineFunction,
    NewFunction,
    NewFunctionAnswer,
)
from teletape_server.models.listings import Deleted
from teletape_server.models.parameters import Elements, Page, Several
from teletape_server.models.session.ops import OpResults
from teletape_server.problems import Problem

#: Problems of a request that calls a function, and may record it.
CALLS: Final = ("id_in_use", *STATE, *WORK)


@endpoint(
    "POST",
    "/functions",
    NewFunctionAnswer,
    "Create a function",
    status=201,
    problems=("id_in_use", "invalid_expression", *WORK),
)
def create(session: Session, request: Request, body: NewFunction) -> Result:
    """A function is a list of steps on named inputs: ops, assignments, calls of other functions, loops, conditions.

    With `text` the steps come from formulas, as those of `POST /v1/expressions`. The server checks names, ops and
    attributes now, and shapes when the function is called.
    """
    id = body.id or new_id()
    values = None
    if body.text is not None:
        formulas = parsed_text(body.text, body.dtype or request.params.get("alone") or "float32")
        if body.outputs is not None:
            formulas = with_outputs(formulas, body.outputs)
        values = {"values": formulas.values}
        with wire.numbers_alone(body.dtype):
            steps = [wire.step_from_json(step) for step in formulas.steps]
        body = body.model_copy(update={"inputs": formulas.inputs, "steps": steps, "outputs": formulas.outputs})
    execute(session, request, [definition(id, body)], replace=body.replace)
    return created_result(session, request, session.describe(id) | (values or {}))


class InvalidExpressionError(TeletapeError):
    """Raised for a text that is no expression."""

    code = "invalid_expression"


def parsed_text(text: str, dtype: str) -> Compiled:
    """Returns the function that a text means.

    Raises:
        InvalidExpressionError: It is no expression; the message says where.
    """
    try:
        return parse(text, dtype)
    except Problem as problem:
        raise InvalidExpressionError(f"text: {problem.detail}", **problem.details) from None


def definition(id: Id, body: NewFunction | InlineFunction) -> Command:
    """Returns the command that defines a function under an id."""
    dtype = body.dtype if isinstance(body, NewFunction) else None
    return command("function", id=id, inputs=body.inputs, steps=body.steps, outputs=body.outputs, dtype=dtype)


@endpoint("GET", "/functions", FunctionList, "List the functions", query=Page)
def list_(session: Session, request: Request) -> Result:
    """Lists the session's functions with their steps."""
    return listing(session, request, "functions")


@endpoint("DELETE", "/functions", Deleted, "Delete several functions", query=Several)
def delete_several_(session: Session, request: Request) -> Result:
    """Deletes those named by `id`, or those that the filters select, or all."""
    return delete_several(session, request, "functions")


@endpoint("GET", "/functions/{function}", Function, "Get a function")
def get(session: Session, request: Request) -> Result:
    """Returns the function's inputs, steps and outputs."""
    return json_result(described(session, path_id(request.params["id"]), "functions"))


@endpoint("POST", "/functions/{function}/call", OpResults, "Call a function", problems=CALLS, query=Elements)
def call(session: Session, request: Request, body: FunctionCall) -> Result:
    """Runs the function on tensors and variables. If `tape` is given, it records the function's ops.

    `values` are called as `fetch` calls them: by ids, or by the function's names of its outputs. Without `fetch` they
    have the ids in `outputs`; results that end with the request, and have no id of yours, have the function's names.
    """
    function = path_id(request.params["id"])
    facts = described(session, function, "functions")
    count = len(facts["outputs"])
    outputs: list[Id] = [new_id() for _ in range(count)] if body.outputs is None else list(body.outputs)
    if len(outputs) != count:
        raise InvalidRequestError(f"outputs: function {function!r} has {count}, found {len(outputs)} ids")
    results: dict[Id, Id] = dict(zip(facts["outputs"], outputs, strict=True)) | {id: id for id in outputs}
    chosen: Sequence[Id] = facts["outputs"] if body.scratch and body.outputs is None else outputs
    if body.fetch is not None:
        chosen = body.fetch
    for id in chosen:
        if id not in results and not session.knows(id):
            raise InvalidRequestError(
                f"fetch: {id!r} is neither an id in `outputs` nor in this session, and no output of function "
                f"{function!r}: it has {', '.join(facts['outputs'])}. {FOR_A_VALUE_INSIDE}"
            )
    how: dict[str, Any] = {"tape": body.tape, "fetch": {id: results.get(id, id) for id in chosen}}
    if body.map is None:
        step = CallFunction(function, tuple(in_order(function, facts, body.inputs)), tuple(outputs))
        return run_recorded(session, request, [step], outputs, body, **how)
    mapped = mapped_call(session, function, body.inputs, body.map)
    chunks = mapped.chunks(mapped.size if body.tape is not None else mapped.rows_at_once("call", (), ()))
    commands = mapped.commands(outputs, chunks)
    temporaries = [id for command in commands for id in outputs_of(command) if id not in set(outputs)]
    how |= {"temporaries": temporaries, "more": {"map": mapped.answer(len(chunks))}}
    return run_recorded(session, request, commands, outputs, body, **how)


@endpoint("DELETE", "/functions/{function}", None, "Delete a function")
def delete(session: Session, request: Request) -> Result:
    """The tensors that it computed stay. A new one can have its id with `replace`."""
    return deleted_result(session, request, "functions")
