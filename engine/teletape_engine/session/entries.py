"""What an id of a session can name, how messages call it, and what is known of it as facts.

Tensors, sparse gradients, variables and functions are the engine's own objects; what has a lifetime is an `Entry`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.functions.function import Function
from teletape_engine.recording.context import Context
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid, Value, Variable


class Poison(NamedTuple):
    """Under the id of a value that a failed command should have made.

    Attributes:
        cause: The message of the failure.
    """

    cause: str


class Entry:
    """Something with a lifetime under an id: a tape, an accumulator, a backward pass, a custom gradient.

    Attributes:
        word: How messages call it.
        kind: How listings call it.
    """

    word: ClassVar[str]
    kind: ClassVar[str]

    def facts(self) -> dict[str, Any]:
        """What is known of it, as JSON-able facts."""
        return {}

    def values(self) -> Iterator[Any]:
        """The recorded values that it keeps alive."""
        return iter(())

    def tapes(self) -> Iterator[Tape]:
        """The tapes that it keeps alive."""
        return iter(())

    def followed(self) -> int:
        """The number of values that it follows."""
        return 0

    def close(self) -> None:
        """Ends its work: its id was released."""


@dataclass
class TapeEntry(Entry):
    """A tape.

    Attributes:
        tape: The tape.
        context: The context where it was last active.
        parents: Ids of the tapes that are to record what this tape answers.
        outputs: By id the uid of each tensor that was noted as an output; one that ended or was replaced may be there.
    """

    word = "a tape"
    kind = "tape"
    tape: Tape
    context: Context
    parents: tuple[Id, ...] = ()
    outputs: dict[Id, Uid] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """State, size, watched variables, parents."""
        tape = self.tape
        return {
            "persistent": tape.persistent,
            "watch_accessed": tape.watch_accessed,
            "recording": tape in self.context.tapes,
            "consumed": tape.consumed,
            "ops": tape.length,
            "watched_variables": [variable.name for variable in tape.variables.values()],
            "parents": list(self.parents),
        }

    def tapes(self) -> Iterator[Tape]:
        """The tape."""
        yield self.tape

    def followed(self) -> int:
        """The tensors noted as outputs."""
        return len(self.outputs)

    def close(self) -> None:
        """Stops recording."""
        if self.tape in self.context.tapes:
            self.context.pause(self.tape)


#: How messages call what is not an `Entry`.
_WORDS: Final = {
    Value: "a tensor",
    SlicesValue: "a sparse gradient",
    Poison: "a value that failed",
    Variable: "a variable",
    Function: "a function",
}


def word(kind: type[Any]) -> str:
    """How messages call a thing of this class."""
    return kind.word if issubclass(kind, Entry) else _WORDS[kind]


def tensor_uid(entry: Any) -> Uid | None:
    """The uid of a tensor or sparse gradient; None: it is neither."""
    if isinstance(entry, SlicesValue):
        entry = entry.values
    return entry.uid if isinstance(entry, Value) else None


def kind_created(entry: Any) -> str:
    """The kind of a thing as commands have it (`Command.creates`): a sparse gradient is a tensor."""
    if isinstance(entry, Entry):
        return entry.kind
    if isinstance(entry, Function):
        return "function"
    return "variable" if isinstance(entry, Variable) else "tensor"


def facts(name: Id, entry: Any) -> dict[str, Any]:
    """What is known of the thing under an id, as JSON-able facts with `id` and `kind`."""
    if isinstance(entry, Entry):
        return {"id": name, "kind": entry.kind, **entry.facts()}
    if isinstance(entry, Function):
        return {"id": name, "kind": "function", **entry.facts()}
    spec = entry.spec
    common = {"id": name, "kind": "tensor", "dtype": spec.dtype.name, "shape": list(spec.shape), "bytes": spec.nbytes}
    if isinstance(entry, Variable):
        return common | {
            "kind": "variable",
            "trainable": entry.trainable,
            "version": entry.version,
            "name": entry.name,
        }
    if isinstance(entry, SlicesValue):
        nbytes = entry.values.spec.nbytes + entry.indices.spec.nbytes
        return common | {"kind": "slices", "bytes": nbytes, "rows": entry.indices.spec.shape[0]}
    return common
