"""Commands that open, change, inspect and check tapes, and that open and close forward accumulators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from teletape_engine.commands.base import Command, Id, Input, NewId, TensorOrNumber
from teletape_engine.records import record


@record(frozen=True, slots=True)
class TapeOpen(Command):
    """Opens a tape, which records in the current context.

    A `replayable` tape keeps every input of what it records, so that tape.check_gradients can run it again. `parents`
    are the tapes that are to record what this tape answers; the session only remembers them.
    """

    verb = "tape.open"
    creates = "tape"
    structural = True
    id: NewId
    persistent: bool = False
    watch_accessed: bool = True
    replayable: bool = False
    parents: tuple[Id, ...] = ()


@record(frozen=True, slots=True)
class TapeWatch(Command):
    """The tape watches these tensors and variables from now on."""

    verb = "tape.watch"
    structural = True
    tape: Id
    tensors: tuple[Id, ...]


@record(frozen=True, slots=True)
class TapePause(Command):
    """The tape stops recording; what it has recorded stays."""

    verb = "tape.pause"
    structural = True
    tape: Id


@record(frozen=True, slots=True)
class TapeResume(Command):
    """The tape records again, in the current context."""

    verb = "tape.resume"
    structural = True
    tape: Id


@record(frozen=True, slots=True)
class TapeReset(Command):
    """The active tape forgets everything and goes on recording.

    With `release_outputs` the tensors that are outputs of the tape (`tape.own`) end too, and their ids are free again.
    """

    verb = "tape.reset"
    structural = True
    tape: Id
    release_outputs: bool = False


@record(frozen=True, slots=True)
class TapeOwn(Command):
    """Notes tensors as outputs of the tape, which a reset can release; ids that name no tensor are skipped."""

    verb = "tape.own"
    structural = True
    tape: Id
    tensors: tuple[Id, ...]


@record(frozen=True, slots=True)
class TapeDescribe(Command):
    """Answers facts about the tape, the bytes that it keeps, and the bytes that its release would free.

    `also_released`: integer ids, as a tensor, that would be released with the tape.
    """

    verb = "tape.describe"
    tape: Id
    also_released: TensorOrNumber | None = None


@record(frozen=True, slots=True)
class TapeGraph(Command):
    """Answers the tape as a diagram of at most `nodes` nodes (null: 2000): what it watched, its calls, what they keep.

    With `targets` and `sources` it marks the path of the gradient, and the cut that makes the gradient none.
    """

    verb = "tape.graph"
    tape: Id
    targets: tuple[Id, ...] = ()
    sources: tuple[Id, ...] = ()
    nodes: int | None = None


@record(frozen=True, slots=True)
class TapeCheckGradients(Command):
    """Answers how a replayable tape's gradients compare with finite differences of its calls; the tape is unchanged.

    `settings`: entries, seed, step, rtol, atol.
    """

    verb = "tape.check_gradients"
    tape: Id
    targets: tuple[Id, ...]
    sources: tuple[Id, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@record(frozen=True, slots=True)
class AccumulatorOpen(Command):
    """Opens a forward accumulator, active in the current context, with a tangent for each primal."""

    verb = "accumulator.open"
    creates = "accumulator"
    structural = True
    id: NewId
    primals: tuple[Id, ...]
    tangents: tuple[Input, ...]


@record(frozen=True, slots=True)
class AccumulatorClose(Command):
    """The accumulator stops following ops; its tangents stay."""

    verb = "accumulator.close"
    structural = True
    accumulator: Id


@record(frozen=True, slots=True)
class AccumulatorResume(Command):
    """The accumulator follows ops again, in the current context, and has these primals in addition."""

    verb = "accumulator.resume"
    structural = True
    accumulator: Id
    primals: tuple[Id, ...] = ()
    tangents: tuple[Input, ...] = ()
