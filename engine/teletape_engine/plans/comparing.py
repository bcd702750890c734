"""Plans compared with the interpreter, as TELETAPE_PLANS=force has it for each new one: a difference is an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape_engine.errors import CancelledError, InternalError
from teletape_engine.plans.ir.buffers import first_difference
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.values import Literal, Variable


def shadows_of(arguments: Sequence[Any], started: Sequence[Any]) -> list[Any]:
    """The arguments of a call, with variables of their own to be assigned to.

    Args:
        arguments: Of the call.
        started: Their values when it began, variables read.
    """
    return [
        _shadow(argument, value) if argument.__class__ is Variable else argument
        for argument, value in zip(arguments, started, strict=True)
    ]


def _shadow(variable: Variable, value: Any) -> Variable:
    shadow = Variable(value, trainable=variable.trainable, name=variable.name, uid=variable.uid)
    shadow.version = variable.version
    return shadow


def outcome(results: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """What is compared: the results, then the values of the variables."""
    return [*results, *[argument.value for argument in arguments if argument.__class__ is Variable]]


def compared(
    plan: Plan, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any], expected: Sequence[Any]
) -> list[Any] | None:
    """The results of a plan, which runs twice in memory with no numbers; None: it fails, as the interpreter may.

    Args:
        plan: The plan.
        recorder: Of the call, or one beside it.
        arguments: Of the call: the variables are assigned to.
        started: Their values when it began, variables read.
        expected: The `outcome` of the interpreter.

    Raises:
        CancelledError: The caller wants it stopped.
        InternalError: The plan gives other bytes, layouts or specs.
    """
    try:
        plan.compute(recorder, started, poisoned=True)
        arrays = plan.compute(recorder, started, poisoned=True)
    except CancelledError:
        raise
    except Exception:  # as where a plan runs: the interpreter says why
        return None
    values, results = plan.values(started, arrays)
    plan.finish(recorder, arguments, started, values)
    pairs = [
        pair
        for pair in zip(outcome(results, arguments), expected, strict=True)
        if not all(value.__class__ is Literal for value in pair)
    ]
    number = first_difference([(result.array, other.array) for result, other in pairs])
    if number is None:
        number = next((at for at, (result, other) in enumerate(pairs) if result.spec is not other.spec), None)
    if number is not None:
        result, other = pairs[number]
        raise InternalError(
            f"a plan gives {result.spec!r} as array {number} that differs from the interpreter's {other.spec!r}: "
            f"{plan.instructions}"
        )
    return results
