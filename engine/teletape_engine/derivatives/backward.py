"""The backward pass: one driver over every kind of cotangent (`recording/cotangents.py`).

An explicit loop over the nodes from the last to the first; never recursion, and time linear in the tape's length. It is
a generator: at a node whose gradient is the caller's own function it stops, and goes on with what that function gave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from teletape_engine.catalogue.binding import Call, Plan
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.slices import GradientKind, SparseGradient
from teletape_engine.errors import GradientRegisteredError, NoGradientRegisteredError, UnimplementedError
from teletape_engine.recording.cotangents import Algebra, Ct
from teletape_engine.recording.custom import Custom, Output, ProgramGradient
from teletape_engine.recording.tape import Node, Tape
from teletape_engine.recording.values import Uid
from teletape_engine.spec import Spec

NO_DECLARATIONS: Final[frozenset[str]] = frozenset()


class Stop(NamedTuple):
    """A node whose cotangents the caller's own function makes: of a custom call, or of an op registered by the caller.

    Attributes:
        bound: The call: a `Custom`, or an op's.
        inputs: Uids of its inputs.
        cts: The cotangent of each result; None where nothing came.
        kept: The inputs and the result of an op; of a custom call its `Function`, where that lives in this process.
        where: The caller's line.
        held: The cotangents that the pass holds meanwhile, by uid.
    """

    bound: Call
    inputs: tuple[Uid | None, ...]
    cts: list[Ct | None]
    kept: tuple[Any, ...]
    where: Any
    held: Mapping[Uid | None, Ct]

    @property
    def results(self) -> tuple[Spec, ...]:
        """Specs of the results, one for each ct."""
        return self.bound.outputs if isinstance(self.bound, Custom) else (self.bound.spec,)


#: What a caller's function gives at a stop: a cotangent for each input of the call, or None.
Shares: TypeAlias = Sequence[Ct | None]


def backward(
    tape: Tape,
    seeds: Sequence[tuple[Uid, Ct]],
    sources: Collection[Uid],
    algebra: Algebra,
    *,
    no_gradient: Collection[str] = NO_DECLARATIONS,
    release: bool = False,
    registered: Collection[str] = NO_DECLARATIONS,
    custom: Callable[[Stop], Shares] | None = None,
) -> dict[Uid, Ct]:
    """Cotangents of `sources`, from those of the targets.

    Args:
        tape: See `stops`, as for what follows.
        seeds: See there.
        sources: See there.
        algebra: See there.
        no_gradient: See there.
        release: See there.
        registered: See there.
        custom: Called at each stop.

    Returns:
        The cts of those sources that the targets depend on.

    Raises:
        NoGradientRegisteredError: See `stops`.
        UnimplementedError: The pass stops, and `custom` is None.
    """
    walk = stops(tape, seeds, sources, algebra, no_gradient=no_gradient, release=release, registered=registered)
    try:
        stop = next(walk)
        while True:
            first = stop.kept[0] if stop.kept else None
            if isinstance(first, ProgramGradient) and algebra.shadowed:
                stop = walk.send([GradientKind.DENSE if has_gradient else None for has_gradient in first.has_gradient])
                continue
            if custom is None:
                raise UnimplementedError(
                    f"the target comes from a custom call ({stop.bound.name}), whose gradient is a function of its "
                    "caller's: it is asked by backward.begin, .to, .give and .end"
                )
            stop = walk.send(custom(stop))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is untyped


def stops(
    tape: Tape,
    seeds: Sequence[tuple[Uid, Ct]],
    sources: Collection[Uid],
    algebra: Algebra,
    *,
    no_gradient: Collection[str] = NO_DECLARATIONS,
    release: bool = False,
    registered: Collection[str] = NO_DECLARATIONS,
) -> Generator[Stop, Shares, dict[Uid, Ct]]:
    """A backward pass that stops where the caller's own functions make the cotangents.

    It stops at every custom call that the targets depend on, whether or not the sources lie behind it, as TensorFlow
    calls every such function.

    Args:
        tape: What was recorded. Nodes appended meanwhile (a persistent tape recording its own gradient) are not walked.
        seeds: (uid, ct) of each target; a uid twice adds up.
        sources: Uids asked for. A target that is a source keeps its own seed.
        algebra: The kind of cotangent.
        no_gradient: Op types declared to have no gradient.
        release: Frees each node as it is passed.
        registered: Op types, without a gradient of their own, whose gradient the caller has.

    Yields:
        Each stop; to be sent a cotangent, or None, for each input of its call.

    Returns:
        The cts of those sources that the targets depend on.

    Raises:
        NoGradientRegisteredError: An op without a gradient lies between a target and anything that the tape watched,
            on the way to the sources or not.
    """
    if tape.unregistered:
        _check_registered(tape, [uid for uid, _ in seeds], no_gradient, registered)
    cts: dict[Uid | None, Ct] = {}
    for uid, ct in seeds:
        cts[uid] = algebra.add(cts[uid], ct) if uid in cts else ct
    nodes = tape.nodes
    wanted = set(sources)
    needed = reaching(tape, wanted, registered)
    shadowed, open_kept, add = algebra.shadowed, algebra.open, algebra.add
    if tape.sparse > 1:  # slices are concatenated as they arrive
        nodes = _in_width(nodes, [uid for uid, _ in seeds])
        if release:
            tape.nodes.clear()
    found: dict[Uid, Ct] = {}
    tracked = tape.tracked
    take, forget = nodes.pop if release else reversed(nodes[:]).__next__, cts.pop
    for _ in range(len(nodes)):
        plan, inputs, output, kept, where = take()
        ct = forget(output, None)
        if ct is None:
            continue
        if output in wanted:
            found[output] = ct  # for good: what a custom call overruled has the same output, and must not see it
        rules = plan.structural if shadowed else plan.rules
        if not rules:
            bound = plan.bound
            if bound.__class__ is Output:
                cts.setdefault(inputs[0], [None] * bound.count)[bound.index] = ct
            elif _answered(plan, registered):
                shares = yield Stop(bound, inputs, ct if ct.__class__ is list else [ct], kept, where, cts)
                for into, share in zip(inputs, shares, strict=True):
                    if share is not None and into in tracked and (needed is None or into in needed):
                        known = cts.get(into)
                        cts[into] = share if known is None else add(known, share)
            continue
        if ct.__class__ is SparseGradient and not plan.passes:
            ct = algebra.dense(ct)
        if kept:
            kept = open_kept(kept)
        for i, rule in rules:
            into = inputs[i]
            if needed is None or into in needed:
                share = rule(ct, kept)
                known = cts.get(into)
                cts[into] = share if known is None else add(known, share)
    return {uid: cts[uid] for uid in wanted if uid in cts} | found


def _answered(plan: Plan, registered: Collection[str]) -> bool:
    """Whether the caller's own function makes the cotangents of this node's inputs."""
    return plan.bound.__class__ is Custom or (plan.unregistered and plan.bound.op_type in registered)


def reaching(tape: Tape, sources: set[Uid], registered: Collection[str]) -> set[Uid | None] | None:
    """The uids through which the sources, or a function of the caller's, can be reached; None: everything is."""
    if tape.leaves <= sources:
        return None
    needed: set[Uid | None] = set(sources)
    for plan, inputs, output, _, _ in tape.nodes:
        if not needed.isdisjoint(inputs) or (not plan.rules and _answered(plan, registered)):
            needed.add(output)
    return needed


def _in_width(nodes: Sequence[Node], targets: Sequence[Uid]) -> list[Node]:
    """The nodes that the targets depend on, the last to pass first, in the order in which TensorFlow passes them.

    A node is passed when all that used its result has been; of those that are ready the one that became so first.
    Any such order gives the same cotangents but for rounding, and for the order of rows in slices, which programs see.
    """
    maker = {node[2]: k for k, node in enumerate(nodes)}
    uses: dict[Uid | None, int] = {}
    found = {maker[uid] for uid in targets if uid in maker}
    reached = list(found)
    while reached:
        for uid in nodes[reached.pop()][1]:
            uses[uid] = uses.get(uid, 0) + 1
            if uid in maker and maker[uid] not in found:
                found.add(maker[uid])
                reached.append(maker[uid])
    ready = deque(dict.fromkeys(maker[uid] for uid in targets if uid in maker and uid not in uses))
    order = []
    while ready:
        node = nodes[ready.popleft()]
        order.append(node)
        for uid in node[1]:
            uses[uid] -= 1
            if not uses[uid] and uid in maker:
                ready.append(maker[uid])
    order.reverse()
    return order


def _check_registered(
    tape: Tape, targets: Sequence[Uid], no_gradient: Collection[str], registered: Collection[str]
) -> None:
    """Follows from the targets to everything watched, and stops at the first op that has no gradient at all."""
    reached: set[Uid | None] = set(targets)
    for plan, inputs, output, _, where in reversed(tape.nodes):
        if output not in reached:
            continue
        if not plan.rules and (plan.bound.__class__ is Output or _answered(plan, registered)):
            reached.update(inputs)
            continue
        op = plan.bound.op
        if not op.registered and op.op_type not in no_gradient:
            raise NoGradientRegisteredError(
                f"gradient registry has no entry for: {op.op_type}", op=op.name, op_type=op.op_type, where=where
            )
        reached.update(inputs[i] for i, _ in plan.structural)


def declare(declared: set[str], op_type: str, others: Collection[str], catalogue: Mapping[str, Op]) -> None:
    """Adds `op_type` to those that a session declares to have no gradient, or one of the caller's.

    Args:
        declared: Where it is added.
        op_type: TensorFlow's op type.
        others: The types declared the other way.
        catalogue: The ops there are.

    Raises:
        GradientRegisteredError: The type is registered, by the catalogue or by an earlier declaration.
    """
    registered = any(op.op_type == op_type and op.registered for op in catalogue.values())
    if registered or op_type in declared or op_type in others:
        raise GradientRegisteredError(f"Registering two gradient with name '{op_type}'!", op_type=op_type)
    declared.add(op_type)


def declare_no_gradient(declared: set[str], op_type: str, catalogue: Mapping[str, Op]) -> None:
    """See `declare`."""
    declare(declared, op_type, (), catalogue)
