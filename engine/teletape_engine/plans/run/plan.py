"""A plan: instructions for arguments of certain layouts, how its results come about, and what it assigns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from teletape_engine.plans.ir.arena import live, placed, steps_of
from teletape_engine.plans.ir.buffers import Buffer, View, is_dense, memory_like, span, view_of
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.machine import Machine, Staged
from teletape_engine.plans.run.tiles import threads
from teletape_engine.plans.run.tiles.groups import Group, tiled
from teletape_engine.plans.run.tiles.workers import inner_bytes
from teletape_engine.plans.session_plans import SessionPlans
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import CallRecords, PlannedCall, Record
from teletape_engine.recording.values import Literal, Value, Variable, new_uid
from teletape_engine.spec import Spec

_SMALL: Final = 4096  #: Bytes up to which an argument is copied into the arena, and a result out of it.
_MOST_IDLE: Final = 8  #: Machines that are kept for the next calls.
MOST_IDLE_BYTES: Final = 1 << 26  #: Of an arena that is kept: a larger one is allocated for each call.


#: What a result is: a value that each run makes, an argument's, the value assigned to a variable, or a constant.
_NEW: Final = "new"
_ARGUMENT: Final = "argument"
_ASSIGNED: Final = "assigned"
_CONSTANT: Final = "constant"
#: How a result is taken: copied out of the arena, as a NumPy scalar, as the constant that it is, as memory of its own.
_COPY: Final = "copy"
_SCALAR: Final = "scalar"
_AS_IT_IS: Final = "as it is"
_MEMORY: Final = "memory"


class OtherDecisions(Exception):
    """Values decide in another way than when the plan was built: another part of the function is to run."""


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
        used: A uid of its last run.
        iterations: Of loops that are unrolled in it.
        decided: The decisions of control flow that it holds for.
        failures: How often it has failed since it ran last.
    """

    failures = 0

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
        last = {arguments[each.argument].value.uid: number for number, each in enumerate(self._assignments)}
        self._results: list[tuple[str, Any]] = []
        created: list[int] = []  # uids of the results that a run makes, as they were in the lowering
        self._values: list[Result] = []
        for value in results:
            if value.__class__ is Literal:
                self._results.append((_ARGUMENT, literals[id(value)]))
            elif value.uid in numbers:
                self._results.append((_ARGUMENT, numbers[value.uid]))
            elif value.uid in last:
                self._results.append((_ASSIGNED, last[value.uid]))
            elif value.uid < lowering.first and lowering.tracer(value).view.buffer.constant is not None:
                self._results.append((_CONSTANT, value))
            else:
                if value.uid not in created:
                    created.append(value.uid)
                    self._values.append(self._result(lowering, value))
                self._results.append((_NEW, created.index(value.uid)))
        self._results = [
            (_NEW, len(self._values) + entry) if kind is _ASSIGNED else (kind, entry) for kind, entry in self._results
        ]
        self._plain = self._results == [(_NEW, number) for number in range(len(self._values))]
        self._plain = self._plain and not self._assignments
        self._values += [assignment.result for assignment in self._assignments]
        self._guards = [(self._result(lowering, value).array, decision) for value, decision in lowering.guards]
        returned = {view.buffer for view in self._views}
        self.instructions = live(lowering.instructions, returned)
        self._place(started, returned)
        self._records = CallRecords(
            lowering.records(),
            tuple([value.uid for value in started]),
            tuple([argument.uid if argument.__class__ is Variable else None for argument in arguments]),
            (*created, *[arguments[each.argument].value.uid for each in self._assignments]),
            lowering.first,
        )
        self._long_calls = tuple(lowering.long_calls)
        self.iterations, self.decided = lowering.iterations, lowering.decided or ()
        self._idle: list[Machine] = []
        self.used = new_uid()

    def _result(self, lowering: Lowering, value: Value) -> Result:
        tracer = lowering.tracer(value)
        view = tracer.view
        key = (view.buffer, view.offset, view.layout.shape, view.layout.strides, view.layout.dtype)
        at = self._taken.get(key)
        if at is None:
            at = self._taken[key] = len(self._views)
            self._views.append(view)
        return Result(at, value.spec, tracer.scalar)

    def _place(self, started: Sequence[Any], returned: set[Buffer]) -> None:
        """Says how the instructions run, and where buffers lie."""
        self._library = LIBRARY_LOADED if POLICY.compiled else None
        self._tiled = self.instructions
        self._groups: list[Group] = []
        if self._library is not None:
            self._tiled, self._groups = tiled(self.instructions, returned, self._library)
        first = len(started)
        used = {view.buffer for each in self.instructions for view in (*each.inputs, each.output)} | returned
        self._slots: dict[Buffer, int] = {}
        self._staged: list[Staged] = []
        for buffer in used:
            if buffer.argument is None:
                continue
            if span(buffer.layout) <= _SMALL and is_dense(buffer.layout) and buffer not in returned:
                is_scalar = isinstance(started[buffer.argument].array, np.generic)
                self._staged.append(Staged(View(buffer, buffer.layout), buffer.argument, is_scalar))
            else:
                self._slots[buffer] = buffer.argument
        small = {buffer for buffer in returned if self._is_copied_out(buffer)}
        self._fresh = [buffer for buffer in returned if not buffer.fixed and buffer not in small]
        for number, buffer in enumerate(self._fresh):
            self._slots[buffer] = first + number
        staged = [each.view.buffer for each in self._staged]
        self._places = placed(self._tiled, self._slots, staged, small, self._groups)
        self._threads = threads.count() if self._groups else 1
        self._arena_bytes = self._places.nbytes + (self._threads - 1) * inner_bytes(self._groups)
        self._slot_count = first + len(self._fresh)
        self._own = [self._slots.get(view.buffer) for view in self._views]
        arrays = {each.array for each in self._values if not each.scalar}
        #: For each view: how it is taken, its slot, the view.
        self._taking = [
            (_MEMORY, slot, view)
            if slot is not None
            else (_AS_IT_IS if view.buffer.constant is not None else _COPY if number in arrays else _SCALAR, 0, view)
            for number, (view, slot) in enumerate(zip(self._views, self._own, strict=True))
        ]
        self._copied = all(way is _COPY for way, _, _ in self._taking)
        self._kept = self._arena_bytes <= MOST_IDLE_BYTES
        self._no_names: tuple[Any, ...] = (None,) * first
        self.price = sum(view.layout.nbytes for view in self._views)

    def _is_copied_out(self, buffer: Buffer) -> bool:
        """Whether a result lies in the arena, since a copy of it costs less than memory of its own."""
        views = [view for view in self._views if view.buffer is buffer]
        return not buffer.fixed and span(buffer.layout) <= _SMALL and all(is_dense(view.layout) for view in views)

    # ------------------------------------------------------------------------------------------------------ execution
    @property
    def nbytes(self) -> int:
        """Bytes of the arenas that wait for the next calls."""
        return len(self._idle) * self._arena_bytes

    def release(self) -> None:
        """Ends the arenas that wait for the next calls."""
        self._idle.clear()

    def compute(self, recorder: Executor, started: Sequence[Any], *, poisoned: bool = False) -> list[Any]:
        """Runs the instructions; returns the arrays that results and assignments consist of.

        Args:
            recorder: Whose memory and cancel count.
            started: The values of the arguments, variables read.
            poisoned: Whether to fill the arena with no numbers first.

        Raises:
            OtherDecisions: Control flow is to run in another way than in the call that the plan was built from.
        """
        for bound in self._long_calls:
            recorder.admit_work(bound)
        try:
            machine = self._idle.pop()
        except IndexError:
            machine = self._machine(recorder)
        try:
            memory = recorder.memory
            memory.spent += self.price
            if memory.spent > memory.ceiling:
                memory.recount(self.price, "a plan")
            if poisoned:
                machine.poison()
            arrays = [value.array for value in started]
            if self._fresh:
                arrays += [memory_like(buffer.layout) for buffer in self._fresh]
            if machine.bare or (call := recorder.kernel_call) is None:
                machine.run(arrays, recorder.check_cancelled)
            else:
                call(machine.run, arrays, recorder.check_cancelled)
            self._check_decisions(machine.results)
            if self._copied:
                return [array.copy("K") for array in machine.results]
            return [
                array.copy("K")
                if way is _COPY
                else array[()]  # now: in `finish` another call may have the machine
                if way is _SCALAR
                else array
                if way is _AS_IT_IS
                else view_of(arrays[slot], view)
                for (way, slot, view), array in zip(self._taking, machine.results, strict=True)
            ]
        finally:
            if self._kept and len(self._idle) < _MOST_IDLE:
                self._idle.append(machine)

    def _check_decisions(self, results: Sequence[Any]) -> None:
        for at, decision in self._guards:
            if int(results[at]) != decision:
                raise OtherDecisions

    def _machine(self, recorder: Executor) -> Machine:
        """A new machine."""
        recorder.memory.spend(self._arena_bytes, "a plan")
        if self._kept:
            recorder.memory.caches.add(self)
            SessionPlans.of(recorder.memory).trim(self, self._arena_bytes)
        offsets, nbytes, freed = self._places
        steps = steps_of(self._tiled, self._groups, freed if POLICY.compared else None)
        where = offsets, nbytes, self._slots, self._staged, self._slot_count, self._library
        machine = Machine(steps, *where, most_threads=self._threads)
        machine.results = [
            machine.view(view) if slot is None else None for view, slot in zip(self._views, self._own, strict=True)
        ]
        return machine

    def values(self, started: Sequence[Any], arrays: Sequence[Any]) -> tuple[list[Value], list[Any]]:
        """The values that a run has made, those to be assigned last, and the results. Nothing is assigned yet.

        Args:
            started: The values of the arguments, variables read.
            arrays: What `compute` has returned.
        """
        values = [Value(arrays[at][()] if scalar else arrays[at], spec, new_uid()) for at, spec, scalar in self._values]
        if self._plain:
            return values, values
        results: list[Any] = []
        for kind, entry in self._results:
            results.append(values[entry] if kind is _NEW else started[entry] if kind is _ARGUMENT else entry)
        return values, results

    def finish(
        self,
        recorder: Executor,
        arguments: Sequence[Any],
        started: Sequence[Any],
        values: Sequence[Value],
        notes: tuple[Record, ...] = (),
    ) -> None:
        """Assigns to the variables, and notes the call. Memory for that is taken before anything is assigned.

        Args:
            recorder: Of the call.
            arguments: Of the call.
            started: Their values, variables read.
            values: What `values` has returned first.
            notes: As of `PlannedCall`.
        """
        new = [value.uid for value in values]
        names = self._no_names
        if arguments != started:  # there are variables; lists of the same objects are compared quickly
            names = tuple([(each.uid, each.name) if each.__class__ is Variable else None for each in arguments])
        uids = tuple([value.uid for value in started])
        planned = _new_tuple(PlannedCall, (self._records, uids, names, tuple(new), notes))
        self.used = new[0] if new else new_uid()
        recorder.provenance.records.append((planned, (), self.used, None))
        if self._assignments:
            at = len(values) - len(self._assignments)
            for (argument, _, times), value in zip(self._assignments, values[at:], strict=True):
                variable = arguments[argument]
                variable.value = value
                variable.version += times

    def run(self, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any]) -> list[Any]:
        """The results for these arguments, whose layouts are those of the plan.

        Args:
            recorder: Of the call.
            arguments: Of the call.
            started: Their values, variables read.
        """
        values, results = self.values(started, self.compute(recorder, started))
        self.finish(recorder, arguments, started, values)
        return results


_new_tuple: Final = tuple.__new__
