"""The gradient check of a replayable tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from teletape_engine.catalogue.binding import Bound, Select
from teletape_engine.checking.subject import CheckedSubject, Host, wide
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.query import Declarations
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import InvalidArgumentError, TapeStateError, TeletapeError
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Uid, Value, Variable

CONSUMED: Final = "this tape has answered, and has freed its inputs: check it before, or make it persistent"


class _Replay(CheckedSubject):
    """A tape's calls run again, in float64 if they take that."""

    def __init__(
        self,
        recorder: Executor,
        tape: Tape,
        targets: Sequence[Value],
        sources: Sequence[Any],
        declarations: Declarations,
    ) -> None:
        super().__init__(recorder, declarations)
        self.tape, self.targets, self.sources = tape, targets, sources
        self.values = [self.host(source.value if isinstance(source, Variable) else source) for source in sources]
        self.outputs = [self.host(target) for target in targets]
        self._is_wide = True
        try:
            self.results(None, None)
        except TeletapeError:
            self._is_wide = False
            self.results(None, None)

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        return self.gradients_on(self.tape, self.targets, self.sources, cts)

    def results(self, index: int | None, value: Host | None) -> list[Value]:
        recorder = self.recorder
        replayed: dict[Uid | None, Any] = {}
        change: Host | None = None
        variable: Uid | None = None
        if index is not None and value is not None:
            source = self.sources[index]
            change = wide(value) - wide(self.values[index])
            if isinstance(source, Variable):
                variable = source.uid
            else:
                replayed[source.uid] = self._operand(source, change)
        for number, (plan, inputs, output, residuals, _) in enumerate(self.tape.nodes):
            if not number % CANCEL_STEPS:
                recorder.check_cancelled()
            if output in replayed:
                continue
            if isinstance(plan.bound, Select):
                replayed[output] = replayed[inputs[0]][plan.bound.index]
                continue
            if inputs and inputs[0] in self.tape.variables:
                replayed[output] = self._operand(residuals[0], change if inputs[0] == variable else None)
                continue
            operands = [
                replayed[uid] if uid in replayed else self._operand(residuals[plan.picks.index(position)])
                for position, uid in enumerate(inputs)
            ]
            assert isinstance(plan.bound, Bound)  # a tape with custom calls cannot be run again
            replayed[output] = recorder.apply(plan.bound.op, operands, plan.bound.attrs)
        return [replayed[target.uid] if target.uid in replayed else self._operand(target) for target in self.targets]

    def _operand(self, value: Any, change: Host | None = None) -> Any:
        """A value that the tape keeps as an operand: in float64 if calls take that, and with the change added."""
        if isinstance(value, Literal) or (not self._is_wide and change is None):
            return value
        array = wide(self.host(value))
        array = array if change is None else array + change
        return self.recorder.constant(array if self._is_wide else array.astype(value.spec.dtype))


def check_tape(
    recorder: Executor,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    settings: Settings,
    declarations: Declarations,
) -> Report:
    """Checks what a replayable tape answers against finite differences of its calls, run again.

    Args:
        recorder: Of this check alone: no tape is active there.
        tape: The tape; it answers, and stays as it is.
        targets: Recorded values.
        sources: Recorded values or variables.
        settings: How.
        declarations: Those of the session.

    Raises:
        TapeStateError: The tape was not opened as replayable, or has answered already.
        InvalidArgumentError: It has calls of the caller's own functions, which only the caller could run again.
    """
    if not tape.replayable:
        raise TapeStateError(
            "check_gradients runs the tape's ops again, and this tape does not keep their inputs: create it with "
            "replayable=True, or check a function instead"
        )
    if tape.consumed:
        raise TapeStateError(CONSUMED)
    custom = next((node for node in tape.nodes if isinstance(node[0].bound, CustomTapeCall)), None)
    if custom is not None:
        name = getattr(custom[0].bound, "label", "custom_gradient")
        raise InvalidArgumentError(
            f"check_gradients: the tape has a call of the caller's own function {name!r}, which cannot be run again "
            "here: check the function itself"
        )
    targets = [target for target in targets if target.spec.differentiable]
    sources = [source for source in sources if source.spec.differentiable]
    if not targets or not sources:
        raise InvalidArgumentError("check_gradients: no target, or no source, is of a dtype that has gradients")
    return _Replay(recorder, tape, targets, sources, declarations).report(settings)
