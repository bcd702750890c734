"""A function's results and gradients as one step: a training step, or a derivative inside another function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import densify
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery, wants_zeros
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.function import Function, runs
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Variable


@runs(commands.ValueAndGradient)
def value_and_gradient(
    recorder: Recorder, command: commands.ValueAndGradient, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The function's results, and the gradient for each source.

    The backward pass runs as ops of the recorder: a plan has them, and an outer tape records them.

    Raises:
        InvalidArgumentError: A name is not the function's; no target depends on a source.
    """
    (function,) = functions
    zeros = wants_zeros(command.unconnected)
    targets = [_number(function.outputs, name, "output") for name in command.targets]
    sources = [_number(function.inputs, name, "input") for name in command.sources]
    tape, context = Tape(persistent=False, watch_accessed=False), recorder.context
    operands = list(inputs)
    if len(operands) == len(function.inputs):  # else `run` says what is wrong
        for number in sources:
            operands[number] = _own(recorder, operands, number, number in function.assigns)
    context.open(tape)
    try:
        context.watch(tape, [operands[number] for number in sources if number < len(operands)])
        results = [recorder.as_value(result) for result in function.run(recorder, operands, tie=False)]
    finally:
        if tape in context.tapes:
            context.pause(tape)
    query = GradientQuery(
        tape,
        [results[number] for number in targets],
        [operands[number] for number in sources],
        zeros=zeros,
        declarations=Declarations(),
    )
    gradients = [densify(derivative, recorder) for derivative in gradient(recorder, query, as_ops=True)]
    missing = [name for name, each in zip(command.sources, gradients, strict=True) if each is None]
    if missing:
        raise InvalidArgumentError(
            f"value_and_gradient: {', '.join(command.targets)} of the function has no gradient with respect to "
            f"{', '.join(missing)}: leave it out, or give unconnected zero",
            sources=missing,
        )
    return [*results, *gradients]


def _number(names: Sequence[str], name: str, what: str) -> int:
    if name not in names:
        raise InvalidArgumentError(
            f"value_and_gradient: the function has no {what} {name!r}: it has {', '.join(names)}"
        )
    return names.index(name)


def _own(recorder: Recorder, operands: Sequence[Any], number: int, is_assigned: bool) -> Any:
    """The operand as a source: a copy of it if other inputs have it too, so that the gradient is by this one alone."""
    operand = operands[number]
    if isinstance(operand, Variable) and is_assigned:
        return operand
    value = operand if isinstance(operand, Variable) else recorder.as_value(operand)
    is_shared = any(other is operand for at, other in enumerate(operands) if at != number)
    return recorder.op(ops.identity, recorder.as_value(value)) if is_shared else value
