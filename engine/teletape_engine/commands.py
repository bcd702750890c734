"""The closed vocabulary of a batch: one record a command, with its own check. docs/protocol.md is its page.

Records hold canonical Python values: ids are `int` or `str`, numbers among inputs are `Literal`, tensors are NumPy
arrays. How they look as bytes or as JSON is the wire's business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from teletape_engine.graph import Literal

Id: TypeAlias = int | str
Tensor: TypeAlias = np.ndarray[Any, Any]
Input: TypeAlias = Id | Literal | Tensor


class Command:
    """Base of all commands.

    `verb` is the name on the wire. `structural` commands happen even after a failure, so that both sides agree on what
    is open; all others are skipped from the failing one on.
    """

    __slots__ = ()
    verb: ClassVar[str]
    structural: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Put(Command):
    """The caller's tensor becomes the value `id`."""

    verb = "put"
    id: Id
    value: Tensor | Literal


@dataclass(frozen=True, slots=True)
class MakeVariable(Command):
    """A variable `id` with an initial value. `name` is a label for people."""

    verb = "variable"
    id: Id
    value: Input
    trainable: bool = True
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Assign(Command):
    """Gives a variable its next version: `mode` is set, add or sub. Shape and dtype stay."""

    verb = "assign"
    variable: Id
    value: Input
    mode: str = "set"


@dataclass(frozen=True, slots=True)
class Call(Command):
    """One op. A variable among the inputs is read. `where` is the caller's line, opaque."""

    verb = "op"
    op: str
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None


@dataclass(frozen=True, slots=True)
class TapeOpen(Command):
    """A new tape `id`, active in the current context."""

    verb = "tape.open"
    structural = True
    id: Id
    persistent: bool = False
    watch_accessed: bool = True


@dataclass(frozen=True, slots=True)
class TapeWatch(Command):
    """The tape follows these values and variables from now on."""

    verb = "tape.watch"
    structural = True
    tape: Id
    values: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class TapePause(Command):
    """The tape stops recording; what it holds stays."""

    verb = "tape.pause"
    structural = True
    tape: Id


@dataclass(frozen=True, slots=True)
class TapeResume(Command):
    """The tape records again, in the current context."""

    verb = "tape.resume"
    structural = True
    tape: Id


@dataclass(frozen=True, slots=True)
class TapeReset(Command):
    """The active tape forgets everything and goes on recording."""

    verb = "tape.reset"
    structural = True
    tape: Id


@dataclass(frozen=True, slots=True)
class ContextSwitch(Command):
    """The commands that follow belong to this context (a thread, an async task, a request)."""

    verb = "context.switch"
    structural = True
    context: Id


@dataclass(frozen=True, slots=True)
class Gradient(Command):
    """Cotangents of `sources` from `targets`; an id in `outputs` for each source (null: not wanted under an id).

    `seeds`: a cotangent for each target, null for ones. `unconnected`: none or zero. `predicted`: the kinds (none,
    dense, slices) that the caller foresees; the tape finding others is a StructureMismatchError.
    """

    verb = "gradient"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    seeds: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Declare(Command):
    """Declares that ops of TensorFlow's type `no_gradient` have no gradient, for the session."""

    verb = "declare"
    structural = True
    no_gradient: str


@dataclass(frozen=True, slots=True)
class DefineProgram(Command):
    """A saved function `id`: named inputs, op calls on them in order, named outputs."""

    verb = "program"
    id: Id
    inputs: tuple[str, ...]
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallProgram(Command):
    """Runs a program on values; its ops are recorded as if they stood here."""

    verb = "call"
    program: Id
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Part(Command):
    """Names a part of a slices value: `part` is values or indices; `output` becomes its id."""

    verb = "part"
    id: Id
    part: str
    output: Id


@dataclass(frozen=True, slots=True)
class Fetch(Command):
    """The value's numbers into the answer: all of them, or at most `elements` as a preview."""

    verb = "fetch"
    id: Id
    elements: int | None = None


COMMANDS: Final[dict[str, type[Command]]] = {cls.verb: cls for cls in Command.__subclasses__()}


@dataclass(frozen=True, slots=True)
class Batch:
    """An ordered list of commands, and the ids released behind them.

    An id in `releases` dies at its last mention among the commands. `client`, `seq` and `nonce` identify the batch for
    retries; client 0 keeps no sequence.
    """

    commands: tuple[Command, ...]
    releases: tuple[Id, ...] = ()
    client: int = 0
    seq: int = 0
    nonce: bytes = b""


def mentions(command: Command) -> Iterator[Id]:
    """Every id that the command names, whether it uses it or makes it."""
    for name in _NAMING[command.verb]:
        value = getattr(command, name)
        for one in value if value.__class__ is tuple else (value,):
            if one.__class__ is int or one.__class__ is str:
                yield one


#: The fields of each command that hold ids, by their annotation.
_NAMING: Final = {
    verb: tuple(f.name for f in dataclasses.fields(cls) if "Id" in str(f.type) or "Input" in str(f.type))  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def outputs(command: Command) -> tuple[Id, ...]:
    """The ids that the command makes."""
    match command:
        case Put() | MakeVariable() | DefineProgram() | TapeOpen():
            return (command.id,)
        case Part():
            return (command.output,)
        case Call() | CallProgram() | Gradient():
            return tuple(one for one in command.outputs if one is not None)
    return ()
