"""Provenance logs: what no tape followed, for explanations. Ops, assignments, reads, and numbers that came back.

A log has small records without arrays, the latest few thousand of a context; recorders write them, and `explain/` reads
them. Nothing here ever decides a gradient.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from teletape_engine.catalogue.binding import TapeCall
from teletape_engine.recording.values import Uid, new_uid

LENGTH: Final = 8192  #: Records of a log: 2 MB at the most.
_READS: Final = 1024  #: Reads that a session remembers.
_SLACK: Final = 64  #: The number of the oldest reads that are forgotten together.
_WHOLE: Final = 256  #: Arrays of at most this many elements are compared by all of them, larger ones by samples.


class Event(enum.Enum):
    """What a record notes when it is no op."""

    READ = "read"  #: a variable was read where no tape watched it; `where` has its name
    ASSIGN = "assign"  #: a variable, the second input, got its next version: no step of what is differentiated
    UPDATE = "update"  #: the same by adding or subtracting
    GRADIENT = "gradient"  #: a tape computed it, and no other tape recorded how
    PUT = "put"  #: numbers came from the program, as a tensor or among an op's inputs
    PLAIN = "plain"  #: the same before anything was read, or of short numbers such as programs are written with
    RETURNED = "returned"  #: it had the bytes of a value that the program had read
    LEFT = "left"  #: computed by the program's own Python (numpy_function, py_function)
    UNTAKEN = "untaken"  #: a branch that was not run used the inputs
    NO_ITERATION = "no_iteration"  #: a loop that made no iteration used the inputs


#: One record: an op's bound call or an event, uids of the inputs (None: a number), the result's, the call site. A
#: `PlannedCall` or `PlannedLoop` has neither inputs nor a call site: `entries` gives the records that it replaces.
Record: TypeAlias = tuple["TapeCall | Event | PlannedCall | PlannedLoop", tuple[Uid | None, ...], Uid, Any]


class Records(deque[Record]):
    """The records of a log, the latest last.

    Attributes:
        index: What explanations have found in them: an `explain.log_index.LogIndex`, once there was one.
    """

    index: Any = None

    def clear(self) -> None:
        """Forgets all records."""
        super().clear()
        self.index = None


class ValueRead(NamedTuple):
    """A value whose numbers the program has read.

    Attributes:
        uid: The value.
        where: The call site of the read.
        at: A uid of that moment: what was computed later has a higher one.
    """

    uid: Uid
    where: Any
    at: Uid


class Return(NamedTuple):
    """The `where` of RETURNED: the call site that read the numbers, and the one that brought them back.

    Attributes:
        left: Where they were read.
        back: Where they came back.
        common: Whether it is one short number, such as 2 or 0.5: that they are equal may be an accident.
    """

    left: Any
    back: Any
    common: bool

    @classmethod
    def of(cls, read: ValueRead, back: Any, numbers: Any) -> Return:
        """From a read, to a tensor or number with the same numbers."""
        return cls(read.where, back, np.size(numbers) == 1 and is_plain(numbers))


def is_plain(numbers: Any) -> bool:
    """Whether numbers (the first of many) are short, such as 2 or 0.5: those of a program's text mostly are."""
    if not isinstance(numbers, np.ndarray):
        return bool(complex(f"{numbers:.2g}") == numbers)
    if numbers.dtype == object:
        return True
    first = [numbers.item()] if numbers.size == 1 else numbers.reshape(-1)[:8].tolist()
    return all(complex(f"{number:.2g}") == number for number in first)


class ValueReads:
    """What the program has read, by its numbers: a tensor with the same ones probably came from there.

    All threads of a session share it. It holds no arrays: keys are hashes of small ones, and of samples of large ones.

    Attributes:
        numbers: Reads of one element each, by the Python number. Hot paths look only whether it is empty.
        log: All reads, the latest last.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, ValueRead] = {}
        self._arrays: dict[tuple[int, int], ValueRead] = {}
        self.log: deque[ValueRead] = deque(maxlen=_READS)

    def note(self, uid: Uid, array: np.ndarray[Any, Any], where: Any) -> None:
        """The value `uid` has been read as `array`."""
        if array.dtype == object or array.size == 0:
            return
        read = ValueRead(uid, where, new_uid())
        self.log.append(read)
        table, key = (self.numbers, array.item()) if array.size == 1 else (self._arrays, fingerprint(array))
        table.pop(key, None)
        table[key] = read
        if len(table) > _READS:
            for oldest in list(table)[:_SLACK]:  # a copy, made in one step: other threads note reads meanwhile
                table.pop(oldest, None)

    def tables(self) -> tuple[dict[Any, ValueRead], dict[Any, ValueRead]]:
        """The reads that are known by their numbers: of one element each, and of more, by size and hash."""
        return self.numbers, self._arrays

    def find(self, array: np.ndarray[Any, Any]) -> ValueRead | None:
        """The latest read of just these numbers, in whatever dtype and shape they come back."""
        if array.dtype == object or array.size == 0:
            return None
        if array.size == 1:
            return self.numbers.get(array.item()) if self.numbers else None
        return self._arrays.get(fingerprint(array)) if self._arrays else None


def fingerprint(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """A key of the array's numbers, whatever its dtype and shape: their count, and a CRC32 of all or of a sample."""
    flat = array.reshape(-1)
    if flat.size > _WHOLE:
        flat = flat[:: -(flat.size // 128)]  # from the last on
    kind = array.dtype.kind
    if kind == "V":  # bfloat16, whose direct cast of NaN complains
        flat = flat.astype(np.float32)
    return array.size, crc32(flat.astype(np.complex128 if kind == "c" else np.float64).tobytes())


class ProvenanceLog:
    """The log of one context, and the call site that is running.

    Attributes:
        records: The latest records.
        value_reads: What the program has read; one for all contexts of a session.
        locate: Returns the call site that is running, if that can be known.
        where: The call site of the call that is being run, if the caller has given it.
    """

    def __init__(self) -> None:
        self.records = Records(maxlen=LENGTH)
        self.value_reads = ValueReads()
        self.locate: Callable[[], Any] | None = None
        self.where: Any = None

    def here(self) -> Any:
        """The call site that is running, if it is known."""
        return self.where if self.locate is None else self.locate()

    @contextmanager
    def at_call_site(self, where: Any = None) -> Iterator[None]:
        """Pins the call site for the duration of the block, by default to the one that runs now."""
        before, self.where = self.where, self.here() if where is None else where
        try:
            yield
        finally:
            self.where = before

    # -------------------------------------------------------------------------------------------------------- records
    def note(self, event: Event, inputs: Sequence[Uid | None], output: Uid, where: Any = None) -> None:
        """Notes an event: `output` came about so, from `inputs`."""
        self.records.append((event, tuple(inputs), output, self.here() if where is None else where))

    def note_assignment(self, variable: Any, value: Uid | None, mode: str) -> None:
        """Notes an assignment to a Variable that has happened; `value`: the uid assigned, None: a number."""
        event = Event.ASSIGN if mode == "set" else Event.UPDATE
        self.records.append((event, (value, variable.uid), variable.value.uid, self.here()))

    def note_constant(self, value: Any, array: Any) -> None:
        """Notes a tensor that came from the program, and the read that gave it the same numbers."""
        if not self.value_reads.log:
            self.note(Event.PLAIN, (), value.uid)
        elif (read := self.value_reads.find(array)) is not None:
            self.note(Event.RETURNED, (read.uid,), value.uid, Return.of(read, self.here(), array))
        else:
            self.note(Event.PLAIN if is_plain(array) else Event.PUT, (), value.uid)

    def note_numbers(self, inputs: Sequence[Any], output: Uid) -> None:
        """Notes each Python number among an op's inputs that the program may have from a read."""
        for operand in inputs:
            if operand.uid is not None or operand.spec.shape:
                continue
            if (read := self.value_reads.numbers.get(operand.array)) is not None:
                self.note(Event.RETURNED, (read.uid,), output, Return.of(read, self.here(), operand.array))
            elif not is_plain(operand.array):
                self.note(Event.PUT, (), output)

    def note_gradients(self, targets: Sequence[Any], sources: Sequence[Any], derivatives: Sequence[Any]) -> None:
        """Notes gradients that were computed outside any outer tape."""
        uids, where = tuple([value.uid for value in (*targets, *sources)]), self.here()
        for derivative in derivatives:
            if derivative is not None:
                uid = derivative.values.uid if hasattr(derivative, "indices") else derivative.uid
                self.records.append((Event.GRADIENT, uids, uid, where))


# ---------------------------------------------------------------------------------------------------------------- plans
class CallRecords(NamedTuple):
    """The records of one run of a function, from which those of others follow: only uids and names differ.

    Attributes:
        records: Of the run.
        values: Uids of the arguments' values in that run; None: a number.
        variables: Uids of the variables among the arguments; None: it is none.
        new: Uids of the results and of the values assigned.
        first: A uid: those of values that the run computed are higher.
    """

    records: tuple[Record, ...]
    values: tuple[Uid | None, ...]
    variables: tuple[Uid | None, ...]
    new: tuple[Uid, ...]
    first: Uid


class PlannedCall(NamedTuple):
    """A call whose steps were not recorded one by one.

    Attributes:
        template: The records of another run of the same function.
        values, new: As in `template`, of this call.
        variables: Uid and name of each variable among the arguments.
        notes: Records of this call alone, with the results' uids of the other run.
    """

    template: CallRecords
    values: tuple[Uid | None, ...]
    variables: tuple[tuple[Uid, str | None] | None, ...]
    new: tuple[Uid, ...]
    notes: tuple[Record, ...] = ()

    def records(self, at: Uid) -> list[Record]:
        """The records of this call, which came before the uid `at`.

        The values inside the call get fractions between two whole numbers as uids, which no other value has.
        """
        template = self.template
        uids = _uids(template, self.values, self.variables)
        uids |= zip(template.new, self.new, strict=True)
        names, half = _names(template, self.variables), Fraction(1, 2)
        records = _renamed(template.records, uids, names, at - 1, half, template.first)
        for number, (what, inputs, output, where) in enumerate(self.notes, 1):
            uid = uids.setdefault(output, at - half + half * Fraction(number, len(self.notes) + 1))
            records.append((what, inputs, uid, where))
        return records


class LoopRecords(NamedTuple):
    """The records of one iteration of a loop, from which those of others follow.

    Attributes:
        records, values, variables: As in `CallRecords`.
        next: For each argument the uid of the value that the next iteration has in its place.
    """

    records: tuple[Record, ...]
    values: tuple[Uid | None, ...]
    variables: tuple[Uid | None, ...]
    next: tuple[Uid | None, ...]


class PlannedLoop(NamedTuple):
    """Iterations whose steps were not recorded one by one.

    Attributes:
        template: The records of another iteration of the same loop.
        values: Uids of the first iteration's arguments; None: a number.
        variables: Uid and name of each variable among the arguments.
        new: Uids of what the last iteration has left in place of each argument; None: the argument itself.
        iterations: Their number.
        elements: For each argument that is an element of an array its number, the uid of the array, and the call that
            cuts it.
    """

    template: LoopRecords
    values: tuple[Uid | None, ...]
    variables: tuple[tuple[Uid, str | None] | None, ...]
    new: tuple[Uid | None, ...]
    iterations: int
    elements: tuple[tuple[int, Uid, TapeCall], ...]

    def records(self, at: Uid) -> list[Record]:
        """The records of the latest iterations, which came before the uid `at`."""
        template = self.template
        size = len(template.records) + len(self.elements)
        count = min(self.iterations, LENGTH // max(size, 1) + 1)
        names = _names(template, self.variables)
        width = Fraction(1, count)
        values: tuple[Any, ...] = self.values
        records: list[Record] = []
        for number in range(count):
            first = at - 1 + number * width
            if number or count < self.iterations:
                elements: dict[int, Any] = {}
                for argument, source, cut in self.elements:
                    elements[argument] = first + width * Fraction(len(elements) + 1, 2 * len(self.elements) + 2)
                    records.append((cut, (source,), elements[argument], None))
                values = tuple([elements.get(argument, uid) for argument, uid in enumerate(values)])
            uids = _uids(template, values, self.variables)
            if number == count - 1:
                uids |= {after: uid for after, uid in zip(template.next, self.new, strict=True) if uid is not None}
            records += _renamed(template.records, uids, names, first + width / 2, width / 2)
            values = tuple([uids.get(after, after) for after in template.next])
        return records


def _uids(template: Any, values: Sequence[Uid | None], variables: Sequence[Any]) -> dict[Uid | None, Any]:
    """The uids of another run in place of those of a template."""
    uids: dict[Uid | None, Any] = {None: None}
    for before, now in zip(template.values, values, strict=True):
        uids.setdefault(before, now)
    for variable, entry in zip(template.variables, variables, strict=True):
        if variable is not None and entry is not None:
            uids[variable] = entry[0]
    return uids


def _names(template: Any, variables: Sequence[Any]) -> dict[Uid, Any]:
    """The names of the variables that a template's records read."""
    pairs = zip(template.variables, variables, strict=True)
    return {variable: entry[1] for variable, entry in pairs if variable is not None and entry is not None}


def _renamed(
    template: Sequence[Record],
    uids: dict[Uid | None, Any],
    names: dict[Uid, Any],
    first: Any,
    width: Fraction,
    since: Uid | None = None,
) -> list[Record]:
    """Records with other uids; values that have none get some, in order, after `first`. Adds them to `uids`.

    Values with a uid from `since` on were computed in the template's run: they get uids also if they are inputs alone.
    """
    count = len(template) + 1
    records: list[Record] = []
    for number, (what, inputs, output, where) in enumerate(template, 1):
        if what is Event.READ:
            where = names.get(inputs[0] or 0, where)
        if since is not None:
            for i, uid in enumerate(inputs):
                if uid not in uids and uid is not None and uid >= since:
                    uids[uid] = first + width * (number - Fraction(i + 1, len(inputs) + 1)) / count
        if output not in uids and what is not Event.READ:
            uids[output] = first + width * Fraction(number, count)
        records.append((what, tuple([uids.get(uid, uid) for uid in inputs]), uids.get(output, output), where))
    return records


def expanded(record: Record) -> Sequence[Record]:
    """The records that one record of a log stands for: itself, or those of a planned call."""
    what = record[0]
    return what.records(record[2]) if isinstance(what, PlannedCall | PlannedLoop) else (record,)
