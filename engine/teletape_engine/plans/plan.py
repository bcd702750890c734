"""A plan: instructions for arguments of certain layouts, how its results come about, and what it assigns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.plans.arena import live, placed
from teletape_engine.plans.instructions import Buffer, View, is_dense, memory_like, span
from teletape_engine.plans.lowering import Lowering
from teletape_engine.plans.machine import Machine
from teletape_engine.plans.native import LIBRARY_LOADED
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.walk import view_of
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import CallRecords, PlannedCall
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.spec import Spec

_SMALL: Final = 4096  #: Bytes up to which an argument is copied into the arena, and a result out of it.
_MOST_IDLE: Final = 8  #: Machines that are kept for the next calls.
_MOST_IDLE_BYTES: Final = 1 << 26  #: Of an arena that is kept: a larger one is allocated for each call.


class Result(NamedTuple):
    """A result that instructions compute.

    Attributes:
        array: Its number among `Computed.arrays`.
        spec: Shape and dtype.
        scalar: Whether it is a NumPy scalar.
    """

    array: int
    spec: Spec
    scalar: bool


class Assignment(NamedTuple):
    """A variable's last value.

    Attributes:
        argument: Its number.
        result: The value.
        times: How often the function assigns to it.
    """

    argument: int
    result: Result
    times: int


class Plan:
    """A function on arguments of certain layouts.

    Args:
        lowering: What a run of the interpreter has noted.
        arguments: Of that run.
        started: The values of the arguments when it began, variables read.
        results: Of that run.

    Raises:
        Unplaceable: An array that no arena can hold.

    Attributes:
        instructions: In order.
    """

    def __init__(
        self, lowering: Lowering, arguments: Sequence[Any], started: Sequence[Any], results: Sequence[Any]
    ) -> None:
        numbers: dict[int, int] = {}
        for number, value in enumerate(started):
            if value.__class__ is not Literal:
                numbers.setdefault(value.uid, number)
        literals = {id(value): number for number, value in enumerate(started) if value.__class__ is Literal}
        self._views: list[View] = []
        self._taken: dict[Any, int] = {}
        self._assignments = [
            Assignment(number, self._result(lowering, argument.value), lowering.assigned[argument.uid])
            for number, argument in enumerate(arguments)
            if argument.__class__ is Variable and argument.uid in lowering.assigned
        ]
        last = {arguments[each.argument].value.uid: each.argument for each in self._assignments}
        #: For each result: (argument,), (None, variable), a Value that never changes, or a Result.
        self._results: list[Any] = []
        self._roles: list[int] = []  # uids of the results that a run makes, as they were in the lowering
        new: dict[int, Any] = {}
        for value in results:
            if value.__class__ is Literal:
                self._results.append((literals[id(value)],))
            elif value.uid in numbers:
                self._results.append((numbers[value.uid],))
            elif value.uid in last:
                self._results.append((None, last[value.uid]))
            elif value.uid < lowering.first and lowering.tracer(value).view.buffer.constant is not None:
                self._results.append(value)
            elif value.uid in new:
                self._results.append(new[value.uid])
            else:
                new[value.uid] = [self._result(lowering, value)]
                self._results.append(new[value.uid])
                self._roles.append(value.uid)
        returned = {view.buffer for view in self._views}
        self.instructions = live(lowering.instructions, returned)
        self._place(len(arguments), returned)
        self._records = CallRecords(
            tuple(lowering.provenance.records),
            tuple([value.uid for value in started]),
            tuple([argument.uid if argument.__class__ is Variable else None for argument in arguments]),
            (*self._roles, *[arguments[each.argument].value.uid for each in self._assignments]),
        )
        self._long_calls = tuple(lowering.long_calls)
        self._idle: list[Machine] = []

    def _result(self, lowering: Lowering, value: Value) -> Result:
        tracer = lowering.tracer(value)
        view = tracer.view
        key = (view.buffer, view.offset, view.layout.shape, view.layout.strides, view.layout.dtype)
        at = self._taken.get(key)
        if at is None:
            at = self._taken[key] = len(self._views)
            self._views.append(view)
        return Result(at, value.spec, tracer.scalar)

    def _place(self, count: int, returned: set[Buffer]) -> None:
        used = {view.buffer for each in self.instructions for view in (*each.inputs, each.output)} | returned
        self._slots: dict[Buffer, int] = {}
        self._staged: list[tuple[View, int]] = []
        for buffer in used:
            if buffer.argument is None:
                continue
            if span(buffer.layout) <= _SMALL and is_dense(buffer.layout) and buffer not in returned:
                self._staged.append((View(buffer, buffer.layout), buffer.argument))
            else:
                self._slots[buffer] = buffer.argument
        small = {
            buffer
            for buffer in returned
            if not buffer.fixed
            and span(buffer.layout) <= _SMALL
            and all(is_dense(view.layout) for view in self._views if view.buffer is buffer)
        }
        self._fresh = [buffer for buffer in returned if not buffer.fixed and buffer not in small]
        for number, buffer in enumerate(self._fresh):
            self._slots[buffer] = count + number
        self._offsets, self._nbytes = placed(
            self.instructions, self._slots, [view.buffer for view, _ in self._staged], small
        )
        self._own = [self._slots.get(view.buffer) for view in self._views]
        self._fixed = [view.buffer.constant is not None for view in self._views]
        self.price = sum(view.layout.nbytes for view in self._views)

    # ------------------------------------------------------------------------------------------------------ execution
    @property
    def nbytes(self) -> int:
        """Bytes of the arenas that wait for the next calls."""
        return len(self._idle) * self._nbytes

    def release(self) -> None:
        """Ends the arenas that wait for the next calls."""
        self._idle.clear()

    def compute(self, recorder: Executor, started: Sequence[Any], *, poisoned: bool = False) -> list[Any]:
        """Runs the instructions; returns the arrays that results and assignments consist of.

        Args:
            recorder: Whose memory and cancel count.
            started: The values of the arguments, variables read.
            poisoned: Whether to fill the arena with no numbers first.
        """
        for bound in self._long_calls:
            recorder.admit_work(bound)
        memory: list[Any] = [None if value.__class__ is Literal else value.array for value in started]
        try:
            machine = self._idle.pop()
        except IndexError:
            recorder.memory.spend(self._nbytes, "a plan")
            if self._nbytes <= _MOST_IDLE_BYTES:
                recorder.memory.caches.add(self)
            library = LIBRARY_LOADED if POLICY.compiled else None
            machine = Machine(self.instructions, self._offsets, self._nbytes, self._slots, library)
            machine.staged = [machine.view(view) for view, _ in self._staged]
            machine.results = [
                machine.view(view) if slot is None else None for view, slot in zip(self._views, self._own, strict=True)
            ]
        try:
            recorder.memory.spend(self.price, "a plan")
            if poisoned:
                machine.poison()
            for (_, argument), array in zip(self._staged, machine.staged, strict=True):
                np.copyto(array, memory[argument])
            memory += [memory_like(buffer.layout) for buffer in self._fresh]
            call = recorder.kernel_call
            if call is None:
                machine.run(memory, recorder.check_cancelled)
            else:
                call(machine.run, memory, recorder.check_cancelled)
            return [
                view_of(memory[slot], view) if slot is not None else array if fixed else array.copy("K")
                for view, slot, fixed, array in zip(self._views, self._own, self._fixed, machine.results, strict=True)
            ]
        finally:
            if len(self._idle) < _MOST_IDLE and self._nbytes <= _MOST_IDLE_BYTES:
                self._idle.append(machine)

    def finish(
        self, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any], arrays: Sequence[Any]
    ) -> list[Any]:
        """Assigns to the variables, and returns the results."""
        new: list[Any] = []
        values: dict[int, Value] = {}
        results: list[Any] = []
        for entry in self._results:
            if entry.__class__ is list:
                value = values.get(id(entry))
                if value is None:
                    value = values[id(entry)] = _value(entry[0], arrays)
                    new.append(value.uid)
                results.append(value)
            else:
                results.append(entry)
        for assignment in self._assignments:
            variable = arguments[assignment.argument]
            value = _value(assignment.result, arrays)
            variable.value = value
            variable.version += assignment.times
            new.append(value.uid)
        for at, entry in enumerate(results):
            if entry.__class__ is tuple:
                results[at] = started[entry[0]] if entry[0] is not None else arguments[entry[1]].value
        planned = PlannedCall(
            self._records,
            tuple([value.uid for value in started]),
            tuple([(each.uid, each.name) if each.__class__ is Variable else None for each in arguments]),
            tuple(new),
        )
        recorder.provenance.records.append((planned, (), new[0] if new else new_uid(), None))
        return results

    def run(self, recorder: Executor, arguments: Sequence[Any]) -> list[Any]:
        """The results for these arguments, whose layouts are those of the plan."""
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        return self.finish(recorder, arguments, started, self.compute(recorder, started))


def _value(result: Result, arrays: Sequence[Any]) -> Value:
    array = arrays[result.array]
    return Value(array[()] if result.scalar else array, result.spec, new_uid())
