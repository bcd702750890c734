"""A function run for each entry along an axis of some inputs: by the ops' batch rules, in as many chunks as fit.

A mapped call is bound as any other (`bound_calls`). Each source is a stack with a row for each entry, so that a
question to the tape answers for each entry by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from teletape_engine.commands import Call, Command, Constant, Id, Input, Map
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal, typed_array
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec, Weak
from teletape_server.handlers.bodies import InvalidRequestError, new_id
from teletape_server.handlers.execution import described
from teletape_server.handlers.functions.bound_calls import (
    BoundCall,
    Source,
    check_names,
    chosen_sources,
    in_order,
    spec_of,
)

#: How many times the bytes of a function's steps a question takes for an entry, its own derivatives not counted.
_STEPS: Final = {"call": 1, "gradient": 3, "jvp": 3, "jacobian": 4, "hvp": 8, "hessian": 8}


@dataclass(frozen=True)
class MappedCall:
    """A function with its inputs, some of which have an entry for each run.

    Attributes:
        session: Where the function is.
        function: Its id.
        facts: About it.
        inputs: For each of its inputs an id, a number or an array: the whole of it.
        axes: For each input the axis of its entries; None: all runs share it.
        size: Entries.
        entry: For each input what one run takes: a shared input itself, else the spec of an entry.
        keeps_axis: Whether an entry has its axis too, with length 1.
        why: Why the entries run one after the other; empty: they run at once.
    """

    session: Session
    function: Id
    facts: Mapping[str, Any]
    inputs: Sequence[Input]
    axes: Sequence[int | None]
    size: int
    entry: Sequence[Input | Spec]
    why: str
    keeps_axis: bool = False

    @cached_property
    def result_specs(self) -> Mapping[str, Spec]:
        """The specs of the outputs of one run, by name; empty: they depend on values."""
        try:
            specs = self.session.result_specs(self.function, self.entry)
        except InvalidArgumentError:
            return {}
        return dict(zip(self.facts["outputs"], specs, strict=True))

    def sources(self, names: Sequence[str] | None) -> list[tuple[str, int]]:
        """Returns what the call is differentiated by: names, and numbers of inputs."""
        return chosen_sources(self.session, self.function, self.facts, self.inputs, names)

    def rows_at_once(self, verb: str, sources: Sequence[tuple[str, int]], targets: Sequence[str]) -> int:
        """Returns how many entries a question takes at once: as many as half of the free memory has room for.

        Args:
            verb: The question.
            sources: See `sources`.
            targets: Names of outputs.
        """
        room = self.session.room()
        if room == math.inf:
            return self.size
        try:
            price = _STEPS[verb] * self.session.call_price(self.function, self.entry)
        except InvalidArgumentError:
            return self.size  # the call says why
        by = [self.spec(number) for _, number in sources]
        of = [self.result_specs[name] for name in targets if name in self.result_specs]
        answer = sum([spec.nbytes for spec in by])
        if verb == "jacobian":
            answer = sum([target.size * spec.nbytes for target in of for spec in by])
        elif verb == "hessian":
            answer = sum([left.size * right.nbytes for left in by for right in by])
        answer += sum([spec.nbytes for spec in self.result_specs.values()])
        left = room - 2 * self.size * answer  # what the chunks answer is there twice while it is joined
        if left <= 0:
            return self.size  # in one chunk it is there once; if that is too much, its first op says so
        each = max(1, price + answer)
        rows = max(1, min(self.size, int(left / 2 // each)))
        while rows > 1 and not self.session.fits(2 * self.size * answer + rows * each):  # the machine has less
            rows //= 2
        return rows

    def chunks(self, rows: int) -> list[tuple[int, int]]:
        """Returns for each chunk of at most `rows` entries its first, and the first that is not in it."""
        return [(first, min(first + rows, self.size)) for first in range(0, self.size, rows)]

    def answer(self, chunks: int) -> dict[str, Any]:
        """Returns what an answer says of the map."""
        facts = {"size": self.size, "chunks": chunks, "vectorized": not self.why}
        return facts if not self.why else facts | {"why": self.why}

    def spec(self, number: int) -> Spec:
        """Returns the spec that an input has in one run."""
        value = self.entry[number]
        return value if isinstance(value, Spec) else spec_of(self.session, value)

    def bound(self, sources: Sequence[tuple[str, int]], first: int, last: int, *, summed: bool = False) -> BoundCall:
        """Returns the call for the entries from `first` to `last`, which is not one of them.

        Args:
            sources: See `sources`.
            first: Number of the first entry.
            last: Number of the entry after the last.
            summed: Whether a source that all entries share is differentiated as one, and not as a stack.
        """
        rows, names = _Rows(self.session, self.size, first, last, self.keeps_axis), self.facts["inputs"]
        stacks: dict[int, Id] = {}
        resolved: list[Source] = []
        for name, number in sources:
            value, axis = self.inputs[number], self.axes[number]
            if axis is not None:
                stack = rows.stacked(value, axis, is_source=True)
            else:
                stack = rows.own(value) if summed else rows.shared(value, self.spec(number))
            same = [number]
            if name not in names:  # an id: by all inputs that it is bound to
                same = [other for other, bound in enumerate(self.inputs) if _is_id(bound) and bound == value]
                if any(self.axes[other] != axis for other in same):
                    raise InvalidRequestError(
                        f"sources: the id {name!r} is bound to inputs with different axes in `map`: name the inputs"
                    )
            stacks |= dict.fromkeys(same, stack)
            resolved.append(Source(name, number, stack))
        for number, (value, axis) in enumerate(zip(self.inputs, self.axes, strict=True)):
            if axis is not None and number not in stacks:
                stacks[number] = rows.stacked(value, axis)
        arguments = [stacks.get(number, value) for number, value in enumerate(self.inputs)]
        outputs = {name: new_id() for name in self.facts["outputs"]}
        mapped = tuple([axis is not None or (number in stacks and not summed) for number, axis in enumerate(self.axes)])
        command = Map(self.function, tuple(arguments), mapped, tuple(outputs.values()))
        return BoundCall(
            self.function, names, self.inputs, outputs, resolved, rows.commands, (), arguments, command, self.entry
        )

    def commands(self, outputs: Sequence[Id], chunks: Sequence[tuple[int, int]]) -> list[Command]:
        """Returns the commands that run the function for all entries.

        Args:
            outputs: For each output the id of its stack.
            chunks: See `chunks`.
        """
        calls = [self.bound((), first, last) for first, last in chunks]
        commands = [command for call in calls for command in (*call.constants, call.command)]
        if len(calls) == 1:
            [call] = calls
            assert call.map is not None
            return [*call.constants, replace(call.map, outputs=tuple(outputs))]
        columns = zip(*[call.outputs.values() for call in calls], strict=True)
        joined = zip(columns, outputs, strict=True)
        return [*commands, *[Call("concat", column, (id,), {"axis": 0}) for column, id in joined]]

    def members(
        self, members: Sequence[Input | None] | None, specs: Sequence[Spec | None], first: int, last: int
    ) -> tuple[list[Any] | None, list[Any], list[Command]]:
        """Returns the stacks for some entries of what a question has for each source or target, and what makes them.

        One that has no axis of entries goes with each entry.

        Args:
            members: Weights, tangents or vectors; None: there are none.
            specs: For each the spec of what it belongs to, in one run; None: it is not known.
            first: Number of the first entry.
            last: Number of the entry after the last.

        Returns:
            The stacks, the members with their dtypes, and the commands that make the stacks.
        """
        if members is None:
            return None, [], []
        rows = _Rows(self.session, self.size, first, last)
        stacks: list[Any] = []
        typed: list[Any] = []
        for member, spec in zip(members, specs, strict=True):
            if isinstance(member, Literal) and spec is not None:
                member = typed_array(member, spec.dtype)
            typed.append(member)
            if member is None or spec is None or isinstance(member, Literal):
                stacks.append(member)
            elif len(_shape(self.session, member)) == spec.ndim:
                stacks.append(rows.shared(member, spec))
            else:
                stacks.append(rows.stacked(member, 0))
        return stacks, typed, rows.commands


def mapped_call(
    session: Session,
    function: Id,
    inputs: Sequence[Input] | Mapping[str, Input],
    axes: Mapping[str, int],
    *,
    keeps_axis: bool = False,
) -> MappedCall:
    """Returns a function with its inputs, of which those that `axes` names have an entry for each run.

    Raises:
        InvalidRequestError: An input is missing or unknown, has no such axis, or another number of entries than others;
            there is no entry; the function assigns to variables.
        UnknownIdError, ReleasedIdError: An id names nothing.
    """
    facts = described(session, function, "functions")
    names = facts["inputs"]
    values = in_order(function, facts, inputs)
    check_names(function, names, list(axes), "map")
    if facts["assigns"]:
        raise InvalidRequestError(
            f"map: function {function!r} assigns to {', '.join(facts['assigns'])}, and its runs go at once: let it "
            "return what it assigns"
        )
    numbers: list[int | None] = [None] * len(names)
    sizes: dict[str, int] = {}
    for name, axis in axes.items():
        number = names.index(name)
        shape = _shape(session, values[number])
        if not -len(shape) <= axis < len(shape):
            raise InvalidRequestError(f"map.{name}: {axis} is no axis of the input, whose shape is {list(shape)}")
        numbers[number] = axis % len(shape)
        sizes[name] = shape[axis]
    size = next(iter(sizes.values()))
    if set(sizes.values()) != {size} or not size:
        lengths = ", ".join([f"{name} {length}" for name, length in sizes.items()])
        raise InvalidRequestError(f"map: all inputs have the same number of entries, 1 or more; found {lengths}")
    entries = [
        value if axis is None else _entry(session, value, axis, keeps_axis=keeps_axis)
        for value, axis in zip(values, numbers, strict=True)
    ]
    typed = session.typed_inputs(function, entries)
    for number, (value, entry) in enumerate(zip(values, typed, strict=True)):
        if isinstance(value, Literal):
            assert isinstance(entry, np.ndarray)
            values[number] = typed_array(value, entry.dtype)
    specs: list[Input | Spec] = [
        Spec.of(array.shape, array.dtype) if axis is not None and isinstance(array, np.ndarray) else value
        for value, array, axis in zip(values, typed, numbers, strict=True)
    ]
    return MappedCall(session, function, facts, values, numbers, size, specs, session.vectorizes(function), keeps_axis)


@dataclass
class _Rows:
    """Makes stacks with a row for each of the entries from `first` to `last`, by commands."""

    session: Session
    size: int
    first: int
    last: int
    keeps_axis: bool = False
    commands: list[Command] = field(default_factory=list)

    def stacked(self, value: Any, axis: int, *, is_source: bool = False) -> Id:
        """Returns the id of a value's entries along axis 0; of a source it is an id of its own."""
        is_part, ndim = (self.first, self.last) != (0, self.size), len(_shape(self.session, value))
        id = value
        if isinstance(value, np.ndarray):
            if is_part:
                value = np.ascontiguousarray(value[(slice(None),) * axis + (slice(self.first, self.last),)])
            id = self._constant(value)
        if axis != 0:
            order = [axis, *[other for other in range(ndim) if other != axis]]
            id = self._call("transpose", id, perm=tuple(order))
        if is_part and not isinstance(value, np.ndarray):
            id = self._call("strided_slice", id, index=((self.first, self.last, None),))
        if self.keeps_axis:
            id = self._call("expand_dims", id, axis=axis + 1)
        return self.own(id) if is_source and id is value else id

    def own(self, value: Any) -> Id:
        """Returns an id of its own for a value."""
        return self._constant(value) if isinstance(value, np.ndarray) else self._call("identity", value)

    def shared(self, value: Any, spec: Spec) -> Id:
        """Returns the id of a stack of which each row is the value."""
        id = self._constant(value) if isinstance(value, np.ndarray) else value
        return self._call("broadcast_to", id, shape=(self.last - self.first, *spec.shape))

    def _constant(self, value: np.ndarray[Any, Any]) -> Id:
        id: Id = new_id()
        self.commands.append(Constant(id, value))
        return id

    def _call(self, op: str, operand: Id, **attrs: Any) -> Id:
        id: Id = new_id()
        self.commands.append(Call(op, (operand,), (id,), attrs))
        return id


def _entry(session: Session, value: Input, axis: int, *, keeps_axis: bool) -> Input:
    """Returns a value with the spec of one entry: of a list without a dtype the first one, else zeros."""
    if isinstance(value, Literal):
        literal, first = value.copy(), value.array.take([0] if keeps_axis else 0, axis)
        literal.array = first if first.shape else first.item()
        literal.spec = Weak.of_untyped(value.spec.kind, first.shape, value.spec.integer, value.spec.alone)
        return literal
    whole = spec_of(session, value)
    shape = (*whole.shape[:axis], *([1] if keeps_axis else []), *whole.shape[axis + 1 :])
    return np.broadcast_to(np.zeros((), whole.dtype), shape)


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str)


def _shape(session: Session, value: Any) -> tuple[int, ...]:
    return value.spec.shape if isinstance(value, Literal) else spec_of(session, value).shape
