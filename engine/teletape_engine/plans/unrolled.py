"""Plans of functions with control flow, unrolled: the iterations and branches of one call as one list of instructions.

A plan holds while the values decide as they did when it was built; it computes them, and compares. If they decide
otherwise, nothing has been assigned, and the interpreter runs the call. This is for control flow that tapes record, as
in a gradient through a loop; a loop that nothing records has a plan of its own (`run/loops/loop.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from teletape_engine.catalogue.attributes import keep
from teletape_engine.errors import CancelledError
from teletape_engine.plans.cache import MOST_PLANS, Plans, Runnable, key_of, plannable
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor, note_decision
from teletape_engine.recording.provenance import Records
from teletape_engine.recording.values import Literal, Variable, new_uid

MOST_STEPS: Final = 6_000  #: Steps of a call that is to have a plan, at the most: to build it costs 50 µs for each.
_FAILURES: Final = 3  #: Calls that may decide otherwise than their plan, beyond those that its results were right for.


class UnrolledFunction(Runnable, Protocol):
    """A function with control flow, as plans see it."""

    def interpret(self, recorder: Any, arguments: Sequence[Any], *, tie: bool = True) -> list[Any]:
        """Runs it step by step."""


class _Calls(NamedTuple):
    """The calls so far with arguments of certain layouts.

    Attributes:
        decisions: Of the last one.
        times: How many in a row have decided so.
        failures: Calls for which the plan was not right, less those for which it was.
    """

    decisions: list[list[int]]
    times: int
    failures: int


class UnrolledLowering(Lowering):
    """Notes the ops that a call runs, and the values that decide which of them run."""

    def __init__(self, recorder: Executor, arguments: Sequence[Any], into: Records | None = None) -> None:
        super().__init__(recorder, arguments, into)
        self.decided = recorder.decided

    def decide(self, value: Any) -> int:
        """As the executor's; the plan will compare."""
        decision = Executor.decide(self, value)
        if value.__class__ is not Literal and value.uid in self.tracers:  # else it never changes
            self.guards.append((value, decision))
        return decision

    def iteration(self, taken: int, iterations: int = 0, count: int = 1) -> None:
        """As the executor's; and is counted."""
        super().iteration(taken, iterations, count)
        self.iterations += count


class UnrolledPlans(Plans):
    """The plans of one function with control flow."""

    __slots__ = ("_calls",)
    unrolls = True
    _lowering = UnrolledLowering

    def __init__(self) -> None:
        super().__init__(possible=False)
        self._calls: dict[Any, _Calls] = {}

    def run(self, function: UnrolledFunction, recorder: Executor, arguments: Sequence[Any]) -> list[Any] | None:  # type: ignore[override]  # as every Function is
        """As `Plans.run`; what the interpreter is to run for want of a plan is run here, and its decisions are noted.

        Args:
            function: The function.
            recorder: Of the call; nothing records.
            arguments: As many as the function takes; a variable where it assigns.

        Raises:
            CancelledError: As `Plans.run`.
            TeletapeError: The interpreter has failed.
        """
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        key = key_of(arguments, started)
        plan = self._plans.get(key, 0)
        if plan is None or not plannable(arguments, started):
            return None
        calls = self._calls.get(key, _Calls([], 0, 0))
        if plan.__class__ is Plan:
            try:
                recorder.expect(plan.iterations)
                values, results = plan.values(started, plan.compute(recorder, started))
                if plan.iterations:
                    recorder.iteration(plan.iterations, plan.iterations, plan.iterations)
                plan.finish(recorder, arguments, started, values)
            except CancelledError:
                raise
            except Exception:  # values decide otherwise, or what has run so far fails: the interpreter says how
                if calls.failures >= _FAILURES:
                    self._remember(key, None, recorder.memory)
                    return None
                self._calls[key] = calls._replace(failures=calls.failures + 1)
                return None
            if calls.failures:
                self._calls[key] = calls._replace(failures=calls.failures - 1)
            _add_decisions(recorder.decided, plan.decided)
            return results
        return self._observed(key, function, recorder, arguments, started)

    def forget(self) -> None:
        super().forget()
        self._calls.clear()

    def _observed(
        self, key: Any, function: UnrolledFunction, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any]
    ) -> list[Any]:
        """Runs a call and notes its decisions; builds a plan during it if those before have all decided alike."""
        calls = self._calls.get(key, _Calls([], 0, 0))
        builds = calls.times >= POLICY.first and self._lock.acquire(blocking=False)
        outer, before, first = recorder.decided, recorder.repeated, new_uid()
        recorder.decided = []
        try:
            results = None
            if builds:
                build = self._compared if POLICY.compared else self._built
                results = build(key, function, recorder, arguments, started)
            if results is None:
                recorder.decided = []
                results = function.interpret(recorder, arguments)
            decisions = recorder.decided
        finally:
            recorder.decided = outer
            if builds:
                self._lock.release()
        _add_decisions(outer, decisions)
        times = calls.times + 1 if decisions == calls.decisions else 1
        keep(self._calls, key, _Calls(decisions, times, 0), MOST_PLANS)
        if not builds:
            steps, repeated = new_uid() - first, recorder.repeated - before
            fits = repeated <= steps and steps + repeated <= MOST_STEPS
            self._remember(key, times if fits else None, recorder.memory)
        return results


def _add_decisions(decided: list[list[int]] | None, decisions: Sequence[Sequence[int]]) -> None:
    if decided is not None:
        for decision, times in decisions:
            note_decision(decided, decision, times)
