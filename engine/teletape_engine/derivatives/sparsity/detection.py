"""The pattern of a target's Jacobian: the index sets of a source, carried through the calls that a tape recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from teletape_engine.catalogue.binding import Bound, CallPlan, Select
from teletape_engine.derivatives.sparsity.pattern import Pattern
from teletape_engine.derivatives.sparsity.reach import everything, through
from teletape_engine.derivatives.walks import ancestors
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid


def jacobian_pattern(
    tape: Tape,
    target: Uid,
    source: Uid,
    width: int,
    *,
    on_host: Callable[[Any], Any],
    check_cancelled: Callable[[], None],
) -> Pattern | None:
    """On which elements of a source each element of a target may depend, whatever values they have.

    Args:
        tape: What was recorded.
        target: Of a value.
        source: Of a value or variable.
        width: How many elements the source has.
        on_host: An array of the tape's as NumPy's.
        check_cancelled: Called before each call on the way; what it raises ends the walk.

    Returns:
        A row for each element of the target; None: it does not depend on the source.

    Raises:
        ResourceExhaustedError: A value on the way has too many entries.
    """
    path, last_use = _path(tape, target, source)
    patterns: dict[Uid | None, Pattern] = {source: Pattern.identity(width)}
    for position, (plan, inputs, output, residuals, _) in enumerate(path):
        check_cancelled()
        reached = {i: patterns[uid] for i, uid in enumerate(inputs) if uid in patterns and _has_derivative(plan, i)}
        if reached:
            patterns[output] = _passed(plan, reached, residuals, on_host)
        for uid in inputs:
            if last_use.get(uid) == position and uid not in (target, source):
                patterns.pop(uid, None)
    return patterns.get(target)


def _path(tape: Tape, target: Uid, source: Uid) -> tuple[list[NodeTuple], dict[Uid | None, int]]:
    """The calls that lie between the source and the target, and for each value the last of them that takes it."""
    leading = ancestors(tape.nodes, [target])
    reached: set[Uid | None] = {source}
    path: list[NodeTuple] = []
    last_use: dict[Uid | None, int] = {}
    for node in tape.nodes:
        _, inputs, output, _, _ = node
        if output in leading and not reached.isdisjoint(inputs):
            reached.add(output)
            last_use.update(dict.fromkeys(inputs, len(path)))
            path.append(node)
    return path, last_use


def _has_derivative(plan: CallPlan, i: int) -> bool:
    return not isinstance(plan.bound, Bound) or any(i == tracked for tracked, _ in plan.rules)


def _passed(
    plan: CallPlan, patterns: dict[int, Pattern], residuals: tuple[Any, ...], on_host: Callable[[Any], Any]
) -> Pattern:
    """The pattern of a call's result, from those of its inputs."""
    bound = plan.bound
    if isinstance(bound, Bound):
        width = next(iter(patterns.values())).width
        patterns = {i: pattern for i, pattern in patterns.items() if not bound.zero_derivative(i)}
        if not patterns:
            return Pattern.empty(width, 1 if bound.selects else bound.spec.size)
        return through(plan, patterns, _residual(plan, residuals, on_host))
    if isinstance(bound, Select):
        (pattern,) = patterns.values()
        return pattern.take(np.repeat(np.arange(pattern.rows, dtype=np.int32), bound.spec.size // max(pattern.rows, 1)))
    # Nothing is known of the caller's function. Between it and its outputs, if it has several, lies one set for all.
    return everything(patterns, 1 if len(bound.outputs) > 1 else bound.spec.size)


def _residual(plan: CallPlan, residuals: tuple[Any, ...], on_host: Callable[[Any], Any]) -> Callable[[int], Any]:
    """A function from a position among a call's inputs and its result to the array that the tape has kept."""
    slots = {position: slot for slot, position in enumerate(plan.picks)}

    def residual(position: int) -> Any:
        return on_host(residuals[slots[position]].array) if position in slots and residuals else None

    return residual
