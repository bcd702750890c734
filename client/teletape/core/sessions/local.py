"""The session in this process: the engine's own recorders and arrays, each op at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from teletape.core import environment
from teletape.core.program import call_site
from teletape.core.sessions.session import Recorded, Session, SparseQuestion, with_functions
from teletape_engine.arrays import HostArray
from teletape_engine.arrays.cpu import reuse_freed_memory
from teletape_engine.commands import Command
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.derivatives.reports.estimate import CostEstimate, estimate
from teletape_engine.derivatives.reports.speed import measured
from teletape_engine.derivatives.reports.statistics import Statistics, statistics_of_recorded
from teletape_engine.diagram.facts import Size
from teletape_engine.explain.explain import explain_numbers
from teletape_engine.explain.explanation import Explanation
from teletape_engine.functions.function import Function
from teletape_engine.functions.steps import StepTimes
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import WHY_NOT
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Footprint
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.session import operations
from teletape_engine.session.state import State
from teletape_engine.spec import Spec

if TYPE_CHECKING:  # it is imported when it is used
    from teletape.core.profiling.profile import Profile

T = TypeVar("T")

POLICY.use(environment.plans(), environment.blas_threads())
if WHY_NOT and POLICY.compiled:
    warnings.warn(f"functions run step by step, several times slower than they could: {WHY_NOT}", stacklevel=2)


class LocalSession(Session):
    """A session in this process, whose C library from then on keeps some freed memory: `reuse_freed_memory`.

    Args:
        device: cpu, gpu, gpu:N or auto; None: the CPU.
    """

    local = True

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        reuse_freed_memory()
        self._state = state = State(device or "cpu")
        self.declarations, self.value_reads, self.numbers = state.declarations, state.value_reads, state.numbers

    def __repr__(self) -> str:
        return f"<LocalSession on {self._state.backend.device}>"

    @property
    def device_name(self) -> str:
        kind, _, number = str(self._state.backend.device).partition(":")
        return f"/job:localhost/replica:0/task:0/device:{kind.upper()}:{number or 0}"

    def recorder(self) -> Executor:
        return self._thread.recorder  # type: ignore[no-any-return]  # thread locals are untyped

    def _new_recorder(self) -> Executor:
        recorder = Executor(self._state.backend, self._state.memory, selects=True)
        recorder.provenance.locate = call_site.caller if environment.call_sites() else None
        recorder.provenance.value_reads = self.value_reads
        self.logs.append(recorder.provenance.records)
        return recorder

    def constant(self, array: HostArray) -> Value:
        if array.dtype == object:  # strings are no arrays of the engine
            return Value(array, Spec.of(array.shape, array.dtype), new_uid())
        return operations.constant(self.recorder(), array)

    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        return operations.variable(self.recorder(), value, trainable=trainable, name=name)

    def assign(self, variable: Variable, value: Recorded | Literal, mode: str, indices: Recorded | None = None) -> None:
        self.recorder().assign(variable, value, mode, indices)

    @contextmanager
    def profile(self) -> Iterator[Profile]:
        from teletape.core.profiling.profile import Profile  # when it is first used

        profile, recorder = Profile(self.place), self.recorder()

        def name_of(function: Function) -> Function:
            if function not in profile.callers:
                profile.note_caller(function, call_site.call_site_text(call_site.caller()))
            return function

        steps = StepTimes(time.perf_counter, name_of)
        timed = _Timed(profile, steps)
        replaced: Any = (  # methods of this recorder and session only: without a profile nothing is slower
            (recorder, "apply", lambda op, *rest: op.name),
            (self, "gradient", lambda *_: "gradient"),
            (self, "run_command", lambda command, *_: command.verb),
            (self, "call_function", lambda *_: "call"),
            (self, "assign", lambda *_: "assign"),
        )
        for owner, name, label in replaced:
            setattr(owner, name, timed.method(getattr(owner, name), label))
        recorder.time_steps(steps)
        try:
            yield profile
        finally:
            recorder.time_steps(None)
            for owner, name, _ in replaced:
                delattr(owner, name)
            profile.end()
            profile.note_steps(steps.rows)

    def fetch(self, value: Recorded) -> HostArray:
        if value.spec.dtype == object:
            return value.array  # type: ignore[no-any-return]  # strings stay on the host
        recorder = self.recorder()
        return operations.fetch(recorder, value, recorder.provenance.here())

    def run_command(
        self, command: type[Command], functions: Sequence[Function], inputs: Sequence[Any], **fields: Any
    ) -> list[Recorded]:
        step = with_functions(command, functions, **fields)
        return operations.run_functions(self.recorder(), step, functions, inputs)

    def call_function(self, function: Function, inputs: Sequence[Any]) -> list[Recorded]:
        return operations.call_function(self._thread.recorder, function, inputs)

    def run_question(
        self,
        tape: Tape,
        compute: Callable[[Recorder], list[Any]],
        command: Callable[[tuple[Any, ...], tuple[str, ...] | None], Command],
    ) -> list[Any]:
        recorder = self.recorder()
        with recorder.backend.quiet():
            return compute(recorder)

    def sparse_derivative(self, question: SparseQuestion) -> tuple[list[Any], dict[str, Any]]:
        recorder = self.recorder()
        with recorder.backend.quiet():
            matrix = question.compute(recorder)
        if matrix is None:
            return [], {}
        numbers = [recorder.constant(part) for part in matrix.numbers(question.format)]
        return [*numbers, matrix.values], matrix.facts(question.format)

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], explanations: list[Explanation]
    ) -> list[Explanation]:
        recorder = self.recorder()
        with recorder.backend.quiet():
            return explain_numbers(recorder, tape, targets, sources, explanations, declarations=self.declarations)

    def _size(self) -> Size:
        base = self._state.backend.base
        return lambda value: base(value.array)

    def gradient_statistics(self, query: GradientQuery) -> list[Statistics | None]:
        return statistics_of_recorded(self.recorder().backend, self.gradient(query))

    def estimate(self, query: GradientQuery, question: str) -> CostEstimate:
        on_cpu = self.recorder().backend.xp is np  # there is no measured speed of a GPU
        return estimate(query, question, measured(time.perf_counter) if on_cpu else None)

    def footprint(self, tape: Tape) -> Footprint:
        return operations.tape_footprint(self.recorder(), tape)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        recorder = self.recorder()
        with recorder.backend.quiet():
            return operations.check_derivatives(recorder, tape, targets, sources, settings, self.declarations)


class _Timed:
    """Wraps methods so that they note their times in a profile; a call inside another one counts for the outer one.

    Args:
        profile: The profile.
        steps: The times of functions' steps, which are subtracted from the methods'.
    """

    def __init__(self, profile: Profile, steps: StepTimes) -> None:
        self._profile, self._steps, self._inside = profile, steps, False

    def method(self, function: Callable[..., T], label: Callable[..., str]) -> Callable[..., T]:
        """Returns a method that also notes its time.

        Args:
            function: The method.
            label: Returns the name of a call from its arguments.
        """

        def timed(*args: Any, **options: Any) -> T:
            if self._inside:
                return function(*args, **options)
            self._inside, self._steps.inside, began = True, 0.0, time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                self._inside = False
                seconds = time.perf_counter() - began
                self._profile.computed += seconds
                line = call_site.call_site_text(call_site.caller())
                self._profile.note_command(label(*args), line, seconds - self._steps.inside)

        return timed
