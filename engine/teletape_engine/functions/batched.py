"""Functions over rows: run by the batch rules of their ops, as a custom call's gradient is inside a Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from teletape_engine import commands
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import GradientKind, SparseGradient, densify
from teletape_engine.derivatives.batching import Rows
from teletape_engine.derivatives.query import InputCotangents, Stop
from teletape_engine.errors import UnimplementedError
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import CustomTapeCall, FunctionGradient
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Literal, Recorded, Variable

#: From a stop to the function in place of the caller's own, and its inputs after the cotangents; None: there is none.
Replacement: TypeAlias = Callable[[Stop], tuple[FunctionGradient, Sequence[Any]] | None]


def check_vectorizes(function: Function, *, recorded: bool) -> None:
    """Refuses a function that has no form over rows.

    Args:
        function: It.
        recorded: Whether a tape records the ops over rows: it would not see a custom call in the function.

    Raises:
        UnimplementedError: With the step.
    """
    for step in function.steps:
        if step.op is not None:
            if step.op.dynamic or (step.op.batch is None and step.op.expand is None and step.inputs):
                raise UnimplementedError(f"op {step.op.name!r} has no form over rows", op=step.op.name)
        elif isinstance(step.command, commands.CallFunction):
            check_vectorizes(step.functions[0], recorded=recorded)
        elif recorded or not isinstance(step.command, commands.CustomCall):
            raise UnimplementedError(f"a {step.command.verb!r} step has no form over rows")


def over_rows(recorder: Recorder, replacement: Replacement, stop: Stop) -> InputCotangents:
    """Cotangents over rows at a stop, by the function that is the call's gradient, or that replaces it.

    Args:
        recorder: Of the values in the rows.
        replacement: For calls whose gradient is a function of the caller's.
        stop: Its cts are operands of `Rows`, or kinds if the pass only predicts.

    Raises:
        UnimplementedError: There is no replacement.
    """
    gradient, others = _gradient(replacement, stop)
    cts = [ct for ct in stop.cts if ct is not None]
    if any(not isinstance(_dense(ct), Operand) for ct in cts):
        return [GradientKind.DENSE if present else None for present in gradient.has_gradient]
    rows: Rows = _dense(cts[0]).runtime
    check_vectorizes(gradient.function, recorded=rows.recorder is not None)
    arguments = [
        rows.shared(_below(rows, recorder.full(spec, 0))) if ct is None else _dense(ct)
        for ct, spec in zip(stop.cts, stop.results, strict=True)
    ]
    arguments += [rows.shared(_below(rows, value)) for value in _read(recorder, others)]
    shares = iter(_run(gradient.function, rows, recorder, arguments))
    return [next(shares) if present else None for present in gradient.has_gradient]


def over_values(recorder: Recorder, replacement: Replacement, stop: Stop) -> InputCotangents:
    """As `over_rows`, for a pass with one cotangent of each result: its cts are recorded values."""
    gradient, others = _gradient(replacement, stop)
    return gradient.run(recorder, [densify(ct, recorder) for ct in stop.cts], others)


def map_entries(
    recorder: Recorder, function: Function, arguments: Sequence[Any], mapped: Sequence[bool], length: int
) -> list[Recorded] | None:
    """The function's results for each entry along axis 0, stacked, all at once. None: it has no form over rows.

    Args:
        recorder: Where it runs.
        function: Takes an entry of what is mapped, and the others.
        arguments: Recorded values, those that are mapped [length, …]; variables among the others are read.
        mapped: For each argument whether it has entries.
        length: Number of entries.
    """
    try:
        check_vectorizes(function, recorded=True)
    except UnimplementedError:
        return None
    rows = Rows(recorder)
    operands = [
        value
        if isinstance(value, Literal)
        else rows.stack(_below(rows, value))
        if is_mapped
        else rows.shared(_below(rows, value))
        for value, is_mapped in zip(_read(recorder, arguments), mapped, strict=True)
    ]
    return [rows.unstack(result, length).value for result in _run(function, rows, recorder, operands)]


def _gradient(replacement: Replacement, stop: Stop) -> tuple[FunctionGradient, Sequence[Any]]:
    first = stop.residuals[0] if stop.residuals else None
    if isinstance(first, FunctionGradient):
        return first, stop.residuals[1:]
    gradient = replacement(stop) if isinstance(stop.bound, CustomTapeCall) else None
    if gradient is None:
        raise stop.unanswered(replaceable=True)
    return gradient


def _read(recorder: Recorder, values: Sequence[Any]) -> list[Any]:
    return [recorder.read(value) if isinstance(value, Variable) else value for value in values]


def _dense(ct: Any) -> Any:
    """A sparse cotangent of operands as one operand; anything else as it is."""
    return densify(ct) if isinstance(ct, SparseGradient) and isinstance(ct.values, Operand) else ct


def _below(rows: Rows, value: Any) -> Any:
    """A recorded value as the rows' runtime takes it."""
    return value.array if rows.recorder is None else Operand(rows.recorder, value)


def _operands(rows: Rows, recorder: Recorder, op: Op, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of an op as the rows' runtime takes them: numbers as they are if the op takes them so."""
    literals = [operand for operand in inputs if operand.__class__ is Literal]
    if not literals:
        return list(inputs)
    specs = [operand.spec if operand.__class__ is Literal else operand.value.spec for operand in inputs]
    if op.takes_numbers(specs) or not any(literal.spec.untyped for literal in literals):
        return [operand.array if operand.__class__ is Literal else operand for operand in inputs]
    dtypes = op.number_dtypes(specs)
    return [
        rows.shared(_below(rows, recorder.typed(operand, dtypes[i]))) if operand.__class__ is Literal else operand
        for i, operand in enumerate(inputs)
    ]


def _run(function: Function, rows: Rows, recorder: Recorder, arguments: Sequence[Any]) -> list[Any]:
    values = function.registers(recorder, arguments, lambda constant: rows.shared(_below(rows, constant)))
    for number, step in enumerate(function.steps):
        if not number % CANCEL_STEPS:
            recorder.check_cancelled()
        inputs = [values[operand] if operand.__class__ is int else operand for operand in step.inputs]
        if step.op is not None:
            result = rows.call(step.op, _operands(rows, recorder, step.op, inputs), step.attrs)
            results = [*result] if result.__class__ is tuple else [result]
        else:
            if isinstance(step.command, commands.CustomCall):  # no tape records: the results are as they were computed
                count = len(step.command.has_gradient)
                results = inputs[count : count + step.command.results]
            else:
                results = _run(step.functions[0], rows, recorder, inputs)
        for register, result in zip(step.outputs, results, strict=True):
            values[register] = result
    results = [values[register] for register in function.results]
    return [
        rows.shared(_below(rows, recorder.as_value(result))) if isinstance(result, Literal) else result
        for result in results
    ]
