"""Inspection of a tape: its facts with the bytes that it keeps, and its diagram."""

from __future__ import annotations

from typing import Any

import numpy as np

from teletape_engine import commands
from teletape_engine.commands import Id
from teletape_engine.commands.results import Facts
from teletape_engine.diagram.facts import MAX_NODES, diagram
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.values import Literal, Uid, Value, typed_array
from teletape_engine.session import operations
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.explain import differentiable, structural_explanations
from teletape_engine.session.handlers.registry import handles
from teletape_engine.session.state import State, sent_call_site


@handles(commands.TapeDescribe)
def describe(state: State, command: commands.TapeDescribe) -> None:
    """Answers facts about the tape, its bytes, and those that its release would free."""
    entry = state.find(command.tape, TapeEntry)
    numbers: Any = [] if command.also_released is None else command.also_released
    if isinstance(numbers, Literal):
        numbers = typed_array(numbers, numbers.spec.integer if numbers.spec.kind is int else numbers.spec.alone)
    ids = np.asarray(numbers)
    if ids.size and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
        raise InvalidArgumentError(f"also_released: a list of integer ids, found {ids.dtype.name}{list(ids.shape)}")
    also_released = [id(state.entries[name]) for name in dict.fromkeys(ids.tolist()) if name in state.entries]
    memory = operations.tape_footprint(state.current, entry.tape, also_released)
    state.results.append(Facts(state.index, entry.facts() | {"bytes": memory.residuals, "frees": memory.freed}))


@handles(commands.TapeGraph)
def graph(state: State, command: commands.TapeGraph) -> None:
    """Answers the diagram, with the names that people gave to tensors."""
    tape = state.find(command.tape, TapeEntry).tape
    targets = [differentiable(state, name) for name in command.targets]
    sources = [differentiable(state, name) for name in command.sources]
    explanations = structural_explanations(state, tape, targets, sources) if targets else []
    facts = diagram(
        tape,
        targets=targets,
        sources=sources,
        explanations=explanations,
        max_nodes=MAX_NODES if command.nodes is None else command.nodes,
        **_labels(state),
    )
    state.results.append(Facts(state.index, facts))


def graph_part(state: State, tape: Id, first: int, ops: int, nodes: int) -> dict[str, Any]:
    """Returns the diagram of `ops` calls of a tape, from position `first` on.

    Raises:
        InvalidArgumentError: The tape has no call at that position.
    """
    entry = state.find(tape, TapeEntry)
    length = entry.tape.length
    if first >= length:
        raise InvalidArgumentError(f"first: the tape has {length} ops, numbered from 0; found {first}")
    return diagram(entry.tape, max_nodes=nodes, part=(first, min(first + ops, length)), **_labels(state))


def _labels(state: State) -> dict[str, Any]:
    """What a diagram needs to know of the session: names of tensors, bytes of buffers, call sites."""
    names: dict[Uid, str] = {}
    for name, entry in state.entries.items():
        if isinstance(name, str) and isinstance(entry, Value) and not name.startswith("_"):
            names.setdefault(entry.uid, name)
    return {
        "size": lambda value: state.backend.base(value.array),
        "name": names.get,
        "format_where": sent_call_site,
    }
