"""Recording with arrays: what a tape keeps, and the questions that it answers or refuses."""

import gc
import weakref

import numpy as np
import pytest
from driving import apply, executor

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.slices import GradientKind
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError
from teletape_engine.recording.executor import Executor
from teletape_engine.recording.recorder import Recorder
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal, Variable, kind_of

X = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.fixture
def context():
    return executor()


def recording(context, *values, persistent=False):
    tape = Tape(persistent=persistent)
    context.context.open(tape)
    context.context.watch(tape, values)
    return tape


def numbers(answers):
    return [None if answer is None else np.asarray(answer.array).tolist() for answer in answers]


def test_after_a_block_aside_a_tape_is_as_it_was(context):
    x = context.constant(np.ones((400, 400), np.float32))  # a product of them is heavy
    tape = recording(context, x, persistent=True)
    apply(context, "add", x, x)
    before = len(tape.nodes), dict(tape.tracked), tape.unregistered, tape.sparse, tape.heavy
    with tape.aside():
        apply(context, "matmul", x, x)
        apply(context, "nextafter", x, x)
        apply(context, "truncatemod", x, x)
        assert (len(tape.nodes), tape.unregistered, tape.heavy) == (4, True, True)
    assert (len(tape.nodes), dict(tape.tracked), tape.unregistered, tape.sparse, tape.heavy) == before


# ------------------------------------------------------------------------------------------------------------ residuals
@pytest.mark.parametrize(
    ("name", "tracked", "retained"),
    [
        ("relu", "a", "y"),
        ("tanh", "a", "y"),
        ("exp", "a", "y"),
        ("log", "a", "a"),
        ("neg", "a", ""),
        ("floor", "a", ""),
        ("add", "ab", ""),
        ("sub", "ab", ""),
        ("mul", "a", "b"),
        ("mul", "b", "a"),
        ("mul", "ab", "ab"),
        ("div", "a", "b"),
        ("reduce_sum", "a", ""),
        ("reshape", "a", ""),
        ("matmul", "a", "b"),
        ("matmul", "b", "a"),
    ],
)
def test_a_tape_keeps_what_the_tracked_inputs_need_and_no_more(context, name, tracked, retained):
    shape = (2, 2) if name == "matmul" else (4,)
    mapping = {item: context.constant(np.full(shape, 1.5, np.float32)) for item in "ab"}
    tape = recording(context, *(mapping[item] for item in tracked))
    inputs = [mapping[item] for item in "ab"[: len(CATALOGUE[name].inputs)]]
    result = apply(context, name, *inputs, **({"shape": (2, 2)} if name == "reshape" else {}))
    mapping["y"] = result
    assert [id(node) for node in tape.nodes[-1][3]] == [id(mapping[item]) for item in retained]


def test_arrays_die_with_their_last_use(context):
    x = context.constant(X)
    tape = recording(context, x)
    squared = apply(context, "mul", x, x)
    logistic = apply(context, "tanh", squared)
    shifted = apply(context, "add", logistic, 1.0)
    alive = [weakref.ref(item.array) for item in (squared, logistic, shifted)]
    del squared, logistic
    target = shifted
    del shifted
    gc.collect()
    assert [item() is not None for item in alive] == [
        False,
        True,
        True,
    ]  # tanh keeps its result; add and mul keep neither
    gradient(context, GradientQuery(tape, [target], [x]))
    del target
    gc.collect()
    assert [item() is not None for item in alive] == [False, False, False]


def test_a_pass_over_a_non_persistent_tape_frees_each_node_as_it_goes(context, monkeypatch):
    x = context.constant(X)
    tape = recording(context, x)
    y = x
    for _ in range(5):
        y = apply(context, "tanh", y)
    left = []
    plan = tape.nodes[0][0]
    (_, rule), *_ = plan.rules
    watching = plan._replace(rules=((0, lambda ct, retained: (left.append(len(tape.nodes)), rule(ct, retained))[1]),))
    tape.nodes[:] = [(watching, *node[1:]) for node in tape.nodes]
    gradient(context, GradientQuery(tape, [y], [x]))
    assert left == [4, 3, 2, 1, 0]


def test_a_persistent_tape_keeps_its_nodes(context):
    x = context.constant(X)
    tape = recording(context, x, persistent=True)
    y = apply(context, "mul", x, x)
    context.context.pause(tape)
    assert (
        numbers(gradient(context, GradientQuery(tape, [y], [x])))
        == numbers(gradient(context, GradientQuery(tape, [y], [x])))
        == [[1.0, -2.0, 4.0]]
    )
    assert len(tape.nodes) == 1


# ------------------------------------------------------------------------------------------------------------ questions
def test_the_contracts_example_of_a_variable_between_assignments(context):
    v = Variable(context.constant(np.float32(1)), trainable=True)
    tape = recording(context)
    y = apply(context, "mul", context.read(v), context.read(v))
    v.assign(context.constant(np.float32(5)))
    z = apply(context, "mul", context.read(v), 3.0)
    w = apply(context, "mul", context.read(v), context.read(v))
    assert numbers(gradient(context, GradientQuery(tape, [y, z, w], [v]))) == [15.0]


@pytest.mark.parametrize(("source", "expected"), [("x", [6.0]), ("unwatched", [None]), ("y", [1.0]), ("int", [None])])
def test_which_sources_count(context, source, expected):
    x, other, count = (context.constant(item) for item in (np.float32(3), np.float32(3), np.int32(3)))
    tape = recording(context, x)
    y = apply(context, "mul", x, x)
    mapping = {"x": x, "unwatched": other, "y": y, "int": count}
    assert numbers(gradient(context, GradientQuery(tape, [y], [mapping[source]]))) == expected


def test_an_unconnected_source_gets_zeros_of_its_own_shape_and_dtype(context):
    x, other, count = context.constant(X), context.constant(np.ones((2, 2))), context.constant(np.ones(3, np.int32))
    tape = recording(context, x, other)
    (a, b, c) = gradient(context, GradientQuery(tape, [apply(context, "neg", x)], [x, other, count], zeros=True))
    assert a.array.tolist() == [-1, -1, -1]
    assert (b.array.tolist(), b.array.dtype) == ([[0, 0], [0, 0]], np.float64)
    assert (c.array.tolist(), c.array.dtype) == ([0, 0, 0], np.int32)


def test_targets_add_up_and_one_that_is_a_source_adds_its_own_one(context):
    x = context.constant(X)
    tape = recording(context, x, persistent=True)
    y = apply(context, "mul", x, 2.0)
    assert numbers(gradient(context, GradientQuery(tape, [y, x, y], [x, y]))) == [[5.0] * 3, [2.0] * 3]
    assert numbers(gradient(context, GradientQuery(Tape(), [x], [x]))) == [[1.0] * 3]  # not even watched


def test_integer_targets_count_for_nothing(context):
    x = context.constant(X)
    tape = recording(context, x, persistent=True)
    index = apply(context, "argmax", x)
    assert gradient(context, GradientQuery(tape, [index], [x])) == [None]


def test_seeds_broadcast_to_their_target(context):
    x = context.constant(X)
    tape = recording(context, x, persistent=True)
    y = apply(context, "mul", x, 2.0)
    assert numbers(
        gradient(context, GradientQuery(tape, [y], [x], output_gradients=[context.constant(np.float32(3))]))
    ) == [[6.0] * 3]
    assert numbers(
        gradient(context, GradientQuery(tape, [y, y], [x], output_gradients=[None, context.constant(X)]))
    ) == [[3.0, 0.0, 6.0]]


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (np.ones(2, np.float32), r"Incompatible shapes: \[2\] vs. \[3\]"),
        (np.ones((2, 3), np.float32), r"Incompatible shapes: \[2,3\] vs. \[3\]"),
        (np.ones(3), "of dtype float64 for a target of float32, number 0 from 0: cast it"),
    ],
)
def test_seeds_that_do_not_fit_leave_the_tape_as_it_was(context, seed, words):
    x = context.constant(X)
    tape = recording(context, x)
    y = apply(context, "neg", x)
    with pytest.raises(InvalidArgumentError, match=words):
        gradient(context, GradientQuery(tape, [y], [x], output_gradients=[context.constant(seed)]))
    with pytest.raises(InvalidArgumentError, match="1 targets, but 2 output gradients"):
        gradient(context, GradientQuery(tape, [y], [x], output_gradients=[None, None]))
    assert numbers(gradient(context, GradientQuery(tape, [y], [x]))) == [[-1.0] * 3]


def test_a_non_persistent_tape_stops_recording_and_answers_once(context):
    x = context.constant(X)
    tape = recording(context, x)
    y = apply(context, "neg", x)
    gradient(context, GradientQuery(tape, [y], [x]))
    assert context.context.tapes == []
    with pytest.raises(TapeConsumedError):
        gradient(context, GradientQuery(tape, [y], [x]))


def test_a_consumed_tape_still_lists_its_variables(context):
    v = Variable(context.constant(X), trainable=True)
    tape = recording(context)
    y = apply(context, "neg", context.read(v))
    gradient(context, GradientQuery(tape, [y], [v]))
    assert list(tape.variables.values()) == [v]
    assert tape.nodes == []


def test_paused_ops_cut_the_path(context):
    x = context.constant(X)
    tape = recording(context, x)
    a = apply(context, "neg", x)
    context.context.pause(tape)
    b = apply(context, "neg", a)
    context.context.open(tape)
    c = apply(context, "neg", b)
    assert gradient(context, GradientQuery(tape, [c], [x])) == [None]


def test_kinds(context):
    table = context.constant(np.ones((3, 2), np.float32))
    tape = recording(context, table, persistent=True)
    rows = apply(context, "gather", table, context.constant(np.array([0, 2])))
    results = [*gradient(context, GradientQuery(tape, [rows], [table, rows])), None]
    assert [kind_of(item) for item in results] == [GradientKind.SLICES, GradientKind.DENSE, GradientKind.NONE]


# -------------------------------------------------------------------------------------------------------- higher orders
def test_nested_tapes_to_the_third_order(context):
    x = context.constant(np.float64(2))
    tapes = [recording(context, x) for _ in range(3)]
    result = apply(context, "pow", x, 4.0)
    orders = []
    for tape in reversed(tapes):
        (result,) = gradient(context, GradientQuery(tape, [result], [x]))
        orders.append(float(result.array))
    assert orders == pytest.approx([32, 48, 48])


def test_one_persistent_tape_asks_inside_itself_to_the_third_order(context):
    x = context.constant(np.float64(2))
    tape = recording(context, x, persistent=True)
    result = apply(context, "pow", x, 4.0)
    orders = []
    for _ in range(3):
        (result,) = gradient(context, GradientQuery(tape, [result], [x]))
        orders.append(float(result.array))
    assert orders == pytest.approx([32, 48, 48])


def test_tapes_that_leave_out_of_order_still_nest(context):
    x = context.constant(np.float64(3))
    outer, inner = recording(context, x), recording(context, x, persistent=True)
    y = apply(context, "pow", x, 3.0)
    context.context.pause(outer)
    (unseen,) = gradient(context, GradientQuery(inner, [y], [x]))  # the inner records its own, the outer nothing
    context.context.open(outer)
    (seen,) = gradient(context, GradientQuery(inner, [y], [x]))
    total = apply(context, "add", seen, unseen)
    context.context.pause(inner)
    (second,) = gradient(context, GradientQuery(outer, [total], [x]))
    assert (float(seen.array), float(unseen.array), float(second.array)) == pytest.approx((27, 27, 18))


def test_the_answers_of_two_sources_are_two_values_under_an_outer_tape(context):
    a, b = context.constant(X), context.constant(X)
    outer = recording(context, a, b)
    inner = recording(context, a, b)
    y = apply(context, "add", a, b)
    da, db = gradient(context, GradientQuery(inner, [y], [a, b]))
    assert da.uid != db.uid
    assert outer.tracked.keys() >= {y.uid}


@pytest.mark.parametrize("replayable", [False, True])
def test_the_hot_path_notes_a_call_as_every_recorder_does(replayable):
    ways = {Executor.apply: [], Recorder.apply: []}
    for apply_op, noted in ways.items():
        recorder, tape, other = executor(), Tape(replayable=replayable), Tape()
        values = [recorder.constant(X.copy()) for _ in range(2)]
        recorder.context.open(tape)
        recorder.context.open(other)
        recorder.context.watch(tape, values)
        table, image = recorder.constant(np.ones((4, 3), np.float32)), recorder.constant(np.ones((2, 2, 3), np.float32))
        recorder.context.watch(tape, [table, image])
        index = recorder.constant(np.array([0, 2]))
        calls = [("mul", values), ("tanh", values[:1]), ("mul", (values[0], Literal(2.0))), ("gather", (table, index))]
        calls += [("adjust_contrast", (image, Literal(2.0))), ("argmax", values[:1]), ("neg", (index,))]
        first = values[0].uid
        for name, inputs in calls:
            op = CATALOGUE[name]
            result = apply_op(recorder, op, inputs, op.attrs({}), "a.py:1")
            noted.append((name, result.uid - first, result.uid in tape.tracked))
        noted.append([(call.plan, [uid and uid - first for uid in call.inputs], call.where) for call in tape.calls()])
        noted.append(
            [
                [getattr(residual, "uid", None) and residual.uid - first for residual in call.residuals]
                for call in tape.calls()
            ]
        )
        noted.append((len(other.nodes), tape.sparse, tape.unregistered))
        noted.append([(record[0], record[3]) for record in recorder.provenance.records])
    assert ways[Executor.apply] == ways[Recorder.apply]
