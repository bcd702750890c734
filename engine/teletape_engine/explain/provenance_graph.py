"""What came from what: a tape's nodes and the contexts' trails as one graph, and the cuts in it."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from teletape_engine.catalogue.families import Factor
from teletape_engine.catalogue.op import NOT_REGISTERED, Bound, Gradient, Plan
from teletape_engine.explain.explanation import Step
from teletape_engine.explain.reasons import Reason
from teletape_engine.recording.custom import Custom, Output
from teletape_engine.recording.provenance import Event, Return, Trail
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid

_SHOWN: Final = 40  #: Steps of a path that an explanation holds: of a longer one the two ends.


class Link(NamedTuple):
    """How one value came about: a node of the tape, or a record of a trail.

    Attributes:
        what: The op's bound call, or the event.
        inputs, output, where: As in a node.
        live: Inputs that the gradient passes to.
        node: Position on the tape; None: no tape followed it.
        here: Whether the tape's own context made it.
    """

    what: Bound | Event
    inputs: tuple[Uid | None, ...]
    output: Uid
    where: Any
    live: frozenset[int]
    node: int | None
    here: bool

    @property
    def bound(self) -> Bound:
        """Of a link that is an op."""
        assert isinstance(self.what, Bound)
        return self.what


class Hop(NamedTuple):
    """From a value to an input of what made it."""

    link: Link
    place: int
    into: Uid


class Ways:
    """What came from what, for one tape.

    Args:
        tape: It.
        trails: Of every context of the session.
        no_gradient: Op types declared to have no gradient.
        registered: Op types whose gradient the caller has registered.
    """

    def __init__(
        self,
        tape: Tape,
        trails: Iterable[Trail],
        no_gradient: Collection[str] = (),
        registered: Collection[str] = (),
    ) -> None:
        self.tape, self.no_gradient, self.registered = tape, no_gradient, registered
        self.nodes = tape.structure()
        self.names = {uid: one.name for uid, one in tape.variables.items()}
        self.versions: dict[Uid, list[Uid]] = {}  # a variable's values, in order
        self.variables: set[Uid] = set(tape.variables)
        self.full = False
        self._turns = [uid for _, uid in tape.turns]
        self._live: dict[int, frozenset[int]] = {}  # by plan: a tape has few of them
        made: dict[Uid, list[Link]] = {}
        for k, (plan, inputs, output, _, where) in enumerate(self.nodes):
            live = self._live.get(id(plan))
            if live is None:
                live = self._live[id(plan)] = self._passed(plan, len(inputs))
            # Of several nodes that make one value the last counts: a custom call overrules what it is made of.
            made[output] = [Link(plan.bound, inputs, output, where, live, k, True)]
        followed = set(made)
        for trail in trails:
            self.full = self.full or len(trail) == trail.maxlen
            here = any(trail is one for one in tape.trails)
            for what, inputs, output, where in tuple(trail):
                if what.__class__ is Event:
                    self._event(what, inputs, output, where)
                elif output in followed:
                    continue
                made.setdefault(output, []).append(Link(what, inputs, output, where, frozenset(), None, here))
        self.made = made
        for versions in self.versions.values():
            versions.sort()

    def _passed(self, plan: Plan, count: int) -> frozenset[int]:
        """The inputs that a gradient passes to."""
        bound = plan.bound
        if isinstance(bound, Custom | Output) or bound.op.op_type in self.registered:
            return frozenset([i for i in range(count) if (bound, i) not in self.tape.declined])
        return frozenset([i for i, _ in plan.rules])

    def _event(self, event: Any, inputs: tuple[Uid | None, ...], output: Uid, where: Any) -> None:
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

    # ------------------------------------------------------------------------------------------------------ gradient
    def gradient(self, targets: Collection[Uid]) -> tuple[set[Uid], set[Uid], Link | None]:
        """Where a cotangent of the targets comes to.

        Returns:
            The values that it reaches; those that it reaches by other ways than through derivatives of zero; and the
            first op there that has no gradient at all.
        """
        due: set[Any] = set(targets)
        reached: set[Any] = set(targets)
        steep: set[Any] = set(targets)
        unregistered: Link | None = None
        for k in range(len(self.nodes) - 1, -1, -1):
            plan, inputs, output, _, where = self.nodes[k]
            if output not in due:
                continue
            due.discard(output)
            bound = plan.bound
            live = self._live[id(plan)]
            op_type = bound.op.op_type
            if plan.unregistered and op_type not in self.no_gradient and op_type not in self.registered:
                unregistered = unregistered or Link(bound, inputs, output, where, live, k, True)
            for i in live:
                due.add(inputs[i])
                reached.add(inputs[i])
                if output in steep and not flat(bound, i):
                    steep.add(inputs[i])
        return reached, steep, unregistered

    # --------------------------------------------------------------------------------------------------------- causes
    def cut(self, hop: Hop) -> Reason | None:
        """Why no gradient passes this hop whatever is watched, or None: it would."""
        link, i = hop.link, hop.place
        if i in link.live:
            return None
        if isinstance(link.what, Event):
            return None if link.what is Event.UPDATE and i == 1 else _EVENTS.get(link.what)
        bound = link.what
        if (bound, i) in self.tape.declined:
            return Reason.CUSTOM_NONE
        if isinstance(bound, Custom | Output) or not bound.specs[i].differentiable:
            return self.when(link)
        if link.inputs[i] in self.variables:
            return None
        op = bound.op
        if op.op_type == "StopGradient":
            return Reason.STOP_GRADIENT
        if not bound.spec.differentiable:
            return Reason.INTEGER_OR_BOOL
        rule = op.rule(op.vjp, i)
        if rule is NOT_REGISTERED and op.op_type not in self.registered:
            return Reason.NO_GRADIENT_DECLARED if op.op_type in self.no_gradient else Reason.NO_GRADIENT_REGISTERED
        if isinstance(rule, Gradient) and op.op_type not in self.registered:
            return Reason.NON_DIFFERENTIABLE_OP
        return self.when(link)

    def is_flat(self, hop: Hop) -> bool:
        """Whether the gradient that passes here becomes zero, whatever the numbers are."""
        return hop.place in hop.link.live and isinstance(hop.link.what, Bound) and flat(hop.link.what, hop.place)

    def when(self, link: Link) -> Reason | None:
        """Why the tape could not see an op that it would have followed; None: it was recording."""
        if link.node is not None:
            return None
        k = bisect_left(self._turns, link.output)
        turns = self.tape.turns
        if k == 0:
            return Reason.COMPUTED_BEFORE_TAPE
        if not link.here:
            return Reason.OTHER_CONTEXT if turns[k - 1][0] == "open" else self._paused(k)
        if turns[k - 1][0] != "open":
            return self._paused(k)
        return Reason.COMPUTED_BEFORE_RESET if any(how == "reset" for how, _ in turns[k:]) else None

    def _paused(self, k: int) -> Reason:
        again = any(how == "open" for how, _ in self.tape.turns[k:])
        return Reason.COMPUTED_WHILE_STOPPED if again else Reason.COMPUTED_AFTER_TAPE

    def recorded_time(self, link: Link) -> bool:
        """Whether it ran while this tape recorded, in its own context."""
        if link.node is not None:
            return True
        k = bisect_left(self._turns, link.output)
        return link.here and k > 0 and self.tape.turns[k - 1][0] == "open"

    # ----------------------------------------------------------------------------------------------------------- ways
    def hops(self, uid: Uid) -> Iterator[Hop]:
        """From a value to what it was made of."""
        for link in self.made.get(uid, ()):
            if link.what in (Event.ASSIGN, Event.UPDATE):
                yield from self._assigned(link)
                continue
            for i, into in enumerate(link.inputs):
                if into is None:
                    continue
                yield Hop(link, i, into)
                if into in self.variables:
                    version = self._version(into, uid + 1)
                    if version is not None and version != uid:
                        yield Hop(link, i, version)

    def _assigned(self, link: Link) -> Iterator[Hop]:
        """From a variable's version to what was assigned, to the version before, and to the variable that it is of."""
        given, variable = link.inputs
        assert variable is not None
        if given is not None:
            yield Hop(link, 0, given)
        if link.what is Event.UPDATE:
            before = self._version(variable, link.output)
            if before is not None:
                yield Hop(link, 1, before)
        name = self.names.get(variable)
        yield Hop(link._replace(what=Event.READ, inputs=(variable,), where=name), 0, variable)

    def _version(self, variable: Uid | None, before: Uid) -> Uid | None:
        versions = self.versions.get(variable, [])  # type: ignore[arg-type]  # None names no variable
        k = bisect_left(versions, before)
        return versions[k - 1] if k else None

    def way(self, targets: Sequence[Uid], source: Uid) -> list[Hop] | None:
        """The way from a target to the source with the fewest cuts; of several the first found, always the same one."""
        order = itertools.count()
        heap: list[tuple[int, int, Uid, Hop | None, Uid | None]] = [
            (0, next(order), uid, None, None) for uid in targets
        ]
        came: dict[Uid, tuple[Hop | None, Uid | None]] = {}
        while heap:
            cost, _, uid, hop, by = heapq.heappop(heap)
            if uid in came:
                continue
            came[uid] = hop, by
            if uid == source:
                break
            for nxt in self.hops(uid):
                if nxt.into not in came:
                    heapq.heappush(heap, (cost + self._price(nxt), next(order), nxt.into, nxt, uid))
        if source not in came:
            return None
        way: list[Hop] = []
        at: Uid | None = source
        while at is not None:
            hop, at = came[at]
            if hop is not None:
                way.append(hop)
        way.reverse()
        return way

    def _price(self, hop: Hop) -> int:
        reason = self.cut(hop)
        if reason is None:
            return 0
        if reason is Reason.LEFT_AND_RETURNED and isinstance(hop.link.where, Return) and hop.link.where.common:
            return 64  # rather any other way than a likeness of twos
        return 4 if reason in _EARLIER else 3

    def ancestors(self, targets: Iterable[Uid]) -> dict[Uid, None]:
        """Everything that the targets were made of, by whatever way; nearest first."""
        seen = dict.fromkeys(targets)
        todo = list(seen)
        for uid in todo:
            for hop in self.hops(uid):
                if hop.into not in seen:
                    seen[hop.into] = None
                    todo.append(hop.into)
        return seen

    def descendants(self, source: Uid) -> set[Uid]:
        """Everything that was made of the source, by whatever way."""
        uses: dict[Uid, list[Uid]] = {}
        for uid in self.made:
            for hop in self.hops(uid):
                uses.setdefault(hop.into, []).append(uid)
        seen, todo = {source}, [source]
        while todo:
            for uid in uses.get(todo.pop(), ()):
                if uid not in seen:
                    seen.add(uid)
                    todo.append(uid)
        return seen

    def severed(self, targets: Sequence[Uid], source: Uid) -> Hop | None:
        """The cut nearest to a target on some way to a source that other ways reach: its share is missing.

        Only what happened while the tape recorded counts, and only what carries a number: a comparison that selects,
        or an index, has no share to lose.
        """
        order: dict[Uid, None] = dict.fromkeys(targets)
        todo = list(order)
        cuts: list[Hop] = []
        uses: dict[Uid, list[Uid]] = {}
        for uid in todo:
            for hop in self.hops(uid):
                reason = self.cut(hop)
                if not self.recorded_time(hop.link) or _selects(hop) or reason in _NO_SHARE:
                    continue
                if reason is not None:
                    cuts.append(hop)
                uses.setdefault(hop.into, []).append(uid)
                if hop.into not in order:
                    order[hop.into] = None
                    todo.append(hop.into)
        if not cuts:
            return None
        reach, stack = {source}, [source]
        while stack:
            for uid in uses.get(stack.pop(), ()):
                if uid not in reach:
                    reach.add(uid)
                    stack.append(uid)
        return next((hop for hop in cuts if hop.into in reach), None)

    # ------------------------------------------------------------------------------------------------------- wording
    def step(self, hop: Hop) -> Step:
        """A hop, to be told."""
        link = hop.link
        what = link.what
        if isinstance(what, Event):
            where = link.where
            if what is Event.READ:
                return Step(f"read {link.where or 'variable'}", None)
            if isinstance(where, Return):
                where = where.back
            return Step(STEPS[what], where, True)
        read = link.inputs[hop.place]
        if read in self.variables and what.op.name == "identity":
            return Step(f"read {self.names.get(read) or 'variable'}", link.where)
        name = what.label if isinstance(what, Custom) else what.op.name
        return Step(name, link.where, self.cut(hop) is not None)

    def path(self, way: Sequence[Hop]) -> dict[str, Any]:
        """The fields of an explanation that tell the way."""
        half = _SHOWN // 2
        shown = way if len(way) <= _SHOWN else [*way[:half], *way[-half:]]
        return {"path": tuple([self.step(hop) for hop in shown]), "length": len(way)}


#: What each event does to a gradient. A variable's reading passes it on.
_EVENTS: Final = {
    Event.ASSIGN: Reason.ASSIGNED,
    Event.UPDATE: Reason.ASSIGNED,
    Event.GRADIENT: Reason.NO_OUTER_TAPE,
    Event.RETURNED: Reason.LEFT_AND_RETURNED,
    Event.LEFT: Reason.LEFT_AND_RETURNED,
    Event.UNTAKEN: Reason.UNTAKEN_BRANCH,
    Event.NO_TRIP: Reason.NO_TRIP,
}
STEPS: Final = {
    Event.ASSIGN: "assign",
    Event.UPDATE: "assign",
    Event.GRADIENT: "gradient",
    Event.PUT: "constant",
    Event.PLAIN: "constant",
    Event.RETURNED: "left and returned",
    Event.LEFT: "Python function",
    Event.UNTAKEN: "branch not taken",
    Event.NO_TRIP: "loop without a trip",
}
#: Cuts that lie before the tape: those inside it are told rather.
_EARLIER: Final = frozenset({Reason.COMPUTED_BEFORE_TAPE, Reason.COMPUTED_BEFORE_RESET, Reason.COMPUTED_AFTER_TAPE})
#: What is no loss beside a gradient that there is.
_NO_SHARE: Final = frozenset(
    {Reason.NO_OUTER_TAPE, Reason.LEFT_AND_RETURNED, Reason.UNTAKEN_BRANCH, Reason.NO_TRIP, *_EARLIER}
)
#: Ops whose result has the shape of their input and none of its numbers.
SHAPE_ONLY: Final = frozenset({"ZerosLike", "OnesLike", "Shape", "Size", "Rank"})


def _selects(hop: Hop) -> bool:
    """Whether the input is an index or a condition of an op that gives numbers; or only lends its shape."""
    bound = hop.link.what
    if isinstance(bound, Event | Custom | Output):
        return False
    if bound.op.op_type in SHAPE_ONLY:
        return True
    return bound.spec.differentiable and not bound.specs[hop.place].differentiable and bound.op.op_type != "Cast"


def flat(bound: Bound, i: int) -> bool:
    """Whether the derivative for an input is zero everywhere, as sign's is."""
    if isinstance(bound, Custom | Output):
        return False
    rule = bound.op.rule(bound.op.vjp, i)
    if bound.op.op_type == "Sign" or (bound.op.name == "tie" and i > 0):
        return True
    return isinstance(rule, Factor) and rule.formula == 0


def name_of(hop: Hop) -> str | None:
    """The op of a hop, or what happened instead of one."""
    what = hop.link.what
    if isinstance(what, Event):
        return STEPS.get(what)
    return what.label if isinstance(what, Custom) else what.op.name


def zero_text(op: str | None) -> str:
    """What is said of a derivative that is zero everywhere."""
    if op == "tie":
        return "the function's result does not depend on that argument: its gradient is zero, not None"
    return f"the derivative of op {op!r} is zero everywhere"
