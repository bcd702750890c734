"""Forward mode: accumulators, whose tangents are computed as ops run.

An accumulator is active in a context, as tapes are. What it does to follow an op is seen by the tapes and the
accumulators that were opened before it, and by no other: it lies inside them.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.rule import NOT_REGISTERED, BoundRule
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError
from teletape_engine.recording.values import Uid, Variable
from teletape_engine.spec import Spec


class Accumulator:
    """The tangents of what was computed, while it was active, from its primals.

    A tangent lives as long as the value that it belongs to: the weight of forward mode is that of the values in use.

    Args:
        no_gradient: Op types declared to have no gradient; those of the session, so that later ones count.
        surfaces: Whether errors are raised as the exceptions that a TensorFlow program expects.

    Attributes:
        name: Its id on a server, or None.
    """

    def __init__(self, no_gradient: Collection[str] = (), *, surfaces: bool = False) -> None:
        self.no_gradient, self.surfaces = no_gradient, surfaces
        self.name: Any = None
        self._tangents: dict[Uid, tuple[Any, Any]] = {}  # with what keeps watch over the value's life

    def watch(self, primal: Any, tangent: Any) -> None:
        """Gives a value or a Variable its tangent.

        Raises:
            InvalidArgumentError: The tangent has another shape or dtype.
        """
        check_tangent(primal.spec, tangent.spec)
        self.follow(primal, tangent)

    def follow(self, value: Any, tangent: Any) -> None:
        """Notes the tangent of a recorded value or a Variable."""
        uid = value.uid
        # A variable is no larger than its tangent, and programs ask for it by other objects: it is not watched over.
        reference = None if isinstance(value, Variable) else weakref.ref(value, _Forget(self._tangents, uid))
        self._tangents[uid] = (tangent, reference)

    def tangent(self, value: Any) -> Any | None:
        """The tangent of a recorded value or a Variable, if it has one."""
        entry = self._tangents.get(value.uid)
        return None if entry is None else entry[0]

    def mask(self, inputs: Sequence[Any]) -> int:
        """Which inputs of a call have a tangent (bit i: input i)."""
        tangents = self._tangents
        mask, bit = 0, 1
        for value in inputs:
            if value.uid in tangents:
                mask |= bit
            bit += bit
        return mask

    def read(self, variable: Variable, value: Any) -> None:
        """`value` was read from a variable: if that has a tangent, it has the same."""
        entry = self._tangents.get(variable.uid)
        if entry is not None and value.spec.differentiable:
            self.follow(value, entry[0])

    @property
    def followed(self) -> Collection[Uid]:
        """Uids of the values and variables that have a tangent."""
        return self._tangents.keys()

    def tangents(self) -> list[Any]:
        """All that there are."""
        return [tangent for tangent, _ in list(self._tangents.values())]

    def entries(self) -> list[tuple[Uid, Any, Any | None]]:
        """Each uid, its tangent, and the value whose life that has; None: it is a variable's, and stays."""
        return [
            (uid, tangent, None if reference is None else reference())
            for uid, (tangent, reference) in list(self._tangents.items())
        ]

    def restore(self, entries: Iterable[tuple[Uid, Any, Any | None]]) -> None:
        """Takes the `entries` of another one."""
        for uid, tangent, value in entries:
            if value is None:
                self._tangents[uid] = (tangent, None)
            else:
                self.follow(value, tangent)

    def __repr__(self) -> str:
        return f"<Accumulator, {len(self._tangents)} tangents>"


class Following(Protocol):
    """What `push` needs of a context."""

    @property
    def accumulators(self) -> Sequence[Accumulator]:
        """The active ones."""


class Pushing(Protocol):
    """What `push` needs of a recorder."""

    @property
    def context(self) -> Following:
        """Where the accumulators are active."""

    def tangent(
        self,
        accumulator: Accumulator,
        bound: Bound,
        shares: Sequence[tuple[BoundRule, Any]],
        inputs: Sequence[Any],
        result: Any,
    ) -> Any:
        """See `Recorder.tangent`."""


class _Forget:
    """Forgets the tangent of a value that is gone. No cycle: it knows the table, not the accumulator."""

    __slots__ = ("table", "uid")

    def __init__(self, table: dict[Uid, Any], uid: Uid) -> None:
        self.table, self.uid = table, uid

    def __call__(self, _: object) -> None:
        self.table.pop(self.uid, None)


def check_tangent(primal: Spec, tangent: Spec) -> None:
    """Refuses a tangent that is not of its primal's shape and dtype.

    Raises:
        InvalidArgumentError: With both.
    """
    if tangent is not primal:
        raise InvalidArgumentError(
            f"a primal is {primal!r} and its tangent {tangent!r}: a tangent has the shape and dtype of its primal"
        )


def push(recorder: Pushing, bound: Bound, inputs: Sequence[Any], result: Any) -> None:
    """Has each active accumulator follow one call: the tangent of its result, or results, if an input has one.

    The outermost comes first, since what the inner ones compute may use the result, and is seen by the outer ones.

    Raises:
        NoGradientRegisteredError: An input has a tangent, and the op has no derivative at all.
    """
    if not bound.trackable:
        return
    for accumulator in tuple(recorder.context.accumulators):
        mask = accumulator.mask(inputs)
        if not mask:
            continue
        op = bound.op
        if NOT_REGISTERED in op.vjp and any(
            mask >> i & 1 and spec.differentiable for i, spec in enumerate(bound.specs)
        ):
            if op.op_type in accumulator.no_gradient:
                continue
            error = NoGradientRegisteredError(
                f"gradient registry has no entry for: {op.op_type}", op=op.name, op_type=op.op_type
            )
            raise error.surfaced() if accumulator.surfaces else error
        rules = bound.jvp_rules(mask)
        if rules:
            shares = [(rule, accumulator.tangent(inputs[i])) for i, rule in rules]
            tangent = recorder.tangent(accumulator, bound, shares, inputs, result)
            if result.__class__ is not tuple:
                accumulator.follow(result, tangent)
                continue
            for each, its_tangent in zip(result, tangent, strict=True):
                if its_tangent is not None:
                    accumulator.follow(each, its_tangent)
