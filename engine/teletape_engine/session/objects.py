"""Counts the Python objects that a session keeps besides its arrays' elements, in bytes of `object_bytes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sys import getsizeof
from typing import Any, Final

from teletape_engine import object_bytes
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts, Kinds, Result
from teletape_engine.functions.function import Function
from teletape_engine.recording.provenance import PlannedCall, PlannedLoop, Records
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Variable
from teletape_engine.session.entries import Entry, Poison

FEW: Final = 4  #: Inputs of a call that `NODE` and `RECORD` include.
RULE: Final = 800  #: A rule of a call with more tracked inputs.


def object_count(
    *,
    entries: Mapping[Id, Any],
    tapes: Sequence[Tape],
    logs: Sequence[Records],
    answers: Iterable[Sequence[Result]],
    texts: Iterable[Any],
    buffers: int,
    remembered: int = 0,
) -> int:
    """Bytes of a session's objects, as far as they are more than what every session has free.

    Args:
        entries: What ids name.
        tapes: Every tape that is kept, once.
        logs: The provenance log of each context.
        answers: The results that are kept for each client.
        texts: Further texts that are kept.
        buffers: The number of arrays that are kept.
        remembered: Bytes of what is remembered of batches.
    """
    total = remembered + buffers * object_bytes.ARRAY + len(logs) * object_bytes.CONTEXT
    total += _texts(entries) + len(entries) * object_bytes.NAMED
    total += sum([_entry(entry) for entry in entries.values() if isinstance(entry, Variable | Poison | Entry)])
    total += sum(map(_function, every_function(entries)))
    total += sum([object_bytes.CLIENT + sum(map(_result, results)) for results in answers])
    call_sites: dict[int, Any] = {id(text): text for text in texts}  # each once: it is in several places
    total += sum([_tape(tape, call_sites) for tape in tapes])
    total += sum([_log(log, call_sites) for log in every_log(tapes, logs)])
    total += _texts(call_sites.values())
    return max(0, total - object_bytes.FREE)


def every_log(tapes: Sequence[Tape], logs: Sequence[Records]) -> list[Records]:
    """The logs, and those that only tapes keep, each once."""
    return list({id(log): log for log in (*logs, *[log for tape in tapes for log in tape.logs])}.values())


def log_bytes(logs: Iterable[Records]) -> int:
    """Bytes of the records of these logs, as they are counted."""
    call_sites: dict[int, Any] = {}
    return sum([_log(log, call_sites) for log in logs]) + _texts(call_sites.values())


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


def _log(log: Records, texts: dict[int, Any]) -> int:
    templates = {id(what.template): what.template for what, *_ in log if isinstance(what, PlannedCall | PlannedLoop)}
    total = object_bytes.RECORD * sum([len(template.records) for template in templates.values()], len(log))
    return total + _calls(((None, inputs, where) for _, inputs, _, where in log), texts)


def _calls(calls: Iterable[tuple[Any, tuple[Any, ...], Any]], texts: dict[int, Any]) -> int:
    """What calls take beyond their fixed part: many inputs, the rules of these, large attributes, call sites."""
    total = 0
    plans: dict[int, int] = {}
    for plan, inputs, where in calls:
        if where is not None:
            texts[id(where)] = where
        if len(inputs) > FEW:
            total += getsizeof(inputs) + 32 * len(inputs)
        if plan is not None:
            if len(plan.rules) > FEW:
                plans[id(plan)] = RULE * len(plan.rules)
            if plan.bound.attrs.nbytes:
                plans[id(plan.bound.attrs)] = plan.bound.attrs.nbytes
    return total + sum(plans.values())


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
