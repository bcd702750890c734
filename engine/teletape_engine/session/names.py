"""What the ids of a session name: new things, released ids, and what a batch with `replace` puts in another's place."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from sys import getsizeof
from typing import Any, Final, TypeVar, overload

from teletape_engine.commands import Id
from teletape_engine.errors import (
    IdInUseError,
    InvalidArgumentError,
    PoisonedError,
    ReleasedIdError,
    UnknownIdError,
)
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.clients import CLIENT_BITS, FIRST_CLIENT_ID
from teletape_engine.session.entries import Entry, Poison, TapeEntry, kind_created, word

MOST_RELEASED: Final = 8192  #: Released ids that are known as such.
_LONG_ID: Final = 200  #: Characters; of longer ids it is not known whether they were released.
_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
RELEASED: Final = object()  #: What an id named that had been released.


class Replacements:
    """What the ids of one batch named before it replaced that.

    Args:
        undoable: Whether a failure gives the ids back what they named. Otherwise that ends at once.
    """

    def __init__(self, *, undoable: bool) -> None:
        self._undoable = undoable
        self._earlier: dict[Id, Any] = {}
        self._parents: list[tuple[TapeEntry, tuple[Id, ...]]] = []

    def note(self, name: Id, earlier: Any) -> None:
        """Notes that an id no longer names what it named: a thing, or `RELEASED`."""
        if self._undoable and name not in self._earlier:
            self._earlier[name] = earlier
        else:
            _close(earlier)

    def end_parent(self, name: Id, entries: Mapping[Id, Any]) -> None:
        """Notes that another tape gets an id: those whose parent the id named do not have that tape as a parent."""
        for entry in entries.values():
            if isinstance(entry, TapeEntry) and name in entry.parents:
                self._parents.append((entry, entry.parents))
                entry.parents = tuple([parent for parent in entry.parents if parent != name])

    def values(self) -> Iterator[Any]:
        """What is kept until the batch has succeeded or failed."""
        return iter(self._earlier.values())

    def end(self) -> None:
        """Ends what the batch has replaced: it has succeeded."""
        for earlier in self._earlier.values():
            _close(earlier)
        self._earlier = {}

    def undo(self, entries: dict[Id, Any], ended: Iterable[Id]) -> list[Id]:
        """Gives the ids back what they named, and returns those that had been released.

        Args:
            entries: Those of the session.
            ended: Ids that the batch was to release: they do not come back.
        """
        for tape, parents in reversed(self._parents):
            tape.parents = parents
        ended = set(ended)
        for name, earlier in self._earlier.items():
            if name in ended:
                _close(earlier)
                continue
            _close(entries.pop(name, None) if earlier is RELEASED else entries.get(name))
            if earlier is not RELEASED:
                entries[name] = earlier
        return [name for name, earlier in self._earlier.items() if earlier is RELEASED or name in ended]


def _close(entry: Any) -> None:
    if isinstance(entry, Entry):
        entry.close()


T = TypeVar("T")


class Names:
    """What the ids of a session name.

    Args:
        memory: Counts what the ids take.

    Attributes:
        memory: What arrays may take, and take.
        entries: What each id names.
        released: Ids that were released, except those of clients' own counters; the latest last. Of very many the
            latest are known; an earlier one names nothing, as if it never had.
        replacements: What the batch has replaced; None: it replaces nothing.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.entries: dict[Id, Any] = {}
        self.released: OrderedDict[Id, None] = OrderedDict()  # of a dict the first key is found in linear time
        self.replacements: Replacements | None = None
        self.latest = 0  # the highest integer id that this batch has made so far
        self._highest: dict[int, int] = {}  # by client

    def name(self, name: Id, entry: Any) -> None:
        """Puts a new thing under an id.

        Raises:
            IdInUseError: The id names something, or did, and the batch does not replace it.
        """
        if name in self.entries or name in self.released:
            self.check_new(name, kind_created(entry))
            self._vacate(name)
            if isinstance(entry, TapeEntry) and self.replacements is not None:
                self.replacements.end_parent(name, self.entries)
        if isinstance(name, str):
            self.memory.noted += getsizeof(name)
        elif name > self.latest:
            self.latest = name
        self.entries[name] = entry

    def id_of(self, entry: Any) -> Id | None:
        """The id of a thing, or None. Looks at every id."""
        return next((name for name, other in self.entries.items() if other is entry), None)

    def check_new(self, name: Id, kind: str) -> None:
        """Checks that a new thing of a kind can have an id.

        Raises:
            IdInUseError: The id names something, or did, and the batch does not replace it.
        """
        entry = self.entries.get(name)
        what = None if entry is None else word(type(entry))
        if self.replacements is None:
            if what is not None:
                raise IdInUseError(f"the id {name!r} is in use: {what}; choose another, or ask for `replace`", id=name)
            if name in self.released:
                raise IdInUseError(
                    f"the id {name!r} was used before and released; choose another, or ask for `replace`", id=name
                )
        elif isinstance(name, int) and name >= FIRST_CLIENT_ID and self.knows(name):
            raise IdInUseError(f"the id {name} is one that a client has counted, which nothing replaces", id=name)
        elif entry is not None and not isinstance(entry, Poison) and kind_created(entry) != kind:
            advice = "assign to it" if isinstance(entry, Variable) else "release it first"
            raise IdInUseError(
                f"the id {name!r} is {what}, which only its own kind replaces, and this is a {kind}: choose another "
                f"id, or {advice}",
                id=name,
            )

    def _vacate(self, name: Id) -> None:
        """Ends the use of an id that the batch gives to something else."""
        assert self.replacements is not None
        earlier = RELEASED if name in self.released else self.entries[name]
        self.released.pop(name, None)
        self.replacements.note(name, earlier)

    def poison_replaced(self, name: Id, kind: str, cause: str) -> None:
        """Puts a failure under an id that a new thing of a kind should have replaced, if it could have."""
        try:
            self.check_new(name, kind)
        except IdInUseError:
            return
        if name in self.entries or name in self.released:
            self._vacate(name)
        self.entries[name] = Poison(cause)

    def end_replaced(self, name: Id) -> None:
        """Ends what an id names that the batch was to replace, and for which it has nothing."""
        if self.replacements is not None and name in self.entries:
            self._vacate(name)
            del self.entries[name]
            self.note_released(name)

    def undo_replacements(self, ended: Iterable[Id]) -> None:
        """Gives the ids that the batch has replaced back what they named, but for those that it was to release."""
        if self.replacements is not None:
            for name in self.replacements.undo(self.entries, ended):
                self.note_released(name)
            for name in self.entries.keys() & self.released.keys():
                del self.released[name]

    def note_highest(self) -> None:
        """Remembers the highest id of this batch: a lower one of the same client that names nothing was released."""
        client = self.latest >> CLIENT_BITS
        if self.latest > self._highest.get(client, 0):
            if client not in self._highest and len(self._highest) >= MOST_RELEASED:
                del self._highest[next(iter(self._highest))]
            self._highest[client] = self.latest
        self.latest = 0

    @overload
    def find(self, name: Id, kind: type[T]) -> T: ...
    @overload
    def find(self, name: Id, kind: tuple[type[Any], ...]) -> Any: ...
    def find(self, name: Id, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """What the id names.

        Raises:
            UnknownIdError, ReleasedIdError: It names nothing.
            PoisonedError: It names a value that was never made; the message is the first cause.
            InvalidArgumentError: It names something of another kind.
        """
        entry = self.entries.get(name)
        if isinstance(entry, kind):
            return entry
        if entry is None:
            self.note_highest()
            if name in self.released or self._counted_by_client(name):
                raise ReleasedIdError(f"the id {name!r} was released: what it named is gone", id=name)
            number = f'; as a number it is {{"data": "{name}"}}' if name in _NUMBERS else ""
            raise UnknownIdError(f"unknown id {name!r}: nothing in this session has it{number}", id=name)
        if isinstance(entry, Poison):
            raise PoisonedError(entry.cause, id=name)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(dict.fromkeys(word(each) for each in kinds))
        raise InvalidArgumentError(f"the id {name!r} is {word(type(entry))}, expected {expected}", id=name)

    def knows(self, name: Id) -> bool:
        """Whether the id names something, or did."""
        return name in self.entries or name in self.released or self._counted_by_client(name)

    def _counted_by_client(self, name: Id) -> bool:
        """Whether a client has made the id, or a later one, from its own counter."""
        return isinstance(name, int) and FIRST_CLIENT_ID <= name <= self._highest.get(name >> CLIENT_BITS, 0)

    def release(self, name: Id) -> None:
        """Ends an id. A tape stops recording; arrays that tapes or other values share stay."""
        entry = self.entries.pop(name, None)
        if entry is None:
            return
        if name.__class__ is not int or name < FIRST_CLIENT_ID:
            self.note_released(name)
        if entry.__class__ is not Value and isinstance(entry, Entry):
            entry.close()

    def note_released(self, name: Id) -> None:
        """Remembers that an id was released."""
        if isinstance(name, str) and len(name) > _LONG_ID:
            return
        if len(self.released) >= MOST_RELEASED:
            self.released.popitem(last=False)
        self.released[name] = None

    def forget(self, names: Iterable[Id]) -> None:
        """Ends ids that no answer has named: they are free again."""
        for name in names:
            entry = self.entries.pop(name, None)
            if isinstance(entry, Entry):
                entry.close()

    def written_names(self) -> dict[str, list[Any]]:
        """The ids that named something, as JSON-able data for `read_names`."""
        return {"released": [*self.released], "highest": [[*pair] for pair in self._highest.items()]}

    def read_names(self, written: Mapping[str, list[Any]]) -> None:
        """Adds the ids of `written_names`."""
        self.released.update(dict.fromkeys(written["released"]))
        self._highest.update(dict(written["highest"]))

    def things(self) -> Iterator[Any]:
        """What ids name, and what they named until the batch replaced it, if that can come back."""
        yield from self.entries.values()
        if self.replacements is not None:
            yield from self.replacements.values()
