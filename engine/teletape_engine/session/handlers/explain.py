"""Explanations: why a gradient is None, zero or not finite."""

from __future__ import annotations

from typing import Any

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.explain.explain import explain, explain_numbers
from teletape_engine.explain.explanation import Explanation
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site


@handles(commands.Explain)
def explain_gradient(state: State, command: commands.Explain) -> None:
    """Answers an explanation for each source, from structure and from the tape's numbers."""
    tape = state.find(command.tape, TapeEntry).tape
    targets = [differentiable(state, name) for name in command.targets]
    sources = [differentiable(state, name) for name in command.sources]
    explanations = structural_explanations(state, tape, targets, sources)
    explanations = explain_numbers(state.current, tape, targets, sources, explanations, declarations=state.declarations)
    facts = [explanation.with_call_sites(sent_call_site).facts() for explanation in explanations]
    state.results.append(Facts(state.index, {"explanations": facts}))


def differentiable(state: State, name: Id) -> Any:
    """A target or source by its id: a variable stays a variable, of a sparse gradient the values count."""
    entry = state.find(name, (Value, Variable, SlicesValue))
    return entry.values if isinstance(entry, SlicesValue) else entry


def structural_explanations(state: State, tape: Tape, targets: list[Any], sources: list[Any]) -> list[Explanation]:
    """What structure alone says, with the session's provenance logs, reads and declarations."""
    return explain(
        tape,
        targets,
        sources,
        logs=state.provenance_logs(),
        value_reads=state.value_reads,
        declarations=state.declarations,
        format_where=sent_call_site,
        check_cancelled=state.current.check_cancelled,
    )
