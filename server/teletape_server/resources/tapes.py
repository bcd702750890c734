"""Tapes over REST: each request is a context of its own, in which the tape and its parents record, or answer.

Between requests a tape is paused. Which tapes are whose parents is known here alone: to the engine they are tapes that
happen to record at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from teletape_engine.answers import Kinds
from teletape_engine.commands import Command, ContextSwitch, Gradient, Id, TapeOpen, TapePause, TapeReset, TapeResume
from teletape_engine.commands import TapeWatch as WatchCommand
from teletape_engine.errors import TapeConsumedError, TapeStateError
from teletape_engine.session import Session
from teletape_server.hosts.kinds import Request, Result, json_result, kind
from teletape_server.resources import models
from teletape_server.resources.bodies import (
    InvalidRequestError,
    command_of,
    described,
    execute,
    facts_result,
    ids_of,
    new_id,
    path_id,
    read,
    release,
    shown,
)
from teletape_server.resources.models import GENERATED

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
                _check_paused(facts)
                found[parent] = None

    visit(tape)
    return list(found)


def _check_paused(facts: dict[str, Any]) -> None:
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
    _check_paused(facts)
    if facts["consumed"]:
        raise _consumed(tape)
    return _around([*outer(session, tape), tape])


def _around(tapes: Sequence[Id]) -> tuple[list[Command], list[Command]]:
    before: list[Command] = [ContextSwitch(CONTEXT)]
    before += [TapeResume(one) for one in tapes]
    return before, [TapePause(one) for one in reversed(tapes)]


def _consumed(tape: Id) -> TapeConsumedError:
    return TapeConsumedError(
        f"tape {tape!r} has answered, and is not persistent: open another, with persistent true to ask more than once",
        id=tape,
    )


@kind("tape.open")
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
        [ContextSwitch(CONTEXT), TapeOpen(name, given.persistent, given.watch_accessed), TapePause(name)],
    )
    _parents.setdefault(session, {})[name] = parents
    return facts_result(session, request, facts_of(session, name), place=request.params["place"])


@kind("tape.list")
def listing(session: Session, request: Request) -> Result:
    """All tapes."""
    return json_result({"tapes": [facts_of(session, one["id"]) for one in session.listing("tape")]})


@kind("tape.get")
def get(session: Session, request: Request) -> Result:
    """One tape."""
    return json_result(facts_of(session, path_id(request.params["id"])))


@kind("tape.watch")
def watch(session: Session, request: Request) -> Result:
    """The tape follows these from now on."""
    given = read(request, models.Watch)
    tape = path_id(request.params["id"])
    facts_of(session, tape)
    values = ids_of(given.values)
    for value in values:
        described(session, value, ("value", "variable"), "values that a tape can watch")
    execute(session, request, [WatchCommand(tape, values)])
    return json_result(facts_of(session, tape))


@kind("tape.reset")
def reset(session: Session, request: Request) -> Result:
    """The tape forgets what it recorded and watched."""
    tape = path_id(request.params["id"])
    facts = facts_of(session, tape)
    _check_paused(facts)
    if facts["consumed"]:
        raise _consumed(tape)
    before, after = _around([tape])
    execute(session, request, [*before, TapeReset(tape), *after])
    return json_result(facts_of(session, tape), bytes_in_use=session.bytes_in_use())


@kind("tape.gradient")
def gradient(session: Session, request: Request) -> Result:
    """The gradients with their numbers; the parents record how they came about."""
    given = read(request, models.Question)
    tape = path_id(request.params["id"])
    _check_paused(facts_of(session, tape))
    asked = given.ids if given.ids is not None else [None] * len(given.sources)
    if len(asked) != len(given.sources):
        raise InvalidRequestError(
            f"ids: one for each of the {len(given.sources)} sources, null for none; found {len(asked)}"
        )
    names = [one or new_id() for one in asked]
    question = command_of(
        "gradient",
        tape=request.params["id"] if isinstance(tape, str) else {"id": tape},
        targets=given.targets,
        sources=given.sources,
        outputs=names,
        seeds=given.output_gradients,
        unconnected=given.unconnected,
    )
    assert isinstance(question, Gradient)
    before, after = _around(outer(session, tape))
    [found] = [one for one in execute(session, request, [*before, question, *after]).results if isinstance(one, Kinds)]
    made = [name for name, what in zip(names, found.kinds, strict=True) if what != "none"]
    passing = [name for name, wanted in zip(names, asked, strict=True) if wanted is None and name in made]
    values = dict(zip(made, shown(session, request, made, releases=passing), strict=True))
    answers = [
        {"source": source, "kind": what, "id": wanted if name in values else None, "value": values.get(name)}
        for source, what, wanted, name in zip(question.sources, found.kinds, asked, names, strict=True)
    ]
    used = session.bytes_in_use()
    return json_result({"gradients": answers, "bytes_in_use": used}, bytes_in_use=used)


@kind("tape.release")
def end(session: Session, request: Request) -> Result:
    """Ends the tape."""
    result = release(session, request, *_HERE)
    _parents.get(session, {}).pop(path_id(request.params["id"]), None)
    return result
