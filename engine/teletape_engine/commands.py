"""The closed vocabulary of a batch: one record a command, with its own check. docs/protocol.md is its page.

Records hold canonical Python values: ids are `int` or `str`, numbers among inputs are `Literal`, tensors are NumPy
arrays. How they look as bytes or as JSON is the wire's business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from teletape_engine.errors import BadCommandError
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


def _id(value: Any) -> Id:
    if (isinstance(value, int) and not isinstance(value, bool) and value >= 0) or (isinstance(value, str) and value):
        return value
    raise TypeError("an id: a name, or an integer from 0 up")


def _name(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise TypeError("a name")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("true or false")


def _input(value: Any) -> Input:
    if isinstance(value, Literal | np.ndarray):
        return value
    try:
        return _id(value)
    except TypeError:
        raise TypeError("an id, a number or a tensor") from None


def _tensor(value: Any) -> Tensor | Literal:
    if isinstance(value, Literal | np.ndarray):
        return value
    raise TypeError("a number or a tensor {dtype, shape, data}")


def _call(value: Any) -> Call:
    if isinstance(value, Call):
        return value
    raise TypeError("an op call")


def _attrs(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return value
    raise TypeError("an object of attributes")


def _count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise TypeError("a count")


def _tuple(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def each(value: Any) -> tuple[Any, ...]:
        if isinstance(value, list | tuple):
            return tuple([read(one) for one in value])
        raise TypeError("a list, each " + _wanted(read))

    return each


def _wanted(read: Callable[[Any], Any]) -> str:
    try:
        read(object())
    except TypeError as error:
        return str(error)
    raise AssertionError("a reader that takes anything")


def _or_null(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def maybe(value: Any) -> Any:
        return None if value is None else read(value)

    return maybe


#: How a field is read, by its annotation.
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "Id": _id,
    "str": _name,
    "bool": _bool,
    "int": _count,
    "Input": _input,
    "Tensor | Literal": _tensor,
    "Mapping[str, Any]": _attrs,
    "tuple[Id, ...]": _tuple(_id),
    "tuple[str, ...]": _tuple(_name),
    "tuple[Input, ...]": _tuple(_input),
    "tuple[Id | None, ...]": _tuple(_or_null(_id)),
    "tuple[Input | None, ...]": _tuple(_or_null(_input)),
    "tuple[Call, ...]": _tuple(_call),
}


def reader(annotation: str) -> Callable[[Any], Any]:
    """The function that checks and canonicalises a field annotated so."""
    if annotation.endswith(" | None"):
        return _or_null(reader(annotation.removesuffix(" | None")))
    return _READERS[annotation]


_FIELDS: Final = {
    verb: {f.name: (reader(str(f.type)), f) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def fields(verb: str) -> tuple[str, ...]:
    """The field names of a command, in order: the wire's positional form.

    Raises:
        BadCommandError: There is no such command.
    """
    if verb not in _FIELDS:
        raise BadCommandError(f"unknown command {verb!r}: the commands are {', '.join(COMMANDS)}")
    return tuple(_FIELDS[verb])


def make(verb: str, given: Mapping[str, Any]) -> Command:
    """The command with these fields, checked.

    Raises:
        BadCommandError: An unknown command, or a field missing, unknown or of the wrong kind.
    """
    fields(verb)
    known = _FIELDS[verb]
    for name in given:
        if name not in known:
            raise BadCommandError(f"command {verb!r} has no field {name!r}; it takes: {', '.join(known)}")
    values: dict[str, Any] = {}
    for name, (read, declared) in known.items():
        if name in given:
            try:
                values[name] = read(given[name])
            except TypeError as error:
                found = type(given[name]).__name__
                raise BadCommandError(f"command {verb!r}, field {name!r} must be {error}; found {found}") from None
        elif declared.default is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
            raise BadCommandError(f"command {verb!r} needs the field {name!r}")
    return COMMANDS[verb](**values)
