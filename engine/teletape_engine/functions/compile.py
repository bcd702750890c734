"""Compiling a function: names become registers, ops are looked up, and everything that needs no shapes is checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.attributes import NO_ATTRS
from teletape_engine.catalogue.binding import check_results
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.commands import Command, schema
from teletape_engine.errors import InvalidArgumentError, TeletapeError
from teletape_engine.functions.function import RUNNERS, Function, Step, assigned_inputs
from teletape_engine.functions.steps import step_word
from teletape_engine.recording.values import Literal
from teletape_engine.spec import DType

MAX_STEPS: Final = 1_000_000  #: Steps of a function, those of the functions that it calls counted at each call.
MAX_DEPTH: Final = 64  #: Functions within functions.


def compile_function(
    inputs: Sequence[str],
    steps: Sequence[Command],
    outputs: Sequence[str],
    find: Callable[[Any], Function] = lambda function: function,
    dtype: DType | None = None,
    call_sites: Sequence[str | None] = (),
) -> Function:
    """Checks names, ops and attributes; shapes are known only when the function is called.

    Args:
        inputs: Distinct names.
        steps: Commands that may be steps.
        outputs: Names of results.
        find: From what a step names a function by to the function.
        dtype: Of untyped numbers that meet no array; None: as they are.
        call_sites: See `Function`.

    Raises:
        InvalidArgumentError: A name used before it is made, made twice, or never made; an op, its count of inputs or an
            attribute wrong; a command that is no step; too many steps.
    """
    compiler = _Compiler(inputs, find, dtype)
    compiled = []
    for number, command in enumerate(steps):
        try:
            compiled.append(compiler.step(command))
        except TeletapeError as error:
            message = f"step {number} ({step_word(command)}): {error.message}"
            raise type(error)(message, **error.details) from error
    for name in outputs:
        if name not in compiler.registers:
            raise InvalidArgumentError(f"output {name!r} of the function is neither an input nor an output of a step")
    results = tuple([compiler.registers[name] for name in outputs])
    return Function(
        inputs=tuple(inputs),
        commands=tuple(steps),
        outputs=tuple(outputs),
        steps=tuple(_with_last_uses(compiled, {*range(len(inputs)), *results})),
        results=results,
        register_count=compiler.count,
        constants=tuple(compiler.constants),
        assigns=frozenset(compiler.assigns),
        dynamic=compiler.dynamic,
        decides=compiler.decides,
        refuses=compiler.refuses,
        checks=compiler.checks,
        size=compiler.size,
        depth=compiler.depth,
        dtype=dtype,
        call_sites=tuple(call_sites),
    )


def definitions(function: Function) -> tuple[commands.DefineFunction, ...]:
    """The commands that define a function in a session that has nothing: first those that it calls, at last itself.

    Their ids are f0, f1, …; call sites in the program that wrote it are left out.
    """
    defined = Definitions()
    defined.id_of(function)
    return tuple(defined.commands)


class Definitions:
    """The commands that define functions in a session that has nothing, each once, as f0, f1, ….

    Args:
        call_sites: Whether the steps keep their call sites in the program that wrote them.

    Attributes:
        commands: Of the functions of `id_of`, each after those that it calls.
    """

    def __init__(self, *, call_sites: bool = False) -> None:
        self.commands: list[commands.DefineFunction] = []
        self._call_sites = call_sites
        self._ids: dict[Function, str] = {}

    def id_of(self, function: Function) -> str:
        """The id of a function, which is defined now if it was not before."""
        if function not in self._ids:
            steps = []
            for step in function.steps:
                command = step.command
                if not self._call_sites or step.functions:
                    command = _renamed(command, iter([self.id_of(inner) for inner in step.functions]))
                steps.append(command)
            name = self._ids[function] = f"f{len(self._ids)}"
            dtype = None if function.dtype is None else function.dtype.name
            self.commands.append(commands.DefineFunction(name, function.inputs, tuple(steps), function.outputs, dtype))
        return self._ids[function]


def _renamed(command: Any, names: Iterator[str]) -> Command:
    """The command with these names for the functions that it takes, in the order of `commands.functions_of`."""
    if isinstance(command, commands.Call):
        return command if command.where is None else dataclasses.replace(command, where=None)
    changes: dict[str, Any] = {}
    for field in schema.FUNCTION_FIELDS[command.verb]:
        value = getattr(command, field)
        if value.__class__ is tuple:
            changes[field] = tuple([next(names) for _ in value])
        elif value is not None:
            changes[field] = next(names)
    renamed: Command = dataclasses.replace(command, **changes) if changes else command
    return renamed


class _Compiler:
    """What is known of a function after some of its steps."""

    def __init__(self, inputs: Sequence[str], find: Callable[[Any], Function], dtype: DType | None) -> None:
        if len(set(inputs)) != len(inputs):
            raise InvalidArgumentError(f"inputs {list(inputs)} of the function: a name occurs twice")
        self._inputs, self._find, self._dtype = inputs, find, dtype
        self.registers: dict[Any, int] = {name: register for register, name in enumerate(inputs)}
        self.count = len(inputs)
        self.constants: list[tuple[int, np.ndarray[Any, Any] | Literal]] = []
        self._constant_registers: dict[int, int] = {}  # by id, which holds: `constants` keeps the arrays
        self.assigns: set[int] = set()
        self.dynamic = self.decides = self.refuses = self.checks = False
        self.size = self.depth = 0

    def step(self, command: Command) -> Step:
        """The step for a command."""
        if isinstance(command, commands.Call):
            return self._op(command)
        if isinstance(command, commands.Assign):
            return self._assign(command)
        if type(command) not in RUNNERS:
            raise InvalidArgumentError("cannot be a step of a function")
        if isinstance(command, commands.ValueAndGradient) and command.sources is None:
            raise InvalidArgumentError("a step names its sources, since inputs have no dtypes yet")
        functions = tuple([self._find(name) for name in commands.functions_of(command) if name is not None])
        inputs = tuple([self._input(name) for name in command.inputs])  # type: ignore[attr-defined]  # each has them
        self.decides = self.decides or isinstance(command, commands.While | commands.Cond)
        for function in functions:
            self._grow(function.size, function.depth + 1)
            self.dynamic = self.dynamic or function.dynamic
            self.decides = self.decides or function.decides
            self.refuses = self.refuses or function.refuses
            self.checks = self.checks or function.checks
        for i in assigned_inputs(command, functions):
            register = inputs[i] if i < len(inputs) else None
            if register.__class__ is not int or register >= len(self._inputs):
                raise InvalidArgumentError(
                    f"a function that it runs assigns to its input number {i}: that must be an input of this function"
                )
            self.assigns.add(register)
        outputs = self._outputs(command.outputs)  # type: ignore[attr-defined]  # each has them
        return Step(command, None, NO_ATTRS, inputs, outputs, functions, ())

    def _op(self, command: commands.Call) -> Step:
        op = CATALOGUE.named(command.op)
        if command.op != op.name:  # TensorFlow's name
            command = dataclasses.replace(command, op=op.name)
        op.check_count(len(command.inputs))
        self.dynamic = self.dynamic or op.dynamic
        self.refuses = self.refuses or bool(op.refuses)
        self.checks = self.checks or Trait.ASSERTS in op.traits
        self._grow(1, 0)
        inputs = tuple([self._input(name) for name in command.inputs])
        check_results(op, len(command.outputs))
        return Step(command, op, op.attrs(command.attrs), inputs, self._outputs(command.outputs), (), ())

    def _assign(self, command: commands.Assign) -> Step:
        variable = self._input(command.variable)
        if variable.__class__ is not int or variable >= len(self._inputs):
            raise InvalidArgumentError(f"assigns to {command.variable!r}, which is no input of the function")
        self.assigns.add(variable)
        self._grow(1, 0)
        indices = getattr(command, "indices", None)
        operands = (command.value,) if indices is None else (command.value, indices)
        inputs = (variable, *[self._input(operand) for operand in operands])
        return Step(command, None, NO_ATTRS, inputs, (), (), ())

    def _grow(self, steps: int, depth: int) -> None:
        self.size += steps
        self.depth = max(self.depth, depth)
        if self.size > MAX_STEPS or self.depth > MAX_DEPTH:
            raise InvalidArgumentError(
                f"the function has more than {MAX_STEPS:,} steps, or calls more than {MAX_DEPTH} deep: split it, or "
                "use a loop"
            )

    def _input(self, operand: Any) -> Any:
        """The register of an input; a number is itself."""
        if isinstance(operand, Literal) and not operand.spec.shape:
            return operand.with_alone(self._dtype)
        if isinstance(operand, np.ndarray | Literal):
            register = self._constant_registers.get(id(operand))
            if register is None:
                register = self._constant_registers[id(operand)] = self.count
                constant = operand.with_alone(self._dtype) if isinstance(operand, Literal) else operand
                self.constants.append((register, constant))
                self.count += 1
            return register
        if operand not in self.registers:
            raise InvalidArgumentError(
                f"input {operand!r} is neither an input of the function nor an output of an earlier step"
            )
        return self.registers[operand]

    def _outputs(self, names: Sequence[Any]) -> tuple[int, ...]:
        for name in names:
            if not isinstance(name, str):
                raise InvalidArgumentError(f"names inside a function are strings, found {name!r}")
            if name in self.registers:
                raise InvalidArgumentError(f"the name {name!r} is taken")
            self.registers[name] = self.count
            self.count += 1
        return tuple([self.registers[name] for name in names])


def _with_last_uses(steps: Sequence[Step], needed: set[int]) -> list[Step]:
    """The steps with the registers that each is the last to use, so that their memory is freed there."""
    seen = set(needed)
    reversed_steps = []
    for step in reversed(steps):
        last = []
        for register in (*step.inputs, *step.outputs):
            if register.__class__ is int and register not in seen:
                seen.add(register)
                last.append(register)
        reversed_steps.append(step._replace(last=tuple(last)))
    return reversed_steps[::-1]
