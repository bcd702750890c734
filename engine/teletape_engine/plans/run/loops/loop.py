"""A loop as a plan: one iteration as instructions, which the library repeats without Python in between.

An iteration that the interpreter has run is lowered. What it carries lies in the arena: after the body's instructions
come copies of the next values into the places of the last ones. Elements of arrays, and rows of stacked results, are
addresses that move on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.plans.ir.arena import live, placed, steps_of
from teletape_engine.plans.ir.buffers import (
    Buffer,
    Unplaceable,
    View,
    first_difference,
    is_dense,
    same_layout,
    span,
    unbacked,
)
from teletape_engine.plans.ir.instructions import Copy, Instruction
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.c.loaded import LIBRARY_LOADED
from teletape_engine.plans.run.loops.form import LoopForm, LoopOutcome, LoopState
from teletape_engine.plans.run.loops.loop_machine import ENDED, FAILED, RUNS, LoopMachine
from teletape_engine.plans.run.machine import ROW_COST, Misaligned, Staged
from teletape_engine.plans.run.plan import MOST_IDLE_BYTES
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import LoopRecords, PlannedLoop
from teletape_engine.recording.values import Value, Variable, new_uid

_SMALL: Final = 4096  #: Bytes up to which a captured argument is copied into the arena.
_BLOCK: Final = 1 << 21  #: Elements on which iterations work between two checks for a cancel: about a millisecond.
_LONG: Final = 1 << 26  #: Elements of an iteration between whose ops a cancel is looked for: by the interpreter.
_CUT: Final[Any] = ops.strided_slice
_IDLE: Final = 2  #: Machines that are kept for the next runs.


class Loop:
    """The iterations of a loop on arguments of certain layouts, each of which leaves these layouts.

    Args:
        lowering: What one iteration has noted.
        head: The number of its instructions that compute the condition.
        form: What the arguments are.
        arguments: Of that iteration.
        started: Their values when it began.
        condition: The condition's result; None: there is none.
        results: The carried values, then the others.
        sources: The arrays of which elements are taken.

    Raises:
        Unplaceable: There is no such plan.

    Attributes:
        instructions: In order.
        split: The number of instructions that compute the condition; they come first.
        flag: Where the condition is; None: there is none.
        states: What one iteration leaves to the next.
        arena_bytes: Of a machine.
        rows: Specs of the results of which the loop stacks those of all iterations.
        steps: For each slot that moves on from one iteration to the next by how many bytes.
        decides_bool: Whether the condition is a bool.
        used: A uid of its last run.
    """

    def __init__(
        self,
        lowering: Lowering,
        head: int,
        form: LoopForm,
        arguments: Sequence[Any],
        started: Sequence[Any],
        condition: Any,
        results: Sequence[Any],
        sources: Sequence[Value] = (),
    ) -> None:
        if lowering.obstacle is not None or LIBRARY_LOADED is None or lowering.long_calls:
            raise Unplaceable(lowering.obstacle or "no library, or an op whose time is estimated")
        self._form = form
        self._cuts = [bind(_CUT, (source.spec,), _CUT.attrs({"index": (0,)})) for source in sources]
        self.states: list[LoopState] = []
        self._state_of: list[int | None] = []  # for each carried value its state; None: it stays as it is
        views: list[View] = []
        for number, argument in enumerate(arguments):
            if number < form.carried:
                after = results[number]
            elif argument.__class__ is Variable and argument.uid in lowering.assigned:
                after = argument.value
            else:
                continue
            self._add_state(lowering, started[number], number, after, lowering.assigned.get(argument.uid, 0), views)
        flag = None if condition is None else lowering.tracer(condition).view
        self.decides_bool = flag is None or flag.layout.dtype.kind == "b"
        head_instructions = {id(each) for each in lowering.instructions[:head]}
        instructions: list[Instruction] = [*lowering.instructions, *self._outputs(lowering, results[form.carried :])]
        instructions += _commits(self.states, views)
        ends = {state.buffer for state in self.states} | set(self._out_buffers)
        if flag is not None:
            ends.add(flag.buffer)
        self.instructions = live(instructions, ends)
        self.split = sum([id(each) in head_instructions for each in self.instructions])
        self.flag = flag
        self._place(started, ends)
        self._cost = sum([max(ROW_COST, each.cost) for each in self.instructions])
        if self._cost > _LONG:
            raise Unplaceable("an iteration takes long")
        self._records = LoopRecords(
            tuple(lowering.provenance.records),
            tuple([value.uid for value in started]),
            tuple([argument.uid if argument.__class__ is Variable else None for argument in arguments]),
            tuple([self._next_uid(number, value) for number, value in enumerate(started)]),
        )
        self.used = new_uid()
        self._idle: list[LoopMachine] = []
        self._idle.append(self._machine())  # raises Unplaceable unless all of it is rows

    def _add_state(
        self, lowering: Lowering, value: Value, number: int, after: Any, times: int, views: list[View]
    ) -> None:
        before, tracer = lowering.tracer(value), lowering.tracer(after)
        view = tracer.view
        if number < self._form.carried:
            self._state_of.append(None)
        if view.buffer is before.view.buffer and view.whole and not times:
            return
        if (
            not same_layout(view.layout, before.layout)
            or not is_dense(before.layout)
            or tracer.scalar is not before.scalar
            or (after.array.__class__ is np.ndarray) is before.scalar
        ):
            raise Unplaceable("a value whose layout changes")
        for state, other in zip(self.states, views, strict=True):
            if state.buffer is before.view.buffer:
                if other is not view or times or state.times:
                    raise Unplaceable("two values in one place")
                self._state_of[-1] = self.states.index(state)
                return
        if number < self._form.carried:
            self._state_of[-1] = len(self.states)
        self.states.append(LoopState(before.view.buffer, number, before.scalar, after.uid, times))
        views.append(view)

    def _outputs(self, lowering: Lowering, others: Sequence[Any]) -> list[Copy]:
        self._out_buffers: list[Buffer] = []
        self.rows: list[Any] = [value.spec for value in others]
        instructions = []
        for value in others:
            layout = unbacked(np.empty(value.spec.shape, value.spec.dtype))
            buffer = Buffer(layout)
            self._out_buffers.append(buffer)
            instructions.append(Copy((lowering.tracer(value).view,), View(buffer, layout)))
        return instructions

    def _next_uid(self, number: int, value: Any) -> Any:
        """The uid, in the lowered iteration, of what the next iteration has as this argument."""
        for state in self.states:
            if state.argument == number:
                return state.next_uid
        at = self._state_of[number] if number < self._form.carried else None
        return value.uid if at is None else self.states[at].next_uid

    def _place(self, started: Sequence[Any], ends: set[Buffer]) -> None:
        used = {view.buffer for each in self.instructions for view in (*each.inputs, each.output)} | ends
        states = {state.buffer for state in self.states}
        elements = range(self._form.carried, self._form.carried + self._form.elements)
        self._slots: dict[Buffer, int] = {
            buffer: len(started) + number for number, buffer in enumerate(self._out_buffers)
        }
        self._staged: list[Staged] = []
        for buffer in used:
            if buffer.argument is None:
                continue
            small = span(buffer.layout) <= _SMALL and is_dense(buffer.layout)
            if buffer.argument not in elements and (buffer in states or small):
                is_scalar = isinstance(started[buffer.argument].array, np.generic)
                self._staged.append(Staged(View(buffer, buffer.layout), buffer.argument, is_scalar))
            else:
                self._slots[buffer] = buffer.argument
        staged = [each.view.buffer for each in self._staged]
        last = [buffer for buffer in (*staged, *ends) if buffer not in self._slots and buffer.constant is None]
        self._offsets, self.arena_bytes, self._freed = placed(self.instructions, self._slots, staged, last)
        self._slot_count = len(started) + len(self._out_buffers)
        self.steps = {number: started[number].spec.nbytes for number in elements}
        self.steps |= {self._slots[buffer]: buffer.layout.nbytes for buffer in self._out_buffers}
        if self._form.reverse:
            self.steps = {slot: -step for slot, step in self.steps.items()}

    def _machine(self) -> LoopMachine:
        try:
            return self._idle.pop()
        except IndexError:
            freed = self._freed if POLICY.compared else None
            head, body = (
                steps_of(self.instructions[part], freed=None if freed is None else freed[part])
                for part in (slice(self.split), slice(self.split, None))
            )
            where = self._offsets, self.arena_bytes, self._slots, self._staged, self._slot_count, LIBRARY_LOADED
            return LoopMachine(len(head), self.flag, self.steps, self.states, head + body, *where)

    # ------------------------------------------------------------------------------------------------------ execution
    @property
    def nbytes(self) -> int:
        """Bytes of the arenas that wait for the next runs."""
        return len(self._idle) * self.arena_bytes

    def release(self) -> None:
        """Ends the arenas that wait for the next runs."""
        self._idle.clear()

    def run(
        self,
        recorder: Executor,
        arguments: Sequence[Any],
        started: Sequence[Any],
        *,
        sources: Sequence[Value] = (),
        stacks: Sequence[Any] = (),
        before: int = 0,
        most: int | None = None,
    ) -> LoopOutcome:
        """Makes iterations until the condition is false, or until there are `most`, or as many as there may be.

        Args:
            recorder: Of the loop.
            arguments: Of the next iteration: those of the plan in layout.
            started: Their values.
            sources: The arrays of which elements are taken.
            stacks: Arrays for the results of all iterations.
            before: The number of iterations before.
            most: The number of iterations that are left.

        Raises:
            CancelledError: The variables have the values after the last whole iteration.
        """
        length = 0 if most is None else before + most
        machine = self._machine()
        count, state = 0, RUNS
        block = max(1, _BLOCK // max(self._cost, 1))
        try:
            machine.begin(self._memory(started, sources, stacks, before, length))
            while state == RUNS and (most is None or count < most):
                limit = recorder.iterations_left(block if most is None else min(block, most - count))
                if limit <= 0:
                    break
                recorder.check_cancelled()
                done, state = machine.iterate(limit)
                count += done
                if done:
                    recorder.iteration(before + count - 1, length, done)
        except Misaligned:
            state = FAILED
        finally:
            values = self._finish(recorder, machine, arguments, started, count, sources)
            if len(self._idle) < _IDLE and self.arena_bytes <= MOST_IDLE_BYTES:
                self._idle.append(machine)
                recorder.memory.caches.add(self)
        return LoopOutcome(count, values, state == ENDED, state == FAILED)

    def _memory(
        self, started: Sequence[Any], sources: Sequence[Any], stacks: Sequence[Any], before: int, length: int
    ) -> list[Any]:
        """The array of each slot: of elements, and of rows of results, those of the next iteration."""
        at = length - 1 - before if self._form.reverse else before
        memory = [value.array for value in started]
        first = self._form.carried
        memory[first : first + len(sources)] = [source.array[at : at + 1] for source in sources]
        return memory + [stack[at : at + 1] for stack in stacks]

    def differs(
        self,
        started: Sequence[Any],
        values: Sequence[Any],
        results: Sequence[Any],
        sources: Sequence[Any],
        before: int,
        length: int,
    ) -> str | None:
        """How one iteration, with no numbers in the arena before, differs from the interpreter's; None: not at all.

        Args:
            started: The values of the arguments.
            values: Those of the arguments of the iteration after it.
            results: Of the body.
            sources: As of `run`.
            before: The number of iterations before.
            length: The number of all; 0: not known.
        """
        for _ in range(2):
            machine = self._machine()
            stacks = [np.empty((max(length, 1), *spec.shape), spec.dtype) for spec in self.rows]
            machine.poison()
            machine.begin(self._memory(started, sources, stacks, before, length))
            machine.iterate(1)
            at = length - 1 - before if self._form.reverse else before
            pairs = [
                (view[()] if state.is_scalar else view, values[state.argument].array)
                for state, view in zip(self.states, machine.state_views, strict=True)
            ]
            others = [np.array(value.array, order="C") for value in results[self._form.carried :]]
            pairs += [(stack[at, ...], other) for stack, other in zip(stacks, others, strict=True)]
            number = first_difference(pairs)
            if number is not None:
                return f"value {number} of {self.instructions}"
            self._idle.append(machine)  # now: another call may have it
        return None

    def _finish(
        self,
        recorder: Executor,
        machine: LoopMachine,
        arguments: Sequence[Any],
        started: Sequence[Any],
        count: int,
        sources: Sequence[Value],
    ) -> list[Value]:
        """Assigns to the variables; returns what is carried."""
        first = self._form.carried
        carried = list(started[:first])
        self.used = new_uid()
        if not count:
            return carried
        uid = new_uid()  # those of values that iterations before the last one made lie between `used` and this one
        values = [
            Value(view[()] if state.is_scalar else view.copy("K"), started[state.argument].spec, new_uid())
            for state, view in zip(self.states, machine.state_views, strict=True)
        ]
        uids = {state.argument: value.uid for state, value in zip(self.states, values, strict=True)}
        loop = PlannedLoop(
            self._records,
            tuple([value.uid for value in started]),
            tuple([(each.uid, each.name) if each.__class__ is Variable else None for each in arguments]),
            tuple([uids.get(number) for number in range(len(started))]),
            count,
            tuple([(first + number, source.uid, self._cuts[number]) for number, source in enumerate(sources)]),
        )
        recorder.provenance.records.append((loop, (), uid, None))
        for state, value in zip(self.states, values, strict=True):  # all arrays are there: nothing fails in between
            if state.times:
                variable = arguments[state.argument]
                variable.value = value
                variable.version += state.times * count
        return [value if at is None else values[at] for value, at in zip(carried, self._state_of, strict=True)]


def _commits(states: Sequence[LoopState], views: Sequence[View]) -> list[Copy]:
    """Copies of the next values into the places of the last ones; values that lie in such places are copied twice."""
    places = {state.buffer for state in states}
    copies, commits = [], []
    for state, view in zip(states, views, strict=True):
        if view.buffer in places:
            layout = state.buffer.layout
            copy = View(Buffer(layout), layout)
            copies.append(Copy((view,), copy))
            view = copy
        commits.append(Copy((view,), View(state.buffer, state.buffer.layout)))
    return copies + commits
