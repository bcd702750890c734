"""Questions to tapes: what they ask is found under the ids of the command, and its structure is the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from teletape_engine import commands
from teletape_engine.commands import Id
from teletape_engine.commands.results import Kinds
from teletape_engine.derivatives import jacobian, second_order
from teletape_engine.derivatives.gradient import gradient as ask
from teletape_engine.derivatives.jacobian import Options
from teletape_engine.errors import InvalidArgumentError, StructureMismatchError
from teletape_engine.programs.batched import StandIn, over_rows, over_values
from teletape_engine.recording.custom import Custom, ProgramGradient
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable, kind_of
from teletape_engine.session.handlers.registry import does
from teletape_engine.session.state import Held, HeldTape, State


@does(commands.Gradient)
def gradient(state: State, command: commands.Gradient) -> None:
    """The sources' cotangents."""
    _check_outputs(command.outputs, len(command.sources))
    found = ask(state.current, **question(state, command), retain_tape=command.retain_tape)
    answer(state, command.outputs, found, command.targets, command.predicted)


@does(commands.Jacobian)
def whole(state: State, command: commands.Jacobian) -> None:
    """The Jacobian of one target, for each source."""
    tape = _tape(state, command)
    _check_outputs(command.outputs, len(command.sources))
    [target] = _asked(state, [_only(command.targets, "target")])
    found = jacobian.jacobian(state.current, tape, target, _asked(state, command.sources), _options(state, command))
    answer(state, command.outputs, found, command.targets, command.predicted)


@does(commands.BatchJacobian)
def by_example(state: State, command: commands.BatchJacobian) -> None:
    """The Jacobian of each example."""
    tape = _tape(state, command)
    target, source = _asked(state, [_only(command.targets, "target"), _only(command.sources, "source")])
    found = jacobian.batch_jacobian(state.current, tape, target, source, _options(state, command))
    answer(state, command.outputs, [found], command.targets, None)


@does(commands.Vjps)
def stacked(state: State, command: commands.Vjps) -> None:
    """The gradients for many cotangents."""
    tape = _tape(state, command)
    _check_outputs(command.outputs, len(command.sources))
    targets = _asked(state, command.targets)
    seeds = _seeds(state, command.output_gradients, targets)
    found = jacobian.vjps(state.current, tape, targets, _asked(state, command.sources), seeds, _options(state, command))
    answer(state, command.outputs, found, command.targets, command.predicted)


@does(commands.Hessian)
def hessian(state: State, command: commands.Hessian) -> None:
    """Second derivatives by pairs of sources."""
    tape = _tape(state, command)
    _check_outputs(command.outputs, len(command.sources) ** 2, "pairs of sources")
    targets, sources = _asked(state, command.targets), _asked(state, command.sources)
    rows = second_order.hessian(state.current, tape, targets, sources, _options(state, command))
    found = [one for row in rows for one in row]
    answer(state, command.outputs, found, command.targets, command.predicted)


@does(commands.Hvp)
def hvp(state: State, command: commands.Hvp) -> None:
    """The Hessian times a vector."""
    tape = _tape(state, command)
    _check_outputs(command.outputs, len(command.sources))
    targets, sources = _asked(state, command.targets), _asked(state, command.sources)
    vectors = [
        state.value(one, like=source.spec) for one, source in zip(command.vectors, sources, strict=False)
    ]  # curvature.hvp refuses another count
    options = Options(
        zeros=command.unconnected == "zero",
        no_gradient=state.no_gradient,
        retain_tape=command.retain_tape,
        registered=state.registered,
        answer=partial(over_values, state.current, _stand_in(state, command)),
    )
    found = second_order.hvp(state.current, tape, targets, sources, vectors, options)
    answer(state, command.outputs, found, command.targets, command.predicted)


# ------------------------------------------------------------------------------------------------------------- shared
def _tape(state: State, command: Any) -> Tape:
    held = state.find(command.tape, HeldTape)
    if command.unconnected not in ("none", "zero"):
        raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {command.unconnected!r}")
    return held.tape


def _check_outputs(outputs: Sequence[Id | None], count: int, what: str = "sources") -> None:
    if len(outputs) != count:
        raise InvalidArgumentError(f"{count} {what}, but {len(outputs)} output ids")


def _asked(state: State, names: Sequence[Id]) -> list[Any]:
    """Targets or sources: a variable stays itself."""
    return [state.find(name, (Value, Variable)) for name in names]


def _only(ids: Sequence[commands.Id], what: str) -> commands.Id:
    """The single id of the list.

    Raises:
        InvalidArgumentError: There are none or several.
    """
    if len(ids) != 1:
        raise InvalidArgumentError(f"{what}s: this question takes one {what}, found {len(ids)}")
    return ids[0]


def _seeds(state: State, given: Sequence[commands.Input | None], targets: Sequence[Any]) -> list[Value | None]:
    if len(given) != len(targets):
        raise InvalidArgumentError(f"{len(targets)} targets, but {len(given)} seeds: one for each, null for ones")
    return [
        None if seed is None else state.value(seed, like=target.spec)
        for seed, target in zip(given, targets, strict=True)
    ]


def _options(state: State, command: Any) -> Options:
    for name in ("max_bytes", "chunk_size"):
        if getattr(command, name) == 0:
            raise InvalidArgumentError(f"{name} must be 1 or more, or null")
    state.watch.loops(state.index)  # its chunks are told as iterations
    return Options(
        zeros=command.unconnected == "zero",
        no_gradient=state.no_gradient,
        max_bytes=command.max_bytes,
        chunk_size=command.chunk_size,
        retain_tape=command.retain_tape,
        registered=state.registered,
        custom=partial(over_rows, state.current, _stand_in(state, command)),
        answer=partial(over_values, state.current, _stand_in(state, command)),
    )


@dataclass
class HeldGradient(Held):
    """What stands in for a custom call's gradient function in questions that do not stop.

    Attributes:
        tag: The call's.
        gradient: The program.
        others: What it takes behind the cotangents.
    """

    word = "a gradient program"
    kind = "gradient"
    tag: Id
    gradient: ProgramGradient
    others: Sequence[Any]

    def facts(self) -> dict[str, Any]:
        """The call's tag."""
        return {"tag": self.tag}

    def alive(self) -> Iterator[Any]:
        """What else the program takes."""
        for one in self.others:
            yield one.value if isinstance(one, Variable) else one


def _stand_in(state: State, command: Any) -> StandIn:
    held = {
        one.tag: (one.gradient, one.others)
        for one in (state.find(name, HeldGradient) for name in command.custom_gradients)
    }
    return lambda stop: held.get(stop.bound.tag) if isinstance(stop.bound, Custom) else None


def question(state: State, command: commands.Gradient | commands.BackwardBegin) -> dict[str, Any]:
    """What a gradient is asked, looked up, as `teletape_engine.derivatives.gradient` takes it behind the recorder."""
    tape = _tape(state, command)
    targets, sources = _asked(state, command.targets), _asked(state, command.sources)
    seeds = None if command.output_gradients is None else _seeds(state, command.output_gradients, targets)
    state.memory.spend(sum([one.spec.nbytes for one in sources]), "the gradient")
    return {
        "tape": tape,
        "targets": targets,
        "sources": sources,
        "seeds": seeds,
        "zeros": command.unconnected == "zero",
        "no_gradient": state.no_gradient,
        "registered": state.registered,
    }


def answer(
    state: State,
    outputs: Sequence[Id | None],
    found: Sequence[Any],
    targets: Sequence[Id],
    predicted: Sequence[str] | None,
) -> None:
    """Names what was found, and answers its structure.

    Raises:
        StructureMismatchError: It is not what the caller predicted.
    """
    kinds = tuple([kind_of(one).value for one in found])
    if predicted is not None and kinds != predicted:
        raise StructureMismatchError(
            f"the gradient of {list(targets)} has the structure {list(kinds)}, predicted was {list(predicted)}: the "
            "caller's catalogue or tape differs from the server's",
            kinds=list(kinds),
        )
    for name, value in zip(outputs, found, strict=True):
        if name is not None and value is not None:
            state.name(name, value)
    state.results.append(Kinds(state.index, kinds))
