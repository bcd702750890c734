"""The session in this process: the engine's own recorders and arrays, each op at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from teletape import call_site, environment
from teletape.sessions.session import Recorded, Session, with_functions
from teletape_engine.arrays import HostArray
from teletape_engine.checking.gradient_check import check_tape
from teletape_engine.commands import Command
from teletape_engine.derivatives.finite_differences import Report, Settings
from teletape_engine.diagram.facts import Size
from teletape_engine.explain.explain import explain_numbers
from teletape_engine.explain.explanation import Explanation
from teletape_engine.functions.function import RUNNERS, Function
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Footprint, footprint
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.session.state import State
from teletape_engine.spec import Spec, weak_dtype


class LocalSession(Session):
    """A session in this process.

    Args:
        device: cpu, gpu or gpu:N; None: the CPU.
    """

    local = True

    def __init__(self, device: str | None = None) -> None:
        super().__init__()
        self._state = state = State(device or "cpu")
        self.declarations, self.value_reads, self.numbers = state.declarations, state.value_reads, state.numbers
        # TensorFlow does not warn about 1 / 0. NumPy's errstate costs 1.7 µs for each op, a filter costs nothing while
        # nothing overflows.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"teletape_engine\.")

    def _new_recorder(self) -> Executor:
        recorder = Executor(self._state.backend, self._state.memory)
        recorder.provenance.locate = call_site.caller if environment.call_sites() else None
        recorder.provenance.value_reads = self.value_reads
        self.logs.append(recorder.provenance.records)
        return recorder

    def constant(self, array: HostArray) -> Value:
        if array.dtype == object:  # strings are no arrays of the engine: they only pass through
            return Value(array, Spec.of(array.shape, array.dtype), new_uid())
        recorder = self.recorder()
        value: Value = recorder.constant(array)
        recorder.provenance.note_constant(value, array)
        return value

    def variable(self, value: Recorded, *, trainable: bool, name: str) -> Variable:
        variable = Variable(value.alias(new_uid()), trainable=trainable, name=name)
        self.recorder().provenance.note_assignment(variable, value.uid, "set")
        return variable

    def assign(self, variable: Variable, value: Recorded | Literal, mode: str, indices: Recorded | None = None) -> None:
        self.recorder().assign(variable, value, mode, indices)

    def fetch(self, value: Recorded) -> HostArray:
        if value.spec.dtype == object:
            return value.array  # type: ignore[no-any-return]  # strings stay on the host
        array = self._state.backend.get(value.array)
        self.value_reads.note(value.uid, array, self.recorder().provenance.here())
        return array

    def run_command(
        self, command: type[Command], functions: Sequence[Function], inputs: Sequence[Any], **fields: Any
    ) -> list[Recorded]:
        recorder = self.recorder()
        results = RUNNERS[command](recorder, with_functions(command, functions, **fields), functions, inputs)
        return [
            recorder.number(result, weak_dtype(result.spec, None)) if isinstance(result, Literal) else result
            for result in results
        ]

    def _with_numbers(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], explanations: list[Explanation]
    ) -> list[Explanation]:
        return explain_numbers(self.recorder(), tape, targets, sources, explanations, declarations=self.declarations)

    def _size(self) -> Size:
        base = self._state.backend.base
        return lambda value: base(value.array)

    def footprint(self, tape: Tape) -> Footprint:
        return footprint(tape, self._state.backend.base)

    def check_tape(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], settings: Settings) -> Report:
        aside = Executor(self._state.backend, self._state.memory)
        return check_tape(aside, tape, targets, sources, settings, self.declarations)
