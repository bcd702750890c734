"""Ops over REST: run in order, on a tape and its parents or on none, and answered with specs and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape_engine.commands import Call, Command, Id
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import commands_of, execute, ids_of, new_id, path_id, read, shown
from teletape_server.worker.handlers.tapes import inside
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import models


def call_json(call: models.OpCall) -> dict[str, Any]:
    """A call as a batch has it, an id made for its result if the caller gave none."""
    given = {name: getattr(call, name) for name in call.model_fields_set if getattr(call, name) is not None}
    return {"do": "op", "inputs": [], "outputs": [new_id()]} | given


@method("ops")
def run(session: Session, request: Request) -> Result:
    """Runs ops; the last result's numbers are shown unless others are asked for."""
    given = read(request, models.Ops)
    calls = commands_of([call_json(one) for one in given.ops])
    made = [name for call in calls if isinstance(call, Call) for name in call.outputs]
    named = request.params["id"]
    return recorded(
        session,
        request,
        calls,
        made,
        tape=None if named is None else path_id(named),
        fetch=made[-1:] if given.fetch is None else ids_of(given.fetch),
    )


def recorded(
    session: Session,
    request: Request,
    todo: Sequence[Command],
    made: Sequence[Id],
    *,
    tape: Id | None,
    fetch: Sequence[Id],
) -> Result:
    """Executes commands inside a tape and its parents (None: inside none), and answers with what they made.

    Raises:
        TeletapeError: The first that failed; or, before anything is done, an id in `fetch` that nothing will have.
    """
    for name in fetch:
        if name not in made:
            session.describe(name)
    before, after = inside(session, tape)
    execute(session, request, [*before, *todo, *after], ahead=len(before), several=len(todo) > 1)
    facts = [session.describe(name) for name in made]
    values = dict(zip(map(str, fetch), shown(session, request, fetch), strict=True))
    used = session.bytes_in_use()
    specs = [{"id": one["id"], "dtype": one["dtype"], "shape": one["shape"]} for one in facts]
    return json_result({"made": specs, "values": values, "bytes_in_use": used}, bytes_in_use=used)
