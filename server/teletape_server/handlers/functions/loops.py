"""Loops over functions: while a condition holds, or once for each element."""

from __future__ import annotations

from typing import Any

from teletape_engine.commands import Command, Id
from teletape_engine.commands import outputs as outputs_of
from teletape_engine.session.session import Session
from teletape_server.handlers.bodies import InvalidRequestError, new_id, path_id
from teletape_server.handlers.endpoints import endpoint
from teletape_server.handlers.execution import command, described
from teletape_server.handlers.functions.functions import CALLS, definition
from teletape_server.handlers.methods import Request, Result
from teletape_server.handlers.session.ops import run_recorded
from teletape_server.models.functions.functions import InlineFunction
from teletape_server.models.functions.loops import Loop, ScanLoop, WhileLoop
from teletape_server.models.parameters import Elements
from teletape_server.models.session.ops import OpResults


@endpoint(
    "POST", "/functions/{function}/while", OpResults, "Run a function in a while loop", problems=CALLS, query=Elements
)
def while_(session: Session, request: Request, body: WhileLoop) -> Result:
    """Calls the function on its own results while a condition holds: a thousand iterations are one request.

    The results have the shapes and dtypes of the inputs. Send `Accept: text/event-stream` to watch the progress; POST
    /cancel stops the loop between two iterations.
    """
    function = path_id(request.params["id"])
    described(session, function, "functions")
    carried = max(len(body.inputs) - body.captured, 0)
    fields: dict[str, Any] = {"body": function, "maximum_iterations": body.maximum_iterations}
    if not isinstance(body.cond, InlineFunction):
        return _run_loop(session, request, "while", body, carried, cond=body.cond, **fields)
    condition = new_id()
    setup = definition(condition, body.cond)
    return _run_loop(session, request, "while", body, carried, condition=setup, cond=condition, **fields)


@endpoint(
    "POST", "/functions/{function}/scan", OpResults, "Run a function over elements", problems=CALLS, query=Elements
)
def scan(session: Session, request: Request, body: ScanLoop) -> Result:
    """Calls the function once for each element along axis 0: a map, a fold or a scan, depending on what it carries."""
    function = path_id(request.params["id"])
    results = len(described(session, function, "functions")["outputs"])
    fields: dict[str, Any] = {"carried": body.carried, "reverse": body.reverse, "length": body.length}
    return _run_loop(session, request, "scan", body, results, body=function, **fields)


def _run_loop(
    session: Session,
    request: Request,
    verb: str,
    loop: Loop,
    results: int,
    /,
    condition: Command | None = None,
    **fields: Any,
) -> Result:
    """Runs a loop with `results` results; a while loop may have the number of iterations as one more.

    `condition` defines a function that ends with the request.
    """
    outputs: list[Id] = [new_id() for _ in range(results)] if loop.outputs is None else list(loop.outputs)
    if len(outputs) not in ((results, results + 1) if verb == "while" else (results,)):
        more = ", or one more for the number of iterations" if verb == "while" else ""
        raise InvalidRequestError(f"outputs: the loop has {results} results{more}; found {len(outputs)} ids")
    return run_recorded(
        session,
        request,
        [command(verb, inputs=loop.inputs, outputs=outputs, captured=loop.captured, **fields)],
        outputs,
        loop,
        tape=loop.tape,
        fetch={id: id for id in (outputs if loop.fetch is None else loop.fetch)},
        setup=() if condition is None else [condition],
        temporaries=() if condition is None else outputs_of(condition),
    )
