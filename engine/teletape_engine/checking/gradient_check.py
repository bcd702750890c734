"""The gradient check: derivatives of a function, or of a replayed tape, compared with finite differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.derivatives.finite_differences import Settings, check, weights, widened
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import InvalidArgumentError, TapeStateError, TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import CustomOutput, CustomTapeCall
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Uid, Value, Variable
from teletape_engine.spec import DIFFERENTIABLE

Host: TypeAlias = np.ndarray[Any, Any]

CONSUMED: Final = "this tape has answered, and has freed its inputs: check it before, or make it persistent"


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Settings by name.

    Raises:
        InvalidArgumentError: A name is unknown, or a value makes no sense.
    """
    for name, value in values.items():
        if name not in Settings._fields:
            raise InvalidArgumentError(f"check_gradients: no setting {name!r}; there are {', '.join(Settings._fields)}")
        whole = name in ("entries", "seed")
        kinds = int if whole else int | float | None
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise InvalidArgumentError(
                f"check_gradients: {name} must be a {'whole ' * whole}number, found {value!r:.60}"
            )
    settings = Settings(**values)
    settings.check()
    return settings


class _Subject:
    """What functions and tapes have in common; a `finite_differences.Subject` with arrays on the host.

    Attributes:
        values: The sources' values.
        outputs: The results at these values.
    """

    def __init__(self, recorder: Executor, declarations: Declarations) -> None:
        self.recorder, self.declarations = recorder, declarations
        self.values: list[Host] = []
        self.outputs: list[Host] = []
        self._cts: list[Host] = []
        self._done = 0

    def results(self, index: int | None, value: Host | None) -> list[Value]:
        """The results with another value for the source `index`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        """See `finite_differences.Subject`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def report(self, settings: Settings) -> Report:
        """Runs the check."""
        self._cts = weights(self, settings.seed)
        return check(self, settings, self._cts)

    def weighted(self, points: Sequence[tuple[int, Host]]) -> Host:
        """See `finite_differences.Subject`. The caller may cancel between two points."""
        rows = []
        for index, value in points:
            self.recorder.iteration(self._done)
            self._done += 1
            pairs = zip(self._cts, self.results(index, value), strict=True)
            rows.append([float(np.sum(np.conj(_wide(ct)) * _wide(self.host(result))).real) for ct, result in pairs])
        return np.array(rows)

    def host(self, value: Value) -> Host:
        """The value's numbers on the host."""
        return np.asarray(self.recorder.backend.get(value.array))

    def gradients_on(
        self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], cts: Sequence[Host]
    ) -> list[list[Host | None]]:
        """For each target the gradient of each source, dense."""
        gradients = []
        for target, ct in zip(targets, cts, strict=True):
            query = GradientQuery(
                tape,
                [target],
                sources,
                output_gradients=[self.recorder.constant(ct)],
                retain_tape=True,
                declarations=self.declarations,
            )
            gradients.append([self._dense(derivative) for derivative in gradient(self.recorder, query)])
        return gradients

    def _dense(self, derivative: Any) -> Host | None:
        if isinstance(derivative, SlicesValue):
            return np.asarray(self.recorder.backend.get(densify(derivative)))
        return None if derivative is None else self.host(derivative)


def _wide(array: Host) -> Host:
    return array.astype(widened(array.dtype))


# ----------------------------------------------------------------------------------------------------------- functions
class _Call(_Subject):
    """A function called with arguments."""

    def __init__(
        self, recorder: Executor, function: Function, arguments: Sequence[Host], declarations: Declarations
    ) -> None:
        super().__init__(recorder, declarations)
        self.function, self.values = function, list(arguments)
        self.tape = Tape(persistent=True)
        self.sources = self._operands(self.values)
        recorder.context.open(self.tape)
        recorder.context.watch(self.tape, self.sources)
        self.targets = self._differentiable(function.run(recorder, self.sources))
        recorder.context.pause(self.tape)
        self.outputs = [self.host(target) for target in self.targets]

    def _operands(self, arrays: Sequence[Host]) -> list[Any]:
        """The arrays as recorded values; a variable for each input that the function assigns to."""
        values = [self.recorder.constant(np.array(array)) for array in arrays]
        return [
            Variable(value, trainable=True) if index in self.function.assigns else value
            for index, value in enumerate(values)
        ]

    def _differentiable(self, results: Sequence[Any]) -> list[Value]:
        recorder = self.recorder
        values = [recorder.read(result) if isinstance(result, Variable) else result for result in results]
        return [value for value in values if not isinstance(value, Literal) and value.spec.differentiable]

    def results(self, index: int | None, value: Host | None) -> list[Value]:
        arrays = list(self.values)
        if index is not None and value is not None:
            arrays[index] = value
        return self._differentiable(self.function.run(self.recorder, self._operands(arrays)))

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        return self.gradients_on(self.tape, self.targets, self.sources, cts)


def check_function(
    recorder: Executor,
    function: Function,
    arguments: Sequence[Host],
    settings: Settings,
    declarations: Declarations,
) -> Report:
    """Checks a function's derivatives: in float64 if it takes that, else in the arguments' dtypes.

    Args:
        recorder: Of this check alone: no tape is active there.
        function: The function.
        arguments: Where it is checked.
        settings: How.
        declarations: Those of the session.

    Raises:
        InvalidArgumentError: The function does not take these arguments; or no argument or no result has a gradient.
    """
    if not any(argument.dtype in DIFFERENTIABLE for argument in arguments):
        raise InvalidArgumentError(
            f"check_gradients: no argument has a gradient: {[argument.dtype.name for argument in arguments]}"
        )
    try:
        subject = _Call(recorder, function, [_wide(argument) for argument in arguments], declarations)
    except TeletapeError:  # the function mixes its arguments with arrays that are not float64
        subject = _Call(recorder, function, arguments, declarations)
    if not subject.targets:
        raise InvalidArgumentError("check_gradients: no result of the function is of a dtype that has gradients")
    return subject.report(settings)


# --------------------------------------------------------------------------------------------------------------- tapes
class _Replay(_Subject):
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
        replayed: dict[Uid | None, Value] = {}
        change: Host | None = None
        variable: Uid | None = None
        if index is not None and value is not None:
            source = self.sources[index]
            change = _wide(value) - _wide(self.values[index])
            if isinstance(source, Variable):
                variable = source.uid
            else:
                replayed[source.uid] = self._operand(source, change)
        for number, (plan, inputs, output, residuals, _) in enumerate(self.tape.nodes):
            if not number % CANCEL_STEPS:
                recorder.check_cancelled()
            if output in replayed:
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
        array = _wide(self.host(value))
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
    custom = next((node for node in tape.nodes if isinstance(node[0].bound, CustomTapeCall | CustomOutput)), None)
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
