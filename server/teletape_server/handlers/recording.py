"""The commands that make a tape record in a REST request, and what is checked before.

Between requests a tape is paused. In each request that records, the tape and its live ancestors are resumed first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from teletape_engine.commands import Command, ContextSwitch, Id, TapeOwn, TapePause, TapeResume
from teletape_engine.errors import TapeConsumedError, TapeStateError
from teletape_engine.session.session import Session
from teletape_server.handlers.execution import described
from teletape_server.models.base import GENERATED

#: The context of all REST requests: they run one after the other, and each leaves it without an active tape.
CONTEXT: Final = GENERATED + "rest"


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
    check_not_consumed(facts)
    return active([*live_ancestors(session, tape), tape])


def active(tapes: Sequence[Id]) -> tuple[list[Command], list[Command]]:
    """Returns the commands before and after those that exactly these tapes are to record."""
    before: list[Command] = [ContextSwitch(CONTEXT)]
    before += [TapeResume(tape) for tape in tapes]
    return before, [TapePause(tape) for tape in reversed(tapes)]


def owned(tape: Id | None, ids: Collection[Id]) -> list[Command]:
    """Returns the command that notes tensors as outputs of a tape, if there is anything to note."""
    return [] if tape is None or not ids else [TapeOwn(tape, tuple(ids))]


def check_not_consumed(facts: dict[str, Any]) -> None:
    """Checks that a tape can record still.

    Raises:
        TapeConsumedError: It has answered, and is not persistent.
    """
    if facts["consumed"]:
        raise TapeConsumedError(
            f"tape {facts['id']!r} has answered, and is not persistent: create another, with persistent true to ask "
            "more than once",
            id=facts["id"],
        )
