"""The life of tapes, accumulators and contexts, what is declared for them, and looks at them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from teletape_engine.commands.command import Command, Id, Input, Tensor
from teletape_engine.recording.values import Literal


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
    also_released: Tensor | Literal | None = None


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
class ContextSwitch(Command):
    """The commands that follow belong to this context (a thread, an async task, a request)."""

    verb = "context.switch"
    structural = True
    context: Id


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
class Declare(Command):
    """For the session: ops of TensorFlow's type `no_gradient` have no gradient; of `registered`, one of the caller's.

    The latter is a function of the caller's: a tape that holds such an op is asked by backward.begin.
    """

    verb = "declare"
    structural = True
    no_gradient: str | None = None
    registered: str | None = None
