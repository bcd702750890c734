"""The question why."""

from __future__ import annotations

from teletape_engine import commands
from teletape_engine.commands.results import Told
from teletape_engine.explain import explain
from teletape_engine.recording.values import SlicesValue, Value, Variable
from teletape_engine.session.handlers.registry import does
from teletape_engine.session.state import HeldTape, State


@does(commands.Explain)
def why(state: State, command: commands.Explain) -> None:
    """An explanation for each source, as facts."""
    tape = state.find(command.tape, HeldTape).tape
    kinds = (Value, Variable, SlicesValue)
    targets = [state.find(one, kinds) for one in command.targets]
    sources = [state.find(one, kinds) for one in command.sources]
    targets, sources = (
        [one.values if isinstance(one, SlicesValue) else one for one in many] for many in (targets, sources)
    )
    found = explain.explain(
        tape,
        targets,
        sources,
        trails=state.trails(),
        departures=state.departures,
        no_gradient=state.no_gradient,
        registered=state.registered,
        place=_text,
    )
    state.memory.spend(sum([one.spec.nbytes for one in sources]), "the explanation")
    found = explain.numbers(state.current, tape, targets, sources, found, registered=state.registered)
    state.results.append(Told(state.index, {"explanations": [one.placed(_text).facts() for one in found]}))


def _text(where: object) -> str | None:
    """A line as the caller told it."""
    return where if isinstance(where, str) else None
