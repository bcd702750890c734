"""Functions: closed lists of steps with named inputs and outputs. Data, never code.

Running one on a recorder means its steps in order, as if they were in the caller's place: so nothing else needs to know
of functions to differentiate, batch or predict them. `compile.py` makes functions. Long because commands that call
functions, a function's runs and what it remembers of them belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from teletape_engine import commands, object_bytes
from teletape_engine.catalogue.attributes import Attrs, keep
from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.commands import Command
from teletape_engine.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, TeletapeError
from teletape_engine.functions.edges import Edges, all_taken, edges_of, spec_arguments
from teletape_engine.functions.steps import failed_step, note_function, step_facts
from teletape_engine.functions.untyped import MOST_SIGNATURES, typed_inputs
from teletape_engine.ops.assign import WHOLE
from teletape_engine.plans.cache import Plans
from teletape_engine.plans.lower.lowering import MOST_INSTRUCTIONS
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.recorded import LEAST_STEPS, RecordedPlans
from teletape_engine.plans.unrolled import UnrolledPlans
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.values import Literal, Recorded, Variable
from teletape_engine.spec import INTEGER, DType, Spec

#: Commands that plans have, and those whose iterations and branches they have if values decide as before.
_CALLS: Final[tuple[type[Command], ...]] = (commands.CallFunction, commands.ValueAndGradient, commands.Map)
_FLOWS: Final[tuple[type[Command], ...]] = (commands.While, commands.Cond, commands.Scan)

#: Runs a command that takes functions: (recorder, command, functions, inputs) -> results.
Runner: TypeAlias = Callable[[Recorder, Any, Sequence["Function"], Sequence[Any]], list[Recorded]]
R = TypeVar("R", bound=Runner)

#: The runner of each command that takes functions. A variable among the inputs stays one; the functions are in the
#: order of the command's fields.
RUNNERS: Final[dict[type[Command], Runner]] = {}


def runs(command: type[Command]) -> Callable[[R], R]:
    """Registers the runner of a command that takes functions, for the command and for the step."""

    def register(run: R) -> R:
        @wraps(run)
        def separate(
            recorder: Recorder, command: Any, functions: Sequence[Function], inputs: Sequence[Any]
        ) -> list[Recorded]:
            inputs = typed_inputs(recorder, command, functions, inputs)
            whole = recorder.whole(command, functions, inputs)
            results = run(recorder, command, functions, inputs) if whole is None else whole
            return _separate(recorder, inputs, results) if recorder.recorded else results

        RUNNERS[command] = separate
        return run

    return register


def _separate(recorder: Recorder, inputs: Sequence[Any], results: Sequence[Recorded]) -> list[Recorded]:
    """The results, each a value of its own to tapes and accumulators, also one that is an input or a variable's value.

    As in TensorFlow: a gather from a function's result is not one from the argument that the function returns.
    """
    taken = {value.uid for value in (*inputs, *recorder.context.reads()) if value.__class__ is not Literal}
    separate = []
    for result in results:
        if result.__class__ is not Literal:
            if result.uid in taken:
                result = recorder.op(ops.zeros_edge, result)
            taken.add(result.uid)
        separate.append(result)
    return separate


class Step(NamedTuple):
    """One step. Values are in registers: the arguments, the constants, then what steps compute.

    Attributes:
        command: As it was posted.
        op: For an op: which, with `attrs`.
        attrs: The op's canonical attributes.
        inputs: Registers of the values that it takes; a number is itself.
        outputs: Registers of its results.
        functions: The functions that it takes.
        last: Registers that no later step takes.
    """

    command: Command
    op: Op | None
    attrs: Attrs
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]
    functions: tuple[Function, ...]
    last: tuple[int, ...]


def assigned_inputs(command: Command, functions: Sequence[Function]) -> set[int]:
    """Numbers of the inputs of a command that takes functions to which these assign."""
    first = 1 if isinstance(command, commands.Cond) else 0  # after the input that chooses the branch
    return {first + i for function in functions for i in function.assigns}


@runs(commands.CallFunction)
def call(recorder: Recorder, command: Command, functions: Sequence[Function], inputs: Sequence[Any]) -> list[Recorded]:
    """The results of the function."""
    (function,) = functions
    return function.run(recorder, inputs)


class Inferred(NamedTuple):
    """What specs alone say of a call.

    Attributes:
        specs: Of the results.
        refuses: Whether an op may refuse values of such arguments: an integer that is an index or a divisor.
    """

    specs: tuple[Spec, ...]
    refuses: bool


class _Inference(SpecRecorder):
    """Infers the specs of a straight line of ops; `refuses` is whether one of them may refuse values."""

    refuses = False

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        if any(bound.specs[i].dtype in INTEGER for i in bound.op.refuses):
            self.refuses = True
        return super().run(bound, inputs)


@dataclass(frozen=True, eq=False)
class Function:
    """A compiled function.

    Attributes:
        inputs: Names of the arguments.
        commands: The steps as commands, in order; the functions in them as they were posted.
        outputs: Names of the results, each an input or a step's output.
        steps: The same steps, looked up.
        results: Registers of the results.
        register_count: Number of registers.
        constants: Registers of constants, with their arrays; an untyped list takes a dtype in each op that it meets.
        assigns: Numbers of the inputs that must be variables, since a step assigns to them.
        dynamic: Whether shapes depend on values.
        decides: Whether what runs depends on values.
        refuses: Whether an op in it may refuse values (an index out of range).
        checks: Whether it asserts.
        size: Steps in all, those of functions within counted at each call.
        depth: Functions within functions.
        dtype: Of untyped numbers, in its steps and in calls, that meet no array; None: as they are.
        call_sites: For each step the line in the program's function that called for it; None: it is the line that calls
            the function. Empty: they are not known.
        plans: How it runs once it was called before.
        recorded_plans: The same under a tape.
        number_dtypes: What untyped inputs took in calls with inputs of certain specs; see `untyped.call_dtypes`.
    """

    inputs: tuple[str, ...]
    commands: tuple[Command, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    register_count: int
    constants: tuple[tuple[int, np.ndarray[Any, Any] | Literal], ...]
    assigns: frozenset[int]
    dynamic: bool
    decides: bool
    refuses: bool
    checks: bool
    size: int
    depth: int
    dtype: DType | None = None
    call_sites: tuple[str | None, ...] = ()
    _chunks: list[list[tuple[Any, ...]]] = field(init=False, repr=False)
    _on_device: dict[Any, list[Any]] = field(init=False, repr=False, default_factory=dict)
    _edges: dict[Any, Edges] = field(init=False, repr=False, default_factory=dict)
    _specs: dict[Any, Inferred] = field(init=False, repr=False, default_factory=dict)
    number_dtypes: dict[Any, dict[int, DType]] = field(init=False, repr=False, default_factory=dict)
    plans: Plans = field(init=False, repr=False)
    recorded_plans: RecordedPlans = field(init=False, repr=False)

    def __post_init__(self) -> None:
        possible = not self.decides and _may_have_plans(self, _CALLS)
        unrolls = not possible and _may_have_plans(self, (*_CALLS, *_FLOWS))
        object.__setattr__(self, "plans", UnrolledPlans() if unrolls else Plans(possible))
        records = possible and self.size >= LEAST_STEPS and not self.assigns
        records = records and _may_have_plans(self, (commands.CallFunction,))
        object.__setattr__(self, "recorded_plans", RecordedPlans(records))
        rows = [_row(step) for step in self.steps]
        chunks = [rows[i : i + CANCEL_STEPS] for i in range(0, len(rows), CANCEL_STEPS)]
        object.__setattr__(self, "_chunks", chunks)

    def __repr__(self) -> str:
        return f"<Function ({', '.join(self.inputs)}) -> ({', '.join(self.outputs)}), {self.size} steps>"

    @property
    def nbytes(self) -> int:
        """Bytes of the constants."""
        return sum([(each.array if isinstance(each, Literal) else each).nbytes for _, each in self.constants])

    @property
    def remembered_bytes(self) -> int:
        """Bytes of what it remembers of calls with inputs of other specs."""
        edges = [len(numbers) for each in self._edges.values() for numbers in (*each.ties, *each.anchors)]
        signatures = len(self._edges) + len(self._specs) + len(self.number_dtypes)
        instructions = object_bytes.INSTRUCTION * (self.plans.instructions + self.recorded_plans.instructions)
        return object_bytes.SIGNATURE * signatures + 8 * sum(edges) + instructions

    def forget(self) -> None:
        """Forgets what it remembers of calls: it is found out again."""
        for table in (self._edges, self._specs, self.number_dtypes):
            table.clear()
        self.plans.forget()
        self.recorded_plans.forget()

    # ----------------------------------------------------------------------------------------------------- execution
    def run(self, recorder: Recorder, arguments: Sequence[Any], *, tie: bool = True) -> list[Recorded]:
        """The results for these arguments; each step is recorded as if it were in the caller's place.

        Args:
            recorder: Any recorder.
            arguments: Recorded values, Literals, and variables: those are read by the steps that name them, in order.
            tie: Whether the results get the edges that those of TensorFlow's functions have (`edges.py`).

        Raises:
            InvalidArgumentError: A wrong count of arguments, one that is no variable where a step assigns, or what a
                step's op does not take.
        """
        self._check(arguments)
        plans = self.plans
        planned_here = recorder.plannable or (recorder.on_gpu and not plans.unrolls)
        planned_here = planned_here and recorder.step_times is None and POLICY.enabled
        if planned_here and (plans.possible or plans.unrolls) and not recorder.recorded:
            planned = plans.run(self, recorder, arguments)  # type: ignore[arg-type]  # an Executor is plannable
            if planned is not None:
                return planned
        elif planned_here and self.recorded_plans.possible and _is_tape_alone(recorder):
            planned = self.recorded_plans.record(self, recorder, arguments, tie=tie)  # type: ignore[arg-type]  # likewise
            if planned is not None:
                return planned
        return self.interpret(recorder, arguments, tie=tie)

    def interpret(self, recorder: Recorder, arguments: Sequence[Any], *, tie: bool = True) -> list[Recorded]:
        """As `run`, step by step whatever plans there are."""
        values: list[Any] = [None] * self.register_count
        values[: len(arguments)] = arguments
        if self.constants:
            self._place_constants(recorder, values)
        apply, read, times = recorder.apply, recorder.read, recorder.step_times
        step = None
        try:
            for rows in self._chunks:
                recorder.check_cancelled()
                if times is not None:
                    rows = times.timed(self, rows)
                for step, op, registers, attrs, where, output, last in rows:
                    if op is not None:
                        inputs = []
                        for operand in registers:
                            if operand.__class__ is int:
                                operand = values[operand]
                                if operand.__class__ is Variable:
                                    operand = read(operand)
                            inputs.append(operand)
                        values[output] = apply(op, inputs, attrs, where)
                    else:
                        self._run_step(recorder, step, values)
                    for register in last:
                        values[register] = None
        except (CancelledError, DeadlineExceededError):
            raise  # it is no step's fault
        except TeletapeError as error:
            if step is not None:
                self._note_step(error, step)
            raise
        results = [
            read(value) if (value := values[register]).__class__ is Variable else value for register in self.results
        ]
        if tie and recorder.recorded:
            for argument in arguments:
                if argument.__class__ is Variable:
                    for tape in recorder.context.tapes:
                        tape.watches(argument)  # also one that no step reads, as TensorFlow's functions do
            specs = [argument.spec for argument in arguments]
            results = self.with_edges(recorder, arguments, specs, results)
        return results

    def registers(self, recorder: Recorder, arguments: Sequence[Any], wrap: Callable[[Any], Any]) -> list[Any]:
        """For another way to run the steps: the registers, the arguments and the constants in them.

        Args:
            recorder: Where the constants are.
            arguments: As `wrap` returns values.
            wrap: Applied to each constant.
        """
        self._check(arguments)
        values: list[Any] = [None] * self.register_count
        self._place_constants(recorder, values)
        values = [value if value is None or value.__class__ is Literal else wrap(value) for value in values]
        values[: len(arguments)] = arguments
        return values

    def _run_step(self, recorder: Recorder, step: Step, values: list[Any]) -> None:
        inputs = [values[operand] if operand.__class__ is int else operand for operand in step.inputs]
        command = step.command
        if isinstance(command, commands.Assign):
            variable, *operands = inputs
            operands = [recorder.read(operand) if operand.__class__ is Variable else operand for operand in operands]
            recorder.assign(variable, operands[0], command.mode, *operands[1:])
            return
        if step.op is not None:
            inputs = [recorder.read(operand) if operand.__class__ is Variable else operand for operand in inputs]
            results = recorder.apply(step.op, inputs, step.attrs, getattr(command, "where", None))
        else:
            results = RUNNERS[type(command)](recorder, command, step.functions, inputs)
        if recorder.recorded and recorder.mode.decides and isinstance(command, commands.While | commands.Cond):
            results = self._step_edges(step, inputs).added(recorder, inputs, results)
        elif recorder.recorded and isinstance(command, commands.Scan) and not command.vectorize:
            results = all_taken(len(inputs) - command.captured, results).added(recorder, inputs, results)
        for register, result in zip(step.outputs, results, strict=True):
            values[register] = result

    def _note_step(self, error: TeletapeError, step: Step) -> None:
        """Adds to an error's details which step of which function raised it, for what reads them (`steps.py`)."""
        if "step" not in error.details:
            number = next(i for i, other in enumerate(self.steps) if other is step)
            error.details.update(failed_step(number, step.command))
            error.function = self
        else:
            names = [name for name in commands.functions_of(step.command) if name is not None]
            note_function(error, step.command, dict(zip(names, step.functions, strict=True)).get)

    def _check(self, arguments: Sequence[Any]) -> None:
        if len(arguments) != len(self.inputs):
            raise InvalidArgumentError(
                f"the function takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), found {len(arguments)}"
            )
        for i in self.assigns:
            if arguments[i].__class__ is not Variable:
                raise InvalidArgumentError(
                    f"the function assigns to its input {self.inputs[i]!r}: give it a variable, not a value"
                )

    def _place_constants(self, recorder: Recorder, values: list[Any]) -> None:
        """Constants cross to the device once; they are never watched, so that calls may share them."""
        device = recorder.backend
        placed = None if device is None else self._on_device.get(device)
        if placed is None:
            placed = [each if isinstance(each, Literal) else recorder.constant(each) for _, each in self.constants]
            if device is not None:
                self._on_device[device] = placed  # the device lives as long as they
        for (register, _), value in zip(self.constants, placed, strict=True):
            values[register] = value

    def placed_on(self, device: Any) -> list[Any] | None:
        """The constants as they are on a device; None: they are not there yet."""
        return self._on_device.get(device)

    def place_on(self, device: Any, values: list[Any]) -> None:
        """Gives a copy of a function the constants on a device."""
        self._on_device[device] = values

    def values_on_devices(self) -> list[Any]:
        """The values that its constants have become on devices."""
        return [value for placed in self._on_device.values() for value in placed if value.__class__ is not Literal]

    # ----------------------------------------------------------------------------------------------------- structure
    def with_edges(
        self, recorder: Recorder, arguments: Sequence[Any], specs: Sequence[Any], results: list[Recorded]
    ) -> list[Recorded]:
        """The results with the edges of a call whose arguments have these specs; of a map they are stacks of such."""
        specs = tuple(specs)
        edges = self._edges.get(specs)
        if edges is None:
            edges = edges_of(partial(self.run, tie=False), specs, self.assigns)
            keep(self._edges, specs, edges, MOST_SIGNATURES)
        if edges:
            results = edges.added(recorder, arguments, results)
        return edges.pushed(recorder, arguments, results) if recorder.context.accumulators else results

    def _step_edges(self, step: Step, inputs: Sequence[Any]) -> Edges:
        command, specs = step.command, tuple([operand.spec for operand in inputs])
        edges = self._edges.get((step.outputs, specs))
        if edges is None:

            def run(recorder: Recorder, arguments: Sequence[Any]) -> list[Recorded]:
                return RUNNERS[type(command)](recorder, command, step.functions, arguments)

            assigned = assigned_inputs(command, step.functions)
            edges = edges_of(run, specs, assigned, decided=True)
            keep(self._edges, (step.outputs, specs), edges, MOST_SIGNATURES)
        return edges

    def infer(self, specs: Sequence[Any]) -> Inferred:
        """What is known of the results for arguments of these specs (a Python number's is weak), without running it.

        Raises:
            InvalidArgumentError: The function does not take such arguments, or its shapes depend on values.
        """
        key = tuple(specs)
        inferred = self._specs.get(key)
        if inferred is None:
            if self.dynamic:
                raise InvalidArgumentError("the specs of this function's results depend on values: run it")
            recorder = _Inference()
            results = self.run(recorder, spec_arguments(specs, self.assigns))
            refuses = self.refuses and (recorder.refuses or not self.plans.possible)
            inferred = Inferred(tuple([result.spec for result in results]), refuses)
            keep(self._specs, key, inferred, MOST_SIGNATURES)
        return inferred

    def price(self, specs: Sequence[Any]) -> int:
        """Bytes that all its steps together allocate for arguments of these specs: an upper bound of its peak."""
        recorder = SpecRecorder()
        self.run(recorder, spec_arguments(specs, self.assigns))
        return recorder.price

    def facts(self) -> Mapping[str, Any]:
        """JSON-able facts about it, which never change."""
        return self._facts

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        return {
            "inputs": self.inputs,
            "outputs": self.outputs,
            "assigns": [self.inputs[i] for i in sorted(self.assigns)],
            "dtype": None if self.dtype is None else self.dtype.name,
            "bytes": self.nbytes,
            "size": self.size,
            "steps": [step_facts(step.command) for step in self.steps],
        }


def _may_have_plans(function: Function, kinds: tuple[type[Command], ...]) -> bool:
    """Whether the steps are ops, whole assignments, and commands of these kinds that take functions of such steps."""
    if function.dynamic or not 0 < function.size <= MOST_INSTRUCTIONS:
        return False
    for step in function.steps:
        command = step.command
        if step.op is not None:
            continue
        if isinstance(command, commands.Assign):
            if getattr(command, "indices", None) is not None or command.mode not in WHOLE:
                return False
        elif not isinstance(command, kinds) or not all(
            _may_have_plans(each, kinds) or not each.size for each in step.functions
        ):
            return False
    return True


def _is_tape_alone(recorder: Recorder) -> bool:
    """Whether one tape records what runs, and nothing else does."""
    return len(recorder.context.tapes) == 1 and not recorder.context.accumulators


def _row(step: Step) -> tuple[Any, ...]:
    """What running the step reads, as a tuple: a field by name costs as much as the rest of a small step.

    An op of several results has no `op` there: `_run_step` runs it.
    """
    op, output = (step.op, step.outputs[0]) if len(step.outputs) == 1 else (None, None)
    return step, op, step.inputs, step.attrs, getattr(step.command, "where", None), output, step.last
