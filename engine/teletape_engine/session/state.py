"""What a session holds: values, variables, tapes and programs by id, contexts, and the count of their bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, overload

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine import arrays, commands
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.commands import Id
from teletape_engine.commands.results import Result
from teletape_engine.derivatives.query import Declarations
from teletape_engine.errors import (
    IdInUseError,
    InvalidArgumentError,
    PoisonedError,
    ReleasedIdError,
    UnknownIdError,
)
from teletape_engine.programs.program import Program
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Watch
from teletape_engine.recording.provenance import Departures, Trail
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, Variable
from teletape_engine.spec import Spec

CLIENT_BITS: Final = 40  #: An SDK's id is client << 40 | counter.
_OWN: Final = 1 << CLIENT_BITS  #: From here on ids are the clients' own. Below they are people's, in any order.
MAIN: Final = 0  #: The context in which every batch begins.

T = TypeVar("T")


class Poison(NamedTuple):
    """Stands under the id of a value that was never made."""

    cause: str


class Held:
    """Something with a lifetime under an id, beside values, variables and programs.

    Attributes:
        word: What messages call it.
        kind: What listings call it.
    """

    word: ClassVar[str]
    kind: ClassVar[str]

    def facts(self) -> dict[str, Any]:
        """What is known of it, as JSON-able facts."""
        return {}

    def alive(self) -> Iterator[Any]:
        """The values that it keeps."""
        return iter(())

    def end(self) -> None:
        """Its id is released."""


@dataclass
class HeldTape(Held):
    """A tape, and the context where it was last active."""

    word = "a tape"
    kind = "tape"
    tape: Tape
    context: Executor

    def facts(self) -> dict[str, Any]:
        """State, size, watched variables."""
        tape = self.tape
        return {
            "persistent": tape.persistent,
            "watch_accessed": tape.watch_accessed,
            "recording": tape in self.context.tapes,
            "consumed": tape.consumed,
            "ops": tape.length,
            "watched_variables": [one.name for one in tape.variables.values()],
        }

    def end(self) -> None:
        """It stops recording."""
        if self.tape in self.context.tapes:
            self.context.pause(self.tape)


class State:
    """One tenant's things on one device.

    Args:
        device: cpu, gpu or gpu:N.
        memory_limit: Bytes that the arrays may take; None for no limit.
        most_iterations: Iterations that the loops of one command may take; None for no limit.

    Attributes:
        backend: The device's arrays.
        memory: What they may take, and take.
        watch: Asks whether a batch goes on.
        declarations: What was declared about op types that have no gradient.
        departures: Reads of values, for explanations.
        numbers: Those of one element each: empty until there is one.
        current: The context that the commands belong to.
        results: What the commands of this batch have answered so far.
        index: The command that is being executed.

    Raises:
        UnimplementedError: No such device here.
    """

    def __init__(
        self, device: str = "cpu", *, memory_limit: int | None = None, most_iterations: int | None = None
    ) -> None:
        self.backend = arrays.backend(device)
        self.memory = Memory(memory_limit, self.bytes_in_use)
        self.watch = Watch(most_iterations)
        self.declarations = Declarations()
        self.departures = Departures()
        self.numbers = self.departures.numbers
        self.results: list[Result] = []
        self.index = 0
        self.names: dict[Id, Any] = {}
        self.released: set[Id] = set()
        self.latest = 0  # the highest integer id of this batch so far
        self._highest: dict[int, int] = defaultdict(int)
        self._contexts: dict[Id, Executor] = {}
        self.current = self.context(MAIN)

    def context(self, key: Id) -> Executor:
        """The context of that name, made when it is first asked for."""
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = Executor(self.backend, self.memory, self.watch)
            found.departures = self.departures
        return found

    def trails(self) -> list[Trail]:
        """What no tape followed, of every context."""
        return [one.trail for one in self._contexts.values()]

    # ---------------------------------------------------------------------------------------------------------- names
    def name(self, name: Id, thing: Any) -> None:
        """Puts a new thing under an id.

        Raises:
            IdInUseError: The id names something, or has.
        """
        if name in self.names:
            raise IdInUseError(f"the id {name!r} is in use: {word(type(self.names[name]))}; choose another", id=name)
        if name in self.released:
            raise IdInUseError(f"the id {name!r} was used before and released; choose another", id=name)
        if isinstance(name, int) and name > self.latest:
            self.latest = name
        self.names[name] = thing

    def note_highest(self) -> None:
        """An id of a client's own, up to the highest that it has used, that names nothing was released."""
        client = self.latest >> CLIENT_BITS
        self._highest[client] = max(self._highest[client], self.latest)
        self.latest = 0

    @overload
    def find(self, name: Id, kind: type[T]) -> T: ...
    @overload
    def find(self, name: Id, kind: tuple[type[Any], ...]) -> Any: ...
    def find(self, name: Id, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """What is under `name`.

        Raises:
            UnknownIdError, ReleasedIdError: Nothing is.
            PoisonedError: A value that was never made; with the first cause.
            InvalidArgumentError: Something of another kind.
        """
        thing = self.names.get(name)
        if isinstance(thing, kind):
            return thing
        if thing is None:
            self.note_highest()
            if name in self.released or (isinstance(name, int) and _OWN <= name <= self._highest[name >> CLIENT_BITS]):
                raise ReleasedIdError(f"the id {name!r} was released: its value is gone", id=name)
            raise UnknownIdError(f"unknown id {name!r}: nothing in this session has it", id=name)
        if isinstance(thing, Poison):
            raise PoisonedError(thing.cause, id=name)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(dict.fromkeys(word(one) for one in kinds))
        raise InvalidArgumentError(f"the id {name!r} is {word(type(thing))}, and {wanted} is needed", id=name)

    def input(self, given: commands.Input) -> Any:
        """A command's input as a recorded value: an id is looked up, a variable read, slices made dense."""
        if given.__class__ is int or given.__class__ is str:
            thing = self.names.get(given)
            if thing.__class__ is Value:
                return thing
            thing = self.find(given, (Value, Variable, SlicesValue))
            if isinstance(thing, Variable):
                return self.current.read(thing)
            return densify(thing, self.current)
        return given if isinstance(given, Literal) else self.current.constant(given)  # type: ignore[arg-type]  # no id

    def argument(self, given: commands.Input) -> Any:
        """As `input`, but a variable stays one: a program reads it where its steps do."""
        thing = self.names.get(given) if isinstance(given, int | str) else None
        return thing if thing.__class__ is Variable else self.input(given)

    def value(self, given: Any, like: Spec | None = None) -> Value:
        """An input as a value: a literal becomes an array, of the dtype of `like` if that is given."""
        return self.current.as_value(self.input(given), None if like is None else like.dtype)  # type: ignore[no-any-return]

    def release(self, name: Id) -> None:
        """Forgets a name. A tape stops recording; arrays that tapes or other values share stay."""
        thing = self.names.pop(name, None)
        if thing is None:
            return
        if isinstance(name, str) or name < _OWN:
            self.released.add(name)
        if isinstance(thing, Held):
            thing.end()

    def knows(self, name: Id) -> bool:
        """Whether the id names something, or has."""
        return name in self.names or name in self.released

    def take_back(self, names: Iterable[Id]) -> None:
        """Forgets names that nobody has been told, and what is under them: they are free again."""
        for name in names:
            thing = self.names.pop(name, None)
            if isinstance(thing, Held):
                thing.end()

    def host(self, value: Value) -> np.ndarray[Any, Any]:
        """The value's numbers on the host, row-major, read only."""
        return read_only(np.ascontiguousarray(self.backend.get(value.array)).reshape(value.spec.shape))

    def bytes_in_use(self) -> int:
        """Bytes of all arrays that names, tapes and kept answers hold alive, each buffer once."""
        base = self.backend.base
        buffers = dict(base(value.array) for value in self.alive() if not isinstance(value, Literal))
        buffers.update(CPU.base(array) for array in self.kept_arrays())
        return sum(buffers.values())

    def kept_arrays(self) -> Iterator[np.ndarray[Any, Any]]:
        """Arrays on the host that are kept beside what has a name."""
        return iter(())

    def alive(self) -> Iterator[Any]:
        """Every value that a name, a tape or a context keeps; some more than once."""
        tapes = []
        for context in self._contexts.values():
            tapes += context.tapes
            yield from context.reads()
        for thing in self.names.values():
            if isinstance(thing, Value):
                yield thing
            elif isinstance(thing, Variable):
                yield thing.value
            elif isinstance(thing, SlicesValue):
                yield thing.values
                yield thing.indices
            elif isinstance(thing, HeldTape):
                tapes.append(thing.tape)
            elif isinstance(thing, Program):
                yield from thing.held()
            elif isinstance(thing, Held):
                yield from thing.alive()
        for tape in {id(one): one for one in tapes}.values():
            for node in tape.nodes:
                yield from node[3]
            for variable in tape.variables.values():
                yield variable.value


#: What messages call each kind of thing that is no `Held`.
_WORDS: Final = {
    Value: "a value",
    SlicesValue: "slices",
    Poison: "a value that failed",
    Variable: "a variable",
    Program: "a program",
}


def word(kind: type[Any]) -> str:
    """What messages call a thing of this kind."""
    return kind.word if issubclass(kind, Held) else _WORDS[kind]


def sent_call_site(where: object) -> str | None:
    """A node's call site, if the caller sent one with the command."""
    return where if isinstance(where, str) else None


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view that nobody writes into."""
    array = array.view()
    array.flags.writeable = False
    return array
