"""A function's results and gradients as one step: a training step, or a derivative inside another function.

A recorder that writes steps down knows no values, so it cannot say which iterations and branches a tape would record:
for it a loop or a condition is one call, whose gradient is again such a step, which repeats the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.slices import densify
from teletape_engine.commands import Command
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery, wants_zeros
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function, runs
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Recorded, Variable
from teletape_engine.spec import Spec


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
    chosen_targets = function.outputs if command.targets is None else command.targets
    chosen_sources = _float_inputs(function, inputs) if command.sources is None else command.sources
    targets = [_number(function.outputs, name, "output") for name in chosen_targets]
    sources = [_number(function.inputs, name, "input") for name in chosen_sources]
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
    missing = [name for name, each in zip(chosen_sources, gradients, strict=True) if each is None]
    if missing:
        raise InvalidArgumentError(
            f"value_and_gradient: {', '.join(chosen_targets)} of the function has no gradient with respect to "
            f"{', '.join(missing)}: leave it out, or give unconnected zero",
            sources=missing,
        )
    return [*results, *gradients]


def _float_inputs(function: Function, inputs: Sequence[Any]) -> Sequence[str]:
    """The names of a function's inputs that hold floats; of all, if none does."""
    specs = [value.spec for value in inputs]
    pairs = zip(function.inputs, specs, strict=False)
    floats = [name for name, spec in pairs if isinstance(spec, Spec) and spec.differentiable]
    return floats or function.inputs


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


# -------------------------------------------------------------------------------------------------- whole commands
def cannot_be_inlined(command: Command, functions: Sequence[Function]) -> bool:
    """Whether values decide what a command records, so that its steps cannot be written down one by one."""
    if isinstance(command, commands.While | commands.Cond):
        return True
    inlined = isinstance(command, commands.CallFunction | commands.CustomCall)
    return not inlined and any(function.decides for function in functions)


def gradient_of(command: Any, count: int, differentiable: Sequence[int], results: Sequence[int]) -> Function:
    """Returns the function of a command's cotangents and then of its inputs: to the cotangents of some inputs.

    Args:
        command: The command, with its functions; its inputs and outputs are not looked at.
        count: The number of its inputs.
        differentiable: Numbers of the inputs that have a cotangent.
        results: For each result whether it has a cotangent, as 1 or 0.
    """
    inputs = [f"x{i}" for i in range(count)]
    outputs = [f"y{i}" for i in range(len(results))]
    cts = [f"ct{i}" for i, has_ct in enumerate(results) if has_ct]
    targets = [f"t{i}" for i, has_ct in enumerate(results) if has_ct]
    products = [commands.Call("mul", (f"y{i}", f"ct{i}"), (f"t{i}",)) for i, has_ct in enumerate(results) if has_ct]
    call = replace(command, inputs=tuple(inputs), outputs=tuple(outputs))
    weighted = compile_function([*inputs, *cts], [call, *products], targets)
    sources = tuple([f"x{i}" for i in differentiable])
    gradients = [f"g{i}" for i in differentiable]
    step: Any = commands.ValueAndGradient(
        function=weighted,  # type: ignore[arg-type]  # a function in the place of its id
        inputs=(*inputs, *cts),
        targets=tuple(targets),
        sources=sources,
        outputs=(*targets, *gradients),
        unconnected="zero",
    )
    return compile_function([*cts, *inputs], [step], gradients)


def tangents_of(command: Any, count: int, followed: Sequence[int], results: Sequence[int]) -> Function:
    """Returns the function of any cotangents of a command, its inputs and some of their tangents: to its tangents.

    A gradient is linear in the cotangents: by them, the gradient of its product with the tangents is J t.

    Args:
        command: The command, with its functions; its inputs and outputs are not looked at.
        count: The number of its inputs.
        followed: Numbers of the inputs that have a tangent.
        results: For each result whether it has a tangent, as 1 or 0.
    """
    cts = [f"ct{i}" for i, has_tangent in enumerate(results) if has_tangent]
    inputs = [f"x{i}" for i in range(count)]
    tangents, gradients, targets = ([f"{letter}{i}" for i in followed] for letter in ("t", "g", "p"))
    back: Any = gradient_of(command, count, followed, results)
    gradient = commands.CallFunction(function=back, inputs=(*cts, *inputs), outputs=tuple(gradients))
    products = [
        commands.Call("mul", (g, t), (target,)) for g, t, target in zip(gradients, tangents, targets, strict=True)
    ]
    weighted: Any = compile_function([*cts, *inputs, *tangents], [gradient, *products], targets)
    pushed = [f"j{ct}" for ct in cts]
    step = commands.ValueAndGradient(
        function=weighted,
        inputs=(*cts, *inputs, *tangents),
        targets=tuple(targets),
        sources=tuple(cts),
        outputs=(*targets, *pushed),
        unconnected="zero",
    )
    return compile_function([*cts, *inputs, *tangents], [step], pushed)
