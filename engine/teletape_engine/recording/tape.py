"""Tapes: which ops were recorded, on what, and what is watched. Structure alone, no arrays.

The engine, which has arrays, and an SDK that has only specs run this same code, so that "is this watched?", "will this
gradient be None?" and "why?" have one answer. What passes through here has `uid` (which value it is) and `spec`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from teletape_engine.catalogue.binding import Bound, CallPlan, TapeCall
from teletape_engine.recording.provenance import Records
from teletape_engine.recording.values import Trackable, Uid, Variable, new_uid

#: A node as a tape has it. A plain tuple: one is made for every op of every tape, and a class costs four times as much.
NodeTuple: TypeAlias = tuple[CallPlan, tuple[Uid | None, ...], Uid, tuple[Any, ...], Any]


class Node(NamedTuple):
    """One recorded call, with names; see `Tape.calls`.

    Attributes:
        plan: The call, and the rules of its gradient.
        inputs: Uids of the inputs; None: a Python number.
        output: Uid of the result.
        residuals: What the rules need of (*inputs, result).
        where: The call site.
    """

    plan: CallPlan
    inputs: tuple[Uid | None, ...]
    output: Uid
    residuals: tuple[Any, ...]
    where: Any


#: The columns of a node that are structure: all but the residuals.
_STRUCTURE: Final = tuple(itemgetter(column) for column in (0, 1, 2, 4))
_NO_STRUCTURE: Final[tuple[list[Any], ...]] = tuple([] for _ in _STRUCTURE)


_TURNS: Final = 4096


class Tape:
    """What was recorded while it was active.

    Attributes:
        persistent: Answers more than once.
        watch_accessed: Watches trainable variables as they are read.
        nodes: Recorded calls in order.
        tracked: Uids that the tape follows: the watched ones and what was computed from them (a set with an order).
        leaves: The watched ones alone.
        variables: Watched variables by uid, in the order of first access. The tape keeps them alive.
        unregistered: Whether a node has an op with no gradient registered.
        sparse: Number of nodes whose gradient may be slices.
        heavy: Whether a node's call takes long.
        consumed: A non-persistent tape that has answered.
        sign: Of the masks of its plans: -1 if it keeps every input, so that its calls can be run again.
        turns: What happened to it when, as (open, pause or reset; a uid): what was computed before a turn has a lower
            uid. Of very many the first and the latest.
        logs: Records of the provenance logs of the contexts in which it was open.
        declined: Calls and inputs for which the caller's own gradient function has given None.
        name: Its id on a server, or None.
    """

    __slots__ = (
        "_skeleton",
        "consumed",
        "declined",
        "heavy",
        "leaves",
        "logs",
        "name",
        "nodes",
        "persistent",
        "sign",
        "sparse",
        "tracked",
        "turns",
        "unregistered",
        "variables",
        "watch_accessed",
    )

    def __init__(self, *, persistent: bool = False, watch_accessed: bool = True, replayable: bool = False) -> None:
        self.persistent = persistent
        self.sign = -1 if replayable else 1
        self.watch_accessed = watch_accessed
        self.consumed = False
        self.name: Any = None
        self.turns: list[tuple[str, Uid]] = []
        self.logs: list[Records] = []
        self.declined: set[tuple[TapeCall, int]] = set()
        self.clear()

    def clear(self) -> None:
        """Forgets everything recorded and watched."""
        self.nodes: list[NodeTuple] = []
        self.tracked: dict[Uid | None, None] = {}
        self.leaves: set[Uid] = set()
        self.variables: dict[Uid, Variable] = {}
        self.unregistered = False
        self.sparse = 0
        self.heavy = False
        self._skeleton: tuple[list[Any], ...] = _NO_STRUCTURE

    def consume(self) -> None:
        """It answers now, and no more; its structure stays, for explanations and pictures."""
        self.consumed = True
        # By column: no object for the garbage collector to follow, where a tuple a node cost it 0.6 µs each.
        self._skeleton = tuple([list(map(column, self.nodes)) for column in _STRUCTURE])

    def free(self) -> None:
        """Lets go of what a consumed tape kept to answer; structure, leaves and variables stay."""
        self.nodes = []
        self.tracked = {}

    @property
    def replayable(self) -> bool:
        """Whether its calls can be run again."""
        return self.sign < 0

    @property
    def length(self) -> int:
        """How many calls it has recorded."""
        return len(self._skeleton[0]) if self.consumed else len(self.nodes)

    def __repr__(self) -> str:
        kind = "persistent" if self.persistent else "consumed" if self.consumed else "not persistent"
        return f"<Tape {kind}, {self.length} ops, watching {len(self.leaves)}>"

    def structure(self) -> list[NodeTuple]:
        """What was recorded, in order; of a consumed tape without anything kept."""
        if not self.consumed:
            return self.nodes
        plans, inputs, outputs, wheres = self._skeleton
        return list(zip(plans, inputs, outputs, itertools.repeat(()), wheres, strict=False))

    def calls(self) -> Iterator[Node]:
        """The recorded calls in order, with names."""
        return map(Node._make, self.nodes)

    def note(
        self, plan: CallPlan, inputs: tuple[Uid | None, ...], output: Uid, residuals: tuple[Any, ...], where: Any
    ) -> None:
        """Notes a call, and tracks its result from now on. `Executor.apply` has the same lines, for speed."""
        self.nodes.append((plan, inputs, output, residuals, where))
        self.tracked[output] = None
        if plan.bound.work is not None:
            self.heavy = True
        if plan.unregistered:
            self.unregistered = True
        elif plan.sparse:
            self.sparse += 1

    def note_turn(self, how: str) -> None:
        """Notes that it is opened, paused or reset now."""
        self.turns.append((how, new_uid()))
        if len(self.turns) > _TURNS:
            del self.turns[1 : _TURNS // 2 | 1]  # in pairs: what is left still alternates

    @contextmanager
    def aside(self) -> Iterator[None]:
        """A block after which the tape is as it was before: what it recorded in the block is forgotten."""
        length, unregistered, sparse, heavy = len(self.nodes), self.unregistered, self.sparse, self.heavy
        try:
            yield
        finally:
            for node in self.nodes[length:]:
                self.tracked.pop(node[2], None)
            del self.nodes[length:]
            self.unregistered, self.sparse, self.heavy = unregistered, sparse, heavy

    def watch(self, value: Trackable | Variable) -> None:
        """Follows `value` from now on; without effect for dtypes that have no gradient."""
        if isinstance(value, Variable):
            self.variables.setdefault(value.uid, value)
        if value.spec.differentiable:
            self.tracked[value.uid] = None
            self.leaves.add(value.uid)

    def watches(self, variable: Variable) -> bool:
        """Whether reading `variable` is recorded here; a first access that is, is remembered."""
        if variable.uid in self.variables:
            return True
        if self.watch_accessed and variable.trainable:
            self.watch(variable)
            return True
        return False


def record(
    tapes: Sequence[Tape],
    bound: Bound,
    inputs: Sequence[Any],
    result: Any,
    where: Any = None,
    log: Records | None = None,
) -> None:
    """Notes one call on each tape that tracks one of its inputs; the result is tracked from then on.

    What a tape does not track, or no tape is active to track, goes to the provenance log. A call of several results, of
    which `result` is the tuple, is a node under a uid of its own, and after it one `Select` for each of them.
    """
    if result.__class__ is tuple:
        _record_several(tapes, bound, inputs, result, where, Records() if log is None else log)
        return
    uids = tuple([value.uid for value in inputs])
    if not (tapes and bound.trackable):
        if log is not None:
            log.append((bound, uids, result.uid, where))
        return
    for tape in tapes:
        tracked = tape.tracked
        mask, bit = 0, 1
        for uid in uids:
            if uid in tracked:
                mask |= bit
            bit += bit
        if mask:
            mask *= tape.sign
            plan = bound.plans.get(mask) or bound.plan(mask)
            tape.note(plan, uids, result.uid, plan.keep((*inputs, result)), where)
        elif log is not None:
            log.append((bound, uids, result.uid, where))


def _record_several(
    tapes: Sequence[Tape], bound: Bound, inputs: Sequence[Any], results: tuple[Any, ...], where: Any, log: Records
) -> None:
    uids, group = tuple([value.uid for value in inputs]), new_uid()
    followed = [bound.trackable and result.spec.differentiable for result in results]
    selects = [*zip(bound.selects, results, followed, strict=True)]
    logged = not (tapes and bound.trackable)
    for tape in tapes if bound.trackable else ():
        mask = sum([1 << i for i, uid in enumerate(uids) if uid in tape.tracked])
        if not mask:
            logged = True
            continue
        plan = bound.plan(mask * tape.sign)
        tape.note(plan, uids, group, plan.keep((*inputs, *results)), where)
        for select, result, is_followed in selects:
            if is_followed:
                tape.note(select, (group,), result.uid, (), where)
    if logged:
        log.append((bound, uids, group, where))
    for select, result, is_followed in selects:
        if logged or not is_followed:
            log.append((select.bound, (group,), result.uid, where))
