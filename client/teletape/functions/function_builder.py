"""Builds a function from the steps of a trace: unneeded steps are left out, and values get names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from teletape_engine import commands
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.commands import Command
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function


class TracedStep(NamedTuple):
    """A step whose values are numbers.

    Attributes:
        command: An op, an assignment, or a command that takes functions; None: the reading of a variable.
        inputs: Numbers of values, Literals, arrays.
        outputs: Numbers of the results.
        writes: Numbers of the variables that the step assigns to.
    """

    command: Command | None
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]
    writes: tuple[int, ...] = ()


def needed_steps(steps: Sequence[TracedStep], results: Sequence[int | None]) -> list[TracedStep]:
    """Returns the steps that a result, an assignment or an assertion needs.

    The reading of a variable is replaced by the variable itself. It stays, as an identity, if its value is used after
    the next assignment, or by a call that assigns.
    """
    steps = _reachable(steps, results)
    last_use: dict[Any, int] = {number: len(steps) for number in results if number is not None}
    for k, step in enumerate(steps):
        for number in _numbers(step.inputs):
            last_use[number] = max(last_use.get(number, -1), k)
    assignments: dict[int, list[int]] = {}
    for k, step in enumerate(steps):
        for number in step.writes:
            assignments.setdefault(number, []).append(k)
    assigning_calls = [step for step in steps if step.writes and not isinstance(step.command, commands.Assign)]
    call_inputs = {number for step in assigning_calls for number in _numbers(step.inputs)}
    variable_of: dict[int, int] = {}
    needed = []
    for k, step in enumerate(steps):
        if step.command is None:
            (variable,), (value,) = step.inputs, step.outputs
            next_assignment = next((at for at in assignments.get(variable, ()) if at > k), None)
            if value not in call_inputs and (next_assignment is None or last_use[value] <= next_assignment):
                variable_of[value] = variable
                continue
        needed.append(step._replace(inputs=tuple([_replaced(variable_of, value) for value in step.inputs])))
    for result in results:
        if result is not None and result in variable_of:
            needed.append(TracedStep(None, (variable_of.pop(result),), (result,)))
    return needed


def _reachable(steps: Sequence[TracedStep], results: Sequence[int | None]) -> list[TracedStep]:
    """Returns the steps from which a result is computed, and those that assign or assert, with what these need."""
    needed: set[Any] = {number for number in results if number is not None}
    reachable = []
    for step in reversed(steps):
        if step.writes or _asserts(step.command) or not needed.isdisjoint(step.outputs):
            reachable.append(step)
            needed.update(_numbers(step.inputs))
    return reachable[::-1]


def _numbers(inputs: Sequence[Any]) -> list[int]:
    """Returns the numbers of values among a step's inputs."""
    return [value for value in inputs if value.__class__ is int]


def _asserts(command: Command | None) -> bool:
    """Whether a step asserts, itself or in a function that it calls: it runs even if nothing uses its results."""
    if isinstance(command, commands.Call):
        return Trait.ASSERTS in CATALOGUE[command.op].traits
    called = () if command is None else commands.functions_of(command)
    return any(isinstance(function, Function) and function.checks for function in called)


def _replaced(variable_of: dict[int, int], value: Any) -> Any:
    return variable_of.get(value, value) if value.__class__ is int else value


def written_down(steps: Sequence[TracedStep], inputs: Sequence[Any], results: Sequence[Any]) -> Function:
    """Returns the function of these steps; `inputs` and `results` are symbols of the trace."""
    names: dict[Any, str] = {symbol.number: f"a{i}" for i, symbol in enumerate(inputs)}

    def named(value: Any) -> Any:
        return names.setdefault(value, f"v{value}") if value.__class__ is int else value

    body = [
        _command(step.command, tuple([named(i) for i in step.inputs]), tuple([named(i) for i in step.outputs]))
        for step in steps
    ]
    outputs = []
    for i, symbol in enumerate(results):
        if symbol.number is None:  # a constant, which has no name yet
            body.append(commands.Call("identity", (symbol.host,), (f"r{i}",)))
            outputs.append(f"r{i}")
        else:
            outputs.append(names[symbol.number])
    return compile_function([names[symbol.number] for symbol in inputs], body, outputs)


def _command(command: Command | None, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> Command:
    """Returns a step's command with names for its inputs and outputs."""
    if command is None:
        return commands.Call("identity", inputs, outputs)
    if isinstance(command, commands.Call):
        return commands.Call(command.op, inputs, outputs, command.attrs, command.where)
    if isinstance(command, commands.Assign):
        return commands.Assign(inputs[0], inputs[1], command.mode, *inputs[2:])
    fields = {name: getattr(command, name) for name in command.__dataclass_fields__}  # type: ignore[attr-defined]
    return type(command)(**fields | {"inputs": inputs, "outputs": outputs})
