"""The state of a session, as handlers see it: what its ids name, its contexts, and the count of their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine import arrays, commands, object_bytes
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.slices import SlicesValue, densify
from teletape_engine.commands import Id
from teletape_engine.commands.results import Failure, Result
from teletape_engine.derivatives.query import Declarations
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.function import Function
from teletape_engine.functions.steps import StepTimes
from teletape_engine.functions.untyped import call_dtypes
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.provenance import Records, ValueReads
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, SpecValue, Unrecorded, Value, Variable, typed_array
from teletape_engine.session.clients import Clients
from teletape_engine.session.entries import Entry
from teletape_engine.session.names import Names
from teletape_engine.session.objects import LogCounts, every_function, every_log, object_count
from teletape_engine.spec import Spec

MAIN: Final = 0  #: The context in which every batch begins.
_LOOKED_AT: Final = 256  #: Ids and nodes that each answer pays to be counted.
_SAME: Final = 16  #: Answers of which one counts, if nothing stays of what they answer.
MOST_CONTEXTS: Final = 128  #: With more, those that nothing uses end, except the half of this number used last.


class Remembered(Protocol):
    """What is kept to be faster, and can be forgotten."""

    @property
    def remembered_bytes(self) -> int:
        """Its bytes, as they are counted."""

    def forget(self) -> None:
        """Forgets it: it is found out again."""


class Timing:
    """The times of a batch's commands, from one on, and of the steps of the functions that these run.

    Args:
        clock: Returns seconds.
        name_of: Returns the id of a function; None: it has none.

    Attributes:
        steps: The times of the steps.
        facts: JSON-able: `seconds` of each command after the one that began it, of these the seconds `in_steps` of
            functions, and the rows of the `steps`. They grow with the batch.
    """

    def __init__(self, clock: Callable[[], float], name_of: Callable[[Function], Id | None]) -> None:
        self.steps = StepTimes(clock, name_of)
        self.facts: dict[str, list[Any]] = {"seconds": [], "in_steps": [], "steps": self.steps.rows}
        self._clock = clock
        self._last: float | None = None

    def note(self) -> None:
        """Notes that a command is done."""
        now = self._clock()
        if self._last is not None:
            self.facts["seconds"].append(now - self._last)
            self.facts["in_steps"].append(self.steps.inside)
        self.steps.inside = 0.0
        self._last = now


class State(Names):
    """What one session has on one device.

    Args:
        device: cpu, gpu, gpu:N or auto.
        memory_limit: Bytes that the arrays may take; None for no limit.
        max_iterations: Iterations that the loops of one command may run; None for no limit.
        clock: Returns seconds, for the times of commands; None: they are not known.

    Attributes:
        backend: The device's arrays.
        monitor: Reports progress, and learns whether the batch is cancelled.
        clients: The clients of the session.
        declarations: What was declared about op types that have no gradient.
        value_reads: The values that the program has read, for explanations.
        numbers: Those of them with one element: empty until there are any.
        current: The context that the commands belong to.
        results: The results of the batch so far.
        failures: The first failure in each strand of the batch so far.
        index: The position of the command in its batch.
        explains: Whether the answers of the batch say why derivatives are none.
        fetches: The values that the batch has fetched, if they are to be noted.
        repetitions: What is remembered of the structures of batches.
        clock: Returns seconds; None: the host has no clock for it.
        timing: The times of the batch's commands, if they are wanted.
        variables_made: How many variables commands have made, also those that have ended.

    Raises:
        UnimplementedError: There is no such device here.
    """

    def __init__(
        self,
        device: str = "cpu",
        *,
        memory_limit: int | None = None,
        max_iterations: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = clock
        self.timing: Timing | None = None
        self.backend = self.backend_of(device)
        if memory_limit is not None:
            self.backend.limit_memory(memory_limit)
        super().__init__(Memory(memory_limit, self.bytes_in_use, self._forget, self._array_bytes))
        self._object_bytes = 0  # at the last exact count
        self._logs = LogCounts()
        self._credit = 0  # things that an exact count may look at
        self.batches = 0  # that were executed
        self._counted = self._unchanged = 0  # how many there were at the last exact count; and since then nothing stays
        self.monitor = Monitor(max_iterations)
        self.clients = Clients()
        self.declarations = Declarations()
        self.value_reads = ValueReads()
        self.numbers = self.value_reads.numbers
        self.results: list[Result] = []
        self.failures: dict[Id, Failure] = {}
        self.index = 0
        self.explains = False
        self._contexts: dict[Id, Executor] = {}  # that used last is last
        self._most_contexts = MOST_CONTEXTS
        self.current = self.context(MAIN)
        self.variables_made = 0
        self.fetches: list[Value] | None = None
        self.repetitions: Remembered | None = None

    def backend_of(self, device: str) -> arrays.Backend:
        """The backend of a device; see `arrays.backend`."""
        return arrays.backend(device)

    # ------------------------------------------------------------------------------------------------------- contexts
    def context(self, key: Id) -> Executor:
        """The context of that id; it is made on first use."""
        context = self._contexts.get(key)
        if context is None:
            if len(self._contexts) >= self._most_contexts:
                self._end_idle_contexts()
            self.memory.note(object_bytes.CONTEXT, "a context")
            context = self._contexts[key] = self.executor()
        return context

    def executor(self) -> Executor:
        """A context that has no id."""
        context = Executor(self.backend, self.memory, self.monitor)
        context.provenance.value_reads = self.value_reads
        return context

    def contexts(self) -> dict[Id, Executor]:
        """The contexts by id, that used last is last."""
        return self._contexts

    def switch(self, key: Id) -> None:
        """The commands that follow belong to that context."""
        self.current = self.context(key)
        self._contexts[key] = self._contexts.pop(key)

    def substitute(self, key: Id, executor: Executor) -> None:
        """Replaces the executor of an existing context."""
        if self.current is self._contexts[key]:
            self.current = executor
        self._contexts[key] = executor

    def end_context(self, key: Id) -> None:
        """Ends a context: what records there stops; the current one gives way to the main one.

        Raises:
            InvalidArgumentError: It is the main one.
        """
        if key == MAIN:
            raise InvalidArgumentError(f"context {MAIN} cannot end: every batch begins there")
        recorder = self._contexts.pop(key, None)
        if recorder is None:
            return
        for tape in list(recorder.context.tapes):
            recorder.context.pause(tape)
        for accumulator in list(recorder.context.accumulators):
            recorder.context.close_accumulator(accumulator)
        if self.current is recorder:
            self.current = self.context(MAIN)

    def _end_idle_contexts(self) -> None:
        """Ends contexts in which nothing records, those first that were used longest ago."""
        idle = [key for key, recorder in self._contexts.items() if not recorder.recorded and key != MAIN]
        for key in idle[: -MOST_CONTEXTS // 2]:
            if self._contexts[key] is not self.current:
                del self._contexts[key]
        # If most are active, the next look comes only after as many more have been made.
        self._most_contexts = max(MOST_CONTEXTS, 2 * (len(self._contexts) - MOST_CONTEXTS // 2))

    def provenance_logs(self) -> list[Records]:
        """The provenance log of every context."""
        return [context.provenance.records for context in self._contexts.values()]

    # --------------------------------------------------------------------------------------------------------- inputs
    def input(self, operand: commands.Input) -> Any:
        """A command's input as a recorded value: an id is looked up, a variable read, slices made dense."""
        if operand.__class__ is int or operand.__class__ is str:
            entry = self.entries.get(operand)
            if entry.__class__ is Value:
                return entry
            entry = self.find(operand, (Value, Variable, SlicesValue))
            if isinstance(entry, Variable):
                return self.current.read(entry)
            return densify(entry, self.current)
        return operand if isinstance(operand, Literal) else self.current.constant(operand)  # type: ignore[arg-type]  # no id

    def argument(self, operand: commands.Input) -> Any:
        """As `input`, but a variable stays a variable: a function reads it where its steps do."""
        entry = self.entries.get(operand) if isinstance(operand, int | str) else None
        return entry if entry.__class__ is Variable else self.input(operand)

    def value(self, operand: Any, like: Spec | None = None) -> Value:
        """An input as a value; a number becomes an array, of the dtype of `like` if there is one."""
        dtype = None if like is None else like.dtype
        return self.current.as_value(self.input(operand), dtype)  # type: ignore[no-any-return]

    def typed_inputs(
        self, function: Function, operands: Sequence[commands.Input]
    ) -> list[int | str | np.ndarray[Any, Any]]:
        """The inputs of a function, numbers and untyped lists as arrays of the dtypes that they take in it.

        Raises:
            InvalidArgumentError: A number that does not fit its dtype.
            UnknownIdError, ReleasedIdError, PoisonedError: An id names no value.
        """
        inputs: list[Any] = []
        for operand in operands:
            if isinstance(operand, int | str):
                entry = self.find(operand, (Value, Variable, SlicesValue))
                inputs.append(SpecValue(entry.dense) if isinstance(entry, SlicesValue) else entry)
            elif isinstance(operand, np.ndarray):
                inputs.append(SpecValue(Spec.of(operand.shape, operand.dtype)))
            else:
                inputs.append(operand)
        dtypes = call_dtypes(function, inputs)
        return [
            typed_array(operand, dtypes.get(i, operand.spec.alone)) if isinstance(operand, Literal) else operand
            for i, operand in enumerate(operands)
        ]

    def host(self, value: Value) -> np.ndarray[Any, Any]:
        """The value's numbers on the host, row-major, read only."""
        return on_host(self.backend.get(value.array), value.spec)

    # --------------------------------------------------------------------------------------------------------- memory
    def bytes_in_use(self) -> int:
        """Bytes of arrays that ids, tapes, answers and plans keep alive, each buffer once, and of many objects."""
        buffers, tapes = self._buffers(), self.tapes()
        self._object_bytes = object_count(
            entries=self.entries,
            tapes=tapes,
            contexts=len(self._contexts),
            records=self._logs.total(every_log(tapes, self.provenance_logs())),
            answers=self.clients.kept_results(),
            texts=(*self.declarations.no_gradient, *self.declarations.gradients),
            buffers=len(buffers),
            remembered=0 if self.repetitions is None else self.repetitions.remembered_bytes,
        )
        return sum(buffers.values()) + self.memory.cached() + self._object_bytes

    def estimated_bytes(self, *, nothing_stays: bool) -> int:
        """Bytes in use: exact in a small session, else those of a count not long ago and of the arrays made since.

        A count looks at every id and every node of a tape. Each call here pays for `_LOOKED_AT` of them, and counts
        when enough is paid, so that answers do not cost more the more a session has.

        Args:
            nothing_stays: Whether the last batch has left no more than records of what it did: a few answers to such
                batches, one after the other, have the same number.
        """
        if nothing_stays and self.batches == self._counted:  # nothing was executed since
            return self.memory.exact
        if nothing_stays and self.batches == self._unchanged + 1 < self._counted + _SAME:
            self._unchanged = self.batches
            return self.memory.exact
        self._credit += _LOOKED_AT
        if len(self.entries) <= self._credit:
            if len(self.entries) + sum([tape.length for tape in self.tapes()]) <= self._credit:
                self._credit = 0
                self._counted = self._unchanged = self.batches
                return self.memory.count()
            self._credit -= len(self.entries)
        return self.memory.estimate()

    def _array_bytes(self) -> int:
        """As `bytes_in_use`, with the objects of the last exact count, which walks every call of every tape."""
        return sum(self._buffers().values()) + self.memory.cached() + self._object_bytes

    def _buffers(self) -> dict[int, int]:
        """The bytes of each buffer that something keeps alive, by its identity."""
        base = self.backend.base
        buffers = dict(base(value.array) for value in self.values() if not isinstance(value, Unrecorded))
        buffers.update(CPU.base(array) for array in self.clients.kept_arrays())
        return buffers

    def dispensable_bytes(self) -> int:
        """Bytes of provenance logs, and of what functions and repeated batches remember."""
        logs, functions = every_log(self.tapes(), self.provenance_logs()), every_function(self.entries)
        remembered = 0 if self.repetitions is None else self.repetitions.remembered_bytes
        return self._logs.total(logs) + sum([function.remembered_bytes for function in functions]) + remembered

    def _forget(self, nbytes: float) -> bool:
        """Empties provenance logs, and what functions remember of calls, if they have that many bytes.

        Explanations are shorter then, and plans are built again, but work goes on.
        """
        if self.dispensable_bytes() < nbytes:
            return False
        logs, functions = every_log(self.tapes(), self.provenance_logs()), every_function(self.entries)
        if self.repetitions is not None:
            self.repetitions.forget()
        for log in logs:
            log.clear()
        for function in functions:
            function.forget()
        return True

    def tapes(self) -> list[Tape]:
        """Every tape that an id or a context keeps, once."""
        tapes = [tape for recorder in self._contexts.values() for tape in recorder.context.tapes]
        tapes += [tape for entry in self.things() if isinstance(entry, Entry) for tape in entry.tapes()]
        return list({id(tape): tape for tape in tapes}.values())

    def values(self) -> Iterator[Any]:
        """Every recorded value that an id, a tape or a context keeps; some more than once."""
        for recorder in self._contexts.values():
            if recorder.context.by_variable:
                yield from recorder.context.reads()
        for entry in self.things():
            if isinstance(entry, Value):
                yield entry
            elif isinstance(entry, Variable):
                yield entry.value
            elif isinstance(entry, SlicesValue):
                yield entry.values
                yield entry.indices
            elif isinstance(entry, Function):
                yield from entry.values_on_devices()
            elif isinstance(entry, Entry):
                yield from entry.values()
        for tape in self.tapes():
            for node in tape.nodes:
                yield from node[3]
            for variable in tape.variables.values():
                yield variable.value


def sent_call_site(where: object) -> str | None:
    """A node's call site, if the caller sent one with the command."""
    return where if isinstance(where, str) else None


def on_host(array: np.ndarray[Any, Any], spec: Spec) -> np.ndarray[Any, Any]:
    """A value's numbers, row-major and read only."""
    return read_only(np.ascontiguousarray(array).reshape(spec.shape))


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A view that cannot be written to."""
    array = array.view()
    array.flags.writeable = False
    return array
