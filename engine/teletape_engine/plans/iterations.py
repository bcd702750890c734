"""The iterations of a running loop: which of them the interpreter makes, which is lowered, and which the library makes.

The interpreter makes the first; then one is lowered; if the next has arguments of the same layouts, the library makes
the rest. The plan is remembered with the body's own plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InternalError, ResourceExhaustedError
from teletape_engine.plans.cache import Plans, key_of, plannable
from teletape_engine.plans.ir.buffers import Unplaceable
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.loops.form import LoopForm, Turned
from teletape_engine.plans.run.loops.loop import Loop
from teletape_engine.recording.executor import Executor, note_decision
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


class _Watched(NamedTuple):
    """An iteration that is lowered.

    Attributes:
        key: What its plan depends on.
        lowering: Its recorder.
        arguments: Of the iteration.
        started: Their values when it began.
        taken: The number of iterations before.
        condition: The condition's result; None: there is none.
        head: The number of instructions that compute it.
        results: Of the body.
    """

    key: Any
    lowering: Lowering
    arguments: Sequence[Any]
    started: Sequence[Any]
    taken: int
    condition: Any = None
    head: int = 0
    results: Sequence[Any] = ()


class Iterations:
    """The iterations of one loop.

    Args:
        recorder: Of the loop; nothing records.
        body: The body.
        condition: The condition; None: the loop has a length.
        form: What the arguments of the body are.
        captured: The arguments after those that are carried, and after the elements.
        sources: The arrays of which elements are taken.
        length: The number of iterations; 0: not known.

    Attributes:
        recorder: For the next iteration, if the interpreter makes it.
        stacks: For each result after the carried ones an array for those of all iterations, once the library has made
            some.
        over: Whether the interpreter makes all further iterations.
    """

    def __init__(
        self,
        recorder: Executor,
        body: Repeated,
        condition: Repeated | None,
        form: LoopForm,
        captured: Sequence[Any],
        sources: Sequence[Value] = (),
        length: int = 0,
    ) -> None:
        self.recorder: Recorder = recorder
        self.stacks: list[Any] | None = None
        self.over = False
        self._recorder, self._plans, self._condition, self._form = recorder, body.plans, condition, form
        self._captured, self._sources, self._length = captured, sources, length
        self._watched: _Watched | None = None
        self._tries, self._size = 0, body.size

    @classmethod
    def of(
        cls,
        recorder: Recorder,
        body: Repeated,
        condition: Repeated | None,
        form: LoopForm,
        captured: Sequence[Any],
        sources: Sequence[Value] = (),
        length: int = 0,
    ) -> Iterations | None:
        """The iterations of a loop; None: all of them are the interpreter's."""
        if not POLICY.enabled or not POLICY.compiled or LIBRARY_LOADED is None:
            return None
        timed = recorder.step_times is not None  # iteration by iteration, so that each step has its time
        if timed or not recorder.plannable or recorder.recorded or not body.plans.possible:
            return None
        if condition is not None and not condition.plans.possible and (condition.size or condition.dynamic):
            return None
        if condition is None and length < _FEW and not POLICY.compared:
            return None
        for source in sources:
            if source.array.__class__ is not np.ndarray or not source.array.flags.c_contiguous:
                return None
        return cls(recorder, body, condition, form, captured, sources, length)  # type: ignore[arg-type]  # an Executor

    def turns(self, values: Sequence[Any], taken: int, most: int | None, elements: Sequence[Any] = ()) -> Turned | None:
        """Makes iterations if there is a plan for them; None: the interpreter makes the next one, with `recorder`.

        Args:
            values: What is carried.
            taken: The number of iterations so far.
            most: The number of iterations that are left; None: not known.
            elements: Of the next iteration.

        Raises:
            InternalError: The plan, if it is to be compared, differs from the interpreter.
        """
        recorder = self.recorder = self._recorder
        arguments = [*values, *elements, *self._captured]
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        loops, watched = self._plans.loops, self._watched
        key = (self._condition, self._form, key_of(arguments, started))
        self._watched = None
        if watched is not None and watched.key == key and key not in loops:
            self._plans.remember_loop(key, self._built(watched, started), recorder.memory)
        loop = loops.get(key, _UNKNOWN)
        if loop is None or (loop is not _UNKNOWN and recorder.decided is not None and not loop.decides_bool):
            self.over = True
        elif loop is not _UNKNOWN:
            return self._turned(loop, arguments, started, taken, most)
        elif self._tries == _TRIES or not plannable(arguments, started):
            self.over = True
        elif taken >= POLICY.first - 1:
            self._tries += 1
            self.recorder = lowering = Lowering(recorder, arguments, into=recorder.provenance.records)
            self._watched = _Watched(key, lowering, arguments, started, taken)
        return None

    def decided(self, condition: Any) -> None:
        """The interpreter has computed the condition of the iteration."""
        watched = self._watched
        if watched is not None:
            self._watched = watched._replace(condition=condition, head=len(watched.lowering.instructions))

    def finished(self, results: Sequence[Any]) -> None:
        """The interpreter has made the iteration."""
        if self._watched is not None:
            self._watched = self._watched._replace(results=results)

    def _built(self, watched: _Watched, started: Sequence[Any]) -> Loop | None:
        _, lowering, arguments, before, taken, condition, head, results = watched
        if condition is not None and condition.__class__ is not Value:
            return None
        try:
            loop = Loop(lowering, head, self._form, arguments, before, condition, results, self._sources)
        except Exception as error:  # whatever it is, the interpreter can do it
            if POLICY.compared and not isinstance(error, Unplaceable | MemoryError):
                raise
            return None
        if POLICY.compared:
            difference = loop.differs(before, started, results, self._sources, taken, self._length)
            if difference is not None:
                raise InternalError(f"an iteration of a loop differs from the interpreter's: {difference}")
        return loop

    def _turned(
        self, loop: Loop, arguments: Sequence[Any], started: Sequence[Any], taken: int, most: int | None
    ) -> Turned | None:
        recorder = self._recorder
        try:
            if self.stacks is None:
                for spec in loop.rows:
                    recorder.memory.spend(self._length * spec.nbytes, "the results of a loop")
                self.stacks = [np.empty((self._length, *spec.shape), spec.dtype) for spec in loop.rows]
            recorder.memory.spend(loop.arena_bytes, "a loop")
        except ResourceExhaustedError:  # the interpreter may need less
            self.over = True
            return None
        turned = loop.run(
            recorder, arguments, started, sources=self._sources, stacks=self.stacks, taken=taken, most=most
        )
        self.over = turned.failed
        recorder.repeated += turned.iterations * self._size
        if recorder.decided is not None and self._condition is not None:
            note_decision(recorder.decided, 1, turned.iterations)
            note_decision(recorder.decided, 0, int(turned.ended))
        return turned

    def stack_of(self, number: int, column: Sequence[Any], inputs: Sequence[Any]) -> Value:
        """The results of all iterations.

        Args:
            number: Which of the results.
            column: For each iteration, in order, the interpreter's result; None: the library has made it.
            inputs: What the loop has begun with.
        """
        assert self.stacks is not None
        stack = self.stacks[number]
        rows = column[::-1] if self._form.reverse else column
        for at, value in enumerate(rows):
            if value is not None:
                stack[at] = value.array
        spec = Spec.of(stack.shape, stack.dtype)
        value = Value(stack, spec, new_uid())
        call = bind(_STACK, (spec.with_shape(spec.shape[1:]),), _STACK.attrs({}))
        uids = tuple([each.uid for each in inputs])
        self._recorder.provenance.records.append((call, uids, value.uid, None))
        return value
