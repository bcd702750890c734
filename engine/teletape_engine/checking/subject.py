"""A subject of the gradient check: derivatives of what can be run again, compared with finite differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.derivatives.finite_differences import Settings, check, weights, widened
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value

Host: TypeAlias = np.ndarray[Any, Any]


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


class CheckedSubject:
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
            rows.append([float(np.sum(np.conj(wide(ct)) * wide(self.host(result))).real) for ct, result in pairs])
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


def wide(array: Host) -> Host:
    """Returns the array in 64 bits, or in complex128, if it has fewer."""
    return array.astype(widened(array.dtype))
