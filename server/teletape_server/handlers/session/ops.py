"""Ops: run in order, on a tape and its parents or without a tape; answered with specs and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teletape_engine.commands import Command, Id
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import fetched_values, fetches
from teletape_server.handlers.bodies import lasting_ids, new_id
from teletape_server.handlers.endpoints import NAMED, WORK, endpoint
from teletape_server.handlers.execution import execute
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import owned, recording
from teletape_server.models.base import Results
from teletape_server.models.parameters import Elements
from teletape_server.models.session.ops import OpCalls, OpResults


@endpoint("POST", "/ops", OpResults, "Run ops without a tape", problems=(*NAMED, "id_in_use", *WORK), query=Elements)
def run(session: Session, request: Request, body: OpCalls) -> Result:
    """Runs ops in order. If one fails, the results of those before it stay, and the ids of the rest stay free."""
    return run_ops(session, request, body, tape=None)


def run_ops(session: Session, request: Request, body: OpCalls, *, tape: Id | None) -> Result:
    """Runs ops; returns the last result's elements, or those of `fetch`."""
    calls = [call.command(new_id) for call in body.ops]
    outputs = [id for call in calls for id in call.outputs]
    fetch = outputs[-1:] if body.fetch is None else body.fetch
    return run_recorded(session, request, calls, outputs, body, tape=tape, fetch={id: id for id in fetch})


def run_recorded(
    session: Session,
    request: Request,
    commands: Sequence[Command],
    outputs: Sequence[Id],
    body: Results,
    *,
    tape: Id | None,
    fetch: Mapping[Id, Id],
    setup: Sequence[Command] = (),
    temporaries: Sequence[Id] = (),
    more: Mapping[str, Any] | None = None,
) -> Result:
    """Runs commands, recorded by a tape and its parents, and returns the outputs.

    Args:
        session: The session.
        request: The request.
        commands: The caller's commands.
        outputs: The ids that they create.
        body: Which of them stay.
        tape: The tape that records them; None: no tape.
        fetch: The ids whose elements are returned, by what the answer calls them.
        setup: The server's own commands that run first.
        temporaries: Ids that end with the request.
        more: Further members of the answer.

    Raises:
        TeletapeError: The first command that failed; or, before anything runs, an id in `fetch` that names nothing.
    """
    created = set(outputs)
    for id in fetch.values():
        if id not in created:
            session.describe(id)
    lasting = lasting_ids(outputs, body)
    before, after = recording(session, tape)
    answer = execute(
        session,
        request,
        commands,
        before=[*setup, *before],
        after=[*after, *owned(tape, lasting), *fetches(request, dict.fromkeys(fetch.values()))],
        temporaries=[*temporaries, *[id for id in outputs if id not in lasting]],
        replace=body.replace,
        name_command=len(commands) > 1,
    )
    facts = [session.describe(id) for id in lasting]
    elements = fetched_values(request, answer)
    values = {str(name): elements[id] for name, id in fetch.items()}
    bytes_in_use = session.estimated_bytes()
    specs = [{"id": fact["id"], "dtype": fact["dtype"], "shape": fact["shape"]} for fact in facts]
    results = {"outputs": specs, "values": values, **(more or {}), "bytes_in_use": bytes_in_use}
    return json_result(results, bytes_in_use=bytes_in_use)
