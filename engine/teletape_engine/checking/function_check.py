"""The gradient check of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from teletape_engine.checking.subject import CheckedSubject, Host, wide
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.query import Declarations
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import InvalidArgumentError, TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Value, Variable
from teletape_engine.spec import DIFFERENTIABLE


class _Call(CheckedSubject):
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
        subject = _Call(recorder, function, [wide(argument) for argument in arguments], declarations)
    except TeletapeError:  # the function mixes its arguments with arrays that are not float64
        subject = _Call(recorder, function, arguments, declarations)
    if not subject.targets:
        raise InvalidArgumentError("check_gradients: no result of the function is of a dtype that has gradients")
    return subject.report(settings)
