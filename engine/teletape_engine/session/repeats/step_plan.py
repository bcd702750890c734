"""The plan of a batch whose structure comes again: how it is built while the commands run one by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from teletape_engine import object_bytes
from teletape_engine.commands import Contents, Structure
from teletape_engine.commands.results import Answer, Fetched, Kinds
from teletape_engine.commands.structure import NUMBERS
from teletape_engine.errors import InternalError
from teletape_engine.functions.function import Function
from teletape_engine.plans.cache import plannable
from teletape_engine.plans.comparing import compared, outcome, shadows_of
from teletape_engine.plans.ir.buffers import Unplaceable
from teletape_engine.plans.lower.tracer import Untraceable
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.session_plans import SessionPlans
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.values import Literal, Uid, Value
from teletape_engine.session.batches import run_batch
from teletape_engine.session.repeats.step_lowering import StepLowering
from teletape_engine.session.repeats.step_needs import Needs
from teletape_engine.session.state import MAIN, State
from teletape_engine.spec import DType

_MOST_STEP_PLANS: Final = 8  #: Plans of one structure, by specs and numbers.
#: Failures after which batches of a sketch or structure are no longer planned, or a plan is no longer run.
ATTEMPTS: Final = 8


class KnownStep:
    """What is known of a structure.

    Attributes:
        structure: The structure.
        needs: What running it as a plan takes.
        nbytes: Bytes of the structure, as they are counted.
        plans: By what they depend on; None: there can be no plan.
        free: Positions of numbers that may change without another plan.
        fixed: Positions of those that cannot.
        numbers: Of the batch before.
        left: How many plans may still be built before one of them has run.
    """

    __slots__ = ("__weakref__", "fixed", "free", "left", "nbytes", "needs", "numbers", "plans", "structure")

    def __init__(self, structure: Structure, needs: Needs, nbytes: int) -> None:
        self.structure, self.needs, self.nbytes = structure, needs, nbytes
        self.plans: dict[Any, StepPlan | None] = {}
        self.free: tuple[int, ...] = ()
        self.fixed: set[int] = set()
        self.numbers: tuple[Literal, ...] | None = None
        self.left = ATTEMPTS

    def ready(self) -> list[StepPlan]:
        """The plans that there are."""
        return [plan for plan in self.plans.values() if plan is not None]

    def forget_plan(self, plan: Any) -> None:
        """Ends one plan; it is built again."""
        for key, other in tuple(self.plans.items()):
            if other is not None and other.plan is plan:
                del self.plans[key]


class StepPlan:
    """A plan for batches of a structure, on values of certain specs.

    Attributes:
        plan: The plan.
        functions: That it runs: kept, so that their identities stay.
        results: For each result of the batch: itself, or (index, new id or None, id taken, elements, its number among
            the plan's results) of a fetch.
        remaining: For each new id that stays its number, and the number of the plan's result.
        unnamed: Numbers of new ids that get nothing: those of gradients that there are not.
        dtypes: Of the free numbers, in order.
        nbytes: Bytes of the plan, as they are counted.
        failures: How often it has failed with no error of the commands.
        uses: For each number that an op or a `constant` takes: its position, and the result's uid in the first run.
    """

    __slots__ = ("dtypes", "failures", "functions", "nbytes", "plan", "remaining", "results", "unnamed", "uses")

    def __init__(
        self,
        plan: Plan,
        functions: Sequence[Function],
        results: Sequence[Any],
        remaining: Sequence[tuple[int, int]],
        unnamed: Collection[int],
        dtypes: Sequence[DType],
        uses: Sequence[tuple[int, Uid]],
    ) -> None:
        self.plan, self.functions, self.results, self.remaining = plan, functions, results, remaining
        self.unnamed, self.dtypes, self.uses = unnamed, dtypes, uses
        self.failures = 0
        self.nbytes = object_bytes.INSTRUCTION * len(plan.instructions)


class BatchInputs:
    """What a batch works on.

    Attributes:
        executor: That of the context that the batch names.
        arguments: The values and variables that it names.
        started: The same, with the values of the variables.
        functions: The functions that it names.
    """

    __slots__ = ("arguments", "executor", "functions", "started")

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.arguments: list[Any] = []
        self.started: list[Any] = []
        self.functions: list[Function] = []


class PlanBuilder:
    """Makes a plan of a batch while its commands run one by one.

    Args:
        state: Of the session.
        step: Of the batch's structure.
        contents: Of the batch.
        inputs: What the batch works on.
        key: What the plan depends on.
    """

    def __init__(self, state: State, step: KnownStep, contents: Contents, inputs: BatchInputs, key: Any) -> None:
        self._state, self._step, self._inputs, self._key = state, step, inputs, key
        # Each place has an object of its own.
        self._contents = contents._replace(
            tensors=tuple([array.view() for array in contents.tensors]),
            numbers=tuple([literal.copy() for literal in contents.numbers]),
        )

    def run(self, cancelled: Callable[[], bool]) -> Answer:
        """Runs the commands; remembers the plan, or that there is none."""
        state, step, needs, contents = self._state, self._step, self._step.needs, self._contents
        executor = self._inputs.executor
        lowering = StepLowering(executor, self._inputs.arguments, contents, step.free, constants=bool(needs.functions))
        context = MAIN if needs.context is None else contents.taken[needs.context]
        started = list(self._inputs.started)
        state.fetches = []
        state.substitute(context, lowering)
        try:
            answer = run_batch(state, step.structure.batch(contents), cancelled)
        finally:
            fetches, state.fetches = state.fetches, None
            state.substitute(context, executor)
        if answer.failure is not None:
            return answer
        if lowering.fixed:
            step.fixed |= lowering.fixed
            step.free = tuple([i for i in step.free if i not in step.fixed])
            return answer
        prepared = None
        started += lowering.arguments[len(started) :]
        if lowering.obstacle is None and plannable(lowering.arguments, started):
            prepared = self._prepared(needs, lowering, started, answer, fetches)
        if len(step.plans) >= _MOST_STEP_PLANS:
            step.plans.clear()
        step.plans[self._key] = prepared
        if prepared is not None:
            SessionPlans.of(state.memory).add(prepared.plan, step)
        return answer

    def _prepared(
        self, needs: Needs, lowering: StepLowering, started: list[Any], answer: Answer, fetches: list[Value]
    ) -> StepPlan | None:
        state, contents = self._state, self._contents
        values: list[Value] = []
        remaining = []
        for at in needs.remaining:
            entry = state.entries.get(contents.created[at])
            if entry is None:  # a gradient that there is not
                continue
            if entry.__class__ is not Value:
                return None
            remaining.append((at, len(values)))
            values.append(entry)
        results: list[Any] = []
        unnamed: set[int] = set()
        command: Any
        waiting = iter(fetches)
        for result in answer.results:
            if isinstance(result, Fetched):
                command = self._step.structure.commands[result.index]
                slot, value = command.id, next(waiting)
                new, old = (slot.number, None) if slot.source else (None, slot.number)
                results.append((result.index, new, old, command.elements, len(values)))
                values.append(value)
            elif isinstance(result, Kinds) and not result.why:  # a reason names variables, which differ
                results.append(result)
                command = self._step.structure.commands[result.index]
                slots = zip(command.outputs, result.kinds, strict=True)
                unnamed.update([slot.number for slot, kind in slots if slot is not None and kind == "none"])
            else:
                return None
        try:
            plan = Plan(lowering, lowering.arguments, started, values)
            uses = [use for use in lowering.uses if use[0] in needs.numbers]
            uses += [(number, lowering.number_uids[number]) for source, number in needs.notes if source == NUMBERS]
            dtypes = [lowering.number_dtypes[position] for position in self._step.free]
        except Exception as error:  # whatever it is, the commands can run one by one
            if POLICY.compared and not isinstance(error, Unplaceable | Untraceable | MemoryError):
                raise
            return None
        if POLICY.compared:
            expected, shadows = outcome(values, lowering.arguments), shadows_of(lowering.arguments, started)
            if compared(plan, self._inputs.executor.aside(), shadows, started, expected) is None:
                raise InternalError(f"the plan of a batch fails, and its commands have not: {plan.instructions}")
        return StepPlan(plan, self._inputs.functions, results, remaining, unnamed, dtypes, uses)
