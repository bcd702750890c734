"""Forward accumulators: open, close, resume, and the tangents that they have computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from teletape_engine import commands
from teletape_engine.derivatives.query import wants_zeros
from teletape_engine.errors import InvalidArgumentError, PoisonedError, TapeStateError
from teletape_engine.explain.forward import explain_tangents
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.context import Context
from teletape_engine.recording.values import Value, Variable, kind_of
from teletape_engine.session.entries import Entry, Poison
from teletape_engine.session.handlers.explain import Reasons
from teletape_engine.session.handlers.questions import answer_under
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site


@dataclass
class AccumulatorEntry(Entry):
    """A forward accumulator.

    Attributes:
        accumulator: The accumulator.
        context: The context where it was last active.
        failure: Why a primal or tangent of it was never made; None: all were.
    """

    word = "an accumulator"
    kind = "accumulator"
    accumulator: Accumulator
    context: Context
    failure: str | None = None

    def facts(self) -> dict[str, Any]:
        """State and size."""
        active = self.accumulator in self.context.accumulators
        return {"recording": active, "tangents": len(self.accumulator.tangents())}

    def values(self) -> Iterator[Any]:
        """The tangents."""
        return iter(self.accumulator.tangents())

    def followed(self) -> int:
        """The values that have a tangent."""
        return len(self.accumulator.tangents())

    def close(self) -> None:
        """Stops following ops."""
        if self.accumulator in self.context.accumulators:
            self.context.close_accumulator(self.accumulator)


@handles(commands.AccumulatorOpen)
def accumulator_open(state: State, command: commands.AccumulatorOpen) -> None:
    """Opens an accumulator in the current context; primals and tangents that failed are skipped."""
    entry = AccumulatorEntry(Accumulator(state.declarations.no_gradient), state.current.context)
    _watch(state, entry, command)
    state.name(command.id, entry)
    state.current.context.open_accumulator(entry.accumulator)


@handles(commands.AccumulatorClose)
def accumulator_close(state: State, command: commands.AccumulatorClose) -> None:
    """The accumulator stops following ops."""
    entry = state.find(command.accumulator, AccumulatorEntry)
    entry.context.close_accumulator(entry.accumulator)


@handles(commands.AccumulatorResume)
def accumulator_resume(state: State, command: commands.AccumulatorResume) -> None:
    """The accumulator follows ops again, in the current context, with further primals."""
    entry = state.find(command.accumulator, AccumulatorEntry)
    if entry.accumulator in entry.context.accumulators and entry.context is not state.current.context:
        raise TapeStateError(
            f"accumulator {command.accumulator!r} is recording in another context: close it there first"
        )
    _watch(state, entry, command)
    entry.context = state.current.context
    state.current.context.open_accumulator(entry.accumulator)


def _watch(
    state: State, entry: AccumulatorEntry, command: commands.AccumulatorOpen | commands.AccumulatorResume
) -> None:
    if len(command.primals) != len(command.tangents):
        raise InvalidArgumentError(
            f"{len(command.primals)} primals, but {len(command.tangents)} tangents: give one for each"
        )
    for position, (name, tangent) in enumerate(zip(command.primals, command.tangents, strict=True)):
        if name in command.primals[:position]:
            raise InvalidArgumentError(
                f"the id {name!r} was specified as a primal multiple times: name it once, with the sum of its tangents"
            )
        ids = [operand for operand in (name, tangent) if isinstance(operand, int | str)]
        poison = next((each for each in map(state.entries.get, ids) if isinstance(each, Poison)), None)
        if poison is not None:
            entry.failure = entry.failure or poison.cause
            continue
        primal = state.find(name, (Value, Variable))
        try:
            entry.accumulator.watch(primal, state.value(tangent, like=primal.spec))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"tangent {position} (from 0): {error.message}") from None


@handles(commands.Jvp)
def jvp(state: State, command: commands.Jvp) -> None:
    """Names the targets' tangents, and answers their kinds."""
    entry = state.find(command.accumulator, AccumulatorEntry)
    zeros = wants_zeros(command.unconnected)
    if len(command.outputs) != len(command.targets):
        raise InvalidArgumentError(f"{len(command.targets)} targets, but {len(command.outputs)} output ids")
    targets = [state.find(name, (Value, Variable)) for name in command.targets]
    tangents = [entry.accumulator.tangent(target) for target in targets]
    if zeros:
        tangents = [
            state.current.full(target.spec, 0) if tangent is None else tangent
            for target, tangent in zip(targets, tangents, strict=True)
        ]
    kinds = tuple([kind_of(tangent).value for tangent in tangents])
    if entry.failure is not None and command.predicted is not None and kinds != command.predicted:
        raise PoisonedError(entry.failure, id=command.accumulator)
    why = _reasons(state, entry.accumulator, targets, tangents)
    answer_under(state, command.outputs, tangents, command.targets, command.predicted, why=why, what="tangents")


def _reasons(state: State, accumulator: Accumulator, targets: Sequence[Any], tangents: Sequence[Any]) -> Reasons:
    """Why tangents are none; empty if none is, or if the batch is not explained."""
    missing = [target for target, tangent in zip(targets, tangents, strict=True) if tangent is None]
    if not state.explains or not missing:
        return ()
    explanations = explain_tangents(
        missing,
        accumulator.followed,
        tapes=state.tapes(),
        logs=state.provenance_logs(),
        declarations=state.declarations,
        format_where=sent_call_site,
        check_cancelled=state.current.check_cancelled,
    )
    reasons = iter([explanation.with_call_sites(sent_call_site).brief() for explanation in explanations])
    return tuple([None if tangent is not None else next(reasons) for tangent in tangents])
