"""Functions with control flow as plans: bit for bit what the interpreter computes, also when values decide anew."""

from dataclasses import asdict

import numpy as np
import pytest

from teletape_engine.arrays import backend
from teletape_engine.commands import Assign, Call, Cond, Scan, ValueAndGradient, While
from teletape_engine.errors import CancelledError, ResourceExhaustedError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans import unrolled
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor, no_progress
from teletape_engine.recording.values import Literal, Variable

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)


def compiled(inputs, steps, outputs, **functions):
    return compile_function(tuple(inputs.split()), tuple(steps), tuple(outputs.split()), functions.__getitem__)


BELOW = compiled("x n w", [Call("reduce_sum", ("x",), ("s",)), Call("less", ("s", "n"), ("more",))], "more")
GROW = compiled(
    "x n w", [Call("mul", ("x", "w"), ("a",)), Call("exp", ("a",), ("b",)), Call("add", ("x", "b"), ("y",))], "y n"
)
GROWN = compiled(
    "x n w",
    [
        While("below", "grow", ("x", "n", "w"), ("y", "m"), captured=1),
        Call("tanh", ("y",), ("t",)),
        Call("reduce_mean", ("t",), ("loss",)),
    ],
    "loss y",
    below=BELOW,
    grow=GROW,
)
#: x grows until its sum reaches n; the loss is a mean of tanh of the last x.
GRADIENT = compiled(
    "x n w",
    [ValueAndGradient("grown", ("x", "n", "w"), ("loss",), ("x", "w"), ("loss", "y", "gx", "gw"))],
    "loss y gx gw",
    grown=GROWN,
)
CHOSEN = compiled(
    "x w",
    [
        Call("reduce_sum", ("x",), ("s",)),
        Call("greater", ("s", Literal(0.0)), ("positive",)),
        Cond(("twice", "half"), ("positive", "x", "w"), ("y",)),
        Call("reduce_sum", ("y",), ("total",)),
    ],
    "total",
    twice=compiled("x w", [Call("mul", ("x", "w"), ("y",))], "y"),
    half=compiled("x w", [Call("div", ("x", "w"), ("z",)), Call("sin", ("z",), ("y",))], "y"),
)
CHOSEN_GRADIENT = compiled(
    "x w",
    [ValueAndGradient("chosen", ("x", "w"), ("total",), ("x", "w"), ("total", "gx", "gw"))],
    "total gx gw",
    chosen=CHOSEN,
)
SCANNED = compiled(
    "c e w",
    [Scan("step", ("c", "e", "w"), ("last", "all"), carried=1, captured=1)],
    "last all",
    step=compiled("c e w", [Call("mul", ("c", "w"), ("a",)), Call("add", ("a", "e"), ("d",))], "d d"),
)
#: A training step: w moves against the gradient through a scan.
TRAINED = compiled(
    "c e w",
    [
        ValueAndGradient("scanned", ("c", "e", "w"), ("last", "all"), ("e", "w"), ("last", "all", "ge", "gw")),
        Call("mul", ("gw", Literal(0.01)), ("change",)),
        Assign("w", "change", "sub"),
    ],
    "last ge gw",
    scanned=SCANNED,
)


@pytest.fixture(autouse=True)
def policy(monkeypatch):
    """Plans as by default, whatever TELETAPE_PLANS is."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


@pytest.fixture
def context():
    return Executor(backend("cpu"), Memory(None, lambda: 0))


@pytest.fixture
def computed(monkeypatch):
    """The plans with control flow that have computed results, in order."""
    plans = []
    finish = Plan.finish

    def counted(self, *args, **kwargs):
        if self.iterations or self._guards:
            plans.append(self)
        return finish(self, *args, **kwargs)

    monkeypatch.setattr(Plan, "finish", counted)
    return plans


def values(context, *arrays):
    return [array if isinstance(array, Literal) else context.constant(np.array(array)) for array in arrays]


def interpreted(function, *arrays):
    """The results without any plans."""
    POLICY.enabled = False
    try:
        context = Executor(backend("cpu"), Memory(None, lambda: 0))
        return [result.array for result in function.run(context, values(context, *arrays))]
    finally:
        POLICY.enabled = True


def same(results, expected):
    return all(
        np.array_equal(result.array, array) and result.array.dtype == array.dtype
        for result, array in zip(results, expected, strict=True)
    )


def test_a_gradient_through_a_loop_is_a_plan_from_the_third_call_that_decides_alike(context, computed):
    arrays = X, np.float32(9.0), np.full((2, 3), 0.5, np.float32)
    expected = interpreted(GRADIENT, *arrays)
    for call in range(1, 6):
        assert same(GRADIENT.run(context, values(context, *arrays)), expected)
        assert len(computed) == max(0, call - 3), "the third call builds it"


def test_values_that_decide_otherwise_are_computed_by_the_interpreter(context, computed):
    function = compiled("x n w", GRADIENT.commands, " ".join(GRADIENT.outputs), grown=GROWN)
    w = np.full((2, 3), 0.5, np.float32)
    for n in [9.0] * 5 + [40.0, 9.0, 2.0, 9.0, 9.0]:
        arrays = X, np.float32(n), w
        assert same(function.run(context, values(context, *arrays)), interpreted(function, *arrays)), n
    assert len(computed) == 2 + 3, "each call with n of 9, once there is a plan"


def test_a_plan_that_is_wrong_too_often_is_forgotten(context, computed):
    function = compiled("x w", CHOSEN_GRADIENT.commands, "total gx gw", chosen=CHOSEN)
    w = np.full((2, 3), 1.5, np.float32)
    positive, negative = np.abs(X) + 0.5, -np.abs(X)
    for x in (positive,) * 4 + (negative,) * 8 + (positive,) * 2:
        assert same(function.run(context, values(context, x, w)), interpreted(function, x, w))
    assert len(computed) == 1


def test_the_branch_that_a_plan_has_is_the_one_that_values_choose(context, computed):
    w = np.full((2, 3), 1.5, np.float32)
    for x in (np.abs(X) + 0.5,) * 6:
        assert same(CHOSEN_GRADIENT.run(context, values(context, x, w)), interpreted(CHOSEN_GRADIENT, x, w))
    assert len(computed) == 3


def test_a_plan_that_decides_otherwise_assigns_nothing(context, computed):
    function = compiled(
        "x w v",
        [
            Assign("v", Literal(1.0), "add"),
            Call("reduce_sum", ("x",), ("s",)),
            Call("greater", ("s", Literal(0.0)), ("positive",)),
            Cond(("minus", "plus"), ("positive", "x", "w"), ("y",)),
        ],
        "y",
        minus=compiled("x w", [Call("sub", ("x", "w"), ("y",))], "y"),
        plus=compiled("x w", [Call("add", ("x", "w"), ("y",))], "y"),
    )
    v = Variable(context.constant(np.zeros((), np.float32)), trainable=True)
    w = np.ones((2, 3), np.float32)
    for calls, x in enumerate([X + 2] * 6 + [X - 2] * 2, 1):
        results = function.run(context, [*values(context, x, w), v])
        assert same(results, [x - w if x.sum() > 0 else x + w])
        assert (v.value.array, v.version) == (calls, calls)
    assert len(computed) == 2


def test_a_training_step_through_a_scan_moves_its_variable_as_the_interpreter_does(context, computed):
    c, e = np.ones((3,), np.float32), np.linspace(0, 1, 30, dtype=np.float32).reshape(10, 3)
    start = np.full((3,), 0.9, np.float32)
    planned = Variable(context.constant(start.copy()), trainable=True)
    for _ in range(6):
        results = TRAINED.run(context, [*values(context, c, e), planned])
    assert len(computed) == 3
    POLICY.enabled = False
    other = Variable(context.constant(start.copy()), trainable=True)
    for _ in range(6):
        expected = TRAINED.run(context, [*values(context, c, e), other])
    assert same(results, [result.array for result in expected])
    assert np.array_equal(planned.value.array, other.value.array)
    assert planned.version == other.version == 6


def test_decisions_are_reported_as_by_the_interpreter(context, computed):
    arrays = X, np.float32(9.0), np.full((2, 3), 0.5, np.float32)
    reported = []
    for _ in range(6):
        context.decided = []
        GRADIENT.run(context, values(context, *arrays))
        reported.append(context.decided)
    context.decided = None
    assert computed
    assert reported[0]
    assert all(decisions == reported[0] for decisions in reported)


def test_iterations_of_a_plan_count_against_the_limit(computed):
    monitor = Monitor()
    monitor.most_iterations = 30
    context = Executor(backend("cpu"), Memory(None, lambda: 0), monitor)
    arrays = np.ones((3,), np.float32), np.ones((10, 3), np.float32), np.ones((3,), np.float32)
    function = compiled(
        "c e w",
        [ValueAndGradient("scanned", ("c", "e", "w"), ("last",), ("w",), ("last", "all", "gw"))],
        "gw",
        scanned=SCANNED,
    )
    monitor.loops(0)
    function.run(context, values(context, *arrays))
    iterations = monitor._taken
    for _ in range(4):
        monitor.loops(0)
        function.run(context, values(context, *arrays))
        assert monitor._taken == iterations
    assert computed
    monitor.most_iterations = iterations + 1
    with pytest.raises(ResourceExhaustedError, match="the loops of one command may take"):
        function.run(context, values(context, *arrays))


def test_a_call_of_too_many_steps_has_no_plan(context, computed, monkeypatch):
    monkeypatch.setattr(unrolled, "MOST_STEPS", 20)
    function = compiled("x n w", GRADIENT.commands, " ".join(GRADIENT.outputs), grown=GROWN)
    arrays = X, np.float32(9.0), np.full((2, 3), 0.5, np.float32)
    for _ in range(5):
        assert same(function.run(context, values(context, *arrays)), interpreted(function, *arrays))
    assert not computed


def test_a_cancel_leaves_the_variables_as_they_were(context, computed):
    c, e = np.ones((3,), np.float32), np.ones((10, 3), np.float32)
    v = Variable(context.constant(np.ones((3,), np.float32)), trainable=True)
    for _ in range(4):
        TRAINED.run(context, [*values(context, c, e), v])
    version, before = v.version, v.value.array.copy()
    context._monitor.begin(lambda: True, no_progress, 1)
    with pytest.raises(CancelledError):
        TRAINED.run(context, [*values(context, c, e), v])
    assert v.version == version
    assert np.array_equal(v.value.array, before)


def test_under_force_plans_are_compared_with_the_interpreter(context, computed, monkeypatch):
    for name, setting in asdict(Policy.of("force")).items():
        monkeypatch.setattr(POLICY, name, setting)
    function = compiled("x n w", GRADIENT.commands, " ".join(GRADIENT.outputs), grown=GROWN)
    arrays = X, np.float32(9.0), np.full((2, 3), 0.5, np.float32)
    expected = interpreted(GRADIENT, *arrays)
    for _ in range(3):
        assert same(function.run(context, values(context, *arrays)), expected)
    assert computed
