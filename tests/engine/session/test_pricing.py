"""Prices of batches: what is said of a batch beforehand is what becomes of it, and nothing has run."""

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fuzz.sessions import PROGRAM, new_session
from teletape_engine.catalogue.op import CATALOGUE, WorkKind
from teletape_engine.commands import (
    Assign,
    Batch,
    Call,
    CallFunction,
    Cond,
    Constant,
    DefineFunction,
    Explain,
    Fetch,
    Gradient,
    MakeVariable,
    OnFailure,
    Scan,
    TapeOpen,
    TapeWatch,
    ValueAndGradient,
    While,
)
from teletape_engine.pricing import executor
from teletape_engine.pricing.price import price
from teletape_engine.recording.values import Literal, spec_array
from teletape_engine.session.session import Session

FLOAT32 = np.dtype("float32")
#: How much more the price of a random program says than the arrays of it take, at the most.
FACTOR = 1.5
#: Bytes of Python's own objects in a small program.
OBJECTS = 200_000
UNARY = ("tanh", "exp", "sin", "square", "sigmoid", "relu", "abs", "softplus", "neg", "softmax", "erf", "log1p")
BINARY = ("add", "sub", "mul", "maximum", "squared_difference", "div")


def priced(session, *commands, **parts):
    """The price of a batch; ids that a failure leaves without a value stay free, as in a request."""
    return session.inspect(lambda state: price(state, Batch(commands, **parts)))


def as_spec(command):
    """The command with specs in place of its arrays."""
    value = getattr(command, "value", None)
    return replace(command, value=spec_array(value.shape, value.dtype)) if isinstance(value, np.ndarray) else command


def program(seed):
    """Commands: two tensors, a variable, random ops on them under a tape, their gradient."""
    rng = random.Random(seed)
    shape = (rng.randrange(60, 200), rng.randrange(200, 500))
    numbers = np.random.default_rng(seed)
    values = ["x", "y", "w"]
    steps = [Constant(name, numbers.uniform(0.1, 1, shape)) for name in values[:2]]
    steps.append(MakeVariable("w", numbers.uniform(0.1, 1, shape)))
    steps += [TapeOpen("t", persistent=rng.random() < 0.3), TapeWatch("t", ("x",))]
    for number in range(rng.randrange(3, 14)):
        a, b, name = rng.choice(values), rng.choice(values), f"v{number}"
        kind = rng.randrange(7)
        if kind < 3:
            steps.append(Call(rng.choice(UNARY), (a,), (name,)))
        elif kind < 5:
            steps.append(Call(rng.choice(BINARY), (a, b), (name,)))
        elif kind == 5:
            steps.append(Call("transpose", (a,), (f"{name}.t",), {"perm": (1, 0)}))
            steps.append(Call("matmul", (f"{name}.t", b), (f"{name}.m",)))
            steps.append(Call("matmul", (a, f"{name}.m"), (name,)))
        else:
            steps.append(Call("reduce_mean", (a,), (f"{name}.m",), {"axis": (0,), "keepdims": True}))
            steps.append(Call("sub", (b, f"{name}.m"), (name,)))
        values.append(name)
    steps.append(Call("reduce_sum", (values[-1],), ("loss",)))
    steps.append(Gradient("t", ("loss",), ("w", "x"), ("dw", "dx"), unconnected="zero"))
    temporaries = tuple(name for name in values[3:-1] if rng.random() < 0.5)
    return Batch(tuple(steps), temporaries=temporaries)


def check_results(price, session):
    """What the price says that there will be is what there is."""
    for result in price.results:
        if not session.names(result.id):
            continue
        facts = session.describe(result.id)
        assert (facts["kind"], facts["dtype"]) == (result.kind, result.spec.dtype.name)
        if result.exact:
            assert facts["shape"] == list(result.spec.shape)
        else:
            assert np.prod(facts["shape"]) <= result.spec.size


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_the_price_of_random_programs_is_what_they_take(first):
    Session().execute(Batch((Call("erf", (np.ones(2),), ("y",)),)))  # which imports SciPy
    for seed in range(first, first + 8):
        batch, session = program(seed), Session(memory_limit=1 << 30)
        price = priced(session, *map(as_spec, batch.commands), temporaries=batch.temporaries)
        assert price.failure is None
        assert session.bytes_in_use() == 0
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            sent = sum(command.value.nbytes for command in batch.commands if hasattr(command, "value"))
            answer = session.execute(batch)
            taken = tracemalloc.get_traced_memory()[1] - before + sent
        finally:
            tracemalloc.stop()
        assert answer.failure is None
        check_results(price, session)
        assert price.after == session.bytes_in_use()
        assert taken - OBJECTS < price.peak < FACTOR * taken


def test_each_command_of_a_long_program_is_priced_as_it_is_answered():
    session = new_session()
    unpriced = set()
    for batch in PROGRAM:
        for command in batch.commands:
            state = session.bytes_in_use(), session.listing("tensor", "variable", "slices", "tape", "function")
            price = priced(session, command, on_failure=OnFailure.FREE)
            listed = session.listing("tensor", "variable", "slices", "tape", "function")
            assert (session.bytes_in_use(), listed) == state
            answer = session.execute(Batch((command,), on_failure=OnFailure.FREE))
            assert answer.failure is None
            if price.failure is not None:
                assert not price.is_known
                unpriced.add(command.verb)
            check_results(price, session)
    assert unpriced == {
        *("sparse_jacobian", "sparse_hessian"),  # their results have as many entries as values say
        *("backward.cotangents", "backward.resume", "backward.end"),  # of a pass that stopped in an earlier batch
    }


@pytest.mark.more
def test_every_op_is_priced_as_it_is_answered():
    for name, op in CATALOGUE.items():
        sample = next(iter(op.samples()))
        arrays = [each for each in sample.inputs if hasattr(each, "dtype")]
        named = iter(f"i{number}" for number in range(len(arrays)))
        inputs = tuple(
            next(named) if isinstance(each, np.ndarray | np.generic) else Literal(each) for each in sample.inputs
        )
        constants = tuple(Constant(f"i{number}", np.array(array)) for number, array in enumerate(arrays))
        call = Call(name, inputs, op.results, dict(sample.attrs))
        session = Session()
        price = priced(session, *map(as_spec, constants), call)
        answer = session.execute(Batch((*constants, call)))
        assert answer.failure is None
        assert price.failure is None, (name, price.failure)
        assert [result.exact for result in price.results][-1] is not op.dynamic
        check_results(price, session)


@pytest.mark.parametrize(
    "commands",
    [
        [Call("matmul", ("x", "x"), ("y",))],
        [Call("tahn", ("x",), ("y",))],
        [Call("tanh", ("missing",), ("y",))],
        [Call("tanh", ("x",), ("x",))],
        [Call("gather", ("x", "ids"), ("y",))],
        [Call("fill", (Literal(1.0),), ("big",), {"shape": (1 << 20,)})],
        [Call("fill", (Literal(1.0),), ("most",), {"shape": (500_000,)}), Call("tanh", ("most",), ("y",))],
        [Assign("w", np.zeros(3, FLOAT32))],
        [Gradient("t", ("w",), ("w",), ("dw",)), Gradient("t", ("w",), ("w",), ("again",))],
        [Gradient("t", ("w",), ("w",), ("dw",), (np.ones(5, FLOAT32),))],
    ],
)
def test_a_refusal_has_the_words_of_the_true_one(commands):
    session = Session(memory_limit=3_000_000)
    session.execute(
        Batch(
            (
                Constant("x", np.ones((2, 3), FLOAT32)),
                Constant("ids", np.array([5, 0])),
                MakeVariable("w", np.ones((4,), FLOAT32)),
                TapeOpen("t"),
                TapeWatch("t", ("w",)),
            )
        )
    )
    price = priced(session, *commands, on_failure=OnFailure.FREE)
    answer = session.execute(Batch(tuple(commands), on_failure=OnFailure.FREE))
    assert answer.failure is not None
    assert price.failure == answer.failure
    assert price.is_known


def test_no_array_is_allocated():
    large = spec_array((1_000_000, 1_000_000), FLOAT32)
    commands = [
        MakeVariable("w", large),
        TapeOpen("t"),
        Call("tanh", ("w",), ("y",)),
        Call("reduce_sum", ("y",), ("loss",)),
        Gradient("t", ("loss",), ("w",), ("dw",)),
        Fetch("dw"),
        Fetch("loss", 10),
    ]
    session = Session()
    priced(session, *commands)
    tracemalloc.start()
    try:
        price = priced(session, *commands)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken < 1 << 20
    assert price.up == large.nbytes
    assert price.down == large.nbytes + 4
    assert 4 * large.nbytes <= price.peak < 6 * large.nbytes
    assert price.after == 3 * large.nbytes + 4


def test_work_is_counted():
    price = priced(
        Session(),
        Constant("a", spec_array((100, 200), FLOAT32)),
        Constant("b", spec_array((200, 300), FLOAT32)),
        Call("matmul", ("a", "b"), ("c",)),
        Call("tanh", ("c",), ("d",)),
    )
    assert price.work[WorkKind.PRODUCTS] == 100 * 200 * 300
    assert price.work[WorkKind.ELEMENTS] == 100 * 300
    assert price.ops == 2


HALVED = DefineFunction(
    "halved",
    ("i", "x"),
    (Call("mul", ("x", Literal(0.5)), ("h",)), Call("add", ("i", Literal(1)), ("j",))),
    ("j", "h"),
)
SQUARED = DefineFunction(
    "squared", ("i", "x"), (Call("square", ("x",), ("s",)), Call("identity", ("i",), ("j",))), ("j", "s")
)
SMALL = DefineFunction("small", ("i", "x"), (Call("less", ("i", Literal(5)), ("c",)),), ("c",))
X = Constant("x", spec_array((1000,), FLOAT32))


def test_functions_and_loops_whose_numbers_are_given_are_followed():
    session = Session()
    commands = [
        HALVED,
        SMALL,
        X,
        Constant("i", np.array(2, np.int32)),
        While("small", "halved", ("i", "x"), ("n", "last", "count"), 0, None, False),
        Scan("halved", ("i", "x"), ("m", "scanned"), 2, 0, False, length=7),
        CallFunction("halved", ("i", "x"), ("k", "half")),
        ValueAndGradient("halved", ("i", "x"), ("h",), ("x",), ("v", "value", "slope"), "zero"),
    ]
    price = priced(session, *commands)
    assert price.failure is None
    assert price.doubts == ()
    session.execute(
        Batch(tuple(replace(each, value=np.ones(1000, FLOAT32)) if each is X else each for each in commands))
    )
    check_results(price, session)


def test_what_depends_on_values_is_said():
    unknown = Constant("i", spec_array((), np.dtype("int32")))
    loop = While("small", "halved", ("i", "x"), ("n", "last"), 0, None, False)
    price = priced(Session(), HALVED, SMALL, X, unknown, loop)
    assert [(doubt.index, doubt.what[:20]) for doubt in price.doubts] == [(4, "how often a loop run")]
    assert [result.spec.shape for result in price.results if result.id == "last"] == [(1000,)]
    flag = Constant("flag", spec_array((), np.dtype("bool")))
    price = priced(
        Session(), HALVED, SQUARED, X, unknown, flag, Cond(("halved", "squared"), ("flag", "i", "x"), ("n", "y"))
    )
    assert [(doubt.index, doubt.on) for doubt in price.doubts] == [(5, "flag")]
    bits = Constant("bits", spec_array((50,), np.dtype("bool")))
    price = priced(Session(), bits, Call("nonzero", ("bits",), ("places",)), Call("square", ("places",), ("squares",)))
    assert [(doubt.index, doubt.on) for doubt in price.doubts] == [(1, "bits")]
    assert [result.exact for result in price.results] == [True, False, False]
    price = priced(Session(), Constant("bits", np.array([True, False, True])), Call("nonzero", ("bits",), ("places",)))
    assert price.doubts == ()
    assert price.results[-1].spec.shape == (2, 1)
    explained = [X, TapeOpen("t", replayable=True), Call("square", ("x",), ("y",)), Explain("t", ("y",), ("x",))]
    assert [doubt.what for doubt in priced(Session(), *explained).doubts] == [
        "what 'explain' takes, which is not counted"
    ]


def test_a_long_scan_is_counted_as_its_first_iterations(monkeypatch):
    length = 1000
    commands = [
        DefineFunction(
            "step",
            ("s", "row", "w"),
            (Call("matmul", ("w", "s"), ("a",)), Call("add", ("a", "row"), ("b",)), Call("tanh", ("b",), ("c",))),
            ("c", "b"),
        ),
        Constant("w", spec_array((50, 50), FLOAT32)),
        Constant("s", spec_array((50, 8), FLOAT32)),
        Constant("rows", spec_array((length, 50, 8), FLOAT32)),
        Scan("step", ("s", "rows", "w"), ("last", "stack"), 1, 1, False),
    ]
    short = priced(Session(), *commands)
    monkeypatch.setattr(executor, "FOLLOWED", length)
    whole = priced(Session(), *commands)
    assert [result.spec for result in short.results] == [result.spec for result in whole.results]
    assert (short.ops, short.work, short.written) == (whole.ops, whole.work, whole.written)
    assert short.ops == 4 * length + 1
    assert short.after == whole.after
    assert whole.peak <= short.peak < 1.01 * whole.peak
    assert priced(Session(max_iterations=length - 1), *commands).failure.code == "resource_exhausted"
