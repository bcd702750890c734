"""What no tape followed, kept for explanations: ops, assignments, reads, and bytes that left and came back.

A trail has small records without arrays, the latest few thousand of a context; `graph.py` writes them, `explain.py`
walks them. Nothing here ever decides a gradient.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from teletape_engine.catalogue.binding import Call
from teletape_engine.recording.values import Uid, new_uid

LENGTH: Final = 8192  #: Records that a context keeps: 2 MB at the most.
_READS: Final = 1024  #: Reads that a session remembers.
_WHOLE: Final = 256  #: Arrays of up to so many elements are told apart by all of them, larger ones by samples.


class Event(enum.Enum):
    """What a record notes when it is no op."""

    READ = "read"  #: a variable was read where no tape watched it; `where` has its name
    ASSIGN = "assign"  #: a variable, the second input, got its next version: no step of what is differentiated
    UPDATE = "update"  #: the same by adding or subtracting
    GRADIENT = "gradient"  #: a tape answered, and nobody recorded how
    PUT = "put"  #: numbers came from the program, as a tensor or among an op's inputs
    PLAIN = "plain"  #: the same before anything was read, or of short numbers such as programs are written with
    RETURNED = "returned"  #: it had the bytes of a value that the program had read
    LEFT = "left"  #: computed by the program's own Python (numpy_function, py_function)
    UNTAKEN = "untaken"  #: a branch that was not run used the inputs
    NO_ITERATION = "no_iteration"  #: a loop that made no iteration used the inputs


#: One record: an op's bound call or an event, uids of the inputs (None: a number), the result's, the caller's line.
Note: TypeAlias = tuple[Call | Event, tuple[Uid | None, ...], Uid, Any]
Trail: TypeAlias = deque[Note]


class Departure(NamedTuple):
    """A value whose numbers the program has had.

    Attributes:
        uid: The value.
        where: The line that read it.
        at: A uid of that moment: what was computed later has a higher one.
    """

    uid: Uid
    where: Any
    at: Uid


class Return(NamedTuple):
    """The `where` of RETURNED: the line that read the numbers, the line that brought them back.

    Attributes:
        common: It is one short number, such as 2 or 0.5: the likeness may be an accident.
    """

    left: Any
    back: Any
    common: bool

    @classmethod
    def of(cls, departure: Departure, back: Any, given: Any) -> Return:
        """From a read, to a tensor or number with the same numbers."""
        return cls(departure.where, back, np.size(given) == 1 and is_plain(given))


def is_plain(given: Any) -> bool:
    """Whether numbers (the first of many) are short, such as 2 or 0.5: those of a program's text mostly are."""
    if not isinstance(given, np.ndarray):
        return bool(complex(f"{given:.2g}") == given)
    if given.dtype == object:
        return True
    first = [given.item()] if given.size == 1 else given.reshape(-1)[:8].tolist()
    return all(complex(f"{one:.2g}") == one for one in first)


class Departures:
    """What the program has read, by its numbers: a tensor with the same ones probably came from there.

    All threads of a session share it. It holds no arrays: keys are hashes of small ones, and of samples of large ones.

    Attributes:
        numbers: Reads of one element each, by the Python number. Empty until there is one: hot paths look here alone.
        log: All reads, the latest last.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, Departure] = {}
        self._arrays: dict[Any, Departure] = {}
        self.log: deque[Departure] = deque(maxlen=_READS)

    def note(self, uid: Uid, array: np.ndarray[Any, Any], where: Any) -> None:
        """The value `uid` has been read as `array`."""
        if array.dtype == object or array.size == 0:
            return
        read = Departure(uid, where, new_uid())
        self.log.append(read)
        table, key = (self.numbers, array.item()) if array.size == 1 else (self._arrays, fingerprint(array))
        table.pop(key, None)
        table[key] = read
        while len(table) > _READS:
            table.pop(next(iter(table), None), None)

    def find(self, array: np.ndarray[Any, Any]) -> Departure | None:
        """The latest read of just these numbers, in whatever dtype and shape they come back."""
        if array.dtype == object or array.size == 0:
            return None
        if array.size == 1:
            return self.numbers.get(array.item()) if self.numbers else None
        return self._arrays.get(fingerprint(array)) if self._arrays else None


def fingerprint(array: np.ndarray[Any, Any]) -> Any:
    """What tells one array's numbers from another's, whatever its dtype and shape: all of them, or of many a sample."""
    flat = array.reshape(-1)
    if flat.size > _WHOLE:
        flat = flat[:: -(flat.size // 128)]  # from the last on
    kind = array.dtype.kind
    if kind == "V":  # bfloat16, whose direct cast of NaN complains
        flat = flat.astype(np.float32)
    return array.size, hash(flat.astype(np.complex128 if kind == "c" else np.float64).tobytes())


class Witness:
    """The part of a context that remembers what no tape follows, and knows the line that is running.

    Attributes:
        trail: The records.
        departures: What the program has read; one for all contexts of a session.
        locate: Tells the line of the program that is running, where that can be known.
        where: The line of the call that is being run, where the caller has told it.
    """

    def __init__(self, departures: Departures) -> None:
        self.trail: Trail = deque(maxlen=LENGTH)
        self.departures = departures
        self.locate: Callable[[], Any] | None = None
        self.where: Any = None

    def here(self) -> Any:
        """The line of the program that is running, if it is known."""
        return self.where if self.locate is None else self.locate()

    @contextmanager
    def standing(self, where: Any = None) -> Iterator[None]:
        """A block that stands in one line, by default the one that runs now: nobody looks for it in the block again."""
        before, self.where = self.where, self.here() if where is None else where
        try:
            yield
        finally:
            self.where = before

    def assigned(self, variable: Any, value: Uid | None, mode: str) -> None:
        """Leaves a record of an assignment to a Variable that has happened; `value`: what was given, None: a number."""
        event = Event.ASSIGN if mode == "set" else Event.UPDATE
        self.trail.append((event, (value, variable.uid), variable.value.uid, self.here()))

    def arrived(self, value: Any, array: Any) -> None:
        """Leaves a record of a tensor that came from the program, and of the read that gave it the same numbers."""
        if not self.departures.log:
            self.trail.append((Event.PLAIN, (), value.uid, self.here()))
        elif (found := self.departures.find(array)) is not None:
            self.trail.append((Event.RETURNED, (found.uid,), value.uid, Return.of(found, self.here(), array)))
        else:
            self.trail.append((Event.PLAIN if is_plain(array) else Event.PUT, (), value.uid, self.here()))

    def took_numbers(self, inputs: Sequence[Any], output: Uid) -> None:
        """Leaves a record of each Python number among an op's inputs that the program may have from a read."""
        for one in inputs:
            if one.uid is not None:
                continue
            if (found := self.departures.numbers.get(one.array)) is not None:
                self.trail.append((Event.RETURNED, (found.uid,), output, Return.of(found, self.here(), one.array)))
            elif not is_plain(one.array):
                self.trail.append((Event.PUT, (), output, self.here()))

    def answered(self, targets: Sequence[Any], sources: Sequence[Any], found: Sequence[Any]) -> None:
        """Leaves a record of gradients of which nobody here has recorded how they came about."""
        uids, where = tuple([one.uid for one in (*targets, *sources)]), self.here()
        for one in found:
            if one is not None:
                self.trail.append((Event.GRADIENT, uids, one.values.uid if hasattr(one, "indices") else one.uid, where))

    def note(self, event: Event, inputs: Sequence[Uid | None], output: Uid, where: Any = None) -> None:
        """Leaves a record of what no tape follows: `output` came about so, from `inputs`."""
        self.trail.append((event, tuple(inputs), output, self.here() if where is None else where))
