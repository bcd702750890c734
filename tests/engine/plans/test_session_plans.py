"""The plans of a session take a bounded number of bytes: the least used are forgotten, and built again when needed."""

import gc
import weakref
from dataclasses import asdict

import numpy as np
import pytest
from driving import executor

from counting import calls
from teletape_engine.commands import Call
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans import cache, session_plans
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.plan import Plan
from teletape_engine.plans.session_plans import SessionPlans, nbytes_of

STEPS = (Call("sin", ("x",), ("a",)), Call("mul", ("a", "x"), ("b",)), Call("reduce_sum", ("b",), ("s",)))


@pytest.fixture(autouse=True)
def policy(monkeypatch):
    """Plans from the second call on, in Python."""
    for name, setting in asdict(Policy.of("python")).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


def plans_of(function):
    return [plan for plan in function.plans._plans.values() if isinstance(plan, Plan)]


def called(function, context, length, times=3):
    x = context.constant(np.linspace(0, 1, length, dtype=np.float32))
    return [function.run(context, [x])[0].array.tobytes() for _ in range(times)]


def test_the_least_used_plans_are_forgotten(monkeypatch):
    context = executor()
    functions = [compile_function(("x",), STEPS, ("s",)) for _ in range(6)]
    called(functions[0], context, 1000)
    monkeypatch.setattr(session_plans, "MOST_BYTES", int(3.5 * nbytes_of(plans_of(functions[0])[0])))
    answers = [called(function, context, 1000)[0] for function in functions[:3]]
    called(functions[0], context, 1000)  # used again
    answers += [called(function, context, 1000)[0] for function in functions[3:5]]
    assert [len(plans_of(function)) for function in functions] == [1, 0, 0, 1, 1, 0]
    assert SessionPlans.of(context.memory).nbytes <= session_plans.MOST_BYTES
    assert set(answers) == set(called(functions[1], context, 1000))
    assert len(plans_of(functions[1])) == 1


def test_arenas_for_calls_at_the_same_time_count(monkeypatch):
    context = executor()
    first, second = (compile_function(("x",), STEPS, ("s",)) for _ in range(2))
    called(first, context, 20_000)
    called(second, context, 20_000)
    (plan,) = plans_of(second)
    assert plan.nbytes > 40_000
    monkeypatch.setattr(session_plans, "MOST_BYTES", SessionPlans.of(context.memory).nbytes - 1)
    called(second, context, 20_000, 1)  # no new arena
    assert len(plans_of(first)) == 1
    plan._idle.clear()  # another thread runs it
    called(second, context, 20_000, 1)
    assert (plans_of(first), plans_of(second)) == ([], [plan])


def test_each_session_has_its_own():
    function, contexts = compile_function(("x",), STEPS, ("s",)), [executor(), executor()]
    called(function, contexts[0], 10)
    assert SessionPlans.of(contexts[0].memory).nbytes > 0 == SessionPlans.of(contexts[1].memory).nbytes


def test_plans_end_with_their_function():
    context = executor()
    function = compile_function(("x",), STEPS, ("s",))
    called(function, context, 10)
    plan = weakref.ref(plans_of(function)[0])
    del function
    gc.collect()
    assert plan() is None
    assert SessionPlans.of(context.memory).nbytes == 0


def test_the_least_used_plan_of_a_function_is_forgotten(monkeypatch):
    monkeypatch.setattr(cache, "MOST_PLANS", 4)
    monkeypatch.setattr(cache, "_WITHOUT", 1)
    context, function = executor(), compile_function(("x",), STEPS, ("s",))
    for length in (1, 2, 3, 1, 4):
        called(function, context, length)
    before = plans_of(function)
    for length in (5, 6):  # once each: what is known of 5 makes room, then a plan
        called(function, context, length, 1)
    assert len(function.plans._plans) <= 4
    assert before[0] in plans_of(function)  # of length 1, used after those of 2 and 3
    assert before[1] not in plans_of(function)


def test_a_new_plan_costs_the_same_among_many_others():
    context = executor()
    functions = [compile_function(("x",), STEPS, ("s",)) for _ in range(60)]
    called(functions[0], context, 10)
    few = calls(lambda: called(functions[1], context, 10))
    for function in functions[2:-1]:
        called(function, context, 10)
    assert calls(lambda: called(functions[-1], context, 10)) <= few
