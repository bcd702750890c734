"""The recorder of a batch that is priced: ops, gradients and loops on hollow arrays, recorded as they run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from teletape_engine import commands
from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.derivatives.reports.counting import Counted
from teletape_engine.functions.control_flow import run_scan, run_while
from teletape_engine.functions.function import Function
from teletape_engine.ops.assign import change_of
from teletape_engine.pricing.hollow import MOST_KNOWN, Hollow, Ledger, Unpriced
from teletape_engine.recording.executor import Executor, evaluate
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Literal, Recorded, SpecArray, Value, Variable, new_uid, typed_array
from teletape_engine.spec import DType, Spec, native

MOST_OPS: Final = 100_000  #: Ops of one batch that are followed: about a second of it.
FOLLOWED: Final = 32  #: Iterations of a scan: what no tape records of a longer one is counted as these.


class PricingExecutor(Executor):
    """Follows ops on hollow arrays.

    Args:
        ledger: Counts what they would take.
        backend: The hollow arrays' backend.
        memory: What arrays may take.
        monitor: Knows the command.
    """

    def __init__(self, ledger: Ledger, backend: Any, memory: Memory, monitor: Monitor) -> None:
        super().__init__(backend, memory, monitor)
        self.ledger = ledger
        self._loops: list[bool] = []  # for each while loop that is followed, whether it is stopped at an unknown value

    def aside(self) -> PricingExecutor:
        return PricingExecutor(self.ledger, self.backend, self.memory, self._monitor)

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        return Recorder.apply(self, op, inputs, attrs, where)

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """Prices the call, as an `Executor` does, and counts it.

        Raises:
            ResourceExhaustedError: As the op itself.
            InvalidArgumentError: It refuses values that are known.
            Unpriced: More ops than are followed.
        """
        memory, ledger = self.memory, self.ledger
        memory.spent += bound.price
        if memory.spent > memory.ceiling:
            memory.recount(bound.price, bound.op)
        if bound.work is not None:
            self._monitor.admit_work(bound)
        arrays = [value.array for value in inputs]
        if bound.blocks is not None:
            (axis, _), entries = bound.blocks
            block = bound.spec.nbytes * entries // bound.spec.shape[axis]
            memory.spend(block, f"a block of op {bound.name!r}")
            ledger.peak = max(ledger.peak, ledger.live + bound.price + block)
        counted = ledger.count(bound, [each.value if each.__class__ is Hollow else None for each in arrays])
        if ledger.ops > MOST_OPS:
            raise Unpriced(f"a batch of more than {MOST_OPS:,} ops has no price: ask for the price of its parts")
        op, known, is_exact = bound.op, known_results(bound, arrays), True
        for each in arrays:
            if each.__class__ is Hollow and not each.exact:
                is_exact = False
        if op.dynamic:
            results = self._dynamic(bound, inputs, known)
        else:
            results = []
            for spec, result, elements in zip(bound.outputs, counted, known or (None,) * len(counted), strict=True):
                array = Hollow(ledger, result, elements, exact=is_exact)
                results.append(Value(self._compact(array) if op.views else array, spec, new_uid()))
        return tuple(results) if bound.selects else results[0]

    def _dynamic(self, bound: Bound, inputs: Sequence[Any], known: Sequence[Any] | None) -> list[Value]:
        """The results of an op whose shapes depend on values: upper bounds if they are not known."""
        if known is not None:
            pairs = [(each, Spec.of(each.shape, each.dtype)) for each in known]
            return [Value(self.ledger.new(spec, each), spec, new_uid()) for each, spec in pairs]
        uid = next((each.uid for each in inputs if isinstance(each.array, Hollow) and each.array.known is None), 0)
        self.ledger.doubts.append((uid, f"the shape of what op {bound.name!r} gives, of which this is the largest"))
        return [Value(self.ledger.new(spec, exact=False), spec, new_uid()) for spec in bound.outputs]

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A tensor of the caller's, or the spec of one."""
        self.memory.spend(array.nbytes, "a tensor")
        spec = Spec.of(array.shape, array.dtype)
        known = None if isinstance(array, SpecArray) or array.size > MOST_KNOWN else native(array)
        return Value(self.ledger.new(spec, known), spec, new_uid())

    def number(self, number: Literal, dtype: DType) -> Value:
        """A scalar."""
        return self.constant(typed_array(number, dtype))

    def full(self, spec: Spec, number: int) -> Value:
        """Zeros or ones."""
        self.memory.spend(spec.nbytes, "zeros" if number == 0 else "ones")
        known = np.full(spec.shape, number, spec.dtype) if spec.size <= MOST_KNOWN else None
        return Value(self.ledger.new(spec, known), spec, new_uid())

    def _changed(self, variable: Variable, array: Any, at: Any, mode: str) -> Value:
        if isinstance(at, np.ndarray) and not isinstance(at, SpecArray):
            change_of(np, variable.spec.shape, array, at, mode)  # refuses indices that are known

        def compute() -> Value:
            own = self._own(variable)
            own.known = None
            return Value(own, variable.changing.spec, new_uid())

        return variable.change(compute)  # type: ignore[no-any-return]  # a Value

    def decide(self, value: Any) -> int:
        """What it holds if that is known. Of a loop whose condition is not known one iteration is followed."""
        array = value.array
        if not isinstance(array, Hollow):
            return int(array)
        if array.known is not None:
            return int(array.known)
        is_first = bool(self._loops) and not self._loops[-1]
        if is_first:
            self._loops[-1] = True
            self.ledger.doubts.append(
                (value.uid, "how often a loop runs: after what is known, one more iteration is counted")
            )
        return int(is_first)

    def whole(self, command: Any, functions: Sequence[Any], inputs: Sequence[Any]) -> list[Recorded] | None:
        """The results of a loop, or of all branches if it is not known which is taken; None: of anything else."""
        if isinstance(command, commands.While):
            self._loops.append(False)
            try:
                return run_while(self, command, functions, inputs)
            finally:
                self._loops.pop()
        if isinstance(command, commands.Scan) and not self.recorded:
            return self._long_scan(command, functions, inputs)
        if isinstance(command, commands.Cond) and functions and inputs:
            selector = self.read(inputs[0]) if isinstance(inputs[0], Variable) else inputs[0]
            if isinstance(selector.array, Hollow) and selector.array.known is None:
                return self._every_branch(selector, functions, inputs[1:])
        return None

    def _long_scan(
        self, command: commands.Scan, functions: Sequence[Function], inputs: Sequence[Any]
    ) -> list[Recorded] | None:
        """The results of a loop of which some iterations are followed, and the rest counted alike; None: it is short.

        What each iteration adds is the difference between two runs of its first ones.
        """
        elements = range(command.carried, len(inputs) - command.captured)
        lengths = {inputs[i].spec.shape[0] if inputs[i].spec.shape else 0 for i in elements}
        lengths |= set() if command.length is None else {command.length}
        if len(lengths) != 1 or max(lengths) <= FOLLOWED or command.vectorize:
            return None
        (length,) = lengths
        self.expect(length)
        ledger, live = self.ledger, self.ledger.live
        counts, peak = ledger.counts(), ledger.peak
        runs: list[list[int]] = []
        results: list[Recorded] = []
        for count in (FOLLOWED // 2, FOLLOWED):
            ledger.peak, results = live, []
            begin = [self._first(value, count) if i in elements else value for i, value in enumerate(inputs)]
            results = run_scan(self, replace(command, length=count), functions, begin)
            added = [after - before for after, before in zip(ledger.counts(), counts, strict=True)]
            runs.append([*added, ledger.peak - live])
            counts = ledger.counts()
        fewer, more = runs
        rest = (length - FOLLOWED) / (FOLLOWED - FOLLOWED // 2)
        *added, highest = [more[i] + math.ceil(rest * (more[i] - fewer[i])) for i in range(len(more))]
        ledger.count_again([each - fewer[i] - more[i] for i, each in enumerate(added)])
        ledger.peak = max(peak, live + highest)
        return [self._unknown(value, None if i < command.carried else length) for i, value in enumerate(results)]

    def _first(self, value: Recorded, count: int) -> Value:
        """The first elements of a value along axis 0, in its memory."""
        spec = value.spec.with_shape((count, *value.spec.shape[1:]))
        known = None if value.array.known is None else value.array.known[:count]
        return Value(Hollow(self.ledger, Counted(self.ledger, spec, value.array.value.buffer), known), spec, new_uid())

    def _unknown(self, value: Recorded, length: int | None) -> Value:
        """A result of which no element is known; `length`: of a stack of more than were followed, else None."""
        if length is None:
            array = value.array
            return Value(Hollow(self.ledger, array.value, exact=array.exact), value.spec, value.uid)
        spec = value.spec.with_shape((length, *value.spec.shape[1:]))
        self.memory.spend(spec.nbytes, "op 'stack'")
        return Value(self.ledger.new(spec), spec, new_uid())

    def _every_branch(
        self, selector: Recorded, functions: Sequence[Function], operands: Sequence[Any]
    ) -> list[Recorded]:
        """The results of the first branch, connected to those of the others: more than any of them takes."""
        self.ledger.doubts.append((selector.uid, f"which of {len(functions)} branches is taken: all are counted"))
        branches = [[self.as_value(result) for result in branch.run(self, operands, tie=False)] for branch in functions]
        results = []
        for column in zip(*branches, strict=False):
            first, others = column[0], [value for value in column[1:] if value.spec is column[0].spec]
            results.append(self.op(ops.zeros_edge, first, *others) if others and first.spec.differentiable else first)
        return results


def known_results(bound: Bound, arrays: Sequence[Any]) -> tuple[np.ndarray[Any, Any], ...] | None:
    """The elements of a call's results, if those of all its inputs are known and few.

    Raises:
        InvalidArgumentError: The op refuses them.
    """
    if any(spec.size > MOST_KNOWN for spec in bound.outputs) or bound.work is not None:
        return None
    elements = []
    for array in arrays:
        known = array.known if array.__class__ is Hollow else array
        if known is None:
            return None
        elements.append(known)
    results = evaluate(bound, elements)
    return results if bound.selects else (results,)
