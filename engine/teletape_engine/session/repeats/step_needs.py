"""What a batch's structure says about running it as a plan: whether it may, what it takes, what becomes of its ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from teletape_engine import commands
from teletape_engine.commands import Batch, Contents, Structure
from teletape_engine.commands.schema import mentions, outputs
from teletape_engine.commands.structure import NUMBERS, TENSORS, Slot
from teletape_engine.ops.assign import WHOLE
from teletape_engine.session.batches import last_mentions

#: Commands of a batch that may run as a plan: what they do but compute is to open, watch and end tapes.
_ALLOWED: Final = (
    commands.Constant,
    commands.Call,
    commands.CallFunction,
    commands.Assign,
    commands.TapeOpen,
    commands.TapeWatch,
    commands.TapePause,
    commands.TapeResume,
    commands.TapeReset,
    commands.Gradient,
    commands.Fetch,
)
_FEWEST: Final = 4  #: Ops of a batch without a gradient that is worth a plan.


@dataclass(frozen=True, slots=True)
class Needs:
    """A structure that may run as a plan. Numbers are those of its contents.

    Attributes:
        context: The id among those taken that is the context; None: the main one.
        taken: Ids taken that name values and variables.
        functions: Ids taken that name functions.
        early: Ids taken that no command mentions, and that are released first.
        late: Ids taken that are released or end after a command.
        temporaries: Ids taken that end with the batch.
        released: New ids that are released; those that are temporary are not remembered as such.
        remaining: New ids that stay.
        notes: Tensors and numbers that become tensors by a `constant`, as (source, number), in order.
        numbers: Positions of the numbers that ops take.
        tapes: The number of tapes that it opens.
    """

    context: int | None
    taken: tuple[int, ...]
    functions: tuple[int, ...]
    early: tuple[int, ...]
    late: tuple[int, ...]
    temporaries: tuple[int, ...]
    released: tuple[int, ...]
    remaining: tuple[int, ...]
    notes: tuple[tuple[int, int], ...]
    numbers: frozenset[int]
    tapes: int

    @property
    def is_closed(self) -> bool:
        """Whether it takes no value of its session, and leaves none there."""
        return not (self.taken or self.remaining)


def needs_of(structure: Structure) -> Needs | None:
    """What a structure needs; None: it cannot run as a plan, or it is not worth while."""
    first = structure.counts[0]  # ids are numbers here: those taken, then the new ones
    created_ids = range(first, first + structure.counts[1])
    slots: list[Any] = [
        tuple([Slot(source, i) for i in range(structure.counts[source])]) for source in (TENSORS, NUMBERS)
    ]
    batch = structure.batch(Contents(tuple(range(first)), tuple(created_ids), *slots))
    todo: list[Any] = list(batch.commands)
    releases: Sequence[Any] = batch.releases
    temporaries: Sequence[Any] = batch.temporaries
    context: Any = None
    if todo and isinstance(todo[0], commands.ContextSwitch):
        context = todo.pop(0).context
    if not _is_closed(todo, batch) or not _is_worth_while(todo):
        return None
    functions: set[Any] = {name for command in todo for name in commands.functions_of(command)}
    if any(name >= first for name in functions):
        return None
    mentioned: set[Any] = {name for command in todo for name in mentions(command)}
    if context in mentioned:  # an id that is also a value's
        return None
    early: Sequence[Any] = last_mentions(batch).get(-1, [])
    values = mentioned.difference(functions, *[outputs(command) for command in todo])
    ended = {*batch.releases, *batch.temporaries}
    constants: list[Any] = [command for command in todo if isinstance(command, commands.Constant)]
    return Needs(
        context,
        _before(sorted(values), first),
        tuple(sorted(functions)),
        _before(early, first),
        tuple([name for name in _before(releases, first) if name not in early]),
        _before(temporaries, first),
        tuple([name - first for name in dict.fromkeys(releases) if name >= first]),
        tuple([name - first for name in created_ids if name not in ended]),
        tuple([tuple(command.value) for command in constants]),
        _numbers_of_ops(todo),
        sum([isinstance(command, commands.TapeOpen) for command in todo]),
    )


def _before(names: Iterable[int], first: int) -> tuple[int, ...]:
    """Those of the ids that are older than the batch: new ones begin at `first`."""
    return tuple([name for name in names if name < first])


def _numbers_of_ops(todo: Sequence[Any]) -> frozenset[int]:
    places: list[Any] = [place for command in todo if isinstance(command, commands.Call) for place in command.inputs]
    return frozenset([place.number for place in places if place.__class__ is Slot and place.source == NUMBERS])


def _is_closed(todo: Sequence[Any], batch: Batch) -> bool:
    """Whether the commands may be in a plan, and no tape of another batch is used, or is there afterwards."""
    tapes = {command.id for command in todo if isinstance(command, commands.TapeOpen)}
    fetched = False
    command: Any
    for command in todo:
        if command.__class__ not in _ALLOWED:
            return False
        if isinstance(command, commands.TapeOpen):
            if command.persistent or command.replayable or not tapes.issuperset(command.parents):
                return False
        elif hasattr(command, "tape") and command.tape not in tapes:
            return False
        elif isinstance(command, commands.Assign):
            if command.indices is not None or command.mode not in WHOLE:
                return False
        elif isinstance(command, commands.CallFunction) and command.report_decisions:
            return False
        fetched = fetched or isinstance(command, commands.Fetch)
        if fetched and isinstance(command, commands.Constant):  # whose numbers may be those that were just read
            return False
    return tapes.issubset({*batch.releases, *batch.temporaries})


def _is_worth_while(todo: Sequence[Any]) -> bool:
    ops = sum([isinstance(command, commands.Call | commands.CallFunction) for command in todo])
    return ops >= _FEWEST or any(isinstance(command, commands.Gradient) for command in todo)
