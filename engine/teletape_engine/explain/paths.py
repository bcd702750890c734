"""Paths through a provenance graph, from targets back to a source: the one with the fewest cuts, and cut side paths."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any, Final

from teletape_engine.catalogue.op import Trait
from teletape_engine.explain.cuts import Cuts
from teletape_engine.explain.explanation import PathStep
from teletape_engine.explain.provenance_graph import Edge, closure
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.custom import CustomTapeCall
from teletape_engine.recording.provenance import Event, Return
from teletape_engine.recording.values import Uid

_SHOWN: Final = 40  #: Steps of a path that an explanation holds; of a longer one its two ends.

#: What the steps of a path call events.
EVENT_NAMES: Final = {
    Event.ASSIGN: "assign",
    Event.UPDATE: "assign",
    Event.GRADIENT: "gradient",
    Event.PUT: "constant",
    Event.PLAIN: "constant",
    Event.RETURNED: "left and returned",
    Event.LEFT: "Python function",
    Event.UNTAKEN: "branch not taken",
    Event.NO_ITERATION: "loop without an iteration",
}
#: Cuts outside the tape. A cut inside it is the more useful explanation.
_OUTSIDE: Final = frozenset({Reason.COMPUTED_BEFORE_TAPE, Reason.COMPUTED_BEFORE_RESET, Reason.COMPUTED_AFTER_TAPE})
#: Cuts that take nothing away from a gradient that exists.
_NO_LOSS: Final = frozenset(
    {Reason.NO_OUTER_TAPE, Reason.LEFT_AND_RETURNED, Reason.UNTAKEN_BRANCH, Reason.NO_ITERATION, *_OUTSIDE}
)
_INSIDE_COST, _OUTSIDE_COST = 3, 4
_COMMON_NUMBER_COST: Final = 64  # equal short numbers are mostly an accident: any other path is the better explanation


class FewestCuts:
    """The paths with the fewest cuts from targets back to other values: one search, continued for each further value.

    Args:
        cuts: Of the graph.
        targets: Where the paths begin.
    """

    def __init__(self, cuts: Cuts, targets: Sequence[Uid]) -> None:
        self._cuts = cuts
        self._order = itertools.count()
        self._heap: list[tuple[int, int, Uid, Edge | None, Uid | None]] = [
            (0, next(self._order), uid, None, None) for uid in targets
        ]
        self._arrivals: dict[Uid, tuple[Edge | None, Uid | None]] = {}

    def path(self, source: Uid) -> list[Edge] | None:
        """The path from a target to the source; None: there is none. Deterministic."""
        arrivals = self._arrivals
        while source not in arrivals:
            if not self._heap:
                return None
            self._advance()
        path: list[Edge] = []
        position: Uid | None = source
        while position is not None:
            edge, position = arrivals[position]
            if edge is not None:
                path.append(edge)
        path.reverse()
        return path

    def _advance(self) -> None:
        """Takes one more step of the search."""
        arrivals, heap = self._arrivals, self._heap
        cost, _, uid, edge, before = heapq.heappop(heap)
        if uid in arrivals:
            return
        arrivals[uid] = edge, before
        for following in self._cuts.graph.edges(uid):
            if following.input not in arrivals:
                entry = (cost + _cost(self._cuts, following), next(self._order), following.input, following, uid)
                heapq.heappush(heap, entry)


def _cost(cuts: Cuts, edge: Edge) -> int:
    reason = cuts.reason(edge)
    if reason is None:
        return 0
    where = edge.origin.where
    if reason is Reason.LEFT_AND_RETURNED and isinstance(where, Return) and where.common:
        return _COMMON_NUMBER_COST
    return _OUTSIDE_COST if reason in _OUTSIDE else _INSIDE_COST


def missing_contribution(cuts: Cuts, targets: Sequence[Uid], source: Uid) -> Edge | None:
    """The cut nearest to a target on some path to a source that other paths reach; None: no such path is cut.

    Only what happened while the tape recorded counts, and only edges that carry a number: the index of a gather or the
    condition of a where has no gradient to lose.
    """
    seen: dict[Uid, None] = dict.fromkeys(targets)
    pending = list(seen)
    cut_edges: list[Edge] = []
    users: dict[Uid, list[Uid]] = {}
    for uid in pending:
        for edge in cuts.graph.edges(uid):
            reason = cuts.reason(edge)
            if not cuts.graph.while_recording(edge.origin) or cuts.selects(edge) or reason in _NO_LOSS:
                continue
            if reason is not None:
                cut_edges.append(edge)
            users.setdefault(edge.input, []).append(uid)
            if edge.input not in seen:
                seen[edge.input] = None
                pending.append(edge.input)
    if not cut_edges:
        return None
    made_of_source = closure(source, users)
    return next((edge for edge in cut_edges if edge.input in made_of_source), None)


# --------------------------------------------------------------------------------------------------------- descriptions
def step(cuts: Cuts, edge: Edge) -> PathStep:
    """An edge as a step of an explanation's path."""
    origin, graph = edge.origin, cuts.graph
    what = origin.what
    if isinstance(what, Event):
        where = origin.where
        if what is Event.READ:
            return PathStep(f"read {where or 'variable'}", None)
        if isinstance(where, Return):
            where = where.back
        return PathStep(EVENT_NAMES[what], where, True)
    read = origin.inputs[edge.input_index]
    if read is not None and Trait.ALIASES in what.traits and graph.is_variable(read):
        return PathStep(f"read {graph.name(read) or 'variable'}", origin.where)
    return PathStep(op_name(edge) or what.name, origin.where, cuts.reason(edge) is not None)


def path_fields(cuts: Cuts, path: Sequence[Edge]) -> dict[str, Any]:
    """The fields `path` and `length` of an explanation."""
    half = _SHOWN // 2
    shown = path if len(path) <= _SHOWN else [*path[:half], *path[-half:]]
    return {"path": tuple([step(cuts, edge) for edge in shown]), "length": len(path)}


def op_name(edge: Edge) -> str | None:
    """The op of an edge, the function of a custom call, or the event that there was instead of an op."""
    what = edge.origin.what
    if isinstance(what, Event):
        return EVENT_NAMES.get(what)
    return what.label if isinstance(what, CustomTapeCall) else what.name
