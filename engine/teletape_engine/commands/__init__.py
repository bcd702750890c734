"""The closed vocabulary of a batch: one record a command, with its own check. docs/protocol.md is its page.

Records hold canonical Python values: ids are `int` or `str`, numbers among inputs are `Literal`, tensors are NumPy
arrays. How they look as bytes or as JSON is the wire's business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from teletape_engine.commands.command import Command, FunctionId, Id, Input, Step, Tensor
from teletape_engine.commands.custom import (
    BackwardBegin,
    BackwardCotangents,
    BackwardEnd,
    BackwardResume,
    Custom,
    CustomFunction,
)
from teletape_engine.commands.programs import (
    CallFunction,
    CheckGradients,
    Cond,
    CustomCall,
    DefineFunction,
    Scan,
    While,
)
from teletape_engine.commands.questions import (
    BatchJacobian,
    Explain,
    Gradient,
    Hessian,
    Hvp,
    Jacobian,
    Jvp,
    Vjps,
)
from teletape_engine.commands.tapes import (
    AccumulatorClose,
    AccumulatorOpen,
    AccumulatorResume,
    ContextSwitch,
    Declare,
    TapeCheckGradients,
    TapeDescribe,
    TapeGraph,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
)
from teletape_engine.commands.values import Assign, Call, Constant, Fetch, MakeSlices, MakeVariable, SlicesComponent

__all__ = [
    "COMMANDS",
    "TAKES",
    "AccumulatorClose",
    "AccumulatorOpen",
    "AccumulatorResume",
    "Assign",
    "BackwardBegin",
    "BackwardCotangents",
    "BackwardEnd",
    "BackwardResume",
    "Batch",
    "BatchJacobian",
    "Call",
    "CallFunction",
    "CheckGradients",
    "Command",
    "Cond",
    "Constant",
    "ContextSwitch",
    "Custom",
    "CustomCall",
    "CustomFunction",
    "Declare",
    "DefineFunction",
    "Explain",
    "Fetch",
    "FunctionId",
    "Gradient",
    "Hessian",
    "Hvp",
    "Id",
    "Input",
    "Jacobian",
    "Jvp",
    "MakeSlices",
    "MakeVariable",
    "Scan",
    "SlicesComponent",
    "Step",
    "TapeCheckGradients",
    "TapeDescribe",
    "TapeGraph",
    "TapeOpen",
    "TapePause",
    "TapeReset",
    "TapeResume",
    "TapeWatch",
    "Tensor",
    "Vjps",
    "While",
    "mentions",
    "outputs",
    "programs_of",
]

_ORDER: Final = ("values", "tapes", "questions", "programs", "custom")  #: In which messages and pages list them.
COMMANDS: Final[dict[str, type[Command]]] = {
    cls.verb: cls
    for cls in sorted(Command.__subclasses__(), key=lambda cls: _ORDER.index(cls.__module__.rpartition(".")[2]))
}


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
    if isinstance(command, DefineFunction):
        for step in command.steps:
            yield from programs_of(step)
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


def programs_of(command: Command) -> Iterator[Any]:
    """The programs that the command takes."""
    for name in TAKES[command.verb]:
        value = getattr(command, name)
        yield from value if value.__class__ is tuple else (value,)


#: The fields of each command that hold programs. Null: a program that is not given.
TAKES: Final = {
    verb: tuple(f.name for f in dataclasses.fields(cls) if "FunctionId" in str(f.type))  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def outputs(command: Command) -> tuple[Id, ...]:
    """The ids that the command makes."""
    match command:
        case Constant() | MakeVariable() | DefineFunction() | TapeOpen() | AccumulatorOpen():
            return (command.id,)
        case BackwardBegin() | MakeSlices() | CustomFunction():
            return (command.id,)
        case SlicesComponent():
            return (command.output,)
        case BackwardCotangents():
            return tuple(one for one in (*command.outputs, *command.op_values) if one is not None)
        case While() | Cond() | Scan():
            return command.outputs
        case CustomCall() | BackwardEnd():
            return tuple(one for one in command.outputs if one is not None)
        case Call() | CallFunction() | Gradient() | Jvp() | Jacobian() | BatchJacobian() | Vjps() | Hessian() | Hvp():
            return tuple(one for one in command.outputs if one is not None)
    return ()
