"""Recording and asking: a context that runs ops, notes them on its active tapes, and answers for gradients.

`Recorder` is what the engine and an SDK without arrays share; `Executor` is the engine's, with arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from teletape_engine.arrays import Backend
from teletape_engine.attrs import NO_ATTRS, Attrs
from teletape_engine.backward import Algebra, Arrays, Operands, backward
from teletape_engine.errors import (
    InternalError,
    InvalidArgumentError,
    ResourceExhaustedError,
    TapeConsumedError,
    TeletapeError,
)
from teletape_engine.graph import Context, Literal, Tape, Uid, Variable, new_uid, record
from teletape_engine.op import CATALOGUE, Bound, Kind, Op, Operand, Runtime, Slices
from teletape_engine.spec import DType, Shape, Spec, broadcast, shape_text

Recorded: TypeAlias = Any  # a Value here, a handle in an SDK


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


class SlicesValue:
    """A sparse gradient: two recorded values and the spec of the array they stand for.

    Attributes:
        name: What a remote session knows it by, where there is one.
    """

    __slots__ = ("dense", "indices", "name", "spec", "values")

    def __init__(self, values: Recorded, indices: Recorded, dense: Spec) -> None:
        self.values, self.indices, self.dense = values, indices, dense
        self.spec = dense
        self.name: Any = None

    def __repr__(self) -> str:
        return f"<slices of {self.dense!r}>"


def kind_of(answer: Any) -> Kind:
    """The structure of one source's gradient."""
    if answer is None:
        return Kind.NONE
    return Kind.SLICES if isinstance(answer, SlicesValue) else Kind.DENSE


class Recorder(Context, Runtime):
    """A context that runs ops. Subclasses say what running, a constant and an answer are."""

    bare: Algebra  #: The algebra of a backward pass that nobody records.

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Recorded:
        """The result of one bound call."""
        raise NotImplementedError  # pragma: no cover - abstract

    def number(self, number: Literal, dtype: DType) -> Recorded:
        """A Python number as a recorded scalar."""
        raise NotImplementedError  # pragma: no cover - abstract

    def full(self, spec: Spec, number: int) -> Recorded:
        """Zeros or ones of that spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    def ct(self, value: Recorded) -> Any:
        """A recorded value as a cotangent of the `bare` algebra."""
        raise NotImplementedError  # pragma: no cover - abstract

    def answer(self, ct: Any, spec: Spec) -> Recorded:
        """A cotangent of the `bare` algebra as a recorded value (or SlicesValue) of its own."""
        raise NotImplementedError  # pragma: no cover - abstract

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Recorded:
        """Runs `op` on recorded values and literals, and notes it on the active tapes that follow an input.

        Raises:
            InvalidArgumentError: The op does not take such inputs.
            ResourceExhaustedError: The result would pass the memory limit.
        """
        bound = op.bound.get((*[value.spec for value in inputs], attrs))
        if bound is None:
            inputs, bound = self._bind(op, inputs, attrs)
        if op.expand is not None:
            return self._expand(bound, inputs)
        result = self.run(bound, inputs)
        if self.tapes:
            record(self.tapes, bound, inputs, result, where)
        return result

    def _bind(self, op: Op, inputs: Sequence[Any], attrs: Attrs) -> tuple[Sequence[Any], Bound]:
        specs = tuple([value.spec for value in inputs])
        op.check_count(len(specs))
        if not op.takes_numbers(specs):
            inputs = [
                self.number(value, op.number_dtype(i, specs)) if isinstance(value, Literal) else value
                for i, value in enumerate(inputs)
            ]
            specs = tuple([value.spec for value in inputs])
        return inputs, op.call(specs, attrs)

    def _expand(self, bound: Bound, inputs: Sequence[Any]) -> Recorded:
        assert bound.op.expand is not None
        args = [value.array if isinstance(value, Literal) else Operand(self, value) for value in inputs]
        result: Operand = bound.op.expand(*args, **bound.attrs)
        if any(result is arg for arg in args):  # unchanged: still a value of its own
            return self.apply(CATALOGUE["identity"], (result.value,))
        return result.value

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Operand:
        """Runs `op` inside a rule, on operands and Python numbers."""
        inputs = [arg.value if isinstance(arg, Operand) else Literal(arg) for arg in args]
        return Operand(self, self.apply(op, inputs, op.attrs(attrs)))

    def gradient(
        self,
        tape: Tape,
        targets: Sequence[Any],
        sources: Sequence[Any],
        *,
        seeds: Sequence[Recorded | None] | None = None,
        zeros: bool = False,
        no_gradient: Collection[str] = (),
    ) -> list[Recorded | None]:
        """The cotangent of each source (a recorded value or a Variable), summed over the targets.

        Args:
            tape: Asked; a non-persistent one stops recording and answers once.
            targets: Recorded values or variables; those of a dtype without gradients count for nothing.
            sources: Recorded values or variables.
            seeds: A cotangent for each target, None for ones; default ones.
            zeros: Whether an unconnected source gets zeros instead of None.
            no_gradient: Op types declared to have no gradient.

        Raises:
            TapeConsumedError: A non-persistent tape asked again.
            InvalidArgumentError: A seed of another shape or dtype than its target; another count than the targets.
            NoGradientRegisteredError: See `backward`.
        """
        if tape.consumed:
            raise TapeConsumedError
        given = self._seeds(targets, seeds)
        if not tape.persistent:
            if tape in self.tapes:
                self.pause(tape)
            tape.consumed = True
        recorded = bool(self.tapes)
        algebra = Operands(self) if recorded else self.bare
        started = []
        for target, seed in zip(targets, given, strict=True):
            if not target.spec.differentiable or (isinstance(target, Variable) and not tape.watches(target)):
                continue
            start = self.full(target.spec, 1) if seed is None else seed
            started.append((target.uid, Operand(self, start) if recorded else self.ct(start)))
        try:
            cts = backward(
                tape,
                started,
                {source.uid for source in sources},
                algebra,
                no_gradient=no_gradient,
                release=not tape.persistent,
            )
        finally:
            if not tape.persistent:
                watched = tape.variables
                tape.clear()
                tape.variables = watched
        finish = self._recorded_answer if recorded else self.answer
        found: list[Recorded | None] = []
        for source in sources:
            ct = cts.get(source.uid)
            if ct is not None:
                found.append(finish(ct, source.spec))
            else:
                found.append(self.full(source.spec, 0) if zeros else None)
        return found

    def _seeds(self, targets: Sequence[Any], seeds: Sequence[Any | None] | None) -> Sequence[Any | None]:
        if seeds is None:
            return [None] * len(targets)
        if len(seeds) != len(targets):
            raise InvalidArgumentError(
                f"{len(targets)} targets, but {len(seeds)} output gradients: give one for each target, None for ones"
            )
        return [seed if seed is None else self._seed(seed, one.spec) for one, seed in zip(targets, seeds, strict=True)]

    def _seed(self, seed: Recorded, spec: Spec) -> Recorded:
        if seed.spec is spec:
            return seed
        if seed.spec.dtype is not spec.dtype:
            raise InvalidArgumentError(
                f"an output gradient of dtype {seed.spec.dtype.name} for a target of {spec.dtype.name}: cast it"
            )
        if broadcast(seed.spec.shape, spec.shape) != spec.shape:
            raise InvalidArgumentError(
                f"Incompatible shapes: {shape_text(seed.spec.shape)} vs. {shape_text(spec.shape)}"
            )
        op = CATALOGUE["broadcast_to"]
        return self.apply(op, (seed,), op.attrs({"shape": spec.shape}))

    def _recorded_answer(self, ct: Any, spec: Spec) -> Recorded:
        # An identity, so that each answer is a value of its own, even where two sources share a cotangent.
        if isinstance(ct, Slices):
            return SlicesValue(self._own(ct.values), self._own(ct.indices), ct.dense)
        return self._own(ct)

    def _own(self, operand: Operand) -> Recorded:
        return self.apply(CATALOGUE["identity"], (operand.value,))


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
