"""Lowering of a batch: while its commands run one by one, what they compute is noted as instructions of a plan.

Ops are noted as in functions, and so is a gradient that nothing records: its rules run on operands, as in a function
with a gradient, and have the bits that they have on bare arrays. What was computed in any other way is an obstacle, and
there is no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from teletape_engine.catalogue.binding import Bound, TapeCall
from teletape_engine.catalogue.operand import Operand, Runtime
from teletape_engine.catalogue.slices import SlicesValue, SparseGradient
from teletape_engine.commands import Contents
from teletape_engine.plans.ir.buffers import Buffer, View, layout_of
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.lower.numpy_functions import Namespace
from teletape_engine.plans.lower.tracer import Tracer, Untraceable
from teletape_engine.recording.cotangents import Algebra, Arrays, Operands
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.provenance import LENGTH, Event, Record, Records
from teletape_engine.recording.values import Literal, Uid, Value, Variable, new_uid
from teletape_engine.spec import COMPLEX, DTYPES, DType, Spec, element

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
        self.bare: Algebra = _Cotangents(self)

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
        takes_numbers = bound.op.name in _TAKES_NUMBERS
        if self.arguments[number] is None and takes_numbers and (dtype := bound.specs[i].dtype) in _DTYPES:
            array = element(value.array, dtype, "the number")
            self._take_free(position, Value(array, Spec.of((), dtype), new_uid()), dtype)
        placed = self.arguments[number]
        if placed is None or not takes_numbers:
            self._fix(position)
            raise Untraceable("a number that may change")
        return self.tracer(placed)

    def residual(self, value: Value | Literal, rules: Runtime) -> Any:
        """What a rule gets for a value or number that a call took or gave."""
        if value.__class__ is not Literal:
            return Operand(rules, value)
        position = self._free_position(value)
        if position is None:
            return value.array
        placed = self.arguments[self._free[position]]
        if placed is None:
            self._fix(position)
            return value.array
        return Operand(rules, placed)

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
        """As of every lowering; after complex scalars on a tape there is no plan."""
        result = super().run(bound, inputs)
        if self.context.active:
            values = (*inputs, *(result if bound.selects else (result,)))
            if any(value.spec.dtype in COMPLEX and not value.spec.shape for value in values if value.uid is not None):
                self.obstacle, self.bare = "NumPy rounds products of complex scalars unlike those of arrays", Arrays()
        return result

    def tracer(self, value: Value) -> Tracer:
        """The tracer of a value; an unknown one is an obstacle."""
        tracer = self.tracers.get(value.uid)
        if tracer is None:
            if not (self._constants and value.uid < self.first):
                self.obstacle = self.obstacle or "a value from elsewhere"
            tracer = super().tracer(value)
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
        """An operand of the rules, or two."""
        if not isinstance(self.bare, _Cotangents):
            return super().ct(value)
        rules = self.bare.runtime
        if isinstance(value, SlicesValue):
            return SparseGradient(Operand(rules, value.values), Operand(rules, value.indices), value.dense)
        return Operand(rules, value)

    def answer(self, ct: Any, spec: Spec) -> Value | SlicesValue:
        """The operand's value, as one of its own."""
        if not isinstance(self.bare, _Cotangents):
            return super().answer(ct, spec)
        if isinstance(ct, SparseGradient):
            self.obstacle = self.obstacle or "a sparse gradient"
            return super().answer(SparseGradient(ct.values.value.array, ct.indices.value.array, ct.dense), spec)
        value: Value = ct.value
        result = super().answer(value.array, spec)
        assert isinstance(result, Value)
        tracer = self.tracer(value)
        if result.array is not value.array:
            tracer = self._tracer(self._copied(tracer.view, layout_of(result.array)), result.array)
        self.tracers[result.uid] = tracer
        return result


class _Rules(Lowering):
    """Runs the ops of a gradient's rules, on the arrays and with the bits that bare rules have, and notes them.

    Bare rules are neither priced nor recorded, and what is long in them is admitted by the call that they belong to.

    Args:
        batch: The lowering of the batch, whose instructions these are.
    """

    def __init__(self, batch: StepLowering) -> None:
        self._batch = batch
        super().__init__(batch, ())
        self.memory, self._monitor = Memory(None, lambda: 0), Monitor()
        self.provenance.records = Records(maxlen=0)
        self.instructions, self.tracers = batch.instructions, batch.tracers

    @property
    def obstacle(self) -> str | None:
        """That of the batch."""
        return self._batch.obstacle

    @obstacle.setter
    def obstacle(self, why: str | None) -> None:
        self._batch.obstacle = why

    def tracer(self, value: Value) -> Tracer:
        """As of the batch."""
        return self._batch.tracer(value)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """What a rule adds of its own never changes."""
        value = super().constant(array)
        self.tracers[value.uid] = self._constant(value)
        return value

    def _compact(self, array: Any) -> Any:
        return array


class _Cotangents(Operands):
    """Operands whose ops a batch notes; a number of the batch that may change is one too."""

    def __init__(self, batch: StepLowering) -> None:
        super().__init__(_Rules(batch))
        self._batch = batch

    def open(self, residuals: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands, and numbers that never change."""
        return tuple([self._batch.residual(value, self.runtime) for value in residuals])
