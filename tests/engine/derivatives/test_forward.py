"""Forward mode: over the whole catalogue against the backward pass, and the order in which who sees whom."""

import gc
import itertools
import re
import weakref

import numpy as np
import pytest
from driving import X, failing, run, state_of, value, watched

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case, CpuExecutor, as_operand, dense, random_like
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE, Trait
from teletape_engine.catalogue.rule import NOT_REGISTERED
from teletape_engine.commands import (
    AccumulatorClose,
    AccumulatorOpen,
    AccumulatorResume,
    Assign,
    Call,
    Constant,
    ContextSwitch,
    Declare,
    Gradient,
    Jvp,
    MakeVariable,
    TapeOpen,
    TapePause,
    TapeWatch,
)
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, NoGradientRegisteredError, TapeStateError
from teletape_engine.recording.accumulators import Accumulator
from teletape_engine.recording.spec_recorder import SpecRecorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable
from teletape_engine.session.session import Session
from teletape_engine.spec import DTYPES

ONES = np.ones(3, np.float32)
DIFFERENTIABLE = sorted(op.name for op in CATALOGUE.values() if not op.expand and NOT_REGISTERED not in op.vjp)


def cases(op, dtype="float64"):
    """The op on its samples, where it takes the dtype and an input has gradients."""
    for sample in op.samples():
        case = Case(op, sample, DTYPES[dtype])
        try:
            bound = case.bound()
        except InvalidArgumentError:
            continue
        if case.differentiable() and bound.spec.differentiable:
            yield case


def inner(a, b):
    """Of two real arrays; of complex ones the real inner product, in which TensorFlow's vjp is the transpose."""
    return float(np.real(np.vdot(a, b)))


def started(case, recorder, tapes=()):
    """The inputs as values of the recorder, and an accumulator opened inside `tapes` with random tangents."""
    results = [as_operand(recorder, operand) for operand in case.inputs]
    for tape in tapes:
        recorder.context.open(tape)
        recorder.context.watch(tape, [results[i] for i in case.differentiable()])
    accumulator = Accumulator()
    tangents = [random_like(case.inputs[i], seed=i) for i in case.differentiable()]
    for i, t in zip(case.differentiable(), tangents, strict=True):
        accumulator.watch(results[i], as_operand(recorder, np.asarray(t)))
    recorder.context.open_accumulator(accumulator)
    return results, accumulator, tangents


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_tangent_is_the_transpose_of_the_gradient(name, dtype):
    for case in cases(CATALOGUE[name], dtype):
        recorder = CpuExecutor()
        with case.backend.quiet():
            inputs, accumulator, tangents = started(case, recorder)
            result = case.applied(recorder, inputs)
            ct = random_like(result.array, seed=9)
            back = case.vjp(ct)
        tangent = accumulator.tangent(result)
        forward = 0.0 if tangent is None else inner(ct, tangent.array)
        shares = [
            inner(back[i], t) for i, t in zip(case.differentiable(), tangents, strict=True) if back[i] is not None
        ]
        assert tangent is None or tangent.spec is result.spec
        loose = 1e-9 if result.spec.dtype.itemsize >= 8 else {4: 1e-6, 2: 1e-2}[result.spec.dtype.itemsize]
        np.testing.assert_allclose(forward, sum(shares), rtol=loose, atol=loose)


# TensorFlow's gradient of this one takes labels that add up to 1 for granted: elsewhere its Jacobian is not symmetric.
# betainc and zeta have derivatives by their last input alone.
TWICE = [
    name
    for name in DIFFERENTIABLE
    if name not in ("softmax_cross_entropy", "betainc", "zeta")
    and not {Trait.FIRST_ORDER, Trait.IMPLICIT} & CATALOGUE[name].traits
]


@pytest.mark.parametrize("name", TWICE)
def test_hessian_vector_products_agree_in_all_three_orders(name):
    for case in list(cases(CATALOGUE[name]))[:2]:
        ct = random_like(case.run(), seed=9)
        with case.backend.quiet():
            reverse = outer_tape(case, ct)
            over_reverse = accumulated_gradient(case, ct)
            over_forward = taped_tangent(case, ct)
        for expected, item, other in zip(reverse, over_reverse, over_forward, strict=True):
            np.testing.assert_allclose(item, expected, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(other, expected, rtol=1e-8, atol=1e-8)


def outer_tape(case, ct):
    """Reverse over reverse: H t, since H is symmetric."""
    recorder, outer, tape = CpuExecutor(), Tape(), Tape()
    inputs, accumulator, tangents = started(case, recorder, (outer, tape))
    recorder.context.close_accumulator(accumulator)
    result = case.applied(recorder, inputs)
    sources = [inputs[i] for i in case.differentiable()]
    gradients = gradient(recorder, GradientQuery(tape, [result], sources, output_gradients=[as_operand(recorder, ct)]))
    results = [(item, t) for item, t in zip(gradients, tangents, strict=True) if item is not None]
    targets = [getattr(item, "values", item) for item, _ in results]
    seeds = [as_operand(recorder, rows(item, t)) for item, t in results]
    return filled(case, gradient(recorder, GradientQuery(outer, targets, sources, output_gradients=seeds)))


def rows(item, t):
    """The part of a dense tangent that a sparse gradient has rows for."""
    return np.asarray(t)[item.indices.array] if hasattr(item, "indices") else np.asarray(t)


def accumulated_gradient(case, ct):
    """Forward over reverse."""
    recorder, tape = CpuExecutor(), Tape()
    inputs, accumulator, _ = started(case, recorder)
    recorder.context.open(tape)
    recorder.context.watch(tape, [inputs[i] for i in case.differentiable()])
    result = case.applied(recorder, inputs)
    gradients = gradient(
        recorder,
        GradientQuery(
            tape, [result], [inputs[i] for i in case.differentiable()], output_gradients=[as_operand(recorder, ct)]
        ),
    )
    return filled(case, [None if item is None else tangent_of(accumulator, item) for item in gradients])


def tangent_of(accumulator, item):
    if not hasattr(item, "indices"):
        return accumulator.tangent(item)
    values = accumulator.tangent(item.values)
    return None if values is None else type(item)(values, item.indices, item.dense)


def taped_tangent(case, ct):
    """Reverse over forward."""
    recorder, tape = CpuExecutor(), Tape()
    inputs, accumulator, _ = started(case, recorder, (tape,))
    result = case.applied(recorder, inputs)
    sources = [inputs[i] for i in case.differentiable()]
    tangent = accumulator.tangent(result)
    if tangent is None:
        return filled(case, [None] * len(sources))
    return filled(
        case, gradient(recorder, GradientQuery(tape, [tangent], sources, output_gradients=[as_operand(recorder, ct)]))
    )


def filled(case, result):
    return [
        np.zeros_like(case.inputs[i]) if item is None else np.asarray(dense(item))
        for i, item in zip(case.differentiable(), result, strict=True)
    ]


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_who_has_a_tangent_is_known_without_arrays(name):
    """Alone and in a tape."""
    op = CATALOGUE[name]
    for case, count in itertools.product(cases(op), (0, 1)):
        has = []
        for recorder in (CpuExecutor(), SpecRecorder()):
            tapes = [Tape() for _ in range(count)]
            inputs, accumulator, _ = started(case, recorder, tapes)
            try:
                with case.backend.quiet():
                    result = case.applied(recorder, inputs)
            except NoGradientRegisteredError as error:
                has.append(str(error))
                continue
            tangent = accumulator.tangent(result)
            has.append((tangent is not None, tangent and tangent.spec, [len(tape.nodes) for tape in tapes]))
        assert has[0] == has[1], f"tapes: {count}"


# ------------------------------------------------------------------------------------------------------ who sees whom
def cube(recorder, x):
    mul = CATALOGUE["mul"]
    return recorder.apply(mul, (recorder.apply(mul, (x, x)), x))


@pytest.fixture
def recorder():
    return CpuExecutor()


@pytest.fixture
def x(recorder):
    return as_operand(recorder, np.array(2.0))


def opened(recorder, x, *, tangent=1.0):
    accumulator = Accumulator()
    accumulator.watch(x, as_operand(recorder, np.array(tangent)))
    recorder.context.open_accumulator(accumulator)
    return accumulator


def number(item):
    return None if item is None else float(item.array)


def test_an_outer_accumulator_sees_the_inner_ones_work_and_not_the_other_way(recorder, x):
    outer, inner = opened(recorder, x), opened(recorder, x)
    y = cube(recorder, x)
    first = inner.tangent(y)
    assert [number(item) for item in (first, outer.tangent(y), outer.tangent(first))] == [12, 12, 12]
    assert inner.tangent(outer.tangent(y)) is None
    assert inner.tangent(first) is None


def test_third_order(recorder, x):
    a, b, c = (opened(recorder, x) for _ in range(3))
    y = recorder.apply(CATALOGUE["mul"], (cube(recorder, x), x))
    assert number(a.tangent(b.tangent(c.tangent(y)))) == 24 * 2


def test_they_leave_in_any_order(recorder, x):
    outer, inner = opened(recorder, x), opened(recorder, x)
    y = cube(recorder, x)
    recorder.context.close_accumulator(outer)
    z = cube(recorder, x)
    recorder.context.close_accumulator(inner)
    assert number(outer.tangent(inner.tangent(y))) == 12
    assert outer.tangent(z) is None
    assert number(inner.tangent(z)) == 12
    assert outer.tangent(inner.tangent(z)) is None


def test_a_tape_that_resumes_inside_lies_inside(recorder, x):
    tape = Tape(persistent=True)
    recorder.context.open(tape)
    recorder.context.watch(tape, [x])
    accumulator = opened(recorder, x)
    early = cube(recorder, x)
    recorder.context.pause(tape)
    recorder.context.open(tape)
    late = cube(recorder, x)
    results = [gradient(recorder, GradientQuery(tape, [accumulator.tangent(item)], [x]))[0] for item in (early, late)]
    assert [number(item) for item in results] == [12, None]


def test_an_error_in_a_rule_leaves_the_context_as_it_was(recorder, x, monkeypatch):
    tape = Tape()
    recorder.context.open(tape)
    recorder.context.watch(tape, [x])
    opened(recorder, x)
    monkeypatch.setattr(bind(CATALOGUE["square"], (x.spec,)), "_jvp_rules", {1: ((0, lambda t, retained: 1 / 0),)})
    with pytest.raises(ZeroDivisionError):
        recorder.apply(CATALOGUE["square"], (x,))
    assert recorder.context.tapes == [tape]
    assert len(recorder.context.accumulators) == 1


def test_a_read_carries_the_variables_tangent_whatever_its_version(recorder):
    variable = Variable(as_operand(recorder, np.array(2.0)), trainable=True)
    before = recorder.read(variable)
    accumulator = opened(recorder, variable)
    first = cube(recorder, recorder.read(variable))
    variable.assign(as_operand(recorder, np.array(3.0)))
    second = cube(recorder, recorder.read(variable))
    assert [number(accumulator.tangent(item)) for item in (variable, first, second)] == [1, 12, 27]
    assert accumulator.tangent(before) is None


def test_a_tangent_lives_as_long_as_its_value(recorder, x):
    accumulator = opened(recorder, x)
    y = cube(recorder, x)
    watch = weakref.ref(accumulator.tangent(y))
    assert len(accumulator.tangents()) == 2  # x and y; what lay between is gone
    del y
    gc.collect()
    assert watch() is None
    assert len(accumulator.tangents()) == 1


def test_a_tangent_is_priced_before_it_is_computed():
    recorder = CpuExecutor()
    x = as_operand(recorder, np.ones(1000))
    accumulator = Accumulator()
    accumulator.watch(x, as_operand(recorder, np.ones(1000)))
    recorder.context.open_accumulator(accumulator)
    before = recorder.memory.spent
    recorder.apply(CATALOGUE["exp"], (x,))
    assert recorder.memory.spent - before == 2 * 8000


def test_an_op_without_a_derivative_is_refused_where_it_runs(recorder):
    image = as_operand(recorder, np.ones((1, 2, 2, 3)))
    declared = set()
    accumulator = Accumulator(declared)
    accumulator.watch(image, image)
    recorder.context.open_accumulator(accumulator)
    with pytest.raises(NoGradientRegisteredError, match="AdjustContrastv2"):
        recorder.apply(CATALOGUE["adjust_contrast"], (image, Literal(2.0)))
    declared.add("AdjustContrastv2")
    result = recorder.apply(CATALOGUE["adjust_contrast"], (image, Literal(2.0)))
    assert accumulator.tangent(result) is None


# ------------------------------------------------------------------------------------------------------------- commands
SQUARE = Call("square", ("x",), ("y",))
OPEN = AccumulatorOpen("a", ("x",), (ONES,))


def test_the_commands_of_a_tangent():
    session = Session()
    kinds = run(
        session, Constant("x", X), OPEN, SQUARE, AccumulatorClose("a"), Call("square", ("y",), ("z",)),
        Jvp("a", ("y", "z", "x"), ("ty", None, "tx"), predicted=("dense", "none", "dense")),
    )  # fmt: skip
    assert kinds[0].kinds == ("dense", "none", "dense")
    np.testing.assert_array_equal(value(session, "ty"), 2 * X)
    np.testing.assert_array_equal(value(session, "tx"), ONES)
    run(session, Jvp("a", ("z",), ("tz",), unconnected="zero"))
    np.testing.assert_array_equal(value(session, "tz"), 0 * X)
    run(session, AccumulatorResume("a"), Call("square", ("y",), ("w",)), Jvp("a", ("w",), ("tw",)))
    np.testing.assert_array_equal(value(session, "tw"), 4 * X**3)
    assert session.describe("a") == {"id": "a", "kind": "accumulator", "recording": True, "tangents": 3}


def test_a_hessian_vector_product_by_commands():
    session = Session()
    gradient = Gradient("t", ("s",), ("x",), ("g",))
    put, *todo = watched(SQUARE, Call("mul", ("y", "x"), ("c",)), Call("reduce_sum", ("c",), ("s",)), gradient)
    run(session, put, OPEN, *todo, Jvp("a", ("g",), ("hv",)))
    np.testing.assert_array_equal(value(session, "hv"), 6 * X)


def test_a_variable_as_a_primal_and_numbers_as_tangents():
    session = Session()
    run(
        session, MakeVariable("v", np.float32(3.0).reshape(())), AccumulatorOpen("a", ("v",), (Literal(2),)),
        Call("square", ("v",), ("y",)), Assign("v", Literal(5.0)), Call("square", ("v",), ("z",)),
        Jvp("a", ("y", "z", "v"), ("ty", "tz", "tv")),
    )  # fmt: skip
    assert [float(value(session, item)) for item in ("ty", "tz", "tv")] == [12, 20, 2]


@pytest.mark.parametrize(
    ("todo", "text"),
    [
        (AccumulatorOpen("b", ("x", "x"), (ONES, ONES)), "specified as a primal multiple times"),
        (AccumulatorOpen("b", ("x",), (ONES, ONES)), "1 primals, but 2 tangents"),
        (AccumulatorOpen("b", ("x",), (Literal(1.0),)), r"float32\[3\] and its tangent float32\[\]"),
        (AccumulatorOpen("b", ("x",), (X.astype(np.float64),)), "float64"),
        (AccumulatorOpen("b", ("nobody",), (ONES,)), "unknown id 'nobody'"),
        (AccumulatorResume("a"), "Accumulator is already recording."),
        (Jvp("a", ("x",), ("t", "u")), "1 targets, but 2 output ids"),
        (Jvp("a", ("x",), ("t",), unconnected="some"), "Unknown value for unconnected_gradients: 'some'"),
        (Jvp("a", ("x",), ("t",), predicted=("none",)), r"\['dense'\], predicted was \['none'\]"),
        (Jvp("x", ("x",), ("t",)), "is a tensor, expected an accumulator"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(todo, text):
    session = Session()
    run(session, Constant("x", X), OPEN)
    assert re.search(text, failing(session, todo).message)


def test_closing_twice_is_an_error():
    session = Session()
    run(session, Constant("x", X), OPEN, AccumulatorClose("a"))
    assert failing(session, AccumulatorClose("a")).message == "Accumulator is not recording."


def test_it_can_follow_in_one_context_at_a_time():
    session = Session()
    run(session, Constant("x", X), OPEN)
    assert "another context" in failing(session, ContextSwitch("c"), AccumulatorResume("a")).message
    run(session, AccumulatorClose("a"), ContextSwitch("c"), AccumulatorResume("a"), SQUARE, Jvp("a", ("y",), ("t",)))
    np.testing.assert_array_equal(value(session, "t"), 2 * X)


def test_a_failure_before_it_opens_leaves_both_sides_agreeing():
    session = Session()
    answer = failing(
        session, Constant("x", X), Call("square", ("nobody",), ("p",)), AccumulatorOpen("a", ("x", "p"), (ONES, ONES))
    )
    assert "nobody" in answer.message
    run(session, SQUARE, AccumulatorClose("a"), Jvp("a", ("y",), ("t",)))
    np.testing.assert_array_equal(value(session, "t"), 2 * X)


def test_a_release_ends_it():
    session = Session()
    run(session, Constant("x", X), OPEN, SQUARE, releases=("a",))
    assert state_of(session).context(0).context.accumulators == []
    assert "released" in failing(session, Jvp("a", ("y",), ("t",))).message


def test_its_tangents_count_as_bytes_in_use():
    session = Session()
    run(session, Constant("x", np.ones(1000, np.float32)), AccumulatorOpen("a", ("x",), (np.ones(1000, np.float32),)))
    assert session.bytes_in_use() == 8000
    run(session, Call("exp", ("x",), ("y",)))
    assert session.bytes_in_use() == 16000
    run(session, releases=("y",))
    assert session.bytes_in_use() == 8000


def test_a_declared_op_has_no_tangent():
    session = Session()
    image = np.ones((1, 2, 2, 3), np.float32)
    contrast = Call("adjust_contrast", ("i", Literal(2.0)), ("y",))
    begin = Constant("i", image), AccumulatorOpen("a", ("i",), (image,))
    failure = failing(session, *begin, contrast)
    assert (failure.code, failure.details["op_type"]) == ("no_gradient_registered", "AdjustContrastv2")
    run(session, Declare("AdjustContrastv2"), Call("adjust_contrast", ("i", Literal(2.0)), ("z",)))


def test_tapes_and_accumulators_share_one_order(recorder, x):
    session = Session()
    run(
        session, Constant("x", X), TapeOpen("t", True), TapeWatch("t", ("x",)), OPEN, SQUARE, Jvp("a", ("y",), ("ty",)),
        TapePause("t"), Gradient("t", ("ty",), ("x",), ("g",)),
    )  # fmt: skip
    np.testing.assert_array_equal(value(session, "g"), 2 * ONES)


def test_a_context_refuses_what_is_active_already(recorder, x):
    accumulator = opened(recorder, x)
    with pytest.raises(TapeStateError, match="already recording"):
        recorder.context.open_accumulator(accumulator)
