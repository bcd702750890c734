"""Questions to tapes."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands
from teletape_engine.answers import Kinds
from teletape_engine.commands import Id
from teletape_engine.errors import InvalidArgumentError, StructureMismatchError
from teletape_engine.executor import Value
from teletape_engine.gradient import gradient as ask
from teletape_engine.graph import Variable
from teletape_engine.state import HeldTape, State
from teletape_engine.tape import kind_of
from teletape_engine.verbs.registry import does


@does(commands.Gradient)
def gradient(state: State, command: commands.Gradient) -> None:
    """The sources' cotangents under their ids, and the structure as the answer."""
    held = state.find(command.tape, HeldTape)
    if command.unconnected not in ("none", "zero"):
        raise InvalidArgumentError(f"Unknown value for unconnected_gradients: {command.unconnected!r}")
    if len(command.outputs) != len(command.sources):
        raise InvalidArgumentError(f"{len(command.sources)} sources, but {len(command.outputs)} output ids")
    targets = [_question(state, one) for one in command.targets]
    sources = [_question(state, one) for one in command.sources]
    seeds: list[Value | None] | None = None
    if command.seeds is not None:
        if len(command.seeds) != len(targets):
            raise InvalidArgumentError(
                f"{len(targets)} targets, but {len(command.seeds)} seeds: one for each, null for ones"
            )
        seeds = [
            None if seed is None else state.value(seed, like=target.spec)
            for seed, target in zip(command.seeds, targets, strict=True)
        ]
    state.memory.spend(sum([one.spec.nbytes for one in sources]), "the gradient")
    found = ask(
        state.current,
        held.tape,
        targets,
        sources,
        seeds=seeds,
        zeros=command.unconnected == "zero",
        no_gradient=state.no_gradient,
    )
    kinds = tuple([kind_of(one).value for one in found])
    if command.predicted is not None and kinds != command.predicted:
        raise StructureMismatchError(
            f"the gradient of {list(command.targets)} has the structure {list(kinds)}, predicted was "
            f"{list(command.predicted)}: the caller's catalogue or tape differs from the server's",
            kinds=list(kinds),
        )
    for name, value in zip(command.outputs, found, strict=True):
        if name is not None and value is not None:
            state.name(name, value)
    state.results.append(Kinds(state.index, kinds))


def _question(state: State, name: Id) -> Any:
    """A target or a source: a variable stays itstate."""
    return state.find(name, (Value, Variable))
