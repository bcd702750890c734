"""Control flow over programs: while, cond, scan. Their steps are recorded one iteration after the other.

Where nothing can be decided (`Mode.decides` false: specs are followed, no values) what is recorded is an outline:
results of the right specs, connected to all that they could depend on, whatever runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from teletape_engine import commands
from teletape_engine.catalogue.namespace import ops
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.programs.batched import mapped
from teletape_engine.programs.program import Program, flow
from teletape_engine.recording.provenance import Event
from teletape_engine.recording.recorder import Mode
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import BOOL, DTYPES, INTEGER, Spec, Weak

Found: TypeAlias = Any  # a recorded value

_OUTLINED: Final = 16  #: Iterations in which an outline finds what depends on what, at the most.
_DIRECT: Final = 4  #: So many rows are cut one by one, more by halves.


@flow(commands.While)
def run_while(
    recorder: Any, command: commands.While, programs: Sequence[Program], inputs: Sequence[Any]
) -> list[Found]:
    """The loop's values once its condition is false, and if asked the number of iterations.

    Raises:
        InvalidArgumentError: A condition that is no scalar bool or integer; a body that changes a spec.
        CancelledError, ResourceExhaustedError: See `Watch.iteration`.
    """
    cond, body = programs
    values, captured = _split(recorder, command.captured, inputs)
    counted = len(command.outputs) == len(values) + 1
    if not recorder.mode.decides:
        condition = cond.run(recorder, [*values, *captured], tie=False)
        _check_selector(condition, "the condition of a while loop")
        last, _ = _outline(recorder, body, values, [], captured, counted=None)
        return [*last, recorder.full(_TRIPS, 0)] if counted else last
    most, iterations = command.maximum_iterations, 0
    while most is None or iterations < most:
        (condition,) = _one(cond.run(recorder, [*values, *captured], tie=False), "the condition of a while loop")
        _check_selector([condition], "the condition of a while loop")
        if not recorder.decide(condition):
            break
        recorder.iteration(iterations, most or 0)
        values = _next(recorder, body, values, [*values, *captured])
        iterations += 1
    if not iterations:
        _unused(recorder, Event.NO_ITERATION, captured, values)
    return [*values, recorder.number(Literal(iterations), _TRIPS.dtype)] if counted else values


@flow(commands.Cond)
def run_cond(recorder: Any, command: commands.Cond, programs: Sequence[Program], inputs: Sequence[Any]) -> list[Found]:
    """The results of the branch that the first input chooses.

    Raises:
        InvalidArgumentError: It is no scalar bool or integer; no branches; branches whose results differ in spec.
    """
    if not programs or not inputs:
        raise InvalidArgumentError("cond takes one branch or more, and an input that chooses among them")
    first, *rest = inputs
    selector = recorder.read(first) if isinstance(first, Variable) else first
    _check_selector([selector], "what chooses a branch")
    if not recorder.mode.decides:
        found = [[recorder.as_value(one) for one in branch.run(recorder, rest, tie=False)] for branch in programs]
        for number, one in enumerate(found[1:], 1):
            _check_alike(found[0], one, f"branch {number}", "branch 0")
        return [_tied(recorder, column) for column in zip(*found, strict=True)]
    chosen = recorder.decide(selector)
    if _is_bool(selector.spec):
        chosen = 0 if chosen else 1
    if not 0 <= chosen < len(programs):
        chosen = len(programs) - 1
    found = [recorder.as_value(one) for one in programs[chosen].run(recorder, rest, tie=False)]
    return _unused(recorder, Event.UNTAKEN, rest, found)


def _unused(recorder: Any, event: Event, inputs: Sequence[Any], found: list[Found]) -> list[Found]:
    """Leaves a record, for explanations, that `found` came about without what would have used `inputs`."""
    used = [one.uid for one in inputs]
    for one in found:
        recorder.note(event, used, one.uid)
    return found


@flow(commands.Scan)
def run_scan(recorder: Any, command: commands.Scan, programs: Sequence[Program], inputs: Sequence[Any]) -> list[Found]:
    """The carried values behind the last element, and the body's other results, stacked.

    Raises:
        InvalidArgumentError: Elements of different lengths, or none and no length; a body that changes what it carries.
        CancelledError, ResourceExhaustedError: See `Watch.iteration`.
    """
    (body,) = programs
    if command.carried + command.captured > len(inputs):
        raise InvalidArgumentError(
            f"scan: {command.carried} carried and {command.captured} captured of {len(inputs)} inputs"
        )
    rest, captured = _split(recorder, command.captured, inputs)
    carry, elements = rest[: command.carried], rest[command.carried :]
    length = _length([one.spec for one in elements], command.length)
    if command.vectorize and not carry and elements and length:
        made_at_once = mapped(recorder, body, elements, captured, length)
        if made_at_once is not None:
            return made_at_once
    if recorder.mode is Mode.OUTLINES or (recorder.mode.predicts and not recorder.recorded):
        return [one for part in _outline(recorder, body, carry, elements, captured, counted=length) for one in part]
    recorder.expect(length)
    columns = [_Rows(recorder, one, length) for one in elements]
    made: list[list[Found]] = []
    for iteration in range(length):
        at = length - 1 - iteration if command.reverse else iteration
        recorder.iteration(iteration, length)
        found = [
            recorder.as_value(one)
            for one in body.run(recorder, [*carry, *[c[at] for c in columns], *captured], tie=False)
        ]
        _check_count(found, len(carry))
        _check_alike(carry, found[: len(carry)], "the body's result", "carried value")
        carry = found[: len(carry)]
        if made and len(found) - len(carry) == len(made):
            for column, one in zip(made, found[len(carry) :], strict=True):
                column.append(one)
        elif iteration == 0:
            made = [[one] for one in found[len(carry) :]]
    if not length:
        made_of_none = _outline(recorder, body, carry, elements, captured, counted=0)[1]
        return [*carry, *[recorder.full(one.spec, 0) for one in made_of_none]]
    return [*carry, *[_stacked(recorder, column[::-1] if command.reverse else column) for column in made]]


# ------------------------------------------------------------------------------------------------------------ outlines
def _outline(
    recorder: Any,
    body: Program,
    values: Sequence[Found],
    elements: Sequence[Found],
    captured: Sequence[Any],
    *,
    counted: int | None,
) -> tuple[list[Found], list[Found]]:
    """What a loop gives, whatever its iterations: the carried values, and the others stacked `counted` times.

    Each is connected to what it depends on in any iteration: no path is longer than there are values.
    """
    rows = [_outlined_row(recorder, one) for one in elements]
    seen: list[list[Found]] = [list(values)]
    others: list[Found] = []
    for _ in range(min(len(values), _OUTLINED) + 1):
        found = [recorder.as_value(one) for one in body.run(recorder, [*seen[-1], *rows, *captured], tie=False)]
        if counted is None:
            _check_values(found, len(values))
        else:
            _check_count(found, len(values))
        _check_alike(values, found[: len(values)], "the body's result", "loop value")
        seen.append(found[: len(values)])
        others = found[len(values) :]
    last = [_tied(recorder, column[::-1]) for column in zip(*seen, strict=True)]
    return last, [_spread(recorder, one, counted or 0) for one in others]


def _outlined_row(recorder: Any, elements: Found) -> Found:
    """A value of the spec of one element, connected to all of them."""
    shape = elements.spec.shape
    if shape[0]:
        return recorder.op(ops.strided_slice, elements, index=(0,))
    return recorder.full(Spec.of(shape[1:], elements.spec.dtype), 0)


def _spread(recorder: Any, one: Found, length: int) -> Found:
    if not length:
        return recorder.full(Spec.of((0, *one.spec.shape), one.spec.dtype), 0)
    return recorder.op(ops.broadcast_to, one, shape=(length, *one.spec.shape))


def _tied(recorder: Any, column: Sequence[Found]) -> Found:
    """The first, connected to the others."""
    others = [one for one in dict.fromkeys(column) if one is not column[0]]
    return recorder.op(ops.zeros_edge, column[0], *others) if others else column[0]


# ------------------------------------------------------------------------------------------------------------- values
class _Rows:
    """The elements along axis 0 of a value.

    Where gradients will be asked they are cut by halves: the gradient of all of them together then takes time
    n log n, where one by one it would be n squared.
    """

    def __init__(self, recorder: Any, value: Found, length: int) -> None:
        self._recorder, self._value = recorder, value
        self._cut = self._halves(value, length) if recorder.recorded and length > _DIRECT else None

    def __getitem__(self, at: int) -> Found:
        return self._recorder.op(ops.strided_slice, self._value, index=(at,)) if self._cut is None else self._cut[at]

    def _halves(self, value: Found, length: int) -> list[Found]:
        if length <= _DIRECT:
            return [self._recorder.op(ops.strided_slice, value, index=(at,)) for at in range(length)]
        half = length // 2
        first, second = (
            self._recorder.op(ops.strided_slice, value, index=((start, stop, None),))
            for start, stop in ((None, half), (half, None))
        )
        return self._halves(first, half) + self._halves(second, length - half)


def _stacked(recorder: Any, column: Sequence[Found]) -> Found:
    for one in column[1:]:
        if one.spec is not column[0].spec:
            raise InvalidArgumentError(
                f"the body gives {column[0].spec!r} in one iteration and {one.spec!r} in another"
            )
    return recorder.op(ops.stack, *column)


_TRIPS: Final = Spec.of((), DTYPES["int64"])


def _split(recorder: Any, captured: int, inputs: Sequence[Any]) -> tuple[list[Found], list[Any]]:
    """Values, variables among them read; and what is captured, as it is."""
    if captured > len(inputs):
        raise InvalidArgumentError(f"{captured} inputs are captured, found {len(inputs)} in all")
    at = len(inputs) - captured
    return [recorder.as_value(one) for one in inputs[:at]], list(inputs[at:])


def _next(recorder: Any, body: Program, values: Sequence[Found], arguments: Sequence[Any]) -> list[Found]:
    found = [recorder.as_value(one) for one in body.run(recorder, arguments, tie=False)]
    _check_values(found, len(values))
    _check_alike(values, found, "the body's result", "loop value")
    return found


# ------------------------------------------------------------------------------------------------------------- checks
def _one(found: Sequence[Any], what: str) -> Sequence[Any]:
    if len(found) != 1:
        raise InvalidArgumentError(f"{what} is one result, its program gives {len(found)}")
    return found


def _check_selector(found: Sequence[Any], what: str) -> None:
    (one,) = _one(found, what)
    spec = one.spec
    whole = spec.kind is int if isinstance(spec, Weak) else not spec.shape and spec.dtype in INTEGER
    if not (whole or _is_bool(spec)):
        raise InvalidArgumentError(f"{what} must be a scalar bool or integer, found {spec!r}")


def _is_bool(spec: Spec | Weak) -> bool:
    return spec.kind is bool if isinstance(spec, Weak) else not spec.shape and spec.dtype is BOOL


def _check_values(found: Sequence[Found], count: int) -> None:
    if len(found) != count:
        raise InvalidArgumentError(f"the body of a while loop gives all its {count} values anew, found {len(found)}")


def _check_count(found: Sequence[Found], count: int) -> None:
    if len(found) < count:
        raise InvalidArgumentError(
            f"the body of a scan gives the {count} carried values first, found {len(found)} results"
        )


def _check_alike(before: Sequence[Found], after: Sequence[Found], what: str, instead: str) -> None:
    if len(before) != len(after):
        raise InvalidArgumentError(f"{what} has {len(after)} values, {instead} {len(before)}")
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.spec is not new.spec:
            raise InvalidArgumentError(
                f"{what} {at} is {new.spec!r}, {instead} {at} is {old.spec!r}: shapes and dtypes must stay as they are"
            )


def _length(specs: Sequence[Spec], given: int | None) -> int:
    for at, spec in enumerate(specs):
        if not spec.shape:
            raise InvalidArgumentError(f"scan: element input {at} is a scalar; it is taken apart along axis 0")
    lengths = {spec.shape[0] for spec in specs} | ({given} if given is not None else set())
    if len(lengths) != 1:
        raise InvalidArgumentError(
            f"scan: the elements have the lengths {[spec.shape[0] for spec in specs]} along axis 0, `length` says "
            f"{given}: all must agree, and one must be given"
        )
    return int(lengths.pop())
