"""The life of forward accumulators, and what they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from teletape_engine import commands
from teletape_engine.commands.results import Kinds
from teletape_engine.derivatives.query import wants_zeros
from teletape_engine.errors import InvalidArgumentError, PoisonedError, StructureMismatchError, TapeStateError
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.values import Value, Variable, kind_of
from teletape_engine.session.entries import Entry, Poison
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State


@dataclass
class AccumulatorEntry(Entry):
    """An accumulator, and the context where it was last active."""

    word = "an accumulator"
    kind = "accumulator"
    accumulator: Accumulator
    context: Executor
    failed: str | None = None  #: Why one of its primals or tangents was never made.

    def facts(self) -> dict[str, Any]:
        """State and size."""
        active = self.accumulator in self.context.accumulators
        return {"recording": active, "tangents": len(self.accumulator.tangents())}

    def values(self) -> Iterator[Any]:
        """The tangents."""
        return iter(self.accumulator.tangents())

    def close(self) -> None:
        """It follows no more."""
        if self.accumulator in self.context.accumulators:
            self.context.leave(self.accumulator)


@handles(commands.AccumulatorOpen)
def accumulator_open(state: State, command: commands.AccumulatorOpen) -> None:
    """An accumulator, active in the current context; primals and tangents that failed are passed over."""
    held = AccumulatorEntry(Accumulator(state.declarations.no_gradient), state.current)
    _watch(state, held, command)
    state.name(command.id, held)
    state.current.accumulate(held.accumulator)


def _watch(
    state: State, held: AccumulatorEntry, command: commands.AccumulatorOpen | commands.AccumulatorResume
) -> None:
    if len(command.primals) != len(command.tangents):
        raise InvalidArgumentError(
            f"{len(command.primals)} primals, but {len(command.tangents)} tangents: give one for each"
        )
    for at, (name, given) in enumerate(zip(command.primals, command.tangents, strict=True)):
        if name in command.primals[:at]:
            raise InvalidArgumentError(
                f"the id {name!r} was specified as a primal multiple times: name it once, with the sum of its tangents"
            )
        poison = next((one for one in map(state.entries.get, _ids(name, given)) if isinstance(one, Poison)), None)
        if poison is not None:
            held.failed = held.failed or poison.cause
            continue
        primal = state.find(name, (Value, Variable))
        held.accumulator.watch(primal, state.value(given, like=primal.spec))


def _ids(*inputs: commands.Input) -> list[commands.Id]:
    return [one for one in inputs if isinstance(one, int | str)]


@handles(commands.AccumulatorClose)
def accumulator_close(state: State, command: commands.AccumulatorClose) -> None:
    """It follows no more."""
    held = state.find(command.accumulator, AccumulatorEntry)
    held.context.leave(held.accumulator)


@handles(commands.AccumulatorResume)
def accumulator_resume(state: State, command: commands.AccumulatorResume) -> None:
    """It follows again, in the current context, and with it what it is given."""
    held = state.find(command.accumulator, AccumulatorEntry)
    if held.accumulator in held.context.accumulators and held.context is not state.current:
        raise TapeStateError(
            f"accumulator {command.accumulator!r} is recording in another context: close it there first"
        )
    _watch(state, held, command)
    held.context = state.current
    state.current.accumulate(held.accumulator)


@handles(commands.Jvp)
def ask(state: State, command: commands.Jvp) -> None:
    """The targets' tangents under their ids, and which there are as the answer."""
    held = state.find(command.accumulator, AccumulatorEntry)
    zeros = wants_zeros(command.unconnected)
    if len(command.outputs) != len(command.targets):
        raise InvalidArgumentError(f"{len(command.targets)} targets, but {len(command.outputs)} output ids")
    targets = [state.find(one, (Value, Variable)) for one in command.targets]
    found = [held.accumulator.tangent(one) for one in targets]
    if zeros:
        for k, target in enumerate(targets):
            found[k] = state.current.full(target.spec, 0) if found[k] is None else found[k]
    kinds = tuple([kind_of(one).value for one in found])
    if command.predicted is not None and kinds != command.predicted:
        if held.failed is not None:
            raise PoisonedError(held.failed, id=command.accumulator)
        raise StructureMismatchError(
            f"the tangents of {list(command.targets)} are {list(kinds)}, predicted was {list(command.predicted)}: the "
            "caller's catalogue or accumulator differs from the server's",
            kinds=list(kinds),
        )
    for name, value in zip(command.outputs, found, strict=True):
        if name is not None and value is not None:
            state.name(name, value)
    state.results.append(Kinds(state.index, kinds))
