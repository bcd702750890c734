"""Recording: a context that runs ops and notes them on its active tapes.

`Recorder` is what the engine (`teletape_engine.recording.executor`) and an SDK without arrays share.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeAlias

import numpy as np

from teletape_engine.catalogue.attributes import NO_ATTRS, Attrs
from teletape_engine.catalogue.binding import Bound, TapeCall, bind
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.rule import BoundRule
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.ops.assign import WHOLE, check_scatter
from teletape_engine.recording.accumulators import Accumulator, push
from teletape_engine.recording.context import Context
from teletape_engine.recording.cotangents import Algebra
from teletape_engine.recording.provenance import ProvenanceLog
from teletape_engine.recording.tape import record
from teletape_engine.recording.values import Literal, Recorded, Variable, new_uid, typed_array
from teletape_engine.spec import DType, Spec, weak_dtype

Share: TypeAlias = tuple[BoundRule, Recorded]  #: A jvp rule of `Bound.jvp_rules`, and the tangent of its input.

P = ParamSpec("P")


class Mode(enum.Enum):
    """What a recorder does with loops, conditions and gradients.

    CONNECTS, UNROLLS and REPLAYS have specs and no arrays.
    """

    COMPUTES = "computes"  #: There are arrays: decisions are read.
    WRITES = "writes"  #: Ops become steps of a function, gradients too; a decision is an error.
    CONNECTS = "connects"  #: Of a loop or condition: results, connected to what they could depend on.
    UNROLLS = "unrolls"  #: As CONNECTS, but under a tape a loop of known length is followed by iterations.
    REPLAYS = "replays"  #: As UNROLLS, and decisions that a server took are known.

    @property
    def decides(self) -> bool:
        """Whether loops and conditions are followed as they run."""
        return self not in (Mode.CONNECTS, Mode.UNROLLS)

    @property
    def predicts(self) -> bool:
        """Whether a backward pass that nothing records predicts the structure of its result, and computes nothing."""
        return self not in (Mode.COMPUTES, Mode.WRITES)


class Recorder(Runtime):
    """A context that runs ops. Subclasses say what running, a constant and an answer are."""

    backend: Any = None  #: The arrays' backend; None: there are no arrays.
    kernel_call: Callable[..., Any] | None = None  #: See `Executor`; None: nothing is to be selected for a kernel.
    pass_call: Callable[..., Any] | None = None  #: The same.
    bare: Algebra  #: The algebra of a backward pass that is not recorded.
    mode: Mode = Mode.COMPUTES
    plannable: bool = False  #: Whether functions may run as plans: it computes on NumPy's arrays.
    on_gpu: bool = False  #: Whether it computes on a GPU: functions then run as plans of another kind.

    def __init__(self) -> None:
        self.provenance = ProvenanceLog()
        self.context = Context(self.provenance)

    @property
    def step_times(self) -> Any:
        """The `functions.steps.StepTimes` of functions that run here; None: they are not timed."""
        return None

    @property
    def recorded(self) -> bool:
        """Whether a tape or an accumulator records what runs."""
        return self.context.active

    def read(self, variable: Variable) -> Recorded:
        """The variable's value as an op's input."""
        return self.context.read(variable)

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """The result of one bound call; a tuple of several."""
        raise NotImplementedError  # pragma: no cover - abstract

    def number(self, number: Literal, dtype: DType) -> Recorded:
        """A Python number as a recorded scalar."""
        raise NotImplementedError  # pragma: no cover - abstract

    def typed(self, literal: Literal, dtype: DType) -> Recorded:
        """A number or untyped list as a recorded value of that dtype."""
        if literal.spec.shape:
            return self.constant(typed_array(literal, dtype))
        return self.number(literal, dtype)

    def full(self, spec: Spec, number: int) -> Recorded:
        """Zeros or ones of that spec."""
        raise NotImplementedError  # pragma: no cover - abstract

    def ct(self, value: Recorded) -> Any:
        """A recorded value (or SlicesValue) as a cotangent of the `bare` algebra."""
        raise NotImplementedError  # pragma: no cover - abstract

    def answer(self, ct: Any, spec: Spec) -> Recorded:
        """A cotangent of the `bare` algebra as a recorded value (or SlicesValue) of its own."""
        raise NotImplementedError  # pragma: no cover - abstract

    def bare_tangent(self, bound: Bound, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        """The sum of the shares, computed on what the `bare` algebra computes with."""
        raise NotImplementedError  # pragma: no cover - abstract

    def tangent(
        self,
        accumulator: Accumulator,
        bound: Bound,
        shares: Sequence[Share],
        inputs: Sequence[Any],
        result: Any,
    ) -> Any:
        """The tangents of a call's result, or results, to one accumulator, seen by those that lie outside it."""
        tapes, accumulators = self.context.outside(accumulator)
        if not tapes and not accumulators:
            return self.bare_tangent(bound, shares, inputs, result)
        with self.context.only(tapes, accumulators):
            return self.sum_of_shares(shares, inputs, result)

    def sum_of_shares(self, shares: Sequence[Share], inputs: Sequence[Any], result: Any) -> Any:
        """The sum of the shares of a tangent, computed by recorded ops."""
        values = (*inputs, *result) if result.__class__ is tuple else (*inputs, result)
        residuals = [value.array if isinstance(value, Literal) else Operand(self, value) for value in values]
        total = summed([rule(Operand(self, t), residuals) for rule, t in shares])
        if total.__class__ is tuple:
            return tuple([None if each is None else each.value for each in total])
        return total.value

    def whole(self, command: Any, functions: Sequence[Any], inputs: Sequence[Any]) -> list[Recorded] | None:
        """The results of a command that takes functions, if it is recorded as one step; None: step by step."""
        return None

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """A block of steps that may not run: no value is refused in it."""
        yield

    def decide(self, value: Recorded) -> int:
        """What a scalar bool or integer holds: all that control flow ever looks at."""
        raise NotImplementedError  # pragma: no cover - abstract

    def check_cancelled(self) -> None:
        """Some steps of a function are done; CancelledError if it is not to go on."""

    def admit_work(self, call: TapeCall, times: int = 1) -> None:
        """A call that takes long is about to run, once or several times; see `Monitor.admit_work`."""

    def expect(self, iterations: int) -> None:
        """A loop is about to take `iterations`; ResourceExhaustedError if those are too many."""

    def iteration(self, taken: int, iterations: int = 0) -> None:
        """A loop is about to take another iteration after `taken`, of `iterations` in all (0: not known).

        Raises:
            CancelledError, ResourceExhaustedError: It is not to go on.
        """

    def room(self) -> float:
        """Bytes that may still be allocated."""
        return float("inf")

    def admit(self, nbytes: int, what: str) -> None:
        """Accounts for an allocation before it is made.

        Raises:
            ResourceExhaustedError: It would pass the memory limit.
        """

    def admit_pieces(self, whole: int, piece: int, count: int, what: str) -> int:
        """Does so for what is computed in pieces; returns how many at once.

        They are half as many, again and again, if no more can be reserved; but not in a session with a log, whose
        values must be the same bits when that is run again.

        Args:
            whole: Bytes in addition to the pieces.
            piece: Bytes of each.
            count: Pieces at once, at most.
            what: For the refusal.

        Raises:
            ResourceExhaustedError: Not even one fits.
        """
        return count

    def constant(self, array: np.ndarray[Any, Any]) -> Recorded:
        """A host array as a recorded value. The caller gives it up: it is not written into from now on."""
        raise NotImplementedError  # pragma: no cover - abstract

    def changed(self, variable: Variable, value: Recorded, indices: Recorded, mode: str) -> Recorded:
        """What the variable holds with a part of it changed. Whoever follows specs alone has that of its value."""
        return self.full(variable.spec, 0)

    def assign(
        self,
        variable: Variable,
        value: Recorded | Literal,
        mode: str = "set",
        indices: Recorded | Literal | None = None,
    ) -> None:
        """The variable's next version, outside every tape: an update is no step of what is differentiated.

        Args:
            variable: Of this recorder.
            value: Of the variable's spec, or as `ops.assign` says; a literal takes its dtype.
            mode: set, add or sub; with `indices` those of `ops.assign`.
            indices: Which part of the variable.

        Raises:
            InvalidArgumentError: Another shape or dtype than the variable's; another mode; an index outside of it.
        """
        if isinstance(value, Literal):
            value = self.as_value(value, variable.spec.dtype)
        if indices is not None or mode not in WHOLE:
            part = self.as_value(indices, indices.spec.integer) if isinstance(indices, Literal) else indices
            check_scatter(variable.spec, value.spec, None if part is None else part.spec, mode)
            variable.assign(self.changed(variable, value, part, mode))
            self.provenance.note_assignment(variable, value.uid, mode)
            return
        if value.spec is not variable.spec:
            raise InvalidArgumentError(
                f"variable {variable.name!r} holds {variable.spec!r}, found {value.spec!r}: an assignment keeps both "
                "shape and dtype"
            )
        if mode == "set":
            variable.assign(value.alias(new_uid()))
        else:
            bound = bind(CATALOGUE[mode], (variable.spec, value.spec))
            variable.assign(self.run(bound, (variable.value, value)))
        self.provenance.note_assignment(variable, value.uid, mode)

    def op(self, op: Callable[P, Any], *inputs: P.args, **attrs: P.kwargs) -> Recorded:
        """Runs an op, for example `recorder.op(ops.reshape, x, shape=(2, 3))`. See `apply`.

        Args:
            op: An attribute of `ops`, which has the types of its inputs and attributes.
            *inputs: Recorded values and literals.
            **attrs: Its attributes.
        """
        assert isinstance(op, Op)
        return self.apply(op, inputs, op.attrs(attrs))

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Attrs = NO_ATTRS, where: Any = None) -> Any:
        """Runs `op` on recorded values and literals, and notes it on the active tapes that follow an input.

        Returns:
            The result; of an op with several a tuple of them.

        Raises:
            InvalidArgumentError: The op does not take such inputs.
            ResourceExhaustedError: The result would pass the memory limit.
        """
        bound = op.bound.get((*[value.spec for value in inputs], attrs))
        if bound is None:
            inputs, bound = self._bind(op, inputs, attrs)
        if where is None:
            where = self.provenance.here()
        if op.expand is not None:
            return self._expand(bound, inputs, where)
        result = self.run(bound, inputs)
        record(self.context.tapes, bound, inputs, result, where, self.provenance.records)
        if self.context.accumulators:
            with self.provenance.at_call_site(where):
                push(self, bound, inputs, result)
        return result

    def as_value(self, operand: Any, dtype: DType | None = None) -> Recorded:
        """A literal as an array of `dtype` or its default one; a variable's value; anything else as it is."""
        if isinstance(operand, Literal):
            return self.typed(operand, weak_dtype(operand.spec, dtype))
        return self.read(operand) if isinstance(operand, Variable) else operand

    def _bind(self, op: Op, inputs: Sequence[Any], attrs: Attrs) -> tuple[Sequence[Any], Bound]:
        specs = tuple([value.spec for value in inputs])
        op.check_count(len(specs))
        if not op.takes_numbers(specs):
            dtypes = op.number_dtypes(specs)
            inputs = [
                self.typed(value, dtypes[i]) if isinstance(value, Literal) else value for i, value in enumerate(inputs)
            ]
            specs = tuple([value.spec for value in inputs])
        return inputs, bind(op, specs, attrs)

    def _expand(self, bound: Bound, inputs: Sequence[Any], where: Any) -> Any:
        assert bound.op.expand is not None
        args = [value.array if isinstance(value, Literal) else Operand(self, value) for value in inputs]
        provenance = self.provenance
        before, provenance.where = provenance.where, where  # as `at_call_site`, without its microsecond
        try:
            result = bound.op.expand(*args, **bound.attrs)
        finally:
            provenance.where = before
        if bound.selects:
            return tuple([each.value for each in result])
        if any(result is arg for arg in args):  # unchanged: still a value of its own
            return self.apply(ops.identity, (result.value,))
        return result.value

    def call(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Runs `op` inside a rule, on operands and Python numbers; several results are a tuple."""
        inputs = [arg.value if isinstance(arg, Operand) else Literal(arg) for arg in args]
        result = self.apply(op, inputs, op.attrs(attrs), self.provenance.where)
        if result.__class__ is tuple:
            return tuple([Operand(self, each) for each in result])
        return Operand(self, result)


def summed(shares: Sequence[Any]) -> Any:
    """The sum of the shares of a tangent: arrays, operands, or a tuple of them or None for several results."""
    total = shares[0]
    for share in shares[1:]:
        if share.__class__ is tuple:
            total = tuple([b if a is None else a if b is None else a + b for a, b in zip(total, share, strict=True)])
        else:
            total = total + share
    return total
