"""Builds a function from the steps of a trace: unneeded steps are left out, and values get names.

A loop over a dataset cannot be part of an engine function, because this process makes the elements. A function with
such a loop consists of stages: the steps before the loop, its body, which is called for each element, and the steps
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from teletape.core.calls.dispatch import as_tensor, constant
from teletape.core.sessions.session import Session
from teletape.core.tensors import nest
from teletape.core.tensors.composite import Composite
from teletape.core.tensors.tensor import EagerTensor, TensorLike
from teletape_engine import commands
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.commands import Command
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import Function


class TracedStep(NamedTuple):
    """A step whose inputs and outputs are numbers of values.

    Attributes:
        command: An op, an assignment, or a command that takes functions; None: the reading of a variable.
        inputs: Numbers of values, Literals, arrays.
        outputs: Numbers of the results.
        writes: Numbers of the variables that the step assigns to.
        where: The line in the function that is traced; None: not known.
    """

    command: Command | None
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]
    writes: tuple[int, ...] = ()
    where: str | None = None


def needed_steps(steps: Sequence[TracedStep], results: Sequence[int | None]) -> list[TracedStep]:
    """Returns the steps on which a result, an assignment or an assertion depends.

    The variable itself replaces a reading of it. The reading stays, as an identity, if its value is used after the next
    assignment, or by a call that assigns.
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
    read_at = {step.outputs[0]: step.where for step in steps if step.command is None}
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
            needed.append(TracedStep(None, (variable_of.pop(result),), (result,), where=read_at[result]))
    return needed


def _reachable(steps: Sequence[TracedStep], results: Sequence[int | None]) -> list[TracedStep]:
    """Returns the steps from which a result is computed, the steps that assign or assert, and the inputs of all."""
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
    """Whether a step, or a function that it calls, asserts: then it runs even if nothing uses its results."""
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
    call_sites = [step.where for step in steps]
    outputs = []
    for i, symbol in enumerate(results):
        if symbol.number is None:  # a constant, which has no name yet
            body.append(commands.Call("identity", (symbol.host,), (f"r{i}",)))
            call_sites.append(None)
            outputs.append(f"r{i}")
        else:
            outputs.append(names[symbol.number])
    return compile_function([names[symbol.number] for symbol in inputs], body, outputs, call_sites=call_sites)


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


# ------------------------------------------------------------------------------------------------------------- stages
class HostStep(Protocol):
    """Work of this process between two stages."""

    def run(self, owner: Session, inputs: Sequence[Any]) -> list[Any]:
        """Runs it on recorded values, and returns the recorded results. In a trace it becomes a step of the trace."""


class Stage(NamedTuple):
    """A part of a function.

    Attributes:
        action: An engine function, or a HostStep.
        inputs: Numbers of values, arrays, Literals.
        outputs: Numbers of the results.
    """

    action: Function | HostStep
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]


class Deferred:
    """The prints of a function before one of its stages.

    Args:
        actions: Functions of values, each with the values' structure.
    """

    def __init__(self, actions: Sequence[tuple[Callable[[Any], None], Any]]) -> None:
        self._actions = actions

    def inputs(self) -> list[Any]:
        """Returns the recorded values that the actions need."""
        leaves = [leaf for _, structure in self._actions for leaf in nest.flatten(structure)]
        return [as_tensor(leaf).operand() for leaf in leaves if _is_tensor(leaf)]

    def run(self, owner: Session, inputs: Sequence[Any]) -> list[Any]:
        """Runs the actions."""
        values = iter(inputs)
        for action, structure in self._actions:
            action(
                nest.map_structure(
                    lambda leaf: EagerTensor(next(values), owner) if _is_tensor(leaf) else leaf, structure
                )
            )
        return []


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, TensorLike | Composite)


class _Number(NamedTuple):
    """A value of a trace that is an input or a result of a stage."""

    number: int
    host: None = None


class Stages:
    """A function that consists of stages.

    Args:
        parts: Steps of the trace and, between them, stages of this process, in order.
        inputs: The symbols of the inputs.
        results: The symbols of the results.
    """

    def __init__(self, parts: Sequence[TracedStep | Stage], inputs: Sequence[Any], results: Sequence[Any]) -> None:
        self._inputs = [symbol.number for symbol in inputs]
        self._stages = _stages(parts, set(self._inputs), results)

    def run(self, owner: Session, inputs: Sequence[Any]) -> list[Any]:
        """Runs the stages on recorded values and variables, and returns the results."""
        values: dict[int, Any] = dict(zip(self._inputs, inputs, strict=True))
        results: list[Any] = []
        for action, numbers, outputs in self._stages:
            arguments = [values[each] if each.__class__ is int else _as_value(each) for each in numbers]
            if isinstance(action, Function):
                results = owner.call_function(action, arguments)
            else:
                results = action.run(owner, arguments)
            values.update(zip(outputs, results, strict=False))
        return results


def _as_value(operand: Any) -> Any:
    """Returns a constant of a trace as a recorded value."""
    return constant(operand).operand()


def _stages(parts: Sequence[TracedStep | Stage], known: set[int], results: Sequence[Any]) -> list[Stage]:
    """Returns the stages: the last one returns the results, each other one the values that later ones need."""
    groups: list[list[TracedStep]] = [[]]
    between: list[Stage] = []
    for part in parts:
        if isinstance(part, Stage):
            between.append(part)
            groups.append([])
        else:
            groups[-1].append(part)
    stages: list[Stage] = []
    needed: set[int] = set()
    for at in range(len(groups) - 1, -1, -1):
        is_last = at == len(groups) - 1
        produced = {number for step in groups[at] for number in step.outputs}
        outputs: list[Any] = list(results) if is_last else [_Number(number) for number in sorted(needed & produced)]
        steps = needed_steps(groups[at], [each.number for each in outputs])
        own = {number for step in steps for number in step.outputs}
        used = {number for step in steps for number in step.inputs if number.__class__ is int}
        used |= {each.number for each in outputs if each.number is not None}
        inputs = sorted(used - own)
        if steps or is_last:
            function = written_down(steps, [_Number(number) for number in inputs], outputs)
            stages.append(Stage(function, tuple(inputs), tuple([each.number for each in outputs])))
        needed = (needed - produced) | set(inputs)
        if at:
            action = between[at - 1]
            stages.append(action)
            needed = (needed - set(action.outputs)) | {number for number in action.inputs if number.__class__ is int}
    assert needed <= known
    return stages[::-1]
