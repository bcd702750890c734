"""The provenance graph of one tape: how each value came about, from the tape's nodes and the contexts' provenance logs.

The graph says only what came from what. `cuts` says where gradients stop in it, and `paths` searches it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from teletape_engine.catalogue.binding import TapeCall
from teletape_engine.explain.log_index import LogIndex
from teletape_engine.recording.provenance import Event, PlannedCall, PlannedLoop, Records
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid


class Origin(NamedTuple):
    """How one value came about: by a node of the tape, or by a record of a provenance log.

    Attributes:
        what: The op's bound call, or the event.
        inputs: Uids of the inputs; None: a Python number.
        output: Uid of the value.
        where: The call site, if it is known.
        node: Position on the tape; None: no tape recorded it.
        same_context: Whether the tape was open in the context that made the value.
    """

    what: TapeCall | Event
    inputs: tuple[Uid | None, ...]
    output: Uid
    where: Any
    node: int | None
    same_context: bool


class Edge(NamedTuple):
    """A step from a value back to one input of its origin.

    Attributes:
        origin: Of the value.
        input_index: Number of the input.
        input: Uid of the input; of a variable also the uid of the version that was read.
    """

    origin: Origin
    input_index: int
    input: Uid


class ProvenanceGraph:
    """What came from what, seen from one tape.

    Args:
        tape: The tape.
        logs: The provenance logs of every context of the session.

    Attributes:
        nodes: The tape's nodes without what they keep.
        truncated: Whether a log is full, so that older records are lost.
    """

    def __init__(self, tape: Tape, logs: Iterable[Records]) -> None:
        self.tape = tape
        self.nodes = tape.structure()
        self._turns = [uid for _, uid in tape.turns]
        # Of several nodes that make one value the last counts: a custom call replaces what it is made of.
        self._nodes = {node[2]: position for position, node in enumerate(self.nodes)}
        self._logs = [(LogIndex.of(log), any(log is other for other in tape.logs)) for log in logs]
        self.truncated = any(index.truncated for index, _ in self._logs)
        self._origins: dict[Uid, Sequence[Origin]] = {}

    def origins(self, uid: Uid) -> Sequence[Origin]:
        """The origins of a value."""
        origins = self._origins.get(uid)
        if origins is None:
            origins = self._origins[uid] = tuple(self._find_origins(uid))
        return origins

    def _find_origins(self, uid: Uid) -> Iterator[Origin]:
        position = self._nodes.get(uid)
        if position is not None:
            plan, inputs, _, _, where = self.nodes[position]
            yield Origin(plan.bound, inputs, uid, where, position, True)
        for index, same_context in self._logs:
            for what, inputs, output, where in index.records.get(uid, ()):
                assert not isinstance(what, PlannedCall | PlannedLoop)  # an index has their records
                if position is None or isinstance(what, Event):
                    yield Origin(what, inputs, output, where, None, same_context)

    def is_variable(self, uid: Uid) -> bool:
        """Whether a uid is that of a variable, not of a value."""
        return uid in self.tape.variables or any(index.is_variable(uid) for index, _ in self._logs)

    def name(self, variable: Uid) -> Any:
        """The name of a variable, by its uid; None: it has none, or is no variable."""
        if variable in self.tape.variables:
            return self.tape.variables[variable].name
        return next((index.names[variable] for index, _ in self._logs if variable in index.names), None)

    # ---------------------------------------------------------------------------------------------------------- edges
    def edges(self, uid: Uid) -> Iterator[Edge]:
        """The edges from a value to what it was made of."""
        for origin in self.origins(uid):
            if origin.what in (Event.ASSIGN, Event.UPDATE):
                yield from self._assignment_edges(origin)
                continue
            for index, input_uid in enumerate(origin.inputs):
                if input_uid is None:
                    continue
                yield Edge(origin, index, input_uid)
                if self.is_variable(input_uid):
                    version = self._version_before(input_uid, uid + 1)
                    if version is not None and version != uid:
                        yield Edge(origin, index, version)

    def _assignment_edges(self, origin: Origin) -> Iterator[Edge]:
        """From a variable's version to the assigned value, to the version before it, and to the variable itself."""
        value, variable = origin.inputs
        assert variable is not None
        if value is not None:
            yield Edge(origin, 0, value)
        if origin.what is Event.UPDATE:
            before = self._version_before(variable, origin.output)
            if before is not None:
                yield Edge(origin, 1, before)
        name = self.name(variable)
        yield Edge(origin._replace(what=Event.READ, inputs=(variable,), where=name), 0, variable)

    def _version_before(self, variable: Uid, uid: Uid) -> Uid | None:
        """The latest value of the variable that is older than `uid`."""
        before: list[Uid] = []
        for index, _ in self._logs:
            versions = index.versions.get(variable, ())
            position = bisect_left(versions, uid)
            before += versions[position - 1 : position] if position else ()
        return max(before, default=None)

    # ------------------------------------------------------------------------------------------------------ traversal
    def ancestors(self, targets: Iterable[Uid]) -> dict[Uid, None]:
        """Everything that the targets were made of, the nearest first."""
        seen = dict.fromkeys(targets)
        pending = list(seen)
        for uid in pending:
            for edge in self.edges(uid):
                if edge.input not in seen:
                    seen[edge.input] = None
                    pending.append(edge.input)
        return seen

    def descendants(self, source: Uid, among: Iterable[Uid]) -> set[Uid]:
        """What was computed from the source, of some values and all that they were made of."""
        users: dict[Uid, list[Uid]] = {}
        for uid in self.ancestors(among):
            for edge in self.edges(uid):
                users.setdefault(edge.input, []).append(uid)
        return closure(source, users)

    # ----------------------------------------------------------------------------------------------------------- time
    def turn_before(self, origin: Origin) -> int:
        """How often the tape was opened, paused or reset before the value was made."""
        return bisect_left(self._turns, origin.output)

    def while_recording(self, origin: Origin) -> bool:
        """Whether the value was made while this tape recorded, in the tape's own context."""
        if origin.node is not None:
            return True
        turn = self.turn_before(origin)
        return origin.same_context and turn > 0 and self.tape.turns[turn - 1][0] == "open"


def closure(start: Uid, successors: dict[Uid, list[Uid]]) -> set[Uid]:
    """`start` and everything that can be reached from it."""
    seen, pending = {start}, [start]
    while pending:
        for uid in successors.get(pending.pop(), ()):
            if uid not in seen:
                seen.add(uid)
                pending.append(uid)
    return seen
