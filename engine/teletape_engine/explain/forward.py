"""Why forward mode has no tangent for a value: the nearest cut between the value and what the accumulator follows."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from teletape_engine.derivatives.query import Declarations
from teletape_engine.explain.cuts import Cuts
from teletape_engine.explain.explanation import Explanation
from teletape_engine.explain.paths import op_name, path_fields
from teletape_engine.explain.provenance_graph import Edge, ProvenanceGraph
from teletape_engine.explain.reasons import Reason
from teletape_engine.explain.structural import TIMES, StructuralExplainer
from teletape_engine.recording.provenance import Event, Records
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid


def explain_tangents(
    targets: Sequence[Any],
    followed: Container[Uid],
    *,
    tapes: Iterable[Tape],
    logs: Sequence[Records],
    declarations: Declarations,
    format_where: Callable[[Any], str | None],
    check_cancelled: Callable[[], None],
) -> list[Explanation]:
    """Explains why values have no tangent.

    Args:
        targets: Recorded values or variables without a tangent.
        followed: The values and variables that have one, by uid.
        tapes: Those of the session, which have the record of some ops.
        logs: The provenance logs of its contexts, which have that of the others.
        declarations: Those of the session.
        format_where: Turns a call site into text.
        check_cancelled: What it raises ends the explanation.
    """
    graphs = [ProvenanceGraph(tape, logs) for tape in (*tapes, Tape())]
    explainers = [
        StructuralExplainer(Cuts(graph, declarations, check_cancelled), targets, None, format_where) for graph in graphs
    ]
    explanations = []
    for target in targets:
        check_cancelled()
        explanations.append(_explained(target, followed, explainers))
    return explanations


def _explained(target: Any, followed: Container[Uid], explainers: Sequence[StructuralExplainer]) -> Explanation:
    if not target.spec.differentiable:
        return Explanation(
            Reason.TARGET_DTYPE, f"the target has the dtype {target.spec.dtype.name}, which has no gradient"
        )
    late: Explanation | None = None
    for explainer in explainers:
        path = _path(explainer.graph, target.uid, followed)
        if not path:
            continue
        explanation = explainer.first_cut(path, passing=TIMES)
        if explanation is not None:
            return explanation
        first = next((edge for edge in reversed(path) if not isinstance(edge.origin.what, Event)), path[-1])
        text = f"op {op_name(first)!r} ran while the accumulator did not follow it"
        fields = path_fields(explainer.cuts, path) | {"op": op_name(first), "where": first.origin.where}
        late = late or Explanation(Reason.COMPUTED_WHILE_STOPPED, text, **fields)
    return late or Explanation(Reason.UNCONNECTED, "the target was computed without the primals")


def _path(graph: ProvenanceGraph, target: Uid, followed: Container[Uid]) -> list[Edge]:
    """The edges from a value back to the nearest value that has a tangent; empty if there is none."""
    arrivals: dict[Uid, Edge | None] = {target: None}
    before: dict[Uid, Uid] = {}
    pending = [target]
    for uid in pending:
        for edge in graph.edges(uid):
            if edge.input in arrivals:
                continue
            arrivals[edge.input], before[edge.input] = edge, uid
            if edge.input not in followed:
                pending.append(edge.input)
                continue
            path: list[Edge] = []
            position = edge.input
            while (arrival := arrivals[position]) is not None:
                path.append(arrival)
                position = before[position]
            path.reverse()
            return path
    return []
