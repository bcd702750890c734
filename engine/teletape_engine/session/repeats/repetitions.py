"""Batches whose structure comes again: they run as plans, as functions do.

The third time that a session executes a batch of one structure, its commands run one by one and are noted as the
instructions of a plan. From then on a batch of this structure, on values of the same specs, is one run of the plan:
what it takes is looked up, the plan computes, and what stays gets its ids. Everything that a caller can see is as if
the commands had run one by one. If anything is unusual (an id that names nothing or that is in use, an active tape, an
error, no memory for a result, a cancel), nothing has happened yet but that ids no command names were released, and the
commands run one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from sys import getsizeof
from typing import Any, Final

import numpy as np

from teletape_engine import object_bytes
from teletape_engine.catalogue.attributes import keep
from teletape_engine.commands import Batch, Call, Contents, Id, Repetition, Structure, structure_of
from teletape_engine.commands.results import Answer, Fetched, Result
from teletape_engine.commands.structure import TENSORS, text_and_contents
from teletape_engine.errors import TeletapeError
from teletape_engine.functions.function import Function
from teletape_engine.plans.cache import key_of
from teletape_engine.plans.ir.forwards import Diverged
from teletape_engine.plans.lower.lowering import MOST_INSTRUCTIONS
from teletape_engine.plans.policy import POLICY
from teletape_engine.recording.provenance import Event, Record, Return, is_plain
from teletape_engine.recording.values import Literal, Uid, Value, Variable, new_uid, typed_array
from teletape_engine.session.clients import FIRST_CLIENT_ID
from teletape_engine.session.handlers.values import fetched, note_fetch
from teletape_engine.session.repeats.step_needs import Needs, needs_of
from teletape_engine.session.repeats.step_plan import ATTEMPTS, BatchInputs, KnownStep, PlanBuilder, StepPlan
from teletape_engine.session.state import MAIN, State
from teletape_engine.spec import DType, Spec, native

_MOST_STRUCTURES: Final = 128  #: Structures that a session remembers.
_LONGEST_TEXT: Final = 1 << 18  #: Characters of the text of a structure that may run as a plan.
_MOST_SKETCHES: Final = 1024  #: Sketches of batches that it remembers.
_EXPLAINED: Final = "explained "  #: Begins the text of a structure whose nulls are explained: it has plans of its own.
_ENTRY: Final = 160  #: Bytes of an entry of a table of numbers.


class _Sketch:
    """What is known of batches with the same ops: enough to see cheaply that a batch never ran before.

    Attributes:
        count: How many there were.
        left: How many may still be read that do not run as plans.
    """

    __slots__ = ("count", "left")

    def __init__(self) -> None:
        self.count, self.left = 0, ATTEMPTS


class Repetitions:
    """The structures of a session's batches.

    Args:
        state: Of the session.
    """

    def __init__(self, state: State) -> None:
        self._sketches: dict[int, _Sketch] = {}
        self._steps: dict[str, KnownStep] = {}
        self._refused: dict[int, None] = {}  # hashes of the texts of structures that never run as plans
        self.move(state)

    def move(self, state: State) -> None:
        """Goes on with another state, on the same device."""
        self._state = state
        state.repetitions = self

    # ---------------------------------------------------------------------------------------------------- recognition
    def run(self, batch: Batch | Repetition, cancelled: Callable[[], bool]) -> Answer | None:
        """The answer to a batch whose structure is known; None: nothing has happened, the commands are to run.

        Args:
            batch: The batch.
            cancelled: As of `Session.execute`.
        """
        if not POLICY.enabled or (isinstance(batch, Batch) and batch.replace):
            return None
        if isinstance(batch, Repetition):
            if len(batch.structure.text) > _LONGEST_TEXT:
                return None
            text = _EXPLAINED + batch.structure.text if self._state.explains else batch.structure.text
            step = self._step(text, lambda: batch.structure)
            return None if step is None else self._run(step, batch.contents, cancelled)
        if not 2 < len(batch.commands) <= MOST_INSTRUCTIONS:
            return None
        key = _sketch_of(batch.commands)
        sketch = self._sketches.get(key)
        if sketch is None:
            sketch = _Sketch()
            keep(self._sketches, key, sketch, _MOST_SKETCHES)
        if not sketch.left:
            return None
        sketch.count += 1
        if sketch.count <= POLICY.first:
            return None
        read = text_and_contents(batch)
        if read is None or len(read[0]) > _LONGEST_TEXT:
            sketch.left = 0
            return None
        text, contents = read
        if self._state.explains:
            text = _EXPLAINED + text
        step = self._step(text, lambda: _structure(batch))
        answer = None if step is None else self._run(step, contents, cancelled)
        if answer is None:
            sketch.left -= 1
        elif sketch.left < ATTEMPTS:
            sketch.left += 1
        return answer

    def values(self, batch: Repetition, cancelled: Callable[[], bool]) -> Answer | None:
        """The answer to a batch that takes no value of the session, and leaves none, if there is a plan for it.

        Nothing of it is noted: the session is as it was. None: the batch is to be executed.

        Args:
            batch: The batch.
            cancelled: As of `Session.execute`.
        """
        step = self._steps.get(_EXPLAINED + batch.structure.text) if POLICY.enabled else None
        if step is None or not step.needs.is_closed:
            return None
        return self._run(step, batch.contents, cancelled, is_noted=False)

    def _step(self, text: str, structure: Callable[[], Structure]) -> KnownStep | None:
        """What is known of the structure with a text; None: it never runs as a plan."""
        step = self._steps.get(text)
        if step is None and hash(text) not in self._refused:
            whole = structure()
            needs = needs_of(whole)
            if needs is None:
                keep(self._refused, hash(text), None, _MOST_SKETCHES)
            else:
                step = KnownStep(whole, needs, object_bytes.STEP * len(whole.commands) + getsizeof(text))
                keep(self._steps, text, step, _MOST_STRUCTURES)
        return step

    def _run(
        self, step: KnownStep, contents: Contents, cancelled: Callable[[], bool], *, is_noted: bool = True
    ) -> Answer | None:
        needs = step.needs
        inputs = self._inputs(needs, contents)
        if inputs is None:
            return None
        state = self._state
        try:
            tensors = [_value(array) for array in contents.tensors]
        except Exception:  # of a dtype that no array has
            return None
        key = self._key(step, contents, inputs, tensors)
        prepared = step.plans.get(key, step)
        if prepared is None:
            return None
        if prepared.__class__ is StepPlan:
            return self._planned(step, prepared, contents, inputs, tensors, key, is_noted=is_noted)
        if not (step.left and is_noted):
            return None
        step.left -= 1
        return PlanBuilder(state, step, contents, inputs, key).run(cancelled)

    def _inputs(self, needs: Needs, contents: Contents) -> BatchInputs | None:
        """What the batch takes; None: something is unusual, or its context is recorded."""
        state, ids = self._state, contents.taken
        key = MAIN if needs.context is None else ids[needs.context]
        executor = state.context(key)
        if executor.context.active or not executor.plannable:
            return None
        inputs = BatchInputs(executor)
        entries = state.entries
        for number in needs.taken:
            entry = entries.get(ids[number])
            if entry.__class__ is Value:
                inputs.started.append(entry)
            elif entry.__class__ is Variable:
                inputs.started.append(entry.value)
            else:
                return None
            inputs.arguments.append(entry)
        for number in needs.functions:
            entry = entries.get(ids[number])
            if entry.__class__ is not Function:
                return None
            inputs.functions.append(entry)
        if not entries.keys().isdisjoint(contents.created):
            return None
        if state.released and not state.released.keys().isdisjoint(contents.created):
            return None
        return inputs

    def _key(self, step: KnownStep, contents: Contents, inputs: BatchInputs, tensors: Sequence[Value]) -> Any:
        """What a plan depends on. Numbers that have changed since the batch before are free from now on."""
        numbers = contents.numbers
        before = step.numbers
        if before is not None and before is not numbers:
            changed = [
                i
                for i, (a, b) in enumerate(zip(before, numbers, strict=True))
                if a.array != b.array and i not in step.fixed and i not in step.free
            ]
            if changed and step.needs.tapes < 2:
                step.free = tuple(sorted({*step.free, *changed}))
        step.numbers = numbers
        arguments, started = inputs.arguments, inputs.started
        if tensors:
            arguments, started = [*arguments, *tensors], [*started, *tensors]
        declarations = self._state.declarations
        return (
            key_of(arguments, started),
            tuple([entry.trainable if entry.__class__ is Variable else None for entry in inputs.arguments]),
            tuple(map(id, inputs.functions)),
            step.free,
            tuple([_exact(literal.array) for i, literal in enumerate(numbers) if i not in step.free]),
            len(declarations.no_gradient),
            len(declarations.gradients),
        )

    # -------------------------------------------------------------------------------------------------------- planned
    def _planned(
        self,
        step: KnownStep,
        prepared: StepPlan,
        contents: Contents,
        inputs: BatchInputs,
        tensors: list[Value],
        key: Any,
        *,
        is_noted: bool,
    ) -> Answer | None:
        state, executor, plan = self._state, inputs.executor, prepared.plan
        for number in step.needs.early:
            state.release(contents.taken[number])
        started = inputs.started
        try:
            state.monitor.command(0)
            state.memory.look(0)
            if tensors:
                state.memory.spend(sum([value.spec.nbytes for value in tensors]), "a tensor")
                started = [*started, *tensors]
            if step.free:
                started = [*started, *_elements(contents.numbers, step.free, prepared.dtypes)]
            values, returned = plan.values(started, plan.compute(executor, started))
            results = [self._result(entry, returned, contents) for entry in prepared.results]
        except Exception as error:  # the commands run one by one, and the error comes in its own words and place
            prepared.failures += not isinstance(error, TeletapeError)
            if isinstance(error, Diverged) or prepared.failures > ATTEMPTS:
                step.plans[key] = None
            return None
        step.left = ATTEMPTS
        if is_noted:
            self._finish(step.needs, prepared, contents, inputs, started, values)
            for entry, result in zip(prepared.results, results, strict=True):
                if isinstance(result, Fetched):
                    note_fetch(state, returned[entry[-1]], result)
            self._name(step.needs, prepared, contents, returned)
        return Answer(tuple(results), None, state.memory.estimate())

    def _finish(
        self,
        needs: Needs,
        prepared: StepPlan,
        contents: Contents,
        inputs: BatchInputs,
        started: Sequence[Value],
        values: Sequence[Value],
    ) -> None:
        """Assigns to the variables, and notes in the batch's context what has been computed."""
        state, executor = self._state, inputs.executor
        state.current = executor
        if needs.context is not None:
            state.switch(contents.taken[needs.context])
        first = len(inputs.started)
        for source, number in needs.notes:
            if source == TENSORS:
                tensor = started[first + number]
                executor.provenance.note_constant(tensor, tensor.array)
        notes = self._notes(prepared.uses, contents.numbers, needs) if prepared.uses else ()
        arguments = [*inputs.arguments, *started[first:]] if len(started) > first else inputs.arguments
        prepared.plan.finish(executor, arguments, started, values, notes)
        if needs.tapes:
            executor.context.begin_epoch()

    def _name(self, needs: Needs, prepared: StepPlan, contents: Contents, returned: Sequence[Any]) -> None:
        """Gives what stays its ids, and releases what the batch releases."""
        state, ids, created = self._state, contents.taken, contents.created
        entries = state.entries
        for at, number in prepared.remaining:
            entries[created[at]] = returned[number]
        for number in needs.late:
            state.release(ids[number])
        if needs.temporaries:
            state.forget([ids[number] for number in needs.temporaries])
        self._note_created(needs, created, prepared.unnamed)
        state.note_highest()

    def _result(self, entry: Any, returned: Sequence[Any], contents: Contents) -> Result:
        """One result of a batch: as in every run, or with the numbers of a value."""
        if entry.__class__ is not tuple:
            return entry  # type: ignore[no-any-return]  # a result
        index, new, old, elements, number = entry
        self._state.index = index
        name = contents.created[new] if new is not None else contents.taken[old]
        return fetched(self._state, name, returned[number], elements)

    def _notes(self, uses: Sequence[tuple[int, Uid]], numbers: Sequence[Literal], needs: Needs) -> tuple[Record, ...]:
        """The records of numbers that the program may have read, as `ProvenanceLog.note_numbers` has them."""
        records: list[Record] = []
        reads = self._state.numbers
        for position, output in uses:
            if not reads and position in needs.numbers:  # ops note nothing as long as nothing was read
                continue
            number = numbers[position].array
            read = reads.get(number)
            if read is not None:
                records.append((Event.RETURNED, (read.uid,), output, Return.of(read, None, number)))
            elif not is_plain(number):
                records.append((Event.PUT, (), output, None))
        return tuple(records)

    def _note_created(self, needs: Needs, created: Sequence[Id], unnamed: Collection[int]) -> None:
        """Remembers the ids that the commands have made, and that they were released."""
        state = self._state
        if unnamed:
            names: Sequence[Any] = [name for number, name in enumerate(created) if number not in unnamed]
        else:
            names = created
        numbers = [name for name in names if name.__class__ is int]
        if numbers:
            state.latest = max(state.latest, *numbers)
        if len(numbers) < len(names):
            state.memory.noted += sum([getsizeof(name) for name in names if name.__class__ is str])
        for number in needs.released:
            name = created[number]
            if (name.__class__ is not int or name < FIRST_CLIENT_ID) and number not in unnamed:
                state.note_released(name)

    # --------------------------------------------------------------------------------------------------------- memory
    @property
    def remembered_bytes(self) -> int:
        """Bytes of what is remembered of structures."""
        steps = self._steps.values()
        tables = _ENTRY * (len(self._sketches) + len(self._refused))
        return (
            tables
            + sum([step.nbytes for step in steps])
            + sum([plan.nbytes for step in steps for plan in step.ready()])
        )

    def forget(self) -> None:
        """Forgets all structures."""
        for table in (self._steps, self._sketches, self._refused):
            table.clear()


def _sketch_of(todo: Sequence[Any]) -> int:
    """A number that two batches with the same commands and ops have in common."""
    return hash(tuple([command.op if command.__class__ is Call else command.__class__ for command in todo]))


def _structure(batch: Batch) -> Structure:
    read = structure_of(batch)
    assert read is not None, "the batch was read already"
    return read[0]


def _value(array: np.ndarray[Any, Any]) -> Value:
    array = native(array)
    return Value(array, Spec.of(array.shape, array.dtype), new_uid())


def _elements(numbers: Sequence[Literal], free: Sequence[int], dtypes: Sequence[DType]) -> list[Value]:
    values = []
    for position, dtype in zip(free, dtypes, strict=True):
        array = typed_array(numbers[position], dtype)
        values.append(Value(array, Spec.of((), dtype), new_uid()))
    return values


def _exact(number: Any) -> Any:
    """A number as a part of a key: 0.0 and -0.0 are equal, and not the same. Their types belong to the structure."""
    return repr(number) if not number or number.__class__ is complex else number
