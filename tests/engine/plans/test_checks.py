"""Ops that look at values only to refuse some: a plan checks by instructions, and the interpreter raises the error."""

import ctypes
from dataclasses import asdict

import numpy as np
import pytest
from driving import executor

from teletape_engine.commands import Assign, Call, Scan
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import RUNNERS
from teletape_engine.plans.ir.buffers import address
from teletape_engine.plans.ir.instructions import PythonCall, Refused, Take, TruthCheck
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.plans.run.c.records import RECORDS
from teletape_engine.plans.run.loops.loop import Loop
from teletape_engine.plans.run.machine import LoopFailed
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.values import Variable

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
#: Steps from "v" and "i" to "r"; right values of "i", and wrong ones.
CASES = {
    "gather": ((Call("gather", ("v", "i"), ("r",)),), np.array([3, 0, 1]), np.array([1, 4, 0])),
    "gather, negative": ((Call("gather", ("v", "i"), ("r",)),), np.array([3, 0], "i4"), np.array([0, -1], "i4")),
    "gather along 1": (
        (Call("gather", ("v", "i"), ("r",), {"axis": 1}),),
        np.array([[2, 0], [1, 1]]),
        np.array([[2, 3], [1, 1]]),
    ),
    "cross entropy": (
        (Call("sparse_softmax_cross_entropy", ("i", "v"), ("r",)),),
        np.array([2, 0, 1, 1], "i4"),
        np.array([2, 0, 3, 1], "i4"),
    ),
    "division": ((Call("floordiv", ("i", "i"), ("r",)),), np.array([2, -3]), np.array([2, 0])),
    "numerics": (
        (Call("check_numerics", ("i",), ("c",), {"message": "i"}), Call("exp", ("c",), ("r",))),
        np.array([1.0, 2.0]),
        np.array([1.0, np.inf]),
    ),
    "assertion": (
        (Call("ensure", ("i",), ("c",), {"message": "must hold"}), Call("cast", ("c",), ("r",), {"dtype": "int32"})),
        np.array([True, True]),
        np.array([True, False]),
    ),
}


@pytest.fixture(params=["python", "on"])
def policy(request, monkeypatch):
    """Plans from the second call on, in Python and in C."""
    if request.param == "on" and loaded.LIBRARY_LOADED is None:
        pytest.skip("librows.so.1 is not built: no C compiler")
    for name, setting in asdict(Policy.of(request.param)).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


def plan_of(function):
    """A function's only plan."""
    (plan,) = [plan for plan in function.plans._plans.values() if isinstance(plan, Plan)]
    return plan


def outcome(function, context, indices):
    """The bytes of the results, or the error; and those of the variable, which is assigned to first."""
    variable = Variable(context.constant(X.copy()), trainable=True, name="v")
    try:
        results = function.run(context, [variable, context.constant(indices)])
    except InvalidArgumentError as error:
        return str(error), error.details, variable.version, variable.value.array.tobytes()
    return [np.asarray(result.array).tobytes() for result in results], variable.version


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_a_check_is_an_instruction_and_its_error_the_interpreters(policy, case):
    steps, right, wrong = CASES[case]
    steps = (Call("neg", ("v",), ("n",)), Assign("v", "n", "set"), *steps, Assign("v", "n", "add"))
    function, context = compile_function(("v", "i"), steps, ("r",)), executor()
    planned = [outcome(function, context, indices) for indices in (right, right, right, wrong, right)]
    plan = plan_of(function)
    kinds = [type(instruction) for instruction in plan.instructions]
    assert TruthCheck in kinds
    assert PythonCall not in kinds
    policy.enabled = False
    stepwise = [outcome(function, context, indices) for indices in (right, wrong)]
    assert planned[0] == planned[1] == planned[2] == planned[4] == stepwise[0]
    assert planned[3][:2] == stepwise[1][:2]
    assert plan.instructions is plan_of(function).instructions  # it was not given up


def test_a_failed_plan_leaves_variables_as_they_are(policy):
    function, context = compile_function(("v", "i"), CASES["gather"][0], ("r",)), executor()
    variable = Variable(context.constant(X.copy()), trainable=True, name="v")
    for _ in range(3):
        function.run(context, [variable, context.constant(np.array([0, 1, 2]))])
    plan, arrays = plan_of(function), [variable.value, context.constant(np.array([0, 9, 2]))]
    with pytest.raises((Refused, LoopFailed)):
        plan.compute(context, arrays)
    assert variable.value.array.tobytes() == X.tobytes()


def test_the_check_of_a_result_that_nothing_needs_stays(policy):
    steps = (Call("gather", ("x", "i"), ("g",)), Call("exp", ("x",), ("r",)))
    function, context = compile_function(("x", "i"), steps, ("r",)), executor()
    x = context.constant(X)
    for _ in range(3):
        function.run(context, [x, context.constant(np.array([0, 3]))])
    kinds = [type(instruction) for instruction in plan_of(function).instructions]
    assert TruthCheck in kinds
    assert Take not in kinds
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 4 is not in \[0, 4\)"):
        function.run(context, [x, context.constant(np.array([0, 4]))])


@pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")
def test_a_loop_ends_at_the_iteration_whose_values_are_refused(monkeypatch):
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    turned, run = [], Loop.run
    monkeypatch.setattr(Loop, "run", lambda *args, **named: turned.append(run(*args, **named)) or turned[-1])
    steps = (Call("gather", ("x", "i"), ("g",)), Call("add", ("s", "g"), ("t",)))
    body, context = compile_function(("s", "i", "x"), steps, ("t", "g")), executor()
    command = Scan("b", (), (), carried=1, captured=1)

    def scanned(indices):
        inputs = [context.constant(array) for array in (np.zeros(3, np.float32), indices, X)]
        try:
            return [result.array.tobytes() for result in RUNNERS[Scan](context, command, (body,), inputs)]
        except InvalidArgumentError as error:
            return str(error)

    right = np.arange(40) % 4
    wrong = right.copy()
    wrong[30] = 7
    planned = [scanned(right), scanned(wrong), scanned(right)]
    assert [(loop.iterations, loop.failed) for loop in turned] == [(38, False), (30, True), (40, False)]
    POLICY.enabled = False
    assert planned == [scanned(right), scanned(wrong), scanned(right)]
    assert "7 is not in [0, 4)" in planned[1]


@pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")
@pytest.mark.parametrize("index", [-1, 4, 1 << 40])
def test_elements_outside_are_not_read(index):
    take = ctypes.CDLL(str(loaded.LIBRARY)).teletape_take
    take.argtypes = (ctypes.c_void_p,) * 5
    geometry = np.array([(1, 4, 2, 12, 0, 8)], RECORDS.dtypes["take"])
    output, indices = np.zeros((2, 3), "f4"), np.array([3, index])
    data = (ctypes.c_void_p * 4)(address(X), address(indices), address(output), 0)
    assert take(address(geometry), data, None, None, None) == -1
    assert output[0].tobytes() == X[3].tobytes()
    assert not output[1].any()
