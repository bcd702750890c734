"""Looking at a tape: what it keeps, and its picture as facts."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.diagram.facts import MAX_NODES, diagram
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.explain.explain import explain
from teletape_engine.recording.memory import footprint
from teletape_engine.recording.values import Uid, Value, Variable
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site


@handles(commands.TapeDescribe)
def describe(state: State, command: commands.TapeDescribe) -> None:
    """Facts, and the bytes behind it."""
    held = state.find(command.tape, TapeEntry)
    ids = np.asarray([] if command.also_released is None else command.also_released)
    if ids.size and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"along: a list of integer ids, found {ids.dtype.name}{list(ids.shape)}")
    also_released = [id(state.entries[one]) for one in dict.fromkeys(ids.tolist()) if one in state.entries]
    found = footprint(held.tape, state.backend.base, also_released)
    state.results.append(Facts(state.index, held.facts() | {"bytes": found.kept, "frees": found.freed}))


@handles(commands.TapeGraph)
def graph(state: State, command: commands.TapeGraph) -> None:
    """The diagram, with the names that people gave."""
    tape = state.find(command.tape, TapeEntry).tape
    targets, sources = ([_followed(state, one) for one in many] for many in (command.targets, command.sources))
    names: dict[Uid, str] = {}
    for name, thing in state.entries.items():
        if name.__class__ is str and thing.__class__ is Value and not name.startswith("_"):
            names.setdefault(thing.uid, name)
    found = explain(
        tape,
        targets,
        sources if targets else (),
        logs=state.provenance_logs(),
        departures=state.departures,
        declarations=state.declarations,
        format_where=sent_call_site,
    )
    facts = diagram(
        tape,
        targets=targets,
        sources=sources,
        explanations={source.uid: one for source, one in zip(sources, found, strict=False)},
        size=lambda value: state.backend.base(value.array),
        name=names.get,
        format_where=sent_call_site,
        max_nodes=MAX_NODES if command.nodes is None else command.nodes,
    )
    state.results.append(Facts(state.index, facts))


def _followed(state: State, name: Id) -> Any:
    """A target or source: a variable stays one, of slices the values count."""
    found = state.find(name, (Value, Variable, SlicesValue))
    return found.values if isinstance(found, SlicesValue) else found
