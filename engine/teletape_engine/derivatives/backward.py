"""The backward pass: the one driver, for every kind of cotangent (`recording/cotangents.py`).

An explicit loop over the nodes from the last to the first; never recursion, and time linear in the tape's length. It is
a generator: at a node whose gradient is the caller's own function it stops, and goes on with that function's result.
Whoever wants to know what happens on the way passes an `Observer`; nothing else computes cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Protocol

from teletape_engine.catalogue.binding import Select, TapeCall
from teletape_engine.catalogue.op import WorkKind
from teletape_engine.catalogue.slices import GradientKind, SparseGradient
from teletape_engine.derivatives.query import Declarations, GradientFunction, InputCotangents, Stop
from teletape_engine.derivatives.walks import check_registered, in_tensorflow_order, leading_to
from teletape_engine.generators import driven
from teletape_engine.recording.cotangents import Algebra, Ct
from teletape_engine.recording.custom import FunctionGradient
from teletape_engine.recording.executor import translated
from teletape_engine.recording.progress import never_cancelled
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid


class Observer(Protocol):
    """Receives the steps of a backward pass. Positions are those of the nodes on the tape."""

    def node(self, position: int, ct: Ct) -> None:
        """The pass comes to a node, with the cotangent of its result; a list of them for several results."""

    def share(self, position: int, i: int, ct: Ct, share: Ct) -> None:
        """From `ct`, the cotangent of the node's result, comes `share`, the part of input `i`."""


def backward(
    tape: Tape,
    starts: Sequence[tuple[Uid, Ct]],
    sources: Collection[Uid],
    algebra: Algebra,
    *,
    declarations: Declarations | None = None,
    release: bool = False,
    at_stop: GradientFunction | None = None,
    check_cancelled: Callable[[], None] = never_cancelled,
    admit_work: Callable[[TapeCall, int], None] | None = None,
) -> dict[Uid, Ct]:
    """Runs a `backward_pass` to its end.

    Args:
        tape: What was recorded.
        starts: (uid, ct) of each target.
        sources: Uids of the sources.
        algebra: The kind of cotangent.
        declarations: Those of the session; None: there are none.
        release: Frees each node after it.
        at_stop: Called at each stop; None: a stop is an error.
        check_cancelled: As for `backward_pass`.
        admit_work: As for `backward_pass`.

    Returns:
        The cts of those sources that the targets depend on.

    Raises:
        NoGradientRegisteredError: As `backward_pass`.
        UnimplementedError: The pass stops, and `at_stop` is None.
    """
    walk = backward_pass(
        tape,
        starts,
        sources,
        algebra,
        declarations=declarations,
        release=release,
        check_cancelled=check_cancelled,
        admit_work=admit_work,
    )

    def answer(stop: Stop) -> InputCotangents:
        gradient = stop.residuals[0] if stop.residuals else None
        if isinstance(gradient, FunctionGradient) and algebra.structural:
            return [GradientKind.DENSE if has_gradient else None for has_gradient in gradient.has_gradient]
        if at_stop is None:
            raise stop.unanswered()
        return at_stop(stop)

    return driven(walk, answer)


def backward_pass(
    tape: Tape,
    starts: Sequence[tuple[Uid, Ct]],
    sources: Collection[Uid],
    algebra: Algebra,
    *,
    declarations: Declarations | None = None,
    release: bool = False,
    observer: Observer | None = None,
    check_cancelled: Callable[[], None] = never_cancelled,
    admit_work: Callable[[TapeCall, int], None] | None = None,
) -> Generator[Stop, InputCotangents, dict[Uid, Ct]]:
    """A backward pass that stops where the caller's own functions compute the cotangents.

    It stops at every custom call that the targets depend on, whether or not a source comes before the call, as
    TensorFlow calls every such function.

    Args:
        tape: What was recorded. Nodes appended meanwhile (a persistent tape recording its own gradient) are not passed.
        starts: (uid, ct) of each target; a uid twice adds up.
        sources: Uids of the sources. A target that is a source keeps its own ct.
        algebra: The kind of cotangent.
        declarations: Those of the session; None: there are none.
        release: Frees each node after it.
        observer: Receives each node and share.
        check_cancelled: Called now and then, see `Algebra.nodes_between_checks`; what it raises ends the pass.
        admit_work: Called with each call on the way that takes long, and how often its work is done; what it raises
            ends the pass. None: the rules themselves run as calls that are checked.

    Yields:
        Each stop; to be sent a cotangent, or None, for each input of its call.

    Returns:
        The cts of those sources that the targets depend on.

    Raises:
        NoGradientRegisteredError: An op without a gradient lies between a target and anything that the tape watched,
            on the way to the sources or not.
    """
    declarations = Declarations() if declarations is None else declarations
    targets = [uid for uid, _ in starts]
    if tape.unregistered:
        check_registered(tape, targets, declarations)
    structural, open_residuals, add = algebra.structural, algebra.open, algebra.add
    cts = _at_targets(starts, algebra)
    wanted = set(sources)
    needed = leading_to(tape, wanted, declarations)
    nodes = _in_order(tape, targets, release=release, is_observed=observer is not None)
    passed: dict[Uid, Ct] = {}  # of sources that are results themselves
    take, forget = nodes.pop if release else reversed(nodes[:]).__next__, cts.pop
    if tape.heavy and admit_work is not None and not structural:
        take = _admitted(take, cts, needed, admit_work)
    top = len(nodes)
    while top:
        bottom = max(top - algebra.nodes_between_checks, 0)
        for position in range(top - 1, bottom - 1, -1):
            plan, inputs, output, residuals, where = take()
            ct = forget(output, None)
            if ct is None:
                continue
            if output in wanted:
                passed[output] = ct  # for good: what a custom call overruled has the same output, and must not see it
            if observer is not None:
                observer.node(position, ct)
            rules = plan.structural if structural else plan.rules
            if not rules:
                bound = plan.bound
                if bound.__class__ is Select:
                    cts.setdefault(inputs[0], [None] * len(bound.call.outputs))[bound.index] = ct
                    if observer is not None:
                        observer.share(position, 0, ct, ct)
                elif declarations.stops_at(plan):
                    shares = yield Stop(bound, inputs, _of_results(ct), residuals, where, cts)
                    for i, share in _going_on(tape, inputs, shares, needed):
                        if observer is not None:
                            observer.share(position, i, ct, share)
                        _add_to(cts, inputs[i], share, algebra)
                continue
            if ct.__class__ is SparseGradient and not plan.passes:
                ct = algebra.dense(ct)
            if residuals:
                residuals = open_residuals(residuals)
            try:
                for i, rule in rules:
                    into = inputs[i]
                    if needed is None or into in needed:
                        share = rule(ct, residuals)
                        if observer is not None:
                            observer.share(position, i, ct, share)
                        earlier = cts.get(into)
                        cts[into] = share if earlier is None else add(earlier, share)
            except (ArithmeticError, TypeError) as error:  # for a Python number among the inputs
                raise translated(error, plan.bound) from error  # type: ignore[arg-type]  # what has rules is an op
        top = bottom
        if top:
            check_cancelled()
    return _picked(cts, wanted) | passed


def _at_targets(starts: Sequence[tuple[Uid, Ct]], algebra: Algebra) -> dict[Uid | None, Ct]:
    """The cotangents with which a pass begins, by uid."""
    cts: dict[Uid | None, Ct] = {}
    for uid, ct in starts:
        _add_to(cts, uid, ct, algebra)
    return cts


def _picked(cts: Mapping[Uid | None, Ct], wanted: Collection[Uid]) -> dict[Uid, Ct]:
    return {uid: cts[uid] for uid in wanted if uid in cts}


def _of_results(ct: Ct) -> list[Ct]:
    """The cotangent of each result of a call."""
    return ct if ct.__class__ is list else [ct]


def _add_to(cts: dict[Uid | None, Ct], uid: Uid | None, share: Ct, algebra: Algebra) -> None:
    cts[uid] = algebra.add(cts[uid], share) if uid in cts else share


def _in_order(tape: Tape, targets: Sequence[Uid], *, release: bool, is_observed: bool) -> list[NodeTuple]:
    """The tape's nodes, in the order in which slices are to be concatenated if there are several."""
    if tape.sparse <= 1 or is_observed:
        return tape.nodes
    nodes = in_tensorflow_order(tape.nodes, targets)
    if release:
        tape.nodes.clear()
    return nodes


def _going_on(
    tape: Tape, inputs: Sequence[Uid | None], shares: InputCotangents, needed: Collection[Uid | None] | None
) -> list[tuple[int, Ct]]:
    """Those of the shares from the caller's function that go on backwards, each with the number of its input."""
    return [
        (i, share)
        for i, (into, share) in enumerate(zip(inputs, shares, strict=True))
        if share is not None and into in tape.tracked and (needed is None or into in needed)
    ]


def _admitted(
    take: Callable[[], NodeTuple],
    cts: Mapping[Uid | None, Ct],
    needed: Collection[Uid | None] | None,
    admit_work: Callable[[TapeCall, int], None],
) -> Callable[[], NodeTuple]:
    """`take` with a check before each node that takes long and has a cotangent."""

    def checked() -> NodeTuple:
        node = take()
        plan, inputs, output, _, _ = node
        work = plan.bound.work
        if work is not None and output in cts:
            # A rule of an op with multiply-adds has as many; that of another op may be a view.
            counted = () if work.kernel is WorkKind.ELEMENTS else plan.rules
            admit_work(plan.bound, sum([needed is None or inputs[i] in needed for i, _ in counted]))
        return node

    return checked
