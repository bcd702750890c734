"""A session's state with hollow arrays in place of its arrays: a copy that a batch may change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np

from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.derivatives.reports.counting import Counted
from teletape_engine.functions.function import Function
from teletape_engine.pricing.hollow import Hollow, Unpriced
from teletape_engine.pricing.state import PricingState
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.context import Context
from teletape_engine.recording.custom import FunctionGradient
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.accumulators import AccumulatorEntry
from teletape_engine.session.handlers.custom import BackwardPassEntry
from teletape_engine.session.handlers.questions import CustomGradientEntry
from teletape_engine.session.state import State
from teletape_engine.spec import Spec

_FOLLOWED: Final = 16  #: Elements of a session's array, at the most, that are known: counters, sizes, rates.

T = TypeVar("T")


def hollow_copy(state: State) -> PricingState:
    """Returns a state as a session's, with hollow arrays. Its size decides how long this takes, not that of its arrays.

    A backward pass between two of its stops cannot be copied: what uses it has no price.
    """
    limit, iterations = state.memory.limit, state.monitor.most_iterations
    copy = PricingState(limit, iterations, state.clock)
    copier = _Copier(state, copy)
    for name, executor in state.contexts().items():
        context = executor.context
        copied = copy.context(name)
        copier.contexts[id(context)] = copied.context
        reads = [(uid, version, copier.of(value)) for uid, (version, value) in context.by_variable.items()]
        copied.context.restore([copier.of(each) for each in context.opened()], reads)
    copy.entries = {name: copier.of(entry) for name, entry in state.entries.items()}
    copy.read_names(state.written_names())
    copy.declarations.no_gradient |= state.declarations.no_gradient
    copy.declarations.gradients |= state.declarations.gradients
    copy.variables_made = state.variables_made
    copier.finish()
    used = state.bytes_in_use() - state.memory.cached()
    copy.others = max(0, used - copy.bytes_in_use())
    copy.dispensable = min(copy.others, state.dispensable_bytes())
    copy.memory.count()
    return copy


class _StoppedPass(BackwardPassEntry):
    """Takes the place of a backward pass that is stopped."""

    def __init__(self) -> None:
        """It has nothing."""

    @property
    def stop(self) -> Any:  # type: ignore[override]  # it is only read
        """Raises.

        Raises:
            Unpriced: Always.
        """
        raise Unpriced("a backward pass that has stopped before the batch has no price: price it from its beginning")

    @property
    def gradients(self) -> Any:  # type: ignore[override]  # likewise
        """Raises; see `stop`."""
        return self.stop

    def values(self) -> Iterator[Any]:
        """Nothing."""
        return iter(())

    def tapes(self) -> Iterator[Tape]:
        """Nothing."""
        return iter(())

    def close(self) -> None:
        """Does nothing."""


class _Copier:
    """Copies what a session has, each thing once."""

    def __init__(self, state: State, copy: PricingState) -> None:
        self._base, self._on_cpu = state.backend.base, state.backend is CPU
        self._backend, self._ledger, self._copy = state.backend, copy.ledger, copy
        self.contexts: dict[int, Context] = {}
        self._copies: dict[int, tuple[Any, Any]] = {}  # by identity, with what was copied: it stays until the end
        self._buffers: dict[int, Counted] = {}
        self._kinds: dict[type[Any], Callable[[Any], Any]] = {
            Value: self._value,
            Variable: self._variable,
            SlicesValue: self._slices,
            Function: self._function,
            FunctionGradient: self._function_gradient,
            Tape: self._tape,
            Accumulator: self._accumulator,
            TapeEntry: self._tape_entry,
            AccumulatorEntry: self._accumulator_entry,
            CustomGradientEntry: self._custom_gradient,
            BackwardPassEntry: lambda _: _StoppedPass(),
        }

    def of(self, item: T) -> T:
        """The copy of a thing; what holds no array is its own copy."""
        kind = self._kinds.get(item.__class__)
        if kind is None:
            return item
        copied = self._copies.get(id(item))
        if copied is None:
            copied = self._copies[id(item)] = item, kind(item)
        return copied[1]  # type: ignore[no-any-return]  # of the same kind

    def finish(self) -> None:
        """Lets go of everything: from now on the copies count as referred to by the session alone."""
        self._copies, self._buffers = {}, {}

    def hollow(self, array: Any) -> Hollow:
        """A hollow array in the memory that the array has, or is a part of."""
        identity, nbytes = self._base(array)
        spec = Spec.of(tuple(array.shape), array.dtype)
        buffer = self._buffers.get(identity)
        rows = self._on_cpu and (not isinstance(array, np.ndarray) or array.flags.c_contiguous)
        known = array if self._on_cpu and spec.size <= _FOLLOWED else None
        if buffer is None and nbytes == spec.nbytes:
            buffer = self._buffers[identity] = Counted(self._ledger, spec, rows=rows)
            return Hollow(self._ledger, buffer, known)
        if buffer is None:
            buffer = self._buffers[identity] = Counted(self._ledger, Spec.of((nbytes,), np.dtype(np.uint8)))
        return Hollow(self._ledger, Counted(self._ledger, spec, buffer, rows=rows), known)

    def _value(self, value: Value) -> Value:
        return Value(self.hollow(value.array), value.spec, value.uid)

    def _variable(self, variable: Variable) -> Variable:
        copy = Variable(self.of(variable.value), trainable=variable.trainable, name=variable.name, uid=variable.uid)
        copy.version, copy.serial = variable.version, variable.serial
        return copy

    def _slices(self, slices: SlicesValue) -> SlicesValue:
        return SlicesValue(self.of(slices.values), self.of(slices.indices), slices.dense)

    def _function(self, function: Function) -> Function:
        steps = tuple(
            [
                step._replace(functions=tuple(map(self.of, step.functions))) if step.functions else step
                for step in function.steps
            ]
        )
        copy = replace(function, steps=steps)
        placed = function.placed_on(self._backend)
        if placed is not None:
            copy.place_on(self._copy.backend, [self.of(value) for value in placed])
        return copy

    def _function_gradient(self, gradient: FunctionGradient) -> FunctionGradient:
        return FunctionGradient(self.of(gradient.function), gradient.has_gradient)

    def _tape(self, tape: Tape) -> Tape:
        copy = Tape(persistent=tape.persistent, watch_accessed=tape.watch_accessed, replayable=tape.replayable)
        if tape.consumed:
            copy.nodes = tape.structure()
            copy.consume()
        of = self.of
        copy.nodes = [
            (plan, inputs, output, tuple(map(of, residuals)), where)
            for plan, inputs, output, residuals, where in tape.nodes
        ]
        copy.tracked, copy.leaves = tape.tracked.copy(), tape.leaves.copy()
        copy.variables = {uid: of(variable) for uid, variable in tape.variables.items()}
        copy.unregistered, copy.sparse, copy.heavy = tape.unregistered, tape.sparse, tape.heavy
        copy.turns, copy.declined = tape.turns.copy(), tape.declined.copy()
        return copy

    def _accumulator(self, accumulator: Accumulator) -> Accumulator:
        copy = Accumulator(self._copy.declarations.no_gradient)
        of = self.of
        copy.restore([(uid, of(tangent), of(value)) for uid, tangent, value in accumulator.entries()])
        return copy

    def _context(self, context: Context) -> Context:
        """The copy of a context; one that has ended is a new one, in which nothing is active."""
        return self.contexts.get(id(context)) or self._copy.executor().context

    def _tape_entry(self, entry: TapeEntry) -> TapeEntry:
        return TapeEntry(self.of(entry.tape), self._context(entry.context), entry.parents, entry.outputs.copy())

    def _accumulator_entry(self, entry: AccumulatorEntry) -> AccumulatorEntry:
        return AccumulatorEntry(self.of(entry.accumulator), self._context(entry.context), entry.failure)

    def _custom_gradient(self, entry: CustomGradientEntry) -> CustomGradientEntry:
        return CustomGradientEntry(entry.tag, self.of(entry.gradient), [self.of(other) for other in entry.others])
