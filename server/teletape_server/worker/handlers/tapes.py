"""Tapes: create, list, get, watch, reset, delete; and the commands that make a tape record.

Between requests a tape is paused. In each request that records, the tape and its live ancestors are resumed first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from teletape_engine.commands import (
    Command,
    ContextSwitch,
    Id,
    TapeDescribe,
    TapeOpen,
    TapeOwn,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.commands.results import Facts
from teletape_engine.errors import TapeConsumedError, TapeStateError, UnknownIdError
from teletape_engine.session.session import Session
from teletape_server.worker.answers import created_result, deleted_result
from teletape_server.worker.bodies import new_id, path_id, read
from teletape_server.worker.execution import described, execute
from teletape_server.worker.handlers.listings import delete_several, listing
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models.base import GENERATED
from teletape_server.worker.models.tapes import NewTape, ResetTape, WatchTensors

#: The context of all REST requests: they run one after the other, and each leaves it without an active tape.
CONTEXT: Final = GENERATED + "rest"


# ------------------------------------------------------------------------------------------------------------ recording
def tape_facts(session: Session, tape: Id) -> dict[str, Any]:
    """Returns the facts about a tape.

    Raises:
        UnknownIdError, ReleasedIdError: There is no such tape.
    """
    return described(session, tape, "tapes")


def check_paused(facts: dict[str, Any]) -> None:
    """Checks that no program records on the tape now.

    Raises:
        TapeStateError: A client records on it.
    """
    if facts["recording"]:
        raise TapeStateError(f"tape {facts['id']!r} records for another client: pause it there first")


def live_ancestors(session: Session, tape: Id) -> list[Id]:
    """Returns the tape's parents and their parents that are not consumed, the outermost first.

    Raises:
        TapeStateError: One of them records for another client.
    """
    ancestors: dict[Id, None] = {}

    def visit(descendant: Id) -> None:
        for parent in tape_facts(session, descendant)["parents"]:
            facts = tape_facts(session, parent)
            if parent not in ancestors and not facts["consumed"]:
                visit(parent)
                check_paused(facts)
                ancestors[parent] = None

    visit(tape)
    return list(ancestors)


def recording(session: Session, tape: Id | None) -> tuple[list[Command], list[Command]]:
    """Returns the commands before and after those that a tape and its ancestors are to record.

    Args:
        session: The session.
        tape: The tape; None: nothing is recorded.

    Raises:
        TapeConsumedError: The tape has answered, and is not persistent.
        TapeStateError: The tape or an ancestor records for another client.
        UnknownIdError, ReleasedIdError: There is no such tape.
    """
    if tape is None:
        return active(())
    facts = tape_facts(session, tape)
    check_paused(facts)
    _check_not_consumed(facts)
    return active([*live_ancestors(session, tape), tape])


def active(tapes: Sequence[Id]) -> tuple[list[Command], list[Command]]:
    """Returns the commands before and after those that exactly these tapes are to record."""
    before: list[Command] = [ContextSwitch(CONTEXT)]
    before += [TapeResume(tape) for tape in tapes]
    return before, [TapePause(tape) for tape in reversed(tapes)]


def owned(tape: Id | None, ids: Collection[Id]) -> list[Command]:
    """Returns the command that notes tensors as outputs of a tape, if there is anything to note."""
    return [] if tape is None or not ids else [TapeOwn(tape, tuple(ids))]


def _check_not_consumed(facts: dict[str, Any]) -> None:
    if facts["consumed"]:
        raise TapeConsumedError(
            f"tape {facts['id']!r} has answered, and is not persistent: create another, with persistent true to ask "
            "more than once",
            id=facts["id"],
        )


# -------------------------------------------------------------------------------------------------------------- methods
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
    _check_not_consumed(facts)
    before, after = active([tape])
    execute(session, request, [TapeReset(tape, body.release_outputs)], before=before, after=after)
    return json_result(tape_facts(session, tape), bytes_in_use=session.bytes_in_use())


@method("tape.delete")
def delete(session: Session, request: Request) -> Result:
    """Releases a tape."""
    return deleted_result(session, request, "tapes")
