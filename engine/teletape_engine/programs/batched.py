"""Programs over rows: run by the batch rules of their ops, as a custom call's gradient is inside a Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from teletape_engine import commands
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import GradientKind, densify
from teletape_engine.derivatives.batching import Rows
from teletape_engine.derivatives.query import InputCotangents, Stop
from teletape_engine.errors import UnimplementedError
from teletape_engine.programs.program import Program
from teletape_engine.recording.custom import Custom, ProgramGradient
from teletape_engine.recording.values import Literal, Variable

#: From a stop to the program that stands in for the caller's function there, and what else it takes; None: none does.
StandIn: TypeAlias = Callable[[Stop], tuple[ProgramGradient, Sequence[Any]] | None]


def check_vectorizes(program: Program) -> None:
    """Refuses a program that has no form over rows.

    Raises:
        UnimplementedError: Which step it is.
    """
    for step in program.steps:
        if step.op is not None:
            if step.op.dynamic or (step.op.batch is None and step.op.expand is None and step.inputs):
                raise UnimplementedError(f"op {step.op.name!r} has no form over rows", op=step.op.name)
        elif isinstance(step.command, commands.CallFunction):
            check_vectorizes(step.programs[0])
        else:
            raise UnimplementedError(f"a {step.command.verb!r} step has no form over rows")


def over_rows(recorder: Any, stand_in: StandIn, stop: Stop) -> InputCotangents:
    """Cotangents over rows where a pass stops: of the program that made the call's gradient, or stands in for it.

    Args:
        recorder: Whose values the rows are made of.
        stand_in: Where the gradient is a function of the caller's.
        stop: Its cts are operands of `Rows`, or kinds where a pass only predicts.

    Raises:
        UnimplementedError: Nothing stands in.
    """
    gradient, others = _program(stand_in, stop)
    cts = [ct for ct in stop.cts if ct is not None]
    if any(isinstance(ct, GradientKind) or not isinstance(densified(ct), Operand) for ct in cts):
        return [GradientKind.DENSE if has_gradient else None for has_gradient in gradient.has_gradient]
    rows: Rows = densified(cts[0]).runtime
    received = [
        rows.shared(_below(rows, recorder.full(spec, 0))) if ct is None else densified(ct)
        for ct, spec in zip(stop.cts, stop.results, strict=True)
    ]
    read = [recorder.read(one) if isinstance(one, Variable) else one for one in others]
    given = _run(gradient.program, rows, recorder, [*received, *[rows.shared(_below(rows, one)) for one in read]])
    made = iter(given)
    return [next(made) if has_gradient else None for has_gradient in gradient.has_gradient]


def over_values(recorder: Any, stand_in: StandIn, stop: Stop) -> InputCotangents:
    """The same where the pass has one cotangent of each result; its cts are recorded values."""
    gradient, others = _program(stand_in, stop)
    cts = [densify(ct, recorder) for ct in stop.cts]
    return gradient.run(recorder, cts, others)


def mapped(
    recorder: Any, program: Program, elements: Sequence[Any], others: Sequence[Any], length: int
) -> list[Any] | None:
    """The program's results for each element along axis 0, stacked: all at once. None: it has no form over rows.

    Args:
        recorder: Where it runs.
        program: Takes an element of each array, and the others.
        elements: Recorded values [length, …].
        others: The same for every element; variables among them are read.
        length: How many elements there are.
    """
    try:
        check_vectorizes(program)
    except UnimplementedError:
        return None
    rows = Rows(recorder)
    read = [recorder.read(one) if isinstance(one, Variable) else one for one in others]
    shared = [one if isinstance(one, Literal) else rows.shared(_below(rows, one)) for one in read]
    made = _run(program, rows, recorder, [*[rows.stack(_below(rows, one)) for one in elements], *shared])
    return [rows.unstack(one, length).value for one in made]


def _program(stand_in: StandIn, stop: Stop) -> tuple[ProgramGradient, Sequence[Any]]:
    first = stop.residuals[0] if stop.residuals else None
    if isinstance(first, ProgramGradient):
        return first, stop.residuals[1:]
    found = stand_in(stop) if isinstance(stop.bound, Custom) else None
    if found is None:
        raise UnimplementedError(
            f"the target comes from a call ({stop.label}) whose gradient is a function of its caller's: this "
            "question needs a custom.function for it; or ask for gradients, with backward.begin, .to, .give and .end"
        )
    return found


def densified(ct: Any) -> Any:
    """Slices of operands as one operand."""
    return ct if isinstance(ct, GradientKind) or not isinstance(getattr(ct, "values", None), Operand) else densify(ct)


def _below(rows: Rows, value: Any) -> Any:
    """A recorded value as what rows are made of."""
    return value.array if rows.recorder is None else Operand(rows.recorder, value)


def _run(program: Program, rows: Rows, recorder: Any, arguments: Sequence[Any]) -> list[Any]:
    values = program.placed(recorder, arguments, lambda one: rows.shared(_below(rows, one)))
    for step in program.steps:
        given = [values[one] if one.__class__ is int else one for one in step.inputs]
        if step.op is not None:
            taken = [one.array if isinstance(one, Literal) else one for one in given]
            made = rows.call(step.op, taken, step.attrs)
            values[step.outputs[0]] = made
        else:
            for place, one in zip(step.outputs, _run(step.programs[0], rows, recorder, given), strict=True):
                values[place] = one
    return [
        rows.shared(_below(rows, recorder.constant(one.array))) if isinstance(one, Literal) else one
        for one in program.results(values)
    ]
