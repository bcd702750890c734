"""Saved functions: closed lists of steps with named inputs and outputs. Data, never code.

A step is a command whose values are named inside the program. Running one on a recorder means its steps in order, as
if they stood in the caller's place: so nothing else needs to know of programs to differentiate, batch or predict them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, Op, Trait
from teletape_engine.commands import Command
from teletape_engine.errors import InvalidArgumentError, TeletapeError
from teletape_engine.programs.function_edges import Connections, all_taken, connections, spec_arguments
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import Spec

MOST_STEPS: Final = 1_000_000  #: Steps of a program, those of the programs that it calls counted at each call.
MOST_DEPTH: Final = 64  #: Programs within programs.
_LOOKED: Final = 64  #: Steps between two looks at whether to go on.
_SIGNATURES: Final = 256  #: Calls of other specs that are remembered.

Found: TypeAlias = Any  # a recorded value, or a Literal
Flow: TypeAlias = Callable[[Any, Any, Sequence["Program"], Sequence[Any]], list[Found]]
F = TypeVar("F", bound=Flow)

#: What the commands that take programs do: `(recorder, command, programs, inputs) -> results`. A variable among the
#: inputs stays one; the programs are in the order of the command's fields.
FLOWS: Final[dict[type[Command], Flow]] = {}


def flow(command: type[Command]) -> Callable[[F], F]:
    """Registers what a command that takes programs does, as a command and as a step."""

    def register(run: F) -> F:
        @wraps(run)
        def separate(recorder: Any, command: Any, programs: Sequence[Program], inputs: Sequence[Any]) -> list[Found]:
            found = run(recorder, command, programs, inputs)
            return _separate(recorder, inputs, found) if recorder.recorded else found

        FLOWS[command] = separate
        return run

    return register


def _separate(recorder: Any, inputs: Sequence[Any], found: Sequence[Found]) -> list[Found]:
    """The results, each a value of its own to tapes and accumulators, also one that is an input or a variable's value.

    As in TensorFlow: a gather from a function's result is not one from the argument that the function hands back.
    """
    taken = {one.uid for one in (*inputs, *recorder.reads()) if one.__class__ is not Literal}
    made = []
    for one in found:
        if one.__class__ is not Literal:
            if one.uid in taken:
                one = recorder.op(ops.zeros_edge, one)
            taken.add(one.uid)
        made.append(one)
    return made


@flow(commands.CallFunction)
def call(recorder: Any, command: Command, programs: Sequence[Program], inputs: Sequence[Any]) -> list[Found]:
    """The results of the program."""
    (program,) = programs
    return program.run(recorder, inputs)


class Step(NamedTuple):
    """One step, looked up once. Values are numbered: arguments, constants, then what steps make.

    Attributes:
        command: As it was given.
        op: For an op: which, and `attrs`.
        inputs: Places of the values that it takes; a Literal stands for itself.
        outputs: Places of what it makes.
        programs: Those that it takes.
        last: Places that nothing takes after it.
    """

    command: Command
    op: Op | None
    attrs: Attrs
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]
    programs: tuple[Program, ...]
    last: tuple[int, ...]


class Program:
    """A checked program.

    Attributes:
        inputs: Names of the arguments.
        calls: The steps as commands, in order; the programs in them as they were given.
        outputs: Names of the results, each an input or a step's output.
        steps: The same, looked up.
        assigns: Numbers of the inputs that must be variables, since a step assigns to them.
        dynamic: Whether shapes depend on values.
        decides: Whether what runs depends on values.
        refuses: Whether an op in it may refuse values (an index out of range).
        checks: Whether it asserts.
        size: Steps in all, those of programs within counted at each call.
        depth: Programs within programs.
        nbytes: Of the constants.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        calls: Sequence[Command],
        outputs: Sequence[str],
        find: Callable[[Any], Program] = lambda given: given,
    ) -> None:
        """Checks names, ops and attributes; shapes are known only when it is called.

        Args:
            inputs: Distinct names.
            calls: Commands that may be steps.
            outputs: Names of results.
            find: From what a step names a program by to the program.

        Raises:
            InvalidArgumentError: A name used before it is made, made twice, or never made; an op, its count of
                inputs or an attribute wrong; a command that is no step; too many steps.
        """
        self.inputs, self.calls, self.outputs = tuple(inputs), tuple(calls), tuple(outputs)
        self.dynamic = self.decides = self.refuses = self.checks = False
        self.size = self.depth = 0
        self.constants: list[np.ndarray[Any, Any]] = []
        self._numbered: dict[int, int] = {}
        self._places: dict[Any, int] = {}
        for name in self.inputs:
            if name in self._places:
                raise InvalidArgumentError(f"program inputs {list(self.inputs)} name one twice")
            self._places[name] = len(self._places)
        self._count = len(self.inputs)
        assigns: set[int] = set()
        steps = []
        for at, command in enumerate(self.calls):
            try:
                steps.append(self._step(command, find, assigns))
            except TeletapeError as error:
                error.message = f"program call {at} ({_word(command)}): {error.message}"
                error.args = (error.message,)
                raise
        for name in self.outputs:
            if name not in self._places:
                raise InvalidArgumentError(f"program output {name!r} is never made")
        self._results = tuple([self._places[name] for name in self.outputs])
        self.steps = tuple(_with_last_uses(steps, {*range(len(self.inputs)), *self._results}))
        plain = [_taken_apart(one) for one in self.steps]
        self._plain = [plain[i : i + _LOOKED] for i in range(0, len(plain), _LOOKED)]
        self.assigns = frozenset(assigns)
        self.nbytes = sum([one.nbytes for one in self.constants])
        self._device: dict[Any, list[Any]] = {}
        self._connections: dict[Any, Connections] = {}
        self._inferred: dict[Any, tuple[Spec, ...]] = {}

    # ---------------------------------------------------------------------------------------------------- definition
    def _step(self, command: Command, find: Callable[[Any], Program], assigns: set[int]) -> Step:
        if isinstance(command, commands.Call):
            op = CATALOGUE.named(command.op)
            op.check_count(len(command.inputs))
            self.dynamic = self.dynamic or op.dynamic
            self.refuses = self.refuses or bool(op.refuses)
            self.checks = self.checks or Trait.ASSERTS in op.traits
            self._grow(1, 0)
            inputs = tuple([self._input(one) for one in command.inputs])
            if len(command.outputs) != 1:
                raise InvalidArgumentError(f"one output, found {len(command.outputs)}")
            outputs = self._made(command.outputs)
            return Step(command, op, op.attrs(command.attrs), inputs, outputs, (), ())
        if isinstance(command, commands.Assign):
            slot = self._input(command.variable)
            if slot.__class__ is not int or slot >= len(self.inputs):
                raise InvalidArgumentError(f"assigns to {command.variable!r}, which is no input of the program")
            assigns.add(slot)
            self._grow(1, 0)
            taken = [self._input(one) for one in (command.value, *_indices(command))]
            return Step(command, None, NO_ATTRS, (slot, *taken), (), (), ())
        if type(command) not in FLOWS:
            raise InvalidArgumentError("cannot stand in a program")
        programs = tuple([find(one) for one in commands.functions_of(command) if one is not None])
        inputs = tuple([self._input(one) for one in command.inputs])  # type: ignore[attr-defined]  # every flow has them
        self.decides = self.decides or isinstance(command, commands.While | commands.Cond)
        for one in programs:
            self._grow(one.size, one.depth + 1)
            self.dynamic = self.dynamic or one.dynamic
            self.decides = self.decides or one.decides
            self.refuses = self.refuses or one.refuses
            self.checks = self.checks or one.checks
        self._note_assigns(command, programs, inputs, assigns)
        return Step(command, None, NO_ATTRS, inputs, self._made(command.outputs), programs, ())  # type: ignore[attr-defined]

    def _note_assigns(
        self, command: Command, programs: Sequence[Program], inputs: Sequence[Any], assigns: set[int]
    ) -> None:
        for i in written(command, programs):
            place = inputs[i] if i < len(inputs) else None
            if place.__class__ is not int or place >= len(self.inputs):
                raise InvalidArgumentError(
                    f"a program that it runs assigns to its input number {i}: that must be an input of this program"
                )
            assigns.add(place)

    def _grow(self, steps: int, depth: int) -> None:
        self.size += steps
        self.depth = max(self.depth, depth)
        if self.size > MOST_STEPS or self.depth > MOST_DEPTH:
            raise InvalidArgumentError(
                f"the program has more than {MOST_STEPS:,} steps, or calls more than {MOST_DEPTH} deep: split it, or "
                "use a loop"
            )

    def _input(self, given: Any) -> Any:
        if isinstance(given, Literal):
            return given
        if isinstance(given, np.ndarray):
            known = self._numbered.setdefault(id(given), len(self.constants))  # ids hold: the arrays are kept
            if known == len(self.constants):
                self.constants.append(given)
                self._count += 1
                self._places[known] = self._count - 1  # a number: names are strings
            return self._places[known]
        if given not in self._places:
            raise InvalidArgumentError(f"input {given!r} is neither a program input nor made before")
        return self._places[given]

    def _made(self, names: Sequence[Any]) -> tuple[int, ...]:
        for name in names:
            if not isinstance(name, str):
                raise InvalidArgumentError(f"names inside a program are strings, found {name!r}")
            if name in self._places:
                raise InvalidArgumentError(f"the name {name!r} is taken")
            self._places[name] = self._count
            self._count += 1
        return tuple([self._places[name] for name in names])

    # ----------------------------------------------------------------------------------------------------- execution
    def run(self, recorder: Any, arguments: Sequence[Any], *, tie: bool = True) -> list[Found]:
        """The results for these arguments; each step is recorded as if it stood in the caller's place.

        Args:
            recorder: Any `Recorder`.
            arguments: Recorded values, Literals, and variables: those are read by the steps that name them, in order.
            tie: Whether the results are connected as those of TensorFlow's functions (`connected`).

        Raises:
            InvalidArgumentError: A wrong count of arguments, one that is no variable where a step assigns, or what a
                step's op does not take.
        """
        self._check(arguments)
        values: list[Any] = [None] * self._count
        values[: len(arguments)] = arguments
        if self.constants:
            self._place_constants(recorder, values)
        apply, read = recorder.apply, recorder.read
        for steps in self._plain:
            recorder.look()
            for step, op, places, attrs, where, output, last in steps:
                if op is not None:
                    inputs = []
                    for one in places:
                        if one.__class__ is int:
                            one = values[one]
                            if one.__class__ is Variable:
                                one = read(one)
                        inputs.append(one)
                    values[output] = apply(op, inputs, attrs, where)
                else:
                    self._flow(recorder, step, values)
                for place in last:
                    values[place] = None
        found = [read(one) if (one := values[place]).__class__ is Variable else one for place in self._results]
        if tie and recorder.recorded:
            for one in arguments:
                if one.__class__ is Variable:
                    for tape in recorder.tapes:
                        tape.watches(one)  # also one that no step reads, as TensorFlow's functions do
            found = self._connected(recorder, arguments, found)
        return found

    def placed(self, recorder: Any, arguments: Sequence[Any], wrap: Callable[[Any], Any]) -> list[Any]:
        """For who goes over the steps another way: the values by place, arguments and `wrap`ped constants set."""
        self._check(arguments)
        values: list[Any] = [None] * self._count
        self._place_constants(recorder, values)
        values = [one if one is None else wrap(one) for one in values]
        values[: len(arguments)] = arguments
        return values

    def results(self, values: Sequence[Any]) -> list[Any]:
        """Likewise: the results among the values by place."""
        return [values[place] for place in self._results]

    def _flow(self, recorder: Any, step: Step, values: list[Any]) -> None:
        inputs = [values[one] if one.__class__ is int else one for one in step.inputs]
        command = step.command
        if isinstance(command, commands.Assign):
            variable, *rest = inputs
            rest = [recorder.read(one) if one.__class__ is Variable else one for one in rest]
            recorder.assign(variable, rest[0], command.mode, *rest[1:])
            return
        made = FLOWS[type(command)](recorder, command, step.programs, inputs)
        if recorder.recorded and recorder.mode.decides and isinstance(command, commands.While | commands.Cond):
            made = self._flow_connections(step, inputs).added(recorder, inputs, made)
        elif recorder.recorded and isinstance(command, commands.Scan) and not command.vectorize:
            made = all_taken(len(inputs) - command.captured, made).added(recorder, inputs, made)
        for place, one in zip(step.outputs, made, strict=True):
            values[place] = one

    def _check(self, arguments: Sequence[Any]) -> None:
        if len(arguments) != len(self.inputs):
            raise InvalidArgumentError(
                f"the program takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), found {len(arguments)}"
            )
        for i in self.assigns:
            if arguments[i].__class__ is not Variable:
                raise InvalidArgumentError(
                    f"the program assigns to its input {self.inputs[i]!r}: give it a variable, not a value"
                )

    def _place_constants(self, recorder: Any, values: list[Any]) -> None:
        """Constants cross to the device once; they are never watched, so that calls may share them."""
        where = getattr(recorder, "backend", None)
        if where is None:
            placed = [recorder.constant(one) for one in self.constants]
        else:
            placed = self._device.get(id(where))  # type: ignore[assignment]
            if placed is None:
                placed = self._device[id(where)] = [recorder.constant(one) for one in self.constants]
        for at, one in enumerate(placed):
            values[self._places[at]] = one

    def held(self) -> list[Any]:
        """The values that its constants have become on devices."""
        return [value for placed in self._device.values() for value in placed]

    # ----------------------------------------------------------------------------------------------------- structure
    def _connected(self, recorder: Any, arguments: Sequence[Any], found: list[Found]) -> list[Found]:
        specs = tuple([one.spec for one in arguments])
        known = self._connections.get(specs)
        if known is None:
            known = connections(partial(self.run, tie=False), specs, self.assigns)
            self._remember(specs, known)
        if known:
            found = known.added(recorder, arguments, found)
        return known.pushed(recorder, arguments, found) if recorder.accumulators else found

    def _flow_connections(self, step: Step, inputs: Sequence[Any]) -> Connections:
        command, specs = step.command, tuple([one.spec for one in inputs])
        known = self._connections.get((step.outputs, specs))
        if known is None:

            def run(recorder: Any, given: Sequence[Any]) -> list[Found]:
                return FLOWS[type(command)](recorder, command, step.programs, given)

            known = connections(run, specs, written(command, step.programs), decided=True)
            self._remember((step.outputs, specs), known)
        return known

    def _remember(self, key: Any, known: Connections) -> None:
        if len(self._connections) >= _SIGNATURES:
            self._connections.clear()
        self._connections[key] = known

    def infer(self, specs: Sequence[Any]) -> tuple[Spec, ...]:
        """The results' specs for arguments of these (a Python number's is weak), without running it.

        Raises:
            InvalidArgumentError: The program does not take such arguments, or its shapes depend on values.
        """
        key = tuple(specs)
        known = self._inferred.get(key)
        if known is None:
            if self.dynamic:
                raise InvalidArgumentError("the specs of this program's results depend on values: run it")
            recorder = SpecRecorder()
            known = tuple([one.spec for one in self.run(recorder, spec_arguments(specs, self.assigns))])
            if len(self._inferred) >= _SIGNATURES:
                self._inferred.clear()
            self._inferred[key] = known
        return known

    def price(self, specs: Sequence[Any]) -> int:
        """Bytes that all its steps together allocate for arguments of these specs: an upper bound of its peak."""
        recorder = SpecRecorder()
        self.run(recorder, spec_arguments(specs, self.assigns))
        return recorder.price

    def facts(self) -> dict[str, Any]:
        """What is known of it, as JSON-able facts."""
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "assigns": [self.inputs[i] for i in sorted(self.assigns)],
            "bytes": self.nbytes,
            "size": self.size,
            "steps": [_facts(step) for step in self.steps],
        }


def _taken_apart(step: Step) -> tuple[Any, ...]:
    """What running the step looks at: a field by name costs as much as the rest of a small step."""
    output = step.outputs[0] if step.op is not None else None
    return step, step.op, step.inputs, step.attrs, getattr(step.command, "where", None), output, step.last


def written(command: Command, programs: Sequence[Program]) -> set[int]:
    """Numbers of the inputs of a command that takes programs that these assign to."""
    first = 1 if isinstance(command, commands.Cond) else 0  # behind what chooses the branch
    return {first + i for program in programs for i in program.assigns}


def _facts(step: Step) -> dict[str, Any]:
    command = step.command
    if isinstance(command, commands.Call):
        inputs = [_input_facts(one) for one in command.inputs]
        return {"op": command.op, "inputs": inputs, "attrs": _attr_facts(command.attrs), "output": command.outputs[0]}
    if isinstance(command, commands.Assign):
        value = _input_facts(command.value)
        return {"do": "assign", "variable": command.variable, "value": value, "mode": command.mode}
    taken = [one for one in commands.functions_of(command) if isinstance(one, int | str)]
    inputs = [_input_facts(one) for one in command.inputs]  # type: ignore[attr-defined]  # every flow has them
    return {"do": command.verb, "programs": taken, "inputs": inputs, "outputs": command.outputs}  # type: ignore[attr-defined]


def _input_facts(given: Any) -> Any:
    """A name, a number, or of a constant the dtype and shape."""
    if isinstance(given, np.ndarray):
        return {"dtype": given.dtype.name, "shape": list(given.shape)}
    if not isinstance(given, Literal):
        return given
    return _attr_facts(given.array)


def _attr_facts(given: Any) -> Any:
    """JSON-able: a number that JSON has no form for, and a dtype, by its name."""
    if isinstance(given, Mapping):
        return {name: _attr_facts(one) for name, one in given.items()}
    if isinstance(given, list | tuple):
        return [_attr_facts(one) for one in given]
    if isinstance(given, np.dtype):
        return given.name
    plain = given is None or isinstance(given, str | int) or (isinstance(given, float) and math.isfinite(given))
    return given if plain else str(given)


def _word(command: Command) -> str:
    return command.op if isinstance(command, commands.Call) else command.verb


def _indices(command: commands.Assign) -> tuple[Any, ...]:
    indices = getattr(command, "indices", None)
    return () if indices is None else (indices,)


def _with_last_uses(steps: Sequence[Step], kept: set[int]) -> list[Step]:
    """The steps with the values that each is the last to take, so that their memory does not wait for the end."""
    seen = set(kept)
    found = []
    for step in reversed(steps):
        last = []
        for place in (*step.inputs, *step.outputs):
            if place.__class__ is int and place not in seen:
                seen.add(place)
                last.append(place)
        found.append(step._replace(last=tuple(last)))
    found.reverse()
    return found
