"""The provenance graph of one tape: how each value came about, from the tape's nodes and the contexts' provenance logs.

The graph says only what came from what. `cuts` says where gradients stop in it, and `paths` searches it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from teletape_engine.catalogue.binding import Call
from teletape_engine.recording.provenance import Event, PlannedCall, PlannedLoop, Records, entries
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

    what: Call | Event
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
        origins: The origins of each value, by its uid.
        names: Names of variables, by uid.
        variables: Uids of the variables that occur.
        versions: The values of each variable, in order.
        truncated: Whether a log is full, so that older records are lost.
    """

    def __init__(self, tape: Tape, logs: Iterable[Records]) -> None:
        self.tape = tape
        self.nodes = tape.structure()
        self.names = {uid: variable.name for uid, variable in tape.variables.items()}
        self.variables: set[Uid] = set(tape.variables)
        self.versions: dict[Uid, list[Uid]] = {}
        self.truncated = False
        self._turns = [uid for _, uid in tape.turns]
        self.origins: dict[Uid, list[Origin]] = {}
        for position, (plan, inputs, output, _, where) in enumerate(self.nodes):
            # Of several nodes that make one value the last counts: a custom call replaces what it is made of.
            self.origins[output] = [Origin(plan.bound, inputs, output, where, position, True)]
        recorded = set(self.origins)
        for log in logs:
            records, truncated = entries(log)
            self.truncated = self.truncated or truncated
            same_context = any(log is other for other in tape.logs)
            for what, inputs, output, where in records:
                assert not isinstance(what, PlannedCall | PlannedLoop)  # `entries` gives none
                if isinstance(what, Event):
                    self._note_variable(what, inputs, output, where)
                elif output in recorded:
                    continue
                self.origins.setdefault(output, []).append(Origin(what, inputs, output, where, None, same_context))
        for versions in self.versions.values():
            versions.sort()

    def _note_variable(self, event: Event, inputs: tuple[Uid | None, ...], output: Uid, where: Any) -> None:
        if event is Event.READ:
            variable = inputs[0]
            assert variable is not None
            self.variables.add(variable)
            self.names.setdefault(variable, where)
        elif event in (Event.ASSIGN, Event.UPDATE):
            variable = inputs[1]
            assert variable is not None
            self.variables.add(variable)
            self.versions.setdefault(variable, []).append(output)

    # ---------------------------------------------------------------------------------------------------------- edges
    def edges(self, uid: Uid) -> Iterator[Edge]:
        """The edges from a value to what it was made of."""
        for origin in self.origins.get(uid, ()):
            if origin.what in (Event.ASSIGN, Event.UPDATE):
                yield from self._assignment_edges(origin)
                continue
            for index, input_uid in enumerate(origin.inputs):
                if input_uid is None:
                    continue
                yield Edge(origin, index, input_uid)
                if input_uid in self.variables:
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
        name = self.names.get(variable)
        yield Edge(origin._replace(what=Event.READ, inputs=(variable,), where=name), 0, variable)

    def _version_before(self, variable: Uid, uid: Uid) -> Uid | None:
        """The latest value of the variable that is older than `uid`."""
        versions = self.versions.get(variable, [])
        position = bisect_left(versions, uid)
        return versions[position - 1] if position else None

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

    def descendants(self, source: Uid) -> set[Uid]:
        """Everything that was computed from the source."""
        users: dict[Uid, list[Uid]] = {}
        for uid in self.origins:
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
