"""The question why."""

from __future__ import annotations

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands.results import Facts
from teletape_engine.explain.explain import explain, explain_numbers
from teletape_engine.recording.values import Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site


@handles(commands.Explain)
def why(state: State, command: commands.Explain) -> None:
    """An explanation for each source, as facts."""
    tape = state.find(command.tape, TapeEntry).tape
    kinds = (Value, Variable, SlicesValue)
    targets = [state.find(one, kinds) for one in command.targets]
    sources = [state.find(one, kinds) for one in command.sources]
    targets, sources = (
        [one.values if isinstance(one, SlicesValue) else one for one in many] for many in (targets, sources)
    )
    found = explain(
        tape,
        targets,
        sources,
        logs=state.provenance_logs(),
        departures=state.departures,
        declarations=state.declarations,
        format_where=sent_call_site,
    )
    state.memory.spend(sum([one.spec.nbytes for one in sources]), "the explanation")
    found = explain_numbers(state.current, tape, targets, sources, found, declarations=state.declarations)
    state.results.append(
        Facts(state.index, {"explanations": [one.with_call_sites(sent_call_site).facts() for one in found]})
    )
