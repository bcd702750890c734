"""The backward pass: its three algebras agree on random programs, slices, declarations, and the time that it takes."""

from typing import NamedTuple

import numpy as np
import pytest
from driving import apply, executor
from hypothesis import example, given, settings
from hypothesis import strategies as st

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from counting import calls
from teletape_engine.catalogue.slices import GradientKind, SlicesValue, SparseGradient
from teletape_engine.derivatives.backward import backward
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import Declarations, GradientQuery
from teletape_engine.errors import GradientRegisteredError, NoGradientRegisteredError
from teletape_engine.recording.cotangents import Presence
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Variable, kind_of

SHAPE = (3, 2)
F64 = np.float64


# ------------------------------------------------------------------------------------------------------ random programs
SMOOTH = ("neg", "tanh", "sin", "add", "sub", "mul", "matmul", "gather", "concat", "mean", "spread", "read")
ROUGH = (
    *SMOOTH,
    "floor",
    "relu",
    "maximum",
    "where",
    "to_int",
    "stop_gradient",
    "identity",
    "assign",
    "rint",
    "table",
    "table",
)


class Step(NamedTuple):
    """One op of a random program; `a` and `b` choose among the values made so far."""

    op: str
    a: int
    b: int
    rows: tuple[int, int, int]


class Program(NamedTuple):
    """A random program: its steps, and which values are the targets and the sources."""

    steps: list[Step]
    targets: list[int]
    sources: list[int]


def programs(ops):
    place = st.integers(0, 30)
    row = st.integers(0, 2)
    step = st.builds(Step, st.sampled_from(ops), place, place, st.tuples(row, row, row))
    some = st.lists(place, min_size=1, max_size=4)
    return st.builds(Program, st.lists(step, min_size=1, max_size=14), some, some)


def start(context):
    """Two watched values, one that is not watched, and a variable."""
    random = np.random.default_rng(0)
    results = [context.constant(random.uniform(-1.5, 1.5, SHAPE)) for _ in range(3)]
    return results, Variable(context.constant(random.uniform(-1.5, 1.5, SHAPE)), trainable=True)


def perform(context, steps, result, variable):
    """Runs the steps; every value has the shape [3, 2]."""
    weights = context.constant(np.array([[0.5, -1.0], [0.25, 0.75]]))
    result = list(result)
    for step in steps:
        a, b = result[step.a % len(result)], result[step.b % len(result)]
        rows = context.constant(np.array(step.rows, np.int64 if step.a % 2 else np.int32))
        match step.op:
            case "matmul":
                item = apply(context, "matmul", a, weights)
            case "gather":
                item = apply(context, "gather", a, rows)
            case "table":  # the variable itself is looked up: slices
                item = apply(context, "gather", context.read(variable), rows)
            case "concat":
                item = apply(context, "gather", apply(context, "concat", a, b, axis=0), rows)
            case "mean":
                item = apply(context, "sub", a, apply(context, "reduce_mean", b, axis=0, keepdims=True))
            case "spread":
                item = apply(
                    context, "broadcast_to", apply(context, "reduce_sum", a, axis=1, keepdims=True), shape=SHAPE
                )
            case "read":
                item = apply(context, "mul", a, context.read(variable))
            case "assign":
                variable.assign(context.constant(variable.value.array + 0.5))
                continue
            case "where":
                item = apply(context, "where", apply(context, "less", a, b), a, b)
            case "to_int":
                item = apply(context, "cast", apply(context, "cast", a, dtype="int32"), dtype="float64")
            case "add" | "sub" | "mul" | "maximum":
                item = apply(context, step.op, a, b)
            case _:
                item = apply(context, step.op, a)
        result.append(item)
    return result


def dense(result):
    """A gradient's numbers, slices spread."""
    if not isinstance(result, SlicesValue):
        return None if result is None else np.asarray(result.array)
    whole = np.zeros(result.dense.shape)
    np.add.at(whole, result.indices.array, result.values.array)
    return whole


def recorded(program, *, outer):
    """The program under a persistent tape, and with an outer tape under that one too."""
    context = executor()
    result, variable = start(context)
    tapes = [Tape(persistent=True) for _ in range(1 + outer)]
    for tape in tapes:
        context.context.open(tape)
        context.context.watch(tape, result[:2])
    result = [*perform(context, program.steps, result, variable), variable]
    context.context.pause(tapes[-1])
    targets, sources = ([result[i % len(result)] for i in chosen] for chosen in (program.targets, program.sources))
    return context, tapes[-1], targets, [*sources, variable]


LOOKUPS = Program(
    [Step("table", 0, 0, (2, 0, 2)), Step("table", 1, 0, (1, 1, 0)), Step("add", 3, 4, (0, 0, 0))], [4, 5], [0]
)


@settings(max_examples=150)
@given(programs(ROUGH))
@example(LOOKUPS)
def test_what_presence_predicts_is_what_arrays_give(program):
    context, tape, targets, sources = recorded(program, outer=False)
    with np.errstate(all="ignore"):
        gradients = gradient(context, GradientQuery(tape, targets, sources))
    seeds = [
        (target.uid, GradientKind.DENSE)
        for target in targets
        if not isinstance(target, Variable) or tape.watches(target)
    ]
    presence = backward(tape, seeds, {source.uid for source in sources}, Presence())
    predicted = [presence.get(source.uid) for source in sources]
    assert [kind_of(item) for item in gradients] == [
        GradientKind.NONE if item is None else GradientKind.SLICES if isinstance(item, SparseGradient) else item
        for item in predicted
    ]
    for item, foreseen in zip(gradients, predicted, strict=True):
        if isinstance(item, SlicesValue):
            assert (item.values.spec, item.indices.spec, item.dense) == foreseen


@settings(max_examples=80)
@given(programs(ROUGH))
@example(LOOKUPS)
def test_a_recorded_pass_gives_what_a_bare_one_gives(program):
    with np.errstate(all="ignore"):
        bare, tape, targets, sources = recorded(program, outer=False)
        expected = gradient(bare, GradientQuery(tape, targets, sources))
        context, tape, targets, sources = recorded(program, outer=True)
        gradients = gradient(context, GradientQuery(tape, targets, sources))
    assert [kind_of(item) for item in gradients] == [kind_of(item) for item in expected]
    for item, other in zip(gradients, expected, strict=True):
        if item is not None:
            np.testing.assert_allclose(dense(item), dense(other), rtol=1e-12, atol=1e-12)


@settings(max_examples=60)
@given(programs(SMOOTH))
def test_the_gradient_is_the_slope(program):
    context = executor()
    result, variable = start(context)
    tape = Tape()
    context.context.open(tape)
    context.context.watch(tape, result[:2])
    results = perform(context, program.steps, result, variable)
    last = [results[i % len(results)] for i in program.targets]
    sources = [*result[:2], variable]
    outcome = [dense(item) for item in gradient(context, GradientQuery(tape, last, sources))]
    random = np.random.default_rng(1)
    directions = [random.standard_normal(SHAPE) for _ in sources]

    def at(h):
        there = executor()
        begin = [there.constant(item.array + h * d) for item, d in zip(result[:2], directions, strict=False)]
        begin.append(there.constant(result[2].array))
        reference = Variable(there.constant(variable.value.array + h * directions[2]), trainable=True)
        results = perform(there, program.steps, begin, reference)
        return sum(float(results[i % len(results)].array.sum()) for i in program.targets)

    slope = (at(1e-6) - at(-1e-6)) / 2e-6
    predicted = sum(0 if item is None else float((item * d).sum()) for item, d in zip(outcome, directions, strict=True))
    assert slope == pytest.approx(predicted, rel=1e-4, abs=1e-4)


# --------------------------------------------------------------------------------------------------------------- slices
def looked_up(*lookups, extra=False):
    """The gradient of a table that was looked up (and perhaps used whole) in this order."""
    context = executor()
    table = Variable(context.constant(np.arange(8.0).reshape(4, 2)), trainable=True)
    tape = Tape()
    context.context.open(tape)
    results = []
    for indices in lookups:
        results.append(apply(context, "gather", context.read(table), context.constant(indices)))
    if extra:
        results.append(apply(context, "mul", context.read(table), 3.0))
    return gradient(context, GradientQuery(tape, results, [table]))[0]


def test_rows_named_twice_stay_twice():
    result = looked_up(np.array([2, 0, 2]))
    assert result.indices.array.tolist() == [2, 0, 2]
    assert dense(result).tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]]


def test_slices_are_concatenated_and_their_index_dtypes_meet():
    result = looked_up(np.array([1, 1], np.int32), np.array([3], np.int64))
    assert sorted(result.indices.array.tolist()) == [1, 1, 3]
    assert result.indices.array.dtype == np.int64
    assert result.values.spec.shape == (3, 2)


def test_dense_and_slices_are_dense():
    result = looked_up(np.array([1, 1]), extra=True)
    assert kind_of(result) is GradientKind.DENSE
    assert result.array.tolist() == [[3, 3], [5, 5], [3, 3], [3, 3]]


def test_a_lookup_in_what_was_computed_is_dense_at_the_source():
    context = executor()
    x = context.constant(np.ones((4, 2)))
    tape = Tape(persistent=True)
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = apply(context, "mul", x, 2.0)
    rows = apply(context, "gather", y, context.constant(np.array([3])))
    kinds = [kind_of(item) for item in gradient(context, GradientQuery(tape, [rows], [x, y]))]
    assert kinds == [GradientKind.DENSE, GradientKind.SLICES]


# --------------------------------------------------------------------------------------------------------- declarations
def contrasted(context, tape, *, on_the_path):
    image, other = (context.constant(np.ones((2, 2, 3), np.float32)) for _ in range(2))
    context.context.open(tape)
    context.context.watch(tape, [image, other])
    crossing = apply(context, "adjust_contrast", image, 2.0)
    return (
        image,
        other,
        apply(context, "add", crossing, apply(context, "neg", other)),
        (image if on_the_path else other),
    )


@pytest.mark.parametrize("on_the_path", [True, False])
def test_an_op_without_a_gradient_is_an_error_also_off_the_path(on_the_path):
    context, tape = executor(), Tape(persistent=True)
    _, _, y, source = contrasted(context, tape, on_the_path=on_the_path)
    with pytest.raises(
        NoGradientRegisteredError, match=r"^gradient registry has no entry for: AdjustContrastv2$"
    ) as caught:
        gradient(context, GradientQuery(tape, [y], [source]))
    assert caught.value.details["op"] == "adjust_contrast"


def test_what_the_target_does_not_depend_on_is_no_matter():
    context, tape = executor(), Tape(persistent=True)
    image, other, _, _ = contrasted(context, tape, on_the_path=True)
    z = apply(context, "neg", other)
    assert [kind_of(item) for item in gradient(context, GradientQuery(tape, [z], [image, other]))] == [
        GradientKind.NONE,
        GradientKind.DENSE,
    ]


def test_after_a_stop_it_makes_no_difference_either():
    context, tape = executor(), Tape()
    image = context.constant(np.ones((2, 2, 3), np.float32))
    context.context.open(tape)
    context.context.watch(tape, [image])
    y = apply(context, "mul", image, apply(context, "stop_gradient", apply(context, "adjust_contrast", image, 2.0)))
    (result,) = gradient(context, GradientQuery(tape, [y], [image]))
    assert result.array.tolist() == np.ones((2, 2, 3)).tolist()


def test_declared_late_it_is_none():
    context, tape = executor(), Tape()
    image, other, y, _ = contrasted(context, tape, on_the_path=True)
    declarations = Declarations()
    declarations.declare_no_gradient("AdjustContrastv2")
    query = GradientQuery(tape, [y], [image, other], declarations=declarations)
    kinds = [kind_of(derivative) for derivative in gradient(context, query)]
    assert kinds == [GradientKind.NONE, GradientKind.DENSE]


def test_a_type_is_declared_once_and_never_against_the_catalogue():
    declarations = Declarations()
    declarations.declare_no_gradient("SomebodysOp")
    for op_type in ("SomebodysOp", "MatMul"):
        with pytest.raises(GradientRegisteredError, match=f"^Registering two gradient with name '{op_type}'!$"):
            declarations.declare_no_gradient(op_type)
        with pytest.raises(GradientRegisteredError):
            declarations.register(op_type)
    assert declarations.no_gradient == {"SomebodysOp"}


# -------------------------------------------------------------------------------------------------------------- linear
def chain(ops, question):
    """Records a chain of `ops` ops, every fourth of whose values is used twice, and computes its gradient."""
    context = executor()
    x = context.constant(np.ones(2, np.float32))
    tape = Tape(persistent=True)
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = z = x
    for i in range(ops):
        y, z = apply(context, "add", y, z if i % 4 == 0 else 0.5), y
        if i % 4 == 0:
            y = apply(context, "mul", y, 0.5)
    context.context.pause(tape)
    assert question(context, tape, y, x) is not None


def arrays(context, tape, y, x):
    return gradient(context, GradientQuery(tape, [y], [x]))[0]


def presence(context, tape, y, x):
    return backward(tape, [(y.uid, GradientKind.DENSE)], {x.uid}, Presence())[x.uid]


def operands(context, tape, y, x):
    outer = Tape()
    context.context.open(outer)
    context.context.watch(outer, [x])
    return gradient(context, GradientQuery(tape, [y], [x]))[0]


def some_of_the_leaves(context, tape, y, x):
    context.context.watch(tape, [context.constant(np.ones(1, np.float32))])
    return arrays(context, tape, y, x)


@pytest.mark.parametrize("question", [arrays, presence, operands, some_of_the_leaves])
def test_the_work_is_linear(question):
    chain(10, question)  # what is computed once and kept
    short, long = (calls(lambda ops=ops: chain(ops, question)) for ops in (1_000, 4_000))
    assert long < 4.2 * short


@pytest.mark.parametrize("question", [arrays, presence, operands, some_of_the_leaves])
def test_the_depth_has_no_limit(question):
    chain(80_000, question)


def test_the_work_is_linear_with_many_lookups():
    def lookups(n):
        slices = looked_up(*[np.array([i % 4]) for i in range(n)])
        assert slices.indices.spec.shape == (n,)

    lookups(10)
    short, long = (calls(lambda n=n: lookups(n)) for n in (100, 400))
    assert long < 4.4 * short
