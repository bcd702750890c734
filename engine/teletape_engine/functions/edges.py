"""What a function's results are connected to: TensorFlow's rule for calls of functions.

A call is one op to TensorFlow's tape. An argument that any result depends on has a gradient for each result, zero if
that one does not depend on it; and as soon as a rule needs a residual, the gradients themselves are connected to all
those arguments. Here a call leaves its steps on the tape; the ops `zeros_edge` and `dependency` add the missing edges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.walks import dependences
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Recorded, SpecValue, Variable
from teletape_engine.spec import Spec

#: From a recorder and arguments to results.
Run: TypeAlias = Callable[[Recorder, Sequence[Any]], Sequence[Recorded]]


class Edges(NamedTuple):
    """The edges that a call has in addition to those of its steps.

    Attributes:
        ties: For each result the numbers of the arguments whose gradient is zero.
        anchors: For each result those that its gradient is connected to.
        varies: For each result whether it depends on any argument.
    """

    ties: tuple[tuple[int, ...], ...]
    anchors: tuple[tuple[int, ...], ...]
    varies: tuple[bool, ...] = ()

    def __bool__(self) -> bool:
        return any(self.ties) or any(self.anchors)

    def added(self, recorder: Recorder, arguments: Sequence[Any], results: Sequence[Recorded]) -> list[Recorded]:
        """The results with the edges. Arguments that no active tape follows are left out."""
        values: dict[int, Any] = {}
        for i in {i for numbers in (*self.ties, *self.anchors) for i in numbers}:
            argument = arguments[i]
            values[i] = recorder.read(argument) if argument.__class__ is Variable else argument
        followed = {
            i for i, value in values.items() if any(value.uid in tape.tracked for tape in recorder.context.tapes)
        }
        connected = []
        for value, *kinds in zip(results, self.ties, self.anchors, strict=True):
            for op, numbers in zip((ops.zeros_edge, ops.dependency), kinds, strict=True):
                others = [values[i] for i in numbers if i in followed]
                if others:
                    value = recorder.op(op, value, *others)
            connected.append(value)
        return connected

    def pushed(self, recorder: Recorder, arguments: Sequence[Any], results: Sequence[Recorded]) -> list[Recorded]:
        """The results; an accumulator that follows any argument gives zeros to results that depend on others."""
        pushed = list(results)
        taken = {argument.uid for argument in arguments}
        for accumulator in recorder.context.accumulators:
            if not accumulator.mask(arguments):
                continue
            for i, varies in enumerate(self.varies):
                value = pushed[i]
                if varies and accumulator.tangent(value) is None:
                    if value.uid in taken:  # an argument keeps what it has
                        pushed[i] = value = recorder.op(ops.zeros_edge, value)
                    accumulator.follow(value, recorder.full(value.spec, 0))
        return pushed


def edges_of(run: Run, specs: Sequence[Any], variables: Collection[int] = (), *, decided: bool = False) -> Edges:
    """The edges of a call with arguments of these specs.

    Args:
        run: Runs what is called on a recorder.
        specs: Of the arguments.
        variables: Numbers of the arguments that must be variables.
        decided: Whether values decide which of its parts run: then any of them may have run, or none.
    """
    recorder, tape = SpecRecorder(), Tape(persistent=True)
    arguments = spec_arguments(specs, variables)
    recorder.context.open(tape)
    recorder.context.watch(tape, [argument for argument in arguments if argument.__class__ is not Literal])
    results = run(recorder, arguments)
    bits = {argument.uid: 1 << i for i, argument in enumerate(arguments) if argument.__class__ is not Literal}
    reached, needs_residuals, sparse = dependences(tape, bits)
    masks = [reached.get(result.uid, 0) if result.uid in tape.tracked else 0 for result in results]
    every = 0
    for mask in masks:
        every |= mask
    ties = [
        _numbers((every if decided else every & ~mask) & ~sparse) if _is_differentiable(result) else ()
        for result, mask in zip(results, masks, strict=True)
    ]
    anchors = [_numbers(every) if mask and needs_residuals and not decided else () for mask in masks]
    return Edges(tuple(ties), tuple(anchors), tuple(map(bool, masks)))


def all_taken(count: int, results: Sequence[Recorded]) -> Edges:
    """The edges of a loop that takes its first `count` arguments apart, whether its body uses them or not."""
    numbers = tuple(range(count))
    ties = [numbers if _is_differentiable(result) else () for result in results]
    return Edges(tuple(ties), ((),) * len(ties))


def spec_arguments(specs: Sequence[Any], variables: Collection[int] = ()) -> list[Any]:
    """Arguments of which only the specs are known (a Python number's is weak); those in `variables` as variables."""
    arguments: list[Any] = []
    for i, spec in enumerate(specs):
        if not isinstance(spec, Spec):
            arguments.append(Literal.of(spec))
        elif i in variables:
            arguments.append(Variable(SpecValue(spec), trainable=False))
        else:
            arguments.append(SpecValue(spec))
    return arguments


def _is_differentiable(result: Recorded) -> bool:
    return result.spec.__class__ is Spec and result.spec.differentiable


def _numbers(mask: int) -> tuple[int, ...]:
    return tuple([i for i in range(mask.bit_length()) if mask >> i & 1])
