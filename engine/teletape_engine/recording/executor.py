"""The engine's recorder: runs ops on a backend's arrays, prices them, and notes them on its active tapes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from teletape_engine.arrays import Backend, checks, runs_already
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound, TapeCall
from teletape_engine.catalogue.op import Op
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.errors import InternalError, InvalidArgumentError, ResourceExhaustedError, TeletapeError
from teletape_engine.ops.assign import change_of
from teletape_engine.recording.accumulators import push
from teletape_engine.recording.cotangents import Algebra, Arrays
from teletape_engine.recording.memory import EXACT_COUNTS, Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.recorder import Recorder, Share, summed
from teletape_engine.recording.values import Literal, Recorded, Value, Variable, new_uid, typed_array
from teletape_engine.spec import BFLOAT16, DTYPES, STRING, DType, Shape, Spec, native

R = TypeVar("R")


class Executor(Recorder):
    """Runs ops on a backend's arrays.

    Args:
        backend: The backend.
        memory: What its arrays may take.
        monitor: Reports progress, and learns of a cancel.
        selects: Whether it selects the device, and turns NumPy's warnings off, for each op. A session that executes
            batches does so for a batch (`Backend.quiet`).

    Attributes:
        decided: The decisions of control flow, if they are to be noted.
        repeated: Steps that plans of loops have made.
        kernel_call: Calls a function on the device and without warnings; None: all of them run so anyway.
        pass_call: The same for a backward pass, in which kernels may run.
    """

    bare: Algebra = Arrays()

    def __init__(
        self, backend: Backend, memory: Memory, monitor: Monitor | None = None, *, selects: bool = False
    ) -> None:
        super().__init__()
        self._monitor = monitor or Monitor()
        self.kernel_call = backend.kernel_call() if selects else None
        self.pass_call = backend.kernel_call() if selects else None
        self._device_call = None if backend is CPU else self.kernel_call  # of what cannot warn: the CPU needs nothing
        self.decided: list[list[int]] | None = None
        self.repeated = 0
        self.backend, self.memory, self.xp = backend, memory, backend.xp
        self.plannable, self.on_gpu = backend is CPU, backend.name == "gpu"

    @property
    def step_times(self) -> Any:
        return self._monitor.step_times

    def time_steps(self, times: Any) -> None:
        """Times the steps of functions in `times`, a `StepTimes`, from now on; None: no longer."""
        self._monitor.step_times = times

    def aside(self) -> Executor:
        """A context without tapes on the same device and limits, for computations that nothing records."""
        return Executor(self.backend, self.memory, self._monitor, selects=self.kernel_call is not None)

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        """As `Recorder.apply`. Calls of one and two inputs that were bound before are written out: the hot path."""
        n = len(inputs)
        if n == 2:
            a, b = inputs
            bound = op.bound.get((a.spec, b.spec, attrs))
        elif n == 1:
            (a,) = inputs
            bound = op.bound.get((a.spec, attrs))
        else:
            return super().apply(op, inputs, attrs, where)
        if bound is None or not bound.plain:
            return super().apply(op, inputs, attrs, where)
        memory = self.memory
        memory.spent += bound.price
        if memory.spent > memory.ceiling:
            memory.recount(bound.price, op)
        call = self.kernel_call
        try:
            if call is not None:
                array = (
                    call(bound.forward, self.xp, a.array, b.array) if n == 2 else call(bound.forward, self.xp, a.array)
                )
            else:
                array = bound.forward(self.xp, a.array, b.array) if n == 2 else bound.forward(self.xp, a.array)
        except Exception as error:
            array = self._after(error, bound, inputs)
        spec = bound.spec
        result = Value(array, spec, new_uid())
        context, provenance = self.context, self.provenance
        if where is None and provenance.locate is not None:
            where = provenance.locate()
        if context.tapes and bound.trackable:
            uids, values = ((a.uid, b.uid), (a, b, result)) if n == 2 else ((a.uid,), (a, result))
            for tape in context.tapes:
                tracked = tape.tracked
                mask = (uids[0] in tracked) + 2 * (uids[-1] in tracked) if n == 2 else uids[0] in tracked
                if mask:
                    mask *= tape.sign
                    plan = bound.plans.get(mask) or bound.plan(mask)
                    tape.nodes.append((plan, uids, result.uid, plan.keep(values), where))  # as `Tape.note`
                    tracked[result.uid] = None
                    if plan.unregistered:
                        tape.unregistered = True
                    elif plan.sparse:
                        tape.sparse += 1
                else:
                    provenance.records.append((bound, uids, result.uid, where))
        else:
            provenance.records.append((bound, (a.uid, b.uid) if n == 2 else (a.uid,), result.uid, where))
        if context.accumulators:
            with provenance.at_call_site(where):
                push(self, bound, inputs, result)
        return result

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """Prices the call, then computes it: a Value, or a tuple of several."""
        memory = self.memory
        memory.spent += bound.price
        if memory.spent > memory.ceiling:
            memory.recount(bound.price, bound.op)
        if bound.work is not None:
            self._monitor.admit_work(bound)
        try:
            if bound.blocks is None:
                array = self._quietly(bound.forward, self.xp, *[value.array for value in inputs])
            else:
                array = self._quietly(self._by_blocks, bound, [value.array for value in inputs])
        except Exception as error:
            array = self._after(error, bound, inputs)
        op = bound.op
        if bound.selects:
            return tuple([self._wrap(each) for each in array])
        if op.views:
            array = self._compact(array)
        if op.dynamic:
            return Value(array, Spec.of(tuple(array.shape), array.dtype), new_uid())
        return Value(array, bound.spec, new_uid())

    def _by_blocks(self, bound: Bound, arrays: Sequence[Any]) -> Any:
        """Computes a long forward block by block: between two of them, a cancel takes effect."""
        assert bound.blocks is not None
        (axis, cut_axes), entries = bound.blocks
        shape, dtype = bound.spec.shape, bound.spec.dtype
        length, axis = shape[axis], axis % len(shape)
        self.memory.spend(bound.spec.nbytes * entries // length, f"a block of op {bound.name!r}")
        result = self.xp.empty(shape, dtype)
        for first in range(0, length, entries):
            if first:
                self._monitor.look()
            part = slice(first, first + entries)
            cut = [x[_at(cut_axes[i], x.ndim, part)] if i in cut_axes else x for i, x in enumerate(arrays)]
            result[_at(axis, len(shape), part)] = bound.forward(self.xp, *cut)
        return result

    def _after(self, error: Exception, bound: Bound, inputs: Sequence[Any]) -> Any:
        """The result of a kernel that has not begun, since it was called from inside another one; else its error."""
        if runs_already(error):
            return self.backend.kernel_call()(bound.forward, self.xp, *[value.array for value in inputs])
        raise translated(error, bound) from error

    def _quietly(self, function: Callable[..., R], *args: Any) -> R:
        """Calls a function on the device and without warnings."""
        call = self.kernel_call
        return function(*args) if call is None else call(function, *args)

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        """Computed on arrays, and priced as its result."""
        self.memory.spend(sum([spec.nbytes for spec in bound.outputs]), "a tangent")
        if bound.work is not None:
            self._monitor.admit_work(bound, len(shares))
        try:
            values = (*inputs, *result) if bound.selects else (*inputs, result)
            total = self._quietly(_sum_of_shares, shares, [value.array for value in values])
        except Exception as error:
            raise translated(error, bound) from error
        if bound.selects:
            return tuple([None if each is None else self._wrap(each) for each in total])
        return Value(self._compact(total), bound.spec, new_uid())

    def changed(self, variable: Variable, value: Value, indices: Value, mode: str) -> Value:
        """Changes the variable's own array if nothing else can see it, else a copy."""
        on_host = mode == "slice" or variable.spec.dtype == STRING
        at = self.backend.get(indices.array) if on_host else indices.array
        return self._quietly(self._changed, variable, value.array, at, mode)

    def _changed(self, variable: Variable, array: Any, at: Any, mode: str) -> Value:
        xp = np if variable.spec.dtype == STRING else self.xp
        change = change_of(xp, variable.spec.shape, array, at, mode)

        def compute() -> Value:
            own = self._own(variable)
            change(own)
            return Value(own, variable.changing.spec, new_uid())  # whoever read the old version keeps it

        return variable.change(compute)  # type: ignore[no-any-return]  # a Value

    def _own(self, variable: Variable) -> Any:
        """The array of the value that changes, to be written into; a copy if anything else refers to it, or may."""
        is_own = EXACT_COUNTS and references(variable) <= _OWN and _writable(variable.changing.array)
        array = variable.changing.array
        if not is_own:
            self.memory.spend(variable.changing.spec.nbytes, "an assignment to a part of a variable")
            array = array.copy()
        checks.forget_bounds(array)
        return array

    def _compact(self, array: Any) -> Any:
        # A view keeps its whole base alive: one smaller than an eighth of it is worth a copy, which takes a block too.
        size = self.backend.base(array)[1]
        if size <= 8 * array.nbytes or size <= self.backend.block:
            return array
        return array.copy() if self._device_call is None else self._device_call(array.copy)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A host array as a value. The caller gives it up: it is not written into from now on."""
        self.memory.spend(array.nbytes, "a tensor")
        return Value(self.backend.put(native(array)), Spec.of(array.shape, array.dtype), new_uid())

    def number(self, number: Literal, dtype: DType) -> Value:
        """A 0-d array."""
        return self.constant(typed_array(number, dtype))

    def full(self, spec: Spec, number: int) -> Value:
        """Zeros or ones on the device."""
        self.memory.spend(spec.nbytes, "zeros" if number == 0 else "ones")
        call = self._device_call
        array = _filled(self.xp, spec, number) if call is None else call(_filled, self.xp, spec, number)
        return Value(array, spec, new_uid())

    def decide(self, value: Any) -> int:
        """Reads it. Where `decided` is a list, notes it there as [value, times in a row]."""
        decision = int(self.backend.get(value.array)) if isinstance(value, Value) else int(value.array)
        if self.decided is not None:
            note_decision(self.decided, decision, 1)
        return decision

    def check_cancelled(self) -> None:
        """As `Monitor.check_cancelled`; and has the memory looked at."""
        self._monitor.check_cancelled()
        self.memory.look(len(self.context.tapes))

    def admit_work(self, call: TapeCall, times: int = 1) -> None:
        """As `Monitor.admit_work`."""
        self._monitor.admit_work(call, times)

    def expect(self, iterations: int) -> None:
        """As `Monitor.expect`."""
        self._monitor.expect(iterations)

    def iterations_left(self, wanted: int) -> int:
        """As `Monitor.iterations_left`."""
        return self._monitor.iterations_left(wanted)

    def iteration(self, taken: int, iterations: int = 0, count: int = 1) -> None:
        """As `Monitor.iteration`; and has the memory looked at."""
        self._monitor.iteration(taken, iterations, count)
        self.memory.look(len(self.context.tapes))

    def room(self) -> float:
        """Bytes left below the session's limit."""
        return self.memory.room()

    def admit(self, nbytes: int, what: str) -> None:
        """As `Memory.spend`."""
        self.memory.spend(nbytes, what)

    def admit_pieces(self, whole: int, piece: int, count: int, what: str) -> int:
        """As `Recorder.admit_pieces`."""
        while True:
            try:
                self.memory.spend(whole + count * piece, what)
                return count
            except ResourceExhaustedError:
                if count <= 1 or self.memory.has_log:
                    raise
                count = (count + 1) // 2

    def ct(self, value: Recorded) -> Any:
        """Its array, or arrays."""
        if isinstance(value, SlicesValue):
            return SparseGradient(value.values.array, value.indices.array, value.dense)
        return value.array

    def answer(self, ct: Any, spec: Spec) -> Value | SlicesValue:
        """Wraps the arrays."""
        if isinstance(ct, SparseGradient):
            return SlicesValue(self._wrap(ct.values), self._wrap(ct.indices), ct.dense)
        if ct.shape != spec.shape or ct.dtype != spec.dtype:  # a gradient function of the caller's gave it
            return self._wrap(ct)
        return Value(self._compact(ct), spec, new_uid())

    def _wrap(self, array: Any) -> Value:
        shape: Shape = tuple(array.shape)
        return Value(self._compact(array), Spec.of(shape, array.dtype), new_uid())


def note_decision(decided: list[list[int]], decision: int, times: int) -> None:
    """Adds a decision, taken `times` in a row, to a list of [value, times in a row]."""
    if times and decided and decided[-1][0] == decision:
        decided[-1][1] += times
    elif times:
        decided.append([decision, times])


def _filled(xp: Any, spec: Spec, number: int) -> Any:
    if number == 0:
        return xp.zeros(spec.shape, spec.dtype)
    array = xp.empty(spec.shape, spec.dtype)  # with `fill` 1 µs less than `full`
    array.fill(number)
    return array


def _sum_of_shares(shares: Sequence[Share], residuals: Sequence[Any]) -> Any:
    return summed([rule(t.array, residuals) for rule, t in shares])


def _at(axis: int, ndim: int, part: slice) -> tuple[Any, ...]:
    """The index of a part along one axis."""
    return (slice(None),) * (axis % ndim) + (part,)


def references(variable: Variable) -> int:
    """How often the value that changes and its array are referred to, in all."""
    return sys.getrefcount(variable.changing) + sys.getrefcount(variable.changing.array)


def _writable(array: Any) -> bool:
    flags = array.flags
    return bool(flags.c_contiguous and flags.owndata and getattr(flags, "writeable", True))  # CuPy's arrays all are


def _own_references() -> int:
    variable = Variable(Value(np.zeros(1), Spec.of((1,), DTYPES["float64"]), 0), trainable=False)
    counts: list[int] = []

    def compute() -> Value:
        counts.append(references(variable))
        return variable.changing  # type: ignore[no-any-return]  # a Value

    variable.change(compute)
    return counts[0]


#: What `references` counts of a variable whose value nothing else refers to.
_OWN: Final = _own_references()


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
    if isinstance(error, TypeError) and any(spec.dtype is BFLOAT16 for spec in bound.specs):
        return InvalidArgumentError(f"op {op.name!r} on {shapes}: {error}", op=op.name)  # of an integer too large
    return InternalError(f"op {op.name!r} on {shapes} failed: {type(error).__name__}: {error}", op=op.name)


def evaluate(bound: Bound, arrays: Sequence[Any]) -> Any:
    """Computes a bound call on host arrays with NumPy, outside every context: for constants and checks.

    Returns:
        The result's array; of several a tuple of them.

    Raises:
        TeletapeError: The op refuses these values.
    """
    try:
        with np.errstate(all="ignore"):
            result = bound.forward(np, *arrays)
            return tuple(map(np.asarray, result)) if bound.selects else np.asarray(result)
    except Exception as error:
        raise translated(error, bound) from None
