"""Plans of straight functions that a tape records: what the steps compute, and the nodes that they leave on the tape.

A run computes the results and whatever the nodes keep, then notes the nodes. The tape is as after a call step by step:
gradients, explanations and pictures see no difference. The backward pass has no plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

from teletape_engine import object_bytes
from teletape_engine.errors import CancelledError, InternalError
from teletape_engine.plans.cache import MOST_FAILURES, Plans, key_of, plannable
from teletape_engine.plans.comparing import compared
from teletape_engine.plans.ir.buffers import Unplaceable
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.provenance import PlannedCall, Record
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Uid, Value, Variable, new_uid

LEAST_STEPS: Final = 8  #: Of a function that is to have such plans: a shorter one gains nothing.
_CALL: Final = object()  #: The call site of steps that have none of their own.


class RecordedFunction(Protocol):
    """A function, as these plans see it."""

    def interpret(self, recorder: Any, arguments: Sequence[Any], *, tie: bool = True) -> list[Any]:
        """Runs it step by step."""


class RecordedLowering(Lowering):
    """Notes the ops of a call, and the nodes that it would leave on a tape.

    Args:
        recorder: Of the call.
        arguments: Of the call.
        tape: The tape that records it; nothing is noted on it.

    Attributes:
        tape: Has the nodes. Reads of variables are not among them.
    """

    def __init__(self, recorder: Executor, arguments: Sequence[Any], tape: Tape) -> None:
        super().__init__(recorder, arguments)
        self.tape = Tape(watch_accessed=False, replayable=tape.replayable)
        self._here = recorder.provenance.here()
        self._watching = tape
        self.provenance.where, self.provenance.locate = None, lambda: _CALL
        for argument in arguments:
            if argument.__class__ is not Variable and argument.uid in tape.tracked:
                self.tape.tracked[argument.uid] = None
        self.context.tapes.append(self.tape)

    def read(self, variable: Variable) -> Any:
        """As `Recorder.read`, in one epoch."""
        entry = self.context.by_variable.get(variable.uid)
        if entry is None:
            value = variable.value.alias(new_uid())
            self.tracers[value.uid] = self.tracer(variable.value)
            if _is_followed(self._watching, variable):
                self.tape.tracked[value.uid] = None
            entry = self.context.by_variable[variable.uid] = variable.version, value
        return entry[1]

    def records(self) -> tuple[Record, ...]:
        here = self._here
        return tuple(
            [(what, inputs, uid, here if where is _CALL else where) for what, inputs, uid, where in super().records()]
        )


class _Node(NamedTuple):
    """A node of any run.

    Attributes:
        plan: As in `Node`.
        inputs: From all uids of a run to those of the inputs. They are in order: the arguments, the values that the run
            makes, those of which only the uid is known, constants.
        output: The number of its uid among them.
        residuals: Likewise from all values to what the node keeps.
        where: As in `Node`; `_CALL`: the call of the function.
    """

    plan: Any
    inputs: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    output: int
    residuals: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    where: Any


class RecordedPlan(Plan):
    """A function on arguments of certain layouts, some of which a tape follows.

    Args:
        lowering: What a run of the interpreter has noted.
        arguments: Of that run.
        started: Their values, variables read.
        results: Of that run.

    Raises:
        Unplaceable: An array that no arena can hold.

    Attributes:
        expected: The results, and what the nodes keep.
    """

    def __init__(
        self, lowering: RecordedLowering, arguments: Sequence[Any], started: Sequence[Any], results: Sequence[Any]
    ) -> None:
        nodes, first = lowering.tape.nodes, lowering.first
        numbers: dict[Any, int] = {}
        for number, value in enumerate(started):
            if value.__class__ is not Literal:
                numbers.setdefault(value.uid, number)
        residuals_by_uid = {
            value.uid: value
            for *_, residuals, _ in nodes
            for value in residuals
            if value.__class__ is not Literal and value.uid not in numbers and value.uid >= first
        }
        self._count, self.expected = len(results), [*results, *residuals_by_uid.values()]
        super().__init__(lowering, started, started, self.expected)
        by_uid = {argument.uid: number for number, argument in enumerate(arguments)}
        self._reads = [
            (by_uid[uid], value.uid in lowering.tape.tracked)
            for uid, (_, value) in lowering.context.by_variable.items()
        ]
        self._variables = [number for number, argument in enumerate(arguments) if argument.__class__ is Variable]
        self._fixed: list[Any] = []
        new = list(self._records.new)
        for _, inputs, output, _, _ in nodes:
            new += [uid for uid in (*inputs, output) if uid is not None and uid >= first and uid not in numbers]
        new = list(dict.fromkeys(new))
        self._others = len(new) - len(self._records.new)
        for number, uid in enumerate(new, len(started)):
            numbers[uid] = number
        self._records = self._records._replace(new=tuple(new))
        end = len(started) + len(new)

        def number_of(uid: Uid | None, value: Any) -> int:
            number = None if uid is None else numbers.get(uid)
            if number is None:
                number = end + len(self._fixed)
                self._fixed.append((uid, value))
                if uid is not None:
                    numbers[uid] = number
            return number

        kept_nodes = [[(value.uid, value) for value in residuals] for *_, residuals, _ in nodes]
        residuals_of = [[number_of(*entry) for entry in entries] for entries in kept_nodes]
        self._nodes = [
            _Node(
                plan, _picker([number_of(uid, None) for uid in inputs]), numbers[output], _picker(numbers_kept), where
            )
            for (plan, inputs, output, _, where), numbers_kept in zip(nodes, residuals_of, strict=True)
        ]
        self._heavy, self._unregistered = lowering.tape.heavy, lowering.tape.unregistered

    @property
    def nbytes(self) -> int:
        return super().nbytes + object_bytes.NODE * len(self._nodes)

    def finish(
        self,
        recorder: Executor,
        arguments: Sequence[Any],
        started: Sequence[Any],
        values: Sequence[Value],
        notes: tuple[Record, ...] = (),
    ) -> None:
        """Notes the call, but not on the tape."""
        self._note(recorder, started, [value.uid for value in values])

    def _note(self, recorder: Executor, started: Sequence[Any], uids: list[Uid]) -> list[Uid]:
        """Notes the steps that the tape does not follow; returns the uids of all values of the run."""
        uids += [new_uid() for _ in range(self._others)]
        self.used = new_uid()
        if self._records.records:
            planned = PlannedCall(self._records, tuple([value.uid for value in started]), self._no_names, tuple(uids))
            recorder.provenance.records.append((planned, (), self.used, None))
        return uids

    def record(self, recorder: Executor, tape: Tape, arguments: Sequence[Any], *, tie: bool) -> list[Any] | None:
        """The results, the call noted on the tape; None: the tape follows other variables than it did.

        Args:
            recorder: Of the call.
            tape: The only one that is active.
            arguments: Of the call.
            tie: As of `Function.run`.
        """
        started = list(arguments)
        for number, is_followed in self._reads:
            value = started[number] = recorder.read(arguments[number])
            if (value.uid in tape.tracked) is not is_followed:
                return None
        for number in self._variables:
            if started[number].__class__ is Variable:
                started[number] = started[number].value
        values, results = self.values(started, self.compute(recorder, started))
        here = recorder.provenance.here()
        uids = [value.uid for value in started]
        uids += self._note(recorder, started, [value.uid for value in values])
        table: list[Any] = [*started, *values, *[None] * self._others]
        for uid, value in self._fixed:
            uids.append(uid)
            table.append(value)
        names, values_by_number = tuple(uids), tuple(table)
        tape.nodes += [
            (plan, inputs(names), names[output], residuals(values_by_number), here if where is _CALL else where)
            for plan, inputs, output, residuals, where in self._nodes
        ]
        tape.tracked.update(dict.fromkeys([names[node.output] for node in self._nodes]))
        tape.heavy, tape.unregistered = tape.heavy or self._heavy, tape.unregistered or self._unregistered
        if tie:
            for number in self._variables:
                tape.watches(arguments[number])
        return results[: self._count]


class RecordedPlans(Plans):
    """The plans of one straight function for calls that a tape records."""

    __slots__ = ()

    def record(
        self, function: RecordedFunction, recorder: Executor, arguments: Sequence[Any], *, tie: bool
    ) -> list[Any] | None:
        """The results of a call that one tape records; None: the interpreter is to run it.

        Args:
            function: The function; it assigns nothing, and takes no gradient.
            recorder: Of the call.
            arguments: As many as the function takes.
            tie: As of `Function.run`.

        Raises:
            CancelledError: The caller wants it stopped; nothing is noted.
            InternalError: A new plan, if it is to be compared, differs from the interpreter.
        """
        (tape,) = recorder.context.tapes
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        followed = [
            _is_followed(tape, argument) if argument.__class__ is Variable else argument.uid in tape.tracked
            for argument in arguments
        ]
        key = (tape.sign, tie, *followed, *key_of(arguments, started))
        plan: Any = self._plans.get(key, 0)
        if plan is None:
            return None
        if plan.__class__ is int:
            if not plannable(arguments, started):
                return None
            if plan + 1 < POLICY.first:
                self._remember(key, plan + 1, recorder.memory)
                return None
            if not self._lock.acquire(blocking=False):  # another thread builds one
                return None
            try:
                plan = _recorded_plan(function, recorder, tape, arguments, started, tie=tie)
            except (CancelledError, InternalError):
                raise
            except Exception:  # the interpreter raises it again
                return None
            finally:
                self._lock.release()
            self._remember(key, plan, recorder.memory)
            if plan is None:
                return None
        try:
            results: list[Any] | None = plan.record(recorder, tape, arguments, tie=tie)
        except CancelledError:
            raise
        except Exception:  # the interpreter runs it again, and raises the error in its own words and place
            plan.failures += 1
            if plan.failures >= MOST_FAILURES:
                self._remember(key, None, recorder.memory)
            return None
        plan.failures = 0
        return results


def _recorded_plan(
    function: RecordedFunction,
    recorder: Executor,
    tape: Tape,
    arguments: Sequence[Any],
    started: Sequence[Any],
    *,
    tie: bool,
) -> RecordedPlan | None:
    lowering = RecordedLowering(recorder, arguments, tape)
    results = function.interpret(lowering, arguments, tie=tie)
    if lowering.obstacle is not None or lowering.tape.sparse:  # slices add up in the order of all nodes
        return None
    reads = lowering.context.by_variable
    values = [
        reads[argument.uid][1] if argument.uid in reads else value
        for argument, value in zip(arguments, started, strict=True)
    ]
    try:
        plan = RecordedPlan(lowering, arguments, values, results)
    except Exception as error:  # whatever it is, the interpreter can do it
        if POLICY.compared and not isinstance(error, Unplaceable | MemoryError):
            raise
        return None
    if POLICY.compared:
        compared(plan, recorder, values, values, plan.expected)
    plan.expected = []
    return plan


def _picker(numbers: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """From a tuple to a tuple of its elements with these numbers."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return itemgetter(slice(numbers[0], numbers[0] + 1) if numbers else slice(0))


def _is_followed(tape: Tape, variable: Variable) -> bool:
    """Whether a tape follows the variable once it is read."""
    is_watched = variable.uid in tape.variables or (tape.watch_accessed and variable.trainable)
    return is_watched and variable.spec.differentiable
