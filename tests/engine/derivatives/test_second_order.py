"""Hessians and Hessian-vector products of one tape, which is afterwards as it was."""

import numpy as np
import pytest
from driving import failing, run, value
from hypothesis import given, settings
from hypothesis import strategies as st

from op_laws.harness import CpuExecutor, as_operand
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.commands import Call, Constant, Gradient, Hessian, Hvp, MakeVariable, TapeOpen, TapeWatch
from teletape_engine.derivatives.gradient import gradient
from teletape_engine.derivatives.jacobian import jacobian
from teletape_engine.derivatives.query import GradientQuery
from teletape_engine.derivatives.second_order import hessian, hvp
from teletape_engine.errors import InvalidArgumentError, TapeConsumedError
from teletape_engine.recording.tape import Tape
from teletape_engine.recording.values import Literal
from teletape_engine.session.session import Session

A = np.array([0.3, -1.2, 0.7])
B = np.array([[1.1, 0.2, -0.4], [0.5, 0.8, 0.1]])


class Program(CpuExecutor):
    """A context in which ops are called by name."""

    def __call__(self, name, *inputs, **attrs):
        op = CATALOGUE[name]
        return self.apply(op, inputs, op.attrs(attrs))


#: Scalar functions of a [3] and b [2, 3], one of them with rows taken from a source.
FUNCTIONS = {
    "quartic": lambda c, a, b: c("reduce_sum", c("pow", c("matmul", b, c("reshape", a, shape=(3, 1))), Literal(4.0))),
    "waves": lambda c, a, b: c("reduce_sum", c("mul", c("sin", c("mul", a, b)), b)),
    "rows": lambda c, a, b: c("reduce_sum", c("exp", c("mul", c("gather", b, as_operand(c, np.array([1, 1]))), a))),
    "apart": lambda c, a, b: c("add", c("reduce_sum", c("square", a)), c("reduce_sum", c("exp", b))),
    "flat": lambda c, a, b: c("reduce_sum", c("mul", a, Literal(2.0))),
}


def recorded(name, tape, *, outer=None):
    context = Program()
    a, b = as_operand(context, A), as_operand(context, B)
    for item in (outer, tape) if outer is not None else (tape,):
        context.context.open(item)
        context.context.watch(item, [a, b])
    y = FUNCTIONS[name](context, a, b)
    context.context.pause(tape)
    return context, y, [a, b]


def by_two_tapes(name):
    """The blocks, from the gradient of the gradient."""
    outer, inner = Tape(persistent=True), Tape(persistent=True)
    context, y, sources = recorded(name, inner, outer=outer)
    firsts = gradient(context, GradientQuery(inner, [y], sources))
    context.context.pause(outer)
    blocks = []
    for first, source in zip(firsts, sources, strict=True):
        if first is None:
            blocks.append([None, None])
            continue
        if hasattr(first, "indices"):
            context.context.open(outer)
            first = context("unsorted_segment_sum", first.values, first.indices, num_segments=source.spec.shape[0])
            context.context.pause(outer)
        blocks.append(jacobian(context, GradientQuery(outer, [first], sources)))
    return blocks


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_hessian_is_the_gradient_of_the_gradient_by_two_tapes(name):
    tape = Tape(persistent=True)
    context, y, sources = recorded(name, tape)
    blocks = hessian(context, GradientQuery(tape, [y], sources))
    for row, expected in zip(blocks, by_two_tapes(name), strict=True):
        for item, other in zip(row, expected, strict=True):
            assert (item is None) == (other is None)
            if item is not None:
                np.testing.assert_allclose(item.array, other.array, rtol=1e-12, atol=1e-12)


@settings(max_examples=30)
@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.floats(-2, 2), min_size=9, max_size=9))
def test_a_product_is_the_hessian_times_the_vector(name, numbers):
    tape = Tape(persistent=True)
    context, y, sources = recorded(name, tape)
    u, v = np.array(numbers[:3]), np.array(numbers[3:]).reshape(2, 3)
    blocks = hessian(context, GradientQuery(tape, [y], sources, zeros=True))
    products = hvp(
        context, GradientQuery(tape, [y], sources, zeros=True, vectors=[as_operand(context, u), as_operand(context, v)])
    )
    for row, item in zip(blocks, products, strict=True):
        axes = item.spec.ndim
        expected = np.tensordot(row[0].array, u, 1) + np.tensordot(row[1].array, v, 2)
        assert expected.ndim == axes
        np.testing.assert_allclose(item.array, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(st.lists(st.floats(-2, 2), min_size=11, max_size=11))
def test_weights_make_a_product_that_of_the_weighted_sum(numbers):
    """Of targets that are arrays, one of them without weights."""
    u, v, weight = np.array(numbers[:3]), np.array(numbers[3:9]).reshape(2, 3), np.array(numbers[9:])
    answers = []
    for is_weighted in (True, False):
        tape = Tape(persistent=True)
        context, total, [a, b] = recorded("waves", tape)
        context.context.open(tape)
        rows = context("reduce_sum", context("mul", context("sin", a), context("square", b)), axis=(1,))
        if not is_weighted:
            rows = context("mul", rows, as_operand(context, weight))
        context.context.pause(tape)
        weights = [as_operand(context, weight), None] if is_weighted else None
        vectors = [as_operand(context, u), as_operand(context, v)]
        query = GradientQuery(tape, [rows, total], [a, b], vectors=vectors, output_gradients=weights, zeros=True)
        answers.append([product.array for product in hvp(context, query)])
    for product, expected in zip(*answers, strict=True):
        np.testing.assert_allclose(product, expected, rtol=1e-9, atol=1e-9)


def test_weights_that_the_tape_has_recorded_are_constants():
    tape = Tape(persistent=True)
    context, _, [a, b] = recorded("apart", tape)
    context.context.open(tape)
    squares = context("square", a)
    weight = context("exp", a)
    context.context.pause(tape)
    vectors = [as_operand(context, np.ones(3)), as_operand(context, B)]
    query = GradientQuery(tape, [squares], [a, b], vectors=vectors, output_gradients=[weight], zeros=True)
    products = hvp(context, query)
    np.testing.assert_allclose(products[0].array, 2 * np.exp(A))
    assert not products[1].array.any()


def test_what_is_not_connected_is_none_or_zeros():
    tape = Tape(persistent=True)
    context, y, sources = recorded("flat", tape)
    vectors = [as_operand(context, A), as_operand(context, B)]
    assert hessian(context, GradientQuery(tape, [y], sources)) == [[None, None], [None, None]]
    assert hvp(context, GradientQuery(tape, [y], sources, vectors=vectors)) == [None, None]
    zeros = hessian(context, GradientQuery(tape, [y], sources, zeros=True))
    assert [[item.spec.shape for item in row] for row in zeros] == [[(3, 3), (3, 2, 3)], [(2, 3, 3), (2, 3, 2, 3)]]
    products = hvp(context, GradientQuery(tape, [y], sources, zeros=True, vectors=vectors))
    assert [product.spec.shape for product in products] == [(3,), (2, 3)]
    assert not any(zero.array.any() for zero in [*zeros[0], *zeros[1], *products])


def test_the_tape_is_afterwards_as_it_was():
    tape = Tape(persistent=True)
    context, y, sources = recorded("rows", tape)
    before = list(tape.nodes), dict(tape.tracked), tape.sparse, list(context.context.tapes)
    hessian(context, GradientQuery(tape, [y], sources))
    hvp(context, GradientQuery(tape, [y], sources, vectors=[as_operand(context, A), as_operand(context, B)]))
    with pytest.raises(InvalidArgumentError):
        hvp(context, GradientQuery(tape, [y], sources, vectors=[as_operand(context, A), as_operand(context, A)]))
    assert (tape.nodes, tape.tracked, tape.sparse, context.context.tapes) == before


def test_asked_inside_its_own_context_a_tape_keeps_what_it_recorded():
    context, tape = Program(), Tape(persistent=True)
    x = as_operand(context, A)
    context.context.open(tape)
    context.context.watch(tape, [x])
    y = context("reduce_sum", context("pow", x, Literal(4.0)))
    [product] = hvp(context, GradientQuery(tape, [y], [x], vectors=[as_operand(context, np.ones(3))]))
    [third] = gradient(context, GradientQuery(tape, [product], [x]))
    np.testing.assert_allclose(third.array, 24 * A)
    assert context.context.tapes == [tape]


def test_an_outer_tape_differentiates_the_product():
    outer, tape = Tape(), Tape(persistent=True)
    context, y, [a, b] = recorded("waves", tape, outer=outer)
    [product, _] = hvp(
        context, GradientQuery(tape, [y], [a, b], vectors=[as_operand(context, A), as_operand(context, B)])
    )
    [third] = gradient(context, GradientQuery(outer, [product], [a]))
    step = 1e-6

    def by_two(a):
        inner = Tape(persistent=True)
        other = Program()
        x, z = as_operand(other, a), as_operand(other, B)
        other.context.open(inner)
        other.context.watch(inner, [x, z])
        y = FUNCTIONS["waves"](other, x, z)
        return hvp(other, GradientQuery(inner, [y], [x, z], vectors=[as_operand(other, A), as_operand(other, B)]))[
            0
        ].array.sum()

    expected = [(by_two(A + step * unit) - by_two(A - step * unit)) / (2 * step) for unit in np.eye(3)]
    np.testing.assert_allclose(third.array, expected, rtol=1e-6)


def test_a_tape_that_is_not_persistent_answers_once():
    tape = Tape()
    context, y, sources = recorded("quartic", tape)
    hvp(
        context,
        GradientQuery(tape, [y], sources, retain_tape=True, vectors=[as_operand(context, A), as_operand(context, B)]),
    )
    blocks = hessian(context, GradientQuery(tape, [y], sources))
    np.testing.assert_allclose(blocks[0][0].array, by_two_tapes("quartic")[0][0].array)
    assert tape.consumed
    assert not tape.persistent
    assert not tape.nodes
    with pytest.raises(TapeConsumedError):
        hessian(context, GradientQuery(tape, [y], sources))


@pytest.mark.parametrize(
    ("vectors", "text"),
    [
        ([A], "2 sources, but 1 vectors"),
        ([A, A], r"a vector float64\[3\] for a source float64\[2, 3\]"),
        ([A.astype(np.float32), B], "source's shape and dtype"),
    ],
)
def test_wrong_vectors_are_refused(vectors, text):
    tape = Tape()
    context, y, sources = recorded("quartic", tape)
    with pytest.raises(InvalidArgumentError, match=text):
        hvp(context, GradientQuery(tape, [y], sources, vectors=[as_operand(context, vector) for vector in vectors]))
    assert not tape.consumed


def test_commands():
    session = Session()
    run(
        session,
        Constant("x", A),
        MakeVariable("w", B),
        TapeOpen("t", persistent=True),
        TapeWatch("t", ("x",)),
        Call("mul", ("x", "w"), ("p",)),
        Call("exp", ("p",), ("y",)),
    )
    names = ("xx", "xw", "wx", "ww")
    [result] = run(session, Hessian("t", ("y",), ("x", "w"), names))
    assert result.kinds == ("dense",) * 4
    assert value(session, "wx").shape == (2, 3, 3)
    run(session, Hvp("t", ("y",), ("x", "w"), (A, "w"), ("hx", None)))
    expected = np.tensordot(value(session, "xx"), A, 1) + np.tensordot(value(session, "xw"), B, 2)
    np.testing.assert_allclose(value(session, "hx"), expected)
    assert failing(session, Hessian("t", ("y",), ("x", "w"), ("a", "b"))).message == (
        "4 pairs of sources, but 2 output ids"
    )
    assert failing(session, Hvp("t", ("y",), ("x",), (), ("a2",))).code == "invalid_argument"
    [result] = run(session, Gradient("t", ("y",), ("x",), ("g",)))
    assert result.kinds == ("dense",)
