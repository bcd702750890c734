"""Tapes over REST: each request is a context of its own, in which the tape and its parents record, or answer.

Between requests a tape is paused. Which tapes are whose parents is known here alone: to the engine they are tapes that
happen to record at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from teletape_engine.commands import (
    Command,
    ContextSwitch,
    Id,
    TapeDescribe,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
)
from teletape_engine.commands import TapeWatch as WatchCommand
from teletape_engine.commands.results import Told
from teletape_engine.errors import TapeConsumedError, TapeStateError
from teletape_engine.session.session import Session
from teletape_server.worker.bodies import (
    described,
    execute,
    facts_result,
    ids_of,
    new_id,
    path_id,
    read,
    release,
)
from teletape_server.worker.methods import Request, Result, json_result, method
from teletape_server.worker.models import models
from teletape_server.worker.models.models import GENERATED

#: The context of all REST requests: they run one after the other, and each leaves it without a tape.
CONTEXT: Final = GENERATED + "rest"
_HERE = ("tape",), "tapes"
_parents: WeakKeyDictionary[Session, dict[Id, tuple[Id, ...]]] = WeakKeyDictionary()


def facts_of(session: Session, tape: Id) -> dict[str, Any]:
    """What is known of a tape, its parents too.

    Raises:
        UnknownIdError, ReleasedIdError: There is no such tape.
    """
    facts = described(session, tape, *_HERE)
    return {**facts, "parents": list(_parents.get(session, {}).get(tape, ()))}


def outer(session: Session, tape: Id) -> list[Id]:
    """The tape's live ancestors, the outermost first.

    Raises:
        TapeStateError: One of them records in some other program.
    """
    found: dict[Id, None] = {}

    def visit(name: Id) -> None:
        for parent in _parents.get(session, {}).get(name, ()):
            facts = facts_of(session, parent)
            if parent not in found and not facts["consumed"]:
                visit(parent)
                check_paused(facts)
                found[parent] = None

    visit(tape)
    return list(found)


def check_paused(facts: dict[str, Any]) -> None:
    """TapeStateError if the tape records in some other program."""
    if facts["recording"]:
        raise TapeStateError(f"tape {facts['id']!r} records in another program: it has to be paused there first")


def inside(session: Session, tape: Id | None) -> tuple[list[Command], list[Command]]:
    """The commands before and behind those that the tape and its parents are to record; None: no tape.

    Raises:
        TapeConsumedError: The tape has answered, and is not persistent.
        TapeStateError: It, or a parent, records in some other program.
        UnknownIdError, ReleasedIdError: There is no such tape.
    """
    if tape is None:
        return [ContextSwitch(CONTEXT)], []
    facts = facts_of(session, tape)
    check_paused(facts)
    if facts["consumed"]:
        raise _consumed(tape)
    return around([*outer(session, tape), tape])


def around(tapes: Sequence[Id]) -> tuple[list[Command], list[Command]]:
    """The commands before and behind those that these tapes are to record."""
    before: list[Command] = [ContextSwitch(CONTEXT)]
    before += [TapeResume(one) for one in tapes]
    return before, [TapePause(one) for one in reversed(tapes)]


def _consumed(tape: Id) -> TapeConsumedError:
    return TapeConsumedError(
        f"tape {tape!r} has answered, and is not persistent: open another, with persistent true to ask more than once",
        id=tape,
    )


@method("tape.create")
def make(session: Session, request: Request) -> Result:
    """A new tape, paused."""
    given = read(request, models.NewTape)
    parents = ids_of(given.parents)
    for parent in parents:
        facts_of(session, parent)
    name = given.id or new_id()
    execute(
        session,
        request,
        [
            ContextSwitch(CONTEXT),
            TapeOpen(name, given.persistent, given.watch_accessed, given.replayable),
            TapePause(name),
        ],
    )
    _parents.setdefault(session, {})[name] = parents
    return facts_result(session, request, facts_of(session, name), collection=request.params["collection"])


@method("tape.list")
def listing(session: Session, request: Request) -> Result:
    """All tapes."""
    return json_result({"tapes": [_counted(session, request, one["id"]) for one in session.listing("tape")]})


@method("tape.get")
def get(session: Session, request: Request) -> Result:
    """One tape."""
    return json_result(_counted(session, request, path_id(request.params["id"])))


def _counted(session: Session, request: Request, tape: Id) -> dict[str, Any]:
    """The facts with the tape's bytes: counting walks all of it, so that only those who look at it pay for it."""
    facts = facts_of(session, tape)
    [told] = execute(session, request, [TapeDescribe(tape)]).results
    assert isinstance(told, Told)
    return facts | told.facts


@method("tape.watch")
def watch(session: Session, request: Request) -> Result:
    """The tape follows these from now on."""
    given = read(request, models.Watch)
    tape = path_id(request.params["id"])
    facts_of(session, tape)
    values = ids_of(given.values)
    for value in values:
        described(session, value, ("tensor", "variable"), "values that a tape can watch")
    execute(session, request, [WatchCommand(tape, values)])
    return json_result(facts_of(session, tape))


@method("tape.reset")
def reset(session: Session, request: Request) -> Result:
    """The tape forgets what it recorded and watched."""
    tape = path_id(request.params["id"])
    facts = facts_of(session, tape)
    check_paused(facts)
    if facts["consumed"]:
        raise _consumed(tape)
    before, after = around([tape])
    execute(session, request, [*before, TapeReset(tape), *after])
    return json_result(facts_of(session, tape), bytes_in_use=session.bytes_in_use())


@method("tape.delete")
def end(session: Session, request: Request) -> Result:
    """Ends the tape."""
    result = release(session, request, *_HERE)
    _parents.get(session, {}).pop(path_id(request.params["id"]), None)
    return result
