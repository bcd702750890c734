"""The plans of a function: one for each layout of its arguments, built when it has been called before."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from teletape_engine.errors import CancelledError
from teletape_engine.plans.comparing import compared, outcome, shadows_of
from teletape_engine.plans.gpu.lowering import DeviceLowering
from teletape_engine.plans.gpu.plan import DevicePlan
from teletape_engine.plans.ir.buffers import Unplaceable
from teletape_engine.plans.ir.forwards import Diverged
from teletape_engine.plans.lower.foreseen import Foreseen
from teletape_engine.plans.lower.lowering import Lowering
from teletape_engine.plans.policy import POLICY
from teletape_engine.plans.run.loops.loop import Loop
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.session_plans import SessionPlans
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.values import Literal, Value, Variable

MOST_PLANS: Final = 64  #: Layouts of a function's arguments that are remembered.
_WITHOUT: Final = 8  #: Of those the ones without a plan, once there are too many.
#: Bytes that the steps of a function allocate from which on it has a plan before it has run: step by step it would need
#: more memory at a time, and the memory that it leaves would stay with the process.
_LARGE: Final = 1 << 23
MOST_FAILURES: Final = 8  #: Runs of a plan that may fail one after the other: then it ends.
_SHORT: Final = 128  #: Steps up to which those bytes are summed up also for small arguments.
_OBJECT: Final = np.dtype(object)


class Runnable(Protocol):
    """A function, as plans see it."""

    def run(self, recorder: Recorder, arguments: Sequence[Any], *, tie: bool = True) -> list[Any]:
        """Runs it step by step."""

    def price(self, specs: Sequence[Any]) -> int:
        """Bytes that all its steps together allocate."""

    @property
    def size(self) -> int:
        """The number of its steps."""


class Plans:
    """The plans of one function.

    Attributes:
        possible: Whether the function can have any: it has ops, its steps do not depend on values, and so on.
        loops: Those of loops with this function as their body; None: there can be none.
    """

    __slots__ = ("__weakref__", "_lock", "_plans", "loops", "possible")
    unrolls = False  #: Whether calls are lists of instructions once it is known what values decide: see unrolled.py.
    _lowering: type[Lowering] = Lowering

    def __init__(self, possible: bool) -> None:
        self.possible = possible
        self._plans: dict[Any, Plan | int | None] = {}  # a number: calls so far; None: there can be no plan
        self.loops: dict[Any, Loop | None] = {}
        self._lock = threading.Lock()

    def run(self, function: Runnable, recorder: Executor, arguments: Sequence[Any]) -> list[Any] | None:
        """The results of a call that nothing records; None: the interpreter is to run it.

        Args:
            function: The function.
            recorder: Of the call.
            arguments: As many as the function takes; a variable where it assigns.

        Raises:
            CancelledError: The caller wants it stopped; no variable is changed.
            TeletapeError: The first run, which the interpreter makes, has failed.
        """
        started = [argument.value if argument.__class__ is Variable else argument for argument in arguments]
        key = (recorder.backend, key_of(arguments, started)) if recorder.on_gpu else key_of(arguments, started)
        plan = self._plans.get(key, 0)
        if plan.__class__ is Plan or plan.__class__ is DevicePlan:
            try:
                results: list[Any] = plan.run(recorder, arguments, started)
            except CancelledError:
                raise
            except Diverged:
                self._plans[key] = None
                return None
            except Exception:  # the interpreter runs it again, and raises the error in its own words and place
                plan.failures += 1
                if plan.failures >= MOST_FAILURES:  # from now on the interpreter alone runs such calls
                    self._plans[key] = None
                return None
            if plan.failures:
                plan.failures = 0
            return results
        if plan.__class__ is not int:
            return None
        if not plannable(arguments, started, on_gpu=recorder.on_gpu):
            return None
        calls = plan + 1
        if calls < POLICY.first and (recorder.on_gpu or calls > 1 or not _is_large(function, started)):
            self._remember(key, calls, recorder.memory)
            return None
        if not self._lock.acquire(blocking=False):  # another thread builds one
            return None
        try:
            if recorder.on_gpu:
                return self._built(key, function, recorder, arguments, started, DeviceLowering)
            build = self._compared if POLICY.compared else self._built if calls >= POLICY.first else self._foreseen
            return build(key, function, recorder, arguments, started)
        finally:
            self._lock.release()

    @property
    def instructions(self) -> int:
        """The number of instructions of all plans."""
        plans: list[Any] = [*self._plans.values(), *self.loops.values()]
        return sum([len(plan.instructions) for plan in plans if plan is not None and plan.__class__ is not int])

    def forget_plan(self, plan: Any) -> None:
        """Ends one plan; it is built again."""
        for plans in (self._plans, self.loops):
            for key, other in tuple(plans.items()):
                if other is plan:
                    plans.pop(key, None)

    def forget(self) -> None:
        """Ends all plans; they are built again."""
        self._plans.clear()
        self.loops.clear()

    def remember_loop(self, key: Any, loop: Loop | None, memory: Memory) -> None:
        """Keeps the plan of a loop; None: there can be none."""
        self._keep(self.loops, key, loop, memory)

    def _remember(self, key: Any, plan: Plan | int | None, memory: Memory) -> None:
        self._keep(self._plans, key, plan, memory)

    def _keep(self, plans: dict[Any, Any], key: Any, plan: Any, memory: Memory) -> None:
        if len(plans) >= MOST_PLANS and key not in plans:
            _make_room(plans)
        plans[key] = plan
        if _is_plan(plan):
            SessionPlans.of(memory).add(plan, self)

    def _foreseen(
        self, key: Any, function: Runnable, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any]
    ) -> list[Any] | None:
        """Builds a plan without running the function, and runs it; None: the interpreter is to run it."""
        self._remember(key, 1, recorder.memory)
        plan = _foreseen_plan(function, recorder, arguments, started)
        if plan is None:
            return None
        try:
            results = plan.run(recorder, arguments, started)
        except CancelledError:
            raise
        except Exception:  # as in `run`; the next call builds a plan from what it sees
            return None
        self._remember(key, plan, recorder.memory)
        return results

    def _built(
        self,
        key: Any,
        function: Runnable,
        recorder: Executor,
        arguments: Sequence[Any],
        started: Sequence[Any],
        kind: type[Lowering] | None = None,
    ) -> list[Any]:
        """Builds a plan during this call, which the interpreter runs."""
        lowering = (kind or self._lowering)(recorder, arguments, into=recorder.provenance.records)
        results = function.run(lowering, arguments, tie=False)
        self._remember(key, _plan(lowering, arguments, started, results), recorder.memory)
        return results

    def _compared(
        self, key: Any, function: Runnable, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any]
    ) -> list[Any] | None:
        """Builds a plan, runs it, and compares the results with those of the interpreter.

        Raises:
            InternalError: They differ.
        """
        shadows = shadows_of(arguments, started)
        lowering = self._lowering(recorder, shadows)
        foreseen = _foreseen_plan(function, recorder, arguments, started)
        try:
            expected = function.run(lowering, shadows, tie=False)
        except CancelledError:
            raise
        except Exception:  # the interpreter raises it again
            return None
        wanted = outcome(expected, shadows)
        if foreseen is not None:
            compared(foreseen, recorder.aside(), shadows_of(arguments, started), started, wanted)
        plan = _plan(lowering, shadows, started, expected)
        self._remember(key, plan, recorder.memory)
        return None if plan is None else compared(plan, recorder, arguments, started, wanted)


def _make_room(plans: dict[Any, Any]) -> None:
    """Forgets the least used plan, or what is known of a layout without one if there are many of those."""
    others = [key for key, plan in tuple(plans.items()) if not _is_plan(plan)]
    if len(others) <= _WITHOUT:
        used = {key: plan.used for key, plan in tuple(plans.items()) if _is_plan(plan)}
        others = [min(used, key=used.__getitem__)]
    plans.pop(others[0], None)


def _is_plan(plan: Any) -> bool:
    return plan is not None and plan.__class__ is not int


def _foreseen_plan(
    function: Runnable, recorder: Executor, arguments: Sequence[Any], started: Sequence[Any]
) -> Plan | None:
    """A plan of a function that has not run; None: it must run first."""
    shadows = shadows_of(arguments, started)
    lowering = Foreseen(recorder, shadows)
    try:
        results = function.run(lowering, shadows, tie=False)
    except CancelledError:
        raise
    except Exception:  # the interpreter runs it, and raises the error in its own words and place
        return None
    return _plan(lowering, shadows, started, results)


def _is_large(function: Runnable, started: Sequence[Any]) -> bool:
    """Whether its steps allocate much. A long function is looked at only if its arguments are large too."""
    nbytes = sum([value.spec.nbytes for value in started if value.__class__ is Value])
    if function.size > _SHORT and nbytes < _LARGE >> 6:
        return False
    try:
        return function.price([value.spec for value in started]) >= _LARGE
    except Exception:  # the interpreter raises it
        return False


def _plan(lowering: Lowering, arguments: Sequence[Any], started: Sequence[Any], results: Sequence[Any]) -> Plan | None:
    if lowering.obstacle is not None:
        return None
    try:
        kind = DevicePlan if isinstance(lowering, DeviceLowering) else Plan
        return kind(lowering, arguments, started, results)
    except Exception as error:  # whatever it is, the interpreter can do it
        if POLICY.compared and not isinstance(error, Unplaceable | MemoryError):
            raise
        return None


def plannable(arguments: Sequence[Any], started: Sequence[Any], *, on_gpu: bool = False) -> bool:
    """Whether there can be a plan for arguments like these: what their keys have in common."""
    for value in started:
        if value.__class__ is Literal:
            continue
        if value.__class__ is not Value or value.spec.dtype is _OBJECT:
            return False
        if not on_gpu and value.array.__class__ is not np.ndarray and not isinstance(value.array, np.generic):
            return False
    variables = [argument.uid for argument in arguments if argument.__class__ is Variable]
    return len(set(variables)) == len(variables)


def key_of(arguments: Sequence[Any], started: Sequence[Any]) -> Any:
    """What a plan depends on: specs and strides of the arrays, which of them are the same value, and the numbers."""
    parts: list[Any] = []
    uids = []
    for value in started:
        array = value.array
        if array.__class__ is np.ndarray:
            parts += (value.spec, array.strides)
            base = array.base
            if base is not None:
                parts.append(base.nbytes if base.__class__ is np.ndarray else 0)
        elif value.__class__ is Literal:
            parts.append((value.spec, repr(array)))
            continue
        else:
            parts += (value.spec, array.__class__, array.strides)
        uids.append(value.uid)
    if len(set(uids)) != len(uids):
        for row in ([value.uid for value in started], [argument.uid for argument in arguments]):
            parts += [row.index(uid) for uid in row]
    return tuple(parts)
