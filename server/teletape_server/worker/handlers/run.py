"""One request, one session: commands in, the values asked for out."""

from __future__ import annotations

from typing import Any, Final

import teletape_wire as wire
from teletape_engine.commands import BackwardEnd, Gradient, Hessian, Hvp, Id, Jacobian, Jvp, Vjps
from teletape_engine.commands.results import Fetched, Kinds
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import commands_of, execute, ids_of, read, shown
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import models

_WITH_KINDS: Final = (Gradient, Jacobian, Vjps, Hessian, Hvp, Jvp, BackwardEnd)  #: Commands whose answers may be none.


@method("run")
def run(session: Session, request: Request) -> Result:
    """Executes the commands, and answers with the values of `fetch` and of fetch commands among them."""
    given = read(request, models.Run)
    todo = commands_of(given.commands)
    fetch = ids_of(given.fetch)
    answer = execute(session, request, todo, several=True)
    values: dict[Id, Any] = {}
    for one, written in zip(
        answer.results, wire.answer_to_json(answer, full=request.params["full"])["results"], strict=True
    ):
        if isinstance(one, Fetched):
            values[one.id] = written["value"]
        elif isinstance(one, Kinds):
            asked = todo[one.index]
            names = asked.outputs if isinstance(asked, _WITH_KINDS) else ()  # of the others each answer is there
            values |= {
                name: None
                for name, what in zip(names, one.kinds, strict=False)
                if what == "none" and name is not None and name in fetch
            }
    wanted = [name for name in fetch if name not in values]
    values |= zip(wanted, shown(session, request, wanted), strict=True)
    return json_result({"values": {str(name): value for name, value in values.items()}})
