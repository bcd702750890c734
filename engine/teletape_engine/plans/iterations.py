"""The iterations of a running loop: which of them the interpreter makes, which is lowered, and which the library makes.

The interpreter makes the first; then one is lowered; if the next has arguments of the same layouts, the library makes
the rest. The plan is remembered with the body's own plans. The loop is a generator: it stops at what the interpreter is
to run, and goes on with the results.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InternalError, ResourceExhaustedError
from teletape_engine.plans.cache import Plans, key_of, plannable
from teletape_engine.plans.ir.buffers import Unplaceable
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.loops.form import LoopForm, LoopOutcome
from teletape_engine.plans.run.loops.loop import Loop
from teletape_engine.recording.executor import note_decision
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Value, Variable, new_uid
from teletape_engine.spec import Spec

_STACK: Final[Any] = ops.stack
_UNKNOWN: Final[Any] = object()
_TRIES: Final = 3  #: Iterations that are lowered in one run of a loop, until two in a row have the same layouts.
_FEW: Final = 8  #: A loop that is known to be shorter is not lowered.


class Repeated(Protocol):
    """A function, as loops see it."""

    @property
    def plans(self) -> Plans:
        """Its plans, and those of loops with it as their body."""

    @property
    def size(self) -> int:
        """The number of its steps."""

    @property
    def dynamic(self) -> bool:
        """Whether shapes depend on values."""


#: What the interpreter is to run of a loop: its recorder, the arguments; the condition if this is true, else the body.
Part: TypeAlias = tuple[Recorder, list[Any], bool]


class _Row(Protocol):
    def __getitem__(self, at: int) -> Any: ...


class _Watched(NamedTuple):
    """An iteration that is lowered.

    Attributes:
        key: What its plan depends on.
        lowering: Its recorder.
        arguments: Of the iteration.
        started: Their values when it began.
        iterations: The number of iterations before.
        condition: The condition's result; None: there is none.
        head: The number of instructions that compute it.
        results: Of the body.
    """

    key: Any
    lowering: Lowering
    arguments: Sequence[Any]
    started: Sequence[Any]
    iterations: int
    condition: Any = None
    head: int = 0
    results: Sequence[Any] = ()


class LoopResults(NamedTuple):
    """What a loop comes to.

    Attributes:
        values: What it carries, after the last iteration.
        iterations: Their number.
        others: For each iteration of the interpreter its number, and its results after those that are carried.
    """

    values: list[Any]
    iterations: int
    others: Sequence[tuple[int, list[Any]]]


class Iterations:
    """The iterations of one loop.

    Args:
        recorder: Of the loop.
        body: The body.
        condition: The condition; None: the loop has a length.
        form: What the arguments of the body are.
        captured: The arguments after those that are carried, and after the elements.
        sources: The arrays of which elements are taken.
        most: The number of iterations, at most if there is a condition; None: no limit.

    Attributes:
        stacks: For each result after the carried ones an array for those of all iterations, once the library has made
            some.
    """

    def __init__(
        self,
        recorder: Recorder,
        body: Repeated,
        condition: Repeated | None,
        form: LoopForm,
        captured: Sequence[Any],
        sources: Sequence[Any] = (),
        most: int | None = None,
    ) -> None:
        self.stacks: list[Any] | None = None
        self._recorder: Any = recorder  # an Executor, if the library makes iterations
        self._plans, self._condition, self._form = body.plans, condition, form
        self._captured, self._sources, self._most = captured, sources, most
        self._length = most or 0 if condition is None else 0  # 0: not known
        self._watched: _Watched | None = None
        self._tries, self._size = 0, body.size
        self._over = not self._may_be_planned()  # whether the interpreter makes all further iterations

    def _may_be_planned(self) -> bool:
        recorder, condition = self._recorder, self._condition
        if not POLICY.enabled or not POLICY.compiled or LIBRARY_LOADED is None:
            return False
        timed = recorder.step_times is not None  # iteration by iteration, so that each step has its time
        if timed or not recorder.plannable or recorder.recorded or not self._plans.possible:
            return False
        if condition is not None:
            return condition.plans.possible or not (condition.size or condition.dynamic)
        if self._length < _FEW and not POLICY.compared:
            return False
        return all(each.array.__class__ is np.ndarray and each.array.flags.c_contiguous for each in self._sources)

    def run(self, values: list[Any], rows: Sequence[_Row] = ()) -> Generator[Part, list[Any], LoopResults]:
        """The loop.

        Args:
            values: What is carried, at first.
            rows: The elements of each array of which elements are taken.

        Yields:
            What the interpreter is to run next; to be sent its results, those of the body as recorded values.

        Raises:
            CancelledError, ResourceExhaustedError: See `Monitor.iteration`.
            InternalError: A plan, if it is to be compared, differs from the interpreter.
        """
        recorder, most, length, iterations, carried = self._recorder, self._most, self._length, 0, len(values)
        others: list[tuple[int, list[Any]]] = []
        while most is None or iterations < most:
            rest = self._captured
            if rows:
                at = length - 1 - iterations if self._form.reverse else iterations
                rest = [*[row[at] for row in rows], *rest]
            if not self._over and (outcome := self._planned([*values, *rest], iterations)) is not None:
                values, iterations = [*outcome.values], iterations + outcome.iterations
                if outcome.ended and self._condition is not None:
                    break
                if outcome.iterations:
                    continue
            watched, self._watched = self._watched, None
            steps = recorder if watched is None else watched.lowering
            if self._condition is not None:
                [condition] = yield steps, [*values, *rest], True
                if not recorder.decide(condition):
                    break
                if watched is not None:
                    watched = watched._replace(condition=condition, head=len(watched.lowering.instructions))
            recorder.iteration(iterations, most or 0)
            values = yield steps, [*values, *rest], False
            if watched is not None:
                self._watched = watched._replace(results=values)
            if len(values) > carried:
                others.append((iterations, values[carried:]))
                values = values[:carried]
            iterations += 1
        return LoopResults(values, iterations, others)

    def _planned(self, arguments: list[Any], iterations: int) -> LoopOutcome | None:
        """Makes iterations if there is a plan for them; None: the interpreter makes the next one, lowered or not."""
        recorder = self._recorder
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        loops, watched = self._plans.loops, self._watched
        key = (self._condition, self._form, key_of(arguments, started))
        self._watched = None
        if watched is not None and watched.key == key and key not in loops:
            self._plans.remember_loop(key, self._built(watched, started), recorder.memory)
        loop = loops.get(key, _UNKNOWN)
        if loop is None or (loop is not _UNKNOWN and recorder.decided is not None and not loop.decides_bool):
            self._over = True
        elif loop is not _UNKNOWN:
            return self._run(loop, arguments, started, iterations)
        elif self._tries == _TRIES or not plannable(arguments, started):
            self._over = True
        elif iterations >= POLICY.first - 1:
            self._tries += 1
            lowering = Lowering(recorder, arguments, into=recorder.provenance.records)
            self._watched = _Watched(key, lowering, arguments, started, iterations)
        return None

    def _built(self, watched: _Watched, started: Sequence[Any]) -> Loop | None:
        _, lowering, arguments, before, iterations, condition, head, results = watched
        if condition is not None and condition.__class__ is not Value:
            return None
        try:
            loop = Loop(lowering, head, self._form, arguments, before, condition, results, self._sources)
        except Exception as error:  # whatever it is, the interpreter can do it
            if POLICY.compared and not isinstance(error, Unplaceable | MemoryError):
                raise
            return None
        if POLICY.compared:
            difference = loop.differs(before, started, results, self._sources, iterations, self._length)
            if difference is not None:
                raise InternalError(f"an iteration of a loop differs from the interpreter's: {difference}")
        return loop

    def _run(self, loop: Loop, arguments: Sequence[Any], started: Sequence[Any], iterations: int) -> LoopOutcome | None:
        recorder = self._recorder
        try:
            if self.stacks is None:
                for spec in loop.rows:
                    recorder.memory.spend(self._length * spec.nbytes, "the results of a loop")
                self.stacks = [np.empty((self._length, *spec.shape), spec.dtype) for spec in loop.rows]
            recorder.memory.spend(loop.arena_bytes, "a loop")
        except ResourceExhaustedError:  # the interpreter may need less
            self._over = True
            return None
        left = None if self._most is None else self._most - iterations
        outcome = loop.run(
            recorder, arguments, started, sources=self._sources, stacks=self.stacks, before=iterations, most=left
        )
        self._over = outcome.failed
        recorder.repeated += outcome.iterations * self._size
        if recorder.decided is not None and self._condition is not None:
            note_decision(recorder.decided, 1, outcome.iterations)
            note_decision(recorder.decided, 0, int(outcome.ended))
        return outcome

    def stacked(self, others: Sequence[tuple[int, list[Any]]], inputs: Sequence[Any]) -> list[Value]:
        """The stacks with the results of all iterations, as values.

        Args:
            others: As in `LoopResults`.
            inputs: What the loop has begun with.
        """
        stacks = self.stacks or []
        for number, results in others:
            at = self._length - 1 - number if self._form.reverse else number
            for stack, result in zip(stacks, results, strict=True):
                stack[at] = result.array
        return [self._value_of(stack, inputs) for stack in stacks]

    def _value_of(self, stack: Any, inputs: Sequence[Any]) -> Value:
        spec = Spec.of(stack.shape, stack.dtype)
        value = Value(stack, spec, new_uid())
        call = bind(_STACK, (spec.with_shape(spec.shape[1:]),), _STACK.attrs({}))
        uids = tuple([each.uid for each in inputs])
        self._recorder.provenance.records.append((call, uids, value.uid, None))
        return value
