"""A custom call whose gradient is a function: what `tf.custom_gradient` becomes inside a function that is traced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.transpose import transposed_tangents
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.function import Function, runs
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.custom import FunctionGradient, record_custom
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded


@runs(commands.CustomCall)
def custom_call(
    recorder: Recorder, command: commands.CustomCall, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The results, as values that the active tapes know by the call.

    Raises:
        InvalidArgumentError: The inputs are too few, or of a dtype that has no gradient.
    """
    (function,) = functions
    count, results = len(command.has_gradient), command.results
    if len(inputs) < count + results:
        raise InvalidArgumentError(
            f"custom.call: {count} inputs of the call and {results} results are needed, found {len(inputs)} inputs"
        )
    values = [recorder.as_value(operand) for operand in inputs]
    primals, computed, others = values[:count], values[count : count + results], values[count + results :]
    for primal in primals:
        if not primal.spec.differentiable:
            raise InvalidArgumentError(f"custom.call: an input of dtype {primal.spec.dtype.name} has no gradient")
    outputs = [recorder.op(ops.identity, value) for value in computed]
    back = FunctionGradient(function, command.has_gradient)
    record_custom(
        recorder.context.tapes,
        primals,
        outputs,
        tag=None,
        label=command.label,
        gradient=(back, *others),
        where=recorder.provenance.here(),
    )
    for accumulator in tuple(recorder.context.accumulators):
        if accumulator.mask(primals):
            _push(recorder, accumulator, back, primals, outputs, others)
    return outputs


def _push(
    recorder: Recorder,
    accumulator: Accumulator,
    back: FunctionGradient,
    primals: Sequence[Recorded],
    outputs: Sequence[Recorded],
    others: Sequence[Any],
) -> None:
    """Gives an accumulator the tangents of the outputs; an output that has a tangent keeps it."""
    context = recorder.context
    tapes, accumulators = context.outside(accumulator)

    def record(cts: Sequence[Recorded]) -> tuple[Tape, Sequence[Any]]:
        tape = Tape(persistent=True, watch_accessed=False)
        with context.only([*tapes, tape], accumulators):
            context.watch(tape, cts)
            return tape, back.run(recorder, cts, others)

    with context.only(tapes, accumulators):
        tangents = transposed_tangents(
            recorder,
            primals,
            [accumulator.tangent(primal) for primal in primals],
            outputs,
            full=lambda value, number: recorder.full(value.spec, number),
            record=record,
            gradient=partial(gradient, recorder),
        )
    for value, tangent in zip(outputs, tangents, strict=True):
        if tangent is not None and accumulator.tangent(value) is None:
            accumulator.follow(value, tangent)
