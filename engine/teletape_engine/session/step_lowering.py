"""Lowering of a batch: while its commands run one by one, what they compute is noted as instructions of a plan.

Ops are noted as in functions. The rules of a gradient that nothing records run on bare arrays: each runs a second time
on tracers, as forwards do. What was computed in any other way is an obstacle, and there is no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.binding import Bound, CallPlan, TapeCall
from teletape_engine.catalogue.rule import BoundRule
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import Contents
from teletape_engine.plans.ir.instructions import Buffer, View, layout_of
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.lower.numpy_functions import Namespace
from teletape_engine.plans.lower.tracer import ARRAYS, Tracer, Untraceable, constant
from teletape_engine.recording.cotangents import Arrays, Ct
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import LENGTH, Event, Record
from teletape_engine.recording.values import Literal, Uid, Value, Variable, new_uid
from teletape_engine.spec import DTYPES, DType, Spec, element

#: Ops whose forward and rules do with a number exactly what they do with an array of one element of its dtype.
_TAKES_NUMBERS: Final = frozenset(("add", "sub", "mul", "div"))
_DTYPES: Final = frozenset((DTYPES["float32"], DTYPES["float64"]))  #: In which these ops take numbers that change.
_SMALL: Final = 256  #: Elements of zeros and ones that a plan keeps; more are filled in each run.
#: What is noted in each run anew, since it depends on numbers.
_BY_NUMBERS: Final = frozenset((Event.PUT, Event.PLAIN, Event.RETURNED))


class StepLowering(Lowering):
    """Runs a batch's commands in the place of a context's executor, and notes them.

    The arguments of the plan are the values and variables that the batch takes, then its tensors, then those of its
    numbers that are free: the others never change.

    Args:
        executor: Of the context; tapes are opened in it as ever.
        taken: The values and variables that the batch takes.
        contents: Of the batch; no array and no number is in it twice.
        free: Positions of the numbers that may change.
        constants: Whether values from before that the batch does not take may be constants: those of functions.

    Attributes:
        arguments: As above; None: the batch has not used it.
        fixed: Positions of numbers that cannot be free.
        number_dtypes: Dtypes of the free numbers.
        uses: For each number that an op took its position and the uid of the result.
        number_uids: Uids of the values that numbers have become, by position.
    """

    def __init__(
        self, executor: Executor, taken: Sequence[Any], contents: Contents, free: Collection[int], *, constants: bool
    ) -> None:
        super().__init__(executor, taken)
        self.provenance, self.context = executor.provenance, executor.context
        self.bare = _Cotangents(self)
        self._last_record = self.provenance.records[-1] if self.provenance.records else None
        self._constants = constants
        count = len(taken) + len(contents.tensors)
        self.arguments: list[Any] = [*taken, *[None] * (len(contents.tensors) + len(free))]
        self._tensors = {id(array): len(taken) + i for i, array in enumerate(contents.tensors)}
        self._positions = {id(literal): i for i, literal in enumerate(contents.numbers)}
        self._free = {position: count + i for i, position in enumerate(sorted(free))}
        self.fixed: set[int] = set()
        self.number_dtypes: dict[int, DType] = {}
        self.uses: list[tuple[int, Uid]] = []
        self.number_uids: dict[int, Uid] = {}
        self._cts: dict[int, Value] = {}  # by identity, which holds: the values keep the arrays
        self._rules: dict[tuple[int, int, tuple[bool, ...]], _Rule] = {}

    def records(self) -> tuple[Record, ...]:
        """The records of the commands, without those that depend on numbers."""
        records: list[Record] = []
        for record in reversed(self.provenance.records):
            if record is self._last_record:
                break
            records.append(record)
        if len(records) == LENGTH:
            raise Untraceable("more records than a log has")
        return tuple([record for record in reversed(records) if record[0] not in _BY_NUMBERS])

    # ----------------------------------------------------------------------------------------------------- arguments
    def _placed_argument(self, number: int, value: Value) -> None:
        layout = layout_of(value.array)
        self.arguments[number] = value
        self.tracers[value.uid] = self._tracer(View(Buffer(layout, argument=number), layout), value.array)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A tensor of the batch is an argument; what else comes from the host are numbers and functions' constants."""
        value = super().constant(array)
        number = self._tensors.pop(id(array), None)
        if number is None:
            self.tracers[value.uid] = self._constant(value)
        else:
            self._placed_argument(number, value)
        return value

    def number(self, number: Literal, dtype: DType) -> Value:
        """A number of the batch that is free is an argument."""
        position = self._positions.get(id(number))
        if position not in self._free:
            value = super().number(number, dtype)
        else:
            value = Executor.constant(self, element(number.array, dtype, "the number"))
            self._take_free(position, value, dtype)
        if position is not None:
            self.number_uids[position] = value.uid
        return value

    def _take_free(self, position: int, value: Value, dtype: DType) -> None:
        if (
            self.number_dtypes.setdefault(position, dtype) is not dtype
            or self.arguments[self._free[position]] is not None
        ):
            self._fix(position)
        else:
            self._placed_argument(self._free[position], value)

    def _fix(self, *positions: int) -> None:
        self.fixed.update(positions)
        self.obstacle = "a number that may change is more than an element"

    def _free_position(self, value: Any) -> int | None:
        """The position of a free number; None: it is something else."""
        position = self._positions.get(id(value)) if value.__class__ is Literal else None
        return position if position in self._free else None

    def operand(self, bound: Bound, i: int, value: Any) -> Any:
        """A number that is free is a tracer too, if it does what an array of one element does."""
        position = self._free_position(value)
        if position is None:
            return super().operand(bound, i, value)
        number = self._free[position]
        if not isinstance(bound, _Rule) and self.arguments[number] is None:
            dtype = bound.specs[i].dtype
            if bound.op.name in _TAKES_NUMBERS and dtype in _DTYPES:
                array = element(value.array, dtype, "the number")
                self._take_free(position, Value(array, Spec.of((), dtype), new_uid()), dtype)
        placed = self.arguments[number]
        if placed is None or (not isinstance(bound, _Rule) and bound.op.name not in _TAKES_NUMBERS):
            self._fix(position)
            raise Untraceable("a number that may change")
        return self.tracer(placed)

    def _expand(self, bound: Bound, inputs: Sequence[Any], where: Any) -> Any:
        """A composite takes numbers as they are."""
        positions = [position for value in inputs if (position := self._free_position(value)) is not None]
        if positions:
            self._fix(*positions)
        return super()._expand(bound, inputs, where)

    # ------------------------------------------------------------------------------------------------------- recorder
    def apply(self, op: Any, inputs: Sequence[Any], *args: Any) -> Any:
        """As of every lowering; notes which numbers of the batch the op takes."""
        result = super().apply(op, inputs, *args)
        first = result[0] if result.__class__ is tuple else result
        for value in inputs:
            if value.__class__ is Literal and (position := self._positions.get(id(value))) is not None:
                self.uses.append((position, first.uid))
        return result

    def run(self, bound: Bound, inputs: Sequence[Any]) -> Any:
        """As of every lowering; a result without elements never changes."""
        result = super().run(bound, inputs)
        for each in result if bound.selects else (result,):
            if not each.spec.size:
                self.tracers[each.uid] = self._constant(each)
        return result

    def tracer(self, value: Value) -> Tracer:
        """The tracer of a value; an unknown one is an obstacle."""
        tracer = self.tracers.get(value.uid)
        if tracer is None:
            if not (self._constants and value.uid < self.first):
                self.obstacle = self.obstacle or "a value from elsewhere"
            tracer = self.tracers[value.uid] = self._constant(value)
        return tracer

    def _constant(self, value: Value) -> Tracer:
        tracer = constant(self.instructions, value.array)
        tracer.scalar = isinstance(value.array, np.generic)
        return tracer

    def read(self, variable: Variable) -> Value:
        """A read under a tape is a value of its own, with the variable's array."""
        value: Value = super().read(variable)
        if value is not variable.value:
            self.tracers[value.uid] = self.tracer(variable.value)
        return value

    def full(self, spec: Spec, number: int) -> Value:
        """Zeros and ones never change."""
        value = super().full(spec, number)
        if spec.size <= _SMALL or self.obstacle is not None:
            self.tracers[value.uid] = self._constant(value)
        else:
            self.tracers[value.uid] = Namespace(self.instructions).full(spec.shape, number, spec.dtype)
        return value

    def admit_work(self, call: TapeCall, times: int = 1) -> None:
        """Long work is admitted again before each run of the plan."""
        super().admit_work(call, times)
        self.long_calls += [call] * times  # type: ignore[list-item]  # a node with rules has a Bound

    # ------------------------------------------------------------------------------------------------------ gradients
    def ct(self, value: Any) -> Any:
        """Its array, which is known from now on."""
        ct = super().ct(value)
        if isinstance(value, SlicesValue):
            self.obstacle = "a sparse gradient"
        elif self.obstacle is None:
            known = self._cts.setdefault(id(ct), value)
            if self.tracer(known).view.buffer is not self.tracer(value).view.buffer:
                self.obstacle = "two arguments share an array"
        return ct

    def answer(self, ct: Any, spec: Spec) -> Value | SlicesValue:
        """Wraps the array, which a rule or a sum has given."""
        result = super().answer(ct, spec)
        known = self._cts.get(id(ct))
        if known is None or isinstance(result, SlicesValue):
            self.obstacle = self.obstacle or "a gradient from elsewhere"
        elif self.obstacle is None:
            tracer = self.tracer(known)
            if result.array is not ct:
                tracer = self._tracer(self._copied(tracer.view, layout_of(result.array)), result.array)
            self.tracers[result.uid] = tracer
        return result

    def noted(self, rule: _Rule, inputs: Sequence[Any], array: Any) -> None:
        """Notes what a rule has computed from cotangents, which are arrays, and values."""
        if self.obstacle is not None:
            return
        if not isinstance(array, ARRAYS):
            self.obstacle = "a sparse gradient"
            return
        try:
            values = [value if isinstance(value, Value | Literal) else self._cts[id(value)] for value in inputs]
            rule.spec = spec = Spec.of(tuple(array.shape), array.dtype)
            tracer = self._lowered(rule, values, array)
            if not spec.size:
                tracer = constant(self.instructions, array)
            if id(array) not in self._cts:
                known = self._cts[id(array)] = Value(array, spec, new_uid())
                self.tracers[known.uid] = tracer
        except Exception as error:  # the pass goes on without a plan
            self.obstacle = f"a rule: {type(error).__name__}: {error}"

    def rule(self, plan: CallPlan, i: int, rule: BoundRule, present: tuple[bool, ...]) -> _Rule:
        """The rule of an input of a call as what can be lowered; `present`: which of several cotangents there are."""
        key = id(plan), i, present

        def of_several(xp: Any, *values: Any) -> Any:
            rest = iter(values)
            return rule([next(rest) if is_there else None for is_there in present], tuple(rest))

        known = self._rules.get(key)
        if known is None:
            forward = of_several if present else lambda xp, ct, *residuals: rule(ct, residuals)
            known = self._rules[key] = _Rule(plan, forward, "a gradient's rule")
        return known


class _Rule(Bound):
    """A computation that is no op, as `Lowering` takes calls.

    Attributes:
        origin: The plan that has the rule: it stays alive.
    """

    __slots__ = ("origin",)

    def __init__(self, plan: CallPlan | None, forward: Callable[..., Any], name: str) -> None:
        self.origin, self.forward, self.name = plan, forward, name
        self.lowered = {}
        self.op = _NO_OP  # type: ignore[assignment]  # only its `views` is read
        self.work = self.blocks = None


class _NoOp:
    """In the place of the op of a rule."""

    name = "a rule"
    views = False
    dynamic = False


_NO_OP: Final = _NoOp()


class _Cotangents(Arrays):
    """Bare arrays; what is computed is noted too."""

    def __init__(self, lowering: StepLowering) -> None:
        self._lowering = lowering
        self._sums: dict[Spec, _Rule] = {}
        self.rules = self._noted_rules

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values: rules open them."""
        return residuals

    def add(self, a: Ct, b: Ct) -> Ct:
        """Sums."""
        result = super().add(a, b)
        if isinstance(result, ARRAYS):
            spec = Spec.of(tuple(result.shape), result.dtype)
            rule = self._sums.get(spec)
            if rule is None:
                rule = self._sums[spec] = _Rule(None, lambda xp, a, b: a + b, "a sum of cotangents")
            self._lowering.noted(rule, (a, b), result)
        return result

    def _noted_rules(self, plan: CallPlan) -> Sequence[tuple[int, BoundRule]]:
        return [(i, partial(self._run, plan, i, rule)) for i, rule in plan.rules]

    def _run(self, plan: CallPlan, i: int, rule: BoundRule, ct: Ct, residuals: tuple[Any, ...]) -> Ct:
        result = rule(ct, super().open(residuals))
        lowering = self._lowering
        cts = ct if ct.__class__ is list else ()
        present = tuple([part is not None for part in cts])
        inputs = (*[part for part in cts if part is not None], *residuals) if present else (ct, *residuals)
        lowering.noted(lowering.rule(plan, i, rule, present), inputs, result)
        return result
