"""Explanations from structure alone: whether a gradient reaches a source, and if not, which reason the path shows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from teletape_engine.catalogue.op import Trait
from teletape_engine.explain.cuts import Cuts, zero_derivative_text
from teletape_engine.explain.explanation import Explanation, PathStep
from teletape_engine.explain.paths import EVENT_NAMES, FewestCuts, missing_contribution, op_name, path_fields, step
from teletape_engine.explain.provenance_graph import Edge
from teletape_engine.explain.reasons import MEANINGS, Reason
from teletape_engine.recording.provenance import Event, Return, ValueReads
from teletape_engine.recording.values import Variable

_NAMED: Final = 5  #: Watched variables that a note lists.
_NOTED: Final = 3  #: Further cuts that a note lists.
#: When an op ran that the tape did not record.
TIMES: Final = {
    Reason.COMPUTED_BEFORE_TAPE: "before the tape was open",
    Reason.COMPUTED_AFTER_TAPE: "after the tape had stopped recording",
    Reason.COMPUTED_WHILE_STOPPED: "while the tape was stopped",
    Reason.COMPUTED_BEFORE_RESET: "before the tape was reset",
    Reason.OTHER_CONTEXT: "in another thread or task",
}


class StructuralExplainer:
    """Explains the gradient of some targets on one tape.

    If the gradient's own rules reach the source, there is a gradient. Otherwise the path from a target to the source
    with the fewest cuts shows the reason.

    Args:
        cuts: The cuts in the tape's provenance graph.
        targets: Recorded values or variables.
        value_reads: The values that the program has read.
        format_where: Turns a call site into text.
    """

    def __init__(
        self,
        cuts: Cuts,
        targets: Sequence[Any],
        value_reads: ValueReads | None,
        format_where: Callable[[Any], str | None],
    ) -> None:
        self.cuts, self.graph, self.tape = cuts, cuts.graph, cuts.tape
        self.targets, self.value_reads, self.format_where = targets, value_reads, format_where
        self.target_uids = [target.uid for target in targets]
        tape = self.tape
        self.differentiable = [target for target in targets if target.spec.differentiable]
        self.starts = [
            target.uid
            for target in self.differentiable
            if not isinstance(target, Variable)
            or target.uid in tape.variables
            or (tape.watch_accessed and target.trainable)
        ]
        self.connectivity = cuts.connectivity(self.starts)
        self._paths = FewestCuts(cuts, [target.uid for target in self.differentiable])

    def explain(self, source: Any) -> Explanation:
        """Why the gradient of the targets' sum for this recorded value or variable is what it is."""
        if not self.differentiable and self.targets:
            return self._target_dtype()
        if not source.spec.differentiable:
            text = f"the source has the dtype {source.spec.dtype.name}, which has no gradient"
            return Explanation(Reason.SOURCE_DTYPE, text)
        if self.connectivity.unregistered is not None:
            return self._not_registered(self.connectivity.unregistered)
        path = self._paths.path(source.uid)
        if source.uid in self.connectivity.reached:
            return self._connected(source, path or [])
        return self._none(source, path)

    def _blame(self, edge: Edge) -> dict[str, Any]:
        """The fields of an explanation that blames an edge."""
        return {"op": op_name(edge), "where": step(self.cuts, edge).where, "node": edge.origin.node}

    def _target_dtype(self) -> Explanation:
        target = self.targets[0]
        text = f"the target has the dtype {target.spec.dtype.name}, which has no gradient"
        for edge in self.graph.edges(target.uid):
            if not isinstance(edge.origin.what, Event):
                where, node = edge.origin.where, edge.origin.node
                return Explanation(Reason.TARGET_DTYPE, text, op=op_name(edge), where=where, node=node)
        return Explanation(Reason.TARGET_DTYPE, text)

    def _not_registered(self, node: int) -> Explanation:
        plan, _, _, _, where = self.graph.nodes[node]
        op = plan.bound
        text = f"op {op.name!r} ({op.op_type}) has no gradient registered: a LookupError"
        return Explanation(Reason.NO_GRADIENT_REGISTERED, text, op=op.name, where=where, node=node)

    # ------------------------------------------------------------------------------------------------------ connected
    def _connected(self, source: Any, path: Sequence[Edge]) -> Explanation:
        cuts, fields = self.cuts, path_fields(self.cuts, path)
        flat = next((edge for edge in path if cuts.always_zero(edge)), None)
        if flat is not None and source.uid not in self.connectivity.nonzero:
            assert not isinstance(flat.origin.what, Event)  # it has a derivative
            text = zero_derivative_text(flat.origin.what)
            return Explanation(Reason.ZERO_DERIVATIVE, text, **self._blame(flat), **fields)
        missing = missing_contribution(cuts, self.starts, source.uid)
        if missing is None:
            steps = f"{len(path)} step{'s' if len(path) != 1 else ''}"
            text = f"connected through {steps}" if path else "the source is the target"
            return Explanation(Reason.CONNECTED, text, **fields)
        reason = cuts.reason(missing)
        assert reason is not None
        text = (
            f"there is a gradient, but a part of it is missing: on another path {step(cuts, missing).op!r} cuts it "
            f"({reason.value})"
        )
        return Explanation(Reason.PARTLY_CUT, text, **self._blame(missing), **fields)

    # ----------------------------------------------------------------------------------------------------------- none
    def _none(self, source: Any, path: list[Edge] | None) -> Explanation:
        if path is None:
            return self._without_path(source)
        return self.first_cut(path) or self._not_watched(source, path)

    def first_cut(self, path: Sequence[Edge], passing: Collection[Reason] = ()) -> Explanation | None:
        """The explanation that blames the cut of a path that is nearest to the target; None: nothing cuts the path.

        Args:
            path: From a target back.
            passing: Reasons that do not count.
        """
        cuts = self.cuts
        reasons = [(edge, cuts.reason(edge)) for edge in path]
        cut_edges = [(edge, reason) for edge, reason in reasons if reason is not None and reason not in passing]
        if not cut_edges:
            return None
        edge, reason = cut_edges[0]
        notes = []
        if len(cut_edges) > 1:
            further = dict.fromkeys(
                f"{step(cuts, other).op!r} ({why.value})" for other, why in cut_edges[1 : 1 + _NOTED]
            )
            notes.append(f"the path to the source is cut again: {', '.join(further)}")
        where = edge.origin.where
        return Explanation(
            reason,
            self._cut_text(edge, reason),
            **self._blame(edge),
            cut_value=edge.input,
            certain=not (isinstance(where, Return) and where.common),
            notes=tuple(notes),
            **path_fields(cuts, path),
        )

    def _cut_text(self, edge: Edge, reason: Reason) -> str:
        bound = edge.origin.what
        if isinstance(bound, Event):
            return self._event_text(edge, reason)
        name = op_name(edge)
        if reason is Reason.INTEGER_OR_BOOL:
            dtype, result = bound.specs[edge.input_index].dtype.name, bound.spec.dtype.name
            return f"op {name!r} turns {dtype} into {result}, which has no gradient"
        if reason is Reason.NON_DIFFERENTIABLE_OP:
            if Trait.SHAPE_ONLY in bound.traits:
                return f"op {name!r} uses only the shape of its input, and none of its numbers"
            return f"op {name!r} is declared non-differentiable: it has no gradient"
        if reason is Reason.NO_GRADIENT_DECLARED:
            return f"op {name!r} ({bound.op_type}) was declared to have no gradient"
        if reason in TIMES:
            return f"op {name!r} ran {TIMES[reason]}: the tape did not record it"
        return MEANINGS[reason].says

    def _event_text(self, edge: Edge, reason: Reason) -> str:
        origin = edge.origin
        if isinstance(origin.where, Return):
            left, back = self.format_where(origin.where.left), self.format_where(origin.where.back)
            accident = " (a number this short may be an accident)" if origin.where.common else ""
            return (
                f"the value was read{_at(left)}, and came back as a constant with the same numbers{_at(back)}: the "
                f"tape cannot see how it was computed{accident}"
            )
        if reason is Reason.ASSIGNED:
            uid = origin.inputs[1] if len(origin.inputs) > 1 else None
            name = None if uid is None else self.graph.name(uid)
            variable = f"variable {name!r}" if name else "a variable"
            return f"the value was assigned to {variable}, and tapes do not differentiate assignments"
        return MEANINGS[reason].says

    # ---------------------------------------------------------------------------------------------------- not watched
    def _not_watched(self, source: Any, path: list[Edge]) -> Explanation:
        """Nothing cuts the path: the tape does not watch the source, or began to after its use."""
        tape = self.tape
        uses = [use for edge in reversed(path) if (use := step(self.cuts, edge)).where is not None]
        first = uses[0] if uses else PathStep("an op", None)
        fields = {"op": first.op if uses else None, "where": first.where, **path_fields(self.cuts, path)}
        late = source.uid in tape.leaves
        if isinstance(source, Variable):
            name = source.name or "the source"
            if late:
                text = f"variable {name!r} was used before the tape watched it"
                return Explanation(Reason.WATCHED_AFTER_USE, text, **fields)
            if not source.trainable:
                text = f"variable {name!r} is not trainable, and nothing watches it"
                return Explanation(Reason.NOT_TRAINABLE, text, **fields)
            text = f"variable {name!r} is not watched: the tape does not watch the variables that it reads"
            return Explanation(Reason.NOT_WATCHED, text, **fields)
        if late:
            text = f"{first.op!r} used the source before the tape watched it"
            return Explanation(Reason.WATCHED_AFTER_USE, text, **fields)
        replaced = self._replaced_variable(source)
        if replaced is not None:
            return replaced
        text = f"{first.op!r} uses the source, but the tape does not watch it"
        return Explanation(Reason.NOT_WATCHED, text, **fields)

    def _replaced_variable(self, source: Any) -> Explanation | None:
        """The explanation if the source was computed from a variable, as by `x = x + 1`."""
        for edge in self.graph.edges(source.uid):
            if isinstance(edge.origin.what, Event):
                continue
            origins = self.graph.origins(edge.input)
            read = next((origin for origin in origins if origin.what is Event.READ), None)
            if read is not None:
                variable = read.where or "a variable"
                text = (
                    f"the source is a tensor that op {op_name(edge)!r} computed from variable {variable!r}, not the "
                    "variable"
                )
                fields = {"op": op_name(edge), "where": edge.origin.where, **path_fields(self.cuts, [edge])}
                return Explanation(Reason.VARIABLE_REPLACED, text, **fields)
        return None

    # ------------------------------------------------------------------------------------------------------- no path
    def _without_path(self, source: Any) -> Explanation:
        """No record leads from a target to the source."""
        probable = self._left_and_returned(source)
        if probable is not None:
            return probable
        text, target_notes = self._targets_origin
        notes = list(target_notes)
        replaced = None if isinstance(source, Variable) else self._replaced_variable(source)
        if replaced is not None:
            notes.append(replaced.message)
        return Explanation(Reason.UNCONNECTED, text, certain=not self.graph.truncated, notes=tuple(notes))

    @cached_property
    def _targets_origin(self) -> tuple[str, list[str]]:
        """What the targets were computed from, as a message and notes: the same for every source without a path."""
        graph = self.graph
        leaves = [uid for uid in graph.ancestors(self.target_uids) if uid in self.tape.leaves]
        names = [repr(name) for uid in leaves if (name := graph.name(uid))]
        notes = []
        if names:
            notes.append(
                f"the watched values that it depends on: {', '.join(names[:_NAMED])}{' …' if names[_NAMED:] else ''}"
            )
        elif not leaves:
            notes.append("it depends on nothing that the tape watches")
        if graph.truncated:
            notes.append("only the latest ops outside tapes are remembered: an older op may be the reason")
        origins = [origin for uid in self.target_uids for origin in graph.origins(uid)]
        if all(isinstance(target, Variable) for target in self.targets):
            text = "the target is a variable: it has a value, and no history"
        elif all(origin.what in (Event.PUT, Event.PLAIN) for origin in origins):
            text = "the target is a constant: no recorded op computed it"
        else:
            text = "the target was computed without the source"
        return text, notes

    def _left_and_returned(self, source: Any) -> Explanation | None:
        """The likely explanation if a value of the source was read, and the target depends on later numbers."""
        graph, turns = self.graph, self.tape.turns
        if self.value_reads is None or not self.value_reads.log:
            return None
        opened = turns[0][1] if turns else 0
        latest = takewhile(lambda read: read.at > opened, reversed(tuple(self.value_reads.log)))
        reads = list(latest)[::-1]
        if not reads:
            return None
        made_of_source = graph.descendants(source.uid, [read.uid for read in reads])
        reads = [read for read in reads if read.uid in made_of_source]
        if not reads:
            return None
        for uid in graph.ancestors(self.target_uids):
            for origin in graph.origins(uid):
                earlier = [read for read in reads if read.at < origin.output]
                if earlier and origin.what is Event.PUT:
                    text = (
                        f"a value computed from the source was read{_at(self.format_where(earlier[-1].where))}, and "
                        "the target depends on numbers that came later: what Python or NumPy did between the two is "
                        "not recorded"
                    )
                    fields = {"op": EVENT_NAMES[Event.PUT], "where": origin.where, "certain": False}
                    return Explanation(Reason.LEFT_AND_RETURNED, text, **fields)
        return None


def _at(call_site: str | None) -> str:
    return f" at {call_site}" if call_site else ""
