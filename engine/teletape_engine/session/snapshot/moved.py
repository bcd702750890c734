"""What commands have changed before they failed by accident, so that running them again can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from teletape_engine.arrays import HostArray
from teletape_engine.commands import Batch, Id, mentions
from teletape_engine.commands.results import Failure
from teletape_engine.recording.values import Variable, new_uid
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.state import State

#: Codes of failures that depend on time, memory or the machine: running the batch again may end otherwise.
ACCIDENTS: Final = frozenset({"cancelled", "deadline_exceeded", "resource_exhausted", "internal"})

#: What a command may have changed before it failed: a variable with its version and value; a tape that has answered.
Moved: TypeAlias = tuple[Id, int, HostArray | None]


def moved(state: State, batch: Batch, failures: Sequence[Failure]) -> list[Moved]:
    """What the commands that have failed may have changed before: variables that they name, as they are now, and tapes.

    A command assigns only to variables that it names, also where functions do it; so the list is complete.
    """
    names = {name: None for failure in failures for name in mentions(batch.commands[failure.index])}
    rows: list[Moved] = []
    for name in names:
        entry = state.entries.get(name)
        if isinstance(entry, Variable):
            rows.append((name, entry.version, state.host(entry.value)))
        elif isinstance(entry, TapeEntry) and entry.tape.consumed:
            rows.append((name, 0, None))
    return rows


def patch(state: State, rows: Sequence[Moved]) -> None:
    """Makes variables and tapes what they are in `moved`."""
    for name, version, array in rows:
        if array is None:
            tape = state.find(name, TapeEntry).tape
            if not tape.consumed:
                tape.consume()
                tape.free()
            continue
        variable = state.find(name, Variable)
        variable.value, variable.version = state.current.constant(array).alias(new_uid()), version
