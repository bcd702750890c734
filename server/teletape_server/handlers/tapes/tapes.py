"""Tapes: create, list, get, watch, record ops, delete."""

from __future__ import annotations

from typing import Any, Final

from teletape_engine.commands import (
    ContextSwitch,
    Id,
    TapeDescribe,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.commands.results import Facts
from teletape_engine.errors import UnknownIdError
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result
from teletape_server.handlers.bodies import new_id, path_id
from teletape_server.handlers.endpoints import NAMED, STATE, WORK, endpoint
from teletape_server.handlers.execution import execute
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.handlers.recording import CONTEXT, tape_facts
from teletape_server.handlers.session.ops import run_ops
from teletape_server.models.listings import Deleted
from teletape_server.models.parameters import Elements, Page, Several
from teletape_server.models.session.ops import OpCalls, OpResults
from teletape_server.models.tapes.tapes import NewTape, Tape, TapeList, WatchTensors

_EXAMPLE: Final = {
    "ops": [
        {"op": "reshape", "inputs": ["w"], "outputs": ["points"], "attrs": {"shape": [3, 1]}},
        {"op": "square", "inputs": ["points"], "outputs": ["squares"]},
        {"op": "mul", "inputs": ["w", "x"], "outputs": ["y"]},
        {"op": "reduce_sum", "inputs": ["y"], "outputs": ["loss"]},
    ]
}


@endpoint("POST", "/tapes", Tape, "Create a tape", status=201, problems=(*NAMED, "id_in_use"))
def create(session: Session, request: Request, body: NewTape) -> Result:
    """The tape records the ops that are posted to its /ops. Its `parents` record them too, and its gradients."""
    for parent in body.parents:
        tape_facts(session, parent)
    tape = body.id or new_id()
    opening = TapeOpen(tape, body.persistent, body.watch_accessed, body.replayable, tuple(body.parents))
    execute(session, request, [ContextSwitch(CONTEXT), opening, TapePause(tape)], replace=body.replace)
    return created_result(session, request, tape_facts(session, tape))


@endpoint("GET", "/tapes", TapeList, "List the tapes", query=Page)
def list_(session: Session, request: Request) -> Result:
    """Lists the tapes with their ops and bytes."""
    return listing(session, request, "tapes", lambda facts: _facts_with_bytes(session, request, facts["id"]))


@endpoint("DELETE", "/tapes", Deleted, "Delete several tapes", query=Several)
def delete_several_(session: Session, request: Request) -> Result:
    """Deletes those named by `id`, or those that the filters select, or all."""
    return delete_several(session, request, "tapes")


@endpoint("GET", "/tapes/{tape}", Tape, "Get a tape")
def get(session: Session, request: Request) -> Result:
    """Returns how many ops and bytes the tape holds, and which variables it watches."""
    return json_result(_facts_with_bytes(session, request, path_id(request.params["id"])))


def _facts_with_bytes(session: Session, request: Request, tape: Id) -> dict[str, Any]:
    """Returns the facts about a tape with its bytes; counting them visits the whole tape."""
    facts = tape_facts(session, tape)
    [counted] = execute(session, request, [TapeDescribe(tape)]).results
    assert isinstance(counted, Facts)
    return facts | counted.facts


@endpoint("POST", "/tapes/{tape}/watch", Tape, "Watch tensors")
def watch(session: Session, request: Request, body: WatchTensors) -> Result:
    """The tape tracks these tensors in ops posted from now on. It watches trainable variables by itself."""
    tape = path_id(request.params["id"])
    tape_facts(session, tape)
    for id in body.tensors:
        kind = session.describe(id)["kind"]
        if kind not in ("tensor", "variable"):
            raise UnknownIdError(f"a tape watches tensors and variables; {id!r} is a {kind}", id=id)
    execute(session, request, [TapeWatch(tape, tuple(body.tensors))])
    return json_result(tape_facts(session, tape))


@endpoint(
    "POST",
    "/tapes/{tape}/ops",
    OpResults,
    "Run ops on a tape",
    problems=("id_in_use", *STATE, *WORK),
    query=Elements,
    example=_EXAMPLE,
)
def record(session: Session, request: Request, body: OpCalls) -> Result:
    """Runs ops in order, recorded by the tape and its parents.

    If an op fails, the results of those before it stay, and the ids of the rest stay free.
    """
    return run_ops(session, request, body, tape=path_id(request.params["id"]))


@endpoint("DELETE", "/tapes/{tape}", None, "Delete a tape")
def delete(session: Session, request: Request) -> Result:
    """Frees everything that the tape keeps. A new one can have its id with `replace`."""
    return deleted_result(session, request, "tapes")
