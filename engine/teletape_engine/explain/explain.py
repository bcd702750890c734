"""Why a gradient is what it is: from structure, and where the arrays are at hand from numbers (`replay.py`).

If the gradient's own rules reach the source, there is a gradient; else the way from the target to the source with the
fewest cuts tells the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from teletape_engine.errors import TeletapeError
from teletape_engine.explain.explanation import Explanation, Step
from teletape_engine.explain.numerics import Look, Untraceable
from teletape_engine.explain.provenance_graph import SHAPE_ONLY, STEPS, Hop, Ways, name_of, zero_text
from teletape_engine.explain.reasons import MEANINGS, Outcome, Reason
from teletape_engine.recording.provenance import Departures, Event, Return, Trail
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Uid, Variable


def explain(
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    *,
    trails: Iterable[Trail] = (),
    departures: Departures | None = None,
    no_gradient: Collection[str] = (),
    registered: Collection[str] = (),
    place: Callable[[Any], str | None] = str,
) -> list[Explanation]:
    """Why the gradient of the targets' sum is what it is for each source, from structure alone.

    Args:
        tape: Asked, and left as it is; it may have answered already.
        targets: Recorded values or variables.
        sources: Recorded values or variables.
        trails: Of the session's contexts.
        departures: What the program has read.
        no_gradient: Op types declared to have no gradient.
        registered: Op types whose gradient the caller has registered.
        place: A line as text, for messages.

    Returns:
        With the outcome `gradient` where there is one: its numbers may tell more.
    """
    ways = Ways(tape, _distinct([*tape.trails, *trails]), no_gradient, registered)
    return [_Question(ways, targets, source, departures, place).answer() for source in sources]


def _distinct(trails: Iterable[Trail]) -> list[Trail]:
    return list({id(one): one for one in trails}.values())


class _Question:
    def __init__(
        self,
        ways: Ways,
        targets: Sequence[Any],
        source: Any,
        departures: Departures | None,
        place: Callable[[Any], str | None],
    ) -> None:
        self.ways, self.tape, self.targets, self.source, self.place = ways, ways.tape, targets, source, place
        self.departures = departures
        self.uids = [one.uid for one in targets]

    def answer(self) -> Explanation:
        tape, ways, source = self.tape, self.ways, self.source
        differentiable = [one for one in self.targets if one.spec.differentiable]
        if not differentiable and self.targets:
            return self._target_dtype()
        if not source.spec.differentiable:
            return _said(Reason.SOURCE_DTYPE, f"the source has the dtype {source.spec.dtype.name}: it has no gradient")
        seeded = [
            one.uid
            for one in differentiable
            if not isinstance(one, Variable) or one.uid in tape.variables or (tape.watch_accessed and one.trainable)
        ]
        reached, steep, unregistered = ways.gradient(seeded)
        if unregistered is not None:
            op = unregistered.bound.op
            text = f"op {op.name!r} ({op.op_type}) has no gradient registered: a LookupError"
            return _said(
                Reason.NO_GRADIENT_REGISTERED, text, op=op.name, where=unregistered.where, node=unregistered.node
            )
        way = ways.way([one.uid for one in differentiable], source.uid)
        if source.uid in reached:
            return self._connected(seeded, way or [], flat=source.uid not in steep)
        return self._none(way)

    # ------------------------------------------------------------------------------------------------------ connected
    def _connected(self, seeded: Sequence[Uid], way: Sequence[Hop], flat: bool) -> Explanation:
        ways = self.ways
        zero = next((one for one in way if ways.is_flat(one)), None) if flat else None
        if zero is not None:
            return _said(Reason.ZERO_DERIVATIVE, zero_text(name_of(zero)), **self._of(zero), **ways.path(way))
        lost = ways.severed(seeded, self.source.uid)
        if lost is None:
            text = f"it passes {len(way)} step{'s' if len(way) != 1 else ''}" if way else "the source is the target"
            return _said(Reason.CONNECTED, text, **ways.path(way))
        step, reason = ways.step(lost), ways.cut(lost)
        assert reason is not None
        text = (
            f"there is a gradient, but not all of it: on another way {step.op!r} cuts ({reason.value}), and that share "
            "adds nothing"
        )
        return _said(Reason.PARTLY_CUT, text, **self._of(lost), **ways.path(way))

    def _of(self, hop: Hop) -> dict[str, Any]:
        """The fields of an explanation that blame a hop."""
        return {"op": name_of(hop), "where": self.ways.step(hop).where, "node": hop.link.node}

    # ----------------------------------------------------------------------------------------------------------- none
    def _none(self, way: list[Hop] | None) -> Explanation:
        if way is None:
            return self._without_way()
        ways = self.ways
        cuts = [(hop, reason) for hop in way if (reason := ways.cut(hop)) is not None]
        if not cuts:
            return self._unwatched(way)
        hop, reason = cuts[0]
        step = ways.step(hop)
        notes = []
        if len(cuts) > 1:
            more = ", ".join(dict.fromkeys(f"{ways.step(one).op!r} ({why.value})" for one, why in cuts[1:4]))
            notes.append(f"on its way to the source it is cut again: {more}")
        common = isinstance(hop.link.where, Return) and hop.link.where.common
        return _said(
            reason,
            self._text(hop, reason, step),
            op=name_of(hop),
            where=step.where,
            node=hop.link.node,
            into=hop.into,
            certain=not common,
            notes=tuple(notes),
            **ways.path(way),
        )

    def _text(self, hop: Hop, reason: Reason, step: Step) -> str:
        link, bound = hop.link, hop.link.what
        if isinstance(bound, Event):
            if isinstance(link.where, Return):
                left, back = self.place(link.where.left), self.place(link.where.back)
                came = " (so short a number may be an accident)" if link.where.common else ""
                return (
                    f"the value was read{_at(left)}, and came back as a constant with the same numbers{_at(back)}: the "
                    f"tape cannot see how it was computed{came}"
                )
            if reason is Reason.ASSIGNED:
                name = self.ways.names.get(link.inputs[1]) if len(link.inputs) > 1 else None  # type: ignore[arg-type]
                told = f"variable {name!r}" if name else "a variable"
                return f"the value went into {told} by an assignment, which is no step that tapes differentiate"
            return MEANINGS[reason].says
        name = step.op
        if reason is Reason.INTEGER_OR_BOOL:
            return (
                f"op {name!r} makes {bound.spec.dtype.name} of {bound.specs[hop.place].dtype.name}: no gradient passes"
            )
        if reason is Reason.NON_DIFFERENTIABLE_OP:
            if bound.op.op_type in SHAPE_ONLY:
                return f"op {name!r} takes only the shape of its input, and none of its numbers"
            return f"op {name!r} is declared non-differentiable: its gradient is None"
        if reason is Reason.NO_GRADIENT_DECLARED:
            return f"op {name!r} ({bound.op.op_type}) was declared to have no gradient by tf.no_gradient"
        if reason in _TIMES:
            return f"op {name!r} ran {_TIMES[reason]}: the tape did not see it"
        return MEANINGS[reason].says

    def _unwatched(self, way: list[Hop]) -> Explanation:
        source, tape, ways = self.source, self.tape, self.ways
        steps = [one for hop in reversed(way) if (one := ways.step(hop)).where is not None]
        first = steps[0] if steps else Step("an op", None)
        more = {"op": first.op if steps else None, "where": first.where, **ways.path(way)}
        if isinstance(source, Variable):
            name = source.name or "the source"
            if source.uid in tape.leaves:
                return _said(Reason.WATCHED_AFTER_USE, f"variable {name!r} was used before tape.watch(...)", **more)
            if not source.trainable:
                return _said(
                    Reason.NOT_TRAINABLE, f"variable {name!r} has trainable=False, and nothing watches it", **more
                )
            text = f"variable {name!r} is not watched: the tape was made with watch_accessed_variables=False"
            return _said(Reason.NOT_WATCHED, text, **more)
        if source.uid in tape.leaves:
            text = f"the source was used by {first.op!r} before tape.watch(...)"
            return _said(Reason.WATCHED_AFTER_USE, text, **more)
        replaced = self._replaced()
        if replaced is not None:
            return replaced
        return _said(Reason.NOT_WATCHED, f"the source is used by {first.op!r}, but the tape does not watch it", **more)

    def _replaced(self) -> Explanation | None:
        """The source is what an expression made of a variable."""
        ways, uid = self.ways, self.source.uid
        for hop in ways.hops(uid):
            if isinstance(hop.link.what, Event):
                continue
            read = next((one for one in ways.made.get(hop.into, ()) if one.what is Event.READ), None)
            if read is not None:
                name = read.where or "a variable"
                text = f"the source is a tensor that op {name_of(hop)!r} made of variable {name!r}, not the variable"
                return _said(Reason.VARIABLE_REPLACED, text, op=name_of(hop), where=hop.link.where, **ways.path([hop]))
        return None

    def _without_way(self) -> Explanation:
        """No record leads from the target to the source."""
        ways, source = self.ways, self.source
        probable = self._left()
        if probable is not None:
            return probable
        leaves = [uid for uid in ways.ancestors(self.uids) if uid in self.tape.leaves]
        notes = []
        named = [repr(ways.names[uid]) for uid in leaves if ways.names.get(uid)]
        if named:
            notes.append(f"of what is watched it depends on {', '.join(named[:5])}{' …' if named[5:] else ''}")
        elif not leaves:
            notes.append("it depends on nothing that the tape watches")
        if ways.full:
            notes.append(
                "of the ops that no tape followed only the latest are remembered: an earlier one may be the reason"
            )
        links = [link for uid in self.uids for link in ways.made.get(uid, ())]
        if all(isinstance(one, Variable) for one in self.targets):
            text = "the target is a variable: it has no history, only a value"
        elif all(link.what in (Event.PUT, Event.PLAIN) for link in links):
            text = "the target is a constant: no op that is on record has made it"
        else:
            text = "the target was computed without the source"
        replaced = None if isinstance(source, Variable) else self._replaced()
        if replaced is not None:
            notes.append(replaced.message)
        return _said(Reason.UNCONNECTED, text, certain=not ways.full, notes=tuple(notes))

    def _left(self) -> Explanation | None:
        """A value made of the source was read while the tape was open, and the target has numbers that came later."""
        ways = self.ways
        if self.departures is None or not self.departures.log:
            return None
        opened = self.tape.turns[0][1] if self.tape.turns else 0
        reads = [one for one in self.departures.log if one.at > opened]
        if not reads:
            return None
        made = ways.descendants(self.source.uid)
        reads = [one for one in reads if one.uid in made]
        if not reads:
            return None
        for uid in ways.ancestors(self.uids):
            for link in ways.made.get(uid, ()):
                late = [one for one in reads if one.at < link.output]
                if late and link.what is Event.PUT:
                    text = (
                        f"a value made of the source was read{_at(self.place(late[-1].where))}, and the target depends "
                        "on numbers that came in later: what Python or NumPy did between is not recorded"
                    )
                    return _said(Reason.LEFT_AND_RETURNED, text, op=STEPS[link.what], where=link.where, certain=False)
        return None

    def _target_dtype(self) -> Explanation:
        target = self.targets[0]
        text = f"the target has the dtype {target.spec.dtype.name}: it has no gradient"
        for hop in self.ways.hops(target.uid):
            if not isinstance(hop.link.what, Event):
                return _said(Reason.TARGET_DTYPE, text, op=name_of(hop), where=hop.link.where, node=hop.link.node)
        return _said(Reason.TARGET_DTYPE, text)


_TIMES: Final = {
    Reason.COMPUTED_BEFORE_TAPE: "before the tape was open",
    Reason.COMPUTED_AFTER_TAPE: "after the tape had stopped recording",
    Reason.COMPUTED_WHILE_STOPPED: "while the tape was stopped",
    Reason.COMPUTED_BEFORE_RESET: "before tape.reset()",
    Reason.OTHER_CONTEXT: "in another thread or task",
}


def _said(reason: Reason, message: str, **more: Any) -> Explanation:
    return Explanation(reason, message, **more)


def _at(line: str | None) -> str:
    return f" at {line}" if line else ""


def numbers(
    recorder: Recorder,
    tape: Tape,
    targets: Sequence[Any],
    sources: Sequence[Any],
    explained: Sequence[Explanation],
    *,
    registered: Collection[str] = (),
) -> list[Explanation]:
    """The explanations, with what the numbers tell where there is a gradient. The tape stays as it is.

    Args:
        recorder: One with arrays.
        tape: As in `explain`.
        targets: As in `explain`.
        sources: As in `explain`.
        explained: What `explain` gave.
        registered: Op types whose gradient the caller has.
    """
    seeds = [
        (one.uid, recorder.ct(recorder.full(one.spec, 1)))
        for one in targets
        if one.spec.differentiable and not (isinstance(one, Variable) and one.uid not in tape.variables)
    ]
    wanted = {source.uid for source, one in zip(sources, explained, strict=True) if one.outcome is Outcome.GRADIENT}
    if not wanted or tape.consumed:
        return [without_numbers(one) if one.outcome is Outcome.GRADIENT else one for one in explained]
    try:
        look = Look(tape, seeds, wanted, registered=registered)
    except (TeletapeError, ArithmeticError, ValueError) as error:  # the arrays', as of a singular matrix
        note = f"its numbers cannot be looked at: the backward pass fails: {error}"
        return [replace(one, notes=(*one.notes, note)) if one.outcome is Outcome.GRADIENT else one for one in explained]
    return [
        _looked(look, source, one) if source.uid in wanted else one
        for source, one in zip(sources, explained, strict=True)
    ]


def without_numbers(one: Explanation) -> Explanation:
    """Of a tape that has let go of its numbers."""
    says = MEANINGS[Reason.NUMBERS_GONE].says
    if one.code is Reason.CONNECTED and one.path:
        return replace(one, code=Reason.NUMBERS_GONE, message=says)
    return one if one.code is Reason.CONNECTED else replace(one, notes=(*one.notes, says))


def _looked(look: Look, source: Any, one: Explanation) -> Explanation:
    try:
        blame = look.why(source.uid)
    except Untraceable:
        note = "its numbers are not looked at: a gradient function of the program would have to be called for it"
        return replace(one, notes=(*one.notes, note))
    if blame is None:
        return one
    notes = (*one.notes, *([one.message] if one.code is Reason.PARTLY_CUT else []))
    where = None if blame.node is None else look.nodes[blame.node][4]
    return replace(
        one,
        code=blame.code,
        message=blame.message,
        op=blame.op,
        node=blame.node,
        where=where,
        notes=notes,
        certain=blame.certain,
    )
