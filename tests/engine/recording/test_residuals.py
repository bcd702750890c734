"""What a tape keeps: what the rules of its ops ask for and nothing else, and for no longer than it is needed."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest
from driving import run

import teletape_engine.ops  # noqa: F401  # fills the catalogue
from op_laws.harness import Case, CpuExecutor, as_operand
from teletape_engine.arrays.cpu import CPU
from teletape_engine.catalogue.binding import bind
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Batch, Call, Constant, Gradient, TapeDescribe, TapeOpen, TapeWatch
from teletape_engine.derivatives.backward import backward
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.errors import InvalidArgumentError
from teletape_engine.recording.cotangents import Arrays
from teletape_engine.recording.memory import footprint
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

MIB = 1 << 20


def kept_by(case):
    """(what the node keeps by name, the values themselves, inputs and result) of one call with everything watched."""
    context, tape = CpuExecutor(), Tape(persistent=True)
    with CPU.quiet():
        results = [as_operand(context, operand) for operand in case.inputs]
        context.context.open(tape)
        context.context.watch(tape, [item for item in results if not isinstance(item, Literal)])
        result = context.apply(case.op, results, case.attrs)
    return tape, results, result


@pytest.mark.parametrize("op", [item for item in CATALOGUE.values() if item.expand is None], ids=lambda op: op.name)
def test_a_tape_keeps_what_the_rules_ask_for_and_makes_no_copy_of_it(op):
    for sample in op.samples():
        case = Case(op, sample)
        try:
            tape, inputs, result = kept_by(case)
        except InvalidArgumentError:
            continue
        results = result if isinstance(result, tuple) else (result,)
        if not tape.nodes:
            assert (
                not any(each.spec.differentiable for each in results)
                or op.op_type == "StopGradient"
                or not case.differentiable()
            )
            continue
        node, *selects = tape.nodes
        assert len(selects) == (sum(each.spec.differentiable for each in results) if len(results) > 1 else 0)
        plan, retained = node[0], node[3]
        free = case.differentiable()
        if not op.registered:  # a gradient that the caller registers may ask for anything
            places = set(range(len(inputs) + len(results)))
        elif op.variadic:
            saved = op.saves(0, case.dtype) if free else ()
            places = {
                place
                for name in saved
                for place in ([len(inputs) + op.results.index(name)] if name in op.results else range(len(inputs)))
            }
        else:
            names = [name for i in free for name in op.saves(i, case.inputs[i].dtype)]
            places = {[*op.inputs, *op.results].index(name) for name in names}
        assert set(plan.picks) == places
        everything = [*inputs, *results]
        assert all(value is everything[place] for value, place in zip(retained, plan.picks, strict=True))


@pytest.mark.parametrize("name", ["relu", "tanh", "exp", "sqrt", "softmax", "reshape", "neg", "reduce_sum"])
def test_these_keep_no_array_except_their_result(name):
    x = CpuExecutor().constant(np.ones((2, 3), np.float32))
    op = CATALOGUE[name]
    plan = bind(op, (x.spec,), op.attrs({"shape": (6,)} if name == "reshape" else {})).plan(1)
    assert plan.picks in ((), (1,))


def chain(length, size=MIB // 8, persistent=False):
    """A tape over n relu of a MiB each, and the last of them; only the tape keeps those between."""
    context, tape = CpuExecutor(), Tape(persistent=persistent)
    x = context.constant(np.full(size, 0.5))
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = x
    for _ in range(length):
        y = context.apply(CATALOGUE["relu"], (y,))
    context.context.pause(tape)
    return context, tape, x, y


def test_arrays_die_as_the_pass_goes_over_them():
    _, tape, x, y = chain(20)
    arrays = [weakref.ref(node[3][0].array) for node in tape.nodes[:-1]]
    alive = []

    class Counting(Arrays):
        def open(self, retained):
            alive.append(sum(array() is not None for array in arrays))
            return super().open(retained)

    backward(tape, [(y.uid, np.ones_like(y.array))], {x.uid}, Counting(), release=True)
    assert alive == [min(19, 20 - i) for i in range(20)]
    assert not any(array() is not None for array in arrays)


def test_a_persistent_tape_lets_nothing_go():
    context, tape, x, y = chain(5, persistent=True)
    arrays = [weakref.ref(node[3][0].array) for node in tape.nodes]
    gradient(context, GradientQuery(tape, [y], [x]))
    assert all(array() is not None for array in arrays)
    del tape
    gc.collect()
    assert [array() is not None for array in arrays] == [False] * 4 + [True]  # the last is y


def test_the_pass_needs_no_room_beyond_what_it_frees():
    tracemalloc.start()
    try:
        context, tape, x, y = chain(30)
        forward, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        (result,) = gradient(context, GradientQuery(tape, [y], [x]))
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert forward > 30 * MIB
    assert peak < forward + 5 * MIB  # the seed, two cotangents, what a rule computes meanwhile
    assert left < 4 * MIB + 200_000  # x, y, the gradient
    assert result.array.shape == x.array.shape


def test_the_structure_of_a_consumed_tape_stays_and_keeps_no_array():
    context, tape, x, y = chain(5)
    before = [(plan, inputs, output, where) for plan, inputs, output, _, where in tape.nodes]
    gradient(context, GradientQuery(tape, [y], [x]))
    assert tape.nodes == []
    assert [(plan, inputs, output, where) for plan, inputs, output, _, where in tape.structure()] == before
    assert all(retained == () for _, _, _, retained, _ in tape.structure())
    assert (tape.length, tape.consumed) == (5, True)
    assert footprint(tape, CPU.base) == (0, 0)


def test_what_is_reported_as_freed_is_what_is_freed():
    tracemalloc.start()
    try:
        for hold in (0, 1, 7):
            _, tape, *_ends = chain(10, persistent=True)
            results = [node[3][0] for node in tape.nodes[:hold]]
            answer = footprint(tape, CPU.base)
            before, _ = tracemalloc.get_traced_memory()
            del tape
            after, _ = tracemalloc.get_traced_memory()
            assert answer.residuals == 10 * MIB
            assert answer.freed == (9 - len(results)) * MIB  # the last is held too
            assert before - after == pytest.approx(answer.freed, abs=20_000)
    finally:
        tracemalloc.stop()


def test_a_view_is_counted_as_the_array_below_and_freed_with_its_last_holder():
    context, tape = CpuExecutor(), Tape(persistent=True)
    x = context.constant(np.ones(1000))
    context.context.open(tape)
    context.context.watch(tape, [x])
    whole = context.apply(CATALOGUE["relu"], (x,))
    op = CATALOGUE["reshape"]
    view = context.apply(op, (whole,), op.attrs({"shape": (10, 100)}))
    squared = context.apply(CATALOGUE["mul"], (view, view))
    assert np.shares_memory(view.array, whole.array)
    assert footprint(tape, CPU.base) == (8000, 0)
    del whole
    assert footprint(tape, CPU.base) == (8000, 0), "the view holds it"
    del view
    assert footprint(tape, CPU.base) == (8000, 8000)
    del squared
    assert footprint(tape, CPU.base) == (8000, 8000)


def test_names_that_go_along_with_a_tape_do_not_count_as_others():
    session = Session()
    client = 1 << 40
    run(
        session,
        *(Constant("x", np.zeros(1000)), TapeOpen("t", True), TapeWatch("t", ("x",))),
        *(Call("relu", (a,), (b,)) for a, b in (("x", client), (client, client + 1), (client + 1, client + 2))),
    )

    def frees(*along):
        (result,) = run(session, TapeDescribe("t", np.array(along, np.int64) if along else None))
        return result.facts["bytes"], result.facts["frees"]

    assert frees() == (24_000, 0)
    assert frees(client, client + 2, client + 2, 5) == (24_000, 16_000)
    answer = session.execute(Batch((TapeDescribe("t", np.ones((1, 1))),)))
    assert answer.failure.message == "also_released: a list of integer ids, found float64[1, 1]"


def test_an_id_that_no_command_mentions_makes_room_for_them():
    session = Session(memory_limit=10_000)
    run(session, Constant("a", np.zeros(1000)))
    run(session, Constant("b", np.ones(1000)), releases=("a",))
    assert session.bytes_in_use() == 8000


def test_residuals_with_names_die_as_the_pass_goes_when_their_release_comes_with_the_question():
    session = Session(memory_limit=10 * MIB + 500_000)
    run(session, Constant("x0", np.full(MIB // 8, 0.5)), TapeOpen("t"), TapeWatch("t", ("x0",)))
    for i in range(7):
        run(session, Call("relu", (f"x{i}",), (f"x{i + 1}",)))
    names = tuple(f"x{i}" for i in range(1, 7))
    run(session, Gradient("t", ("x7",), ("x0",), ("g",)), releases=names)
    assert session.bytes_in_use() == 3 * MIB  # x0, x7, g


LONG = 100_000


def long_tape(persistent=False, sparse=False):
    context, tape = CpuExecutor(), Tape(persistent=persistent)
    x, other = context.constant(np.ones(4)), context.constant(np.ones(4))
    context.context.open(tape)
    context.context.watch(tape, [x, other])
    y = x
    if sparse:
        op, where = CATALOGUE["gather"], context.constant(np.arange(4))
        rows = [context.apply(op, (x, where), op.attrs({})) for _ in range(2)]
        y = context.apply(CATALOGUE["add"], rows)
    for _ in range(LONG // 2):
        y = context.apply(CATALOGUE["mul"], (context.apply(CATALOGUE["neg"], (y,)), Literal(1.0)))
    y = context.apply(CATALOGUE["add"], (y, other))
    context.context.pause(tape)
    return context, tape, x, y


@pytest.mark.parametrize("sparse", [False, True])
def test_a_tape_of_a_hundred_thousand_ops_answers(sparse):
    context, tape, x, y = long_tape(sparse=sparse)
    assert tape.length > LONG
    (result,) = gradient(context, GradientQuery(tape, [y], [x]))  # and not the other watched one
    dense = result.values.array if sparse else result.array
    assert np.array_equal(dense, np.full(8 if sparse else 4, (-1.0) ** (LONG // 2)))


def test_a_tape_of_a_hundred_thousand_ops_is_measured_drawn_and_let_go():
    from teletape_engine.diagram.facts import diagram

    _, tape, x, y = long_tape(persistent=True)
    assert footprint(tape, CPU.base).residuals < 100
    facts = diagram(tape, targets=[y], sources=[x])
    assert len(facts["nodes"]) <= 2000
    assert sum(node["ops"] for node in facts["nodes"]) == tape.length
    del tape
