"""The session of a thread that traces a function: its values are symbols, and its ops become steps.

Tapes, rules and drivers are those of every session, on symbols: a whole training step, with its tape and its
assignments, becomes one function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from teletape.core.functions.function_builder import Deferred, HostStep, Stages, TracedStep, needed_steps, written_down
from teletape.core.functions.not_traceable import GOES_OVER_A_DATASET, NeedsValues, NotTraceable
from teletape.core.functions.step_log import STATE, StepLog, Symbol, bind_captures
from teletape.core.functions.tracer import Tracer
from teletape.core.program.user_code import user_code
from teletape.core.sessions.current import inside
from teletape.core.sessions.draws import Draws, seeds_of
from teletape.core.sessions.session import Session, with_functions
from teletape.core.tensors.tensor import EagerTensor
from teletape_engine import commands
from teletape_engine.arrays import HostArray
from teletape_engine.commands import Command
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import FunctionGradient, record_custom
from teletape_engine.recording.values import Variable
from teletape_engine.session.operations import run_functions
from teletape_engine.spec import INTEGER, Spec

_READS: Final = (
    "reads a value",
    "tf.cond or tf.where for `if`, tf.while_loop for `while`, tf.print for print; or return the tensor and read it "
    "outside",
)


class TracingSession(Session):
    """The current session of a thread while it traces.

    Args:
        outer: The session of the function: the program's, or that of an outer trace.
        trace_gradient: Traces the gradient function of a custom gradient; see `trace.trace_gradient`.

    Attributes:
        log: Steps and captures.
        variables_made: The lines of the program that lead to each variable made in the body, as messages list them; the
            variables belong to the program's session.
        inner: Traces that are valid only inside this one, by function and signature.
        arguments: The symbols of the function's arguments.
        known: The values of integers among the arguments, by position; None: it cannot be traced again for values.
        may_have_stages: Whether the function may be stages, between which this process runs.
        deferred: The functions that run after each call, and the structures of the symbols that they need; None:
            nothing may be deferred.
    """

    local = False
    tracing = True

    def __init__(self, outer: Session, trace_gradient: Callable[..., tuple[Any, list[bool]]]) -> None:
        super().__init__()
        self.outer = outer
        self._trace_gradient = trace_gradient
        self.declarations = outer.declarations
        self.value_reads = outer.value_reads
        self.log = StepLog()
        self.variables_made: list[str] = []
        self.inner: dict[Any, Any] = {}
        self.deferred: list[tuple[Callable[[Any], None], Any]] | None = None
        self.arguments: list[Symbol] = []
        self.known: Mapping[int, int] | None = None
        self._integers: dict[int | None, int] = {}  # positions of integers with unknown values, by number
        self.may_have_stages = False
        self._random_seed, self._op_seeds = outer.random_seed(), itertools.count()

    def profile(self) -> AbstractContextManager[Any]:
        return self.home.profile()

    def __repr__(self) -> str:
        return f"<TracingSession, {len(self.log.steps)} steps so far, for {self.outer!r}>"

    @property
    def home(self) -> Session:
        return self.outer.home

    def recorder(self) -> Tracer:
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    def _new_recorder(self) -> Tracer:
        return Tracer(self.log)

    # ------------------------------------------------------------------------------------------- what lies outside
    def adopt(self, value: Any, owner: Session) -> Any | None:
        if owner is not self.outer:
            value = self.outer.adopt(value, owner)
            if value is None:
                return None
        if value.spec.dtype == object:
            return self.constant(self.outer.fetch(value))
        tensor = EagerTensor(value, self.outer)
        return self.log.symbol_of(value.uid) or self.log.capture("tensor", tensor, value.spec, "captured:0", value.uid)

    # ------------------------------------------------------------------------------------------------- random numbers
    def random_seed(self) -> int | None:
        return self._random_seed

    def set_random_seed(self, seed: int | None) -> None:
        self._random_seed = seed

    def next_op_seed(self) -> int:
        """Returns the index of the op among the random ops of this function that have no seed."""
        return next(self._op_seeds)

    def draws(self, kernel: Hashable, seed: Any) -> Draws:
        return Draws(seeds_of(self._random_seed, self.next_op_seed, seed))

    def draw(self, draws: Draws, blocks: int) -> Symbol:
        """Returns a random state, which each call of the function takes from the draws of this op only."""
        return self.log.capture("state", (draws.of_another_kernel(), blocks), STATE, "state:0")

    def record_custom_call(
        self, inputs: Sequence[Any], outputs: Sequence[Any], label: str, function: Callable[..., Any]
    ) -> Sequence[Any]:
        if not inputs or not outputs:
            return outputs
        specs = [output.spec for output in outputs], [value.spec for value in inputs]
        traced, has_gradient = self._trace_gradient(function, *specs)
        others, tracer = traced.bound(), self.recorder()
        fields = {"has_gradient": tuple(has_gradient), "results": len(outputs), "label": label}
        results = self._thread.running_on(  # one step, even if tapes of the trace are active
            self._new_recorder(),
            lambda: self.run_command(commands.CustomCall, [traced.function], [*inputs, *outputs, *others], **fields),
        )
        for before, after in zip(outputs, results, strict=True):
            tracer.note_identity(before, after)
        values = [tracer.read(value) if isinstance(value, Variable) else value for value in others]
        gradient = (FunctionGradient(traced.function, has_gradient), *values)
        record_custom(
            tracer.context.tapes,
            inputs,
            results,
            tag=None,
            label=label,
            gradient=gradient,
            where=tracer.provenance.here(),
        )
        return results

    def defer(self, action: Callable[[Any], None], structure: Any) -> None:
        """Makes each call of the function run `action` on the values of a structure of tensors, after it has run."""
        if self.deferred is None:
            raise NotTraceable("prints in a loop, a branch or a gradient", "it where its values have left those")
        self.deferred.append((action, structure))

    # --------------------------------------------------------------------------------------------------------- values
    def argument(self, spec: Spec, name: str) -> Symbol:
        """Returns the symbol of a further argument; an integer whose value is known is a constant in the body."""
        symbol, position = self.log.new_symbol(spec, f"{name}:0"), len(self.arguments)
        self.arguments.append(symbol)
        if self.known is None or spec.shape or spec.dtype not in INTEGER:
            return symbol
        if position in self.known:
            return self.recorder().constant(np.asarray(self.known[position], spec.dtype), name)
        self._integers[symbol.number] = position
        return symbol

    def constant(self, array: HostArray) -> Symbol:
        return self.recorder().constant(array)

    def variable(self, value: Any, *, trainable: bool, name: str) -> Variable:
        self.variables_made.append(user_code())
        home = self.home
        initial = self._computed_now(value) if value.host is None else home.constant(np.array(value.host))
        return home.variable(initial, trainable=trainable, name=name)

    def check_fixed_shape(self) -> None:
        raise NotTraceable(
            "uses a variable whose shape an assignment may change", "a variable that was made without unknown sizes"
        )

    def _computed_now(self, symbol: Symbol) -> Any:
        """Returns the value of a symbol, computed in the program's session.

        Raises:
            NotTraceable: It depends on an argument, a variable that is assigned to, or an outer trace.
        """
        needed: set[Any] = {symbol.number}
        steps: list[TracedStep] = []
        for step in reversed(self.log.steps):
            if not needed.isdisjoint(step.outputs):
                steps.insert(0, step)
                needed.update([number for number in step.inputs if number.__class__ is int])
        captures = [capture for capture in self.log.captures if capture.symbol.number in needed]
        available = {capture.symbol.number for capture in captures}.union(*[step.outputs for step in steps])
        assigned = {number for step in self.log.steps for number in step.writes}
        traced = any(capture.kind == "tensor" and capture.value.session.tracing for capture in captures)
        if needed - available or needed & assigned or traced:
            raise NotTraceable(
                "makes a variable of what is computed from an argument",
                "a variable made before, or of plain numbers",
                once=True,
            )
        inputs = [capture.symbol for capture in captures]
        function = written_down(needed_steps(steps, [symbol.number]), inputs, [symbol])
        [value] = inside(
            None, lambda: self.home.run_command(commands.CallFunction, [function], bind_captures(captures))
        )
        return value

    def run_again(
        self, results: Sequence[Any], sources: Sequence[Any], stops: Sequence[Any]
    ) -> tuple[list[Any], Callable[[], list[Any]]]:
        """Records the steps from some values to later ones again, for a tape that is open now.

        Args:
            results: The later values.
            sources: The values, and variables.
            stops: Values that count as constants.

        Returns:
            For each source the value that the tape has to watch; and a function that computes the results that depend
            on a source, and None for the others.
        """
        tracer, log = self.recorder(), self.log
        numbers = [tracer.number_of(value) if isinstance(value, Variable) else value.number for value in sources]
        fixed = {value.number for value in stops}
        dependent, steps = {number for number in numbers if number is not None}, []
        inner_ends = dependent | fixed
        for step in log.steps:
            if step.writes or not inner_ends.isdisjoint(step.outputs):
                continue
            if not dependent.isdisjoint([number for number in step.inputs if number.__class__ is int]):
                steps.append(step)
                dependent.update(step.outputs)
        connected = [value if value.number in dependent else None for value in results]
        reached = [value for value in connected if value is not None]
        steps = needed_steps(steps, [value.number for value in reached])
        computed_here = {number for step in steps for number in step.outputs}
        used = [number for step in steps for number in step.inputs if number.__class__ is int]
        outer = [log.values[number] for number in dict.fromkeys([*used, *[value.number for value in reached]])]
        inputs = [symbol for symbol in outer if symbol.number not in computed_here]
        function = written_down(steps, inputs, reached)
        variables = {tracer.number_of(local): local for local in list(log.variables.values())}
        read = {number: tracer.read(local) for number, local in variables.items() if number in (*numbers, *used)}
        values = [read.get(symbol.number, symbol) for symbol in inputs]

        def again() -> list[Any]:
            computed = iter(self.run_command(commands.CallFunction, [function], values))
            return [None if value is None else next(computed) for value in connected]

        watched = [
            read[number] if isinstance(value, Variable) else value if number is None else log.values[number]
            for value, number in zip(sources, numbers, strict=True)
        ]
        return watched, again

    def assign(self, variable: Variable, value: Any, mode: str, *indices: Any) -> None:
        self.recorder().assign(variable, value, mode, *indices)

    def fetch(self, value: Any) -> HostArray:
        return self.elements(value, *_READS)

    def elements(self, value: Any, why: str, advice: str) -> HostArray:
        """Returns the elements of a value that the trace needs; see `ask_for`.

        Raises:
            NeedsValues: They follow from integers among the function's arguments.
            NotTraceable: They are not known.
        """
        if isinstance(value, Symbol) and value.host is not None:
            return value.host
        self.ask_for(value, why, advice)
        raise NotTraceable(why, advice)

    def ask_for(self, value: Symbol, why: str, advice: str) -> None:
        """Requests a trace for the values of the function's integer arguments, if `value` follows from them.

        Args:
            value: The value that the trace needs.
            why: The reason, as in NotTraceable.
            advice: The alternative, as in NotTraceable.

        Raises:
            NeedsValues: It follows from them.
        """
        integers = self._integers_of(value)
        if integers:
            session = next(iter(integers))
            raise NeedsValues(why, advice, session.outer, tuple(sorted(integers[session])))

    def _integers_of(self, value: Symbol) -> dict[TracingSession, set[int]] | None:
        """Returns the integer arguments from which a value follows, by trace; None: it depends on more than these."""
        integers: dict[TracingSession, set[int]] = {}
        captures = {capture.symbol.number: capture for capture in self.log.captures}
        steps = {number: step for step in self.log.steps for number in step.outputs}
        pending = [] if value.number is None else [value.number]
        seen = set(pending)
        for number in pending:
            capture, step = captures.get(number), steps.get(number)
            if number in self._integers:
                integers.setdefault(self, set()).add(self._integers[number])
            elif capture is not None and capture.kind == "tensor" and capture.value.session.tracing:
                further = capture.value.session._integers_of(capture.value.recorded)
                if further is None:
                    return None
                for session, positions in further.items():
                    integers.setdefault(session, set()).update(positions)
            elif step is None or not isinstance(step.command, commands.Call):
                return None
            else:
                used = [each for each in step.inputs if each.__class__ is int and each not in seen]
                pending += used
                seen.update(used)
        return integers

    def run_command(
        self, command: type[Command], functions: Sequence[Function], inputs: Sequence[Any], **fields: Any
    ) -> list[Any]:
        tracer, step = self.recorder(), with_functions(command, functions, **fields)
        local = [tracer.local_variable(value) if isinstance(value, Variable) else value for value in inputs]
        if tracer.context.active:  # a tape of this trace records it: its steps become steps of this trace
            return run_functions(tracer, step, functions, local)
        return list(tracer.step(step, functions, local))

    # ----------------------------------------------------------------------------------------------------- the result
    def add_host_step(self, action: HostStep, inputs: Sequence[Any], specs: Sequence[Spec]) -> list[Symbol]:
        """Records work of this process between two stages, and returns its results; tapes do not record it.

        Args:
            action: The work; it may assign to the variables among its inputs.
            inputs: Symbols and variables.
            specs: The specs of its results.

        Raises:
            NotTraceable: This trace is of a loop, a branch or a gradient.
        """
        if not self.may_have_stages:
            raise NotTraceable(GOES_OVER_A_DATASET, "the loop over the dataset outside of other loops and of branches")
        if self.deferred:  # earlier prints come first
            waiting, self.deferred = self.deferred, []
            printing = Deferred(waiting)
            self.add_host_step(printing, printing.inputs(), [])
        tracer = self.recorder()
        variables = [value for value in inputs if isinstance(value, Variable)]
        numbers = [tracer.number_of(value) if isinstance(value, Variable) else value for value in inputs]
        results = [self.log.new_symbol(spec, "for:0") for spec in specs]
        self.log.add_stage(action, numbers, results)
        for variable in variables:
            tracer.changed_variable(tracer.local_variable(variable))
        return results

    def stages(self, results: Sequence[Symbol]) -> Stages | None:
        """Returns the function as stages, with the inputs of `function`; None: it is one engine function."""
        if not self.log.stages:
            return None
        inputs = [*self.arguments, *(capture.symbol for capture in self.log.captures)]
        return Stages(self.log.in_order(), inputs, results)

    def function(self, results: Sequence[Symbol]) -> Function:
        """Returns the traced function: its inputs are the arguments and then the captures."""
        steps = needed_steps(self.log.steps, [result.number for result in results])
        return written_down(steps, [*self.arguments, *(capture.symbol for capture in self.log.captures)], results)
