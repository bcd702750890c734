"""Control flow over functions: while, cond, scan. Their steps are recorded one iteration after the other.

If nothing can be decided (`Mode.decides` is false: specs are followed, no values), results of the right specs are
recorded, connected to everything that they could depend on, whatever runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.batched import map_entries
from teletape_engine.functions.function import Function, runs
from teletape_engine.generators import driven
from teletape_engine.plans.iterations import Iterations, Part
from teletape_engine.plans.run.loops.form import LoopForm
from teletape_engine.recording.provenance import Event
from teletape_engine.recording.recorder import Mode, Recorder
from teletape_engine.recording.values import Literal, Recorded, Variable
from teletape_engine.spec import BOOL, DTYPES, INTEGER, Spec, Weak

_CONNECTED: Final = 16  #: Iterations, at the most, in which it is found what depends on what.
_DIRECT: Final = 4  #: Up to this length elements are cut one by one, else by halves.
_COUNT: Final = Spec.of((), DTYPES["int64"])  #: Of the number of iterations.

T = TypeVar("T")


@runs(commands.While)
def run_while(
    recorder: Recorder, command: commands.While, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The loop's values once its condition is false, and the number of iterations if there is an output for it.

    Raises:
        InvalidArgumentError: A condition that is no scalar bool or integer; a body that changes a spec.
        CancelledError, ResourceExhaustedError: See `Monitor.iteration`.
    """
    cond, body = functions
    values, captured = _split(recorder, command.captured, inputs)
    carried = len(values)
    counted = len(command.outputs) == carried + 1
    if not recorder.mode.decides:
        condition = cond.run(recorder, [*values, *captured], tie=False)
        _check_selector(condition, "the condition of a while loop")
        with recorder.uncertain():
            last, _ = _connected(recorder, body, values, [], captured, counted=None)
        taken = [each for each in map(recorder.as_value, (*values, *captured)) if each.spec.differentiable]
        last = [_tied(recorder, [value, *taken]) if value.spec.differentiable else value for value in last]
        return [*last, recorder.full(_COUNT, 0)] if counted else last
    loop = Iterations(recorder, body, cond, LoopForm(carried), captured, most=command.maximum_iterations)

    def run(part: Part) -> list[Any]:
        steps, arguments, is_condition = part
        if is_condition:
            condition = cond.run(steps, arguments, tie=False)
            _check_selector(condition, "the condition of a while loop")
            return condition
        results = _results(steps, body, arguments)
        _check_values(results, carried)
        _check_alike(arguments[:carried], results, "the body's result", "loop value")
        return results

    values, iterations, _ = driven(loop.run(values), run)
    if not iterations:
        _note_unused(recorder, Event.NO_ITERATION, captured, values)
    return [*values, recorder.number(Literal(iterations), _COUNT.dtype)] if counted else values


@runs(commands.Cond)
def run_cond(
    recorder: Recorder, command: commands.Cond, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The results of the branch that the first input chooses.

    Raises:
        InvalidArgumentError: It is no scalar bool or integer; no branches; branches whose results differ in spec.
    """
    if not functions or not inputs:
        raise InvalidArgumentError("cond takes one branch or more, and an input that chooses among them")
    first, *operands = inputs
    selector = recorder.read(first) if isinstance(first, Variable) else first
    _check_selector([selector], "what chooses a branch")
    if not recorder.mode.decides:
        with recorder.uncertain():
            branches = [_results(recorder, branch, operands) for branch in functions]
        for number, results in enumerate(branches[1:], 1):
            _check_alike(branches[0], results, f"branch {number}", "branch 0")
        return [_tied(recorder, column) for column in zip(*branches, strict=True)]
    chosen = recorder.decide(selector)
    if _is_bool(selector.spec):
        chosen = 0 if chosen else 1
    if not 0 <= chosen < len(functions):
        chosen = len(functions) - 1
    results = _results(recorder, functions[chosen], operands)
    _note_unused(recorder, Event.UNTAKEN, operands, results)
    return results


@runs(commands.Scan)
def run_scan(
    recorder: Recorder, command: commands.Scan, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The carried values after the last element, and the body's other results, stacked.

    Raises:
        InvalidArgumentError: Elements of different lengths, or none and no length; a body that changes what it carries.
        CancelledError, ResourceExhaustedError: See `Monitor.iteration`.
    """
    (body,) = functions
    if command.carried + command.captured > len(inputs):
        raise InvalidArgumentError(
            f"scan: {command.carried} carried and {command.captured} captured of {len(inputs)} inputs"
        )
    values, captured = _split(recorder, command.captured, inputs)
    carry, elements = values[: command.carried], values[command.carried :]
    length = _length([value.spec for value in elements], command.length)
    if command.vectorize and not carry and elements and length:
        flags = [*[True] * len(elements), *[False] * len(captured)]
        mapped = map_entries(recorder, body, [*elements, *captured], flags, length)
        if mapped is not None:
            return mapped
    if recorder.mode is Mode.CONNECTS or (recorder.mode.predicts and not recorder.recorded):
        last, stacks = _connected(recorder, body, carry, elements, captured, counted=length)
        return [*last, *stacks]
    recorder.expect(length)
    carried, form = command.carried, LoopForm(command.carried, len(elements), command.reverse)
    loop = Iterations(recorder, body, None, form, captured, elements, length)

    def run(part: Part) -> list[Any]:
        steps, arguments, _ = part
        results = _results(steps, body, arguments)
        _check_count(results, carried)
        _check_alike(arguments[:carried], results[:carried], "the body's result", "carried value")
        return results

    carry, _, others = driven(loop.run(carry, [_Elements(recorder, value, length) for value in elements]), run)
    if loop.stacks is not None:
        return [*carry, *loop.stacked(others, inputs)]
    if not length:
        _, stacks = _connected(recorder, body, carry, elements, captured, counted=0)
        return [*carry, *[recorder.full(stack.spec, 0) for stack in stacks]]
    rows = [results for _, results in others]
    columns = zip(*(rows[::-1] if command.reverse else rows), strict=True)
    return [*carry, *[_stacked(recorder, column) for column in columns]]


@runs(commands.Map)
def run_map(
    recorder: Recorder, command: commands.Map, functions: Sequence[Function], inputs: Sequence[Any]
) -> list[Recorded]:
    """The function's results for each entry, stacked, with the edges of a call.

    Raises:
        InvalidArgumentError: No input is mapped; different numbers of entries, or none; a function that assigns.
        CancelledError, ResourceExhaustedError: See `Monitor.iteration`.
    """
    (function,) = functions
    if len(command.mapped) != len(inputs) or not any(command.mapped) or function.assigns:
        raise InvalidArgumentError(
            f"map: for each of {len(inputs)} inputs says whether it is mapped, and one is at least; found "
            f"{list(command.mapped)}; the function assigns to {len(function.assigns)} inputs, and may assign to none"
        )
    arguments = [
        recorder.as_value(value) if mapped else value for value, mapped in zip(inputs, command.mapped, strict=True)
    ]
    length = _length([value.spec for value, mapped in zip(arguments, command.mapped, strict=True) if mapped], None)
    if not length:
        raise InvalidArgumentError("map: there is no entry")
    results = map_entries(recorder, function, arguments, command.mapped, length)
    if results is None:
        recorder.expect(length)
        rows = [
            _Elements(recorder, value, length) if mapped else [value] * length
            for value, mapped in zip(arguments, command.mapped, strict=True)
        ]
        entries = []
        for at in range(length):
            recorder.iteration(at, length)
            entries.append(_results(recorder, function, [row[at] for row in rows]))
        results = [_stacked(recorder, column) for column in zip(*entries, strict=True)]
    if not recorder.recorded:
        return results
    specs = [
        value.spec.with_shape(value.spec.shape[1:]) if mapped else value.spec
        for value, mapped in zip(arguments, command.mapped, strict=True)
    ]
    return function.with_edges(recorder, arguments, specs, results)


def _note_unused(recorder: Recorder, event: Event, inputs: Sequence[Any], results: Sequence[Recorded]) -> None:
    """Notes in the provenance log that `results` are there without the part of a flow that would use `inputs`."""
    uids = [value.uid for value in inputs]
    for result in results:
        recorder.provenance.note(event, uids, result.uid)


# ---------------------------------------------------------------------------------------------------------- connections
def _connected(
    recorder: Recorder,
    body: Function,
    values: Sequence[Recorded],
    elements: Sequence[Recorded],
    captured: Sequence[Any],
    *,
    counted: int | None,
) -> tuple[list[Recorded], list[Recorded]]:
    """The results of a loop, whatever its iterations: the carried values, and the others stacked `counted` times.

    Each is connected to everything that it depends on in any iteration: no path is longer than there are values.
    """
    rows = [_any_row(recorder, value) for value in elements]
    seen: list[list[Recorded]] = [list(values)]
    others: list[Recorded] = []
    for _ in range(min(len(values), _CONNECTED) + 1):
        results = _results(recorder, body, [*seen[-1], *rows, *captured])
        if counted is None:
            _check_values(results, len(values))
        else:
            _check_count(results, len(values))
        _check_alike(values, results[: len(values)], "the body's result", "loop value")
        seen.append(results[: len(values)])
        others = results[len(values) :]
    last = [_tied(recorder, column[::-1]) for column in zip(*seen, strict=True)]
    return last, [_spread(recorder, value, counted or 0) for value in others]


def _any_row(recorder: Recorder, elements: Recorded) -> Recorded:
    """A value of the spec of one element, connected to all of them."""
    shape = elements.spec.shape
    if shape[0]:
        return recorder.op(ops.strided_slice, elements, index=(0,))
    return recorder.full(Spec.of(shape[1:], elements.spec.dtype), 0)


def _spread(recorder: Recorder, value: Recorded, length: int) -> Recorded:
    if not length:
        return recorder.full(Spec.of((0, *value.spec.shape), value.spec.dtype), 0)
    return recorder.op(ops.broadcast_to, value, shape=(length, *value.spec.shape))


def _tied(recorder: Recorder, column: Sequence[Recorded]) -> Recorded:
    """The first value, connected to the others."""
    others = [value for value in dict.fromkeys(column) if value is not column[0]]
    return recorder.op(ops.zeros_edge, column[0], *others) if others else column[0]


# -------------------------------------------------------------------------------------------------------------- values
def cut_by_halves(value: T, length: int, cut: Callable[[T, Any], T]) -> list[T]:
    """The elements of a value along axis 0, cut by halves.

    The gradient of all of them together then takes time n log n, where one by one it would be n squared.

    Args:
        value: Of `length` along axis 0.
        length: At least 1.
        cut: From a value and one entry of an index to a part of it.
    """
    if length <= _DIRECT:
        return [cut(value, at) for at in range(length)]
    half = length // 2
    first, second = cut(value, (None, half, None)), cut(value, (half, None, None))
    return cut_by_halves(first, half, cut) + cut_by_halves(second, length - half, cut)


class _Elements:
    """The elements along axis 0 of a value; those of a recorded one are cut by halves."""

    def __init__(self, recorder: Recorder, value: Recorded, length: int) -> None:
        self._recorder, self._value = recorder, value
        self._parts = cut_by_halves(value, length, self._cut) if recorder.recorded and length > _DIRECT else None

    def __getitem__(self, at: int) -> Recorded:
        return self._cut(self._value, at) if self._parts is None else self._parts[at]

    def _cut(self, value: Recorded, at: Any) -> Recorded:
        return self._recorder.op(ops.strided_slice, value, index=(at,))


def _stacked(recorder: Recorder, column: Sequence[Recorded]) -> Recorded:
    for value in column[1:]:
        if value.spec is not column[0].spec:
            raise InvalidArgumentError(
                f"the body returns {column[0].spec!r} in one iteration and {value.spec!r} in another"
            )
    return recorder.op(ops.stack, *column)


def _split(recorder: Recorder, captured: int, inputs: Sequence[Any]) -> tuple[list[Recorded], list[Any]]:
    """The loop's values, variables among them read, and the captured inputs as they are."""
    if captured > len(inputs):
        raise InvalidArgumentError(f"{captured} inputs are captured, found {len(inputs)} in all")
    at = len(inputs) - captured
    return [recorder.as_value(operand) for operand in inputs[:at]], list(inputs[at:])


def _results(recorder: Recorder, function: Function, arguments: Sequence[Any]) -> list[Recorded]:
    """The results of a part of the flow as recorded values."""
    return [recorder.as_value(result) for result in function.run(recorder, arguments, tie=False)]


# -------------------------------------------------------------------------------------------------------------- checks
def _check_selector(results: Sequence[Any], what: str) -> None:
    if len(results) != 1:
        raise InvalidArgumentError(f"{what} is one result; its function returns {len(results)}")
    spec = results[0].spec
    whole = spec.kind is int if isinstance(spec, Weak) else spec.dtype in INTEGER
    if spec.shape or not (whole or _is_bool(spec)):
        raise InvalidArgumentError(f"{what} must be a scalar bool or integer, found {spec!r}")


def _is_bool(spec: Spec | Weak) -> bool:
    return spec.kind is bool if isinstance(spec, Weak) else not spec.shape and spec.dtype is BOOL


def _check_values(results: Sequence[Recorded], count: int) -> None:
    if len(results) != count:
        raise InvalidArgumentError(
            f"the body of a while loop returns the next {count} values of the loop; found {len(results)}"
        )


def _check_count(results: Sequence[Recorded], count: int) -> None:
    if len(results) < count:
        raise InvalidArgumentError(
            f"the body of a scan returns the {count} carried values first; found {len(results)} results"
        )


def _check_alike(before: Sequence[Recorded], after: Sequence[Recorded], what: str, instead: str) -> None:
    if len(before) != len(after):
        raise InvalidArgumentError(f"{what} has {len(after)} values, {instead} {len(before)}")
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.spec is not new.spec:
            raise InvalidArgumentError(
                f"{what} {at} is {new.spec!r}, {instead} {at} is {old.spec!r}: shapes and dtypes must stay as they are"
            )


def _length(specs: Sequence[Spec], length: int | None) -> int:
    for at, spec in enumerate(specs):
        if not spec.shape:
            raise InvalidArgumentError(f"scan: element input {at} is a scalar; a scan takes its elements along axis 0")
    lengths = {spec.shape[0] for spec in specs} | ({length} if length is not None else set())
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"scan: the elements have the lengths {[spec.shape[0] for spec in specs]} along axis 0, `length` says "
            f"{length}: all must agree, and one must be given"
        )
    return int(lengths.pop())
