"""Tapes: create, list, get, watch, reset, delete."""

from __future__ import annotations

from typing import Any

from teletape_engine.commands import (
    ContextSwitch,
    Id,
    TapeDescribe,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeWatch,
)
from teletape_engine.commands.results import Facts
from teletape_engine.errors import UnknownIdError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result
from teletape_server.handlers.bodies import new_id, path_id, read
from teletape_server.handlers.execution import execute
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.handlers.recording import CONTEXT, active, check_not_consumed, check_paused, tape_facts
from teletape_server.models.tapes.tapes import NewTape, ResetTape, WatchTensors


@method("tape.create")
def create(session: Session, request: Request) -> Result:
    """Creates a tape, paused."""
    body = read(request, NewTape)
    for parent in body.parents:
        tape_facts(session, parent)
    tape = body.id or new_id()
    opening = TapeOpen(tape, body.persistent, body.watch_accessed, body.replayable, tuple(body.parents))
    execute(session, request, [ContextSwitch(CONTEXT), opening, TapePause(tape)], replace=body.replace)
    return created_result(session, request, tape_facts(session, tape))


@method("tape.list")
def list_(session: Session, request: Request) -> Result:
    """Lists all tapes with their bytes."""
    return listing(session, request, "tapes", lambda facts: _facts_with_bytes(session, request, facts["id"]))


@method("tape.delete_several")
def delete_several_(session: Session, request: Request) -> Result:
    """Releases tapes."""
    return delete_several(session, request, "tapes")


@method("tape.get")
def get(session: Session, request: Request) -> Result:
    """Returns a tape with its bytes."""
    return json_result(_facts_with_bytes(session, request, path_id(request.params["id"])))


def _facts_with_bytes(session: Session, request: Request, tape: Id) -> dict[str, Any]:
    """Returns the facts about a tape with its bytes; counting them visits the whole tape."""
    facts = tape_facts(session, tape)
    [counted] = execute(session, request, [TapeDescribe(tape)]).results
    assert isinstance(counted, Facts)
    return facts | counted.facts


@method("tape.watch")
def watch(session: Session, request: Request) -> Result:
    """Makes a tape watch tensors and variables from now on."""
    body = read(request, WatchTensors)
    tape = path_id(request.params["id"])
    tape_facts(session, tape)
    for id in body.tensors:
        kind = session.describe(id)["kind"]
        if kind not in ("tensor", "variable"):
            raise UnknownIdError(f"a tape watches tensors and variables; {id!r} is a {kind}", id=id)
    execute(session, request, [TapeWatch(tape, tuple(body.tensors))])
    return json_result(tape_facts(session, tape))


@method("tape.reset")
def reset(session: Session, request: Request) -> Result:
    """Removes everything that a tape recorded and watched; on request also what it left in the session."""
    body = read(request, ResetTape)
    tape = path_id(request.params["id"])
    facts = tape_facts(session, tape)
    check_paused(facts)
    check_not_consumed(facts)
    before, after = active([tape])
    execute(session, request, [TapeReset(tape, body.release_outputs)], before=before, after=after)
    return json_result(tape_facts(session, tape), bytes_in_use=session.estimated_bytes())


@method("tape.delete")
def delete(session: Session, request: Request) -> Result:
    """Releases a tape."""
    return deleted_result(session, request, "tapes")
