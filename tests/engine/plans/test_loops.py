"""Loops as plans: what the library repeats, bit for bit what the interpreter does, and how a loop ends early."""

from dataclasses import asdict

import numpy as np
import pytest
from driving import executor

from teletape_engine.arrays import backend
from teletape_engine.commands import Assign, Call, Scan, While
from teletape_engine.errors import CancelledError, InternalError, ResourceExhaustedError
from teletape_engine.functions.compile import compile_function
from teletape_engine.functions.function import RUNNERS
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.plans.run.loops import loop as loop_module
from teletape_engine.plans.run.loops.loop import Loop
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor
from teletape_engine.recording.provenance import PlannedLoop, expanded
from teletape_engine.recording.values import Literal, Variable

pytestmark = pytest.mark.skipif(loaded.LIBRARY_LOADED is None, reason="librows.so.1 is not built: no C compiler")

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
BELOW = compile_function(("i", "x", "y", "n"), (Call("less", ("i", "n"), ("more",)),), ("more",))
SWAPS = compile_function(
    ("i", "x", "y", "n"),
    (
        Call("add", ("i", Literal(1)), ("j",)),
        Call("mul", ("x", Literal(0.9)), ("a",)),
        Call("reduce_sum", ("a",), ("s",), {"axis": (1,), "keepdims": True}),
        Call("tanh", ("s",), ("t",)),
        Call("add", ("y", "t"), ("b",)),
    ),
    ("j", "b", "x"),
)
TRAIN = compile_function(
    ("total", "e", "v"),
    (
        Call("mul", ("e", "v"), ("p",)),
        Call("sub", ("p", Literal(0.5)), ("d",)),
        Call("mul", ("d", Literal(0.1)), ("g",)),
        Assign("v", "g", "sub"),
        Call("square", ("d",), ("q",)),
        Call("add", ("total", "q"), ("next",)),
    ),
    ("next", "q", "e"),
)


@pytest.fixture
def policy(monkeypatch):
    """Plans from the second call on, in C."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


@pytest.fixture
def ran(monkeypatch):
    """What each run of a loop's plan has come to."""
    turned = []
    run = Loop.run

    def counted(*args, **kwargs):
        turned.append(run(*args, **kwargs))
        return turned[-1]

    monkeypatch.setattr(Loop, "run", counted)
    return turned


def while_(context, functions, inputs, captured, outputs, limit=None):
    command = While("c", "b", (), outputs, captured=captured, maximum_iterations=limit)
    return RUNNERS[While](context, command, functions, inputs)


def scan(context, body, inputs, carried, captured=0, length=None, reverse=False):
    command = Scan("b", (), (), carried=carried, captured=captured, length=length, reverse=reverse)
    return RUNNERS[Scan](context, command, (body,), inputs)


def bytes_of(values):
    return [(np.asarray(value.array).tobytes(), type(value.array), value.spec, value.array.strides) for value in values]


def both(policy, compute):
    """The answers of three runs, and of one step by step."""
    answers = [compute() for _ in range(3)]
    policy.enabled = False
    expected = compute()
    policy.enabled = True
    assert all(answer == expected for answer in answers)
    return expected


# ------------------------------------------------------------------------------------------------------------- results
@pytest.mark.parametrize("limit", [None, 40])
def test_a_while_loop_whose_values_change_places(policy, ran, limit):
    def compute():
        context = executor()
        inputs = [context.constant(array) for array in (np.array(0), X, X * 2, np.array(100))]
        return bytes_of(while_(context, (BELOW, SWAPS), inputs, 1, ("i", "x", "y", "count"), limit))

    both(policy, compute)
    assert len(ran) == 3
    assert all(turned.iterations >= (37 if limit else 97) for turned in ran)
    assert all(turned.ended is (limit is None) for turned in ran)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(50,), (50, 7), (50, 30, 40)])
def test_a_scan_that_assigns_to_a_variable_and_stacks(policy, ran, reverse, shape):
    elements = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    start = np.zeros(shape[1:], np.float32)

    def compute():
        context = executor()
        variable = Variable(context.constant(start + 1), trainable=True, name="v")
        inputs = [context.constant(start), context.constant(elements), variable]
        results = scan(context, TRAIN, inputs, 1, captured=1, reverse=reverse)
        return bytes_of([*results, variable.value]), variable.version

    both(policy, compute)
    assert len(ran) == 3
    assert all(turned.iterations >= 47 for turned in ran)


def test_captured_arrays_and_elements_that_are_columns(policy, ran):
    body = compile_function(
        ("c", "e", "w", "n"),
        (Call("matmul", ("e", "w"), ("p",)), Call("tanh", ("p",), ("t",)), Call("mul", ("t", "n"), ("q",))),
        ("q",),
    )
    random = np.random.default_rng(0)
    elements, w = random.standard_normal((30, 4, 50)), random.standard_normal((50, 50))
    columns = np.moveaxis(np.ascontiguousarray(np.moveaxis(elements, 0, 2)), 2, 0)  # no element lies in one piece

    def compute(array):
        def answer():
            context = executor()
            inputs = [context.constant(np.zeros((4, 50))), context.constant(array), context.constant(w), Literal(0.5)]
            return bytes_of(scan(context, body, inputs, 1, captured=2))

        return answer

    both(policy, compute(elements))
    count = len(ran)
    both(policy, compute(columns))
    assert count == len(ran) == 3


def test_a_layout_that_changes_from_one_iteration_to_the_next_is_for_the_interpreter(policy, ran):
    body = compile_function(
        ("x",), (Call("mul", ("x", Literal(1.5)), ("a",)), Call("transpose", ("a",), ("t",), {"perm": (1, 0)})), ("t",)
    )

    def compute():
        context = executor()
        return bytes_of(scan(context, body, [context.constant(np.arange(9.0).reshape(3, 3))], 1, length=20))

    both(policy, compute)
    assert not ran


def test_an_op_in_python_is_for_the_interpreter(policy, ran):
    body = compile_function(("x",), (Call("cumsum", ("x",), ("c",), {"axis": 0}), Call("tanh", ("c",), ("t",))), ("t",))

    def compute():
        context = executor()
        return bytes_of(scan(context, body, [context.constant(X)], 1, length=20))

    both(policy, compute)
    assert not ran


def test_a_plan_is_compared_with_the_interpreter_where_that_is_wanted(policy, ran, monkeypatch):
    policy.first, policy.compared = 1, True

    def compute():
        context = executor()
        inputs = [context.constant(array) for array in (np.array(0), X, X * 2, np.array(100))]
        return bytes_of(while_(context, (BELOW, SWAPS), inputs, 1, ("i", "x", "y")))

    both(policy, compute)
    assert ran
    SWAPS.plans.forget()
    monkeypatch.setattr(Loop, "differs", lambda *args: "value 0")
    with pytest.raises(InternalError, match="an iteration of a loop differs from the interpreter's: value 0"):
        compute()
    SWAPS.plans.forget()


# ----------------------------------------------------------------------------------------------------------------- ends
def endless(monitor):
    """A loop that adds to a variable without end: its parts."""
    context = Executor(backend("cpu"), Memory(None, lambda: 0), monitor)
    below = compile_function(("x", "v"), (Call("less", ("x", Literal(0.0)), ("more",)),), ("more",))
    body = compile_function(
        ("x", "v"), (Assign("v", Literal(1.0), "add"), Call("mul", ("x", Literal(1.0)), ("y",))), ("y",)
    )
    variable = Variable(context.constant(np.array(0.0)), trainable=False, name="v")
    return lambda: while_(context, (below, body), [context.constant(np.array(-1.0)), variable], 1, ("x",)), variable


def test_iterations_are_limited_to_one(policy, ran):
    def compute():
        monitor = Monitor(most_iterations=1000)
        loop, variable = endless(monitor)
        with pytest.raises(ResourceExhaustedError) as refused:
            loop()
        return refused.value.message, refused.value.details, variable.value.array.tobytes(), variable.version

    assert both(policy, compute)[3] == 1000
    assert sum(turned.iterations for turned in ran) == 3 * 998


def test_a_cancelled_loop_leaves_what_whole_iterations_have_assigned(policy):
    monitor, seen = Monitor(), []
    loop, variable = endless(monitor)
    monitor.begin(lambda: len(seen) > 5, lambda *far: seen.append(far), 1)
    with pytest.raises(CancelledError):
        loop()
    assert variable.version == variable.value.array > 100
    assert [far[2] for far in seen] == sorted(far[2] for far in seen)


@pytest.mark.parametrize("at", range(3))
def test_without_memory_for_one_variable_no_variable_is_assigned(policy, monkeypatch, at):
    """The values that a run leaves are i, a and b, in this order; that of one of them cannot be made."""
    steps = []
    for name in "ab":
        steps += [
            Call("mul", (name, Literal(0.5)), (f"h{name}",)),
            Call("add", (f"h{name}", Literal(1.0)), (f"n{name}",)),
        ]
        steps.append(Assign(name, f"n{name}", "set"))
    below = compile_function(("i", "a", "b"), (Call("less", ("i", Literal(400)), ("more",)),), ("more",))
    body = compile_function(("i", "a", "b"), (Call("add", ("i", Literal(1)), ("j",)), *steps), ("j",))
    values, calls = loop_module.Value, []

    def value(*fields):
        calls.append(fields)
        if len(calls) == at + 1:
            raise MemoryError("no memory for a copy")
        return values(*fields)

    context = executor()
    variables = [Variable(context.constant(np.zeros(8, np.float32)), trainable=True, name=name) for name in "ab"]
    monkeypatch.setattr(loop_module, "Value", value)
    with pytest.raises(MemoryError, match="no memory for a copy"):
        while_(context, (below, body), [context.constant(np.array(0)), *variables], 2, ("i", "count"))
    assert variables[0].version == variables[1].version
    np.testing.assert_array_equal(*[variable.value.array for variable in variables])


def test_decisions_are_counted(policy, ran):
    def compute():
        context = executor()
        context.decided = []
        inputs = [context.constant(array) for array in (np.array(0), X, X, np.array(30))]
        while_(context, (BELOW, SWAPS), inputs, 1, ("i", "x", "y"))
        return context.decided

    assert both(policy, compute) == [[1, 30], [0, 1]]
    assert ran


def test_arenas_count_as_memory(policy):
    context = Executor(backend("cpu"), Memory(10_000_000, lambda: context.memory.cached()))
    body = compile_function(("x",), (Call("tanh", ("x",), ("t",)),), ("t",))
    scan(context, body, [context.constant(np.ones(50_000))], 1, length=20)
    assert context.memory.cached() >= 400_000
    context.memory.release_caches()
    assert context.memory.cached() == 0
    assert body.plans.instructions > 0
    body.forget()
    assert body.plans.instructions == 0


# ---------------------------------------------------------------------------------------------------------- provenance
def test_the_log_of_a_planned_loop_says_what_the_interpreter_s_says(policy):
    def log(count):
        context = executor()
        variable = Variable(context.constant(np.float32(1.0) + np.zeros((), np.float32)), trainable=True, name="v")
        elements = context.constant(np.linspace(0, 1, 12, dtype=np.float32))
        total = context.constant(np.zeros((), np.float32))
        for _ in range(count):
            variable.value = context.constant(np.ones((), np.float32))
            names = {variable.uid: "v", variable.value.uid: "v0", elements.uid: "e", total.uid: "t"}
            context.provenance.records.clear()
            results = scan(context, TRAIN, [total, elements, variable], 1, captured=1)
        names |= {results[0].uid: "total", results[1].uid: "q", results[2].uid: "parts", variable.value.uid: "v12"}
        records = [record for whole in context.provenance.records for record in expanded(whole)]
        *records, q, parts = records
        assert [record[0].name for record in (q, parts)] == ["stack", "stack"]
        order = [output for _, _, output, _ in records if output not in names]
        names |= {uid: number for number, uid in enumerate(dict.fromkeys(order))}
        planned = any(isinstance(record[0], PlannedLoop) for record in context.provenance.records)
        return planned, [
            (getattr(what, "name", what), tuple([names.get(uid) for uid in inputs]), names[output], where)
            for what, inputs, output, where in records
        ]

    policy.enabled = False
    _, expected = log(1)
    policy.enabled = True
    planned, records = log(3)
    assert planned
    assert records == expected


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "reduce_prod"])
def test_reductions_of_arrays_without_axes(policy, ran, op):
    body = compile_function(
        ("x",),
        (Call("neg", ("x",), ("a",)), Call(op, ("a",), ("b",)), Call("mul", ("b", Literal(1.1)), ("c",))),
        ("c",),
    )

    def compute():
        context = executor()
        return bytes_of(scan(context, body, [context.constant(np.zeros(()))], 1, length=20))

    both(policy, compute)
    assert len(ran) == 3
