"""On a GPU every op gives what it gives on the CPU, and so does its gradient; memory is given back."""

import itertools
from dataclasses import asdict

import numpy as np
import pytest
import substitute

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case, as_operand, computing_on, is_array, random_like
from op_laws.laws import IN_TURN, LAWS, check_op
from teletape_engine.arrays import backend, checks, scatter
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import SlicesValue
from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    Constant,
    Fetch,
    Gradient,
    MakeVariable,
    TapeOpen,
)
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError, UnimplementedError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans.gpu.plan import DevicePlan
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES


def numbers(context, item):
    """A gradient's numbers on the host; slices as their values, in order."""
    if item is None:
        return None
    return context.backend.get(item.values.array if isinstance(item, SlicesValue) else item.array)


def answers(device, op, case):
    """The result, the gradient of each input that has one, and those for two cotangents at once."""
    context, tape = Executor(backend(device), Memory(None, lambda: 0)), Tape(persistent=True)
    with context.backend.quiet():
        results = [
            context.constant(np.asarray(operand)) if is_array(operand) else Literal(operand) for operand in case.inputs
        ]
        arrays = [item for item in results if item.uid is not None]
        context.context.open(tape)
        context.context.watch(tape, arrays)
        result = case.applied(context, results)
        outcome = [context.backend.get(result.array)]
        if result.spec.differentiable and op.registered:
            ct = context.constant(random_like(outcome[0], seed=0))
            outcome += [
                numbers(context, item)
                for item in gradient(context, GradientQuery(tape, [result], arrays, output_gradients=[ct]))
            ]
            cts = context.constant(np.stack([random_like(outcome[0], seed=k) for k in range(2)]))
            outcome += [
                numbers(context, derivative)
                for derivative in vjps(context, GradientQuery(tape, [result], arrays, output_gradients=[cts]))
            ]
    return outcome


#: Decompositions: the sign of a vector and the order of complex eigenvalues are the library's. Their gradients obey the
#: laws, and are not the CPU's.
OF_A_LIBRARY = {
    "eig": lambda joined: np.sort(np.abs(joined)),
    "eigh": np.abs,
    "eigvals": np.sort_complex,
    "svd": np.abs,
}


def compare(name, samples, dtype, on_cpu):
    """Compares a GPU's answers for each sample with those of the CPU."""
    op, invariant = CATALOGUE[name], OF_A_LIBRARY.get(name)
    for sample, of_sample in zip(samples, on_cpu, strict=True):
        pairs = zip(answers("gpu", op, Case(op, sample, DTYPES[dtype])), of_sample, strict=True)
        if invariant is not None:
            pairs = [tuple(invariant(each) for each in pair) for pair in [*pairs][:1]]
        for answer, expected in pairs:
            assert (answer is None) == (expected is None)
            if answer is not None:
                assert (answer.dtype, answer.shape) == (expected.dtype, expected.shape)
                rtol = 2e-3 if dtype == "float16" else 1e-5
                np.testing.assert_allclose(answer, expected, rtol=rtol, atol=rtol / 10)


#: What the GPU's answers are compared in.
COMPARED = ("float64", "float32", "float16", "complex64", "int64", "int8", "bool")


def compare_in_every_dtype(name, *, in_turn):
    """In each dtype that the op takes on the CPU; an op that CuPy lacks is refused by name.

    Args:
        name: The op's.
        in_turn: Whether only the first sample is compared in every dtype, and each further one in float32 and one more.
    """
    op = CATALOGUE[name]
    missing = op.on_gpu.missing
    for number, dtype in enumerate(COMPARED):
        samples = [
            sample
            for turn, sample in enumerate(op.samples())
            if not in_turn or not turn or dtype == "float32" or turn % len(COMPARED) == number
        ]
        try:
            on_cpu = [answers("cpu", op, Case(op, sample, DTYPES[dtype])) for sample in samples]
        except (InvalidArgumentError, NoGradientRegisteredError):
            continue
        if missing:
            with pytest.raises(UnimplementedError, match=f"op '{name}' is not offered on a GPU: {missing}. Instead: "):
                compare(name, samples, dtype, on_cpu)
        else:
            compare(name, samples, dtype, on_cpu)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_on_the_gpu_is_the_op_on_the_cpu(name):
    compare_in_every_dtype(name, in_turn=False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if not op.on_gpu.missing))
def test_op_obeys_the_laws_on_the_gpu(name):
    with computing_on("gpu"):
        for law in LAWS:
            if law != "batch" or name not in ("eigh", "svd"):  # a batch of them is another function of cuSOLVER's
                check_op(CATALOGUE[name], law=law)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_an_op_on_the_substitute_is_the_op_on_the_cpu(name, monkeypatch):
    """The substitute refuses what CuPy does not offer."""
    substitute.installed(monkeypatch)
    compare_in_every_dtype(name, in_turn=True)


@pytest.mark.more
@pytest.mark.timeout(600)
def test_every_sample_on_the_substitute_gives_in_every_dtype_what_it_gives_on_the_cpu(monkeypatch):
    substitute.installed(monkeypatch)
    for name in CATALOGUE:
        compare_in_every_dtype(name, in_turn=False)


#: The laws that find what a GPU does otherwise; `make laws ARGS='--device substitute'` checks the others there. Of the
#: gradients for several cotangents at once, which the law `rows` is about, the comparison with the CPU has some too.
LAWS_OF_DEVICES = ("jvp", "batch", "numbers", "layouts", "empty", "views")


@pytest.mark.laws
@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if not op.on_gpu.missing))
def test_op_obeys_the_laws_on_the_substitute(name, monkeypatch):
    substitute.installed(monkeypatch)
    with computing_on("gpu"):
        for law in LAWS_OF_DEVICES:
            check_op(CATALOGUE[name], law=law, in_turn=True)


@pytest.mark.more
@pytest.mark.timeout(600)
@pytest.mark.parametrize("law", [law for law in IN_TURN if law in ("rows", *LAWS_OF_DEVICES)])
def test_every_sample_obeys_the_law_in_every_way_on_the_substitute(law, monkeypatch):
    substitute.installed(monkeypatch)
    with computing_on("gpu"):
        for op in CATALOGUE.values():
            if not op.on_gpu.missing:
                check_op(op, law=law)


@pytest.mark.parametrize("name", sorted(name for name, op in CATALOGUE.items() if op.expand is None))
def test_an_op_says_what_it_needs_of_the_host(name, monkeypatch):
    """What its forward waits for and copies, on a device that knows no bounds of integers."""
    state, op = substitute.installed(monkeypatch), CATALOGUE[name]
    for module in (checks, scatter):
        monkeypatch.setattr(module, "known_bounds", lambda array: None)
    seen = set()
    with computing_on("gpu"):
        for sample in () if op.on_gpu.missing else op.samples():
            case = Case(op, sample)
            executor = case.executor()
            with case.backend.quiet():
                operands = [as_operand(executor, value) for value in case.inputs]
                state.transfers.clear()
                executor.apply(op, operands, case.attrs)
            seen |= {"waits" if (way, what) == ("down", "item") else WAYS[way] for way, what in state.transfers}
    declared = {way for way in WAYS.values() if getattr(op.on_gpu, way)}
    assert seen == declared - UNSEEN.get(name, set())


WAYS = {"up": "up", "down": "down", "wait": "waits"}
#: What samples need not show.
UNSEEN = {"tensor_scatter_nd_update": {"up"}}  # only if indices are equal


@pytest.mark.parametrize(("name", "inputs"), [("cast", (1.0,)), ("fill", (1.0,)), ("eye", ())])
def test_an_op_makes_no_array_that_a_gpu_does_not_have(name, inputs, monkeypatch):
    substitute.installed(monkeypatch)
    attrs = {"cast": {}, "fill": {"shape": [2]}, "eye": {"num_rows": 2}}[name] | {"dtype": "bfloat16"}
    batch = Batch((Call(name, tuple(map(Literal, inputs)), ("y",), attrs),))
    assert Session("cpu").execute(batch).failure is None
    failure = Session("gpu").execute(batch).failure
    assert failure.code == "unimplemented"
    assert failure.message.endswith("bfloat16 is not available on device gpu; use float16 or float32")


def test_a_view_of_a_small_array_is_no_copy(monkeypatch):
    """The pool gives 512 bytes at least: a copy of four of them saves nothing."""
    substitute.installed(monkeypatch)
    context = Executor(backend("gpu"), Memory(None, lambda: 0))
    row = context.constant(np.arange(64, dtype=np.float32))
    op = CATALOGUE["strided_slice"]
    part = context.apply(op, [row], op.attrs({"index": ((3, 4, 1),)}))
    assert context.backend.base(part.array) == context.backend.base(row.array)


def test_the_memory_of_an_array_counts_as_the_pool_gives_it(monkeypatch):
    substitute.installed(monkeypatch)
    session = Session("gpu")
    session.execute(Batch((Constant("x", np.ones(2, np.float32)), Constant("y", np.ones(200, np.float32)))))
    assert session.bytes_in_use() == 512 + 1024


def test_the_memory_pool_of_a_session_has_its_limit(monkeypatch):
    substitute.installed(monkeypatch)
    pools = [Session("gpu", memory_limit=limit)._state.backend._pool for limit in (1 << 20, 1 << 21)]
    assert [pool.limit for pool in pools] == [1 << 20, 1 << 21]


#: Functions as plans: elementwise chains, reductions of each kind, matrix products, cuSOLVER, arrays in other layouts.
PROGRAMS = {
    "chain": (
        Call("mul", ("x", Literal(1.5)), ("a",)),
        Call("tanh", ("a",), ("b",)),
        Call("add", ("b", "x"), ("c",)),
        Call("exp", ("c",), ("d",)),
        Call("reduce_sum", ("d",), ("total",), {"axis": [0]}),
        Call("div", ("d", "total"), ("e",)),
        Call("reduce_max", ("e",), ("most",), {"axis": [1]}),
        Call("reduce_mean", ("e",), ("y",)),
    ),
    "layers": (
        Call("matmul", ("x", "x"), ("a",), {"transpose_b": True}),
        Call("softmax", ("a",), ("b",)),
        Call("matmul", ("b", "x"), ("c",)),
        Call("relu", ("c",), ("d",)),
        Call("mul", ("d", "d"), ("e",)),
        Call("reduce_sum", ("e",), ("y",)),
    ),
    "factorisation": (
        Call("matmul", ("x", "x"), ("a",), {"transpose_b": True}),
        Call("diag_part", ("a",), ("diagonal",)),
        Call("diag", ("diagonal",), ("b",)),
        Call("add", ("a", "b"), ("c",)),
        Call("cholesky", ("c",), ("d",)),
        Call("log", ("diagonal",), ("e",)),
        Call("reduce_sum", ("d",), ("f",)),
        Call("reduce_sum", ("e",), ("g",)),
        Call("add", ("f", "g"), ("y",)),
    ),
}


def called_as_plan(device, program, dtype, monkeypatch):
    """The results of five calls: step by step, then twice to warm up, and from then on as graphs."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    ran = []
    compute = DevicePlan.compute
    monkeypatch.setattr(DevicePlan, "compute", lambda plan, *args: ran.append(plan) or compute(plan, *args))
    context = Executor(backend(device), Memory(None, lambda: 0))
    function = compile_function(("x",), PROGRAMS[program], ("y", PROGRAMS[program][-2].outputs[0]))
    answers = []
    for seed in (0, 0, 0, 1, 0):
        x = np.random.default_rng(seed).standard_normal((24, 40)).astype(dtype)
        with context.backend.quiet():
            results = function.run(context, [context.constant(x)])
            answers.append([context.backend.get(result.array) for result in results])
    assert len(ran) == 3
    return ran, answers


def compare_plan(program, dtype, monkeypatch):
    """Compares a plan with the interpreter, and graphs with kernels called one by one."""
    ran, answers = called_as_plan("gpu", program, dtype, monkeypatch)
    rtol = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[dtype] * 8
    for answer in (answers[1], answers[2], answers[4]):
        for result, expected in zip(answer, answers[0], strict=True):
            np.testing.assert_allclose(result, expected, rtol=rtol)  # the last bits of a sum of floats may differ
    for again, first in zip(answers[4], answers[2], strict=True):
        assert again.tobytes() == first.tobytes()
    (machine,) = ran[0]._machines
    assert all(segment.graph is not None for segment in machine.segments if segment.is_capturable)


def compare_elementwise(dtype, monkeypatch):
    """Compares the bytes of a plan without sums with the interpreter's."""
    monkeypatch.setitem(PROGRAMS, "chain", (*PROGRAMS["chain"][:4], Call("add", ("d", "a"), ("y",))))
    _, answers = called_as_plan("gpu", "chain", dtype, monkeypatch)
    for answer in (answers[1], answers[2], answers[4]):
        assert [result.tobytes() for result in answer] == [result.tobytes() for result in answers[0]]


CASES = [*itertools.product(("chain", "layers"), ("float16", "float32", "float64")), ("factorisation", "float64")]


@pytest.mark.gpu
@pytest.mark.parametrize(("program", "dtype"), CASES)
def test_a_plan_on_the_gpu_gives_what_the_interpreter_gives(program, dtype, monkeypatch):
    compare_plan(program, dtype, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_elementwise_plan_on_the_gpu_gives_the_interpreters_bytes(dtype, monkeypatch):
    compare_elementwise(dtype, monkeypatch)


@pytest.mark.parametrize(("program", "dtype"), CASES)
def test_the_comparison_of_plans_runs_on_the_substitute(program, dtype, monkeypatch):
    substitute.installed(monkeypatch)
    compare_plan(program, dtype, monkeypatch)


def test_the_comparison_of_elementwise_plans_runs_on_the_substitute(monkeypatch):
    substitute.installed(monkeypatch)
    compare_elementwise("float64", monkeypatch)


def descend(early, steps):
    """Takes steps of gradient descent in one session; returns the bytes in use after an early one and after the last.

    By the session's account, and by the memory pool's, which the substitute does not have.
    """
    session, used = Session("gpu"), []
    random = np.random.default_rng(0)
    x, y = random.normal(size=(64, 16)).astype(np.float32), np.ones((64, 1), np.float32)
    variables = MakeVariable("w", np.zeros((16, 1), np.float32)), MakeVariable("b", np.zeros(1, np.float32))
    assert session.execute(Batch(variables)).failure is None
    step = (
        *(Constant("x", x), Constant("y", y), TapeOpen("t")),
        *(Call("matmul", ("x", "w"), ("xw",)), Call("add", ("xw", "b"), ("p",))),
        *(Call("squared_difference", ("p", "y"), ("d",)), Call("reduce_mean", ("d",), ("loss",))),
        Gradient("t", ("loss",), ("w", "b"), ("gw", "gb")),
        *(Call("mul", (gradient, Literal(0.1)), (by,)) for gradient, by in (("gw", "sw"), ("gb", "sb"))),
        *(Assign("w", "sw", "sub"), Assign("b", "sb", "sub"), Fetch("loss")),
    )
    ids = ("x", "y", "t", "xw", "p", "d", "loss", "gw", "gb", "sw", "sb")
    for number in range(1, steps + 1):
        answer = session.execute(Batch(step, ids, replace=True))
        assert answer.failure is None, answer.failure
        if number in (early, steps):
            assert np.isfinite(answer.results[-1].array)
            pool = session._state.backend._pool
            used.append((session.bytes_in_use(), pool.used_bytes() if hasattr(pool, "used_bytes") else None))
    return used


@pytest.mark.gpu
def test_memory_is_the_same_after_ten_thousand_steps_on_the_gpu():
    early, late = descend(2_000, 10_000)  # by then the log of ops is full, whose bytes count too
    assert late == early


def test_memory_is_the_same_after_many_steps_on_the_substitute(monkeypatch):
    substitute.installed(monkeypatch)
    early, late = descend(10, 200)
    assert late == early
