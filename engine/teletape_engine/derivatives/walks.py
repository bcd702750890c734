"""Walks over a tape's structure: what targets depend on, what leads to sources, in which order nodes are passed.

Nothing here computes a cotangent: that is `backward.py` alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from teletape_engine.catalogue.binding import Bound, Select
from teletape_engine.derivatives.query import Declarations
from teletape_engine.errors import NoGradientRegisteredError
from teletape_engine.recording.tape import NodeTuple, Tape
from teletape_engine.recording.values import Uid


def leading_to(tape: Tape, sources: set[Uid], declarations: Declarations) -> set[Uid | None] | None:
    """The uids through which a pass comes to the sources, or to a function of the caller's.

    Returns:
        The uids; None: all of them, since the sources are everything that the tape watches.
    """
    if tape.leaves <= sources:
        return None
    needed: set[Uid | None] = set(sources)
    for plan, inputs, output, _, _ in tape.nodes:
        if not needed.isdisjoint(inputs) or (not plan.rules and declarations.stops_at(plan)):
            needed.add(output)
    return needed


def ancestors(nodes: Sequence[NodeTuple], targets: Iterable[Uid]) -> set[Uid | None]:
    """The uids of the targets and of everything that they were computed from on the tape."""
    reached: set[Uid | None] = set(targets)
    for _, inputs, output, _, _ in reversed(nodes):
        if output in reached:
            reached.update(inputs)
    return reached


def in_tensorflow_order(nodes: Sequence[NodeTuple], targets: Sequence[Uid]) -> list[NodeTuple]:
    """The nodes that the targets depend on, the last to pass first, in the order in which TensorFlow passes them.

    A node is passed after all that used its result; of those that are ready, the one that became ready first. Any such
    order gives the same cotangents, except for rounding and for the order of rows in slices, which programs see.
    """
    maker = {output: position for position, (_, _, output, _, _) in enumerate(nodes)}
    uses: dict[Uid | None, int] = {}
    reached = {maker[uid] for uid in targets if uid in maker}
    stack = list(reached)
    while stack:
        for uid in _inputs(nodes[stack.pop()]):
            uses[uid] = uses.get(uid, 0) + 1
            if uid in maker and maker[uid] not in reached:
                reached.add(maker[uid])
                stack.append(maker[uid])
    ready = deque(dict.fromkeys(maker[uid] for uid in targets if uid in maker and uid not in uses))
    order = []
    while ready:
        node = nodes[ready.popleft()]
        order.append(node)
        for uid in _inputs(node):
            uses[uid] -= 1
            if not uses[uid] and uid in maker:
                ready.append(maker[uid])
    order.reverse()
    return order


def _inputs(node: NodeTuple) -> tuple[Uid | None, ...]:
    _, inputs, _, _, _ = node
    return inputs


def check_registered(tape: Tape, targets: Iterable[Uid], declarations: Declarations) -> None:
    """Walks from the targets to everything watched.

    Raises:
        NoGradientRegisteredError: An op on the way has no gradient at all; the first is named.
    """
    reached: set[Uid | None] = set(targets)
    for plan, inputs, output, _, where in reversed(tape.nodes):
        if output not in reached:
            continue
        if not plan.rules and (plan.bound.__class__ is Select or declarations.stops_at(plan)):
            reached.update(inputs)
            continue
        op = plan.bound.op
        if not op.registered and op.op_type not in declarations.no_gradient:
            raise NoGradientRegisteredError(
                f"gradient registry has no entry for: {op.op_type}", op=op.name, op_type=op.op_type, where=where
            )
        reached.update(inputs[i] for i, _ in plan.structural)


def source_passed_to(tape: Tape, uid: Uid | None, sources: Collection[Uid | None]) -> Uid | None:
    """The source to which a cotangent of `uid` goes unchanged: itself, or the variable that it was read from."""
    for plan, inputs, output, _, _ in reversed(tape.nodes):
        if uid in sources:
            break
        if output == uid:
            if not plan.passes:
                return None
            uid = inputs[0]
    return uid if uid in sources else None


def peak_bytes(tape: Tape, targets: Iterable[Uid], sources: Collection[Uid]) -> int:
    """About the most bytes that the cotangents of one backward pass take at a time."""
    needed = leading_to(tape, set(sources), Declarations())
    live: dict[Uid | None, int] = dict.fromkeys(targets, 0)
    total = peak = 0
    for plan, inputs, output, _, _ in reversed(tape.nodes):
        if output not in live:
            continue
        ct = plan.bound.spec.nbytes
        if output not in sources:
            total -= live.pop(output)
        for i, _ in plan.structural:
            if needed is None or inputs[i] in needed:
                share = plan.bound.specs[i].nbytes
                peak = max(peak, total + ct + 2 * share)  # the share, and what its rule computes on the way
                if inputs[i] not in live:
                    live[inputs[i]] = share
                    total += share
        if not plan.structural:  # a function of the caller's: what it computes is counted where it goes on
            live.update((uid, 0) for uid in inputs if uid not in live)
    return max(peak, total, 1)


def dependences(tape: Tape, masks: dict[Uid | None, int]) -> tuple[dict[Uid | None, int], bool, int]:
    """Which of some values each value's gradient reaches; sets of values are bit masks.

    Args:
        tape: The tape.
        masks: For each of the values its bit.

    Returns:
        For each value the mask of those that its gradient reaches; whether any rule on the way needs a residual; the
        mask of those whose gradients are slices somewhere.
    """
    reached: dict[Uid | None, int] = dict(masks)
    needs_residuals, sparse = False, 0
    for plan, inputs, output, residuals, _ in tape.nodes:
        mask = 0
        for i, _ in plan.rules:
            through = reached.get(inputs[i], 0)
            mask |= through
            if isinstance(plan.bound, Bound) and i in plan.bound.op.sparse:
                sparse |= through
        if mask:
            reached[output] = reached.get(output, 0) | mask
            needs_residuals = needs_residuals or bool(residuals)
    return reached, needs_residuals, sparse


def has_stops(tape: Tape, declarations: Declarations) -> bool:
    """Whether the gradient of any recorded call is the caller's own function."""
    return any(declarations.stops_at(plan) for plan, _, _, _, _ in tape.nodes)
