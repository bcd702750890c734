"""Structure alone: which ops were recorded, who is watched, where tapes are active. No arrays.

The engine, which has arrays, and an SDK that has only specs run this same code, so that "is this watched?", "will this
gradient be None?" and "why?" have one answer. What passes through here has `uid` (which value it is) and `spec`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

from teletape_engine.catalogue.op import CATALOGUE, Bound, Plan
from teletape_engine.errors import TapeStateError
from teletape_engine.recording.provenance import Departures, Event, Trail, Witness
from teletape_engine.spec import WEAK, Number, Spec, Weak

if TYPE_CHECKING:
    from teletape_engine.recording.accumulators import Accumulator

Uid: TypeAlias = int
new_uid: Callable[[], Uid] = itertools.count(1).__next__

#: One recorded call: plan, uids of the inputs (None: a number), uid of the result, what is kept, the caller's line.
#: A plain tuple: it is made for every op of every tape, and a class costs four times as much.
Node: TypeAlias = tuple[Plan, tuple[Uid | None, ...], Uid, tuple[Any, ...], Any]


#: The columns of a node that are structure: all but what is kept.
_STRUCTURE: Final = tuple(itemgetter(column) for column in (0, 1, 2, 4))


class Recorded(Protocol):
    """Anything that a tape can follow: a value with arrays in the engine, a handle with none in the SDK."""

    @property
    def uid(self) -> Uid:
        """Which value it is, unique in this process."""

    @property
    def spec(self) -> Spec:
        """Shape and dtype."""

    def alias(self, uid: Uid) -> Self:
        """The same contents as another value: what a variable's read gives."""


class Literal:
    """A Python number among an op's inputs. `array` is the number: forward functions take it as it is."""

    __slots__ = ("array", "spec")
    uid: Final = None

    def __init__(self, number: Number) -> None:
        self.array = number
        self.spec: Weak = WEAK[number.__class__]

    def __repr__(self) -> str:
        return repr(self.array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (self.spec, self.array) == (other.spec, other.array)

    def __hash__(self) -> int:
        return hash((self.spec, self.array))


class Variable:
    """A mutable slot: its uid stands for the variable as a source, its value changes with each version.

    Attributes:
        uid: Which variable.
        value: What it holds now.
        version: Raised by each assignment.
        trainable: Whether tapes watch it when it is read.
        name: A label for people.
        owner: A weak reference to the object that stands for the variable in a program, if any.
    """

    __slots__ = ("name", "owner", "trainable", "uid", "value", "version")

    def __init__(self, value: Any, *, trainable: bool, name: str | None = None, uid: Uid | None = None) -> None:
        self.value = value
        self.name = name
        self.owner: Callable[[], Any] | None = None
        self.trainable = trainable
        self.version = 0
        self.uid = new_uid() if uid is None else uid

    @property
    def spec(self) -> Spec:
        """Shape and dtype, fixed for life."""
        return self.value.spec  # type: ignore[no-any-return]  # a Recorded

    def assign(self, value: Any) -> None:
        """Replaces the value and raises the version."""
        self.value = value
        self.version += 1


class Tape:
    """What was recorded while it was active.

    Attributes:
        persistent: Answers more than once.
        watch_accessed: Watches trainable variables as they are read.
        nodes: Recorded calls in order.
        tracked: Uids that the tape follows: the watched ones and what was computed from them (a set with an order).
        leaves: The watched ones alone.
        variables: Watched variables by uid, in the order of first access. The tape keeps them alive.
        unregistered: Whether a node has an op with no gradient registered.
        sparse: Number of nodes whose gradient may be slices.
        consumed: A non-persistent tape that has answered.
        sign: Of the masks of its plans: -1 if it keeps every input, so that its calls can be run again.
        turns: What happened to it when, as (open, pause or reset; a uid): what was computed before a turn has a lower
            uid. Of very many the first and the latest.
        trails: Of the contexts in which it was open.
        declined: Calls and inputs for which the caller's own gradient function has given None.
        name: What a remote session knows it by, where there is one.
    """

    __slots__ = (
        "_skeleton",
        "consumed",
        "declined",
        "leaves",
        "name",
        "nodes",
        "persistent",
        "sign",
        "sparse",
        "tracked",
        "trails",
        "turns",
        "unregistered",
        "variables",
        "watch_accessed",
    )

    def __init__(self, *, persistent: bool = False, watch_accessed: bool = True, replayable: bool = False) -> None:
        self.persistent = persistent
        self.sign = -1 if replayable else 1
        self.watch_accessed = watch_accessed
        self.consumed = False
        self.name: Any = None
        self.turns: list[tuple[str, Uid]] = []
        self.trails: list[Trail] = []
        self.declined: set[tuple[Bound, int]] = set()
        self.clear()

    def clear(self) -> None:
        """Forgets everything recorded and watched."""
        self.nodes: list[Node] = []
        self.tracked: dict[Uid | None, None] = {}
        self.leaves: set[Uid] = set()
        self.variables: dict[Uid, Variable] = {}
        self.unregistered = False
        self.sparse = 0
        self._skeleton: tuple[list[Any], ...] = ()

    def consume(self) -> None:
        """It answers now, and no more; its structure stays, for explanations and pictures."""
        self.consumed = True
        # By column: no object for the garbage collector to follow, where a tuple a node cost it 0.6 µs each.
        self._skeleton = tuple([list(map(column, self.nodes)) for column in _STRUCTURE])

    def free(self) -> None:
        """Lets go of what a consumed tape kept to answer; structure, leaves and variables stay."""
        self.nodes = []
        self.tracked = {}

    @property
    def replayable(self) -> bool:
        """Whether its calls can be run again."""
        return self.sign < 0

    @property
    def length(self) -> int:
        """How many calls it has recorded."""
        return len(self._skeleton[0]) if self.consumed else len(self.nodes)

    def structure(self) -> list[Node]:
        """What was recorded, in order; of a consumed tape without anything kept."""
        if not self.consumed:
            return self.nodes
        plans, inputs, outputs, wheres = self._skeleton
        return list(zip(plans, inputs, outputs, itertools.repeat(()), wheres, strict=False))

    def turned(self, how: str) -> None:
        """Notes that it was opened, paused or reset now."""
        self.turns.append((how, new_uid()))
        if len(self.turns) > _TURNS:
            del self.turns[1 : _TURNS // 2 | 1]  # in pairs: what is left still alternates

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A block behind which the tape is as it was: what it recorded there is forgotten."""
        length, unregistered, sparse = len(self.nodes), self.unregistered, self.sparse
        try:
            yield
        finally:
            for node in self.nodes[length:]:
                self.tracked.pop(node[2], None)
            del self.nodes[length:]
            self.unregistered, self.sparse = unregistered, sparse

    def watch(self, value: Recorded | Variable) -> None:
        """Follows `value` from now on; without effect for dtypes that have no gradient."""
        if isinstance(value, Variable):
            self.variables.setdefault(value.uid, value)
        if value.spec.differentiable:
            self.tracked[value.uid] = None
            self.leaves.add(value.uid)

    def watches(self, variable: Variable) -> bool:
        """Whether reading `variable` is recorded here; a first access that is, is remembered."""
        if variable.uid in self.variables:
            return True
        if self.watch_accessed and variable.trainable:
            self.watch(variable)
            return True
        return False


_IDENTITY: Final = "identity"
_TURNS: Final = 4096


class Context(Witness):
    """Where tapes and accumulators are active: one per thread or async task of an SDK, one per REST request.

    Attributes:
        tapes: The active ones, in the order they became so. They may leave in any order.
        accumulators: The active ones, likewise.
    """

    def __init__(self) -> None:
        super().__init__(Departures(new_uid))
        self.tapes: list[Tape] = []
        self.accumulators: list[Accumulator] = []
        self._opened: list[Tape | Accumulator] = []  # both, in one order
        self._outside: dict[Accumulator, tuple[list[Tape], list[Accumulator]]] = {}  # `outside` of each
        self._reads: dict[Uid, tuple[int, Any]] = {}

    @property
    def recorded(self) -> bool:
        """Whether anything here follows what runs."""
        return bool(self.tapes or self.accumulators)

    def open(self, tape: Tape) -> None:
        """Makes `tape` active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if tape in self.tapes:
            raise TapeStateError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape."
            )
        self.tapes.append(tape)
        self._opened.append(tape)
        tape.turned("open")
        if all(one is not self.trail for one in tape.trails):
            tape.trails.append(self.trail)
        self.turn()

    def pause(self, tape: Tape) -> None:
        """Ends the recording; what was recorded stays.

        Raises:
            TapeStateError: It is not active here.
        """
        if tape not in self.tapes:
            raise TapeStateError("Tape is not recording.")
        self.tapes.remove(tape)
        self._opened.remove(tape)
        tape.turned("pause")
        self.turn()

    def accumulate(self, accumulator: Accumulator) -> None:
        """Makes an accumulator active, the first time or again.

        Raises:
            TapeStateError: It is active here already.
        """
        if accumulator in self.accumulators:
            raise TapeStateError("Accumulator is already recording.")
        self.accumulators.append(accumulator)
        self._opened.append(accumulator)
        self.turn()

    def leave(self, accumulator: Accumulator) -> None:
        """Ends its following; the tangents stay.

        Raises:
            TapeStateError: It is not active here.
        """
        if accumulator not in self.accumulators:
            raise TapeStateError("Accumulator is not recording.")
        self.accumulators.remove(accumulator)
        self._opened.remove(accumulator)
        self.turn()

    def opened(self) -> list[Tape | Accumulator]:
        """What is active, in the order in which it became so."""
        return list(self._opened)

    def outside(self, accumulator: Accumulator) -> tuple[list[Tape], list[Accumulator]]:
        """Those that became active before an active accumulator: they see how its tangents are computed."""
        found = self._outside.get(accumulator)
        if found is None:
            outer = self._opened[: self._opened.index(accumulator)]
            tapes = [one for one in outer if isinstance(one, Tape)]
            found = self._outside[accumulator] = tapes, [one for one in outer if not isinstance(one, Tape)]
        return found

    def reset(self, tape: Tape) -> None:
        """Forgets all that the active tape recorded and watched, and goes on.

        Raises:
            TapeStateError: It is not active here.
        """
        self.pause(tape)
        tape.turned("reset")
        for plan, inputs, output, _, where in tape.nodes:
            read = None if inputs[0] is None else tape.variables.get(inputs[0])
            self.trail.append(
                (plan.bound, inputs, output, where) if read is None else (Event.READ, inputs, output, read.name)
            )
        tape.clear()
        self.open(tape)

    def watch(self, tape: Tape, values: Sequence[Recorded | Variable]) -> None:
        """Has `tape` follow `values`; reads of a variable from now on are recorded anew."""
        for value in values:
            tape.watch(value)
        self.turn()

    def turn(self) -> None:
        """Begins a new epoch: the next read of each variable is a node of its own."""
        self._reads.clear()
        self._outside.clear()

    def reads(self) -> list[Any]:
        """The variables' values read in this epoch: what a tape records of them next would be these."""
        return [value for _, value in self._reads.values()]

    def read(self, variable: Variable) -> Any:
        """The variable's value as an op's input: inside tapes a node of its own, one per epoch and version."""
        if not self.tapes and not self.accumulators:
            self.trail.append((Event.READ, (variable.uid,), variable.value.uid, variable.name))
            return variable.value
        known = self._reads.get(variable.uid)
        if known is not None and known[0] == variable.version:
            return known[1]
        value = variable.value.alias(new_uid())
        plan = None
        for tape in self.tapes:
            if tape.watches(variable) and value.spec.differentiable:
                plan = plan or CATALOGUE[_IDENTITY].call((value.spec,)).plan(1)
                kept = (value,) if tape.replayable else ()
                tape.nodes.append((plan, (variable.uid,), value.uid, kept, self.here()))
                tape.tracked[value.uid] = None
        if plan is None:
            self.trail.append((Event.READ, (variable.uid,), value.uid, variable.name))
        for accumulator in self.accumulators:
            accumulator.read(variable, value)
        self._reads[variable.uid] = (variable.version, value)
        return value


def record(
    tapes: Sequence[Tape],
    bound: Bound,
    inputs: Sequence[Any],
    result: Any,
    where: Any = None,
    trail: Trail | None = None,
) -> None:
    """Notes one call on each tape that follows one of its inputs; the result is followed from then on.

    What a tape does not follow, or no tape is there to follow, goes to the trail.
    """
    uids = tuple([value.uid for value in inputs])
    if not (tapes and bound.followed):
        if trail is not None:
            trail.append((bound, uids, result.uid, where))
        return
    for tape in tapes:
        tracked = tape.tracked
        mask, bit = 0, 1
        for uid in uids:
            if uid in tracked:
                mask |= bit
            bit += bit
        if mask:
            mask *= tape.sign
            plan = bound.plans.get(mask) or bound.plan(mask)
            tape.nodes.append((plan, uids, result.uid, plan.keep((*inputs, result)), where))
            tracked[result.uid] = None
            if plan.unregistered:
                tape.unregistered = True
            elif plan.sparse:
                tape.sparse += 1
        elif trail is not None:
            trail.append((bound, uids, result.uid, where))
