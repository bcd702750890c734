"""Calls with a gradient of the caller's own, and backward passes that stop at them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.derivatives.gradient import gradient_pass
from teletape_engine.derivatives.query import InputCotangents, Stop
from teletape_engine.errors import InvalidArgumentError, StructureMismatchError
from teletape_engine.programs.batched import check_vectorizes
from teletape_engine.programs.program import Program
from teletape_engine.recording.custom import Custom, ProgramGradient, record_custom
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Recorded, Value, kind_of
from teletape_engine.session.entries import Entry
from teletape_engine.session.handlers.questions import CustomGradientEntry, answer_under, gradient_query
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State
from teletape_engine.spec import INTEGER, Spec


class BackwardPassEntry(Entry):
    """A backward pass between two of its stops.

    Attributes:
        targets: What it was asked for, for messages.
        stop: Where it stands; None: it is through.
        found: What it found for its sources, once it is through.
    """

    word = "a backward pass"
    kind = "backward"

    def __init__(
        self, walk: Generator[Stop, InputCotangents, list[Recorded | None]], tape: Tape, targets: tuple[Id, ...]
    ) -> None:
        self._walk, self._tape, self.targets = walk, tape, targets
        self.stop: Stop | None = None
        self.found: list[Recorded | None] | None = None
        self._go(None)

    def give(self, answers: InputCotangents) -> None:
        """Goes on with the cotangents of the call's inputs.

        Raises:
            InvalidArgumentError: They do not fit.
        """
        self._go(answers)

    def _go(self, answers: InputCotangents | None) -> None:
        try:
            self.stop = self._walk.send(answers)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration as done:
            self.stop, self.found = None, done.value
        except BaseException:
            self.stop = None
            raise

    def facts(self) -> dict[str, Any]:
        """Where it stands: the call's tag and function, or the op's type, and the kinds of its results' cotangents."""
        if self.stop is None:
            return {"through": True}
        bound = self.stop.bound
        called = {"tag": bound.tag, "function": bound.label} if isinstance(bound, Custom) else {"op": bound.op_type}
        return {"through": False, **called, "cotangents": [kind_of(one).value for one in self.stop.cts]}

    def values(self) -> Iterator[Any]:
        """What the tape keeps for the rest of the pass, and the cotangents on their way."""
        for node in self._tape.nodes:
            yield from node[3]
        stop = self.stop
        for ct in (*stop.pending.values(), *stop.cts) if stop is not None else self.found or ():
            for one in ct[:2] if isinstance(ct, SparseGradient) else ct if isinstance(ct, list) else (ct,):
                if isinstance(one, Value | Operand):
                    yield one if isinstance(one, Value) else one.value
                elif isinstance(one, SlicesValue):
                    yield from (one.values, one.indices)
                elif one is not None:
                    yield Value(one, Spec.of(tuple(one.shape), one.dtype), 0)

    def close(self) -> None:
        """An unfinished one is given up; a tape that was to answer once has."""
        self._walk.close()


@handles(commands.Custom)
def custom(state: State, command: commands.Custom) -> None:
    """Noted on the active tapes that follow an input."""
    inputs = [state.value(one) for one in command.inputs]
    for one in inputs:
        if not one.spec.differentiable:
            raise InvalidArgumentError(
                f"custom: an input of dtype {one.spec.dtype.name} has no gradient; leave it out of `inputs`"
            )
    outputs = [state.find(one, Value) for one in command.outputs]
    record_custom(state.current.tapes, inputs, outputs, tag=command.tag, label=command.label, where=command.where)


@handles(commands.CustomFunction)
def custom_program(state: State, command: commands.CustomFunction) -> None:
    """For the questions that name it."""
    program = state.find(command.function, Program)
    others = [state.argument(one) for one in command.inputs]
    check_vectorizes(program)
    state.name(command.id, CustomGradientEntry(command.tag, ProgramGradient(program, command.has_gradient), others))


@handles(commands.BackwardBegin)
def begin(state: State, command: commands.BackwardBegin) -> None:
    """A pass, up to its first stop."""
    query = gradient_query(state, command)
    held = BackwardPassEntry(gradient_pass(state.current, query), query.tape, command.targets)
    state.name(command.id, held)
    state.results.append(Facts(state.index, held.facts()))


@handles(commands.BackwardCotangents)
def to(state: State, command: commands.BackwardCotangents) -> None:
    """The cotangents there under their ids."""
    _, stop = _standing(state, command.id)
    tag = stop.bound.tag if isinstance(stop.bound, Custom) else None
    if command.tag is not None and command.tag != tag:
        raise StructureMismatchError(
            f"the pass stands at {stop.label} (tag {tag!r}), the caller takes it to be at {command.tag!r}: its "
            "tape differs from the server's"
        )
    kept = stop.residuals if command.op_values else ()
    for given, there, what in ((command.outputs, stop.cts, "results"), (command.op_values, kept, "inputs and results")):
        if len(given) != len(there):
            raise InvalidArgumentError(f"{stop.label} has {len(there)} {what}, found {len(given)} ids")
    for name, value in zip((*command.outputs, *command.op_values), (*stop.cts, *kept), strict=True):
        if name is not None:
            state.name(name, state.value(value) if isinstance(value, Literal) else value)


@handles(commands.BackwardResume)
def give(state: State, command: commands.BackwardResume) -> None:
    """On with them to the next stop, or through."""
    held, stop = _standing(state, command.id)
    if len(command.cotangents) != len(stop.bound.specs):
        raise InvalidArgumentError(
            f"{stop.label} has {len(stop.bound.specs)} inputs, found {len(command.cotangents)} cotangents: one for "
            "each, null for none"
        )
    held.give(
        [
            None if one is None else _ct(state, one, spec)
            for one, spec in zip(command.cotangents, stop.bound.specs, strict=True)
        ]
    )
    state.results.append(Facts(state.index, held.facts()))


def _ct(state: State, given: commands.Input, like: Spec) -> Recorded:
    if isinstance(given, int | str) and isinstance(slices := state.entries.get(given), SlicesValue):
        return slices
    return state.value(given, like=like)


@handles(commands.BackwardEnd)
def end(state: State, command: commands.BackwardEnd) -> None:
    """What it found, under the ids."""
    held = state.find(command.id, BackwardPassEntry)
    if held.found is None:
        at = f"stands at {held.stop.label}: give it cotangents first" if held.stop is not None else "has failed"
        raise InvalidArgumentError(f"the pass {command.id!r} is not through: it {at}")
    if len(command.outputs) != len(held.found):
        raise InvalidArgumentError(f"{len(held.found)} sources, but {len(command.outputs)} output ids")
    answer_under(state, command.outputs, held.found, held.targets, command.predicted)


def _standing(state: State, name: Id) -> tuple[BackwardPassEntry, Stop]:
    held = state.find(name, BackwardPassEntry)
    if held.stop is None:
        raise InvalidArgumentError(f"the pass {name!r} stands at no stop: it is through, or has failed")
    return held, held.stop


@handles(commands.MakeSlices)
def slices(state: State, command: commands.MakeSlices) -> None:
    """A sparse gradient of the caller's own making."""
    values, indices = state.find(command.values, Value), state.find(command.indices, Value)
    if indices.spec.dtype not in INTEGER or len(indices.spec.shape) != 1:
        raise InvalidArgumentError(f"slices: indices are a list of integers, found {indices.spec!r}")
    if values.spec.shape[:1] != indices.spec.shape:
        raise InvalidArgumentError(f"slices: one row of values for each index, found {values.spec!r}, {indices.spec!r}")
    dense = values.spec.with_shape((command.rows, *values.spec.shape[1:]))
    state.name(command.id, SlicesValue(values, indices, dense))
