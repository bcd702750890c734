"""Counts the Python objects that a session keeps besides its arrays' elements, in bytes of `object_bytes`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from operator import is_
from sys import getsizeof
from typing import Any, Final

from teletape_engine import object_bytes
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts, Kinds, Result
from teletape_engine.functions.function import Function
from teletape_engine.recording.provenance import (
    CallRecords,
    Event,
    LoopRecords,
    PlannedCall,
    PlannedLoop,
    Record,
    Records,
)
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Variable
from teletape_engine.session.entries import Entry, Poison

FEW: Final = 4  #: Inputs of a call that `NODE` and `RECORD` include.
RULE: Final = 800  #: A rule of a call with more tracked inputs.


def object_count(
    *,
    entries: Mapping[Id, Any],
    tapes: Sequence[Tape],
    contexts: int,
    records: int,
    answers: Iterable[Sequence[Result]],
    texts: Iterable[Any],
    buffers: int,
    remembered: int = 0,
) -> int:
    """Bytes of a session's objects, as far as they are more than what every session has free.

    Args:
        entries: What ids name.
        tapes: Every tape that is kept, once.
        contexts: The number of contexts.
        records: Bytes of the records of provenance logs; see `LogCounts`.
        answers: The results that are kept for each client.
        texts: Further texts that are kept.
        buffers: The number of arrays that are kept.
        remembered: Bytes of what is remembered of batches.
    """
    total = remembered + records + buffers * object_bytes.ARRAY + contexts * object_bytes.CONTEXT
    total += _texts(entries) + len(entries) * object_bytes.NAMED
    total += sum([_entry(entry) for entry in entries.values() if isinstance(entry, Variable | Poison | Entry)])
    total += sum(map(_function, every_function(entries)))
    total += sum([object_bytes.CLIENT + sum(map(_result, results)) for results in answers])
    call_sites: dict[int, Any] = {id(text): text for text in texts}  # each once: it is in several places
    total += sum([_tape(tape, call_sites) for tape in tapes])
    total += _texts(call_sites.values())
    return max(0, total - object_bytes.FREE)


def every_log(tapes: Sequence[Tape], logs: Sequence[Records]) -> list[Records]:
    """The logs, and those that only tapes keep, each once."""
    seen = set(map(id, logs))
    return [*logs, *{id(log): log for tape in tapes for log in tape.logs if id(log) not in seen}.values()]


class LogCount:
    """The bytes of one log's records. Each record is looked at once, however often they are counted.

    Args:
        log: The log, to which records are added at its end; at its beginning they may go.

    Attributes:
        log: The log.
        last: Its last record when it was counted.
        nbytes: The bytes of its records then.
    """

    def __init__(self, log: Records) -> None:
        self.log = log
        self.last: Record | None = None
        self.nbytes = 0
        self._counted: deque[tuple[int, Any]] = deque()  # for each record its bytes, and what it shares with others
        self._shared: dict[int, int] = {}  # how many of them share it, by identity

    def update(self) -> None:
        """Counts the records that are new, and no longer those that are gone."""
        last, log = self.last, self.log
        latest = list(takewhile(lambda record: record is not last, reversed(log)))
        if len(latest) == len(log):  # all that was counted is gone
            self._counted.clear()
            self._shared.clear()
            self.nbytes = 0
        usual, few = object_bytes.RECORD, FEW
        counted = self._counted
        for record in reversed(latest):
            what, inputs, _, where = record
            if where is None and what.__class__ is Event and len(inputs) <= few:
                counted.append(_USUAL)
                self.nbytes += usual
            else:
                self._add(record)
        for _ in range(len(counted) - len(log)):
            own, shared = counted.popleft()
            self.nbytes -= own
            if shared is not None:
                self._remove(shared)
        self.last = log[-1] if log else None

    def _add(self, record: Record) -> None:
        what, inputs, _, where = record
        shared = what.template if isinstance(what, PlannedCall | PlannedLoop) else where
        own = object_bytes.RECORD + _many(inputs)
        self._counted.append(_USUAL if shared is None and own == object_bytes.RECORD else (own, shared))
        self.nbytes += own
        if shared is not None:
            count = self._shared[id(shared)] = self._shared.get(id(shared), 0) + 1
            self.nbytes += _shared_bytes(shared) if count == 1 else 0

    def _remove(self, shared: Any) -> None:
        count = self._shared[id(shared)] = self._shared[id(shared)] - 1
        if not count:
            del self._shared[id(shared)]
            self.nbytes -= _shared_bytes(shared)


_USUAL: Final = (object_bytes.RECORD, None)  #: Of most records, as one object.


def _shared_bytes(shared: Any) -> int:
    """Bytes of what several records may have in common: a call site, or the template of planned calls."""
    if isinstance(shared, CallRecords | LoopRecords):
        return object_bytes.RECORD * len(shared.records)
    return _texts((shared,))


class LogCounts:
    """The bytes of the records of a session's provenance logs, and of their indices."""

    def __init__(self) -> None:
        self._counts: list[LogCount] = []

    def total(self, logs: Sequence[Records]) -> int:
        """The bytes of these logs' records; only records that are new since the last call are looked at."""
        if len(self._counts) != len(logs) or not all(map(is_, [count.log for count in self._counts], logs)):
            known = {id(count.log): count for count in self._counts}
            self._counts = [known.get(id(log)) or LogCount(log) for log in logs]
        for count in self._counts:
            if (count.log[-1] if count.log else None) is not count.last:
                count.update()
        indexed: int = sum([count.log.index.count for count in self._counts if count.log.index is not None])
        return sum([count.nbytes for count in self._counts]) + indexed * object_bytes.INDEXED


def _texts(names: Iterable[Any]) -> int:
    return sum([getsizeof(name) for name in names if name.__class__ is str])


def _entry(entry: Variable | Poison | Entry) -> int:
    if isinstance(entry, Variable):
        return object_bytes.VARIABLE + getsizeof(entry.name)
    if isinstance(entry, Poison):
        return getsizeof(entry.cause)
    return object_bytes.TAPE + object_bytes.WATCHED * entry.followed()


def _tape(tape: Tape, texts: dict[int, Any]) -> int:
    total = len(tape.turns) * object_bytes.TURN + (len(tape.leaves) + len(tape.declined)) * object_bytes.WATCHED
    total += tape.length * (object_bytes.CONSUMED_NODE if tape.consumed else object_bytes.NODE)
    return total + _calls(((plan, inputs, where) for plan, inputs, _, _, where in tape.structure()), texts)


def _calls(calls: Iterable[tuple[Any, tuple[Any, ...], Any]], texts: dict[int, Any]) -> int:
    """What calls take beyond their fixed part: many inputs, the rules of these, large attributes, call sites."""
    total = 0
    plans: dict[int, int] = {}
    for plan, inputs, where in calls:
        if where is not None:
            texts[id(where)] = where
        total += _many(inputs)
        if plan is not None:
            if len(plan.rules) > FEW:
                plans[id(plan)] = RULE * len(plan.rules)
            if plan.bound.attrs.nbytes:
                plans[id(plan.bound.attrs)] = plan.bound.attrs.nbytes
    return total + sum(plans.values())


def _many(inputs: tuple[Any, ...]) -> int:
    """Bytes of a call's inputs beyond those that a node and a record include."""
    return getsizeof(inputs) + 32 * len(inputs) if len(inputs) > FEW else 0


def every_function(entries: Mapping[Id, Any]) -> list[Function]:
    """The functions among what ids name, and those that only these keep, each once."""
    seen = {id(entry): entry for entry in entries.values() if entry.__class__ is Function}
    todo = list(seen.values())
    for function in todo:  # which grows
        for step in function.steps:
            for inner in step.functions:
                if id(inner) not in seen:
                    seen[id(inner)] = inner
                    todo.append(inner)
    return todo


def _function(function: Function) -> int:
    total = object_bytes.FUNCTION + len(function.steps) * object_bytes.STEP + _texts(function.inputs)
    for step in function.steps:
        total += getsizeof(step.inputs) + step.attrs.nbytes + _texts((getattr(step.command, "where", None),))
        total += _texts(getattr(step.command, "outputs", ()))
    return total + function.remembered_bytes


def _result(result: Result) -> int:
    if isinstance(result, Facts):
        return object_bytes.RESULT + _nested(result.facts)
    return object_bytes.RESULT + (getsizeof(result.kinds) + _nested(result.why) if isinstance(result, Kinds) else 0)


def _nested(value: Any) -> int:
    if isinstance(value, dict):
        return getsizeof(value) + sum([_nested(each) for pair in value.items() for each in pair])
    if isinstance(value, list | tuple):
        return getsizeof(value) + sum([_nested(each) for each in value])
    return getsizeof(value)
