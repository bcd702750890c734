"""A function whose steps allocate much has a plan before it has run: memory is that of the plan from the first call."""

import tracemalloc
from dataclasses import asdict

import numpy as np
import pytest
from driving import executor

from teletape_engine.arrays import backend
from teletape_engine.commands import Assign, Call
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans import cache
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.values import Variable

CHAIN = (
    Call("exp", ("x",), ("a",)),
    Call("tanh", ("a",), ("b",)),
    Call("mul", ("a", "b"), ("c",)),
    Call("sub", ("c", "x"), ("d",)),
    Call("reduce_sum", ("d",), ("s",)),
)


@pytest.fixture
def policy(monkeypatch):
    """Plans of large functions from the first call on; 32 kB are large."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    monkeypatch.setattr(cache, "_LARGE", 1 << 15)
    return POLICY


@pytest.fixture
def runs(monkeypatch):
    """The plans that have computed something, in order."""
    ran = []
    compute = Plan.compute

    def counted(self, *args, **kwargs):
        ran.append(self)
        return compute(self, *args, **kwargs)

    monkeypatch.setattr(Plan, "compute", counted)
    return ran


def numbers(count=20_000):
    return np.random.default_rng(0).standard_normal(count).astype("f4")


def bytes_of(values):
    return [np.asarray(value.array).tobytes() for value in values]


def test_a_large_function_is_a_plan_from_its_first_call_on(policy, runs):
    function, context = compile_function(("x",), CHAIN, ("d", "s")), executor()
    x = context.constant(numbers())
    answers = [bytes_of(function.run(context, [x])) for _ in range(3)]
    assert len(runs) == 3
    policy.enabled = False
    assert all(answer == bytes_of(function.run(context, [x])) for answer in answers)


def test_a_small_function_runs_step_by_step_first(policy, runs):
    function, context = compile_function(("x",), CHAIN, ("d", "s")), executor()
    for _ in range(2):
        function.run(context, [context.constant(numbers(100))])
    assert not runs


@pytest.mark.parametrize(("short", "count"), [(3, 0), (4, 1)])
def test_a_long_function_of_small_arguments_runs_step_by_step_first(policy, runs, monkeypatch, short, count):
    monkeypatch.setattr(cache, "_SHORT", short)
    monkeypatch.setattr(cache, "_LARGE", 1 << 13)
    steps = (
        Call("reshape", ("x",), ("r",), {"shape": (30, 1)}),
        Call("mul", ("r", "x"), ("m",)),
        Call("exp", ("m",), ("e",)),
        Call("neg", ("e",), ("n",)),
    )
    function, context = compile_function(("x",), steps, ("n",)), executor()
    function.run(context, [context.constant(numbers(30))])
    assert len(runs) == count


@pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")
def test_the_peak_of_the_first_call_is_little_more_than_its_results(policy, runs):
    function, context = compile_function(("x",), CHAIN, ("d", "s")), executor()
    x = context.constant(numbers(1_000_000))
    tracemalloc.start()
    try:
        function.run(context, [x])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(runs) == 1
    assert peak < 1.3 * x.array.nbytes


def test_variables_are_assigned_to_once(policy, runs):
    steps = (*CHAIN, Assign("v", "d", "add"), Call("neg", ("v",), ("n",)))
    function, context = compile_function(("v", "x"), steps, ("n", "s")), executor()
    x = context.constant(numbers())

    def updated(times):
        variable = Variable(context.constant(numbers() * 2), trainable=True, name="v")
        results = [bytes_of(function.run(context, [variable, x])) for _ in range(times)]
        return results, bytes_of([variable.value]), variable.version

    planned = updated(3)
    assert len(runs) == 3
    policy.enabled = False
    assert planned == updated(3)


def test_an_error_is_the_interpreters_and_variables_stay(policy, runs):
    steps = (
        Assign("v", "x", "add"),
        Call("gather", ("v", "i"), ("g",)),
        Call("exp", ("g",), ("e",)),
    )
    function, context = compile_function(("v", "x", "i"), steps, ("e",)), executor()
    variable = Variable(context.constant(numbers()), trainable=True, name="v")
    x, wrong, right = context.constant(numbers()), np.array([20_000] * 9000), np.array([3] * 9000)
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = 20000 is not in \[0, 20000\)"):
        function.run(context, [variable, x, context.constant(wrong)])
    assert len(runs) == 1
    results = function.run(context, [variable, x, context.constant(right)])
    assert results[0].array.shape == (9000,)


def test_a_layout_that_is_not_foreseen_is_the_interpreters(policy, runs):
    steps = (Call("cumsum", ("x",), ("c",), {"axis": 0}), Call("exp", ("c",), ("e",)))
    function, context = compile_function(("x",), steps, ("c", "e")), executor()
    x = context.constant(np.asfortranarray(numbers(10_000).reshape(100, 100)))
    answers = [function.run(context, [x]) for _ in range(4)]
    policy.enabled = False
    answers.append(function.run(context, [x]))
    assert len(runs) >= 2
    assert len({tuple(bytes_of(answer)) for answer in answers}) == 1
    assert {answer[0].array.strides for answer in answers} == {answers[-1][0].array.strides}


def test_what_has_no_room_for_its_results_is_refused(policy):
    function = compile_function(("x",), CHAIN, ("d", "s"))
    context = Executor(backend("cpu"), Memory(200_000, lambda: 160_000))
    x = context.constant(numbers(40_000))
    with pytest.raises(ResourceExhaustedError):
        function.run(context, [x])
