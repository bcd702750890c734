"""Plans on a GPU, on a strict substitute for CuPy: they give what the interpreter gives."""

from dataclasses import asdict

import numpy as np
import pytest
import substitute

from op_laws.harness import as_operand, random_like, typed_input
from teletape_engine.arrays import backend
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.operand import Operand
from teletape_engine.catalogue.slices import SparseGradient
from teletape_engine.commands import Assign, Call
from teletape_engine.errors import CancelledError, InvalidArgumentError, TeletapeError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.cache import Plans
from teletape_engine.plans.gpu.launches import Launch
from teletape_engine.plans.gpu.machine import CallSegment
from teletape_engine.plans.gpu.plan import DevicePlan
from teletape_engine.plans.ir.instructions import MatrixProduct, PythonCall
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.spec import DTYPES

TOLERANCE = {2: 2e-3, 4: 2e-6, 8: 1e-13}


class Body:
    """A function of a recorder, as plans run it."""

    size = 1

    def __init__(self, body):
        self.body = body

    def run(self, recorder, arguments, *, tie=True):
        return self.body(recorder, arguments)


@pytest.fixture
def device(monkeypatch):
    """A GPU that is none; plans from the first call on."""
    for name, setting in (asdict(Policy.of("on")) | {"first": 1}).items():
        monkeypatch.setattr(POLICY, name, setting)
    return substitute.installed(monkeypatch)


def executor():
    return Executor(backend("gpu"), Memory(None, lambda: 0))


def same(result, expected):
    """Whether numbers are equal but for the last bits, which depend on how NumPy walks an array."""
    a, b = result.array.get(), expected.array.get()
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    if a.dtype.kind in "fc":
        real = a.real.dtype.itemsize
        np.testing.assert_allclose(a, b, rtol=TOLERANCE[real], atol=TOLERANCE[real] * 8)
    else:
        np.testing.assert_array_equal(a, b)


def planned(body, recorder, arguments):
    """Runs a body step by step, and four times as a plan; returns the plan, if there is one."""
    plans = Plans(possible=True)
    try:
        expected = plans.run(Body(body), recorder, arguments)
    except TeletapeError:
        return None
    (plan,) = plans._plans.values()
    if plan is None:
        return None
    for turn in range(4):
        arrays = plan.compute(recorder, arguments, poisoned=turn == 3)
        values, results = plan.values(arguments, arrays)
        plan.finish(recorder, arguments, arguments, values)
        for result, wanted in zip(results, expected, strict=True):
            if wanted.uid is not None:
                same(result, wanted)
    return plan


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex64"])
def test_plans_of_every_op(device, dtype, monkeypatch):
    if dtype != "float32":  # as if the samples were large
        monkeypatch.setattr("teletape_engine.plans.gpu.plan._LARGE_BYTES", 1)
        monkeypatch.setattr("teletape_engine.plans.gpu.launches._LARGE", 1)
    with_plan, generated, lacking = set(), set(), []
    for name, op in CATALOGUE.items():
        for number, sample in enumerate(list(op.samples())[: 2 if dtype == "float32" else 1]):
            recorder = executor()
            attrs = op.attrs(sample.attrs)
            try:
                operands = [as_operand(recorder, typed_input(value, DTYPES[dtype])) for value in sample.inputs]
                bound = bind(op, tuple([operand.spec for operand in operands]), attrs)
                result = recorder.apply(op, operands, attrs)
            except TeletapeError as error:
                lacking += [(name, str(error))] * (error.code == "internal")
                continue
            if len(op.results) > 1:  # has no plan
                continue
            plan = planned(lambda r, a, op=op, attrs=attrs: [r.apply(op, a, attrs)], recorder, operands)
            if plan is not None:
                with_plan.add(name)
                if all(isinstance(step, Launch) for step in plan.steps):
                    generated.add(name)
            if op.expand is None and op.registered and not op.dynamic and dtype == "float32" and not number:
                backward(bound, recorder, operands, result)
    assert len(generated) > 0.24 * len(with_plan) > 20, sorted(with_plan - generated)
    assert device.graphs
    assert not lacking, "the substitute cannot do this"


def backward(bound, recorder, operands, result):
    """Runs each vjp rule as a plan."""
    plan = bound.plan((1 << len(operands)) - 1)
    values = (*operands, result)
    ct = recorder.constant(random_like(result.array.get(), seed=3))

    def vjp(rule):
        def body(recorder, arguments):
            residuals = [
                Operand(recorder, value) if value.uid is not None else value.array
                for value in [arguments[pick] for pick in plan.picks]
            ]
            gradient = rule(Operand(recorder, arguments[-1]), residuals)
            return [] if isinstance(gradient, SparseGradient) else [gradient.value]

        return body

    for _, rule in plan.rules:
        planned(vjp(rule), recorder, [*values, ct])


# ---------------------------------------------------------------------------------------------------------- programs
X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
WAVE = (
    Call("mul", ("x", Literal(2.0)), ("a",)),
    Call("tanh", ("a",), ("b",)),
    Call("add", ("b", "x"), ("c",)),
    Call("reduce_sum", ("c",), ("s",)),
)
LAYERS = (
    Call("matmul", ("x", "w"), ("h",)),
    Call("add", ("h", "b"), ("h2",)),
    Call("relu", ("h2",), ("h3",)),
    Call("matmul", ("h3", "w"), ("h4",)),
    Call("tanh", ("h4",), ("y",)),
    Call("mul", ("y", "y"), ("z",)),
    Call("reduce_mean", ("z",), ("loss",)),
)


@pytest.fixture
def plans(device, monkeypatch):
    """The plans that have computed something, in order."""
    ran = []
    compute = DevicePlan.compute

    def counted(self, *args, **kwargs):
        ran.append(self)
        return compute(self, *args, **kwargs)

    monkeypatch.setattr(DevicePlan, "compute", counted)
    return ran


def numbers(values):
    return [value.array.get() for value in values]


def compare(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=2e-6)


def called(function, context, *arrays, times=4):
    """The results of several calls with the same numbers, which must be the same."""
    answers = [numbers(function.run(context, [context.constant(array.copy()) for array in arrays]))]
    for _ in range(times - 1):
        answers.append(numbers(function.run(context, [context.constant(array.copy()) for array in arrays])))
        compare(answers[-1], answers[0])
    return answers[0]


def test_a_chain_and_its_sum_are_one_kernel(device, plans):
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    called(function, context, X)
    (launch,) = plans[0].steps
    assert [line.name for line in launch.structure.lines] == ["load", "load", "multiply", "tanh", "add"]
    assert not launch.structure.stores
    assert len(launch.structure.totals) == 1


def test_what_lies_between_two_instructions_of_a_chain_has_no_memory(device, plans):
    function, context = compile_function(("x",), WAVE, ("c",)), executor()
    called(function, context, X)
    assert len(plans[0]._layout.offsets) == 2  # x and c


def test_a_structure_is_compiled_once(device, plans):
    function, context = compile_function(("x",), WAVE, ("s", "c")), executor()
    other = compile_function(("x",), (Call("mul", ("x", Literal(7.0)), ("a",)), *WAVE[1:]), ("s", "c"))
    for array in (X, X[:1] * 3, np.ones((5, 7), np.float32)):
        for each in (function, other):
            called(each, context, array)
    assert len({id(plan) for plan in plans}) == 6
    assert len(device.sources) == 1


def test_matrix_products_are_called_between_graphs(device, plans):
    function, context = compile_function(("x", "w", "b"), LAYERS, ("loss", "h3")), executor()
    w = np.array([[1.0, 0.5, 0.0], [0.0, -1.0, 2.0], [3.0, 0.0, 1.0]], np.float32)
    loss, hidden = called(function, context, X, w, np.ones(3, np.float32))
    expected = np.maximum(X @ w + 1, 0)
    np.testing.assert_allclose(hidden, expected, rtol=1e-6)
    np.testing.assert_allclose(loss, np.mean(np.tanh(expected @ w) ** 2), rtol=1e-6)
    kinds = [step.structure.mode if isinstance(step, Launch) else type(step) for step in plans[0].steps]
    assert [kind for kind in kinds if kind in (MatrixProduct, PythonCall)] == [MatrixProduct, MatrixProduct]


def test_the_second_run_captures_and_later_ones_launch_the_graph(device, plans):
    steps = (*WAVE, Call("mul", ("s", "c"), ("d",)), Call("reduce_max", ("d",), ("m",)))
    function, context = compile_function(("x",), steps, ("m", "d")), executor()
    for turn in range(4):
        called(function, context, X * (turn + 1), times=1)
    kernels = len(plans[0].steps)
    assert (kernels > 1, device.launches, device.graphs) == (True, kernels, 2)


def test_an_argument_that_is_there_is_not_copied_again(device, plans):
    function, context = compile_function(("x", "y"), (Call("add", ("x", "y"), ("s",)),), ("s",)), executor()
    x = context.constant(X.copy())
    for turn in range(4):
        (result,) = numbers(function.run(context, [x, context.constant(X * turn)]))
        np.testing.assert_array_equal(result, X + X * turn)


def test_results_stay_when_the_plan_runs_again(device, plans):
    function, context = compile_function(("x",), WAVE, ("c",)), executor()
    results = [function.run(context, [context.constant(X * turn)])[0] for turn in range(5)]
    for turn, result in enumerate(results):
        np.testing.assert_allclose(result.array.get(), np.tanh(X * turn * 2) + X * turn, rtol=1e-6)


def test_variables_are_assigned_after_everything_else(device, plans):
    steps = (Assign("v", "x", mode="add"), *WAVE, Assign("v", "c", mode="sub"))
    function, context = compile_function(("v", "x"), steps, ("s",)), executor()
    variable, eager = [Variable(context.constant(X.copy()), trainable=True, name="v") for _ in range(2)]
    POLICY.first = 2
    for turn in range(4):
        x = X * turn
        compare(numbers(function.run(context, [variable, context.constant(x)])), [(np.tanh(x * 2) + x).sum()])
        eager.value = context.constant(eager.value.array.get() + x - (np.tanh(x * 2) + x))
        compare(numbers([variable.value]), numbers([eager.value]))
    assert variable.version == 2 * 4
    assert len(plans) == 2


def test_an_op_that_refuses_raises_as_step_by_step(device, plans):
    steps = (Assign("v", "x"), Call("gather", ("x", "at"), ("y",)))
    function, context = compile_function(("v", "x", "at"), steps, ("y",)), executor()
    variable = Variable(context.constant(X.copy()), trainable=True, name="v")
    rows = [np.array([1, 0], np.int32), np.array([0, 1], np.int32)]
    for at in rows:
        function.run(context, [variable, context.constant(X * 2), context.constant(at)])
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 2 is not in \[0, 2\)"):
        function.run(context, [variable, context.constant(X * 3), context.constant(np.array([0, 2], np.int32))])
    (result,) = numbers(function.run(context, [variable, context.constant(X * 4), context.constant(rows[0])]))
    np.testing.assert_array_equal(result, (X * 4)[[1, 0]])
    np.testing.assert_array_equal(variable.value.array.get(), X * 4)


def test_a_cancel_between_segments_leaves_variables_alone(device, plans):
    class Cancelling(Monitor):
        cancelled = False

        def check_cancelled(self):
            if self.cancelled:
                raise CancelledError("stop")

    monitor = Cancelling()
    context = Executor(backend("gpu"), Memory(None, lambda: 0), monitor)
    function = compile_function(("v", "x"), (Assign("v", "x"),), ("v",))
    variable = Variable(context.constant(X.copy()), trainable=True, name="v")
    steps = (*WAVE, Assign("v", "c"))
    function = compile_function(("v", "x"), steps, ("s",))
    function.run(context, [variable, context.constant(X)])
    before = variable.value
    monitor.cancelled = True
    with pytest.raises(CancelledError):
        function.run(context, [variable, context.constant(X * 2)])
    assert variable.value is before


def test_what_cannot_be_captured_is_called_one_by_one(device):
    done = []
    xp = substitute.modules()["cupy"]
    array = xp.asarray(X)
    segment = CallSegment(xp, [lambda: done.append(array.copy()), lambda: done.append(float(array[0, 0]))])
    for _ in range(3):
        segment.run()
    assert segment.graph is None
    assert len(done) == 6
    assert substitute.STATE.captured is None


def test_a_plan_without_memory_is_given_up(device, plans, monkeypatch):
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    (expected,) = called(function, context, X, times=1)
    monkeypatch.setattr(substitute.RawKernel, "__init__", lambda self, *args: 1 / 0)
    monkeypatch.setattr("teletape_engine.plans.gpu.plan._kernels", {})
    for _ in range(3):
        compare(called(function, context, X, times=1), [expected])
    assert len(plans) == 1  # not tried again
