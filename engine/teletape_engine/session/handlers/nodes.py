"""Nodes of a tape's graph, one at a time: their values, gradients and explanations. Nothing of the session changes.

A node has the id that `diagram.facts` gives it: n and the position of its call, or w and the number of what is watched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from teletape_engine.catalogue.binding import Select
from teletape_engine.commands import Id
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.diagram.facts import leaves_of
from teletape_engine.diagram.histogram import histogram
from teletape_engine.errors import TapeConsumedError, UnknownIdError
from teletape_engine.explain.explain import explain_numbers
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import SpecValue, Uid, Unrecorded, Value, Variable, kind_of
from teletape_engine.session.entries import TapeEntry
from teletape_engine.session.handlers.explain import reasons_of_nulls, structural_explanations
from teletape_engine.session.state import State, sent_call_site
from teletape_engine.spec import Spec

#: Watched values that a question about a node is about, unless it names some.
MOST_SOURCES: Final = 64


@dataclass(frozen=True)
class GraphNode:
    """A node of a tape's graph: a call, or something that the tape watches.

    Attributes:
        id: In the graph.
        kind: op, variable or tensor.
        op: The op of a call.
        uid: Of its value.
        spec: Of its value.
        where: The call site, if the caller sent one.
    """

    id: str
    kind: str
    op: str | None
    uid: Uid
    spec: Spec
    where: str | None = None


def node_of(state: State, tape: Tape, node_id: str) -> GraphNode:
    """Returns the node with that id.

    Raises:
        UnknownIdError: The graph has none.
    """
    parsed = re.fullmatch(r"([nw])(0|[1-9][0-9]{0,11})", node_id)
    if parsed is not None:
        position = int(parsed[2])
        if parsed[1] == "n" and position < tape.length:
            plan, _, output, _, where = tape.structure()[position]
            op = getattr(plan.bound, "label", None) or plan.bound.name
            if len(plan.bound.outputs) > 1:  # it stands for the first of its results that is on the tape
                plan, _, output, _, _ = tape.structure()[position + 1]
            return GraphNode(node_id, "op", op, output, plan.bound.spec, sent_call_site(where))
        if parsed[1] == "w":
            for node in watched_nodes(state, tape):
                if node.id == node_id:
                    return node
    raise UnknownIdError(
        f"the tape's graph has no node {node_id!r} that can be inspected: n0, n1, … are its {tape.length} ops, w0, w1, "
        "… what it watches",
        id=node_id,
    )


def watched_nodes(state: State, tape: Tape) -> list[GraphNode]:
    """Returns the nodes of what the tape watches, in the order of their ids; not of what is gone and was never used."""
    leaves, specs = leaves_of(tape)
    specs |= {entry.uid: entry.spec for entry in state.entries.values() if isinstance(entry, Value)}
    return [
        GraphNode(f"w{position}", kind, None, uid, specs[uid])
        for position, (uid, kind) in enumerate(leaves.items())
        if uid in specs
    ]


def describe_node(state: State, tape_id: Id, node_id: str, bins: int) -> dict[str, Any]:
    """Returns the facts about a node, with the histogram of its value if the session has that value."""
    tape = state.find(tape_id, TapeEntry).tape
    node = node_of(state, tape, node_id)
    value = _value(state, tape, node.uid)
    spec = node.spec if value is None else value.spec
    counted = None
    if value is not None:
        counted = _histogram(state, value, bins)
    return {
        "node": node.id,
        "kind": node.kind,
        "op": node.op,
        "names": _ids(state, node.uid),
        "dtype": spec.dtype.name,
        "shape": list(spec.shape),
        "bytes": spec.nbytes,
        "where": node.where,
        "inputs": _inputs(state, tape, node),
        "value": counted,
    }


def node_gradient(
    state: State, tape_id: Id, node_id: str, source_ids: Sequence[str], bins: int
) -> list[dict[str, Any]]:
    """Returns the gradient of a node by what the tape watches: kinds, shapes and histograms. The tape stays as it is.

    Args:
        state: Of the session.
        tape_id: The tape.
        node_id: The target.
        source_ids: Nodes of the graph; empty: the first `MOST_SOURCES` that the tape watches.
        bins: Of each histogram.

    Raises:
        TapeConsumedError: The tape has answered.
        UnknownIdError: There is no such node.
        UnimplementedError: The pass stops at a function of the caller's.
    """
    tape = state.find(tape_id, TapeEntry).tape
    target, sources = _target(state, tape, node_id), _sources(state, tape, source_ids)
    if tape.consumed:
        raise TapeConsumedError(f"tape {tape_id!r} has answered, and keeps nothing for another gradient", id=tape_id)
    values = [_recorded(tape, source) for source in sources]
    recorder = Executor(state.backend, state.memory, state.monitor)  # its own: nothing else records this
    recorder.admit(sum([value.spec.nbytes for value in values]), "the gradient")
    query = GradientQuery(tape, [target], values, retain_tape=True, declarations=state.declarations)
    derivatives = gradient(recorder, query)
    why = reasons_of_nulls(state, tape, [target], values, derivatives) or (None,) * len(values)
    answers = []
    for source, derivative, reason in zip(sources, derivatives, why, strict=True):
        value = None if derivative is None else getattr(derivative, "values", derivative)
        counted = None if value is None else _histogram(state, value, bins)
        facts = {"kind": kind_of(derivative).value, "dtype": source.spec.dtype.name, "shape": list(source.spec.shape)}
        answers.append(_source_facts(state, source) | facts | {"value": counted, "why": reason})
    return answers


def explain_node(state: State, tape_id: Id, node_id: str, source_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Returns why the gradient of a node is what it is for each source; see `node_gradient`."""
    tape = state.find(tape_id, TapeEntry).tape
    target, sources = _target(state, tape, node_id), _sources(state, tape, source_ids)
    values = [_recorded(tape, source) for source in sources]
    recorder = Executor(state.backend, state.memory, state.monitor)
    explanations = structural_explanations(state, tape, [target], values)
    explanations = explain_numbers(recorder, tape, [target], values, explanations, declarations=state.declarations)
    return [
        _source_facts(state, source) | explanation.with_call_sites(sent_call_site).facts()
        for source, explanation in zip(sources, explanations, strict=True)
    ]


def tensor_histogram(state: State, name: Id, bins: int) -> dict[str, Any]:
    """Returns the histogram of a tensor's or a variable's elements; of a sparse gradient's rows."""
    entry: Any = state.entries.get(name)
    value = entry.value if isinstance(entry, Variable) else getattr(entry, "values", entry)
    return _histogram(state, value, bins)


# ------------------------------------------------------------------------------------------------------------ look-ups
def _histogram(state: State, value: Value, bins: int) -> dict[str, Any]:
    check = state.current.check_cancelled
    return histogram(value.array, value.spec, bins, xp=state.backend.xp, check_cancelled=check)


def _target(state: State, tape: Tape, node_id: str) -> Any:
    return _recorded(tape, node_of(state, tape, node_id))


def _sources(state: State, tape: Tape, ids: Sequence[str]) -> list[GraphNode]:
    if ids:
        return [node_of(state, tape, id) for id in ids]
    return [node for node in watched_nodes(state, tape) if node.spec.differentiable][:MOST_SOURCES]


def _recorded(tape: Tape, node: GraphNode) -> Any:
    """A node's value as a target or source: a question needs no more than which value it is, and its spec."""
    return tape.variables.get(node.uid) or SpecValue(node.spec, node.uid)


def _source_facts(state: State, node: GraphNode) -> dict[str, Any]:
    ids = _ids(state, node.uid)
    return {"source": node.id, "name": str(ids[0]) if ids else None}


def _ids(state: State, uid: Uid) -> list[Id]:
    """The ids of a value, names before numbers."""
    ids = [name for name, entry in state.entries.items() if isinstance(entry, Value | Variable) and entry.uid == uid]
    return sorted(ids, key=lambda name: isinstance(name, int))


def _value(state: State, tape: Tape, uid: Uid) -> Value | None:
    """The value of a uid, if a variable, an id or the tape has it."""
    if uid in tape.variables:
        value: Value = tape.variables[uid].value
        return value
    for entry in state.entries.values():
        if isinstance(entry, Value) and entry.uid == uid:
            return entry
    maker, index = uid, 0
    for plan, inputs, output, _, _ in tape.nodes:
        if output == uid and isinstance(plan.bound, Select):
            maker, index = inputs[0] or 0, plan.bound.index
    for plan, inputs, output, residuals, _ in tape.nodes:
        if output == maker or uid in inputs:
            values = [*inputs, *[None] * index, uid if output == maker else None]
            for pick, residual in zip(plan.picks, residuals, strict=False):
                if pick < len(values) and values[pick] == uid and not isinstance(residual, Unrecorded):
                    return residual  # type: ignore[no-any-return]  # what a plan keeps of an input or result is a value
    return None


def _inputs(state: State, tape: Tape, node: GraphNode) -> list[dict[str, Any]]:
    """The inputs of a call: names, specs, and the nodes that made them."""
    if node.op is None:
        return []
    structure = tape.structure()
    position = int(node.id[1:])
    plan, inputs, _, _, _ = structure[position]
    makers = {output: f"n{number}" for number, (_, _, output, _, _) in enumerate(structure[:position])}
    makers |= {watched.uid: watched.id for watched in watched_nodes(state, tape) if watched.uid not in makers}
    return [
        {
            "name": plan.bound.input_name(index),
            "node": makers.get(uid) if uid is not None else None,
            "dtype": None if uid is None else spec.dtype.name,
            "shape": [] if uid is None else list(spec.shape),
        }
        for index, (uid, spec) in enumerate(zip(inputs, plan.bound.specs, strict=True))
    ]
