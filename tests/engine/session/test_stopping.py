"""Where a batch looks whether its caller has cancelled it, or its time is over: inside every long command."""

from typing import Any

import numpy as np
import pytest
from driving import run, value

from teletape_engine import commands
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE, Work, WorkKind
from teletape_engine.commands import (
    Batch,
    Call,
    Command,
    Constant,
    DefineFunction,
    Fetch,
    Gradient,
    OnFailure,
    TapeOpen,
    TapeWatch,
)
from teletape_engine.errors import DeadlineExceededError
from teletape_engine.plans.policy import Policy
from teletape_engine.recording.progress import CANCEL_STEPS
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session
from teletape_engine.spec import Spec

NODES = 3000
X = np.array([0.5, 1.0])


@pytest.fixture
def session() -> Session:
    """A session with a persistent tape of 3,000 nodes, from x to y; y2 is nearer, u is a function of 1,000 steps."""
    session = Session()
    chain = [
        Call("sin" if i % 2 else "mul", (f"v{i}", Literal(1.1))[: 2 - i % 2], (f"v{i + 1}",)) for i in range(NODES)
    ]
    steps = tuple(Call("sin", (f"s{i}",), (f"s{i + 1}",)) for i in range(1000))
    run(
        session,
        Constant("v0", X),
        Constant("rows", np.ones((3, 2))),
        Constant("ones", np.ones((1, 2))),
        DefineFunction("long", ("s0",), steps, ("s1000",)),
        TapeOpen("t", persistent=True, replayable=True),
        TapeWatch("t", ("v0",)),
        *chain,
        commands.TapePause("t"),
    )
    return session


def looks(session: Session, command: Command, *, at_most: int | None = None) -> tuple[int, Any]:
    """How often one command looks for a cancel, and its failure; it is cancelled after `at_most` looks."""
    count = 0

    def cancelled() -> bool:
        nonlocal count
        count += 1
        return at_most is not None and count > at_most

    answer = session.execute(Batch((command,)), cancelled=cancelled)
    return count, answer.failure


Y, X0 = (f"v{NODES}",), ("v0",)
LONG = {
    "gradient": (Gradient("t", Y, X0, ("g",)), NODES),
    "jacobian": (commands.Jacobian("t", Y, X0, ("g",)), NODES),
    "vjps": (commands.Vjps("t", Y, X0, ("g",), output_gradients=("ones",)), NODES),
    "hessian": (commands.Hessian("t", Y, X0, ("g",)), 3 * NODES),
    "hvp": (commands.Hvp("t", Y, X0, ("v0",), ("g",)), 3 * NODES),
    "explanation": (commands.Explain("t", Y, X0), NODES),
    "check of a tape": (commands.TapeCheckGradients("t", Y, X0), 7 * NODES),
    "check of a function": (commands.CheckGradients("long", X0), 3 * 1000),  # seven times; a plan in C looks less often
    "function over rows": (commands.Scan("long", ("rows",), ("g",), vectorize=True), 1000),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_command_looks_for_a_cancel_every_few_hundred_steps(session: Session, name: str) -> None:
    command, steps = LONG[name]
    count, failure = looks(session, command)
    assert failure is None
    assert count > steps // CANCEL_STEPS


@pytest.mark.parametrize("name", LONG)
def test_a_long_command_stops_at_the_look_that_finds_a_cancel(session: Session, name: str) -> None:
    command, _ = LONG[name]
    count, failure = looks(session, command, at_most=3)
    assert (failure.code, failure.index) == ("cancelled", 0)
    assert count <= 6  # a check of gradients tries float64, and then what it is given
    assert looks(session, Gradient("t", Y, X0, ("again",)))[1] is None  # the tape is as it was
    assert np.isfinite(value(session, "again")).all()


@pytest.mark.parametrize("name", LONG)
def test_the_time_limit_is_seen_where_a_cancel_is(session: Session, name: str) -> None:
    command, _ = LONG[name]
    question = iter(range(3))

    def cancelled() -> bool:
        if next(question, None) is None:
            raise DeadlineExceededError("too late")
        return False

    failure = session.execute(Batch((command,)), cancelled=cancelled).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("deadline_exceeded", "too late")


def test_a_tape_whose_gradient_was_cancelled_is_used_up() -> None:
    session = Session()
    chain = [Call("neg", (f"v{i}",), (f"v{i + 1}",)) for i in range(NODES)]
    run(session, Constant("v0", X), TapeOpen("t"), TapeWatch("t", ("v0",)), *chain)
    bytes_before = session.bytes_in_use()
    assert looks(session, Gradient("t", Y, X0, ("g",)), at_most=4)[1].code == "cancelled"
    assert session.bytes_in_use() <= bytes_before
    assert looks(session, Gradient("t", Y, X0, ("g",)))[1].code == "tape_consumed"


# ------------------------------------------------------------------------------------------------------ work and time
class Budget:
    """A host's budget of some seconds on a machine that does one operation in a nanosecond."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.works: list[Work] = []

    def left(self) -> float:
        return self.limit / 2

    def seconds(self, work: Work) -> float:
        self.works.append(work)
        return work.amount / 1e9


def spec(dtype: str, *shape: int) -> Spec:
    return Spec.of(shape, np.dtype(dtype))


#: Calls that take long, with their multiply-adds.
HEAVY: list[tuple[str, tuple[Spec, ...], dict[str, Any], WorkKind, int]] = [
    ("matmul", (spec("float32", 1000, 2000), spec("float32", 2000, 3000)), {}, WorkKind.PRODUCTS, 6 * 10**9),
    ("matmul", (spec("int32", 1700, 1700), spec("int32", 1700, 1700)), {}, WorkKind.LOOPS, 1700**3),
    (
        "matmul",
        (spec("float64", 5, 400, 100), spec("float64", 300, 400)),
        {"transpose_a": True, "transpose_b": True},
        WorkKind.PRODUCTS,
        5 * 100 * 400 * 300,
    ),
    (
        "conv2d",
        (spec("float32", 8, 34, 34, 16), spec("float32", 3, 3, 16, 32)),
        {},
        WorkKind.PRODUCTS,
        8 * 32 * 32 * 32 * 3 * 3 * 16,
    ),
    (
        "conv2d_backprop_filter",
        (spec("float32", 8, 34, 34, 16), spec("float32", 8, 32, 32, 32)),
        {"shape": (3, 3, 16, 32)},
        WorkKind.PRODUCTS,
        8 * 32 * 32 * 32 * 3 * 3 * 16,
    ),
    (
        "conv2d_backprop_input",
        (spec("float32", 8, 32, 32, 32), spec("float32", 3, 3, 16, 32)),
        {"shape": (8, 34, 34, 16)},
        WorkKind.PRODUCTS,
        8 * 32 * 32 * 32 * 3 * 3 * 16,
    ),
    ("inv", (spec("float64", 2, 600, 600),), {}, WorkKind.PRODUCTS, 2 * 600**3),
    ("det", (spec("float64", 900, 900),), {}, WorkKind.PRODUCTS, 900**3 // 3),
    ("log_abs_det", (spec("float64", 900, 900),), {}, WorkKind.PRODUCTS, 900**3 // 3),
    ("det_sign", (spec("float64", 900, 900),), {}, WorkKind.PRODUCTS, 900**3 // 3),
    ("solve", (spec("float64", 900, 900), spec("float64", 900, 9)), {}, WorkKind.PRODUCTS, 900**3 // 3 + 900 * 900 * 9),
    ("cholesky", (spec("float64", 900, 900),), {}, WorkKind.PRODUCTS, 900**3 // 6),
    ("triangular_solve", (spec("float64", 900, 900),) * 2, {}, WorkKind.PRODUCTS, 900**3 // 2),
    ("tanh", (spec("float16", 10**7),), {}, WorkKind.ELEMENTS, 10**7),
    ("fill", (spec("float32"),), {"shape": (10**7,)}, WorkKind.ELEMENTS, 10**7),
]


@pytest.mark.parametrize(("name", "specs", "attrs", "kernel", "amount"), HEAVY)
def test_the_work_of_a_call_is_known_before_it_runs(
    name: str, specs: tuple[Spec, ...], attrs: dict[str, Any], kernel: WorkKind, amount: int
) -> None:
    op = CATALOGUE[name]
    assert bind(op, specs, op.attrs(attrs)).work == Work(kernel, amount)


def test_small_calls_views_and_composites_have_no_estimate() -> None:
    for name, specs, attrs in [
        ("matmul", (spec("float32", 64, 64),) * 2, {}),
        ("tanh", (spec("float32", 1000),), {}),
        ("reshape", (spec("float32", 10**7),), {"shape": (10, 10**6)}),
        ("einsum", (spec("float32", 2000, 2000),) * 2, {"equation": "ij,jk->ik"}),
    ]:
        op = CATALOGUE[name]
        assert bind(op, specs, op.attrs(attrs)).work is None


A = np.ones((120, 120), np.int32)  # a product of two takes 1,728,000 multiply-adds: 1.7 ms of the budget


def within(session: Session, seconds: float, *todo: Command) -> tuple[Any, Budget]:
    """The failure of commands that have this number of seconds, and the budget."""
    budget = Budget(2 * seconds)
    return session.execute(Batch(todo, on_failure=OnFailure.FREE), budget=budget).failure, budget


def test_an_op_that_cannot_end_in_time_is_refused_with_the_numbers_before_it_begins() -> None:
    session = Session()
    run(session, Constant("a", A))
    product = Call("matmul", ("a", "a"), ("b",))
    failure, budget = within(session, 0.001, product)
    assert budget.works == [Work(WorkKind.LOOPS, 120**3)]
    assert (failure.code, failure.op) == ("deadline_exceeded", "matmul")
    assert failure.details == {"seconds": 120**3 / 1e9, "left": 0.001, "limit": 0.002}
    for words in ("int32[120, 120]", "0.0017 s", "0.001 s are left", "0.002 s that a request has", "split it"):
        assert words in failure.message
    failure, budget = within(session, 0.01, Call("matmul", ("a", "a"), ("c",)))
    assert failure is None
    assert run(session, Fetch("c"))[0].array.tolist() == (A @ A).tolist()


def test_an_op_inside_another_a_loop_or_a_function_is_refused_too() -> None:
    session = Session()
    steps = (Call("einsum", ("x", "x"), ("y",), {"equation": "ij,jk->ik"}),)
    run(session, Constant("a", A), DefineFunction("square", ("x",), steps, ("y",)))
    for command in (
        Call("einsum", ("a", "a"), ("b",), {"equation": "ij,jk->ik"}),
        commands.CallFunction("square", ("a",), ("b",)),
        commands.Scan("square", ("a",), ("b",), carried=1, length=2),
    ):
        failure, _ = within(session, 0.001, command)
        assert failure.code == "deadline_exceeded"
        assert "op 'matmul' on int32[120, 120], int32[120, 120]" in failure.message


def test_a_function_that_runs_as_a_plan_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy.of("python")
    for module in ("functions.function", "plans.cache"):
        monkeypatch.setattr(f"teletape_engine.{module}.POLICY", policy)
    session = Session()
    steps = (Call("matmul", ("x", "x"), ("y",)),)
    run(session, Constant("a", A), DefineFunction("square", ("x",), steps, ("y",)))
    for number in range(4):
        run(session, commands.CallFunction("square", ("a",), (f"b{number}",)))
    failure, budget = within(session, 0.001, commands.CallFunction("square", ("a",), ("b",)))
    assert failure.code == "deadline_exceeded"
    assert len(budget.works) == 2  # by the plan, and by the interpreter that then raises the error


def test_a_rule_counts_the_work_of_its_op_for_each_input_and_row() -> None:
    session = Session()
    square = np.ones((400, 400), np.float32)
    run(
        session,
        Constant("a", square),
        Constant("v", square[:1]),
        TapeOpen("t", persistent=True),
        TapeWatch("t", ("a",)),
        Call("matmul", ("a", "a"), ("b",)),
        Call("matmul", ("v", "b"), ("c",)),
        Call("reshape", ("c",), ("parts",), {"shape": (8, 50)}),
        Call("reduce_sum", ("parts",), ("sums",), {"axis": 1}),
        commands.TapePause("t"),
    )
    once = 400**3 / 1e9
    for seconds, code in ((1.9 * once, "deadline_exceeded"), (2.1 * once, None)):
        failure, budget = within(session, seconds, Gradient("t", ("sums",), ("a",), ("g",)))
        assert (failure and failure.code) == code
        assert budget.works == [Work(WorkKind.PRODUCTS, 400**3)]
    for rows, seconds, code in ((4, 7.9 * once, "deadline_exceeded"), (2, 4.1 * once, None)):
        command = commands.Jacobian("t", ("sums",), ("a",), ("j",), chunk_size=rows)
        failure, _ = within(session, seconds, command)
        assert (failure and failure.code) == code


def test_a_long_op_looks_for_a_cancel_before_it_begins() -> None:
    session = Session()
    steps = tuple(Call("matmul", ("x", "x"), (f"y{i}",)) for i in range(5))
    run(session, Constant("a", A), DefineFunction("f", ("x",), steps, ("y4",)))
    count, failure = looks(session, commands.CallFunction("f", ("a",), ("b",)))
    assert failure is None
    assert count >= 5 + 2  # for each op, the function's steps and the command


# -------------------------------------------------------------------------------------------------------------- blocks
BLOCKS: list[tuple[str, list[tuple[int, ...]], str, dict[str, Any]]] = [
    ("matmul", [(40, 30), (30, 20)], "int32", {}),
    ("matmul", [(30, 40), (20, 30)], "int64", {"transpose_a": True, "transpose_b": True}),
    ("matmul", [(20, 4, 30), (20, 30, 5)], "float32", {}),
    ("matmul", [(20, 4, 30), (30, 5)], "float64", {}),
    ("matmul", [(3, 40, 30), (3, 30, 5)], "complex64", {"adjoint_a": False}),
    ("matmul", [(1, 4, 30), (20, 30, 5)], "float16", {}),
    ("conv2d", [(6, 9, 9, 4), (3, 3, 4, 8)], "float32", {"padding": "SAME"}),
]


@pytest.mark.parametrize(("name", "shapes", "dtype", "attrs"), BLOCKS)
def test_a_long_op_in_blocks_has_the_same_result_and_can_be_cancelled_between_them(
    monkeypatch: pytest.MonkeyPatch, name: str, shapes: list[tuple[int, ...]], dtype: str, attrs: dict[str, Any]
) -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, shape).astype(dtype) for shape in shapes]
    session = Session()
    run(session, *[Constant(f"x{i}", array) for i, array in enumerate(arrays)])
    inputs = tuple(f"x{i}" for i in range(len(arrays)))
    run(session, Call(name, inputs, ("whole",), attrs))
    whole = value(session, "whole")

    for constant in ("_HEAVY", "_BLOCK"):
        monkeypatch.setattr(f"teletape_engine.catalogue.binding.{constant}", dict.fromkeys(WorkKind, 500))
    monkeypatch.setattr("teletape_engine.catalogue.binding._FEWEST", 1)
    CATALOGUE[name].bound.clear()
    try:
        count, failure = looks(session, Call(name, inputs, ("parts",), attrs))
        assert failure is None
        assert count > 5
        parts = value(session, "parts")
        assert (parts.dtype, parts.shape) == (whole.dtype, whole.shape)
        np.testing.assert_allclose(parts, whole, rtol=1e-5)
        _, failure = looks(session, Call(name, inputs, ("stopped",), attrs), at_most=4)
        assert failure.code == "cancelled"
    finally:
        CATALOGUE[name].bound.clear()


def test_only_long_calls_run_in_blocks() -> None:
    matmul = CATALOGUE["matmul"]
    for n, is_cut in ((64, False), (2000, False), (5000, True)):
        bound = bind(matmul, (spec("float32", n, n),) * 2, matmul.attrs({}))
        assert (bound.blocks is not None) is is_cut
    assert bound.blocks is not None
    assert bound.blocks[1] >= 1024
