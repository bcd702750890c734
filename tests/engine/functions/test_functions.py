"""Functions: what is checked when one is defined, and what when it is called."""

import gc

import numpy as np
import pytest
from driving import executor, state_of

from teletape_engine.arrays.cpu import Cpu
from teletape_engine.commands import Assign, Batch, Call, CallFunction, Constant, DefineFunction, Fetch, MakeVariable
from teletape_engine.errors import BadAttributeError, InvalidArgumentError, UnknownOpError
from teletape_engine.functions.compile import MAX_DEPTH, compile_function
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.memory import Memory
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES, Spec

X = np.array([1.0, 2.0], np.float32)
SQUARE = Call("mul", ("a", "a"), ("s",))


@pytest.fixture
def context():
    return executor()


def test_steps_run_in_order_on_arguments_numbers_and_constants(context):
    function = compile_function(
        ("a", "b"), (SQUARE, Call("add", ("s", Literal(1.0)), ("t",)), Call("sub", ("t", X), ("u",))), ("u", "b", "s")
    )
    a, b = context.constant(X), context.constant(X + 1)
    u, same, s = function.run(context, [a, b])
    assert u.array.tolist() == [1.0, 3.0]
    assert same is b
    assert s.array.tolist() == [1.0, 4.0]


def test_attributes_are_those_of_the_op(context):
    function = compile_function(("a",), (Call("reduce_sum", ("a",), ("s",), {"axis": 0}),), ("s",))
    (result,) = function.run(context, [context.constant(X)])
    assert result.array == 3.0


@pytest.mark.parametrize(
    ("inputs", "calls", "results", "error", "words"),
    [
        (("a", "a"), (), (), InvalidArgumentError, r"\['a', 'a'\] of the function: a name occurs twice"),
        (("a",), (Call("neg", ("b",), ("c",)),), (), InvalidArgumentError, r"step 0 \(neg\): input 'b' is neither"),
        (
            ("a",),
            (Call("neg", ("s",), ("n",)), SQUARE),
            (),
            InvalidArgumentError,
            "'s' is neither an input of the function nor an output of an earlier step",
        ),
        (("a",), (SQUARE, SQUARE), (), InvalidArgumentError, r"step 1 \(mul\): the name 's' is taken"),
        (("a", "s"), (SQUARE,), (), InvalidArgumentError, "the name 's' is taken"),
        (("a",), (Call("neg", ("a",), ("b", "c")),), (), InvalidArgumentError, "has 1 output, found 2 ids"),
        (
            ("a",),
            (SQUARE,),
            ("t",),
            InvalidArgumentError,
            "output 't' of the function is neither an input nor an output of a step",
        ),
        (("a",), (Call("negg", ("a",), ("b",)),), (), UnknownOpError, "did you mean 'neg'"),
        (("a",), (Call("neg", ("a",), ("b",), {"axis": 1}),), (), BadAttributeError, "axis"),
        (("a",), (Call("mul", ("a",), ("b",)),), (), InvalidArgumentError, r"takes 2 inputs \(.*\), found 1"),
    ],
)
def test_what_cannot_be_a_function(inputs, calls, results, error, words):
    with pytest.raises(error, match=words):
        compile_function(inputs, calls, results)


def test_a_wrong_count_of_arguments(context):
    with pytest.raises(InvalidArgumentError, match=r"the function takes 2 inputs \(a, b\), found 1"):
        compile_function(("a", "b"), (), ("a",)).run(context, [context.constant(X)])


def test_shapes_are_known_only_when_it_is_called(context):
    function = compile_function(("a", "b"), (Call("add", ("a", "b"), ("s",)),), ("s",))
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs. \[3\]"):
        function.run(context, [context.constant(X), context.constant(np.ones(3, np.float32))])


# ----------------------------------------------------------------------------------------------- variables, functions
BUMP = compile_function(("v", "by"), (Call("mul", ("v", "v"), ("before",)), Assign("v", "by", "add")), ("before", "v"))
F32 = Spec.of((2,), X.dtype)


def variable(context, value=X):
    return Variable(context.constant(value.copy()), trainable=True, name="v")


def test_variables_are_read_in_order_and_assigned_to(context):
    v = variable(context)
    before, after = BUMP.run(context, [v, context.constant(X)])
    assert (before.array.tolist(), after.array.tolist()) == ([1.0, 4.0], [2.0, 4.0])
    assert (v.version, v.value.array.tolist()) == (1, [2.0, 4.0])


def test_a_function_that_assigns_needs_a_variable(context):
    assert BUMP.assigns == {0}
    with pytest.raises(InvalidArgumentError, match="assigns to its input 'v': give it a variable, not a value"):
        BUMP.run(context, [context.constant(X), context.constant(X)])
    with pytest.raises(InvalidArgumentError, match="holds float32"):
        BUMP.run(context, [variable(context), context.constant(np.ones(3, np.float32))])


def test_functions_within_functions(context):
    twice = compile_function(
        ("v", "by"),
        (CallFunction(BUMP, ("v", "by"), ("a", "b")), CallFunction(BUMP, ("v", Literal(1.0)), ("c", "d"))),
        ("b", "c"),
    )
    assert (twice.assigns, twice.size, twice.depth) == ({0}, 4, 1)
    scalar = variable(context, np.array(1.0, np.float32))
    b, c = twice.run(context, [scalar, context.constant(np.array(2.0, np.float32))])
    assert (b.array, c.array, scalar.value.array) == (3.0, 9.0, 4.0)


def test_what_no_function_may_do():
    with pytest.raises(InvalidArgumentError, match=r"step 0 \(assign\): input 'x' is neither an input of the function"):
        compile_function(("a",), (Assign("x", "a"),), ("a",))
    with pytest.raises(InvalidArgumentError, match=r"step 1 \(assign\): assigns to 's', which is no input"):
        compile_function(("a",), (SQUARE, Assign("s", "a")), ("a",))
    with pytest.raises(InvalidArgumentError, match=r"step 0 \(constant\): cannot be a step of a function"):
        compile_function(("a",), (Constant("x", X),), ("a",))
    with pytest.raises(InvalidArgumentError, match="names inside a function are strings, found 7"):
        compile_function(("a",), (Call("neg", ("a",), (7,)),), ("a",))
    with pytest.raises(InvalidArgumentError, match="assigns to its input number 0: that must be an input of this"):
        compile_function(("a",), (SQUARE, CallFunction(BUMP, ("s", "a"), ("x", "y"))), ("x",))


def test_functions_do_not_grow_without_end():
    function = compile_function(("a",), (Call("neg", ("a",), ("b",)),), ("b",))

    def four_times(function):
        return compile_function(("a",), tuple(CallFunction(function, ("a",), (f"x{i}",)) for i in range(4)), ("x0",))

    for _ in range(9):
        function = four_times(function)
    with pytest.raises(InvalidArgumentError, match="more than 1,000,000 steps"):
        four_times(function)
    deep = compile_function(("a",), (Call("neg", ("a",), ("b",)),), ("b",))
    for _ in range(MAX_DEPTH):
        deep = compile_function(("a",), (CallFunction(deep, ("a",), ("b",)),), ("b",))
    with pytest.raises(InvalidArgumentError, match=f"calls more than {MAX_DEPTH} deep"):
        compile_function(("a",), (CallFunction(deep, ("a",), ("b",)),), ("b",))


def test_specs_and_price_are_known_before_it_runs():
    function = compile_function(
        ("a", "b"), (Call("matmul", ("a", "b"), ("c",)), Call("neg", ("c",), ("d",))), ("d", "a")
    )
    a, b = Spec.of((3, 4), X.dtype), Spec.of((4, 5), X.dtype)
    assert function.infer([a, b]).specs == (Spec.of((3, 5), X.dtype), a)
    assert function.price([a, b]) >= 2 * 3 * 5 * 4
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible"):
        function.infer([a, a])
    dynamic = compile_function(("a",), (Call("nonzero", ("a",), ("n",)),), ("n",))
    with pytest.raises(InvalidArgumentError, match="depend on values: run it"):
        dynamic.infer([a])


@pytest.mark.parametrize("op", ["pow", "floordiv", "floormod"])
def test_only_integers_may_be_refused(op):
    inner = compile_function(("a", "b"), (Call(op, ("a", "b"), ("c",)),), ("c",))
    outer = compile_function(("a", "b"), (CallFunction(inner, ("a", "b"), ("c",)),), ("c",))
    for function in (inner, outer):
        assert not function.infer([Spec.of((), DTYPES["float32"])] * 2).refuses
        assert function.infer([Spec.of((), DTYPES["int32"])] * 2).refuses


def test_values_that_nothing_takes_any_more_are_let_go(context):
    n, size = 50, 1 << 16
    calls = tuple(Call("neg", (f"v{i}",), (f"v{i + 1}",)) for i in range(n))
    session = Session(memory_limit=6 * size)
    session.execute(
        Batch(
            (
                Constant("x", np.ones(size // 4, np.float32)),
                DefineFunction("chain", ("v0",), calls, (f"v{n}",)),
                CallFunction("chain", ("x",), ("y",)),
            )
        )
    )
    assert session.describe("y")["bytes"] == size
    # What the values in between would take is over the limit; each lives until the next is made.


def test_constants_are_put_once_and_counted():
    session = Session()
    big = np.ones(1 << 14, np.float32)
    function = DefineFunction("p", ("a",), (Call("add", ("a", big), ("b",)), Call("mul", ("b", big), ("c",))), ("c",))
    session.execute(Batch((Constant("x", np.ones(1, np.float32)), function)))
    before = session.bytes_in_use()
    for i in range(3):
        answer = session.execute(Batch((CallFunction("p", ("x",), (f"y{i}",)),), releases=(f"y{i}",)))
        assert answer.failure is None
    state_of(session).memory.release_caches()  # the arena of the function's plan
    assert session.bytes_in_use() - before == big.nbytes
    assert session.describe("p")["bytes"] == big.nbytes


def test_a_function_keeps_those_that_it_calls_alive():
    session = Session()
    inner = DefineFunction("inner", ("a",), (Call("neg", ("a",), ("b",)),), ("b",))
    outer = DefineFunction("outer", ("a",), (CallFunction("inner", ("a",), ("b",)),), ("b",))
    answer = session.execute(Batch((MakeVariable("v", X), inner, outer), releases=("inner",)))
    assert answer.failure is None
    answer = session.execute(Batch((CallFunction("outer", ("v",), ("r",)), Fetch("r"))))
    assert answer.results[0].array.tolist() == [-1.0, -2.0]
    answer = session.execute(
        Batch((DefineFunction("other", ("a",), (CallFunction("inner", ("a",), ("b",)),), ("b",)),))
    )
    assert answer.failure.code == "released_id"


def test_a_long_function_can_be_cancelled():
    session = Session()
    calls = tuple(Call("neg", (f"v{i}",), (f"v{i + 1}",)) for i in range(1000))
    session.execute(Batch((Constant("x", X), DefineFunction("long", ("v0",), calls, ("v1000",)))))
    results = []

    def cancelled():
        results.append(None)
        return len(results) > 5

    answer = session.execute(Batch((CallFunction("long", ("x",), ("y",)),)), cancelled=cancelled)
    assert (answer.failure.code, answer.failure.message) == (
        "cancelled",
        "the batch was cancelled, inside a command",
    )
    assert len(results) < 10


def test_a_device_lives_as_long_as_the_constants_of_a_function_on_it():
    function = compile_function(("x",), (Call("add", ("x", np.ones(3)), ("y",)),), ("y",))
    device = Cpu()
    context = Executor(device, Memory(None, lambda: 0))
    function.run(context, [context.constant(np.zeros(3))])
    address = id(device)
    del device, context
    gc.collect()
    assert address not in [id(other) for other in [Cpu() for _ in range(1000)]]
