"""A custom call whose gradient is a program: what `tf.custom_gradient` becomes inside a function that is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.programs.program import Program, flow
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import ProgramGradient, record_custom
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Variable


@flow(commands.CustomCall)
def custom_call(
    recorder: Any, command: commands.CustomCall, programs: Sequence[Program], inputs: Sequence[Any]
) -> list[Any]:
    """The results, as values that the active tapes know by the call.

    Raises:
        InvalidArgumentError: The inputs are too few, or of a dtype that has no gradient.
    """
    (program,) = programs
    count, made = len(command.has_gradient), command.results
    if len(inputs) < count + made:
        raise InvalidArgumentError(
            f"custom.call: {count} inputs of the call and {made} results are needed, found {len(inputs)} inputs"
        )
    values = [recorder.read(one) if isinstance(one, Variable) else one for one in inputs]
    followed, results, others = values[:count], values[count : count + made], values[count + made :]
    for one in followed:
        if not one.spec.differentiable:
            raise InvalidArgumentError(f"custom.call: an input of dtype {one.spec.dtype.name} has no gradient")
    outputs = [recorder.op(ops.identity, one) for one in results]
    back = ProgramGradient(program, command.has_gradient)
    record_custom(
        recorder.tapes,
        followed,
        outputs,
        tag=None,
        label=command.label,
        program=(back, others),
        where=recorder.here(),
    )
    for accumulator in tuple(recorder.accumulators):
        if accumulator.mask(followed):
            _push(recorder, accumulator, back, followed, outputs, others)
    return outputs


def _push(
    recorder: Any,
    accumulator: Accumulator,
    back: ProgramGradient,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    others: Sequence[Any],
) -> None:
    """An accumulator follows the call by the transpose of its gradient; a result that has a tangent keeps that one."""
    tapes, accumulators = recorder.outside(accumulator)
    inside = recorder.tapes, recorder.accumulators
    tape = Tape(persistent=True, watch_accessed=False)
    recorder.tapes, recorder.accumulators = [*tapes, tape], accumulators
    try:
        ones = [recorder.full(one.spec, 1) for one in outputs]
        recorder.watch(tape, ones)
        grads = back.run(recorder, ones, others)
        recorder.tapes = tapes
        given = [(densify(one, recorder), at) for one, at in zip(grads, inputs, strict=True) if one is not None]
        seeds = [_seed(recorder, accumulator, at) for _, at in given]
        found = gradient(recorder, GradientQuery(tape, [one for one, _ in given], ones, output_gradients=seeds))
        tangents = [None if one is None else densify(one, recorder) for one in found]
    finally:
        recorder.tapes, recorder.accumulators = inside
    for value, tangent in zip(outputs, tangents, strict=True):
        if tangent is not None and accumulator.tangent(value) is None:
            accumulator.follow(value, tangent)


def _seed(recorder: Any, accumulator: Accumulator, value: Any) -> Any:
    tangent = accumulator.tangent(value)
    return recorder.full(value.spec, 0) if tangent is None else tangent
