"""Custom calls, whose gradient is the caller's function; backward passes that stop at them; sparse gradients."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from sys import getsizeof
from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.derivatives.gradient import gradient_pass
from teletape_engine.derivatives.query import GradientQuery, InputCotangents, Stop
from teletape_engine.errors import InvalidArgumentError, StructureMismatchError
from teletape_engine.functions.batched import check_vectorizes
from teletape_engine.functions.function import Function
from teletape_engine.recording.custom import CustomTapeCall, FunctionGradient, record_custom
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Recorded, Value, kind_of
from teletape_engine.session.entries import Entry
from teletape_engine.session.handlers.explain import Reasons, reasons_of_nulls
from teletape_engine.session.handlers.questions import CustomGradientEntry, answer_under, gradient_query
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State
from teletape_engine.spec import INTEGER, Spec


class BackwardPassEntry(Entry):
    """A backward pass between two of its stops.

    Args:
        steps: The pass.
        query: The question that it answers.
        targets: Ids of its targets, for messages.

    Attributes:
        targets: Ids of its targets, for messages.
        stop: The stop; None: the pass has ended or failed.
        gradients: For the sources, after the pass has ended.
        why: The reasons of those that are none.
    """

    word = "a backward pass"
    kind = "backward"

    def __init__(
        self,
        steps: Generator[Stop, InputCotangents, list[Recorded | None]],
        query: GradientQuery,
        targets: tuple[Id, ...],
    ) -> None:
        self._steps, self._tape, self.targets = steps, query.tape, targets
        self._query: GradientQuery | None = query
        self.stop: Stop | None = None
        self.gradients: list[Recorded | None] | None = None
        self.why: Reasons = ()
        self._continue(None)

    def resume(self, cotangents: InputCotangents) -> None:
        """Goes on with the cotangents of the call's inputs.

        Raises:
            InvalidArgumentError: They do not fit.
        """
        self._continue(cotangents)

    def _continue(self, cotangents: InputCotangents | None) -> None:
        try:
            self.stop = self._steps.send(cotangents)  # type: ignore[arg-type]  # None begins a generator
        except StopIteration as end:
            self.stop, self.gradients = None, end.value
        except BaseException:
            self.stop = None
            raise

    def explain_nulls(self, state: State) -> None:
        """Notes, once the pass has ended, why gradients are none; lets go of the question."""
        if self.gradients is not None and self._query is not None:
            query, self._query = self._query, None
            self.why = reasons_of_nulls(state, query.tape, query.targets, query.sources, self.gradients)

    def facts(self) -> dict[str, Any]:
        """The stop: the call's tag and function, or the op's type, and the kinds of its results' cotangents."""
        if self.stop is None:
            return {"through": True}
        bound = self.stop.bound
        call = (
            {"tag": bound.tag, "function": bound.label} if isinstance(bound, CustomTapeCall) else {"op": bound.op_type}
        )
        return {"through": False, **call, "cotangents": [kind_of(ct).value for ct in self.stop.cts]}

    def values(self) -> Iterator[Any]:
        """The cotangents in use."""
        stop = self.stop
        for ct in (*stop.pending.values(), *stop.cts) if stop is not None else self.gradients or ():
            for part in ct[:2] if isinstance(ct, SparseGradient) else ct if isinstance(ct, list) else (ct,):
                if isinstance(part, Value | Operand):
                    yield part if isinstance(part, Value) else part.value
                elif isinstance(part, SlicesValue):
                    yield from (part.values, part.indices)
                elif part is not None:
                    yield Value(part, Spec.of(tuple(part.shape), part.dtype), 0)

    def tapes(self) -> Iterator[Tape]:
        """The tape that the rest of the pass goes over."""
        yield self._tape

    def close(self) -> None:
        """Ends a pass that has not ended; a tape that is not persistent has then answered."""
        self._steps.close()


@handles(commands.Custom)
def custom(state: State, command: commands.Custom) -> None:
    """Notes the call on the active tapes that follow an input."""
    inputs = [state.value(name) for name in command.inputs]
    for value in inputs:
        if not value.spec.differentiable:
            raise InvalidArgumentError(
                f"custom: an input of dtype {value.spec.dtype.name} has no gradient; leave it out of `inputs`"
            )
    outputs = [state.find(name, Value) for name in command.outputs]
    state.memory.note(getsizeof(command.label) + getsizeof(command.tag) + getsizeof(command.where), "a custom call")
    record_custom(
        state.current.context.tapes, inputs, outputs, tag=command.tag, label=command.label, where=command.where
    )


@handles(commands.CustomFunction)
def custom_function(state: State, command: commands.CustomFunction) -> None:
    """Names a gradient for questions that do not stop."""
    function = state.find(command.function, Function)
    others = [state.argument(operand) for operand in command.inputs]
    others = [state.value(value) if isinstance(value, Literal) and value.spec.shape else value for value in others]
    check_vectorizes(function, recorded=False)
    state.name(command.id, CustomGradientEntry(command.tag, FunctionGradient(function, command.has_gradient), others))


@handles(commands.BackwardBegin)
def backward_begin(state: State, command: commands.BackwardBegin) -> None:
    """Begins a pass, and runs it to its first stop."""
    query = gradient_query(state, command)
    entry = BackwardPassEntry(gradient_pass(state.current, query), query, command.targets)
    entry.explain_nulls(state)
    state.name(command.id, entry)
    state.results.append(Facts(state.index, entry.facts()))


@handles(commands.BackwardCotangents)
def backward_cotangents(state: State, command: commands.BackwardCotangents) -> None:
    """Names the cotangents at the stop."""
    _, stop = _stopped(state, command.id)
    tag = stop.bound.tag if isinstance(stop.bound, CustomTapeCall) else None
    if command.tag is not None and command.tag != tag:
        raise StructureMismatchError(
            f"the pass has stopped at {stop.label} (tag {tag!r}), and the caller expects it at {command.tag!r}: its "
            "tape differs from the server's"
        )
    op_values = stop.residuals if command.op_values else ()
    for ids, values, what in (
        (command.outputs, stop.cts, "results"),
        (command.op_values, op_values, "inputs and results"),
    ):
        if len(ids) != len(values):
            raise InvalidArgumentError(f"{stop.label} has {len(values)} {what}, found {len(ids)} ids")
    for name, value in zip((*command.outputs, *command.op_values), (*stop.cts, *op_values), strict=True):
        if name is not None:
            state.name(name, state.value(value) if isinstance(value, Literal) else value)


@handles(commands.BackwardResume)
def backward_resume(state: State, command: commands.BackwardResume) -> None:
    """Runs the pass to its next stop, or to its end."""
    entry, stop = _stopped(state, command.id)
    specs = stop.bound.specs
    if len(command.cotangents) != len(specs):
        raise InvalidArgumentError(
            f"{stop.label} has {len(specs)} inputs, found {len(command.cotangents)} cotangents: give one for each, "
            "null for none"
        )
    pairs = zip(command.cotangents, specs, strict=True)
    entry.resume([None if operand is None else _cotangent(state, operand, spec) for operand, spec in pairs])
    entry.explain_nulls(state)
    state.results.append(Facts(state.index, entry.facts()))


def _cotangent(state: State, operand: commands.Input, like: Spec) -> Recorded:
    entry = state.entries.get(operand) if isinstance(operand, int | str) else None
    return entry if isinstance(entry, SlicesValue) else state.value(operand, like=like)


@handles(commands.BackwardEnd)
def backward_end(state: State, command: commands.BackwardEnd) -> None:
    """Names the gradients of a pass that has ended."""
    entry = state.find(command.id, BackwardPassEntry)
    if entry.gradients is None:
        stop = entry.stop
        why = "has failed" if stop is None else f"has stopped at {stop.label}: resume it with cotangents first"
        raise InvalidArgumentError(f"the pass {command.id!r} has not ended: it {why}")
    if len(command.outputs) != len(entry.gradients):
        raise InvalidArgumentError(f"{len(entry.gradients)} sources, but {len(command.outputs)} output ids")
    answer_under(state, command.outputs, entry.gradients, entry.targets, command.predicted, why=entry.why)


def _stopped(state: State, name: Id) -> tuple[BackwardPassEntry, Stop]:
    entry = state.find(name, BackwardPassEntry)
    if entry.stop is None:
        raise InvalidArgumentError(f"the pass {name!r} is at no stop: it has ended or failed")
    return entry, entry.stop


@handles(commands.MakeSlices)
def make_slices(state: State, command: commands.MakeSlices) -> None:
    """Creates a sparse gradient of two tensors."""
    values, indices = state.find(command.values, Value), state.find(command.indices, Value)
    if indices.spec.dtype not in INTEGER or len(indices.spec.shape) != 1:
        raise InvalidArgumentError(f"slices: indices are a list of integers, found {indices.spec!r}")
    if values.spec.shape[:1] != indices.spec.shape:
        raise InvalidArgumentError(f"slices: one row of values for each index, found {values.spec!r}, {indices.spec!r}")
    dense = values.spec.with_shape((command.rows, *values.spec.shape[1:]))
    state.name(command.id, SlicesValue(values, indices, dense))
