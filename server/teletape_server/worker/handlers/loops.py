"""Loops over saved functions: one request, however many iterations."""

from __future__ import annotations

from typing import Any

from teletape_engine.session.session import Session
from teletape_server.worker.bodies import (
    InvalidRequestError,
    command_of,
    described,
    execute,
    ids_of,
    new_id,
    path_id,
    read,
)
from teletape_server.worker.handlers.ops import call_json, recorded
from teletape_server.worker.methods import Request, Result, method
from teletape_server.worker.models.loops import Inline, ScanLoop, WhileLoop

_HERE = ("function",), "functions"


@method("function.while")
def repeat(session: Session, request: Request) -> Result:
    """The function's results once the condition is false."""
    given = read(request, WhileLoop)
    body = _body(session, request)
    count = len(given.inputs) - given.captured
    temporary = [] if isinstance(given.cond, str) else [new_id()]
    if isinstance(given.cond, Inline):
        calls = [call_json(one) if one.do == "op" else one.model_dump(exclude_unset=True) for one in given.cond.steps]
        made = command_of(
            "function", id=temporary[0], inputs=given.cond.inputs, steps=calls, outputs=given.cond.outputs
        )
        execute(session, request, [made])
    try:
        return _looped(
            session,
            request,
            given,
            max(count, 0),
            "while",
            cond=given.cond if isinstance(given.cond, str) else temporary[0],
            body=body,
            maximum_iterations=given.maximum_iterations,
        )
    finally:
        session.take_back(temporary)


@method("function.scan")
def scan(session: Session, request: Request) -> Result:
    """What the function carries at the end, and its other results stacked."""
    given = read(request, ScanLoop)
    body = _body(session, request)
    count = len(described(session, path_id(request.params["id"]), *_HERE)["outputs"])
    return _looped(
        session,
        request,
        given,
        count,
        "scan",
        body=body,
        carried=given.carried,
        reverse=given.reverse,
        length=given.length,
    )


def _body(session: Session, request: Request) -> Any:
    name = path_id(request.params["id"])
    described(session, name, *_HERE)
    return {"id": name} if isinstance(name, int) else name


def _looped(
    session: Session, request: Request, given: WhileLoop | ScanLoop, count: int, verb: str, **fields: Any
) -> Result:
    outputs = given.outputs if given.outputs is not None else [new_id() for _ in range(count)]
    if len(outputs) not in ((count, count + 1) if verb == "while" else (count,)):
        more = ", or one more for the number of iterations" if verb == "while" else ""
        raise InvalidRequestError(f"outputs: the loop has {count} results{more}; found {len(outputs)} ids")
    return recorded(
        session,
        request,
        [command_of(verb, inputs=given.inputs, outputs=outputs, captured=given.captured, **fields)],
        outputs,
        tape=None if given.tape is None else ids_of([given.tape])[0],
        fetch=outputs if given.fetch is None else ids_of(given.fetch),
    )
