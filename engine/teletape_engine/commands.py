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
ProgramId: TypeAlias = Id  #: A program of the session, also among the steps of another program.
Tensor: TypeAlias = np.ndarray[Any, Any]
Input: TypeAlias = Id | Literal | Tensor


class Command:
    """Base of all commands.

    `verb` is the name on the wire. `structural` commands happen even after a failure, so that both sides agree on what
    is open; all others are skipped from the failing one on. `step`: it may stand in a program, where ids of values are
    names inside the program.
    """

    __slots__ = ()
    verb: ClassVar[str]
    structural: ClassVar[bool] = False
    step: ClassVar[bool] = False


Step: TypeAlias = Command  #: One whose class says `step`.


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
    """Gives a variable its next version; shape and dtype stay. `mode` is set, add or sub.

    With `indices` a part of it is changed, and only that travels: scatter_update, _add, _sub, _mul, _div, _min, _max
    (rows), scatter_nd_update, _add, _sub, _min, _max (places), slice. See `teletape_engine.scatter`.
    """

    verb = "assign"
    step = True
    variable: Id
    value: Input
    mode: str = "set"
    indices: Input | None = None


@dataclass(frozen=True, slots=True)
class Call(Command):
    """One op. A variable among the inputs is read. `where` is the caller's line, opaque."""

    verb = "op"
    step = True
    op: str
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None


@dataclass(frozen=True, slots=True)
class TapeOpen(Command):
    """A new tape `id`, active in the current context.

    A `replayable` one keeps every input of what it records, so that tape.check_gradients can run it again.
    """

    verb = "tape.open"
    structural = True
    id: Id
    persistent: bool = False
    watch_accessed: bool = True
    replayable: bool = False


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
class TapeDescribe(Command):
    """Answers what the tape is, the bytes that it keeps, and those that its end would free.

    `along`: integer ids whose release goes along with the tape's, as a tensor: names of what the caller holds for it.
    """

    verb = "tape.describe"
    tape: Id
    along: Tensor | Literal | None = None


@dataclass(frozen=True, slots=True)
class TapeGraph(Command):
    """Answers the tape as a diagram of at most `nodes` nodes (null: 2000): what it watched, its calls, what they keep.

    With `targets` and `sources` the gradient's path is marked, and the cut that makes it none.
    """

    verb = "tape.graph"
    tape: Id
    targets: tuple[Id, ...] = ()
    sources: tuple[Id, ...] = ()
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class TapeCheckGradients(Command):
    """Answers how a replayable tape's gradients compare with differences of its calls, run again; it stays as it is.

    `settings`: entries, seed, step, rtol, atol.
    """

    verb = "tape.check_gradients"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckGradients(Command):
    """Answers how a program's derivatives at `inputs` compare with differences of it. `settings`: as of the tape's."""

    verb = "check_gradients"
    program: Id
    inputs: tuple[Input, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


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
    dense, slices) that the caller foresees; finding others is a StructureMismatchError. `more`: another question
    to the tape follows, so that one which is not persistent is not used up yet.
    """

    verb = "gradient"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    seeds: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class Jacobian(Command):
    """The derivatives of each element of `target`: [*target, *source] for each source, dense.

    `max_bytes` bounds the memory of the cotangents on their way, and `max_rows` how many go at once. `outputs`,
    `unconnected`, `predicted` and `more` as in gradient. `customs`: what custom.program made for the calls between.
    """

    verb = "jacobian"
    tape: Id
    target: Id
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    max_rows: int | None = None
    predicted: tuple[str, ...] | None = None
    more: bool = False
    customs: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchJacobian(Command):
    """The Jacobian of each example: [b, *y, *x] for a target [b, *y] and a source [b, *x]; zeros if not connected.

    `unconnected`: the zeros have the target's dtype (none) or the source's (zero). Other fields as in jacobian.
    """

    verb = "batch_jacobian"
    tape: Id
    target: Id
    source: Id
    output: Id
    unconnected: str = "none"
    max_bytes: int | None = None
    max_rows: int | None = None
    more: bool = False
    customs: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Vjps(Command):
    """The gradients for k cotangents at once: [k, *source] for each source, dense.

    `seeds`: for each target a stack [k, *target], null for ones. Other fields as in jacobian.
    """

    verb = "vjps"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    seeds: tuple[Input | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    max_rows: int | None = None
    predicted: tuple[str, ...] | None = None
    more: bool = False
    customs: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Hessian(Command):
    """The second derivatives of the targets' sum: a block [*source i, *source j] for each pair of sources.

    `outputs` and `predicted` run over j within i. Other fields as in jacobian.
    """

    verb = "hessian"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    max_bytes: int | None = None
    max_rows: int | None = None
    predicted: tuple[str, ...] | None = None
    more: bool = False
    customs: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Hvp(Command):
    """The Hessian of the targets' sum times a vector: [*source] for each source, dense.

    `vectors`: the vector's part for each source. Other fields as in gradient.
    """

    verb = "hvp"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    vectors: tuple[Input, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None
    more: bool = False
    customs: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class AccumulatorOpen(Command):
    """A new forward accumulator `id`, active in the current context, with a tangent for each primal."""

    verb = "accumulator.open"
    structural = True
    id: Id
    primals: tuple[Id, ...]
    tangents: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class AccumulatorClose(Command):
    """The accumulator follows no more ops; the tangents that it has stay."""

    verb = "accumulator.close"
    structural = True
    accumulator: Id


@dataclass(frozen=True, slots=True)
class AccumulatorResume(Command):
    """The accumulator follows ops again, in the current context, and from here on these primals too."""

    verb = "accumulator.resume"
    structural = True
    accumulator: Id
    primals: tuple[Id, ...] = ()
    tangents: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True)
class Jvp(Command):
    """The tangents of `targets`; an id in `outputs` for each (null: not wanted).

    `unconnected` and `predicted` as in `Gradient`.
    """

    verb = "jvp"
    accumulator: Id
    targets: tuple[Id, ...]
    outputs: tuple[Id | None, ...]
    unconnected: str = "none"
    predicted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Explain(Command):
    """Why the gradient of the targets' sum is what it is for each source: reasons as facts. The tape stays as it is."""

    verb = "explain"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class Declare(Command):
    """For the session: ops of TensorFlow's type `no_gradient` have no gradient; of `registered`, one of the caller's.

    The latter is a function of the caller's: a tape that holds such an op is asked by backward.begin.
    """

    verb = "declare"
    structural = True
    no_gradient: str | None = None
    registered: str | None = None


@dataclass(frozen=True, slots=True)
class Custom(Command):
    """The values `outputs`, each just made by an identity, come from `inputs` by a function with a gradient of its own.

    Active tapes that follow an input go through it from now on. `tag` is what a backward pass will call it by, `label`
    a name for people. The function, and that which makes its gradient, stay with the caller.
    """

    verb = "custom"
    inputs: tuple[Id, ...]
    outputs: tuple[Id, ...]
    tag: Id
    label: str = "custom"
    where: str | None = None


@dataclass(frozen=True, slots=True)
class CustomProgram(Command):
    """What questions that do not stop (jacobian, hvp, …) are to do at the custom call `tag`; they name it in `customs`.

    The program is as of `custom.call`; `inputs`: what else it takes.
    """

    verb = "custom.program"
    id: Id
    tag: Id
    program: ProgramId
    inputs: tuple[Input, ...]
    gives: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class BackwardBegin(Command):
    """A gradient as a pass `id`, that stops wherever a function of the caller's makes the cotangents.

    Fields as of `gradient`. It answers, as `backward.give` does, where it stands: the call's tag and function (or the
    op's type), and the kind of each of its results' cotangents; or that it is through.
    """

    verb = "backward.begin"
    id: Id
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    seeds: tuple[Input | None, ...] | None = None
    unconnected: str = "none"
    more: bool = False


@dataclass(frozen=True, slots=True)
class BackwardTo(Command):
    """Names what the pass hands out where it stands: the cotangents of the call's results (zeros where nothing came).

    `tag`: the call at which the caller takes it to be; another is a StructureMismatchError. `kept`: ids for the inputs
    and the result of an op whose gradient was declared `registered`; null: not wanted.
    """

    verb = "backward.to"
    id: Id
    outputs: tuple[Id | None, ...]
    tag: Id | None = None
    kept: tuple[Id | None, ...] = ()


@dataclass(frozen=True, slots=True)
class BackwardGive(Command):
    """The cotangents of the call's inputs, null for none: the pass goes on to its next stop, or through."""

    verb = "backward.give"
    id: Id
    cts: tuple[Input | None, ...]


@dataclass(frozen=True, slots=True)
class BackwardEnd(Command):
    """What the pass, once through, found for its sources, under the ids in `outputs`; `predicted` as of `gradient`."""

    verb = "backward.end"
    id: Id
    outputs: tuple[Id | None, ...]
    predicted: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MakeSlices(Command):
    """Slices `id` of two values: row `values[k]` belongs at row `indices[k]` of an array of `rows` rows."""

    verb = "slices"
    id: Id
    values: Id
    indices: Id
    rows: int


@dataclass(frozen=True, slots=True)
class DefineProgram(Command):
    """A saved function `id`: named inputs, steps on them in order, named outputs.

    A step is a command (op, assign, call, …) whose values are named inside the program; programs that it takes are the
    session's. An input may stand for a variable: then a step that names it reads it, in order, and `assign` writes it.
    """

    verb = "program"
    id: Id
    inputs: tuple[str, ...]
    calls: tuple[Step, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallProgram(Command):
    """Runs a program on values and variables; its ops are recorded as if they stood here."""

    verb = "call"
    step = True
    program: ProgramId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    tell: bool = False


@dataclass(frozen=True, slots=True)
class CustomCall(Command):
    """As `custom`, where a program makes the cotangents: no pass stops at it.

    `inputs`: what tapes follow the call by, then its `results` as they were computed, then what else the program takes;
    `outputs`: those results. The program takes a cotangent of each result, then that; it gives a cotangent for each
    input of the call that is marked in `gives`.
    """

    verb = "custom.call"
    step = True
    program: ProgramId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    gives: tuple[bool, ...]
    results: int = 1
    label: str = "custom"


@dataclass(frozen=True, slots=True)
class While(Command):
    """Runs `body` on the loop's values as long as `cond` of them is true, at most `maximum_iterations` times.

    `inputs`: the values, then `captured` others that go with every trip. Both programs take all of them; `cond` gives a
    scalar bool or integer, `body` the next values, of the same shapes and dtypes. `outputs`: the values at the end, and
    one more id, if given, for the number of trips. `tell`: answer what was decided.
    """

    verb = "while"
    step = True
    cond: ProgramId
    body: ProgramId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    captured: int = 0
    maximum_iterations: int | None = None
    tell: bool = False


@dataclass(frozen=True, slots=True)
class Cond(Command):
    """Runs one of the `branches` on all `inputs` but the first, which chooses it.

    A scalar bool: true is the first branch, false the second. An integer: the branch of that number, the last where
    there is none. The results of all have the same shapes and dtypes. `tell`: answer what was decided.
    """

    verb = "cond"
    step = True
    branches: tuple[ProgramId, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    tell: bool = False


@dataclass(frozen=True, slots=True)
class Scan(Command):
    """Runs `body` once for each element along axis 0, from the first to the last, or in `reverse`.

    `inputs`: the `carried` values, arrays of elements, then `captured` others. The body takes what is carried, an
    element of each array, and the others; it gives what is carried next, and any number of results. `outputs`: what is
    carried at the end, and each result stacked along a new axis 0. `length`: where there are no arrays of elements.
    `tell`: answer what was decided. `together`: all elements at once by the ops' batch rules, where nothing is carried
    and every step has one.
    """

    verb = "scan"
    step = True
    body: ProgramId
    inputs: tuple[Input, ...]
    outputs: tuple[Id, ...]
    carried: int = 0
    captured: int = 0
    reverse: bool = False
    length: int | None = None
    tell: bool = False
    together: bool = False


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
    if isinstance(command, DefineProgram):
        for step in command.calls:
            yield from programs(step)
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


def programs(command: Command) -> Iterator[Any]:
    """The programs that the command takes."""
    for name in TAKES[command.verb]:
        value = getattr(command, name)
        yield from value if value.__class__ is tuple else (value,)


#: The fields of each command that hold programs. Null: a program that is not given.
TAKES: Final = {
    verb: tuple(f.name for f in dataclasses.fields(cls) if "ProgramId" in str(f.type))  # type: ignore[arg-type]
    for verb, cls in COMMANDS.items()
}


def outputs(command: Command) -> tuple[Id, ...]:
    """The ids that the command makes."""
    match command:
        case Put() | MakeVariable() | DefineProgram() | TapeOpen() | AccumulatorOpen():
            return (command.id,)
        case BackwardBegin() | MakeSlices() | CustomProgram():
            return (command.id,)
        case Part() | BatchJacobian():
            return (command.output,)
        case BackwardTo():
            return tuple(one for one in (*command.outputs, *command.kept) if one is not None)
        case While() | Cond() | Scan():
            return command.outputs
        case CustomCall() | BackwardEnd():
            return tuple(one for one in command.outputs if one is not None)
        case Call() | CallProgram() | Gradient() | Jvp() | Jacobian() | Vjps() | Hessian() | Hvp():
            return tuple(one for one in command.outputs if one is not None)
    return ()
