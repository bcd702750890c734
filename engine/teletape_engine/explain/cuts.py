"""Where gradients stop in a provenance graph, and why: one reason for each edge that no gradient passes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from teletape_engine.catalogue.binding import Bound, CallPlan, Select, TapeCall
from teletape_engine.catalogue.op import Trait
from teletape_engine.catalogue.rule import NOT_REGISTERED, NoGradient
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.derivatives.backward import backward_pass
from teletape_engine.derivatives.query import Declarations, InputCotangents, Stop
from teletape_engine.explain.provenance_graph import Edge, Origin, ProvenanceGraph
from teletape_engine.explain.reasons import Reason
from teletape_engine.generators import driven
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.progress import never_cancelled
from teletape_engine.recording.provenance import Event
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid

#: Why no gradient passes an event. A read of a variable lets it pass.
_EVENTS: Final = {
    Event.ASSIGN: Reason.ASSIGNED,
    Event.UPDATE: Reason.ASSIGNED,
    Event.GRADIENT: Reason.NO_OUTER_TAPE,
    Event.RETURNED: Reason.LEFT_AND_RETURNED,
    Event.LEFT: Reason.LEFT_AND_RETURNED,
    Event.UNTAKEN: Reason.UNTAKEN_BRANCH,
    Event.NO_ITERATION: Reason.NO_ITERATION,
}


class Connectivity(NamedTuple):
    """Which values a gradient comes to.

    Attributes:
        reached: Values that a cotangent of the targets reaches.
        nonzero: Those of them that it reaches on a path without derivatives that are zero everywhere.
        unregistered: The node, the last on the tape, whose op has no gradient registered: the gradient raises there.
    """

    reached: set[Uid]
    nonzero: set[Uid]
    unregistered: int | None


class Cuts:
    """The cuts in one provenance graph.

    Args:
        graph: The graph.
        declarations: Those of the session.
        check_cancelled: Called inside `connectivity`'s pass; what it raises ends it.
    """

    def __init__(
        self, graph: ProvenanceGraph, declarations: Declarations, check_cancelled: Callable[[], None] = never_cancelled
    ) -> None:
        self.graph, self.tape = graph, graph.tape
        self.declarations, self._check_cancelled = declarations, check_cancelled
        self._passing: dict[int, frozenset[int]] = {}  # by the id of a plan: a tape has few of them

    def passing(self, node: int) -> frozenset[int]:
        """Numbers of the inputs of a node that a gradient passes to."""
        plan, inputs = self.graph.nodes[node][:2]
        passing = self._passing.get(id(plan))
        if passing is None:
            passing = self._passing[id(plan)] = self._passing_inputs(plan, len(inputs))
        return passing

    def _passing_inputs(self, plan: CallPlan, count: int) -> frozenset[int]:
        bound = plan.bound
        if isinstance(bound, CustomTapeCall | Select) or bound.op_type in self.declarations.gradients:
            return frozenset([index for index in range(count) if (bound, index) not in self.tape.declined])
        return frozenset([index for index, _ in plan.rules])

    def connectivity(self, targets: Collection[Uid]) -> Connectivity:
        """Which values a cotangent of the targets comes to: a backward pass that computes nothing."""
        tape = _structural_copy(self.tape, self.graph.nodes)
        observer = _Reach(self, targets)
        starts = [(uid, GradientKind.DENSE) for uid in targets]
        walk = backward_pass(
            tape,
            starts,
            tape.leaves,
            Presence(),
            declarations=self.declarations,
            observer=observer,
            check_cancelled=self._check_cancelled,
        )

        def answer(stop: Stop) -> InputCotangents:
            declined, count = self.tape.declined, len(stop.bound.specs)
            return [None if (stop.bound, i) in declined else GradientKind.DENSE for i in range(count)]

        driven(walk, answer)
        return Connectivity(observer.reached, observer.nonzero, observer.unregistered)

    # -------------------------------------------------------------------------------------------------------- reasons
    def reason(self, edge: Edge) -> Reason | None:
        """Why no gradient passes this edge, whatever the tape watches; None: it passes."""
        origin, index = edge.origin, edge.input_index
        bound = origin.what
        if isinstance(bound, Event):
            return None if bound is Event.UPDATE and index == 1 else _EVENTS.get(bound)
        if origin.node is not None and index in self.passing(origin.node):
            return None
        if (bound, index) in self.tape.declined:
            return Reason.CUSTOM_NONE
        if isinstance(bound, Select) and not bound.spec.differentiable:
            return Reason.INTEGER_OR_BOOL
        if not isinstance(bound, Bound) or not bound.specs[index].differentiable:
            return self._not_recorded(origin)
        read = origin.inputs[index]
        if read is not None and self.graph.is_variable(read):
            return None
        op = bound.op
        if Trait.STOPS_GRADIENT in op.traits:
            return Reason.STOP_GRADIENT
        if not any(spec.differentiable for spec in bound.outputs):
            return Reason.INTEGER_OR_BOOL
        rule = op.rule(op.vjp, index)
        if rule is NOT_REGISTERED and op.op_type not in self.declarations.gradients:
            return (
                Reason.NO_GRADIENT_DECLARED
                if op.op_type in self.declarations.no_gradient
                else Reason.NO_GRADIENT_REGISTERED
            )
        if isinstance(rule, NoGradient) and op.op_type not in self.declarations.gradients:
            return Reason.NON_DIFFERENTIABLE_OP
        return self._not_recorded(origin)

    def _not_recorded(self, origin: Origin) -> Reason | None:
        """Why the tape did not record an op that it would have recorded; None: it did."""
        if origin.node is not None:
            return None
        turn, turns = self.graph.turn_before(origin), self.tape.turns
        if turn == 0:
            return Reason.COMPUTED_BEFORE_TAPE
        if turns[turn - 1][0] != "open":
            opened_again = any(what == "open" for what, _ in turns[turn:])
            return Reason.COMPUTED_WHILE_STOPPED if opened_again else Reason.COMPUTED_AFTER_TAPE
        if not origin.same_context:
            return Reason.OTHER_CONTEXT
        return Reason.COMPUTED_BEFORE_RESET if any(what == "reset" for what, _ in turns[turn:]) else None

    def always_zero(self, edge: Edge) -> bool:
        """Whether a gradient passes this edge, and becomes zero there whatever the numbers are."""
        origin = edge.origin
        if origin.node is None or edge.input_index not in self.passing(origin.node):
            return False
        return isinstance(origin.what, Bound) and zero_everywhere(origin.what, edge.input_index)

    def selects(self, edge: Edge) -> bool:
        """Whether the input gives no number: an index, a condition, a shape alone, or an argument that a call ties."""
        bound = edge.origin.what
        if isinstance(bound, Event | CustomTapeCall | Select):
            return False
        if Trait.EDGES in bound.traits:
            return edge.input_index > 0
        if Trait.SHAPE_ONLY in bound.traits:
            return True
        selector = bound.spec.differentiable and not bound.specs[edge.input_index].differentiable
        return selector and Trait.CONVERTS not in bound.traits


class _Reach:
    """Notes where the cotangents of a pass come to: an `Observer` of the driver."""

    def __init__(self, cuts: Cuts, targets: Collection[Uid]) -> None:
        self._nodes, self._declarations = cuts.graph.nodes, cuts.declarations
        self.reached: set[Any] = set(targets)
        self.nonzero: set[Any] = set(targets)
        self.unregistered: int | None = None

    def node(self, position: int, ct: Any) -> None:
        """Notes the first op without a gradient."""
        plan = self._nodes[position][0]
        op_type = plan.bound.op_type
        declared = op_type in self._declarations.no_gradient or op_type in self._declarations.gradients
        if plan.unregistered and not declared and self.unregistered is None:
            self.unregistered = position

    def share(self, position: int, i: int, ct: Any, share: Any) -> None:
        """Notes an input that the pass comes to."""
        plan, inputs, output, _, _ = self._nodes[position]
        self.reached.add(inputs[i])
        if output in self.nonzero and not zero_everywhere(plan.bound, i):
            self.nonzero.add(inputs[i])


def _structural_copy(tape: Tape, nodes: list[NodeTuple]) -> Tape:
    """A tape of these nodes for a pass that only predicts: of one that has answered, the nodes alone are left."""
    copy = Tape(persistent=True)
    copy.nodes, copy.leaves = nodes, tape.leaves
    copy.tracked = dict.fromkeys([*tape.leaves, *(uid for node in nodes for uid in (*node[1], node[2]))])
    return copy


def zero_everywhere(bound: TapeCall, index: int) -> bool:
    """Whether the derivative for an input is zero at every value of it, as that of `sign` is."""
    return isinstance(bound, Bound) and bound.zero_derivative(index)


def zero_derivative_text(bound: TapeCall) -> str:
    """The sentence for a derivative that is zero everywhere."""
    if Trait.EDGES in bound.traits:
        return "the function's result does not depend on that argument: its gradient is zero, not None"
    return f"the derivative of op {bound.name!r} is zero everywhere"
