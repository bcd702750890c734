"""What commands do with values, on a recorder: handlers call it with values looked up by ids, an SDK with its own.

Each function computes, and notes in the recorder's provenance log what an explanation will need. None knows an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from teletape_engine.arrays import HostArray
from teletape_engine.checking.tape_check import check_tape
from teletape_engine.commands import CallFunction, Command
from teletape_engine.derivatives.finite_differences import Settings
from teletape_engine.derivatives.query import Declarations
from teletape_engine.derivatives.reports.check_report import Report
from teletape_engine.functions.function import RUNNERS, Function
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Footprint, footprint
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Recorded, Value, Variable, new_uid, typed_array


def constant(recorder: Executor, array: HostArray) -> Value:
    """A tensor of the caller's numbers. The caller gives the array up and must not write into it."""
    value = recorder.constant(array)
    recorder.provenance.note_constant(value, array)
    return value


def number(recorder: Executor, literal: Literal) -> Value:
    """A tensor of the caller's number or untyped list, of its default dtype."""
    if literal.spec.shape:
        return constant(recorder, typed_array(literal, literal.spec.alone))
    value: Value = recorder.as_value(literal)
    recorder.provenance.note_numbers((literal,), value.uid)
    return value


def variable(recorder: Recorder, value: Recorded, *, trainable: bool, name: str) -> Variable:
    """A new variable that holds `value`."""
    created = Variable(value.alias(new_uid()), trainable=trainable, name=name)
    recorder.provenance.note_assignment(created, value.uid, "set")
    return created


def fetch(recorder: Executor, value: Value, where: Any) -> HostArray:
    """The value's elements on the host; the engine still owns the array. The read is noted, with its call site."""
    array: HostArray = recorder.backend.get(value.array)
    recorder.provenance.value_reads.note(value.uid, array, where)
    return array


def run_functions(
    recorder: Recorder, command: Command, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """Runs a command that takes functions; a result that is a number or a variable becomes a value.

    Args:
        recorder: Any recorder.
        command: The command; its ids are not looked at.
        functions: Its functions, in the order of its fields.
        inputs: Recorded values, Literals, and variables: those are read by the steps that name them.
    """
    return [recorder.as_value(result) for result in RUNNERS[type(command)](recorder, command, functions, inputs)]


def call_function(recorder: Recorder, function: Function, inputs: Sequence[Any]) -> list[Recorded]:
    """As `run_functions` with a `CallFunction` command: the results of a function, each a value."""
    if recorder.recorded:
        return run_functions(recorder, _CALL, (function,), inputs)
    results = function.run(recorder, inputs)
    for result in results:
        if result.__class__ is not Value:
            return [recorder.as_value(result) for result in results]
    return results


_CALL: Final = CallFunction("", (), ())


def tape_footprint(recorder: Executor, tape: Tape, also_released: Iterable[int] = ()) -> Footprint:
    """The bytes that the tape keeps, and those that its end would free; see `recording.memory.footprint`."""
    return footprint(tape, recorder.backend.base, also_released)


def check_derivatives(
    recorder: Executor,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    settings: Settings,
    declarations: Declarations,
) -> Report:
    """Checks what a replayable tape answers, in a context of its own; see `checking.tape_check.check_tape`."""
    return check_tape(recorder.aside(), tape, targets, sources, settings, declarations)
