"""Stacks of cotangents: a Jacobian is a loop of gradients, whatever the chunks, the recorder and the order."""

import gc
import math
import tracemalloc

import numpy as np
import pytest
from driving import failing, run, value
from hypothesis import given, settings
from hypothesis import strategies as st

from op_laws.harness import CpuExecutor, as_operand
from teletape_engine.catalogue.op import CATALOGUE, Op
from teletape_engine.catalogue.operand import Operand
from teletape_engine.commands import (
    Batch,
    BatchJacobian,
    Call,
    Constant,
    Gradient,
    Jacobian,
    MakeVariable,
    TapeOpen,
    TapePause,
    TapeWatch,
    Vjps,
)
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import batch_jacobian, jacobian, vjps
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.walks import peak_bytes
from teletape_engine.errors import InvalidArgumentError, ResourceExhaustedError, TapeConsumedError
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.session.session import Session

STEPS = {
    "sin": lambda c, x: c("sin", x),
    "square": lambda c, x: c("square", x),
    "scale": lambda c, x: c("mul", x, Literal(1.5)),
    "swap": lambda c, x: c("transpose", x),
    "row": lambda c, x: c("strided_slice", x, index=(0, None)),
    "sum": lambda c, x: c("mul", x, c("reduce_sum", x, keepdims=True)),
    "max": lambda c, x: c("sub", x, c("reduce_max", x, axis=-1, keepdims=True)),
    "product": lambda c, x: c("matmul", x, x, transpose_b=True),
    "gather": lambda c, x: c("gather", x, as_operand(c, np.array([0, -1 % x.spec.shape[0], 0]))),
    "softmax": lambda c, x: c("softmax", x),
    "twice": lambda c, x: c("concat", x, x, axis=0),
}
# At most two steps that double the rows: the Jacobian of a Jacobian under a tape keeps all rows of both.
programs = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5).filter(
    lambda steps: steps.count("twice") <= 2
)


class Program(CpuExecutor):
    """A context in which ops are called by name."""

    def __call__(self, name, *inputs, **attrs):
        op = CATALOGUE[name]
        return self.apply(op, inputs, op.attrs(attrs))


class Connections(SpecRecorder):
    __call__ = Program.__call__


def recorded(context, steps, x, tapes):
    """The result of the steps on x under the tapes; the last tape is closed after them."""
    for tape in tapes:
        context.context.open(tape)
        context.context.watch(tape, [x])
    y = x
    for step in steps:
        y = STEPS[step](context, y)
    context.context.pause(tapes[-1])
    return y


def by_loop(context, tape, y, x):
    """A gradient for each element."""
    rows = []
    for at in np.ndindex(y.spec.shape):
        unit = np.zeros(y.spec.shape)
        unit[at] = 1
        [item] = gradient(context, GradientQuery(tape, [y], [x], output_gradients=[as_operand(context, unit)]))
        if item is None:
            return None
        rows.append(item.array if not hasattr(item, "indices") else dense(context, item))
    return np.reshape(rows, (*y.spec.shape, *x.spec.shape))


def dense(context, slices):
    out = np.zeros(slices.dense.shape)
    np.add.at(out, slices.indices.array, slices.values.array)
    return out


X = np.array([[0.3, -1.2, 0.7], [1.1, 0.2, -0.4], [-0.6, 0.9, 0.5]])


@settings(max_examples=60)
@given(programs, st.integers(1, 40))
def test_a_jacobian_is_a_loop_of_gradients_in_chunks_of_any_size(steps, chunk):
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, X)
    y = recorded(context, steps, x, [tape])
    [result] = jacobian(context, GradientQuery(tape, [y], [x], chunk_size=chunk))
    np.testing.assert_allclose(result.array, by_loop(context, tape, y, x), rtol=1e-12, atol=1e-12)


# Steps that double the rows make the second Jacobian, whose rows are computed three times, four times as long.
@settings(max_examples=40)
@given(programs.filter(lambda steps: steps.count("twice") <= 1))
def test_a_jacobian_is_differentiable_and_its_structure_is_foreseen(steps):
    real, foreseen = [], []
    for context, kinds in ((Program(), real), (Connections(), foreseen)):
        outer, inner = Tape(persistent=True), Tape(persistent=True)
        x = as_operand(context, X[:2, :2])  # of X it would be 81 rows or more, each a gradient of its own in the loop
        y = recorded(context, steps, x, [outer, inner])
        [first] = jacobian(context, GradientQuery(inner, [y], [x]))
        [second] = jacobian(context, GradientQuery(outer, [first], [x]))
        context.context.pause(outer)
        kinds += [first.spec, None if second is None else second.spec]
        if kinds is real:
            [one_by_one] = jacobian(context, GradientQuery(outer, [first], [x], chunk_size=1))
            assert (second is None) == (one_by_one is None)
            if second is not None:
                np.testing.assert_allclose(second.array, one_by_one.array, rtol=1e-12, atol=1e-12)
                expected = by_loop(context, outer, first, x)
                np.testing.assert_allclose(second.array, expected, rtol=1e-12, atol=1e-12)
    assert real == foreseen


def test_stacks_of_cotangents_are_gradients_one_after_the_other():
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, X)
    y = recorded(context, ["sin", "product"], x, [tape])
    z = recorded(context, ["square"], x, [tape])
    cts = np.random.default_rng(0).normal(size=(5, *y.spec.shape))
    [derivative] = vjps(context, GradientQuery(tape, [y, z], [x], output_gradients=[as_operand(context, cts), None]))
    for k in range(5):
        [item] = gradient(
            context, GradientQuery(tape, [y, z], [x], output_gradients=[as_operand(context, cts[k]), None])
        )
        np.testing.assert_allclose(derivative.array[k], item.array)


def test_the_jacobian_of_each_example_is_the_block_on_the_diagonal():
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, X)
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = context("mul", context("sin", x), context("reduce_sum", x, axis=1, keepdims=True))
    y = context("concat", y, y, axis=1)
    result = batch_jacobian(context, GradientQuery(tape, [y], [x]))
    [whole] = jacobian(context, GradientQuery(tape, [y], [x]))
    assert result.spec.shape == (3, 6, 3)
    for i in range(3):
        np.testing.assert_allclose(result.array[i], whole.array[i, :, i])
    result = batch_jacobian(context, GradientQuery(tape, [y], [x], chunk_size=4))
    np.testing.assert_allclose(result.array[2], whole.array[2, :, 2])


# -------------------------------------------------------------------------------------------- targets, sources, nothing
def test_what_is_not_connected_is_none_or_zeros():
    context, tape = Program(), Tape(persistent=True)
    x, other, numbers = as_operand(context, X), as_operand(context, np.ones(2)), as_operand(context, np.arange(2))
    y = recorded(context, ["sin"], x, [tape])
    assert jacobian(context, GradientQuery(tape, [y], [other, numbers])) == [None, None]
    jacobians = jacobian(context, GradientQuery(tape, [y], [other, numbers], zeros=True))
    assert [(item.spec.shape, item.spec.dtype) for item in jacobians] == [((3, 3, 2), "float64"), ((3, 3, 2), "int64")]
    assert not any(item.array.any() for item in jacobians)


def test_a_target_that_the_tape_has_not_seen_has_no_jacobian_even_by_itself():
    context, tape = Program(), Tape(persistent=True)
    x, seen = as_operand(context, X), as_operand(context, np.ones(2))
    context.context.open(tape)
    context.context.watch(tape, [seen])
    assert jacobian(context, GradientQuery(tape, [x], [x])) == [None]
    np.testing.assert_array_equal(jacobian(context, GradientQuery(tape, [seen], [seen]))[0].array, np.eye(2))
    integers = context("cast", x, dtype="int32")
    assert jacobian(context, GradientQuery(tape, [integers], [x])) == [None]


def test_a_variable_is_a_target_and_a_source():
    context, tape = Program(), Tape(persistent=True)
    slot = Variable(as_operand(context, np.array([1.0, 2.0])), trainable=True)
    context.context.open(tape)
    y = context("square", context.read(slot))
    np.testing.assert_array_equal(jacobian(context, GradientQuery(tape, [y], [slot]))[0].array, [[2, 0], [0, 4]])
    np.testing.assert_array_equal(jacobian(context, GradientQuery(tape, [slot], [slot]))[0].array, np.eye(2))


@pytest.mark.parametrize(("target", "source"), [((0, 3), (3,)), ((3,), (0,)), ((0,), (0, 2))])
def test_empty_targets_and_sources_have_empty_jacobians(target, source):
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, np.ones(source))
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = context("broadcast_to", context("reduce_sum", x), shape=target)
    [result] = jacobian(context, GradientQuery(tape, [y], [x]))
    assert result.array.shape == (*target, *source)
    stack = as_operand(context, np.ones((0, *target)))
    assert vjps(context, GradientQuery(tape, [y], [x], output_gradients=[stack]))[0].array.shape == (0, *source)


def test_examples_of_none_at_all():
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, np.ones((0, 2)))
    y = recorded(context, ["square"], x, [tape])
    assert batch_jacobian(context, GradientQuery(tape, [y], [x])).array.shape == (0, 2, 2)


def test_two_sources_that_share_a_cotangent_have_values_of_their_own():
    context, tape = Program(), Tape(persistent=True)
    a, b = as_operand(context, X), as_operand(context, X)
    context.context.open(tape)
    context.context.watch(tape, [a, b])
    jacobians = jacobian(context, GradientQuery(tape, [context("add", a, b)], [a, b, a]))
    assert len({item.uid for item in jacobians}) == 3


def test_a_tape_that_is_not_persistent_answers_once_and_several_questions_with_more():
    context, tape = Program(), Tape()
    x = as_operand(context, X)
    y = recorded(context, ["sin"], x, [tape])
    [first] = jacobian(context, GradientQuery(tape, [y], [x], retain_tape=True))
    [again] = jacobian(context, GradientQuery(tape, [y], [x], chunk_size=2))
    np.testing.assert_array_equal(first.array, again.array)
    with pytest.raises(TapeConsumedError):
        jacobian(context, GradientQuery(tape, [y], [x]))
    assert not tape.nodes


WRONG = {
    "another shape": ([np.ones((2, 3))], r"float64\[2, 3\].*must be float64\[k, 3, 3\]"),
    "another dtype": ([np.ones((2, 3, 3), np.float32)], "must be float64"),
    "two lengths": ([np.ones((2, 3, 3)), np.ones((4, 3, 3))], r"must be float64\[2, 3, 3\]"),
    "none at all": ([None], "number of cotangents is not known"),
    "a scalar": ([np.float64(1.0)], "a stack of output gradients"),
}


@pytest.mark.parametrize("why", WRONG)
def test_wrong_stacks_are_refused_and_the_tape_can_still_be_asked(why):
    weights, text = WRONG[why]
    context, tape = Program(), Tape()
    x = as_operand(context, X)
    y = recorded(context, ["sin"], x, [tape])
    seeds = [None if item is None else context.constant(np.asarray(item)) for item in weights]
    with pytest.raises(InvalidArgumentError, match=text):
        vjps(context, GradientQuery(tape, [y] * len(seeds), [x], output_gradients=seeds))
    assert not tape.consumed
    with pytest.raises(InvalidArgumentError, match="1 targets, but 2 stacks"):
        vjps(context, GradientQuery(tape, [y], [x], output_gradients=[None, None]))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((2,), r"Shape \(2,\) must have rank at least 2"),
        ((), r"Shape \(\) must have rank"),
        ((1, 3), r"Need first dimension of target shape \(\(1, 3\)\) and source shape \(\(3, 3\)\) to match."),
    ],
)
def test_examples_have_to_match(shape, text):
    context, tape = Program(), Tape()
    x, y = as_operand(context, X), as_operand(context, np.ones(shape))
    with pytest.raises(InvalidArgumentError, match=text):
        batch_jacobian(context, GradientQuery(tape, [y], [x]))
    assert not tape.consumed


# --------------------------------------------------------------------------------------------------------------- memory
def network(session, width, layers=2):
    """A network of width in and out on a persistent tape t: x, weights, y."""
    rng = np.random.default_rng(0)
    run(session, Constant("x", rng.normal(size=(1, width))), TapeOpen("t", persistent=True), TapeWatch("t", ("x",)))
    last = "x"
    for i in range(layers):
        run(
            session,
            MakeVariable(f"w{i}", rng.normal(size=(width, width)) / math.sqrt(width)),
            Call("matmul", (last, f"w{i}"), (f"a{i}",)),
            Call("tanh", (f"a{i}",), (f"y{i}",)),
        )
        last = f"y{i}"
    run(session, TapePause("t"), Call("reshape", (last,), ("y",), {"shape": (width,)}))
    return last


def test_a_network_of_64_in_and_64_out_needs_no_64_passes(monkeypatch):
    session = Session()
    y = network(session, 64)
    calls, real = [], Op.__call__

    def counted(op, *args, **attrs):
        if not any(isinstance(arg, Operand) for arg in args):  # on arrays, not inside a rule
            calls.append(op.name)
        return real(op, *args, **attrs)

    monkeypatch.setattr(Op, "__call__", counted)
    run(session, Jacobian("t", (y,), ("x",), ("J",)))
    monkeypatch.undo()
    assert calls.count("matmul") == 2
    a = [value(session, f"a{i}")[0] for i in range(2)]
    w = [value(session, f"w{i}") for i in range(2)]
    expected = (w[0] * (1 - np.tanh(a[0]) ** 2)) @ (w[1] * (1 - np.tanh(a[1]) ** 2))
    np.testing.assert_allclose(value(session, "J").reshape(64, 64), expected.T, rtol=1e-9)


def test_the_callers_bound_holds():
    width, bound = 256, 200_000
    session = Session()
    y = network(session, width)
    run(session, Jacobian("t", (y,), ("x",), ("whole",)))
    run(session, Jacobian("t", (y,), ("x",), ("first",), max_bytes=bound))  # what a first run keeps is not its peak
    gc.collect()
    tracemalloc.start()
    try:
        run(session, Jacobian("t", (y,), ("x",), ("J",), max_bytes=bound))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    answer = width * width * 8
    # The bound is of cotangents; an op's rule also has arrays of its own, tanh in float64 two.
    assert answer < most < answer + 2.25 * bound
    np.testing.assert_allclose(value(session, "J"), value(session, "whole"), rtol=1e-12, atol=1e-15)


def test_a_bound_below_one_row_is_refused_with_the_numbers():
    session = Session()
    y = network(session, 64)
    failure = failing(session, Jacobian("t", (y,), ("x",), ("J",), max_bytes=100))
    assert failure.code == "resource_exhausted"
    assert "one of the 64 rows" in failure.message
    assert "max_bytes is 100: raise it" in failure.message
    assert failure.details["needed"] > 100 == failure.details["bound"]
    assert failing(session, Jacobian("t", (y,), ("x",), ("K",), max_bytes=0)).code == "invalid_argument"
    run(session, Jacobian("t", (y,), ("x",), ("L",)))  # nothing is lost


def test_the_sessions_memory_bounds_it_too():
    session = Session(memory_limit=400_000)
    y = network(session, 64)  # about 70 KB; the answer takes 32
    run(session, Jacobian("t", (y,), ("x",), ("J",)))
    failure = failing(session, Jacobian("t", (y,), ("w0", "w1"), ("K", "L")))  # 64 times 32 KB each
    assert failure.code == "resource_exhausted"
    assert "are left in the session: release values or tapes, or ask for less" in failure.message
    assert failure.details["answer"] == 2 * 64**3 * 8
    with pytest.raises(ResourceExhaustedError):
        raise ResourceExhaustedError(failure.message)
    run(session, Jacobian("t", (y,), ("x",), ("M",)))


def test_between_chunks_it_is_reported_and_can_be_stopped():
    session, report, question = Session(), [], []
    y = network(session, 8)
    jacobian = Jacobian("t", (y,), ("x",), ("J",), chunk_size=2)
    answer = session.execute(Batch((jacobian,)), progress=lambda *where: report.append(where))
    assert answer.failure is None
    assert [where[2:] for where in report if where[2:]] == [(0, 4), (1, 4), (2, 4), (3, 4)]

    def stop():
        question.append(None)
        return len(question) > 3  # before the command, and before two of its chunks

    failure = session.execute(Batch((Jacobian("t", (y,), ("x",), ("K",), chunk_size=2),)), cancelled=stop).failure
    assert failure.code == "cancelled"
    run(session, Jacobian("t", (y,), ("x",), ("L",)))  # nothing is lost


def test_a_rows_price_counts_what_lives_together():
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, np.ones(100))
    y = recorded(context, ["sin"] * 50, x, [tape])
    assert 2 * 800 <= peak_bytes(tape, [y.uid], {x.uid}) <= 4 * 800  # not fifty times
    wide = Tape(persistent=True)
    context.context.open(wide)
    context.context.watch(wide, [x])
    parts = [context("sin", x) for _ in range(10)]
    total = context("add_n", *parts)
    assert 10 * 800 <= peak_bytes(wide, [total.uid], {x.uid}) <= 14 * 800


# ------------------------------------------------------------------------------------------------------------- commands
def test_commands_answer_structure_and_name_the_answers():
    session = Session()
    y = network(session, 4)
    stack = np.eye(4)[:, None, :]
    [result] = run(session, Jacobian("t", (y,), ("x", "w0"), ("J", None)))
    assert result.kinds == ("dense", "dense")
    [result] = run(session, BatchJacobian("t", (y,), ("x",), ("B",)))
    assert result.kinds == ("dense",)
    [result] = run(session, Vjps("t", (y,), ("x",), ("V",), (stack,)))
    np.testing.assert_allclose(value(session, "V")[:, 0], value(session, "J")[0, :, 0])
    np.testing.assert_allclose(value(session, "B")[0], value(session, "J")[0, :, 0])
    run(session, Gradient("t", (y,), ("x",), ("g",), retain_tape=True))
    assert failing(session, Jacobian("t", (y,), ("x",), ("J", "K"))).code == "invalid_argument"
    assert failing(session, Jacobian("t", (y,), ("x",), ("Z",), predicted=("none",))).code == "structure_mismatch"
    assert failing(session, Jacobian("t", ("nobody",), ("x",), ("Z2",))).code == "unknown_id"
    assert failing(session, Jacobian("t", (y,), ("x",), ("Z3",), unconnected="some")).code == "invalid_argument"


def test_more_questions_to_a_tape_that_is_not_persistent():
    session = Session()
    run(session, Constant("x", np.ones(3)), TapeOpen("t"), TapeWatch("t", ("x",)), Call("sin", ("x",), ("y",)))
    run(
        session,
        Gradient("t", ("y",), ("x",), ("g",), retain_tape=True),
        Jacobian("t", ("y",), ("x",), ("J",), retain_tape=True),
    )
    run(session, Vjps("t", ("y",), ("x",), ("v",), (np.ones((2, 3)),)))
    assert failing(session, Jacobian("t", ("y",), ("x",), ("K",))).code == "tape_consumed"
