"""Plans of functions: when they are built, what they leave alone, and how they end early."""

import sys
import threading
from dataclasses import asdict, replace

import numpy as np
import pytest
from driving import executor

from teletape_engine.arrays import backend
from teletape_engine.commands import Assign, Call, CallFunction, Map, ValueAndGradient
from teletape_engine.errors import CancelledError, InternalError, InvalidArgumentError
from teletape_engine.functions.compile import compile_function
from teletape_engine.plans import cache
from teletape_engine.plans.ir import instructions
from teletape_engine.plans.ir.buffers import same_numbers
from teletape_engine.plans.ir.forwards import Diverged
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.plan import Plan
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.progress import Monitor, no_progress
from teletape_engine.recording.provenance import PlannedCall, expanded
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable

X = np.array([1.0, -2.0, 3.0, 0.5], np.float32)
WAVE = (
    Call("mul", ("x", Literal(2.0)), ("a",)),
    Call("tanh", ("a",), ("b",)),
    Call("add", ("b", "x"), ("c",)),
    Call("reduce_sum", ("c",), ("s",)),
)


@pytest.fixture
def policy(monkeypatch):
    """Plans from the second call on, in Python."""
    for name, setting in asdict(Policy.of("python")).items():
        monkeypatch.setattr(POLICY, name, setting)
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


def bytes_of(values):
    return [np.asarray(value.array).tobytes() for value in values]


def variable(context, array=X):
    return Variable(context.constant(array.copy()), trainable=True, name="v")


# ------------------------------------------------------------------------------------------------------ when they run
def test_a_function_runs_as_a_plan_from_its_third_call_on(policy, runs):
    function, context = compile_function(("x",), WAVE, ("c", "s")), executor()
    answers = [bytes_of(function.run(context, [context.constant(X)])) for _ in range(4)]
    assert len(runs) == 2
    assert all(answer == answers[0] for answer in answers)


def test_no_plans_where_they_are_off(policy, runs):
    policy.enabled = False
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    for _ in range(4):
        function.run(context, [context.constant(X)])
    assert not runs


def test_a_tape_is_recorded_by_the_interpreter(policy, runs):
    function, context, tape = compile_function(("x",), WAVE, ("s",)), executor(), Tape()
    x = context.constant(X)
    context.context.open(tape)
    context.context.watch(tape, [x])
    for _ in range(4):
        function.run(context, [x])
    assert not runs
    assert len(tape.nodes) >= 4 * len(WAVE)


def test_other_shapes_dtypes_strides_and_numbers_have_other_plans(policy, runs):
    function = compile_function(("x", "y"), (Call("add", ("x", "y"), ("s",)),), ("s",))
    context = executor()
    arrays = [X, X.astype(np.float64), X[:2], np.ones((3, 4), np.float32), np.ones((4, 3), np.float32).T]
    for array in arrays:
        for number in (0.0, -0.0, 1.5):
            for _ in range(3):
                (result,) = function.run(context, [context.constant(array), Literal(number)])
            assert result.array.tobytes() == (array + array.dtype.type(number)).tobytes()
    assert len({id(plan) for plan in runs}) > 10


def test_the_number_of_plans_is_bounded(policy):
    function = compile_function(("x",), WAVE, ("s",))
    context = executor()
    for length in range(1, 60):
        for _ in range(3):
            function.run(context, [context.constant(np.ones(length, np.float32))])
    assert len(function.plans._plans) <= cache.MOST_PLANS


@pytest.mark.parametrize("mode", ["on", "off", "python", "force"])
def test_modes(mode):
    assert Policy.of(mode).enabled == (mode != "off")


def test_another_mode():
    with pytest.raises(ValueError, match="TELETAPE_PLANS is 'fast': it must be one of on, off, python, force"):
        Policy.of("fast")


def test_a_policy_becomes_that_of_another_mode():
    policy = Policy.of("on")
    policy.use("force", threads=3)
    assert policy == replace(Policy.of("force"), threads=3)
    policy.use(None, threads=None)
    assert policy == Policy.of("on")


# ------------------------------------------------------------------------------------------------------------- memory
def test_results_arguments_and_constants_are_never_written_to(policy, runs):
    table = np.arange(4, dtype=np.float32)
    steps = (
        Call("add", ("x", table), ("a",)),
        Call("neg", ("a",), ("b",)),
        Call("mul", ("b", "b"), ("c",)),
        Call("exp", ("x",), ("d",)),
    )
    function, context = compile_function(("x",), steps, ("a", "c", "d")), executor()
    before, x = table.copy(), context.constant(X.copy())
    results = [function.run(context, [x]) for _ in range(5)]
    other = function.run(context, [context.constant(X * 7)])
    assert len(runs) == 4
    assert bytes_of(other) != bytes_of(results[0])
    assert all(bytes_of(result) == bytes_of(results[0]) for result in results)
    assert (x.array.tobytes(), table.tobytes()) == (X.tobytes(), before.tobytes())


def test_results_that_are_arguments_constants_or_numbers_are_those_themselves(policy, runs):
    table = np.arange(4, dtype=np.float32)
    steps = (
        Call("mul", ("x", table), ("a",)),
        Call("identity", ("x",), ("i",)),
        Call("reshape", ("x",), ("r",), {"shape": (2, 2)}),
    )
    function, context = compile_function(("x", "n"), steps, ("x", "n", "a", "a", "i", "r")), executor()
    x, number = context.constant(X), Literal(2.0)
    for _ in range(4):
        same, n, a, again, identity, square = function.run(context, [x, number])
        assert (same, n, a) == (x, number, again)
        assert identity.array is x.array
        assert identity.uid != x.uid
        assert np.shares_memory(square.array, x.array)
    assert len(runs) == 2


def test_large_results_are_memory_of_their_own(policy, runs):
    big = np.ones((100, 100))
    steps = (Call("add", ("x", Literal(1.0)), ("a",)), Call("transpose", ("a",), ("t",), {"perm": (1, 0)}))
    function, context = compile_function(("x",), steps, ("t",)), executor()
    x = context.constant(big)
    results = [function.run(context, [x])[0] for _ in range(5)]
    assert len(runs) == 3
    assert all(result.array.strides == results[0].array.strides for result in results)
    assert not np.shares_memory(results[3].array, results[4].array)


def test_what_a_call_has_read_is_not_kept(policy, runs):
    """References to a variable's array would make every change of a part of it a copy."""
    steps = (Call("add", ("x", Literal(1.0)), ("a",)),)
    function, context = compile_function(("x",), steps, ("a",)), executor()
    x = context.constant(np.ones((100, 100)))
    before = sys.getrefcount(x.array)
    for _ in range(4):
        function.run(context, [x])
    assert len(runs) == 2
    after = sys.getrefcount(x.array)
    assert after == before


def test_arenas_count_and_give_way(policy, runs):
    context = Executor(backend("cpu"), Memory(1_000_000, lambda: context.memory.cached()))
    steps = (Call("add", ("x", Literal(1.0)), ("a",)), Call("exp", ("a",), ("b",)), Call("reduce_sum", ("b",), ("s",)))
    function = compile_function(("x",), steps, ("s",))
    x = context.constant(np.ones(50_000, np.float32))
    for _ in range(3):
        function.run(context, [x])
    assert len(runs) == 1
    assert context.memory.cached() >= 200_000
    context.memory.spend(900_000, "another thing")
    assert context.memory.cached() == 0
    function.run(context, [x])


def test_a_plan_that_does_not_fit_is_left_to_the_interpreter(policy, runs):
    used = [0]
    context = Executor(backend("cpu"), Memory(1_000_000, lambda: used[0]))
    function = compile_function(
        ("x",),
        (
            Call("exp", ("x",), ("a",)),
            Call("concat", ("a", "a"), ("b",), {"axis": 0}),
            Call("reduce_sum", ("b",), ("s",)),
        ),
        ("s",),
    )
    x = context.constant(np.ones(10_000, np.float32))
    expected = bytes_of(function.run(context, [x]))
    function.run(context, [x])
    used[0] = 915_000
    assert bytes_of(function.run(context, [x])) == expected
    assert len(runs) == 1


# ---------------------------------------------------------------------------------------------------------- variables
def step():
    """A function that assigns to a variable twice."""
    steps = (
        Call("mul", ("g", Literal(0.1)), ("d",)),
        Assign("v", "d", "sub"),
        Call("square", ("v",), ("q",)),
        Assign("v", "q", "set"),
        Call("reduce_sum", ("v",), ("s",)),
    )
    return compile_function(("v", "g"), steps, ("s", "v", "q"))


def test_assignments(policy, runs):
    def steps(count):
        context, function = executor(), step()
        v = variable(context)
        answers = []
        for _ in range(count):
            results = function.run(context, [v, context.constant(X)])
            assert results[1] is v.value
            answers.append((bytes_of(results), v.version, v.value.array.tobytes()))
        return answers

    policy.enabled = False
    expected = steps(5)
    policy.enabled = True
    assert steps(5) == expected
    assert len(runs) == 3


def test_one_variable_under_two_names(policy, runs):
    function = compile_function(("v", "w"), (Assign("v", Literal(2.0), "set"), Call("mul", ("w", "w"), ("s",))), ("s",))
    context = executor()
    v = variable(context, np.array(3.0, np.float32))
    for _ in range(4):
        (result,) = function.run(context, [v, v])
        assert result.array == 4.0
    assert not runs


def test_functions_within_functions(policy, runs):
    inner = step()
    outer = compile_function(
        ("v", "g"),
        (CallFunction(inner, ("v", "g"), ("a", "b", "c")), CallFunction(inner, ("v", "c"), ("d", "e", "f"))),
        ("d", "a"),
    )
    context = executor()
    v, w = variable(context, X / 10), variable(context, X / 10)
    for _ in range(4):
        results = outer.run(context, [v, context.constant(X)])
    policy.enabled = False
    for _ in range(4):
        expected = outer.run(context, [w, context.constant(X)])
    assert bytes_of(results) == bytes_of(expected)
    assert v.value.array.tobytes() == w.value.array.tobytes()
    assert [plan in outer.plans._plans.values() for plan in runs[-2:]] == [True, True]


def test_a_map_and_its_gradient_are_a_plan(policy, runs):
    shared = compile_function(("x", "w"), (Call("mul", ("x", "w"), ("p",)), Call("tanh", ("p",), ("y",))), ("y",))
    for function in (shared, compile_function(("x", "w"), (CallFunction(shared, ("x", "w"), ("y",)),), ("y",))):
        rows = compile_function(("x", "w"), (Map(function, ("x", "w"), (True, False), ("y",)),), ("y",))
        step = ValueAndGradient(rows, ("x", "w"), ("y",), ("x", "w"), ("y", "gx", "gw"))
        summed = compile_function(("x", "w"), (step,), ("y", "gx", "gw"))
        context, before = executor(), len(runs)
        arguments = [context.constant(np.stack([X, 2 * X, -X])), context.constant(X / 3)]
        answers = [bytes_of(summed.run(context, arguments)) for _ in range(4)]
        assert len(runs) == before + 2
        assert all(answer == answers[0] for answer in answers)
        loop = [np.tanh(row * X / 3) for row in (X, 2 * X, -X)]
        np.testing.assert_allclose(np.frombuffer(answers[0][0], np.float32).reshape(3, 4), loop, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------- errors
REFUSING = compile_function(
    ("v", "x", "i"),
    (
        Assign("v", "x", "set"),
        Call("gather", ("x", "i"), ("dead",)),
        Call("exp", ("x",), ("e",)),
    ),
    ("e",),
)


def test_an_op_that_refuses_values_does_so_though_nothing_uses_its_result(policy, runs):
    context = executor()
    v, x = variable(context), context.constant(X)
    fine, wrong = (context.constant(np.array([number], np.int32)) for number in (1, 9))
    for _ in range(3):
        REFUSING.run(context, [v, x, fine])
    with pytest.raises(InvalidArgumentError) as planned:
        REFUSING.run(context, [v, x, wrong])
    assert len(runs) == 2
    policy.enabled = False
    with pytest.raises(InvalidArgumentError) as expected:
        REFUSING.run(context, [v, x, wrong])
    assert planned.value.message == expected.value.message
    assert planned.value.details == expected.value.details


def test_a_cancel_leaves_the_variables_as_they_are(policy, runs):
    monitor = Monitor()
    context = Executor(backend("cpu"), Memory(None, lambda: 0), monitor)
    steps = [Assign("v", "x", "add")]
    steps += [Call("add", (f"a{i}", Literal(1.0)), (f"a{i + 1}",)) for i in range(300)]
    function = compile_function(("v", "x", "a0"), steps, ("a300",))
    v, x = variable(context), context.constant(X)
    for _ in range(3):
        function.run(context, [v, x, x])
    value, version, looks = v.value, v.version, []
    monitor.begin(lambda: bool(looks.append(1)) or len(looks) > 2, no_progress, 1)
    with pytest.raises(CancelledError):
        function.run(context, [v, x, x])
    assert (v.value, v.version) == (value, version)
    assert len(looks) == 3
    assert len(runs) == 2


def test_a_forward_that_gives_another_layout_ends_its_plan(policy, runs, monkeypatch):
    def diverging(*args, **options):
        def step(*arrays):
            raise Diverged

        return step

    monkeypatch.setattr(instructions, "python_step", diverging)
    function, context = compile_function(("x",), (Call("cumsum", ("x",), ("c",), {"axis": 0}),), ("c",)), executor()
    x = context.constant(np.ones((3, 4), np.float32))
    for _ in range(5):
        (result,) = function.run(context, [x])
        assert result.array.tolist() == [[1.0] * 4, [2.0] * 4, [3.0] * 4]
    assert len(runs) == 1


# ------------------------------------------------------------------------------------------------------------ threads
def test_calls_in_several_threads_have_arenas_of_their_own(policy):
    steps = [Call("mul", ("x", "x"), ("a0",))]
    steps += [Call("add", (f"a{i}", "x"), (f"a{i + 1}",)) for i in range(200)]
    function = compile_function(("x",), steps, ("a200",))
    context = executor()
    for _ in range(3):
        function.run(context, [context.constant(X)])
    wrong = []

    def work(number):
        own = executor()
        array = np.full(4, number, np.float32)
        for _ in range(50):
            (result,) = function.run(own, [own.constant(array)])
            if result.array.tolist() != [number * number + 200 * number] * 4:
                wrong.append(result.array)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_scalar_is_taken_before_another_call_has_the_arena(policy, runs, monkeypatch):
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    expected = [bytes_of(function.run(context, [context.constant(X)])) for _ in range(3)][-1]
    finish = Plan.finish

    def interrupted(self, *args, **kwargs):
        monkeypatch.setattr(Plan, "finish", finish)
        other = executor()
        assert bytes_of(function.run(other, [other.constant(2 * X)])) != expected
        return finish(self, *args, **kwargs)

    monkeypatch.setattr(Plan, "finish", interrupted)
    assert bytes_of(function.run(context, [context.constant(X)])) == expected
    assert len(runs) == 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "int32", "bool"])
def test_what_counts_as_the_same_numbers(dtype):
    x = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0]]).astype(dtype)
    other = x.copy()
    other[1, 0] = 0
    assert same_numbers(x, np.asfortranarray(x))
    assert not same_numbers(x, other)
    if x.dtype.kind not in "fc":
        return
    other = x.copy()
    x.real[0, 0], other.real[0, 0] = np.nan, -np.nan
    assert x.tobytes() != other.tobytes()
    assert same_numbers(x, other)
    other.real[1, 1] = -0.0
    assert not same_numbers(x, other)
    other.real[1, 1] = np.nan
    assert not same_numbers(x, other)


# --------------------------------------------------------------------------------------------------------- provenance
def test_the_log_of_a_planned_call_says_what_the_interpreter_s_says(policy, runs):
    def log(count):
        context, function = executor(), step()
        v, x = variable(context), context.constant(X)
        names = {v.uid: "v", v.value.uid: "v0", x.uid: "x"}
        for _ in range(count):
            names[v.value.uid] = "before"
            context.provenance.records.clear()
            results = function.run(context, [v, x])
        names |= {results[0].uid: "s", results[1].uid: "after", results[2].uid: "q"}
        records = [record for whole in context.provenance.records for record in expanded(whole)]
        order = [output for what, _, output, _ in records if output not in names]
        names |= {uid: number for number, uid in enumerate(dict.fromkeys(order))}
        assert sorted(order) == order
        planned = any(isinstance(record[0], PlannedCall) for record in context.provenance.records)
        return planned, [
            (what, tuple([names.get(uid) for uid in inputs]), names[output], where)
            for what, inputs, output, where in records
        ]

    policy.enabled = False
    _, expected = log(3)
    policy.enabled = True
    planned, records = log(3)
    assert planned
    assert records == expected


# -------------------------------------------------------------------------------------------------------- same values
def test_arguments_that_are_one_value_have_a_plan_of_their_own(policy, runs):
    function = compile_function(("x", "y"), (Call("sub", ("x", "y"), ("d",)),), ("d", "y"))
    context = executor()
    x, y = context.constant(X), context.constant(X * 2)
    for _ in range(4):
        assert bytes_of(function.run(context, [x, x])[:1]) == [np.zeros(4, np.float32).tobytes()]
    for _ in range(4):
        difference, last = function.run(context, [x, y])
        assert (bytes_of([difference]), last) == ([(-X).tobytes()], y)
    assert len(runs) == 4


def test_two_variables_with_one_value_are_not_one_variable(policy, runs):
    function = compile_function(("v", "w"), (Assign("v", Literal(2.0), "set"), Call("mul", ("w", "v"), ("s",))), ("s",))
    context = executor()
    for same in (False, True):
        for _ in range(4):
            v = variable(context, np.array(3.0, np.float32))
            w = v if same else Variable(v.value, trainable=True, name="w")
            (result,) = function.run(context, [v, w])
            assert result.array == (4.0 if same else 6.0)
    assert len(runs) == 2


def test_scalars_arrays_without_axes_and_results_of_both_kinds(policy, runs):
    function = compile_function(
        ("x", "y"),
        (
            Call("mul", ("x", "y"), ("a",)),
            Call("reshape", ("a",), ("b",), {"shape": ()}),
            Call("reshape", ("a",), ("c",), {"shape": (1,)}),
        ),
        ("a", "b", "c"),
    )
    context = executor()
    array = context.constant(np.array(3.0, np.float32))
    scalar = function.run(context, [array, array])[0]
    assert isinstance(scalar.array, np.generic)
    for arguments in ([array, scalar], [scalar, array]):
        answers = [function.run(context, arguments) for _ in range(4)]
        kinds = [[type(value.array) for value in values] for values in answers]
        assert all(row == kinds[0] for row in kinds)
        assert all(bytes_of(values) == [np.float32(27).tobytes()] * 3 for values in answers)
    assert len(runs) == 4


def test_an_array_that_is_not_aligned_is_for_the_interpreter(policy, runs):
    policy.compiled = True
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    numbers = np.linspace(-1, 1, 5000, dtype=np.float32)
    shifted = np.empty(20_001, np.uint8)[1:].view(np.float32)
    shifted[:] = numbers
    aligned = np.empty(20_001, np.uint8)[:20_000].view(np.float32)
    aligned[:] = numbers
    expected = {bytes_of(function.run(context, [context.constant(aligned)]))[0] for _ in range(4)}
    assert {bytes_of(function.run(context, [context.constant(shifted)]))[0] for _ in range(4)} == expected
    assert runs


@pytest.mark.parametrize("compiled", [False, True])
def test_freed_memory_is_filled_where_plans_are_compared(policy, runs, compiled):
    policy.compared, policy.compiled, policy.first = True, compiled, 1
    function, context = compile_function(("x",), WAVE, ("s",)), executor()
    answers = {bytes_of(function.run(context, [context.constant(X)]))[0] for _ in range(3)}
    policy.enabled = False
    assert answers == {bytes_of(function.run(context, [context.constant(X)]))[0]}
    _foreseen, plan = {id(plan): plan for plan in runs}.values()
    (machine,) = plan._idle
    assert machine.arena.tobytes().count(b"\xff") >= 2 * X.nbytes  # of x twice, tanh, and their sum: all is freed
    plan._places.freed[0].append(plan.instructions[1].output.buffer)  # a place that is read later
    plan._places.freed[1].append(plan.instructions[1].output.buffer)
    plan._idle.clear()
    policy.enabled = True
    (wrong,) = function.run(context, [context.constant(X)])
    assert np.isnan(wrong.array)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_plan_with_other_results_is_an_error_where_plans_are_compared(policy, monkeypatch, recorded):
    policy.compared, policy.first = True, 1
    steps = tuple([Call("tanh", (f"x{i}",), (f"x{i + 1}",)) for i in range(9)])
    function, context = compile_function(("x0",), steps, ("x9",)), executor()
    x = context.constant(X)
    if recorded:
        tape = Tape()
        context.context.open(tape)
        context.context.watch(tape, [x])
    monkeypatch.setitem(instructions._BY_KEYWORD, np.tanh, np.sin)
    with pytest.raises(InternalError, match=r"a plan gives float32\[4\] as array 0 that differs"):
        function.run(context, [x])


def test_a_plan_that_fails_each_time_ends(monkeypatch):
    """The interpreter then runs such calls alone; a run that succeeds in between forgives those before."""
    for name, setting in asdict(Policy.of("on")).items():
        monkeypatch.setattr(POLICY, name, setting)
    function = compile_function(("x",), (Call("tanh", ("x",), ("y",)),), ("y",))
    context, runs, fails = executor(), [], True
    run = Plan.run

    def counted(*args):
        runs.append(args)
        if fails:
            raise RuntimeError("no plan")
        return run(*args)

    monkeypatch.setattr(Plan, "run", counted)
    for number in range(40):
        fails = number != 6
        [y] = function.run(context, [context.constant(np.ones(3, np.float32))])
        np.testing.assert_allclose(y.array, np.tanh(np.ones(3)), rtol=1e-6)
    assert 8 < len(runs) < 16
