"""A function at a point, for `check_gradients`: a saved function, or the calls of a replayable tape run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.derivatives.finite_differences import Report, Settings, check, weights, widened
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery
from teletape_engine.errors import InvalidArgumentError, TapeStateError, TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import CustomCall, CustomOutput
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Uid, Value, Variable
from teletape_engine.spec import DIFFERENTIABLE

Host: TypeAlias = np.ndarray[Any, Any]

CONSUMED: Final = "this tape has answered, and has let go of its inputs: check it before, or make it persistent"


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Settings by name.

    Raises:
        InvalidArgumentError: One that there is none of, or that makes no sense.
    """
    for name, value in given.items():
        if name not in Settings._fields:
            raise InvalidArgumentError(f"check_gradients: no setting {name!r}; there are {', '.join(Settings._fields)}")
        whole = name in ("entries", "seed")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int if whole else int | float)):
            raise InvalidArgumentError(
                f"check_gradients: {name} must be a {'whole ' * whole}number, found {value!r:.60}"
            )
    settings = Settings(**given)
    settings.check()
    return settings


class _Subject:
    """What functions and tapes share: results on the host, and their weighted sums at other points."""

    def __init__(self, recorder: Executor, declarations: Declarations) -> None:
        self.recorder, self.declarations = recorder, declarations
        self.values: list[Host] = []
        self.outputs: list[Host] = []
        self._cts: list[Host] = []
        self._done = 0

    def results(self, i: int | None, value: Host | None) -> list[Value]:
        """The results with another value for argument `i`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        """As `Subject`."""
        raise NotImplementedError  # pragma: no cover - abstract

    def checked(self, settings: Settings) -> Report:
        """The report."""
        self._cts = weights(self, settings.seed)
        return check(self, settings, self._cts)

    def weighted(self, points: Sequence[tuple[int, Host]]) -> Host:
        """As `Subject`. Between two points the caller may cancel."""
        rows = []
        for i, value in points:
            self.recorder.iteration(self._done)
            self._done += 1
            pairs = zip(self._cts, self.results(i, value), strict=True)
            rows.append([float(np.sum(np.conj(_wide(ct)) * _wide(self.host(one))).real) for ct, one in pairs])
        return np.array(rows)

    def host(self, value: Value) -> Host:
        """Its numbers here."""
        return np.asarray(self.recorder.backend.get(value.array))

    def asked(self, tape: Tape, targets: Sequence[Any], sources: Sequence[Any], cts: Sequence[Host]) -> list[list[Any]]:
        """For each target the gradient of each source, dense."""
        out = []
        for target, ct in zip(targets, cts, strict=True):
            query = GradientQuery(
                tape,
                [target],
                sources,
                output_gradients=[self.recorder.constant(ct)],
                retain_tape=True,
                declarations=self.declarations,
            )
            out.append([self._dense(derivative) for derivative in gradient(self.recorder, query)])
        return out

    def _dense(self, found: Any) -> Host | None:
        if isinstance(found, SlicesValue):
            array = densify(found)
            return np.asarray(self.recorder.backend.get(array))
        return None if found is None else self.host(found)


def _wide(array: Host) -> Host:
    return array.astype(widened(array.dtype))


# ---------------------------------------------------------------------------------------------------------- functions
class _Called(_Subject):
    """A function called with arguments."""

    def __init__(
        self, recorder: Executor, function: Function, arguments: Sequence[Host], declarations: Declarations
    ) -> None:
        super().__init__(recorder, declarations)
        self.function, self.values = function, list(arguments)
        self.tape = Tape(persistent=True)
        given = self._given(self.values)
        recorder.open(self.tape)
        recorder.watch(self.tape, given)
        self.targets = self._differentiable(function.run(recorder, given))
        recorder.pause(self.tape)
        self.sources = given
        self.outputs = [self.host(one) for one in self.targets]

    def _given(self, arrays: Sequence[Host]) -> list[Any]:
        made = [self.recorder.constant(np.array(one)) for one in arrays]
        return [Variable(one, trainable=True) if i in self.function.assigns else one for i, one in enumerate(made)]

    def _differentiable(self, found: Sequence[Any]) -> list[Value]:
        recorder = self.recorder
        values = [recorder.read(one) if isinstance(one, Variable) else one for one in found]
        return [one for one in values if not isinstance(one, Literal) and one.spec.differentiable]

    def results(self, i: int | None, value: Host | None) -> list[Value]:
        given = [value if k == i else one for k, one in enumerate(self.values)]
        return self._differentiable(self.function.run(self.recorder, self._given(given)))  # type: ignore[arg-type]  # arrays

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        return self.asked(self.tape, self.targets, self.sources, cts)


def check_function(
    recorder: Executor,
    function: Function,
    arguments: Sequence[Host],
    settings: Settings,
    declarations: Declarations,
) -> Report:
    """A function's derivatives against differences: in float64 where it takes that, else in the arguments' dtypes.

    Args:
        recorder: Of this alone: no tape is active there.
        function: Which.
        arguments: Where.
        settings: How.
        declarations: Those of the session.

    Raises:
        InvalidArgumentError: The function does not take such arguments; no argument or no result has a gradient.
    """
    if not any(one.dtype in DIFFERENTIABLE for one in arguments):
        raise InvalidArgumentError(
            f"check_gradients: no argument has a gradient: {[one.dtype.name for one in arguments]}"
        )
    wide = [_wide(one) for one in arguments]
    try:
        subject = _Called(recorder, function, wide, declarations)
    except TeletapeError:  # what it is mixed with inside is not of float64
        subject = _Called(recorder, function, arguments, declarations)
    if not subject.targets:
        raise InvalidArgumentError("check_gradients: no result of the function is of a dtype that has gradients")
    return subject.checked(settings)


# -------------------------------------------------------------------------------------------------------------- tapes
class _Replayed(_Subject):
    """A tape's calls run again, in float64 where they take that."""

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
        self.values = [self.host(one.value if isinstance(one, Variable) else one) for one in sources]
        self.outputs = [self.host(one) for one in targets]
        self._wide = True
        try:
            self.results(None, None)
        except TeletapeError:
            self._wide = False
            self.results(None, None)

    def gradients(self, cts: Sequence[Host]) -> list[list[Host | None]]:
        return self.asked(self.tape, self.targets, self.sources, cts)

    def results(self, i: int | None, value: Host | None) -> list[Value]:
        recorder = self.recorder
        made: dict[Uid | None, Value] = {}
        moved: Host | None = None
        variable = source = None
        if i is not None:
            source = self.sources[i]
            moved = _wide(value) - _wide(self.values[i])  # type: ignore[arg-type]  # given with i
            if isinstance(source, Variable):
                variable = source.uid
            else:
                made[source.uid] = self._taken(source, moved)
        for plan, inputs, output, kept, _ in self.tape.nodes:
            if output in made:
                continue
            if inputs and inputs[0] in self.tape.variables:
                made[output] = self._taken(kept[0], moved if inputs[0] == variable else None)
                continue
            given = [
                made[uid] if uid in made else self._taken(kept[plan.picks.index(at)]) for at, uid in enumerate(inputs)
            ]
            assert isinstance(plan.bound, Bound)  # a tape with custom calls cannot be run again
            assert isinstance(plan.bound, Bound)  # a tape with custom calls cannot be run again
            made[output] = recorder.apply(plan.bound.op, given, plan.bound.attrs)
        return [made[one.uid] if one.uid in made else self._taken(one) for one in self.targets]

    def _taken(self, value: Any, moved: Host | None = None) -> Any:
        if isinstance(value, Literal) or (not self._wide and moved is None):
            return value
        array = self.host(value)
        array = _wide(array) if moved is None else _wide(array) + moved
        return self.recorder.constant(array if self._wide else array.astype(value.spec.dtype))


def check_tape(
    recorder: Executor,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    settings: Settings,
    declarations: Declarations,
) -> Report:
    """What a replayable tape answers against differences of its calls, run again.

    Args:
        recorder: Of this alone: no tape is active there.
        tape: Which; it answers, and stays as it is.
        targets: Recorded values.
        sources: Recorded values or variables.
        settings: How.
        declarations: Those of the session.

    Raises:
        TapeStateError: It was not opened as replayable, or has answered already.
        InvalidArgumentError: It has calls of the caller's own functions, which only the caller could run again.
    """
    if not tape.replayable:
        raise TapeStateError(
            "this tape keeps what gradients need, and no inputs to run its calls again: open it as replayable, or "
            "check the function itself"
        )
    if tape.consumed:
        raise TapeStateError(CONSUMED)
    own = next((node for node in tape.nodes if isinstance(node[0].bound, CustomCall | CustomOutput)), None)
    if own is not None:
        name = getattr(own[0].bound, "label", "custom_gradient")
        raise InvalidArgumentError(
            f"check_gradients: the tape has a call of the caller's own function {name!r}, which cannot be run again "
            "here: check the function itself"
        )
    targets = [one for one in targets if one.spec.differentiable]
    sources = [one for one in sources if one.spec.differentiable]
    if not targets or not sources:
        raise InvalidArgumentError("check_gradients: no target, or no source, is of a dtype that has gradients")
    return _Replayed(recorder, tape, targets, sources, declarations).checked(settings)
