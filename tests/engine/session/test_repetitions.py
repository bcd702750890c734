"""Batches whose structure comes again run as plans: nothing that a caller can see depends on it."""

import sys
from dataclasses import asdict, replace
from functools import partial
from unittest.mock import ANY

import numpy as np
import pytest
from driving import attach, run, state_of

from op_laws.harness import is_array, typed_input
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import (
    AccumulatorOpen,
    Assign,
    Batch,
    Call,
    CallFunction,
    Constant,
    ContextSwitch,
    DefineFunction,
    Explain,
    Fetch,
    Gradient,
    MakeVariable,
    OnFailure,
    Repetition,
    TapeOpen,
    TapePause,
    TapeReset,
    TapeResume,
    TapeWatch,
    structure_of,
)
from teletape_engine.commands.results import Fetched
from teletape_engine.plans.ir import instructions
from teletape_engine.plans.policy import POLICY, Policy
from teletape_engine.plans.run.c import loaded
from teletape_engine.recording.provenance import expanded
from teletape_engine.recording.values import Literal, Value, Variable, untyped
from teletape_engine.session.repeats import repetitions
from teletape_engine.session.repeats.repetitions import Repetitions
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES

X = np.linspace(-1, 1, 6).astype(np.float32)
W = np.array([0.5, -2.0, 0.25, 1.0, 3.0, -0.125], np.float32)
FIRST = 1 << 40


@pytest.fixture(params=["on", "python", "force"])
def policy(request, monkeypatch):
    if request.param == "on" and loaded.LIBRARY_LOADED is None:
        pytest.skip("librows.so.1 is not built: no C compiler")
    for name, setting in asdict(Policy.of(request.param)).items():
        monkeypatch.setattr(POLICY, name, setting)
    return POLICY


class Pair:
    """Two sessions that get the same batches. One runs every command; the other one recognises structures.

    Attributes:
        planned: How many batches ran as plans.
    """

    def __init__(self, monkeypatch, **limits):
        self.planned = 0
        planned = Repetitions._planned

        def counted(steps, *args, **how):
            answer = planned(steps, *args, **how)
            self.planned += answer is not None
            return answer

        monkeypatch.setattr(Repetitions, "_planned", counted)
        self.renew(**limits)

    def renew(self, **limits):
        """Other sessions."""
        self.plain, self.other = Session(**limits), Session(**limits)
        self.plain._repetitions.run = lambda batch, cancelled: None

    def execute(self, batch, as_repetition=False, **how):
        """The answer, which is that of both."""
        wanted = self.plain.execute(batch, **how)
        if as_repetition:
            structure, contents = structure_of(batch)
            structure.check(contents)
            batch = Repetition(structure, contents, batch.client, batch.seq, batch.nonce)
        answer = self.other.execute(batch, **how)
        assert answer.failure == wanted.failure
        assert len(answer.results) == len(wanted.results)
        for a, b in zip(answer.results, wanted.results, strict=True):
            if isinstance(b, Fetched):
                for x, y in zip(
                    *[array[:2] if isinstance(array, tuple) else (array,) for array in (a.array, b.array)], strict=True
                ):
                    assert x.tobytes() == y.tobytes()
                    assert (x.shape, x.dtype) == (y.shape, y.dtype)
                a = replace(a, array=b.array)
            assert a == b
        self.compare()
        return answer

    def run(self, *todo, releases=(), **how):
        """The results of commands that all happen."""
        answer = self.execute(Batch(todo, releases), **how)
        assert answer.failure is None, answer.failure
        return answer.results

    def compare(self):
        """What the sessions have is the same, to the bit."""
        a, b = state_of(self.plain), state_of(self.other)
        assert a.entries.keys() == b.entries.keys()
        for name, entry in a.entries.items():
            other = b.entries[name]
            assert type(other) is type(entry)
            if isinstance(entry, Variable):
                assert (other.version, other.name) == (entry.version, entry.name)
                entry, other = entry.value, other.value
            if isinstance(entry, Value):
                x, y = np.asarray(entry.array), np.asarray(other.array)
                assert x.tobytes() == y.tobytes()
                assert entry.spec is other.spec
                assert type(entry.array) is type(other.array)
        assert a.released.keys() == b.released.keys()
        assert a._highest == b._highest
        assert a._contexts.keys() == b._contexts.keys()
        for key, executor in a._contexts.items():
            assert len(executor.context.tapes) == len(b._contexts[key].context.tapes)
            assert _shape_of_log(executor) == _shape_of_log(b._contexts[key])
        assert len(a.value_reads.log) == len(b.value_reads.log)


def _shape_of_log(executor):
    """The records of a log, with values numbered in the order in which they first occur."""
    numbers = {}

    def number(uid):
        return None if uid is None else numbers.setdefault(uid, len(numbers))

    records = [record for whole in executor.provenance.records for record in expanded(whole)]
    # What a batch gets as constants is noted at its beginning, and what it has of numbers at its end.
    return sorted(
        [(getattr(what, "name", str(what)), len(inputs), str(where)) for what, inputs, output, where in records]
    ), len({number(uid) for _, inputs, output, _ in records for uid in (*inputs, output)})


@pytest.fixture
def pair(policy, monkeypatch):
    pair = Pair(monkeypatch)
    pair.run(Constant("x", X), MakeVariable("v", W), MakeVariable("rate", np.float32(0.5)), ContextSwitch("c"))
    return pair


def often(pair, make, times=6, planned=None, **how):
    """Executes what `make` returns for each number; by default all but the first three are plans."""
    before = pair.planned
    for number in range(times):
        answer = pair.execute(make(number), **how)
    wanted = planned
    if planned is None:
        wanted = times - POLICY.first - 1
    assert pair.planned - before == wanted
    return answer


def test_a_plan_of_a_batch_with_other_results_is_an_error_where_plans_are_compared(monkeypatch):
    for name, setting in asdict(replace(Policy.of("force"), compiled=False)).items():
        monkeypatch.setattr(POLICY, name, setting)
    session = Session()
    run(session, Constant("x", X))

    def execute(number):
        names = ids(number)
        pairs = zip(["x", *names], names[:8], strict=False)
        return session.execute(Batch((*[Call("tanh", (a,), (b,)) for a, b in pairs], Fetch(names[7])))).failure

    assert execute(0) is None
    monkeypatch.setitem(instructions._BY_KEYWORD, np.tanh, np.sin)
    failure = execute(1)
    assert failure.code == "internal"
    assert failure.message.startswith("a plan gives float32[6] as array 0 that differs from the interpreter's")


def test_a_batch_with_a_call_of_several_results(pair):
    def make(number):
        a, e, v, s = [f"{name}{number}" for name in "aevs"]
        calls = [Call("eigh", (a,), (e, v)), Call("mul", (v, e), (s,))]
        calls += [Call(op, (s,), (f"{op}{number}",)) for op in ("abs", "square", "neg")]
        matrix = np.diag([3.0, 1.0, 2.0]) * np.float64(number + 1)
        return Batch((Constant(a, matrix), *calls, Fetch(e), *[Fetch(call.outputs[0]) for call in calls[2:]]))

    often(pair, make)
    often(pair, lambda number: make(number + 6), planned=6, as_repetition=True)


def bare(number):
    """A number of JSON without a dtype."""
    return untyped(np.array(number))


def ids(number):
    """Names of new ids, as a client that counts."""
    return [FIRST + 20 * number + i for i in range(20)]


def training_step(number, rate=0.5, data=X, fetch=True, literal=Literal):
    tape, x, a, b, loss, grad, step = ids(number)[:7]
    todo = (
        ContextSwitch("c"),
        Constant(x, data),
        TapeOpen(tape),
        Call("mul", (x, "v"), (a,), {}, "train.py:3"),
        Call("tanh", (a,), (b,)),
        Call("reduce_mean", (b,), (loss,), {"axis": None, "keepdims": False}),
        TapePause(tape),
        Gradient(tape, (loss,), ("v",), (grad,), predicted=("dense",)),
        Call("mul", (literal(rate), grad), (step,)),
        Assign("v", step, "sub"),
    )
    todo += (Fetch(loss),) if fetch else ()
    return Batch(todo, (tape, a, b, x, grad, step, ids(number - 1)[4]))


@pytest.mark.parametrize("targets", [("e",), ("v",), ("e", "v")])
def test_a_gradient_by_some_of_several_results(pair, targets):
    matrix = np.diag([3.0, 1.0, 2.0])
    pair.run(MakeVariable("m", matrix))

    def make(number):
        tape, grad, *computed = ids(number)[:5]
        named = dict(zip("ev", computed, strict=False))
        todo = (TapeOpen(tape), Call("eigh", ("m",), tuple(computed[:2])), Call("neg", (computed[0],), (computed[2],)))
        question = Gradient(tape, tuple([named[name] for name in targets]), ("m",), (grad,))
        return Batch((ContextSwitch("c"), *todo, TapePause(tape), question, Fetch(grad)), (tape, grad, *computed))

    often(pair, make)


# ---------------------------------------------------------------------------------------------------- what is equal
def test_a_training_step(pair):
    often(pair, training_step)


def test_a_training_step_with_numbers_of_json(pair):
    often(pair, lambda number: training_step(number, literal=bare))
    for rates in (lambda number: 2, lambda number: number, lambda number: 0.5 / (number + 1)):
        before = pair.planned
        first = 10 * before
        often(
            pair,
            lambda number, rates=rates, first=first: training_step(first + number, rates(number), literal=bare),
            planned=ANY,
        )
        assert pair.planned > before


def test_a_number_of_json_is_not_one_of_a_program(pair):
    def alone(number, literal):
        a, b, c = ids(number)[:3]
        todo = Call("square", (literal(3),), (a,)), Call("neg", (a,), (b,)), Call("abs", (b,), (c,)), Fetch(c)
        return Batch(todo, (a, b, c))

    for place, (literal, dtype) in enumerate(((Literal, "int32"), (bare, "float32"), (Literal, "int32"))):
        first = 10 * place
        answer = often(pair, lambda number, literal=literal, first=first: alone(first + number, literal), planned=ANY)
        assert answer.results[-1].array.dtype.name == dtype


def test_a_list_of_json_has_the_dtype_of_what_it_meets_each_time(pair):
    def make(number):
        a, b, c = ids(number)[:3]
        values = np.arange(6) + number
        todo = Call("add", ("x", untyped(values)), (a,)), Call("square", (a,), (b,)), Call("neg", (b,), (c,)), Fetch(c)
        return Batch(todo, (a, b, c))

    often(pair, make, planned=0)


def test_a_repetition(pair):
    often(pair, training_step, planned=5, as_repetition=True)


def test_other_shapes_have_other_plans(pair):
    pair.run(MakeVariable("u", np.float32(3)))

    def step(number):
        tape, x, y, grad = ids(number)[:4]
        data = X[: 1 + number % 3]
        todo = Constant(x, data), TapeOpen(tape), Call("mul", (x, "u"), (y,)), Gradient(tape, (y,), ("u",), (grad,))
        return Batch((*todo, Fetch(y), Fetch(grad)), (tape, x, y, grad))

    for number in range(18):
        pair.execute(step(number))
    assert pair.planned >= 8
    assert len([text for text in state_of(pair.other).repetitions._steps if "tape.open" in text]) == 3


def test_numbers_that_change_share_a_plan(pair):
    often(
        pair,
        lambda number: training_step(number, rate=0.5 / (number + 1)),
        times=10,
        planned=8 - POLICY.first,
    )
    assert [step.free for step in state_of(pair.other).repetitions._steps.values() if step.free] == [(0,)]


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "pow", "maximum", "squared_difference", "less"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_in_ops(monkeypatch, op, dtype):
    """As both inputs, of both signs of zero, and of numbers that are no float32."""
    pair = Pair(monkeypatch)
    pair.run(Constant("x", (X + 1.5).astype(dtype)))

    def step(number):
        tape, a, b, c, d, grad = ids(number)[:6]
        factor = [0.1, -0.0, 0.0, 3.0, 1e-30, 1 / 3, 7.0, 2.5][number % 8]
        todo = (
            TapeOpen(tape),
            TapeWatch(tape, ("x",)),
            Call(op, ("x", Literal(factor)), (a,)),
            Call(op, (Literal(factor + 1), "x"), (b,)),
            Call("where", ("q", a, b), (c,)) if op == "less" else Call("mul", (a, b), (c,)),
            Call("cast", (c,), (d,), {"dtype": dtype}),
            Gradient(tape, (d,), ("x",), (grad,)),
            Fetch(d),
            Fetch(grad, optional=True),
        )
        return Batch(todo, (tape, a, b, c, d, grad))

    pair.run(Constant("q", np.ones(X.shape, bool)))
    for number in range(16):
        pair.execute(step(number))
    assert pair.planned or op in ("pow", "maximum", "squared_difference", "less")


def test_constants_of_numbers(pair):
    """Short numbers, long ones, and ones that were read."""

    def step(number):
        a, b, c, d, e, f = ids(number)[:6]
        rate = [0.5, 1 / 3, 2.0, 0.1234567][number % 4]
        todo = Constant(a, Literal(rate)), Constant(b, Literal(3)), Call("mul", (a, "x"), (c,)), Call("exp", (c,), (d,))
        return Batch(
            (*todo, Call("add", (d, Literal(rate)), (e,)), Call("neg", (b,), (f,)), Fetch(e), Fetch(a)), (d, e)
        )

    often(pair, step, planned=8 - POLICY.first, times=10)


def test_what_stays(pair):
    """Results, constants, a gradient that there is not, and values under several ids."""

    def step(number):
        tape, x, a, b, grad, none = ids(number)[:6]
        todo = (
            Constant(x, X + number),
            TapeOpen(tape),
            TapeWatch(tape, (x,)),
            Call("identity", (x,), (a,)),
            Call("reshape", (a,), (b,), {"shape": (2, 3)}),
            Gradient(tape, (b,), (x, "v"), (grad, none)),
            Fetch(b, 2),
            Fetch(none, optional=True),
            Fetch("v"),
        )
        return Batch(todo, (tape,))

    often(pair, step)


def test_variables_between_assignments(pair):
    def step(number):
        a, b, c, d, e = ids(number)[:5]
        todo = (
            Fetch("v"),
            Call("mul", ("v", Literal(0.5)), (a,)),
            Assign("v", a),
            Call("add", ("v", "v"), (b,)),
            Assign("v", b, "add"),
            Fetch("v"),
            Assign("rate", Literal(0.25)),
            Assign("rate", Literal(2.0), "sub"),
            Call("mul", ("v", "rate"), (c,)),
            Call("identity", ("v",), (d,)),
            Assign("v", c),
            Call("neg", ("v",), (e,)),
            Fetch(e),
        )
        return Batch(todo, (a, b, c))

    often(pair, step)


def test_nested_tapes(pair):
    def step(number):
        outer, inner, a, b, first, c, second = ids(number)[:7]
        todo = (
            TapeOpen(outer),
            TapeOpen(inner, parents=(outer,)),
            TapeWatch(outer, ("x",)),
            TapeWatch(inner, ("x",)),
            Call("pow", ("x", Literal(3.0)), (a,)),
            Call("sin", (a,), (b,)),
            TapePause(inner),
            Gradient(inner, (b,), ("x",), (first,)),
            Call("mul", (first, Literal(number + 0.5)), (c,)),
            TapePause(outer),
            Gradient(outer, (c,), ("x",), (second,), output_gradients=("v",)),
            Fetch(first),
            Fetch(second),
        )
        return Batch(todo, (outer, inner, a, b, first, c, second))

    for number in range(6):
        pair.execute(step(number))
    often(pair, lambda number: Batch(step(number + 10).commands[:8], step(number + 10).releases))


def test_pause_resume_reset(pair):
    def step(number):
        tape, a, b, c, grad = ids(number)[:5]
        todo = (
            TapeOpen(tape),
            TapeWatch(tape, ("x",)),
            Call("exp", ("x",), (a,)),
            TapeReset(tape),
            TapeWatch(tape, ("x",)),
            Call("mul", ("x", "x"), (b,)),
            TapePause(tape),
            Call("mul", (b, b), (c,)),
            TapeResume(tape),
            Gradient(tape, (b, c, a), ("x",), (grad,)),
            Fetch(grad),
        )
        return Batch(todo, (tape, a, b, c))

    often(pair, step)


def test_output_gradients_zeros_and_inline_tensors(pair):
    def step(number):
        tape, a, b, c, g1, g2 = ids(number)[:6]
        todo = (
            TapeOpen(tape),
            TapeWatch(tape, ("x",)),
            Call("mul", ("x", np.full(6, number, np.float32)), (a,)),
            Call("reduce_sum", (a,), (b,), {"axis": None, "keepdims": False}),
            Call("exp", ("x",), (c,)),
            Gradient(tape, (a, b, c), ("x", "v"), (g1, g2), (X * number, None, Literal(1.0)), "zero"),
            Fetch(g1),
        )
        return Batch((*todo[:-2], replace(todo[-2], output_gradients=(X * number, None, "x")), todo[-1]), (tape, a, c))

    often(pair, step)


def test_random_numbers_with_a_counter(pair):
    def step(number):
        counter, a, b, c, d = ids(number)[:5]
        attrs = {"shape": (4,), "dtype": "float32"}
        seed = np.int64(7)
        todo = (
            Constant(counter, np.int64(number)),
            Call("random_normal", (seed, counter), (a,), attrs),
            Call("random_uniform", (seed, Literal(number)), (b,), attrs),
            Call("mul", (b, a), (c,)),
            Call("neg", (c,), (d,)),
            Fetch(c),
        )
        return Batch(todo, (counter, a, b))

    answers = [pair.execute(step(number)) for number in range(6)]
    assert answers[0].failure is None, answers[0].failure
    assert pair.planned >= 2
    assert len({answer.results[0].array.tobytes() for answer in answers}) == 6


def test_functions_in_a_batch(pair):
    steps = Call("mul", ("a", Literal(2.0)), ("b",)), Call("tanh", ("b",), ("c",)), Assign("w", "c", "add")
    pair.run(DefineFunction("f", ("a", "w"), steps, ("c",)))

    def step(number):
        tape, y, grad = ids(number)[:3]
        todo = TapeOpen(tape), TapeWatch(tape, ("x",)), CallFunction("f", ("x", "v"), (y,)), Fetch(y), Fetch("v")
        return Batch((*todo, Gradient(tape, (y,), ("x",), (grad,)), Fetch(grad)), (tape, y))

    often(pair, step)
    pair.run(releases=("f",))
    pair.run(DefineFunction("g", ("a", "w"), (Call("exp", ("a",), ("c",)), Assign("w", "c", "add")), ("c",)))
    for number in range(10, 16):
        batch = step(number)
        pair.execute(
            replace(
                batch, commands=(*batch.commands[:2], replace(batch.commands[2], function="g"), *batch.commands[3:])
            )
        )


def test_names_and_temporaries(pair):
    """Ids that are texts or low numbers are remembered after their release, temporaries are free again."""
    pair.run(Constant("old0", X), Constant("old1", X))

    def step(number):
        a, b, c, d = [f"{letter}{number}" for letter in "abc"] + [1000 + number]
        todo = Call("exp", ("x",), (a,)), Call("neg", (a,), (b,)), Call("abs", (b,), (c,)), Call("sin", (c,), (d,))
        return Batch((*todo, Fetch(d)), (a, d), temporaries=(b, "t"))

    often(pair, step)
    for name in ("a4", 1004, "b4", "c4"):
        pair.execute(Batch((Fetch(name),)))
        pair.execute(Batch((Constant(name, X),)))


def test_released_ids_that_were_there(pair):
    """What the batch takes ends with it; so does what it does not mention."""

    def step(number):
        x, other, a, b, c, d, e = ids(number)[:7]
        pair.run(Constant(x, X), MakeVariable(other, X))
        todo = Call("exp", (x,), (a,)), Assign(other, a), Call("neg", (other,), (b,)), Call("abs", (b,), (c,))
        return Batch((*todo, Call("sin", (c,), (d,)), Call("cos", (d,), (e,)), Fetch(e)), (x, other, a, e, FIRST - 5))

    often(pair, step)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_every_op_forward_and_backward(monkeypatch):
    """Every sample of the catalogue under a tape, then again with its arrays in another order."""
    for name, setting in (asdict(Policy.of("force")) | {"first": 0}).items():
        monkeypatch.setattr(POLICY, name, setting)
    pair, number, planned = Pair(monkeypatch), 0, set()
    for name, op in CATALOGUE.items():
        for sample in op.samples():
            inputs = [typed_input(value, DTYPES["float32"]) for value in sample.inputs]
            if not all(is_array(value) or isinstance(value, bool | int | float) for value in inputs):
                continue
            pair.renew()
            before = pair.planned
            for order in (1, -1):
                number += 1
                tape, y, *rest = ids(number)
                arrays = {rest[i]: value for i, value in enumerate(inputs) if is_array(value)}
                operands = tuple([rest[i] if is_array(value) else Literal(value) for i, value in enumerate(inputs)])
                grads = tuple(range(10**15 + 100 * number, 10**15 + 100 * number + len(arrays)))
                todo = (
                    *[Constant(x, array[::order].copy() if array.ndim else array) for x, array in arrays.items()],
                    TapeOpen(tape),
                    TapeWatch(tape, tuple(arrays)),
                    Call(name, operands, (y,), sample.attrs),
                    Gradient(tape, (y,), tuple(arrays), grads),
                    Fetch(y),
                    *[Fetch(grad, optional=True) for grad in grads],
                )
                pair.execute(Batch(todo, (tape, *arrays) if number % 4 in (0, 3) else (tape, *arrays, y, *grads)))
            if pair.planned > before:
                planned.add(name)
    assert len(planned) > 0.75 * len(CATALOGUE), sorted(CATALOGUE.keys() - planned)


# ------------------------------------------------------------------------------------------ what is run one by one
@pytest.mark.parametrize(
    "extra",
    [
        (TapeOpen("t", persistent=True),),
        (TapeOpen("t"),),
        (AccumulatorOpen("t", (), ()),),
        (Assign("v", np.float32([1, 2]), "scatter_update", np.array([0, 1])),),
        (Call("nonzero", ("x",), ("m",)),),
        (MakeVariable("m", X),),
    ],
)
def test_batches_that_are_no_steps(pair, extra):
    def step(number):
        a, b, c, d = ids(number)[:4]
        todo = Call("exp", ("x",), (a,)), Call("neg", (a,), (b,)), Call("abs", (b,), (c,)), Call("sin", (c,), (d,))
        return Batch((*extra, *todo, Fetch(d)), ("t", "m", a, b, c, d) if number % 2 else ("t", "m", d, c, b, a))

    for number in range(8):
        pair.execute(step(number))
        state_of(pair.plain).released.clear()
        state_of(pair.other).released.clear()
    if not (isinstance(extra[0], TapeOpen) and not extra[0].persistent):
        assert not pair.planned


def test_a_tape_that_is_open_records_the_batch(pair):
    often(pair, training_step)
    pair.run(ContextSwitch("c"), TapeOpen("outer", persistent=True))
    often(pair, lambda number: training_step(number + 10), planned=0)
    pair.run(ContextSwitch("c"), Gradient("outer", (ids(15)[4],), ("v",), ("g",)), Fetch("g", optional=True))
    pair.run(releases=("outer",))
    often(pair, lambda number: training_step(number + 20), planned=6)


def test_sparse_gradients(pair):
    pair.run(MakeVariable("table", np.arange(12, dtype=np.float32).reshape(4, 3)), Constant("i", np.array([1, 1, 3])))

    def step(number):
        tape, rows, total, grad = ids(number)[:4]
        todo = TapeOpen(tape), Call("gather", ("table", "i"), (rows,)), Call("reduce_sum", (rows,), (total,))
        return Batch(
            (
                *todo,
                Gradient(tape, (total,), ("table",), (grad,)),
                Assign("table", grad, "scatter_sub"),
                Fetch("table"),
            ),
            (tape, rows),
        )

    for number in range(6):
        pair.execute(step(number))


def test_a_batch_that_ran_as_no_plan_is_not_read_for_ever(policy, monkeypatch):
    session = Session()
    run(session, Constant("x", X))
    reads = []
    read = repetitions.text_and_contents
    monkeypatch.setattr(repetitions, "text_and_contents", lambda batch: reads.append(batch) or read(batch))
    for number in range(100):
        a, b, c, d = ids(number)[:4]
        todo = Call("exp", ("x",), (a,)), Call("nonzero", (a,), (b,)), Call("abs", (b,), (c,)), Call("abs", (c,), (d,))
        run(session, *todo, releases=(a, b, c, d))
    assert 0 < len(reads) < 20


# ---------------------------------------------------------------------------------------------------- errors
BROKEN = {
    "an id that is in use": lambda b: replace(b, commands=(*b.commands[:1], Constant("x", X), *b.commands[2:])),
    "an unknown id": lambda b: replace(
        b,
        commands=(
            *b.commands[:3],
            Call("mul", (b.commands[1].id, "?"), b.commands[3].outputs, {}, "train.py:3"),
            *b.commands[4:],
        ),
    ),
    "another shape": lambda b: replace(b, commands=(b.commands[0], Constant(b.commands[1].id, X[:4]), *b.commands[2:])),
}


@pytest.mark.parametrize("why", BROKEN)
@pytest.mark.parametrize("on_failure", OnFailure)
def test_errors_in_a_later_repetition(pair, why, on_failure):
    def step(number):
        return replace(training_step(number), on_failure=on_failure)

    often(pair, step)
    answer = pair.execute(BROKEN[why](step(7)))
    assert answer.failure is not None
    pair.execute(step(8))
    pair.execute(Batch((Fetch(ids(7)[4]),)))


def test_a_value_that_is_refused(pair):
    """A check inside a plan: the variable before it is as the commands leave it."""

    def step(number):
        a, b, c, d = ids(number)[:4]
        todo = (
            Call("add", ("v", "v"), (a,)),
            Assign("v", a),
            Call("check_numerics", (a,), (b,), {"message": "m"}, "here.py:1"),
            Call("neg", (b,), (c,)),
            Call("neg", (c,), (d,)),
            Fetch(d),
        )
        return Batch(todo, (a, b, c, d))

    often(pair, step)
    pair.run(Assign("v", np.full(6, 3e38, np.float32)))
    answer = pair.execute(step(7))
    assert (answer.failure.index, answer.failure.where, answer.failure.op) == (2, "here.py:1", "check_numerics")
    pair.run(Assign("v", W))
    often(pair, lambda number: step(number + 10), planned=6)


def test_poisoned_ids(pair):
    often(pair, training_step)
    pair.execute(Batch((Call("mul", ("x", "?"), ("bad",)),)))

    def step(number):
        batch = training_step(number)
        return replace(
            batch,
            commands=(
                *batch.commands[:3],
                Call("mul", (batch.commands[1].id, "bad"), batch.commands[3].outputs, {}, "train.py:3"),
                *batch.commands[4:],
            ),
        )

    for number in range(10, 14):
        pair.execute(step(number))


def test_a_cancel_and_a_limit(policy, monkeypatch):
    pair = Pair(monkeypatch, memory_limit=4 << 20)
    pair.run(Constant("x", X), MakeVariable("v", W), ContextSwitch("c"))
    often(pair, training_step)
    before = state_of(pair.other).entries["v"].version
    answer = pair.execute(training_step(7), cancelled=lambda: True)
    assert answer.failure.code == "cancelled"
    assert state_of(pair.other).entries["v"].version == before
    large = np.ones(200_000, np.float32)

    def step(number):
        x, a, b, c, d = ids(number)[:5]
        todo = Constant(x, large), Call("exp", (x,), (a,)), Call("neg", (a,), (b,)), Call("abs", (b,), (c,))
        return Batch((*todo, Call("reduce_sum", (c,), (d,)), Fetch(d)), (x, a, b, c, d))

    for number in range(20, 26):
        pair.execute(step(number))
    pair.run(Constant("filler", np.ones(700_000, np.float32)))
    for number in range(30, 34):
        wanted, answer = pair.plain.execute(step(number)), pair.other.execute(step(number))
        assert answer.failure is None or wanted.failure is not None  # a plan takes less memory than its commands


def test_a_client_that_retries(pair):
    facts = attach(pair.plain), attach(pair.other)
    assert facts[0] == facts[1]
    for number in range(6):
        batch = replace(training_step(number), client=facts[0]["client"], seq=number + 1, nonce=bytes([number]) * 16)
        pair.execute(batch)
        version = state_of(pair.other).entries["v"].version
        pair.execute(batch)
        assert state_of(pair.other).entries["v"].version == version


# ---------------------------------------------------------------------------------------------------- explanations
def test_explanations_of_what_stays(pair):
    """A number that was read comes back in a later step; what the step has left is explained as ever."""

    def step(number):
        y, a, b, c, d = ids(number)[:5]
        rate = float(state_of(pair.plain).entries["v"].value.array[0]) if number > 3 else 0.3
        todo = Call("mul", (Literal(rate), "x"), (a,)), Call("exp", (a,), (b,)), Call("add", (b, "v"), (c,))
        return Batch((ContextSwitch("c"), Constant(y, X), *todo, Call("mul", (c, y), (d,)), Fetch(d)), (a, b, c))

    for number in range(8):
        pair.execute(step(number))
        pair.run(Call("reduce_sum", ("v",), (ids(number)[10],)), Fetch(ids(number)[10]), Assign("v", X * number))
    last = ids(7)[4]
    facts = [
        run(
            session,
            ContextSwitch("c"),
            TapeOpen(ids(90)[0]),
            TapeWatch(ids(90)[0], (last,)),
            Call("exp", (last,), (ids(90)[1],)),
            Explain(ids(90)[0], (ids(90)[1],), (last, "v", "x")),
        )[0].facts
        for session in (pair.plain, pair.other)
    ]
    assert facts[0] == facts[1]


# ---------------------------------------------------------------------------------------------------- bounds
def test_what_is_remembered_is_bounded_and_counted(policy, monkeypatch):
    monkeypatch.setattr(repetitions, "_MOST_STRUCTURES", 16)
    session = Session(memory_limit=64 << 20)
    run(session, Constant("x", X))
    for length in range(1, 60):
        for number in range(4):
            a, b, c, d = ids(4 * length + number)[:4]
            todo = Constant(a, np.ones(length, np.float32)), Call("exp", (a,), (b,)), Call("neg", (b,), (c,))
            run(session, *todo, Call("abs", (c,), (d,)), Call("sin", (d,), (d + 1,)), releases=(a, b, c, d, d + 1))
    steps = state_of(session).repetitions
    assert 0 < len(steps._steps) <= 16
    assert steps.remembered_bytes > 0
    before = session.bytes_in_use()
    steps.forget()
    assert steps.remembered_bytes == 0
    assert session.bytes_in_use() <= before


def test_off(monkeypatch):
    monkeypatch.setattr(POLICY, "enabled", False)
    pair = Pair(monkeypatch)
    pair.run(Constant("x", X), MakeVariable("v", W), ContextSwitch("c"))
    often(pair, training_step, planned=0)


# ------------------------------------------------------------------------------------------------------- exactly once
def counting_step(session, number, client):
    """A step that adds 1 to v, and reads what was not made contiguous; as the client's batch `number`."""
    tape, product, turned, loss, grad = [client["first_id"] + 10 * number + i for i in range(5)]
    todo = (
        TapeOpen(tape),
        Call("mul", ("m", "v"), (product,)),
        Call("transpose", (product,), (turned,)),
        Call("reduce_mean", (product,), (loss,), {"axis": None, "keepdims": False}),
        TapePause(tape),
        Gradient(tape, (loss,), ("v",), (grad,), predicted=("dense",)),
        Assign("v", grad, "add"),
        Fetch(turned),
        Fetch(loss),
    )
    releases = (tape, product, turned, loss, grad)
    return Batch(todo, releases, client=client["client"], seq=1 + number, nonce=number.to_bytes(16, "big"))


@pytest.mark.parametrize("error", [MemoryError, RuntimeError])
def test_whatever_fails_while_a_plan_runs_a_batch_happens_once_or_fails(policy, error):
    """The error comes at each call of a function in turn; then the client sends the batch again."""
    session, planned = Session(), Repetitions.run
    run(session, MakeVariable("v", np.float32(0)), Constant("m", np.ones((16, 8), np.float32)))
    client, left = attach(session), 0

    def interrupted(frame, event, argument):
        nonlocal left
        left -= event == "call"
        if event == "call" and left == 0:
            sys.setprofile(None)
            raise error("no memory")

    def fails_at_a_call(steps, batch, cancelled):
        sys.setprofile(interrupted)
        try:
            return planned(steps, batch, cancelled)
        finally:
            sys.setprofile(None)

    step = 0
    for number in range(400):
        left = 0 if number < 8 else number - 7
        session._repetitions.run = partial(fails_at_a_call, session._repetitions)
        batch = counting_step(session, number, client)
        answer = session.execute(batch)
        assert session.execute(batch) is answer
        before, step = step, int(session._state.entries["v"].value.array)
        assert step == before + 1 if answer.failure is None else step in (before, before + 1)
        if number > 8 and left > 0:  # all calls were made
            break
    assert 30 < number < 399


# ------------------------------------------------------------------------------------------------- values and no trace
def repetition(*todo, temporaries):
    """Commands as a batch that comes again, whose ids end with it."""
    structure, contents = structure_of(Batch(todo, temporaries=temporaries, on_failure=OnFailure.ROLLBACK))
    structure.check(contents)
    return Repetition(structure, contents)


def square(x):
    return repetition(
        Constant("x", x),
        TapeOpen("t"),
        TapeWatch("t", ("x",)),
        Call("square", ("x",), ("y",)),
        Call("reduce_sum", ("y",), ("z",)),
        Gradient("t", ("z",), ("x",), ("g",)),
        Fetch("z"),
        Fetch("g"),
        temporaries=("x", "t", "y", "z", "g"),
    )


def test_values_of_a_batch_that_leaves_nothing_leave_no_trace(policy):
    """Other shapes have to be executed first; the session stays one that has nothing."""
    session = Session()
    for x in (X.copy(), X.reshape(2, 3).copy()):
        assert session.values(square(x)) is None
        for _ in range(8):
            answer = session.execute(square(x), explain=True)
            assert answer.failure is None
            session.renew()
        before = session._state
        for number in range(5):
            y = (x + np.float32(number)).astype(np.float32)
            values = session.values(square(y))
            total, gradient = [result.array for result in values.results if isinstance(result, Fetched)]
            assert np.allclose(total, np.sum(y * y))
            assert np.array_equal(gradient, 2 * y)
            session.renew()
        assert session._state is before
        assert not session.listing("tensor", "variable", "tape")
        assert not any(session.knows(name) for name in ("x", "y", "z", "g", "t"))
        assert not session._state.value_reads.log
        assert not session._state.current.provenance.records


def test_values_are_refused_where_something_is_taken_or_stays_or_is_to_stop(policy):
    session = Session()
    for _ in range(8):
        session.execute(square(X), explain=True)
        session.renew()
    assert session.values(square(X)) is not None
    assert session.values(square(X), cancelled=lambda: True) is None
    session.execute(Batch((Constant("a", X),)))
    taking = partial(repetition, Call("square", ("a",), ("y",)), *[Call("neg", ("y",), (f"n{i}",)) for i in range(5)])
    for batch in (lambda: taking(temporaries=("y", *[f"n{i}" for i in range(5)])), lambda: square(X)):
        for _ in range(8):
            session.execute(batch(), explain=True)
    assert session.values(taking(temporaries=("y", *[f"n{i}" for i in range(5)]))) is None
    assert session.names("a")


# ----------------------------------------------------------------------------------------------------------- byte order
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">c8", ">f2", "<f4"])
def test_arrays_of_the_other_byte_order_give_the_same_numbers_through_every_door(policy, dtype):
    """A constant, an op's input, a variable, what is assigned, a constant of a function; often, so that plans run."""
    session, array = Session(), np.arange(1, 7).astype(dtype)
    mine = array.astype(array.dtype.newbyteorder("="))
    steps = (Call("mul", ("x", array), ("y",)),)
    run(session, DefineFunction("f", ("x",), steps, ("y",)), MakeVariable("v", array))
    for number in range(8):
        a, b, c, d, e = ids(number)[:5]
        answer = run(
            session,
            Constant(a, array),
            Call("mul", (array, a), (b,)),
            Call("add", (b, "v"), (c,)),
            Assign("v", array, "set"),
            CallFunction("f", (c,), (d,)),
            Call("add", (d, a), (e,)),
            *[Fetch(name) for name in (a, b, c, d, e, "v")],
            releases=(a, b, c, d, e),
        )
        expected = (mine, mine**2, mine**2 + mine, (mine**2 + mine) * mine, (mine**2 + mine) * mine + mine, mine)
        for result, numbers in zip(answer, expected, strict=True):
            assert result.array.dtype == mine.dtype
            np.testing.assert_allclose(result.array, numbers, rtol=1e-2)
