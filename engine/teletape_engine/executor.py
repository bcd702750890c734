"""The engine's recorder: runs ops on a backend's arrays, prices them, and notes them on its active tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from teletape_engine.arrays import Backend
from teletape_engine.attrs import NO_ATTRS, Attrs
from teletape_engine.backward import Arrays
from teletape_engine.errors import InternalError, InvalidArgumentError, ResourceExhaustedError, TeletapeError
from teletape_engine.graph import Literal, Uid, new_uid
from teletape_engine.op import Bound, Op, Slices
from teletape_engine.spec import DType, Shape, Spec
from teletape_engine.tape import Recorded, Recorder, SlicesValue


class Value:
    """An array under a uid. The array is never written into: residuals and other values may share it."""

    __slots__ = ("array", "spec", "uid")

    def __init__(self, array: Any, spec: Spec, uid: Uid) -> None:
        self.array, self.spec, self.uid = array, spec, uid

    def alias(self, uid: Uid) -> Value:
        """The same array as another value."""
        return Value(self.array, self.spec, uid)

    def __repr__(self) -> str:
        return f"<value {self.uid}: {self.spec!r}>"


class Memory:
    """Bytes that arrays may take. Counted by an upper bound, which is made exact only when it would pass the limit.

    Attributes:
        limit: Bytes, or None for no limit.
        spent: At least the bytes in use. The hot path adds to it, and calls `recount` past the ceiling.
        ceiling: The limit as a number.
    """

    def __init__(self, limit: int | None, count: Callable[[], int]) -> None:
        self.limit = limit
        self.ceiling = float("inf") if limit is None else limit
        self.spent = 0
        self._exact = 0
        self._count = count

    def spend(self, nbytes: int, what: str) -> None:
        """Admits an allocation, before it is made.

        Raises:
            ResourceExhaustedError: It would pass the limit.
        """
        self.spent += nbytes
        if self.spent > self.ceiling:
            self.recount(nbytes, what)

    def recount(self, nbytes: int, what: Op | str) -> None:
        """Makes `spent` exact, the last `nbytes` of it not allocated yet, and refuses them if they pass the limit.

        Raises:
            ResourceExhaustedError: With the numbers.
        """
        used = self._count()
        self.spent = self._exact = used
        if used + nbytes > self.ceiling:
            name = what if isinstance(what, str) else f"op {what.name!r}"
            raise ResourceExhaustedError(
                f"{name} needs {nbytes:,} bytes; {used:,} of the session's {self.limit:,} are in use: release values "
                "or tapes, or ask for less",
                needed=nbytes,
                used=used,
                limit=self.limit,
            )
        self.spent += nbytes

    def estimate(self) -> int:
        """Bytes in use, at most about twice too high: an exact count walks everything, so it is made seldom."""
        if self.spent > 2 * self._exact + (1 << 20):
            self.spent = self._exact = self._count()
        return self.spent


class Executor(Recorder):
    """Runs ops on a backend's arrays."""

    bare = Arrays()

    def __init__(self, backend: Backend, memory: Memory) -> None:
        super().__init__()
        self.backend, self.memory, self.xp = backend, memory, backend.xp

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Value:
        """As `Recorder.apply`. Calls of one and two inputs that were bound before are written out: the hot path."""
        n = len(inputs)
        if n == 2:
            a, b = inputs
            bound = op.bound.get((a.spec, b.spec, attrs))
        elif n == 1:
            (a,) = inputs
            bound = op.bound.get((a.spec, attrs))
        else:
            return super().apply(op, inputs, attrs, where)  # type: ignore[no-any-return]  # a Value here
        if bound is None or not bound.plain:
            return super().apply(op, inputs, attrs, where)  # type: ignore[no-any-return]  # a Value here
        memory = self.memory
        memory.spent += bound.price
        if memory.spent > memory.ceiling:
            memory.recount(bound.price, op)
        try:
            array = bound.forward(self.xp, a.array, b.array) if n == 2 else bound.forward(self.xp, a.array)
        except Exception as error:
            raise translated(error, bound) from error
        spec = bound.spec
        result = Value(array, spec, new_uid())
        if self.tapes and bound.followed:
            uids, values = ((a.uid, b.uid), (a, b, result)) if n == 2 else ((a.uid,), (a, result))
            for tape in self.tapes:
                tracked = tape.tracked
                mask = (uids[0] in tracked) + 2 * (uids[-1] in tracked) if n == 2 else uids[0] in tracked
                if mask:
                    plan = bound.plans.get(mask) or bound.plan(mask)
                    tape.nodes.append((plan, uids, result.uid, plan.keep(values), where))
                    tracked[result.uid] = None
                    if plan.unregistered:
                        tape.unregistered = True
                    elif plan.sparse:
                        tape.sparse += 1
        return result

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Value:
        """Prices the call, then computes it."""
        memory = self.memory
        memory.spent += bound.price
        if memory.spent > memory.ceiling:
            memory.recount(bound.price, bound.op)
        try:
            array = bound.forward(self.xp, *[value.array for value in inputs])
        except Exception as error:
            raise translated(error, bound) from error
        op = bound.op
        if op.views:
            array = self._compact(array)
        if op.dynamic:
            return Value(array, Spec.of(tuple(array.shape), array.dtype), new_uid())
        return Value(array, bound.spec, new_uid())

    def _compact(self, array: Any) -> Any:
        # A view keeps its whole base alive: one smaller than an eighth of it is worth a copy.
        nbytes = array.nbytes
        return array.copy() if self.backend.base(array)[1] > 8 * nbytes else array

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A host array as a value. The caller gives it up: nobody writes into it from now on."""
        self.memory.spend(array.nbytes, "a tensor")
        return Value(self.backend.put(array), Spec.of(array.shape, array.dtype), new_uid())

    def number(self, number: Literal, dtype: DType) -> Value:
        """A 0-d array."""
        try:
            return self.constant(np.asarray(number.array, dtype))
        except (OverflowError, TypeError) as error:
            raise InvalidArgumentError(f"{number.array!r} does not fit dtype {dtype.name}: {error}") from None

    def full(self, spec: Spec, number: int) -> Value:
        """Zeros or ones on the device."""
        self.memory.spend(spec.nbytes, "zeros" if number == 0 else "ones")
        return Value(self.xp.full(spec.shape, number, spec.dtype), spec, new_uid())

    def ct(self, value: Recorded) -> Any:
        """Its array."""
        return value.array

    def answer(self, ct: Any, spec: Spec) -> Value | SlicesValue:
        """Wraps the arrays."""
        if isinstance(ct, Slices):
            return SlicesValue(self._wrap(ct.values), self._wrap(ct.indices), ct.dense)
        return Value(self._compact(ct), spec, new_uid())

    def _wrap(self, array: Any) -> Value:
        shape: Shape = tuple(array.shape)
        return Value(self._compact(array), Spec.of(shape, array.dtype), new_uid())


def translated(error: Exception, bound: Bound) -> TeletapeError:
    """An array library's exception as one of ours: the one seam where they are translated."""
    op = bound.op
    if isinstance(error, TeletapeError):
        error.details.setdefault("op", op.name)
        return error
    shapes = ", ".join(map(repr, bound.specs))
    if isinstance(error, MemoryError):  # CuPy's OutOfMemoryError is one
        return ResourceExhaustedError(
            f"op {op.name!r} on {shapes}: no memory left for {bound.price:,} bytes", op=op.name
        )
    if isinstance(error, ValueError | OverflowError | np.linalg.LinAlgError | ZeroDivisionError):
        return InvalidArgumentError(f"op {op.name!r} on {shapes}: {error}", op=op.name)
    return InternalError(f"op {op.name!r} on {shapes} failed: {type(error).__name__}: {error}", op=op.name)
