"""What a program's results are connected to: TensorFlow's rule for calls of functions.

A call is one op to TensorFlow's tape. An argument that any result depends on has a gradient for each result, zero where
that one does not depend on it; and as soon as going back needs anything of the way forward, the gradients themselves
are connected to all those arguments. Here a call leaves its steps on the tape; the `tie` op adds the connections.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.walks import dependences
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, SpecValue, Variable
from teletape_engine.spec import Spec

#: From a recorder and arguments to results.
Run: TypeAlias = Callable[[Any, Sequence[Any]], Sequence[Any]]


class Connections(NamedTuple):
    """What has to be added to the steps of a call.

    Attributes:
        ties: For each result the numbers of the arguments that it gives zeros.
        anchors: For each result those that its gradient is connected to.
        varies: For each result whether it depends on any argument.
    """

    ties: tuple[tuple[int, ...], ...]
    anchors: tuple[tuple[int, ...], ...]
    varies: tuple[bool, ...] = ()

    def __bool__(self) -> bool:
        return any(self.ties) or any(self.anchors)

    def added(self, recorder: Any, arguments: Sequence[Any], found: Sequence[Any]) -> list[Any]:
        """The results, connected. Arguments that no active tape follows are left out."""
        values: dict[int, Any] = {}
        for i in {i for numbers in (*self.ties, *self.anchors) for i in numbers}:
            one = arguments[i]
            values[i] = recorder.read(one) if one.__class__ is Variable else one
        followed = {i for i, one in values.items() if any(one.uid in tape.tracked for tape in recorder.tapes)}
        made = []
        for value, *kinds in zip(found, self.ties, self.anchors, strict=True):
            for op, numbers in zip((ops.zeros_edge, ops.dependency), kinds, strict=True):
                others = [values[i] for i in numbers if i in followed]
                if others:
                    value = recorder.op(op, value, *others)
            made.append(value)
        return made

    def pushed(self, recorder: Any, arguments: Sequence[Any], found: Sequence[Any]) -> list[Any]:
        """The results; an accumulator that follows any argument follows those that depend on others too: with zeros."""
        made = list(found)
        taken = {one.uid for one in arguments}
        for accumulator in recorder.accumulators:
            if not accumulator.mask(arguments):
                continue
            for i, varies in enumerate(self.varies):
                one = made[i]
                if varies and accumulator.tangent(one) is None:
                    if one.uid in taken:  # what goes in keeps what it has
                        made[i] = one = recorder.op(ops.zeros_edge, one)
                    accumulator.follow(one, recorder.full(one.spec, 0))
        return made


def connections(
    run: Run, specs: Sequence[Any], variables: Collection[int] = (), *, decided: bool = False
) -> Connections:
    """The connections of a call with arguments of these specs.

    Args:
        run: Runs what is called on a recorder.
        specs: Of the arguments.
        variables: Numbers of the arguments that must be variables.
        decided: Whether values decide which of its parts run: then any of them may have run, or none.
    """
    recorder, tape = SpecRecorder(), Tape(persistent=True)
    arguments = spec_arguments(specs, variables)
    recorder.open(tape)
    recorder.watch(tape, [one for one in arguments if one.__class__ is not Literal])
    found = run(recorder, arguments)
    numbered = {one.uid: 1 << i for i, one in enumerate(arguments) if one.__class__ is not Literal}
    reached, keeps, sparse = dependences(tape, numbered)
    masks = [reached.get(one.uid, 0) if one.uid in tape.tracked else 0 for one in found]
    every = 0
    for mask in masks:
        every |= mask
    ties = [
        _numbers((every if decided else every & ~mask) & ~sparse)
        if one.spec.__class__ is Spec and one.spec.differentiable
        else ()
        for one, mask in zip(found, masks, strict=True)
    ]
    anchors = [_numbers(every) if mask and keeps and not decided else () for mask in masks]
    return Connections(tuple(ties), tuple(anchors), tuple(map(bool, masks)))


def all_taken(count: int, found: Sequence[Any]) -> Connections:
    """The connections of a loop that takes its first `count` arguments apart, whether its body uses them or not."""
    numbers = tuple(range(count))
    ties = [numbers if one.spec.__class__ is Spec and one.spec.differentiable else () for one in found]
    return Connections(tuple(ties), ((),) * len(ties))


def spec_arguments(specs: Sequence[Any], variables: Collection[int] = ()) -> list[Any]:
    """Arguments of which only the specs are known (a Python number's is weak); those in `variables` as variables."""
    made: list[Any] = []
    for i, spec in enumerate(specs):
        if not isinstance(spec, Spec):
            made.append(Literal(spec.kind()))
        elif i in variables:
            made.append(Variable(SpecValue(spec), trainable=False))
        else:
            made.append(SpecValue(spec))
    return made


def _numbers(mask: int) -> tuple[int, ...]:
    return tuple([i for i in range(mask.bit_length()) if mask >> i & 1])
